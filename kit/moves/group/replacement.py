"""Replacements of members by members of another flavour: the step that reports them, and what holds of them; pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, WriteAttempt
from kit.engine.model.step import Change, Step
from kit.errors import PlanError, RunError
from kit.moves.group.deploy import MemberReplacement
from kit.moves.group.group_state import (
    CLASSIC,
    CONSUMER,
    KC,
    MEZKCC,
    OZKCC,
    PROTOCOLS,
    GroupState,
    MemberState,
    counted,
    describe_toggle,
    noun,
)
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from kit.text.naming import shortened
from kit.text.quantity import quantity

KIND = "replace"
STEP_TIMEOUT_S = 180.0
"""The longest time of one replacement until it is observed: processes start, sessions end, a group rebalances."""
QUIET_S, QUIET_IN_KAFKA_S = 30.0, 60.0
"""The time in which nothing may change after a replacement was cancelled, until it counts as not coming any more. A
member that was killed is visible until its session ends; Kafka's clients have a session timeout of 45 s by default.
"""
SHOWN = 8
DAY_S = 24 * 3600.0
OFFSETS = "ZooKeeper's offsets"
SIDE_BY_SIDE = ({OZKCC, MEZKCC}, {MEZKCC, KC}, {CLASSIC, CONSUMER})
"""Flavours that never read the same partition: KIP-125's path, and one group of Kafka, have no other mix."""

Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReplaceParameters(StepParameters):
    """From ``before`` to ``after`` (flavour → members), which differ by some of one flavour becoming another.

    ``instruction`` is the deployer's, who is a person or not. ``members`` reports whom to replace, in this order, as
    far as it is known. One replacement may take ``step_timeout_s``; after one was called off, nothing may change for
    ``quiet_s``.
    """

    group: str
    before: Counts
    after: Counts
    instruction: str
    by_person: bool
    members: tuple[str, ...] = ()
    step_timeout_s: float = STEP_TIMEOUT_S
    quiet_s: float = QUIET_S

    @property
    def direction(self) -> tuple[str, str]:
        """Return which flavour becomes which."""
        change = {flavour: self.after.get(flavour, 0) - self.before.get(flavour, 0) for flavour in self.flavours}
        fewer = [flavour for flavour, count in change.items() if count < 0]
        more = [flavour for flavour, count in change.items() if count > 0]
        assert len(fewer) == len(more) == 1, (self.before, self.after)
        return fewer[0], more[0]

    @property
    def flavours(self) -> frozenset[str]:
        return frozenset({*self.before, *self.after})

    @property
    def count(self) -> int:
        """Return how many members are replaced."""
        to_flavour = self.direction[1]
        return self.after.get(to_flavour, 0) - self.before.get(to_flavour, 0)

    @property
    def mode(self) -> str:
        """Return whose assignment must be in force: ZooKeeper's while old members are in the group, Kafka's with
        KCs.
        """
        return KAFKA if self.flavours & {KC, *PROTOCOLS} else ZOOKEEPER

    @property
    def affects(self) -> tuple[str, ...]:
        """The observations of a plan that the step moves. A plan within Kafka observes no ZooKeeper offsets."""
        stores = () if self.flavours <= set(PROTOCOLS) else ("zookeeper_offsets",)
        return ("stage", "members", "kafka_group", "kafka_offsets", *stores)

    def counts_after(self, count: int) -> dict[str, int]:
        """Members by flavour once so many are replaced, those of none left out."""
        from_flavour, to_flavour = self.direction
        counts = {**self.before, from_flavour: self.before[from_flavour] - count}
        counts[to_flavour] = counts.get(to_flavour, 0) + count
        return {flavour: each for flavour, each in counts.items() if each}


def quiet_after(flavours: Collection[str]) -> float:
    """Seconds for which nothing may change after a replacement of members of these flavours was cancelled."""
    return QUIET_S if {KC, *PROTOCOLS}.isdisjoint(flavours) else QUIET_IN_KAFKA_S


