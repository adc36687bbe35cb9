"""The end: controllers restarted without the migration flag, the active one last; from then on the move can't be
undone.
"""

from __future__ import annotations

from collections.abc import Sequence

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import RunError
from kit.kraft.analyze.phase import FINALISED as PHASE_FINALISED, KRAFT, MIGRATION, POST_MIGRATION
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.controllers import ControllerActor, refuse_unordered_change
from kit.kraft.move.nodes import CONTROLLER, FINALISED, RESTART
from kit.kraft.move.orders import checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.problems import (
    broker_problem,
    controllers_problem,
    diff_problem,
    dual_write_problem,
    registered_problem,
)
from kit.kraft.move.steps import controller_item
from kit.kraft.move.sync import sync_problem
from kit.text.naming import named


class FinaliseActor(ControllerActor):
    def check(self, step: Step) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, RESTART, CONTROLLER),
                lambda: self._not_ready(parameters, self.hands.read_state(parameters)),
            ),
            "every broker is in KRaft mode, and both stores hold the same values",
        )

    def _not_ready(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        """Before the first restart all of it; once the log reports state 3 there is only the way on."""
        problem = self._brokers_problem(parameters, state)
        if problem is not None or state.facts.zk_state == POST_MIGRATION:
            return problem
        if state.phase not in (KRAFT, PHASE_FINALISED) or state.facts.zk_state != MIGRATION:
            return f"the cluster is in phase {state.phase!r}, state {state.facts.zk_state}"
        if not any(each.has_flag is False for each in state.answering_controllers):
            problem = dual_write_problem(state, parameters.controller_addresses)
        return problem or diff_problem(self.cluster, self.hands.reads)

    def _brokers_problem(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        if (problem := registered_problem(state)) is not None:
            return problem
        wrong_mode = next(filter(None, (broker_problem(state, number, KRAFT_MODE) for number in state.brokers)), None)
        return wrong_mode or sync_problem(
            self.cluster, state.facts, parameters.broker_addresses, reads=self.hands.reads
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = OrderParameters.of(step)
        state = self.hands.read_state(parameters)
        flags = {each.has_flag for each in state.answering_controllers}
        is_all = len(state.answering_controllers) == len(parameters.controllers)
        if is_all and flags == {False} and state.facts.zk_state == POST_MIGRATION:
            return StepState.DONE
        return StepState.NOT_DONE if is_all and flags == {True} else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: a broker is not as it has to be, or a controller did not come back; nothing more is restarted.
        """
        parameters, outcomes = OrderParameters.of(step), list[ItemOutcome]()
        self.hands.cancel_open_orders(parameters, report, lambda attempt: self.flag_of(parameters, attempt) is False)
        left = list(parameters.nodes)
        while left:
            state = self.hands.read_state(parameters)
            silent, leader = self._silent(parameters, state), state.facts.leader
            is_active = leader.node_id if leader is not None else None
            number = min(left, key=lambda it: (it not in silent, it == is_active, left.index(it)))
            left.remove(number)
            outcomes.append(self._restart(parameters, number, state, report))
            report(outcomes[-1:])
        return outcomes

    def _restart(self, parameters: OrderParameters, number: int, state: ClusterState, report: Report) -> ItemOutcome:
        item, change = controller_item(number), ("with the migration flag", "without it")
        node = state.controller_at(parameters.controller_addresses[number])
        if node is not None and node.has_flag is False:
            return ItemOutcome(item, Outcome.UNCHANGED, *change)
        others = [each for each in self._silent(parameters, state) if each != number]
        missing = named(others, "controller {} does not answer", "controllers {} do not answer") if others else None
        if node is not None and missing is not None:
            raise RunError(
                f"{item} is not restarted: {missing}, and the quorum needs a majority. Start the "
                "controllers that do not run"
            )
        problem = first_problem(
            lambda: self.hands.edited_problem(parameters, CONTROLLER, [number], FINALISED),
            lambda: self._brokers_problem(parameters, state),
        )
        if problem is not None:
            raise RunError(f"{item} is not restarted: {problem}. The run stopped")
        report.attempt([item])
        try:
            _, answer = self.hands.order(parameters, CONTROLLER, number, RESTART, (MIGRATION_MODE, FINALISED))
            self.hands.wait_until(parameters, lambda now: self._not_back(parameters, number, state, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})

    def _silent(self, parameters: OrderParameters, state: ClusterState) -> list[int]:
        return [number for number, at in parameters.controller_addresses.items() if state.controller_at(at) is None]

    def _not_back(
        self, parameters: OrderParameters, number: int, before: ClusterState, now: ClusterState
    ) -> str | None:
        """Raises:
        RunError: another controller changed, which this run did not order.
        """
        refuse_unordered_change(parameters, number, before, now)
        node = now.controller_at(parameters.controller_addresses[number])
        if node is None or node.has_flag is not False:
            return f"controller {number} does not answer without the migration flag yet"
        if now.facts.leader is None or not now.facts.has_log:
            return "no controller leads the quorum"
        return self._brokers_problem(parameters, now)

    def verify(self, step: Step) -> Verified:
        parameters = OrderParameters.of(step)
        return verified(first_problem(lambda: self._unfinished(parameters)), "the migration is finalised")

    def _unfinished(self, parameters: OrderParameters) -> str | None:
        state = self.hands.read_state(parameters)
        problem = controllers_problem(state, parameters.controller_addresses, has_flag=False)
        if problem is None and state.facts.zk_state != POST_MIGRATION:
            return f"the migration state in the metadata log is {state.facts.zk_state}, not {POST_MIGRATION}"
        return problem or self._brokers_problem(parameters, state)
