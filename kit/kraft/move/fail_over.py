"""The active controller moved: it is restarted while all other ones are caught up, and one of them is elected."""

from __future__ import annotations

from collections.abc import Sequence

from kit.clients.nodes import MIGRATION_MODE
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import RunError
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.nodes import CONTROLLER, RESTART
from kit.kraft.move.orders import NodeActor, checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.problems import behind_problem, diff_problem, dual_write_problem
from kit.kraft.move.steps import controller_item
from kit.kraft.move.sync import sync_problem


class FailOverActor(NodeActor):
    def check(self, step: Step) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, RESTART, CONTROLLER),
                lambda: self._unsound(parameters, self.hands.read_state(parameters)),
                lambda: diff_problem(self.cluster, self.hands.reads),
            ),
            "every controller has caught up, and both stores hold the same values",
        )

    def _unsound(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        return (
            dual_write_problem(state, parameters.controller_addresses)
            or behind_problem(self.cluster, state, self.hands.reads)
            or sync_problem(self.cluster, state.facts, parameters.broker_addresses, reads=self.hands.reads)
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = OrderParameters.of(step)
        leader = self.hands.read_state(parameters).facts.leader
        if leader is None:
            return StepState.PARTLY
        return StepState.NOT_DONE if leader.node_id in parameters.nodes else StepState.DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the controller was not restarted, or no other controller took over.
        """
        parameters = OrderParameters.of(step)
        (number,) = parameters.nodes
        item, change = controller_item(number), ("active", "restarted, another one is active")
        is_over = self._still_active(parameters, self.hands.read_state(parameters)) is None
        self.hands.cancel_open_orders(parameters, report, lambda attempt: is_over)
        state = self.hands.read_state(parameters)
        is_up = state.controller_at(parameters.controller_addresses[number]) is not None
        if is_up and self._still_active(parameters, state) is None:
            self.hands.wait_until(parameters, lambda now: self._not_over(parameters, now), report)
            return [ItemOutcome(item, Outcome.UNCHANGED, *change)]
        if (problem := self.hands.edited_problem(parameters, CONTROLLER, [number], MIGRATION_MODE)) is not None:
            raise RunError(f"{item} is not restarted: {problem}")
        report.attempt([item])
        try:
            _, answer = self.hands.order(parameters, CONTROLLER, number, RESTART, (MIGRATION_MODE, MIGRATION_MODE))
            self.hands.wait_until(parameters, lambda now: self._not_over(parameters, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return [ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})]

    def _still_active(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        leader = state.facts.leader
        if leader is None:
            return "no controller leads the quorum"
        is_active = leader.node_id in parameters.nodes
        return f"controller {leader.node_id} is still the active controller" if is_active else None

    def _not_over(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        return self._still_active(parameters, state) or self._unsound(parameters, state)

    def verify(self, step: Step) -> Verified:
        parameters = OrderParameters.of(step)
        state = self.hands.read_state(parameters)
        problem = first_problem(lambda: self._not_over(parameters, state))
        if problem is not None:
            return verified(problem, "")
        leader = state.facts.leader
        return self.compared(
            step, f"controller {leader.node_id if leader else None} is active, and dual write continues"
        )