def replace_step(step_id: str, parameters: ReplaceParameters) -> Step:
    """The step that replaces members of one kind by members of another.

    Raises:
        PlanError: some of these flavours may not be members beside each other; the counts or times make no sense.
    """
    _refuse_senseless(parameters)
    (from_flavour, to_flavour), count = parameters.direction, parameters.count
    items = [Change(item_of(number, count), from_flavour, to_flavour) for number in range(1, count + 1)]
    if to_flavour == OZKCC:
        items.insert(0, Change(OFFSETS, "may be behind Kafka's where a partition was stalled", "not behind Kafka's"))
    plural = "s" if count > 1 else ""
    whom = ", then ".join(parameters.members) if parameters.members else "the oldest first"
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Replace {count} {noun(from_flavour)}{plural} of {parameters.group} by {noun(to_flavour)}{plural}",
        precondition=f"the group has {counted(parameters.before)} under {STORE_NAMES[parameters.mode]}'s assignment,"
        " and "
        "each partition is owned by one of them",
        verification=f"the group has {counted(parameters.after)}, and each partition is owned by one of them",
        deadline_s=parameters.step_timeout_s,
        changes=tuple(items),
        undo=f"Each {noun(to_flavour)} that this step had started is replaced by one {noun(from_flavour)} again, the"
        " newest first. "
        f"First, each order without a visible result is cancelled, and nothing may change for {parameters.quiet_s:g} "
        "s.",
        needs_person=parameters.instruction if parameters.by_person else None,
        performed_by=f"{parameters.instruction}  (members: {whom})",
        affects=parameters.affects,
        parameters=parameters.to_json(),
    )


def _refuse_senseless(parameters: ReplaceParameters) -> None:
    before, after = parameters.before, parameters.after
    if not any(parameters.flavours <= pair for pair in SIDE_BY_SIDE):
        raise PlanError(
            f"{counted(before)} → {counted(after)}: members of these kinds would read the same partitions. Replace "
            "them by MEZKCCs first"
        )
    if min(1, *before.values(), *after.values()) < 1 or sum(before.values()) != sum(after.values()):
        raise PlanError(f"{counted(before)} → {counted(after)}: the plan must replace each member by exactly one other")
    if not 0 < parameters.quiet_s <= DAY_S or not 0 < parameters.step_timeout_s <= DAY_S:
        raise PlanError(
            f"step_timeout_s is {parameters.step_timeout_s:g} s and quiet_s is {parameters.quiet_s:g} s: each time must"
            " be above 0 s and at most one day"
        )


@dataclass(frozen=True, slots=True)
class Order:
    """One replacement that is due."""

    item: str
    number: int
    from_flavour: str
    to_flavour: str


def off_the_way(step: Step, state: GroupState) -> str | None:
    """Return why the group is not one that this step may find before one of its replacements; None: it is."""
    parameters = ReplaceParameters.of(step)
    before, after = parameters.before, parameters.after
    if not _is_on_the_way(state.counts, parameters):
        where = counted(before) if before == after else f"between {counted(before)} and {counted(after)}"
        return f"expected {where}, found {counted(state.counts)}: {_named(state)}"
    if state.stage in ("unsafe mix", "unknown"):
        return f"the stage of group {state.group_id} is {state.stage!r}"
    if is_within_kafka(step):
        return None  # No store but Kafka's, and no toggle: one assignment is in force.
    effective = state.effective_mode if state.counts else KAFKA if state.mode == KAFKA else ZOOKEEPER
    if effective != parameters.mode:
        return f"{STORE_NAMES[parameters.mode]}'s assignment must be in force, found {effective}"
    if KC in parameters.flavours and state.mode != KAFKA:
        return f"{describe_toggle(state.mode)}, but a MEZKCC beside KCs needs the toggle {KAFKA!r}"
    return None


