"""Both stores compared until they hold the same: between two steps of a move. Nothing is written to the cluster."""

from __future__ import annotations

from kit.engine.model.actor import ReadingActor
from kit.engine.model.performer import Checked, Verified
from kit.engine.model.step import Step
from kit.kraft.move.orders import NodeActor, NodeOperator, checked, first_problem, verified
from kit.kraft.move.parameters import KraftParameters
from kit.kraft.move.problems import controllers_problem, dual_write_problem


class CompareActor(ReadingActor, NodeActor):
    """Waits until both stores hold the same; writes nothing."""

    def __init__(self, hands: NodeOperator) -> None:
        super().__init__(hands)
        self._firsts: dict[str, int] = {}

    def check(self, step: Step) -> Checked:
        parameters = KraftParameters.of(step)
        state = self.hands.read_state(parameters)
        return checked(
            first_problem(lambda: controllers_problem(state, parameters.controller_addresses)), "the controllers answer"
        )

    def verify(self, step: Step) -> Verified:
        parameters = KraftParameters.of(step)
        problem = first_problem(lambda: self._unsettled(parameters))
        return verified(problem, "") if problem else self.compared(step, "ZooKeeper and KRaft hold the same")

    def _unsettled(self, parameters: KraftParameters) -> str | None:
        state = self.hands.read_state(parameters)
        problem = dual_write_problem(state, parameters.controller_addresses)
        if problem is not None:
            return problem
        checkpoint = state.control.checkpoint or 0
        if checkpoint <= self._firsts.setdefault(parameters.to_phase, checkpoint):
            return "/migration has not changed yet"
        return None
