"""The active controller moved: it is restarted while the others are caught up, and one of them is elected."""

from __future__ import annotations

from collections.abc import Sequence

from kit.clients.nodes import MIGRATION_MODE
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import RunError
from kit.kraft.move.cluster_state import ClusterState, behind_problem, diff_problem, dual_write_problem
from kit.kraft.move.nodes import CONTROLLER, RESTART
from kit.kraft.move.orders import NodeActor, checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.steps import controller_item
from kit.kraft.move.sync import sync_problem


class FailOverActor(NodeActor):
    def check(self, step: Step) -> Checked:
        words = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, RESTART, CONTROLLER),
                lambda: self._unsound(words, self.hands.look(words)),
                lambda: diff_problem(self.cluster, self.hands.reads),
            ),
            "every controller has caught up, and both stores hold the same",
        )

    def _unsound(self, words: OrderParameters, standing: ClusterState) -> str | None:
        return (
            dual_write_problem(standing, words.controller_addresses)
            or behind_problem(self.cluster, standing, self.hands.reads)
            or sync_problem(self.cluster, standing.facts, words.broker_addresses, reads=self.hands.reads)
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        words = OrderParameters.of(step)
        leader = self.hands.look(words).facts.leader
        if leader is None:
            return StepState.PARTLY
        return StepState.NOT_DONE if leader.node_id in words.nodes else StepState.DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the controller was not restarted, or nobody else took over.
        """
        words = OrderParameters.of(step)
        (number,) = words.nodes
        item, change = controller_item(number), ("active", "restarted, another one is active")
        is_over = self._still_active(words, self.hands.look(words)) is None
        self.hands.cancel_open_orders(words, report, lambda attempt: is_over)
        standing = self.hands.look(words)
        is_up = standing.controller_at(words.controller_addresses[number]) is not None
        if is_up and self._still_active(words, standing) is None:
            self.hands.wait_until(words, lambda now: self._not_over(words, now), report)
            return [ItemOutcome(item, Outcome.UNCHANGED, *change)]
        if (problem := self.hands.edited_problem(words, CONTROLLER, [number], MIGRATION_MODE)) is not None:
            raise RunError(f"{item} is not restarted: {problem}")
        report.attempt([item])
        try:
            _, answer = self.hands.order(words, CONTROLLER, number, RESTART, (MIGRATION_MODE, MIGRATION_MODE))
            self.hands.wait_until(words, lambda now: self._not_over(words, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return [ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})]

    def _still_active(self, words: OrderParameters, standing: ClusterState) -> str | None:
        leader = standing.facts.leader
        if leader is None:
            return "no controller leads the quorum"
        return f"controller {leader.node_id} is still the active one" if leader.node_id in words.nodes else None

    def _not_over(self, words: OrderParameters, standing: ClusterState) -> str | None:
        return self._still_active(words, standing) or self._unsound(words, standing)

    def verify(self, step: Step) -> Verified:
        words = OrderParameters.of(step)
        standing = self.hands.look(words)
        problem = first_problem(lambda: self._not_over(words, standing))
        if problem is not None:
            return verified(problem, "")
        leader = standing.facts.leader
        return self.compared(step, f"controller {leader.node_id if leader else None} is active, and dual write goes on")