def _named(state: GroupState) -> str:
    """Return who is there: a person has to see who is too many, or missing."""
    return shortened((f"{noun(member.flavour)} {member.member_id}" for member in state.members), SHOWN)


def members_of(state: GroupState | None) -> tuple[MemberState, ...]:
    return () if state is None else state.members


def missing(state: GroupState | None, gone: str, flavour: str, has_come: bool) -> str | None:
    """Return what an order still lacks, in words; None: nothing."""
    if state is None:
        return "the cluster can't be asked"
    came = f"the new {noun(flavour)} came" if has_come else f"no new {noun(flavour)} came"
    if gone in {each.member_id for each in state.members}:
        return f"{gone} is still a member, and {came}"
    if not has_come:
        return came
    return None if state.is_settled else f"{came}, and the group is not settled: {state.unsettled}"


def chosen(step: Step, state: GroupState, acted: ActedRecord, flavour: str) -> MemberState:
    """Forward those the plan names in its order, back those that this run had started, the newest first.

    One that was restarted has another id: then it is the oldest, or back the youngest; a KC's age isn't known.

    Raises:
        RunError: during an undo: all of that flavour were there before the step.
    """
    parameters = ReplaceParameters.of(step)
    is_back = flavour == parameters.direction[1]
    there = _there_before(acted) if is_back else set()
    candidates = {it.member_id: it for it in state.members if it.flavour == flavour and it.member_id not in there}
    named = [candidates[name] for name in (_started(acted) if is_back else parameters.members) if name in candidates]
    aged = sorted(candidates.values(), key=lambda it: (it.since is None, it.since, it.member_id), reverse=is_back)
    if not aged:
        raise RunError(
            f"group {state.group_id} has no {noun(flavour)} that this run had started: no member is replaced"
        )
    return (named or aged)[0]


def orders(acted: ActedRecord) -> Iterator[tuple[WriteAttempt, Any]]:
    """Return what was asked of the deployer: ``stops`` (a member's id, or nothing), ``starts``, and the members
    ``beside`` it.
    """
    for attempt in acted.attempts:
        if isinstance(attempt.details, Mapping) and "starts" in attempt.details:
            yield attempt, attempt.details


def _started(acted: ActedRecord) -> list[str]:
    """The members that this run saw come in the place of others, the newest first."""
    after: list[Any] = [outcome.after for outcome in ours(acted)]
    return [each["member"] for each in reversed(after) if isinstance(each, Mapping)]


def _there_before(acted: ActedRecord) -> set[str]:
    """The members of the flavour that the step brings which were there before its first order."""
    first = next((order for attempt, order in orders(acted) if not attempt.is_back), None)
    return set() if first is None else set(first["beside"])


def stopped(acted: ActedRecord) -> set[str]:
    """The members that this run ordered to be stopped, without having seen who came for them."""
    return {order["stops"] for attempt, order in orders(acted) if attempt.is_open and order["stops"]}


def ours(acted: ActedRecord) -> list[ItemOutcome]:
    """The replacements that this run made or ordered, in the order of the step."""
    return [outcome for outcome in acted.written if outcome.item != OFFSETS]


def is_within_kafka(step: Step) -> bool:
    """Return whether Kafka alone coordinates the group. Then two deployments at a time hide which of them did what.

    There a member of the other protocol changes the assignment of the whole group. On KIP-125's path, a replacement
    that another operator or tool made counts as made.
    """
    return ReplaceParameters.of(step).flavours <= set(PROTOCOLS)


def made_by_others(step: Step, state: GroupState, number: int) -> list[ItemOutcome]:
    """The outcomes of the items from ``number`` on that are done already, and not by this run."""
    parameters = ReplaceParameters.of(step)
    numbers = range(number, min(n_done(step, state), parameters.count) + 1)
    return [ItemOutcome(item_of(each, parameters.count), Outcome.UNCHANGED, *parameters.direction) for each in numbers]


