"""Replacing members of one flavour by members of another, one after the other, through a deployer.

Before each replacement, forward or back, the group is looked at: its members lie between before and after, nobody else
is there, and the assignment that the step needs is in force. Nobody is started in the place of nobody, unless the
journal shows that this run had somebody stopped. A replacement that was ordered and of which nobody knows what came is
called off, and the group has to be quiet for a while, before anything else is ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kit.cluster import Cluster
from kit.errors import AuthenticationFailed, ConnectError, PlanError, RunError
from kit.migrate.clock import Clock
from kit.migrate.deploy import Deployer, Swap
from kit.migrate.performer import ActedRecord, Attempt, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.raised_offsets import raise_zookeeper_offsets
from kit.migrate.standing import KC, MEZKCC, OZKCC, MemberStanding, Standing, counted, look, told
from kit.migrate.step import Change, Step
from kit.migrate.toggle import NAMES
from kit.migrate.values import Json
from kit.model import KAFKA, ZOOKEEPER

KIND = "replace"
EACH_S = 180.0
"""How long one replacement may take until it is observed: processes start, sessions end, a group rebalances."""
QUIET_S = 30.0
"""How long nothing may change after a replacement was called off, until it counts as not coming any more."""
SHOWN = 8
DAY_S = 24 * 3600.0
OFFSETS = "ZooKeeper's offsets"
SIDE_BY_SIDE = ({OZKCC, MEZKCC}, {MEZKCC, KC})
"""Flavours that never read the same partition: KIP-125's path has no other mix."""

Counts = dict[str, int]


def replace_step(
    step_id: str,
    group_id: str,
    before: Mapping[str, int],
    after: Mapping[str, int],
    instruction: str,
    by_person: bool,
    members: Sequence[str] = (),
    each_s: float = EACH_S,
    quiet_s: float = QUIET_S,
) -> Step:
    """From ``before`` to ``after`` (flavour → members), which differ by some of one flavour becoming another.

    ``instruction`` is the deployer's; ``members`` says whom to replace, in this order, as far as it is known.

    Raises:
        PlanError: some of these flavours may not be members beside each other; the counts or times make no sense.
    """
    if not any({*before, *after} <= pair for pair in SIDE_BY_SIDE):
        raise PlanError(f"{counted(before)} → {counted(after)}: they would read what the others read")
    if min(0, *before.values(), *after.values()) < 0 or sum(before.values()) != sum(after.values()):
        raise PlanError(f"{dict(before)} → {dict(after)}: each member is replaced by one other")
    if not 0 < quiet_s <= DAY_S or not 0 < each_s <= DAY_S:
        raise PlanError(f"each replacement may take {each_s} s and has to be quiet for {quiet_s} s: both up to a day")
    from_flavour, to_flavour = _direction(before, after)
    count = after.get(to_flavour, 0) - before.get(to_flavour, 0)
    items = [Change(_item(number, count), from_flavour, to_flavour) for number in range(1, count + 1)]
    if to_flavour == OZKCC:
        items.insert(0, Change(OFFSETS, "may be behind Kafka's where a partition stood still", "not behind Kafka's"))
    plural = "s" if count > 1 else ""
    whom = ", then ".join(members) if members else "the oldest first"
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Replace {count} {from_flavour}{plural} of {group_id} by {to_flavour}{plural}",
        precondition=f"the group has {counted(before)} under {NAMES[needed_mode(before, after)]}'s assignment, and "
        "each partition is owned by one of them",
        verification=f"the group has {counted(after)}, and each partition is owned by one of them",
        deadline_s=each_s,
        changes=tuple(items),
        undo=f"Each {to_flavour} that this step had started is replaced by one {from_flavour} again, the newest first. "
        f"What was ordered and not seen is called off, and nothing may change for {quiet_s:g} s, first.",
        needs_person=instruction if by_person else None,
        performed_by=f"{instruction}  (whom: {whom})",
        affects=("stage", "members", "kafka_group", "kafka_offsets", "zookeeper_offsets"),
        parameters={
            "group": group_id,
            "before": dict(before),
            "after": dict(after),
            "instruction": instruction,
            "by_person": by_person,
            "members": tuple(members),
            "each_s": each_s,
            "quiet_s": quiet_s,
        },
    )


