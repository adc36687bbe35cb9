"""The migration flag given back to controllers that lack it, while the migration is not over: one by one.

Whoever lacks the flag finalises as soon as it is elected. The active controller has it, and stays up meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

from kit.clients.nodes import MIGRATION_MODE
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import RunError
from kit.kraft.analyze.phase import MIGRATION, POST_MIGRATION
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.controllers import ControllerActor, refuse_unordered_change
from kit.kraft.move.nodes import CONTROLLER, FINALISED, RESTART
from kit.kraft.move.orders import checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.problems import dual_write_problem, flag_problem
from kit.kraft.move.steps import controller_item


class ReturnFlagActor(ControllerActor):
    def check(self, step: Step) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, RESTART, CONTROLLER),
                lambda: self._not_ready(parameters, self.hands.read_state(parameters)),
            ),
            "the migration is not finalised, and the active controller has the migration flag",
        )

    def _not_ready(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        """One that was ordered before and does not answer is started again, if no other controller is missing."""
        silent = [it for it, at in parameters.controller_addresses.items() if state.controller_at(at) is None]
        is_ours = len(silent) == 1 and silent[0] in parameters.nodes
        if is_ours and state.facts.leader is not None and state.facts.zk_state == MIGRATION:
            return None
        return flag_problem(state, parameters.controller_addresses)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = OrderParameters.of(step)
        state = self.hands.read_state(parameters)
        nodes = [state.controller_at(parameters.controller_addresses[number]) for number in parameters.nodes]
        flags = {None if node is None else node.has_flag for node in nodes}
        if flags == {True}:
            return StepState.DONE
        return StepState.NOT_DONE if flags == {False} else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the migration was finalised meanwhile, or a controller did not come back; nothing more is ordered.
        """
        parameters, outcomes = OrderParameters.of(step), list[ItemOutcome]()
        self.hands.cancel_open_orders(parameters, report, lambda attempt: self.flag_of(parameters, attempt) is True)
        state, places = self.hands.read_state(parameters), parameters.controller_addresses
        for number in sorted(parameters.nodes, key=lambda it: state.controller_at(places[it]) is not None):
            outcomes.append(self._restart(parameters, number, report))
            report(outcomes[-1:])
        return outcomes

    def _restart(self, parameters: OrderParameters, number: int, report: Report) -> ItemOutcome:
        item, change = controller_item(number), ("without the migration flag", "with it")
        state = self.hands.read_state(parameters)
        node = state.controller_at(parameters.controller_addresses[number])
        if node is not None and node.has_flag:
            return ItemOutcome(item, Outcome.UNCHANGED, *change)
        addresses = parameters.controller_addresses  # One that runs is not taken down while another one is.
        problem = self._not_ready(parameters, state) if node is None else flag_problem(state, addresses)
        if problem is not None:
            raise RunError(f"{item} is not restarted: {problem}. The run stopped")
        if (problem := self.hands.edited_problem(parameters, CONTROLLER, [number], MIGRATION_MODE)) is not None:
            raise RunError(f"{item} is not restarted: {problem}. The run stopped")
        report.attempt([item])
        try:
            _, answer = self.hands.order(parameters, CONTROLLER, number, RESTART, (FINALISED, MIGRATION_MODE))
            self.hands.wait_until(parameters, lambda now: self._not_back(parameters, number, state, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})

    def _not_back(
        self, parameters: OrderParameters, number: int, before: ClusterState, now: ClusterState
    ) -> str | None:
        """Raises:
        RunError: a controller without the flag was elected, and there is only the way on; or another one changed.
        """
        refuse_unordered_change(parameters, number, before, now)
        if now.facts.zk_state == POST_MIGRATION:
            raise RunError(
                "a controller without the flag was elected, and the migration is finalised (state 3): take the flag"
                " from all controllers (offramp kraft status)"
            )
        node = now.controller_at(parameters.controller_addresses[number])
        if node is None or not node.has_flag:
            return f"controller {number} does not answer with the migration flag yet"
        return flag_problem(now, parameters.controller_addresses)

    def verify(self, step: Step) -> Verified:
        parameters = OrderParameters.of(step)
        problem = first_problem(
            lambda: dual_write_problem(self.hands.read_state(parameters), parameters.controller_addresses)
        )
        return verified(problem, "every controller has the migration flag, and dual write continues")
