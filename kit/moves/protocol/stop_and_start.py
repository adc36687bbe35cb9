"""The actor of the two steps in ``stopped``: it orders stops and starts, and believes what the coordinator shows.

Each order is given after an observation of the group. Orders are not awaited one by one, so that the pause is short:
the step waits once, until the group is empty or all members have joined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.engine.model.performer import (
    ActedRecord,
    Checked,
    ItemOutcome,
    Outcome,
    Report,
    StepState,
    Verified,
    Waiting,
)
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import NotFound, RunError
from kit.moves.group.called_off import MembersWatch
from kit.moves.group.deploy import Deployer, MemberReplacement
from kit.moves.group.group_state import MemberState, counted, named
from kit.moves.group.replacement import SHOWN, had_twice, orders
from kit.moves.protocol.state import ProtocolState, read_protocol_state
from kit.moves.protocol.stopped import START_ALL, StoppedParameters, in_places, place_of, start_order, stop_order
from kit.text.naming import shortened
from kit.text.quantity import quantity

Order = tuple[str, MemberReplacement]
"""An item of the step, and what the deployer is asked for it."""


@dataclass(frozen=True, slots=True)
class _Goal:
    """The members that the group has once the orders are executed; ``most``: the members it may have meanwhile."""

    counts: Mapping[str, int]
    most: Mapping[str, int]


class StoppedActor:
    """``say`` shows a person what to do now. A group that no coordinator knows any more has no members."""

    def __init__(
        self,
        cluster: Cluster,
        deployer: Deployer,
        say: Callable[[str], None] = lambda sentence: None,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        poll_s: float = 0.5,
        read: Callable[[Cluster, str], ProtocolState] = read_protocol_state,
    ) -> None:
        self._cluster, self._deployer, self._say, self._read = cluster, deployer, say, read
        self._clock, self._poll_s = clock, poll_s
        self._begun: set[str] = set()
        self._stopped_at: dict[str, float] = {}

    def check(self, step: Step) -> Checked:
        parameters, state = StoppedParameters.of(step), self._look(step)
        instruction = self._deployer.instruction(parameters.group, *_direction(step))
        if instruction != parameters.instruction:
            return Checked(
                False,
                (f"the plan has the instruction {parameters.instruction!r}, but the profile now has {instruction!r}"),
            )
        before, after = _before_and_after(step)
        counts = _counts(state)
        refusals = [it for _, order in self._orders_ahead(step, state) if (it := self._deployer.refusal(order))]
        if refusals:
            return Checked(False, refusals[0])
        if counts != before and not (step.step_id in self._begun and _fits(counts, _merged(before, after))):
            return Checked(False, f"expected {counted(before)}, found {counted(counts)}")
        if step.kind == START_ALL:
            problem = _lost(parameters, state)
            return Checked(
                problem is None, problem or "the group has no members, and all offsets of the plan are still committed"
            )
        if state is None or (counts == before and not state.is_settled):
            why = "no coordinator knows it" if state is None else state.unsettled
            return Checked(False, f"the group is not settled: {why}")
        return Checked(True, f"found {counted(counts)}")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """Asked of steps that were begun: then some members may be stopped or started already."""
        self._begun.add(step.step_id)
        (before, after), counts = _before_and_after(step), _counts(self._look(step))
        if counts == before:
            return StepState.NOT_DONE
        return StepState.DONE if counts == after else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Order all stops, or all starts, and wait until the group shows their result.

        Raises:
            RunError: the deployer failed, the members did not follow in time, or another operator changed the group.
        """
        parameters = StoppedParameters.of(step)
        self._settle_open(step, report)
        taken = in_places(parameters.items, self._present(step))
        if step.kind == START_ALL:
            asked = _starts(parameters, [item for item in parameters.items if item not in taken])
        else:
            self._stopped_at.setdefault(parameters.group, self._clock.monotonic())
            asked = _stops(parameters, taken)
        done = [ItemOutcome(item, Outcome.UNCHANGED) for item in parameters.items if item not in dict(asked)]
        report(done)
        return [*done, *self._order(step, asked, report)]

    def verify(self, step: Step) -> Verified:
        parameters, state = StoppedParameters.of(step), self._look(step)
        _, after = _before_and_after(step)
        counts, problem = _counts(state), _lost(parameters, state)
        if counts != after:
            return Verified(False, f"expected {counted(after)}, found {counted(counts)}")
        if problem is not None:
            return Verified(False, problem)
        n_offsets = quantity(len(parameters.offsets), "committed offset")
        if step.kind != START_ALL:
            return Verified(True, f"the group has no members; it has all {n_offsets} of the plan")
        assert state is not None
        if not state.is_settled:
            return Verified(False, f"the group is not settled: {state.unsettled}")
        if had_twice(state):
            return Verified(False, "a partition is owned by two members")
        missing = sorted(parameters.topics.keys() - state.subscribed.keys())
        if missing:
            return Verified(False, f"no member subscribes to {', '.join(missing[:SHOWN])} any more")
        shares: dict[str, Json] = {each.member_id: len(each.partitions) for each in state.members}
        evidence: dict[str, Json] = {"shares": shares}
        if parameters.group in self._stopped_at:
            evidence["stopped_ms"] = round(1000 * (self._clock.monotonic() - self._stopped_at[parameters.group]))
        return Verified(True, f"the group has {counted(after)} and all {n_offsets} of the plan", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether the group has no members but those that this step may have left."""
        most, counts = _merged(*_before_and_after(step)), _counts(self._look(step))
        if _fits(counts, most):
            return Checked(True, "the group is as this run left it")
        return Checked(False, f"expected at most {counted(most)}, found {counted(counts)}")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Start a member in each place that this step emptied, or stop the members that it started.

        Raises:
            RunError: as ``act``.
        """
        parameters = StoppedParameters.of(step)
        self._settle_open(step, report)
        present, mine = self._present(step), [each.item for each in acted.written]
        if step.kind == START_ALL:
            if len(present) > len(mine):
                raise RunError(
                    f"group {parameters.group} has {quantity(len(present), 'member')}, and this run started"
                    f" {len(mine)}:"
                    f" {_names(present)}. No member is stopped. Stop these members, then undo the run again"
                )
            asked = _stops(parameters, in_places({item: parameters.items[item] for item in mine}, present))
        else:
            taken = in_places(parameters.items, present)
            asked = _starts(parameters, [item for item in mine if item not in taken], is_back=True)
        done = [ItemOutcome(item, Outcome.UNCHANGED) for item in mine if item not in dict(asked)]
        report(done)
        return [*done, *self._order(step, asked, report, is_back=True)]

    def _order(self, step: Step, asked: Sequence[Order], report: Report, is_back: bool = False) -> list[ItemOutcome]:
        """Give the orders one after the other, then wait until the group shows the result of all of them.

        Raises:
            RunError: see ``act``. The result of each order that was given is then unknown.
        """
        goal, given = _goal(step, is_back), list[tuple[Order, str]]()
        try:
            for item, order in asked:
                self._refuse_others(step, goal)
                stops = order.member if order.from_flavour else ""
                details: dict[str, Json] = {
                    "stops": stops,
                    "of": order.from_flavour,
                    "starts": order.to_flavour,
                    "beside": (),
                }
                report.attempt([item], details)
                given.append(((item, order), ""))
                given[-1] = (given[-1][0], self._deployer.replace(order, self._say))
            if asked:
                self._await(step, goal, report)
        except RunError as error:
            report([ItemOutcome(item, Outcome.UNKNOWN, None, None, str(error)) for (item, _), _ in given])
            raise
        outcomes = [ItemOutcome(item, Outcome.CONFIRMED, *_change(order, said)) for (item, order), said in given]
        report(outcomes)
        return outcomes

    def _await(self, step: Step, goal: _Goal, report: Report) -> None:
        parameters, said = StoppedParameters.of(step), ""
        watch = self._watch(step)
        deadline = self._clock.monotonic() + parameters.step_timeout_s
        while self._clock.monotonic() < deadline:
            members = watch.seen()
            if members is not None:
                self._refuse_beyond(step, goal, members)
                counts = _of(members)
                if counts == goal.counts:
                    return
                lacks = f"the group has {counted(counts)}, not {counted(goal.counts)}"
                if lacks != said:
                    said = lacks
                    self._say(Waiting(f"waiting for up to {deadline - self._clock.monotonic():.0f} s: {said}"))
            report([])
            self._clock.sleep(self._poll_s)
        raise RunError(
            f"after {parameters.step_timeout_s:g} s {said or 'the cluster does not answer'}. The orders stay open"
            " until the"
            " run is resumed or undone; both cancel the orders first"
        )

    def _refuse_others(self, step: Step, goal: _Goal) -> None:
        self._refuse_beyond(step, goal, self._present(step))

    def _refuse_beyond(self, step: Step, goal: _Goal, members: Sequence[MemberState]) -> None:
        """Refuse to continue while the group has members that neither the plan nor this run explains.

        Raises:
            RunError: another operator or tool started members; all members are named.
        """
        if not _fits(_of(members), goal.most):
            group = StoppedParameters.of(step).group
            raise RunError(
                f"group {group} has {counted(_of(members))}, expected at most {counted(goal.most)}: {_names(members)}."
                " Another operator or tool starts members as well: nothing more is ordered. Stop the other deployment,"
                " then resume or undo the run"
            )

    def _orders_ahead(self, step: Step, state: ProtocolState | None) -> list[Order]:
        """Return the orders that this step, and the start after a stop, give to the deployer: known before any
        member stops.
        """
        parameters = StoppedParameters.of(step)
        stops = {} if step.kind == START_ALL or state is None else in_places(parameters.items, state.members)
        return [*_stops(parameters, stops), *_starts(parameters, list(parameters.items))]

    def _settle_open(self, step: Step, report: Report) -> None:
        """Call off each order without a visible result, and wait until the group is quiet.

        Raises:
            RunError: the members still change.
        """
        parameters = StoppedParameters.of(step)
        pending = [order for attempt, order in orders(report.acted) if attempt.is_open]
        for each in pending:
            ordered = MemberReplacement(parameters.group, each["stops"], "", "", each["of"], each["starts"], 0)
            self._deployer.countermand(ordered, self._say)
        if pending:
            self._watch(step).await_quiet(parameters.quiet_s, parameters.step_timeout_s, report)

    def _watch(self, step: Step) -> MembersWatch:
        group = StoppedParameters.of(step).group
        return MembersWatch(group, lambda: self._present(step), self._say, self._clock, self._poll_s)

    def _present(self, step: Step) -> tuple[MemberState, ...]:
        state = self._look(step)
        return () if state is None else state.members

    def _look(self, step: Step) -> ProtocolState | None:
        try:
            return self._read(self._cluster, StoppedParameters.of(step).group)
        except NotFound:
            return None


def _stops(parameters: StoppedParameters, members: Mapping[str, MemberState]) -> list[Order]:
    return [(item, stop_order(parameters, place_of(each), n)) for n, (item, each) in enumerate(members.items(), 1)]


def _starts(parameters: StoppedParameters, items: Sequence[str], is_back: bool = False) -> list[Order]:
    """One member in each of these places, of the other protocol or, back, of the former one."""
    places = [(item, parameters.items[item]) for item in items]
    return [
        (item, start_order(parameters, place, place["protocol"] if is_back else parameters.to_protocol, n))
        for n, (item, place) in enumerate(places, 1)
    ]


def _direction(step: Step) -> tuple[str, str]:
    return ("", StoppedParameters.of(step).to_protocol) if step.kind == START_ALL else ("", "")


def _before_and_after(step: Step) -> tuple[dict[str, int], dict[str, int]]:
    parameters = StoppedParameters.of(step)
    return ({}, parameters.after) if step.kind == START_ALL else (parameters.before, {})


def _goal(step: Step, is_back: bool) -> _Goal:
    before, after = _before_and_after(step)
    return _Goal(before if is_back else after, _merged(before, after))


def _merged(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, int]:
    """One of the two is empty."""
    return {**before, **after}


def _fits(counts: Mapping[str, int], most: Mapping[str, int]) -> bool:
    return all(count <= most.get(protocol, 0) for protocol, count in counts.items())


def _of(members: Sequence[MemberState]) -> dict[str, int]:
    flavours = [each.flavour for each in members]
    return {flavour: flavours.count(flavour) for flavour in sorted(set(flavours))}


def _counts(state: ProtocolState | None) -> dict[str, int]:
    return {} if state is None else _of(state.members)


def _change(order: MemberReplacement, said: str) -> tuple[Json, Json]:
    stops: dict[str, Json] = {"protocol": order.from_flavour, "member": order.member, "host": order.host}
    starts: dict[str, Json] = {"protocol": order.to_flavour, "said": said}
    return (stops, {"said": said}) if order.from_flavour else (None, starts)


def _lost(parameters: StoppedParameters, state: ProtocolState | None) -> str | None:
    """Return which committed offset of the plan is gone or lower; None: none is."""
    kept = {} if state is None else {named(pair): each.kafka for pair, each in state.offsets.items()}
    for name, offset in parameters.offsets.items():
        now = kept.get(name)
        if now is None or now < offset:
            found = "gone" if now is None else f"{now:,}"
            return f"the committed offset of {name} was {offset:,} when the plan was made, and is {found} now"
    return None


def _names(members: Sequence[MemberState]) -> str:
    return shortened((each.member_id for each in members), SHOWN)
