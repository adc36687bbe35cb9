"""Controllers started, stopped, wiped and finalised. What the deployer says is not believed; what is then seen is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kit.analyze.metadata.phase import FINALISED as PHASE_FINALISED
from kit.analyze.metadata.phase import KRAFT, MIGRATION, POST_MIGRATION, PRE_MIGRATION
from kit.errors import RunError
from kit.migrate.engine.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.engine.step import Step
from kit.migrate.kraft.hand_back import forget_migration
from kit.migrate.kraft.nodes import CONTROLLER, FINALISED, RESTART, START, STOP, WIPE
from kit.migrate.kraft.orders import NodeActor, checked, first_problem, verified
from kit.migrate.kraft.standing import (
    Standing,
    broker_problem,
    controllers_problem,
    diff_problem,
    dual_write_problem,
    first_checkpoint_problem,
    joined_problem,
    registered_problem,
    sync_problem,
    told_modes,
    zookeeper_of,
)
from kit.migrate.kraft.steps import MIGRATION_ZNODE, REPAIRS, KraftParameters, controller_item
from kit.read.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.text.naming import named


class _ControllerActor(NodeActor):
    def _order_each(
        self, words: KraftParameters, action: str, modes: tuple[str, str], report: Report, numbers: Sequence[int]
    ) -> dict[int, str]:
        """All at once, so that no controller is long without the others; what the deployer said of each.

        Raises:
            RunError: orders failed, after all were given; each that did is named.
        """
        if not numbers:
            return {}
        report.attempt([controller_item(number) for number in numbers])
        with ThreadPoolExecutor(len(numbers)) as together:
            given = {
                number: together.submit(self.hands.order, words, CONTROLLER, number, action, modes)
                for number in numbers
            }
        errors = {number: error for number, order in given.items() if (error := order.exception()) is not None}
        odd = [error for error in errors.values() if not isinstance(error, RunError)]
        if odd:
            raise odd[0]
        if errors:
            raise RunError("; ".join(f"{controller_item(number)}: {error}" for number, error in errors.items()))
        return {number: order.result()[1] for number, order in given.items()}

    def _n_running(self, words: KraftParameters) -> int:
        return len(self.hands.look(words).live_controllers)

    def _by_running(self, words: KraftParameters, done: int) -> StepState:
        """Of a step after which so many controllers run."""
        n_running, not_done = self._n_running(words), len(words.controllers) - done
        if n_running == done:
            return StepState.DONE
        return StepState.NOT_DONE if n_running == not_done else StepState.PARTLY

    def _outcomes(self, words: KraftParameters, answers: dict[int, str], before: str, after: str) -> list[ItemOutcome]:
        def outcome(number: int) -> ItemOutcome:
            item = controller_item(number)
            if number not in answers:
                return ItemOutcome(item, Outcome.UNCHANGED, before, after)
            return ItemOutcome(item, Outcome.CONFIRMED, before, after, details={"said": answers[number]})

        return [outcome(number) for number in words.nodes]


class StartActor(_ControllerActor):
    def check(self, step: Step) -> Checked:
        words = KraftParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, START, CONTROLLER),
                lambda: self._not_before(self.hands.look(words)),
            ),
            "nothing of another attempt is there",
        )

    def _not_before(self, standing: Standing) -> str | None:
        """The left-over ``/migration`` that makes controllers delete topics; those of this run answer already."""
        control = standing.control
        if control.checkpoint is not None or control.is_controller_persistent:
            return f"/migration says the checkpoint {control.checkpoint}: it is of another attempt, and must be deleted"
        if control.has_migration and not standing.live_controllers:
            return (
                "/migration is there, and no controller answers: it is of another attempt, and must be deleted: offramp"
                " plan kraft --repair. If this run ordered them: look why they do not run, or undo it"
            )
        if control.problems:
            return control.problems[0]
        moved = {number: mode for number, mode in standing.modes.items() if mode != ZOOKEEPER_MODE}
        return f"not every broker is in ZooKeeper mode: {told_modes(moved)}" if moved else None

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        words = KraftParameters.of(step)
        by_running = self._by_running(words, len(words.controllers))
        if by_running == StepState.NOT_DONE and self.hands.look(words).control.has_migration:
            return StepState.PARTLY
        return by_running

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Start those that do not run, and wait until all of them wait for the brokers.

        Raises:
            RunError: an order failed, or the controllers did not come in time.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        words = KraftParameters.of(step)
        standing = self.hands.look(words)
        running = {each.address for each in standing.live_controllers}
        starting = [it for it in words.nodes if words.controller_addresses[it] not in running]
        answers = self._order_each(words, START, ("", MIGRATION_MODE), report, starting)
        if answers:
            report.attempt([MIGRATION_ZNODE])
        self.hands.await_so(words, lambda now: self._waiting_problem(words, now), report)
        outcome = Outcome.CONFIRMED if answers else Outcome.UNCHANGED
        done = self._outcomes(words, answers, "not running", "running with the migration flag")
        return [*done, ItemOutcome(MIGRATION_ZNODE, outcome, None, "nothing copied yet")]

    def _waiting_problem(self, words: KraftParameters, now: Standing) -> str | None:
        problem = controllers_problem(now, words.controller_addresses)
        if problem is not None:
            return problem
        if now.facts.zk_state != PRE_MIGRATION:
            return f"the metadata log says the state {now.facts.zk_state}, not {PRE_MIGRATION}: was a disk not empty?"
        return first_checkpoint_problem(now)

    def verify(self, step: Step) -> Verified:
        words = KraftParameters.of(step)
        problem = first_problem(lambda: self._waiting_problem(words, self.hands.look(words)))
        return verified(problem, f"{named(words.nodes, 'controller {} waits', 'controllers {} wait')} for the brokers")

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        words = KraftParameters.of(step)
        return checked(first_problem(lambda: self._begun_problem(self.hands.look(words))), "nothing is copied yet")

    def _begun_problem(self, standing: Standing) -> str | None:
        if standing.control.checkpoint is not None or standing.control.is_controller_persistent:
            return "something is copied already: the way back is a plan (offramp plan kraft --to zookeeper)"
        moved = {number: mode for number, mode in standing.modes.items() if mode != ZOOKEEPER_MODE}
        if not moved:
            return None
        return (
            f"not every broker is in ZooKeeper mode: {told_modes(moved)}; undo the run that moved them first, or make"
            " one plan back: offramp plan kraft --to zookeeper"
        )

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Stopped, ``/migration`` deleted, wiped: as if they had never been there.

        Raises:
            RunError: an order failed, a controller still answers, or ``/migration`` was not deleted.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        words = KraftParameters.of(step)
        answers = self._order_each(words, STOP, (MIGRATION_MODE, ""), report, words.nodes)
        self.hands.await_so(words, _silence_problem, report)
        report.attempt([MIGRATION_ZNODE])
        outcome = forget_migration(zookeeper_of(self.cluster))
        report([outcome])
        if outcome.outcome not in (Outcome.CONFIRMED, Outcome.UNCHANGED):
            raise RunError(f"{MIGRATION_ZNODE}: {outcome.error}; nothing was wiped")
        self._order_each(words, WIPE, ("", ""), report, words.nodes)
        return [*self._outcomes(words, answers, "running with the migration flag", "stopped"), outcome]


def _silence_problem(now: Standing) -> str | None:
    running = now.live_controllers
    addresses = [each.address for each in running]
    return named(addresses, "controller {} still runs", "controllers {} still run") if running else None


class StopActor(_ControllerActor):
    def check(self, step: Step) -> Checked:
        words = KraftParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, STOP, CONTROLLER),
                lambda: self._modes_problem(words, self.hands.look(words)),
            ),
            "no broker is in KRaft mode",
        )

    def _modes_problem(self, words: KraftParameters, standing: Standing) -> str | None:
        if (problem := joined_problem(standing)) is not None:
            return problem
        if words.to_phase in REPAIRS:
            in_kraft = {number: mode for number, mode in standing.modes.items() if mode in (KRAFT_MODE, None)}
            return told_modes(in_kraft) if in_kraft else None
        wanted = (MIGRATION_MODE,) if words.has_claim else (ZOOKEEPER_MODE, MIGRATION_MODE)
        wrong = {number: mode for number, mode in standing.modes.items() if mode not in wanted}
        return f"not every broker is in {' or '.join(wanted)} mode: {told_modes(wrong)}" if wrong else None

    def _refuse_stop(self, words: KraftParameters, was_ordered: bool) -> None:
        """A stop that was ordered before and did not come leaves controllers that go on writing: they are asked again.

        Raises:
            RunError: what they hold is not what ZooKeeper holds, or that can't be told although one leads.
        """
        standing = self.hands.look(words)
        is_partly = was_ordered and len(standing.answering_controllers) < len(words.controllers)
        if is_partly and standing.facts.leader is None:
            return  # Nobody is left who could tell.
        problem = first_problem(lambda: self._not_yet(words, standing, is_partly))
        if problem is None or (is_partly and self.hands.look(words).facts.leader is None):
            return
        raise RunError(f"{problem}; no controller was stopped{' now' if was_ordered else ''}")

    def _not_yet(self, words: KraftParameters, standing: Standing, is_partly: bool = False) -> str | None:
        """While one leads. ``is_partly``: some have been stopped already."""
        if words.to_phase in REPAIRS:
            state = standing.facts.zk_state
            return f"their log says the state {state}: it is their migration" if state == MIGRATION else None
        if not words.has_claim:
            return "something is copied already" if standing.control.checkpoint is not None else None
        problem = None if is_partly else dual_write_problem(standing, words.controller_addresses)
        return problem or sync_problem(self.cluster, words.broker_addresses) or diff_problem(self.cluster)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return self._by_running(KraftParameters.of(step), 0)

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Stop all of them at once, and wait until none answers.

        Raises:
            RunError: they may not be stopped yet, an order failed, or one still answers after the time for a node.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        words = KraftParameters.of(step)
        self._refuse_stop(words, bool(report.acted.attempts))
        answers = self._order_each(words, STOP, (MIGRATION_MODE, ""), report, words.nodes)
        self.hands.await_so(words, _silence_problem, report)
        return self._outcomes(words, answers, "running with the migration flag", "stopped")

    def verify(self, step: Step) -> Verified:
        words = KraftParameters.of(step)
        return verified(first_problem(lambda: _silence_problem(self.hands.look(words))), "no controller answers")

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        control = self.hands.look(KraftParameters.of(step)).control
        return Checked(control.has_migration is True, f"/migration is {'' if control.has_migration else 'not '}there")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Start them again with the migration flag, and wait until they lead a quorum.

        Raises:
            RunError: an order failed, or the controllers did not come in time.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        words = KraftParameters.of(step)
        answers = self._order_each(words, START, ("", MIGRATION_MODE), report, words.nodes)
        addresses = words.controller_addresses
        self.hands.await_so(words, lambda now: controllers_problem(now, addresses), report)
        return self._outcomes(words, answers, "stopped", "running with the migration flag")


class WipeActor(_ControllerActor):
    """Nobody outside can see a disk: an item stays UNKNOWN, and the next plan looks whether the log was empty."""

    def check(self, step: Step) -> Checked:
        words = KraftParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, WIPE, CONTROLLER),
                lambda: self._problem(self.hands.look(words)),
            ),
            "no controller answers, and ZooKeeper has no /migration",
        )

    def _problem(self, standing: Standing) -> str | None:
        there = None if standing.control.has_migration is False else "/migration is there, or can't be read"
        return _silence_problem(standing) or there

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Wipe their disks; what came of it nobody sees from outside.

        Raises:
            RunError: an order failed.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        words = KraftParameters.of(step)
        answers = self._order_each(words, WIPE, ("", ""), report, words.nodes)
        why = "a disk can't be seen from outside; the deployer said: {}"
        return [ItemOutcome(controller_item(it), Outcome.UNKNOWN, error=why.format(answers[it])) for it in words.nodes]

    def verify(self, step: Step) -> Verified:
        words = KraftParameters.of(step)
        return verified(first_problem(lambda: self._problem(self.hands.look(words))), "no controller answers")


class FinaliseActor(_ControllerActor):
    def check(self, step: Step) -> Checked:
        words = KraftParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(words, RESTART, CONTROLLER),
                lambda: self._not_ready(words, self.hands.look(words)),
            ),
            "every broker is in KRaft mode, and both stores hold the same",
        )

    def _not_ready(self, words: KraftParameters, standing: Standing) -> str | None:
        """Before the first restart all of it; once the log says state 3 there is only the way on."""
        problem = self._brokers_problem(words, standing)
        if problem is not None or standing.facts.zk_state == POST_MIGRATION:
            return problem
        if standing.phase not in (KRAFT, PHASE_FINALISED) or standing.facts.zk_state != MIGRATION:
            return f"the cluster is in phase {standing.phase!r}, state {standing.facts.zk_state}"
        if not any(each.has_flag is False for each in standing.answering_controllers):
            problem = dual_write_problem(standing, words.controller_addresses)
        return problem or diff_problem(self.cluster)

    def _brokers_problem(self, words: KraftParameters, standing: Standing) -> str | None:
        if (problem := registered_problem(standing)) is not None:
            return problem
        wrong_mode = next(
            filter(None, (broker_problem(standing, number, KRAFT_MODE) for number in standing.brokers)), None
        )
        return wrong_mode or sync_problem(self.cluster, words.broker_addresses)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        words = KraftParameters.of(step)
        standing = self.hands.look(words)
        flags = {each.has_flag for each in standing.answering_controllers}
        is_all = len(standing.answering_controllers) == len(words.controllers)
        if is_all and flags == {False} and standing.facts.zk_state == POST_MIGRATION:
            return StepState.DONE
        return StepState.NOT_DONE if is_all and flags == {True} else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: a broker is not as it has to be, or a controller did not come back; nothing more is restarted.
        """
        words, outcomes = KraftParameters.of(step), list[ItemOutcome]()
        left = list(words.nodes)
        while left:
            standing = self.hands.look(words)
            silent, leader = self._silent(words, standing), standing.facts.leader
            is_active = leader.node_id if leader is not None else None
            number = min(left, key=lambda it: (it not in silent, it == is_active, left.index(it)))
            left.remove(number)
            outcomes.append(self._restart(words, number, standing, report))
            report(outcomes[-1:])
        return outcomes

    def _restart(self, words: KraftParameters, number: int, standing: Standing, report: Report) -> ItemOutcome:
        item, change = controller_item(number), ("with the migration flag", "without it")
        node = standing.controller_at(words.controller_addresses[number])
        if node is not None and node.has_flag is False:
            return ItemOutcome(item, Outcome.UNCHANGED, *change)
        others = [each for each in self._silent(words, standing) if each != number]
        missing = named(others, "controller {} does not answer", "controllers {} do not answer") if others else None
        if node is not None and missing is not None:
            raise RunError(f"{item} is not restarted: {missing}, and the quorum needs most of them: start what is down")
        if (problem := self._brokers_problem(words, standing)) is not None:
            raise RunError(f"{item} is not restarted: {problem}. Nothing more is ordered")
        report.attempt([item])
        try:
            _, answer = self.hands.order(words, CONTROLLER, number, RESTART, (MIGRATION_MODE, FINALISED))
            self.hands.await_so(words, lambda now: self._not_back(words, number, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})

    def _silent(self, words: KraftParameters, standing: Standing) -> list[int]:
        return [number for number, at in words.controller_addresses.items() if standing.controller_at(at) is None]

    def _not_back(self, words: KraftParameters, number: int, now: Standing) -> str | None:
        node = now.controller_at(words.controller_addresses[number])
        if node is None or node.has_flag is not False:
            return f"controller {number} does not answer without the flag yet"
        if now.facts.leader is None or not now.facts.has_log:
            return "no controller leads the quorum"
        return self._brokers_problem(words, now)

    def verify(self, step: Step) -> Verified:
        words = KraftParameters.of(step)
        return verified(first_problem(lambda: self._unfinished(words)), "the migration is finalised")

    def _unfinished(self, words: KraftParameters) -> str | None:
        standing = self.hands.look(words)
        problem = controllers_problem(standing, words.controller_addresses, has_flag=False)
        if problem is None and standing.facts.zk_state != POST_MIGRATION:
            return f"the metadata log says the state {standing.facts.zk_state}, not {POST_MIGRATION}"
        return problem or self._brokers_problem(words, standing)
