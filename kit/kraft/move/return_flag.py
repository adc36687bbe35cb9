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
from kit.kraft.move.cluster_state import ClusterState, dual_write_problem, flag_problem
from kit.kraft.move.controllers import ControllerActor, refuse_astray
from kit.kraft.move.nodes import CONTROLLER, FINALISED, RESTART
from kit.kraft.move.orders import checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.steps import controller_item


class ReturnFlagActor(ControllerActor):
    def check(self, step: Step) -> Checked:
        words = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, RESTART, CONTROLLER),
                lambda: self._not_ready(words, self.hands.look(words)),
            ),
            "the migration is not over, and the active controller has the flag",
        )

    def _not_ready(self, words: OrderParameters, standing: ClusterState) -> str | None:
        """One that was ordered before and does not answer is started again, if nobody else is missing."""
        silent = [it for it, at in words.controller_addresses.items() if standing.controller_at(at) is None]
        is_ours = len(silent) == 1 and silent[0] in words.nodes
        if is_ours and standing.facts.leader is not None and standing.facts.zk_state == MIGRATION:
            return None
        return flag_problem(standing, words.controller_addresses)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        words = OrderParameters.of(step)
        standing = self.hands.look(words)
        nodes = [standing.controller_at(words.controller_addresses[number]) for number in words.nodes]
        flags = {None if node is None else node.has_flag for node in nodes}
        if flags == {True}:
            return StepState.DONE
        return StepState.NOT_DONE if flags == {False} else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: the migration was finalised meanwhile, or a controller did not come back; nothing more is ordered.
        """
        words, outcomes = OrderParameters.of(step), list[ItemOutcome]()
        self.hands.cancel_open_orders(words, report, lambda attempt: self.flag_of(words, attempt) is True)
        standing, places = self.hands.look(words), words.controller_addresses
        for number in sorted(words.nodes, key=lambda it: standing.controller_at(places[it]) is not None):
            outcomes.append(self._restart(words, number, report))
            report(outcomes[-1:])
        return outcomes

    def _restart(self, words: OrderParameters, number: int, report: Report) -> ItemOutcome:
        item, change = controller_item(number), ("without the migration flag", "with it")
        standing = self.hands.look(words)
        node = standing.controller_at(words.controller_addresses[number])
        if node is not None and node.has_flag:
            return ItemOutcome(item, Outcome.UNCHANGED, *change)
        addresses = words.controller_addresses  # One that runs is not taken down while another one is.
        problem = self._not_ready(words, standing) if node is None else flag_problem(standing, addresses)
        if problem is not None:
            raise RunError(f"{item} is not restarted: {problem}. Nothing more is ordered")
        if (problem := self.hands.edited_problem(words, CONTROLLER, [number], MIGRATION_MODE)) is not None:
            raise RunError(f"{item} is not restarted: {problem}. Nothing more is ordered")
        report.attempt([item])
        try:
            _, answer = self.hands.order(words, CONTROLLER, number, RESTART, (FINALISED, MIGRATION_MODE))
            self.hands.wait_until(words, lambda now: self._not_back(words, number, standing, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})

    def _not_back(self, words: OrderParameters, number: int, before: ClusterState, now: ClusterState) -> str | None:
        """Raises:
        RunError: a controller without the flag was elected, and there is only the way on; or another one changed.
        """
        refuse_astray(words, number, before, now)
        if now.facts.zk_state == POST_MIGRATION:
            raise RunError(
                "a controller without the flag was elected, and the migration is finalised (state 3): take the flag"
                " from all controllers (offramp kraft status)"
            )
        node = now.controller_at(words.controller_addresses[number])
        if node is None or not node.has_flag:
            return f"controller {number} does not answer with the flag yet"
        return flag_problem(now, words.controller_addresses)

    def verify(self, step: Step) -> Verified:
        words = OrderParameters.of(step)
        problem = first_problem(lambda: dual_write_problem(self.hands.look(words), words.controller_addresses))
        return verified(problem, "every controller has the migration flag, and dual write goes on")
