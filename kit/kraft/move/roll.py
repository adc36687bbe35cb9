"""Brokers restarted in another mode, one at a time, forward or back.

Before each order every broker serves, every ISR is full, and what the way needs holds. One that is down goes first:
nothing but it may be missing then. The broker that holds ``/controller`` goes last. offramp does not trust the
deployer: an order counts once the broker runs in its new mode, is registered so, has caught up, and every ISR is full
again. A broker that changes without an order, or into a mode that no step wants, ends the roll at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

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
from kit.engine.model.values import Json
from kit.errors import RunError
from kit.kraft.analyze.phase import MIGRATION as STATE_MIGRATION, PRE_MIGRATION
from kit.kraft.move.cluster_state import ClusterState, contradictions, live_old_members, zookeeper_of
from kit.kraft.move.hand_back import control_problem, handed_back_problem
from kit.kraft.move.nodes import BROKER, RESTART
from kit.kraft.move.orders import NodeActor, checked, first_problem, verified
from kit.kraft.move.parameters import RollParameters
from kit.kraft.move.problems import (
    broker_problem,
    controllers_problem,
    describe_modes,
    diff_problem,
    dual_write_problem,
)
from kit.kraft.move.steps import broker_item
from kit.kraft.move.sync import sync_problem
from kit.text.naming import listed, named

Modes = tuple[str, str]


class RollActor(NodeActor):
    def check(self, step: Step) -> Checked:
        parameters = RollParameters.of(step)
        return checked(
            first_problem(
                lambda: self.hands.instruction_problem(parameters, RESTART, BROKER),
                lambda: self._way_problem(
                    parameters, self.hands.read_state(parameters), (parameters.from_mode, parameters.to_mode)
                ),
            ),
            _may_go_on(parameters),
        )

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = RollParameters.of(step)
        modes = self.hands.read_state(parameters).modes
        ours = parameters.nodes if acted is None else tuple(_number(it) for it in acted.written)
        our_modes = {modes.get(number) for number in ours}
        if our_modes <= {parameters.to_mode}:
            return StepState.DONE if our_modes else StepState.NOT_DONE
        return StepState.NOT_DONE if our_modes == {parameters.from_mode} else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: an order failed or had no effect, or something forbids the next; nothing more is ordered.
        """
        parameters = RollParameters.of(step)
        return self._roll(parameters, parameters.nodes, (parameters.from_mode, parameters.to_mode), report)

    def verify(self, step: Step) -> Verified:
        parameters = RollParameters.of(step)
        state = self.hands.read_state(parameters)
        problem = first_problem(
            *(lambda number=number: broker_problem(state, number, parameters.to_mode) for number in parameters.nodes),
            lambda: _unexpected_modes(parameters, state, parameters.to_mode, parameters.nodes),
            lambda: sync_problem(self.cluster, state.facts, parameters.broker_addresses, reads=self.hands.reads),
            lambda: dual_write_problem(state, parameters.controller_addresses) if parameters.begins_copy else None,
        )
        return verified(
            problem,
            f"{named(parameters.nodes, 'broker {} runs', 'brokers {} run')} in {parameters.to_mode} mode, and every"
            " ISR is full",
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        parameters = RollParameters.of(step)
        if step.cannot_be_undone is not None:
            return Checked(False, step.cannot_be_undone)
        return checked(first_problem(lambda: self._back_problem(parameters, acted)), "a rollback is possible")

    def _back_problem(self, parameters: RollParameters, acted: ActedRecord) -> str | None:
        state = self.hands.read_state(parameters)
        strayed = _changed_since_start(_first_modes(acted) or {}, _ordered(acted), state)
        return strayed or self._way_problem(parameters, state, (parameters.to_mode, parameters.from_mode))

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Back into the mode before, those that this run moved, the last one first.

        Raises:
            RunError: an order failed or had no effect, or something forbids the next; nothing more is ordered.
            Stopped, LockLost, ApprovalError: the run was asked to stop, or may not write any more.
        """
        parameters = RollParameters.of(step)
        ours = [_number(it) for it in reversed(acted.written)]
        return self._roll(parameters, ours, (parameters.to_mode, parameters.from_mode), report)

    def _roll(
        self, parameters: RollParameters, brokers: Sequence[int], way: Modes, report: Report
    ) -> list[ItemOutcome]:
        self.hands.cancel_open_orders(parameters, report, lambda attempt: self._has_come(parameters, attempt))
        outcomes, left, done = list[ItemOutcome](), list(brokers), list[int]()
        first, ordered = _first_modes(report.acted) or self.hands.read_state(parameters).modes, _ordered(report.acted)
        while left:
            state = self.hands.read_state(parameters)
            modes, holder = state.modes, state.control.controller_id
            number = min(left, key=lambda it: (modes.get(it) is not None, it == holder, left.index(it)))
            left.remove(number)
            _refuse(
                number,
                _changed_since_start(first, {*ordered, *done}, state)
                or _unexpected_modes(parameters, state, way[1], done),
            )
            outcomes.append(self._move(parameters, number, way, state, report))
            report(outcomes[-1:])
            done.append(number)
        if (problem := _unexpected_modes(parameters, self.hands.read_state(parameters), way[1], done)) is not None:
            raise RunError(problem)
        return outcomes

    def _has_come(self, parameters: RollParameters, attempt: WriteAttempt) -> bool:
        """Return whether the broker runs well in the mode that it was ordered to."""
        mode = attempt.details.get("in") if isinstance(attempt.details, Mapping) else None
        return (
            mode is not None and broker_problem(self.hands.read_state(parameters), _number(attempt), str(mode)) is None
        )

    def _move(
        self, parameters: RollParameters, number: int, way: Modes, state: ClusterState, report: Report
    ) -> ItemOutcome:
        item, change = broker_item(number), (f"{way[0]} mode", f"{way[1]} mode")
        if state.modes.get(number) is None:
            state = self.hands.wait_until(parameters, lambda now: _left_behind(now, number), report)
        if state.modes.get(number) == way[1]:
            self.hands.wait_until(parameters, lambda now: self._not_back(parameters, number, way, state, now), report)
            return ItemOutcome(item, Outcome.UNCHANGED, *change)
        if way == (MIGRATION_MODE, ZOOKEEPER_MODE) and not _is_before_copy(parameters):
            state = self.hands.wait_until(parameters, lambda now: handed_back_problem(self, parameters, now), report)
        self._refuse_order(parameters, number, way, state)
        modes: dict[str, Json] = {str(each): mode for each, mode in state.modes.items()}
        report.attempt([item], {"restarts": number, "in": way[1], "modes": modes})
        try:
            _, answer = self.hands.order(parameters, BROKER, number, RESTART, way)
            self.hands.wait_until(parameters, lambda now: self._not_back(parameters, number, way, state, now), report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, *change, str(error))])
            raise
        return ItemOutcome(item, Outcome.CONFIRMED, *change, details={"said": answer})

    def _not_back(
        self, parameters: RollParameters, number: int, way: Modes, before: ClusterState, now: ClusterState
    ) -> str | None:
        """Raises:
        RunError: another broker has changed since ``before``, or this one is in a mode that no step wants.
        """
        if (problem := _unordered_change(number, way, before, now)) is not None:
            raise RunError(problem)
        problem = broker_problem(now, number, way[1])
        if problem is not None:
            return f"{problem}{_describe_restarted(number, way, before, now)}"
        return sync_problem(self.cluster, now.facts, parameters.broker_addresses, reads=self.hands.reads)

    def _refuse_order(self, parameters: RollParameters, number: int, way: Modes, state: ClusterState) -> None:
        """Raises:
        RunError: another broker is not well, or the way is closed; nothing was ordered.
        """
        is_down = state.modes.get(number) is None  # Ordered before, or crashed: to start it is what heals.
        down, reads = number if is_down else None, self.hands.reads
        problem = first_problem(
            lambda: self.hands.edited_problem(parameters, BROKER, [number], way[1]),
            lambda: self._way_problem(parameters, state, way),
            lambda: sync_problem(self.cluster, state.facts, parameters.broker_addresses, down, reads),
            lambda: diff_problem(self.cluster, reads) if way == (MIGRATION_MODE, KRAFT_MODE) and not is_down else None,
        )
        _refuse(number, problem)

    def _way_problem(self, parameters: RollParameters, state: ClusterState, way: Modes) -> str | None:
        """Return what is wrong for the whole way, whichever broker is next. Raises what can't be read."""
        if (problem := _unexpected_modes(parameters, state, way[1])) is not None:
            return problem
        silent = [number for number, mode in state.modes.items() if mode is None and number not in parameters.nodes]
        if silent:
            return named(silent, "broker {} does not answer", "brokers {} do not answer")
        if way == (MIGRATION_MODE, ZOOKEEPER_MODE) and not _is_before_copy(parameters):
            return control_problem(state)
        alarms = [each.sentence for each in contradictions(self.cluster, state)]
        if alarms:
            return alarms[0]
        if ZOOKEEPER_MODE in way:
            return self._before_copy_problem(parameters, state)
        if way == (MIGRATION_MODE, KRAFT_MODE):
            live = [each for each in live_old_members(zookeeper_of(self.cluster)) if each not in parameters.left_behind]
            if live:
                groups = named(live, "group {} has", "groups {} have")
                return f"{groups} live members under /consumers, which would find no broker in KRaft mode"
        return dual_write_problem(state, parameters.controller_addresses)

    def _before_copy_problem(self, parameters: RollParameters, state: ClusterState) -> str | None:
        """The controllers wait; once the last broker was ordered, the copy may have begun."""
        problem = controllers_problem(state, parameters.controller_addresses)
        zk_state, checkpoint = state.facts.zk_state, state.control.checkpoint
        if problem is not None:
            return problem
        if zk_state == PRE_MIGRATION and checkpoint is None and state.control.has_migration:
            return None
        if parameters.begins_copy and zk_state == STATE_MIGRATION:
            return None
        return (
            f"the migration state in the metadata log is {zk_state}, and /migration has the checkpoint {checkpoint}, "
            "so the copy has begun"
        )


def _refuse(number: int, problem: str | None) -> None:
    """Raises RunError: there is a problem."""
    if problem is not None:
        raise RunError(f"{broker_item(number)} is not restarted: {problem}. The run stopped")


def _unexpected_modes(
    parameters: RollParameters, state: ClusterState, goal: str, done: Collection[int] = ()
) -> str | None:
    """Brokers in a mode in which none should be now, whoever brought them there; ``done``: those moved to ``goal``."""
    wanted = {it: (goal,) if it in done else _allowed(parameters, it) for it in state.modes}
    strange = {it: mode for it, mode in state.modes.items() if mode is not None and mode not in wanted[it]}
    if not strange:
        return None
    should = (f"broker {it} in {' or '.join(wanted[it])} mode" for it in strange)
    return (
        f"{describe_modes(strange)}, which this step does not expect. Another operator or tool restarted a broker, "
        f"or an order was executed late. Start {listed(should)}, then resume the run"
    )


def _allowed(parameters: RollParameters, number: int) -> tuple[str, ...]:
    """Return the modes that a broker may have. Of the brokers that a step does not move, only the last one before the
    copy has still to go.
    """
    is_first_part = parameters.from_mode == ZOOKEEPER_MODE and not parameters.begins_copy
    is_to_move = number in parameters.nodes or is_first_part
    return (parameters.from_mode, parameters.to_mode) if is_to_move else (parameters.to_mode,)


def _unordered_change(number: int, way: Modes, before: ClusterState, now: ClusterState) -> str | None:
    """Return a change that this run did not order, as a sentence: another broker changed, or this one is in a third
    mode.
    """
    modes = {each: mode for each, mode in now.modes.items() if mode is not None}
    was = before.modes
    others = {it: mode for it, mode in modes.items() if it != number and was.get(it) not in (mode, None)}
    if others:
        changed = (f"broker {it} from {was[it]} to {mode} mode" for it, mode in others.items())
        back = (f"broker {it} in {was[it]} mode" for it in others)
        return (
            f"broker {number} was to go to {way[1]} mode, but another broker changed, which this run did not order: "
            f"{listed(changed)}. The run stopped. Find out which host the deployer reaches for each broker, restart "
            f"{listed(back)}, then resume the run"
        )
    if modes.get(number) in (None, *way):
        return None
    return (
        f"broker {number} was to go from {way[0]} to {way[1]} mode, but runs in {modes[number]} mode. The run "
        "stopped. Find out with which settings the deployer starts the broker, then resume the run"
    )


def _describe_restarted(number: int, way: Modes, before: ClusterState, now: ClusterState) -> str:
    """Another broker that began again in its mode while this one did not change: the deployer may have taken it."""
    if now.modes.get(number) != way[0]:
        return ""
    began = {each.node_id: each.incarnation_id for each in before.facts.registered_brokers}
    anew = sorted(
        each.node_id
        for each in now.facts.registered_brokers
        if each.node_id != number and began.get(each.node_id, each.incarnation_id) != each.incarnation_id
    )
    return (
        (f", and {named(anew, 'broker {} was', 'brokers {} were')} restarted, which this run did not order")
        if anew
        else ""
    )


def _first_modes(acted: ActedRecord) -> Mapping[int, str] | None:
    """Return the mode of each broker that answered at this run's first order; None: it has ordered nothing yet."""
    for attempt in acted.attempts:
        modes = attempt.details.get("modes") if isinstance(attempt.details, Mapping) else None
        if isinstance(modes, Mapping):
            return {int(number): str(mode) for number, mode in modes.items() if mode is not None}
    return None


def _changed_since_start(first: Mapping[int, str | None], ordered: Collection[int], state: ClusterState) -> str | None:
    """Brokers that this run never ordered, and that are in another mode than at its first order: whoever did that."""
    strayed = {
        number: mode
        for number, mode in state.modes.items()
        if mode is not None and number not in ordered and first.get(number) not in (mode, None)
    }
    if not strayed:
        return None
    back = (f"broker {number} in {first[number]} mode" for number in strayed)
    return (
        f"{describe_modes(strayed)}, which this run did not order. The deployer restarted the wrong broker, or "
        f"another operator or tool restarted it. Start {listed(back)}, then resume the run; or make a new plan from "
        "the cluster's present phase"
    )


def _may_go_on(parameters: RollParameters) -> str:
    brokers = named(sorted(parameters.broker_addresses), "broker {} is", "brokers {} are")
    return f"{brokers} in {parameters.from_mode} or {parameters.to_mode} mode, and may continue"


def _is_before_copy(parameters: RollParameters) -> bool:
    """Return whether a roll forward is undone before the copy: the plan back from dual write has its own roll to
    ZooKeeper mode.
    """
    return parameters.from_mode == ZOOKEEPER_MODE


def _left_behind(state: ClusterState, number: int) -> str | None:
    """A broker that was killed leaves its znode for as long as its session: started before that, it ends at once."""
    if state.modes.get(number) is not None:
        return None
    return (
        f"/brokers/ids/{number} still exists: the broker's ZooKeeper session has not ended"
        if number in state.control.brokers
        else None
    )


def _number(of: ItemOutcome | WriteAttempt) -> int:
    return int(of.item.rpartition(" ")[2])


def _ordered(acted: ActedRecord) -> set[int]:
    return {_number(it) for it in acted.attempts}
