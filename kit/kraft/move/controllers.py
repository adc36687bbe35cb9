"""Controllers started, stopped and wiped. offramp does not trust the deployer's answer, only what is then seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.engine.model.performer import (
    ActedRecord,
    Checked,
    ItemOutcome,
    Outcome,
    Report,
    StepState,
    Verified,
    WriteAttempt,
)
from kit.engine.model.step import Step
from kit.errors import RunError
from kit.kraft.analyze.phase import MIGRATION, PRE_MIGRATION
from kit.kraft.move.cluster_state import ClusterState, zookeeper_of
from kit.kraft.move.hand_back import forget_migration
from kit.kraft.move.nodes import CONTROLLER, START, STOP, WIPE
from kit.kraft.move.orders import NodeActor, checked, first_problem, verified
from kit.kraft.move.parameters import OrderParameters, StopParameters
from kit.kraft.move.problems import (
    claim_problem,
    controllers_problem,
    copied_problem,
    describe_modes,
    diff_problem,
    dual_write_problem,
    first_checkpoint_problem,
    joined_problem,
    running_problem,
    voters_problem,
)
from kit.kraft.move.steps import MIGRATION_ZNODE, REPAIRS, controller_item
from kit.kraft.move.sync import sync_problem
from kit.text.naming import named


class ControllerActor(NodeActor):
    def _order_each(
        self, parameters: OrderParameters, action: str, modes: tuple[str, str], report: Report, numbers: Sequence[int]
    ) -> dict[int, str]:
        """All at once, so that no controller is alone for long; what the deployer reported of each.

        Raises:
            RunError: a settings file was edited, and nothing was ordered; or orders failed, after all were given; each
                that did is named.
        """
        if not numbers:
            return {}
        if (problem := self.hands.edited_problem(parameters, CONTROLLER, numbers, modes[1])) is not None:
            raise RunError(f"{problem}. No controller was ordered to {action}")
        report.attempt([controller_item(number) for number in numbers], {"action": action})
        with ThreadPoolExecutor(len(numbers)) as together:
            given = {
                number: together.submit(self.hands.order, parameters, CONTROLLER, number, action, modes)
                for number in numbers
            }
        errors = {number: error for number, order in given.items() if (error := order.exception()) is not None}
        odd = [error for error in errors.values() if not isinstance(error, RunError)]
        if odd:
            raise odd[0]
        if errors:
            raise RunError("; ".join(f"{controller_item(number)}: {error}" for number, error in errors.items()))
        return {number: order.result()[1] for number, order in given.items()}

    def _settle_open(self, parameters: OrderParameters, report: Report) -> None:
        """Before an undo: an order that was not seen to come may come into the midst of it. Raises RunError."""
        running = {each.address for each in self.hands.read_state(parameters).live_controllers}
        places = {controller_item(number): at for number, at in parameters.controller_addresses.items()}

        def has_come(attempt: WriteAttempt) -> bool:
            """Return whether the order has its effect, or can have none: an attempt that is no order, or a wipe."""
            action = attempt.details.get("action") if isinstance(attempt.details, Mapping) else None
            is_running = places.get(attempt.item) in running
            seen = {START: is_running, STOP: not is_running, WIPE: True}
            return attempt.item not in places or seen.get(str(action), False)

        self.hands.cancel_open_orders(parameters, report, has_come)

    def flag_of(self, parameters: OrderParameters, attempt: WriteAttempt) -> bool | None:
        """Return the flag of the controller that an attempt is about; None: it does not answer."""
        places = {controller_item(number): at for number, at in parameters.controller_addresses.items()}
        node = self.hands.read_state(parameters).controller_at(places.get(attempt.item, ""))
        return None if node is None else node.has_flag

    def _n_running(self, parameters: OrderParameters) -> int:
        return len(self.hands.read_state(parameters).live_controllers)

    def _by_running(self, parameters: OrderParameters, done: int) -> StepState:
        """Return the state of the step by how many controllers run; ``done``: how many run once it is done."""
        n_running, not_done = self._n_running(parameters), len(parameters.controllers) - done
        if n_running == done:
            return StepState.DONE
        return StepState.NOT_DONE if n_running == not_done else StepState.PARTLY

    def _outcomes(
        self, parameters: OrderParameters, answers: dict[int, str], before: str, after: str
    ) -> list[ItemOutcome]:
        def outcome(number: int) -> ItemOutcome:
            item = controller_item(number)
            if number not in answers:
                return ItemOutcome(item, Outcome.UNCHANGED, before, after)
            return ItemOutcome(item, Outcome.CONFIRMED, before, after, details={"said": answers[number]})

        return [outcome(number) for number in parameters.nodes]


def refuse_unordered_change(parameters: OrderParameters, number: int, before: ClusterState, now: ClusterState) -> None:
    """Raises RunError: while one controller was ordered to be restarted another one got or lost the flag."""
    for other, at in parameters.controller_addresses.items():
        was, node = before.controller_at(at), now.controller_at(at)
        if other != number and was is not None and node is not None and was.has_flag is not node.has_flag:
            flag = "with" if node.has_flag else "without"
            raise RunError(
                f"controller {number} was to be restarted, but controller {other} now runs {flag} the migration "
                "flag, which this run did not order. The run stopped. Find out which host the deployer reaches for "
                "each controller, then resume the run"
            )


class StartActor(ControllerActor):
    def check(self, step: Step) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, START, CONTROLLER),
                lambda: self._not_before(self.hands.read_state(parameters)),
            ),
            "nothing is left over from another attempt",
        )

    def _not_before(self, state: ClusterState) -> str | None:
        """The left-over ``/migration`` that makes controllers delete topics; those of this run answer already."""
        control = state.control
        if control.is_controller_persistent:
            return (
                f"KRaft controller {control.controller_id} holds /controller: the copy has begun (offramp kraft status)"
            )
        if control.checkpoint is not None:
            return (
                f"/migration has the checkpoint {control.checkpoint} of another attempt. To repair it: offramp plan "
                "kraft --repair"
            )
        if control.has_migration and not state.live_controllers:
            return (
                "ZooKeeper has /migration, but no controller answers. If this run started the controllers, find out "
                "why they do not run, or undo the run. Otherwise /migration is left over from another attempt: "
                "offramp plan kraft --repair"
            )
        if control.problems:
            return control.problems[0]
        moved = {number: mode for number, mode in state.modes.items() if mode != ZOOKEEPER_MODE}
        return f"not every broker is in ZooKeeper mode: {describe_modes(moved)}" if moved else None

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = OrderParameters.of(step)
        by_running = self._by_running(parameters, len(parameters.controllers))
        if by_running == StepState.NOT_DONE and self.hands.read_state(parameters).control.has_migration:
            return StepState.PARTLY
        return by_running

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Start those that do not run, and wait until all of them wait for the brokers.

        Raises:
            RunError: an order failed, or the controllers did not come in time.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = OrderParameters.of(step)
        state = self.hands.read_state(parameters)
        running = {each.address for each in state.live_controllers}
        starting = [it for it in parameters.nodes if parameters.controller_addresses[it] not in running]
        answers = self._order_each(parameters, START, ("", MIGRATION_MODE), report, starting)
        if answers:
            report.attempt([MIGRATION_ZNODE])
        self.hands.wait_until(parameters, lambda now: self._waiting_problem(parameters, now), report)
        outcome = Outcome.CONFIRMED if answers else Outcome.UNCHANGED
        done = self._outcomes(parameters, answers, "not running", "running with the migration flag")
        return [*done, ItemOutcome(MIGRATION_ZNODE, outcome, None, "nothing copied yet")]

    def _waiting_problem(self, parameters: OrderParameters, now: ClusterState) -> str | None:
        problem = controllers_problem(now, parameters.controller_addresses)
        if problem is not None:
            return problem
        if now.facts.zk_state != PRE_MIGRATION:
            return (
                f"the migration state in the metadata log is {now.facts.zk_state}, not {PRE_MIGRATION}. Check whether "
                "a controller was started with a disk that was not empty"
            )
        return first_checkpoint_problem(now)

    def verify(self, step: Step) -> Verified:
        parameters = OrderParameters.of(step)
        problem = first_problem(lambda: self._waiting_problem(parameters, self.hands.read_state(parameters)))
        return verified(
            problem, f"{named(parameters.nodes, 'controller {} waits', 'controllers {} wait')} for the brokers"
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(lambda: self._begun_problem(self.hands.read_state(parameters))), "nothing is copied yet"
        )

    def _begun_problem(self, state: ClusterState) -> str | None:
        if state.control.checkpoint is not None or state.control.is_controller_persistent:
            return "the copy has begun already. To return to ZooKeeper, make a plan: offramp plan kraft --to zookeeper"
        moved = {number: mode for number, mode in state.modes.items() if mode != ZOOKEEPER_MODE}
        if not moved:
            return None
        return (
            f"not every broker is in ZooKeeper mode: {describe_modes(moved)}. First undo the run that moved these "
            "brokers, or make one rollback plan: offramp plan kraft --to zookeeper"
        )

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Stopped, ``/migration`` deleted, wiped: as if they had never been there.

        Raises:
            RunError: an order failed, a controller still answers, or ``/migration`` was not deleted.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = OrderParameters.of(step)
        self._settle_open(parameters, report)
        answers = self._order_each(parameters, STOP, (MIGRATION_MODE, ""), report, parameters.nodes)
        self.hands.wait_until(parameters, running_problem, report)
        report.attempt([MIGRATION_ZNODE])
        outcome = forget_migration(zookeeper_of(self.cluster))
        report([outcome])
        if outcome.outcome not in (Outcome.CONFIRMED, Outcome.UNCHANGED):
            raise RunError(f"{MIGRATION_ZNODE}: {outcome.error}; nothing was wiped")
        if (late := running_problem(self.hands.read_state(parameters))) is not None:
            raise RunError(f"{late}, after all were stopped: {_CAME_LATE}. Nothing was wiped; undo the run again")
        self._order_each(parameters, WIPE, ("", ""), report, parameters.nodes)
        if (late := running_problem(self.hands.read_state(parameters))) is not None:
            raise RunError(f"{late}, after all were stopped and wiped: {_CAME_LATE}. Undo the run again")
        return [*self._outcomes(parameters, answers, "running with the migration flag", "stopped"), outcome]


_CAME_LATE = "an order to start a controller was executed late, or another operator or tool started the controller"


class StopActor(ControllerActor):
    def check(self, step: Step) -> Checked:
        parameters = StopParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, STOP, CONTROLLER),
                lambda: self._modes_problem(parameters, self.hands.read_state(parameters)),
            ),
            "no broker is in KRaft mode",
        )

    def _modes_problem(self, parameters: StopParameters, state: ClusterState) -> str | None:
        if (problem := joined_problem(state)) is not None:
            return problem
        if parameters.to_phase in REPAIRS:
            in_kraft = {number: mode for number, mode in state.modes.items() if mode in (KRAFT_MODE, None)}
            return describe_modes(in_kraft) if in_kraft else None
        wanted = (MIGRATION_MODE,) if parameters.has_claim else (ZOOKEEPER_MODE, MIGRATION_MODE)
        wrong = {number: mode for number, mode in state.modes.items() if mode not in wanted}
        return f"not every broker is in {' or '.join(wanted)} mode: {describe_modes(wrong)}" if wrong else None

    def _refuse_stop(self, parameters: StopParameters, was_ordered: bool) -> None:
        """A stop that was ordered before and did not come leaves controllers that continue writing: they are asked
        again.

        Raises:
            RunError: what they hold is not what ZooKeeper holds, or that can't be reported although one leads.
        """
        state = self.hands.read_state(parameters)
        is_partly = was_ordered and len(state.answering_controllers) < len(parameters.controllers)
        if is_partly and state.facts.leader is None:
            return  # No node is left that could report it.
        problem = first_problem(lambda: self._not_yet(parameters, state, is_partly))
        if problem is None or (is_partly and self.hands.read_state(parameters).facts.leader is None):
            return
        raise RunError(f"{problem}. No controller was stopped{' now' if was_ordered else ''}")

    def _not_yet(self, parameters: StopParameters, state: ClusterState, is_partly: bool = False) -> str | None:
        """While one leads. ``is_partly``: some have been stopped already."""
        voters = (
            None if is_partly else voters_problem(state, parameters.controller_addresses, parameters.reports_voters)
        )
        if parameters.to_phase in REPAIRS:
            zk_state = state.facts.zk_state
            if zk_state == MIGRATION:
                return f"the controllers' log has the state {zk_state}, so /migration belongs to them"
            return (copied_problem(state) if parameters.is_aborted else None) or voters
        if not parameters.has_claim or parameters.is_aborted:
            return claim_problem(state, parameters.has_claim) or copied_problem(state) or voters
        problem = None if is_partly else dual_write_problem(state, parameters.controller_addresses)
        reads = self.hands.reads
        problem = problem or sync_problem(self.cluster, state.facts, parameters.broker_addresses, reads=reads)
        return problem or diff_problem(self.cluster, reads)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return self._by_running(StopParameters.of(step), 0)

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Stop all of them at once, and wait until none answers.

        Raises:
            RunError: they may not be stopped yet, an order failed, or one still answers after the time for a node.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = StopParameters.of(step)
        self._refuse_stop(parameters, bool(report.acted.attempts))
        answers = self._order_each(parameters, STOP, (MIGRATION_MODE, ""), report, parameters.nodes)
        self.hands.wait_until(parameters, running_problem, report)
        return self._outcomes(parameters, answers, "running with the migration flag", "stopped")

    def verify(self, step: Step) -> Verified:
        parameters = StopParameters.of(step)
        return verified(
            first_problem(lambda: running_problem(self.hands.read_state(parameters))), "no controller answers"
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        control = self.hands.read_state(StopParameters.of(step)).control
        return Checked(control.has_migration is True, f"/migration is {'' if control.has_migration else 'not '}there")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Start them again with the migration flag, and wait until they lead a quorum.

        Raises:
            RunError: an order failed, or the controllers did not come in time.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = StopParameters.of(step)
        self._settle_open(parameters, report)
        answers = self._order_each(parameters, START, ("", MIGRATION_MODE), report, parameters.nodes)
        addresses = parameters.controller_addresses
        self.hands.wait_until(parameters, lambda now: controllers_problem(now, addresses), report)
        return self._outcomes(parameters, answers, "stopped", "running with the migration flag")


class WipeActor(ControllerActor):
    """A disk can't be seen from outside: an item stays UNKNOWN, and the next plan checks whether the log was empty."""

    def check(self, step: Step) -> Checked:
        parameters = OrderParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, WIPE, CONTROLLER),
                lambda: self._problem(parameters, self.hands.read_state(parameters)),
            ),
            "no controller answers, and ZooKeeper has no /migration",
        )

    def _problem(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        there = None if state.control.has_migration is False else "/migration is there, or can't be read"
        return running_problem(state) or there or self._left_behind(parameters, state)

    def _left_behind(self, parameters: OrderParameters, state: ClusterState) -> str | None:
        """A broker that came into migration mode after the plan was made: it waits for controllers that are gone."""
        if parameters.to_phase in REPAIRS:
            return None  # Brokers are repaired by a plan of their own.
        late = {number: mode for number, mode in state.modes.items() if mode not in (ZOOKEEPER_MODE, None)}
        if not late:
            return None
        return (
            f"{describe_modes(late)}, but the controllers have stopped. An order was executed late, or another "
            "operator or tool restarted a broker. Restart"
            f" {named(late, 'broker')} in {ZOOKEEPER_MODE} mode, then resume the run"
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Wipe their disks; the result can't be seen from outside.

        Raises:
            RunError: an order failed.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = OrderParameters.of(step)
        answers = self._order_each(parameters, WIPE, ("", ""), report, parameters.nodes)
        why = "offramp can't read a controller's disk; the deployer reported: {}"
        return [
            ItemOutcome(controller_item(it), Outcome.UNKNOWN, error=why.format(answers[it])) for it in parameters.nodes
        ]

    def verify(self, step: Step) -> Verified:
        parameters = OrderParameters.of(step)
        return verified(
            first_problem(lambda: self._problem(parameters, self.hands.read_state(parameters))), "no controller answers"
        )