def describe_of_others(step: Step, first: GroupState, state: GroupState, outcomes: Sequence[ItemOutcome]) -> str:
    """Return which members another operator or tool started; ``first``: the group before the orders with these
    outcomes.
    """
    to_flavour = ReplaceParameters.of(step).direction[1]
    known = {after["member"] for after in (it.after for it in outcomes) if isinstance(after, Mapping)}
    known |= {each.member_id for each in first.members}
    others = [each.member_id for each in state.members if each.flavour == to_flavour and each.member_id not in known]
    return (
        f"group {state.group_id} has {counted(state.counts)}, more {noun(to_flavour)}s than this run ordered. Another"
        f" operator or tool replaces members as well. This run did not start {', '.join(others)}: nothing more is"
        " ordered. Stop the other deployment, then resume or undo the run"
    )


def describe_newcomers(step: Step, flavour: str, member_ids: Sequence[str]) -> str:
    """Return which members came while this run had ordered one."""
    return (
        f"{quantity(len(member_ids), noun(flavour))} joined group {ReplaceParameters.of(step).group}, and this run"
        f" ordered one: {', '.join(member_ids)}. Another operator or tool starts members as well: nothing more is"
        " ordered. Stop the other deployment, then resume or undo the run"
    )


def by_others(acted: ActedRecord) -> int:
    """Replacements that were there already when this run came to them."""
    return sum(it.item != OFFSETS and it.outcome == Outcome.UNCHANGED for it in acted.outcomes)


def replacement_of(step: Step, order: Order, victim: MemberState | None) -> MemberReplacement:
    """``victim`` None: this run had it stopped already, and one only has to be started."""
    group = ReplaceParameters.of(step).group
    who = (victim.member_id, victim.client_id, victim.host or "") if victim else ("", "", "")
    return MemberReplacement(group, *who, order.from_flavour, order.to_flavour, order.number)


def countermanded(step: Step, stops: str, starts: str) -> MemberReplacement:
    """Return what was ordered once, as far as the journal has it."""
    parameters = ReplaceParameters.of(step)
    from_flavour, to_flavour = parameters.direction
    if starts == from_flavour:
        from_flavour, to_flavour = to_flavour, from_flavour
    return MemberReplacement(parameters.group, stops, "", "", from_flavour, to_flavour, 0)


def item_of(number: int, count: int) -> str:
    return f"member {number} of {count}"


def _is_on_the_way(counts: Counts, parameters: ReplaceParameters) -> bool:
    """Return whether the group is as before, as after, or in between; one member may be missing, in the middle of
    its replacement.
    """
    before, after = parameters.before, parameters.after
    from_flavour, to_flavour = parameters.direction
    others = [flavour for flavour in {*counts, *before} if flavour not in (from_flavour, to_flavour)]
    if any(counts.get(flavour, 0) != before.get(flavour, 0) for flavour in others):
        return False
    arrived = counts.get(to_flavour, 0) - before.get(to_flavour, 0)
    left = before.get(from_flavour, 0) - counts.get(from_flavour, 0)
    return 0 <= arrived <= left <= arrived + 1 and left <= before.get(from_flavour, 0) - after.get(from_flavour, 0)


def n_done(step: Step, state: GroupState) -> int:
    """Return how many of the step's newcomers are there."""
    parameters = ReplaceParameters.of(step)
    to_flavour = parameters.direction[1]
    return state.count(to_flavour) - parameters.before.get(to_flavour, 0)


def n_missing(step: Step, state: GroupState) -> int:
    """Members that have left and whose successors have not come."""
    return sum(ReplaceParameters.of(step).before.values()) - sum(state.counts.values())


def had_twice(state: GroupState) -> frozenset[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for member in state.members:
        twice |= seen & member.partitions
        seen |= member.partitions
    return frozenset(twice)