def replace_step_of(step_id: str, parameters: Mapping[str, Json]) -> Step:
    """The step that these parameters say, as :func:`replace_step` made it."""
    words: Any = parameters
    names = ("group", "before", "after", "instruction", "by_person", "members", "each_s", "quiet_s")
    return replace_step(step_id, *(words[name] for name in names))


def needed_mode(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Whose assignment must be in force: ZooKeeper's while old members are in the group, Kafka's with KCs."""
    return KAFKA if KC in {**before, **after} else ZOOKEEPER


@dataclass(frozen=True, slots=True)
class _Order:
    """One replacement that is due."""

    item: str
    number: int
    from_flavour: str
    to_flavour: str


class ReplaceActor:
    """``say`` tells a person what to do now; a replacement counts once ZooKeeper and the coordinator show it."""

    def __init__(
        self,
        cluster: Cluster,
        deployer: Deployer,
        say: Callable[[str], None] = lambda sentence: None,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        poll_s: float = 0.5,
    ) -> None:
        self._cluster = cluster
        self._deployer = deployer
        self._say = say
        self._clock = clock
        self._poll_s = poll_s
        self._begun: set[str] = set()

    def check(self, step: Step) -> Checked:
        found = self._look(step)
        before, is_resumed = _counts(step, "before"), step.step_id in self._begun
        instruction = self._deployer.instruction(str(step.parameters["group"]), *_direction_of(step))
        if instruction != step.parameters["instruction"]:
            return Checked(False, f"the plan says {step.parameters['instruction']!r}, the profile now {instruction!r}")
        if found.counts != before and not is_resumed:
            return Checked(False, f"expected {counted(before)}, found {counted(found.counts)}")
        problem = _off_the_way(step, found)
        if problem is not None:
            return Checked(False, problem)
        if found.counts == before and not found.is_settled:
            return Checked(False, f"the group is not settled: {found.unsettled}")
        return Checked(True, f"found {counted(found.counts)}; each of {len(found.partitions)} partitions is owned")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """Asked of steps that were begun: one may then be stopped already whose successor isn't there yet."""
        self._begun.add(step.step_id)
        counts = self._look(step).counts
        if acted is not None and not _ours(acted):
            return StepState.NOT_DONE
        if counts == _counts(step, "after"):
            return StepState.DONE
        others = 0 if acted is None else _by_others(acted)
        return StepState.NOT_DONE if counts == _after_swaps(step, others) else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: a replacement failed, or the group is not as the step needs it; nothing more is ordered.
        """
        outcomes = []
        from_flavour, to_flavour = _direction_of(step)
        self._settle_open(step, report)
        if to_flavour == OZKCC:
            report.attempt([OFFSETS])
            outcomes.append(self._raise_offsets(step))
            report(outcomes)
            if outcomes[0].outcome == Outcome.REFUSED:
                return outcomes  # An old consumer would read again what the group has committed.
        count = _n_swaps(step)
        for number in range(1, count + 1):
            item = _item(number, count)
            if _n_done(step, self._on_the_way(step)) >= number:
                outcome = ItemOutcome(item, Outcome.UNCHANGED, from_flavour, to_flavour)
            else:
                outcome = self._replace(step, _Order(item, number, from_flavour, to_flavour), report)
            report([outcome])
            outcomes.append(outcome)
            if outcome.outcome == Outcome.REFUSED:
                break
        return outcomes

    def verify(self, step: Step) -> Verified:
        found, after = self._look(step), _counts(step, "after")
        if found.counts != after:
            return Verified(False, f"expected {counted(after)}, found {counted(found.counts)}")
        if not found.is_settled:
            return Verified(False, f"the group is not settled: {found.unsettled}")
        twice = _had_twice(found)
        if twice:
            return Verified(False, f"{told(twice)} are owned by two members")
        shares: dict[str, Json] = {member.member_id: len(member.partitions) for member in found.members}
        return Verified(
            True, f"the group has {counted(after)}; each partition is owned by one of them", {"shares": shares}
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Whether the group is still somewhere between before and after, as this run left it."""
        problem = _off_the_way(step, self._look(step))
        return Checked(problem is None, problem or "the group is as this run left it")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Raises:
        RunError: a replacement failed, or somebody else changed the group; nothing more is ordered.
        """
        outcomes = [
            ItemOutcome(OFFSETS, Outcome.UNCHANGED, None, "not lowered") for it in acted.written if it.item == OFFSETS
        ]
        from_flavour, to_flavour = _direction_of(step)
        self._settle_open(step, report)
        for number, written in enumerate(reversed(_ours(acted)), start=1):
            found = self._on_the_way(step)
            if _n_done(step, found) <= _by_others(acted) and not _n_missing(step, found):
                outcome = ItemOutcome(written.item, Outcome.UNCHANGED, from_flavour, from_flavour)
            else:
                outcome = self._replace(step, _Order(written.item, number, to_flavour, from_flavour), report)
            report([outcome])
            outcomes.append(outcome)
            if outcome.outcome == Outcome.REFUSED:
                raise RunError(f"{outcome.item}: {outcome.error}")
        return outcomes

    def _replace(self, step: Step, order: _Order, report: Report) -> ItemOutcome:
        """One replacement, ordered and awaited; the last look at the group is just before the order.

        Raises:
            RunError: the deployer refused it or failed, or nothing came of it in time; that was reported as UNKNOWN.
        """
        raised = self._raised_for(step, order, report)
        if raised is not None and raised.outcome == Outcome.REFUSED:
            return ItemOutcome(order.item, Outcome.REFUSED, order.from_flavour, None, f"{OFFSETS}: {raised.error}")
        found = self._on_the_way(step)
        swap = _swap(step, order, self._victim(step, found, report.acted, order.from_flavour))
        before: dict[str, Json] = {"flavour": order.from_flavour, "member": swap.member, "host": swap.host}
        beside = tuple(each.member_id for each in found.members if each.flavour == order.to_flavour)
        report.attempt([order.item], {"stops": swap.member, "starts": order.to_flavour, "beside": beside})
        try:
            said = self._deployer.replace(swap, self._say)
            arrived = self._await(step, swap.member, found, order.to_flavour, report)
        except RunError as error:
            report([ItemOutcome(order.item, Outcome.UNKNOWN, before, None, str(error))])
            raise
        after: dict[str, Json] = {"flavour": order.to_flavour, "member": arrived, "said": said}
        if raised is not None:
            after["offsets_raised"] = raised.after
        return ItemOutcome(order.item, Outcome.CONFIRMED, before, after)

    def _raised_for(self, step: Step, order: _Order, report: Report) -> ItemOutcome | None:
        if order.to_flavour != OZKCC:
            return None
        report.attempt([order.item], {"raises": OFFSETS})
        return self._raise_offsets(step)

    def _await(self, step: Step, gone: str, before: Standing, flavour: str, report: Report) -> str:
        """The new member's id, once the old one is gone and every partition has a member again.

        Raises:
            RunError: that did not come in time.
        """
        here = {each.member_id for each in before.members if each.flavour == flavour}
        each_s = _number(step, "each_s")
        deadline, told = self._clock.monotonic() + each_s, ""
        while self._clock.monotonic() < deadline:
            found = self._seen(step)
            new = [it.member_id for it in _members(found) if it.flavour == flavour and it.member_id not in here]
            missing = _missing(found, gone, flavour, bool(new))
            if missing is None:
                return new[0]
            if missing != told:
                told = missing
                self._say(f"waiting for up to {deadline - self._clock.monotonic():.0f} s: {told}")
            report([])
            self._clock.sleep(self._poll_s)
        raise RunError(
            f"in {each_s:g} s {told}. The order stays open until the run is resumed or undone, which calls it off first"
        )

    def _seen(self, step: Step) -> Standing | None:
        """None: the cluster can't be asked now; who waits goes on."""
        try:
            return self._look(step)
        except AuthenticationFailed:
            raise
        except ConnectError:
            return None

    def _settle_open(self, step: Step, report: Report) -> None:
        """Call off what was ordered and not seen, and wait until nothing has changed for a while.

        Raises:
            RunError: the group doesn't come to rest: somebody may still be at it.
        """
        pending = [order for attempt, order in _orders(report.acted) if attempt.is_open]
        for order in pending:
            self._deployer.countermand(_countermanded(step, order["stops"], order["starts"]), self._say)
        if pending:
            self._await_quiet(step, report)

    def _await_quiet(self, step: Step, report: Report) -> None:
        quiet_s, each_s = _number(step, "quiet_s"), _number(step, "each_s")
        self._say(f"waiting until nothing has changed in group {step.parameters['group']} for {quiet_s:g} s")
        began = since = self._clock.monotonic()
        seen = self._look(step).members
        while self._clock.monotonic() - since < quiet_s:
            if self._clock.monotonic() - began > quiet_s + each_s:
                raise RunError(
                    f"a replacement was called off, and its group has not been quiet for {quiet_s:g} s since: somebody"
                    " may still be at it. See that nobody is, and go on or undo again"
                )
            report([])
            self._clock.sleep(self._poll_s)
            found = self._seen(step)
            if found is None or _who(found.members) != _who(seen):
                seen, since = seen if found is None else found.members, self._clock.monotonic()

    def _on_the_way(self, step: Step) -> Standing:
        """Raises:
        RunError: the group is not as this step may find it.
        """
        found = self._look(step)
        problem = _off_the_way(step, found)
        if problem is not None:
            raise RunError(f"{problem}: nothing more is ordered")
        return found

    def _victim(self, step: Step, found: Standing, acted: ActedRecord, flavour: str) -> MemberStanding | None:
        """Whom to replace; None: this run had one stopped, and its successor is missing.

        Raises:
            RunError: a member is missing that this run did not have stopped.
        """
        if not _n_missing(step, found):
            return _chosen(step, found, acted, flavour)
        stopped = _stopped(acted)
        if not stopped or stopped & {member.member_id for member in found.members}:
            raise RunError(
                f"group {found.group_id} has {counted(found.counts)}: a member is missing that this run did not have"
                " stopped. Nobody is started in its place; see what became of it"
            )
        return None

    def _raise_offsets(self, step: Step) -> ItemOutcome:
        """An old consumer reads ZooKeeper's offsets alone: none may be behind what the group committed to Kafka."""
        raised, refused = raise_zookeeper_offsets(self._cluster, self._look(step))
        words: Json = {pair: list(change) for pair, change in raised.items()}
        if refused:
            return ItemOutcome(OFFSETS, Outcome.REFUSED, None, words, "; ".join(refused))
        return ItemOutcome(OFFSETS, Outcome.CONFIRMED if raised else Outcome.UNCHANGED, None, words)

    def _look(self, step: Step) -> Standing:
        if self._cluster.zookeeper is None:
            raise ConnectError(f"cluster {self._cluster.name!r} has no zookeeper_connect")
        return look(self._cluster, str(step.parameters["group"]))


def _off_the_way(step: Step, found: Standing) -> str | None:
    """Why the group is not one that this step may find before one of its replacements; None: it is."""
    before, after = _counts(step, "before"), _counts(step, "after")
    mode = needed_mode(before, after)
    if not _is_on_the_way(found.counts, before, after):
        where = counted(before) if before == after else f"between {counted(before)} and {counted(after)}"
        return f"expected {where}, found {counted(found.counts)}: {_named(found)}"
    if found.stage in ("unsafe mix", "unknown"):
        return f"the stage of group {found.group_id} is {found.stage!r}"
    effective = found.effective_mode if found.counts else KAFKA if found.mode == KAFKA else ZOOKEEPER
    if effective != mode:
        return f"{NAMES[mode]}'s assignment must be in force, found {effective}"
    if KC in {**before, **after} and found.mode != KAFKA:
        return f"the toggle holds {found.mode!r}, not {KAFKA!r}: a MEZKCC would read what the KCs read"
    return None


def _named(found: Standing) -> str:
    """Who is there: a person has to see who is too many, or missing."""
    names = [f"{member.flavour} {member.member_id}" for member in found.members]
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def _members(found: Standing | None) -> tuple[MemberStanding, ...]:
    return () if found is None else found.members


def _missing(found: Standing | None, gone: str, flavour: str, has_come: bool) -> str | None:
    """What an order lacks still, in words; None: nothing."""
    if found is None:
        return "the cluster can't be asked"
    came = f"the new {flavour} came" if has_come else f"no new {flavour} came"
    if gone in {each.member_id for each in found.members}:
        return f"{gone} is still a member, and {came}"
    if not has_come:
        return came
    return None if found.is_settled else f"{came}, and the group is not settled: {found.unsettled}"


def _chosen(step: Step, found: Standing, acted: ActedRecord, flavour: str) -> MemberStanding:
    """Forward those the plan names in its order, back those that this run had started, the newest first.

    One that was restarted has another id: then it is the oldest, or back the youngest; a KC's age isn't known.

    Raises:
        RunError: on the way back: all of that flavour were there before the step.
    """
    is_back = flavour == _direction_of(step)[1]
    there = _there_before(acted) if is_back else set()
    candidates = {it.member_id: it for it in found.members if it.flavour == flavour and it.member_id not in there}
    words: Any = step.parameters["members"]
    named = [candidates[name] for name in (_started(acted) if is_back else words) if name in candidates]
    aged = sorted(candidates.values(), key=lambda it: (it.since is None, it.since, it.member_id), reverse=is_back)
    if not aged:
        raise RunError(f"group {found.group_id} has no {flavour} that this run had started: nobody is replaced")
    return (named or aged)[0]


def _orders(acted: ActedRecord) -> Iterator[tuple[Attempt, Any]]:
    """What was asked of the deployer: ``stops`` (a member's id, or nothing), ``starts``, ``beside`` whom."""
    for attempt in acted.attempts:
        if isinstance(attempt.details, Mapping) and "starts" in attempt.details:
            yield attempt, attempt.details


def _started(acted: ActedRecord) -> list[str]:
    """The members that this run saw come in the place of others, the newest first."""
    after: list[Any] = [outcome.after for outcome in _ours(acted)]
    return [each["member"] for each in reversed(after) if isinstance(each, Mapping)]


def _there_before(acted: ActedRecord) -> set[str]:
    """The members of the flavour that the step brings which were there before its first order."""
    first = next((order for attempt, order in _orders(acted) if not attempt.is_back), None)
    return set() if first is None else set(first["beside"])


def _stopped(acted: ActedRecord) -> set[str]:
    """The members that this run ordered to be stopped, without having seen who came for them."""
    return {order["stops"] for attempt, order in _orders(acted) if attempt.is_open and order["stops"]}


def _ours(acted: ActedRecord) -> list[ItemOutcome]:
    """The replacements that this run made or ordered, in the order of the step."""
    return [outcome for outcome in acted.written if outcome.item != OFFSETS]


def _by_others(acted: ActedRecord) -> int:
    """Replacements that were there already when this run came to them."""
    return sum(it.item != OFFSETS and it.outcome == Outcome.UNCHANGED for it in acted.outcomes)


def _swap(step: Step, order: _Order, victim: MemberStanding | None) -> Swap:
    """``victim`` None: this run had it stopped already, and one only has to be started."""
    group = str(step.parameters["group"])
    who = (victim.member_id, victim.client_id, victim.host or "") if victim else ("", "", "")
    return Swap(group, *who, order.from_flavour, order.to_flavour, order.number)


def _countermanded(step: Step, stops: str, starts: str) -> Swap:
    """What was ordered once, as far as the journal has it."""
    from_flavour, to_flavour = _direction_of(step)
    if starts == from_flavour:
        from_flavour, to_flavour = to_flavour, from_flavour
    return Swap(str(step.parameters["group"]), stops, "", "", from_flavour, to_flavour, 0)


def _item(number: int, count: int) -> str:
    return f"member {number} of {count}"


def _direction(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[str, str]:
    """Which flavour becomes which."""
    change = {flavour: after.get(flavour, 0) - before.get(flavour, 0) for flavour in {**before, **after}}
    lost = [flavour for flavour, count in change.items() if count < 0]
    won = [flavour for flavour, count in change.items() if count > 0]
    assert len(lost) == len(won) == 1, (before, after)
    return lost[0], won[0]


def _direction_of(step: Step) -> tuple[str, str]:
    return _direction(_counts(step, "before"), _counts(step, "after"))


def _is_on_the_way(counts: Counts, before: Counts, after: Counts) -> bool:
    """As before, as after, or in between; one may be missing, in the middle of its replacement."""
    from_flavour, to_flavour = _direction(before, after)
    others = [flavour for flavour in {*counts, *before} if flavour not in (from_flavour, to_flavour)]
    if any(counts.get(flavour, 0) != before.get(flavour, 0) for flavour in others):
        return False
    arrived = counts.get(to_flavour, 0) - before.get(to_flavour, 0)
    left = before.get(from_flavour, 0) - counts.get(from_flavour, 0)
    return 0 <= arrived <= left <= arrived + 1 and left <= before.get(from_flavour, 0) - after.get(from_flavour, 0)


def _n_swaps(step: Step) -> int:
    to_flavour = _direction_of(step)[1]
    return _counts(step, "after")[to_flavour] - _counts(step, "before").get(to_flavour, 0)


def _n_done(step: Step, found: Standing) -> int:
    """How many of the step's newcomers are there."""
    to_flavour = _direction_of(step)[1]
    return found.count(to_flavour) - _counts(step, "before").get(to_flavour, 0)


def _n_missing(step: Step, found: Standing) -> int:
    """Members that have left and whose successors have not come."""
    return sum(_counts(step, "before").values()) - sum(found.counts.values())


def _after_swaps(step: Step, count: int) -> Counts:
    counts = _counts(step, "before")
    from_flavour, to_flavour = _direction_of(step)
    counts |= {from_flavour: counts[from_flavour] - count, to_flavour: counts.get(to_flavour, 0) + count}
    return {flavour: each for flavour, each in counts.items() if each}


def _who(members: Sequence[MemberStanding]) -> set[tuple[str, str]]:
    return {(member.member_id, member.flavour) for member in members}


def _had_twice(found: Standing) -> frozenset[tuple[str, int]]:
    seen: set[tuple[str, int]] = set()
    twice: set[tuple[str, int]] = set()
    for member in found.members:
        twice |= seen & member.partitions
        seen |= member.partitions
    return frozenset(twice)


def _counts(step: Step, name: str) -> Counts:
    counts = step.parameters[name]
    assert isinstance(counts, Mapping)
    return {flavour: int(str(count)) for flavour, count in counts.items() if count}


def _number(step: Step, name: str) -> float:
    return float(str(step.parameters[name]))
