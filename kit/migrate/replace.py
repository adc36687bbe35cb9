"""Replacing members of one flavour by members of another, one after the other, through a deployer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kit.cluster import Cluster
from kit.errors import ConnectError, RunError
from kit.migrate.clock import Clock
from kit.migrate.deploy import Deployer, Swap
from kit.migrate.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.raised_offsets import raise_zookeeper_offsets
from kit.migrate.standing import OZKCC, MemberStanding, Standing, counted, look, told
from kit.migrate.step import Change, Step
from kit.migrate.toggle import NAMES
from kit.migrate.values import Json

KIND = "replace"
EACH_S = 180.0
"""How long one replacement may take until it is observed: processes start, sessions end, a group rebalances."""
OFFSETS = "ZooKeeper's offsets"

Counts = dict[str, int]


def replace_step(
    step_id: str,
    group_id: str,
    before: Mapping[str, int],
    after: Mapping[str, int],
    mode: str | None,
    deployer: Deployer,
    members: Sequence[str] = (),
    each_s: float = EACH_S,
) -> Step:
    """From ``before`` to ``after`` (flavour → members), which differ by some of one flavour becoming another.

    ``mode`` is the effective mode that must be in force (None: any); ``members`` says whom to replace first.
    """
    from_flavour, to_flavour = _direction(before, after)
    count = after.get(to_flavour, 0) - before.get(to_flavour, 0)
    items = [Change(f"member {number} of {count}", from_flavour, to_flavour) for number in range(1, count + 1)]
    if to_flavour == OZKCC:
        items.insert(0, Change(OFFSETS, "may be behind Kafka's where a partition stood still", "not behind Kafka's"))
    plural = "s" if count > 1 else ""
    needed = f" under {NAMES[mode]}'s assignment" if mode else ""
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Replace {count} {from_flavour}{plural} of {group_id} by {to_flavour}{plural}",
        precondition=f"the group has {counted(before)}{needed}, and each partition has one of them",
        verification=f"the group has {counted(after)}, and each partition has one of them",
        deadline_s=each_s,
        changes=tuple(items),
        undo=f"Each new {to_flavour} is replaced by a {from_flavour} again, the newest first.",
        needs_person=deployer.instruction(group_id, from_flavour, to_flavour) if deployer.needs_person else None,
        affects=("stage", "members", "kafka_group", "kafka_offsets", "zookeeper_offsets"),
        parameters={
            "group": group_id,
            "before": dict(before),
            "after": dict(after),
            "mode": mode,
            "members": tuple(members),
            "each_s": each_s,
            "deployer": deployer.instruction(group_id, from_flavour, to_flavour),
        },
    )


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
        before, after = _counts(step, "before"), _counts(step, "after")
        mode = step.parameters["mode"]
        is_resumed = step.step_id in self._begun and _is_on_the_way(found.counts, before, after)
        if found.counts != before and not is_resumed:
            return Checked(False, f"expected {counted(before)}, found {counted(found.counts)}")
        if mode is not None and found.effective_mode != mode:
            return Checked(False, f"{NAMES[str(mode)]}'s assignment must be in force, found {found.effective_mode}")
        if found.counts == before and not found.is_settled:
            return Checked(False, f"the group is not settled: {found.unsettled}")
        return Checked(True, f"found {counted(found.counts)}; each of {len(found.partitions)} partitions is consumed")

    def state(self, step: Step) -> StepState:
        """Asked of steps that were begun: one may then be stopped already whose successor isn't there yet."""
        self._begun.add(step.step_id)
        counts = self._look(step).counts
        if counts == _counts(step, "after"):
            return StepState.DONE
        return StepState.NOT_DONE if counts == _counts(step, "before") else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        before, after = _counts(step, "before"), _counts(step, "after")
        outcomes = []
        if _direction(before, after)[1] == OZKCC:
            outcomes.append(self._raise_offsets(step))
            report(outcomes)
            if outcomes[0].outcome == Outcome.REFUSED:
                return outcomes  # An old consumer would read again what the group has committed.
        return [*outcomes, *self._replace(step, before, after, report)]

    def verify(self, step: Step) -> Verified:
        found, after = self._look(step), _counts(step, "after")
        if found.counts != after:
            return Verified(False, f"expected {counted(after)}, found {counted(found.counts)}")
        if not found.is_settled:
            return Verified(False, f"the group is not settled: {found.unsettled}")
        twice = _had_twice(found)
        if twice:
            return Verified(False, f"{told(twice)} are had by two members")
        shares: dict[str, Json] = {member.member_id: len(member.partitions) for member in found.members}
        return Verified(True, f"the group has {counted(after)}; each partition has one of them", {"shares": shares})

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        before, after = _counts(step, "before"), _counts(step, "after")
        kept = [
            ItemOutcome(OFFSETS, Outcome.UNCHANGED, None, "not lowered") for it in acted.outcomes if it.item == OFFSETS
        ]
        return [*kept, *self._replace(step, after, before, report, backwards=True)]

    def _replace(
        self, step: Step, start: Counts, goal: Counts, report: Report, backwards: bool = False
    ) -> list[ItemOutcome]:
        """Item by item until the counts are the goal's; what is so already is unchanged."""
        from_flavour, to_flavour = _direction(start, goal)
        count = goal.get(to_flavour, 0) - start.get(to_flavour, 0)
        outcomes = []
        for number in range(1, count + 1):
            shown = count + 1 - number if backwards else number
            item = f"member {shown} of {count}"
            found = self._look(step)
            if found.count(to_flavour) >= start.get(to_flavour, 0) + number:
                outcome = ItemOutcome(item, Outcome.UNCHANGED, from_flavour, to_flavour)
            else:
                outcome = self._replace_one(step, item, found, goal, (from_flavour, to_flavour, number), report)
            report([outcome])
            outcomes.append(outcome)
            if outcome.outcome not in (Outcome.CONFIRMED, Outcome.UNCHANGED):
                break
        return outcomes

    def _replace_one(
        self, step: Step, item: str, found: Standing, goal: Counts, way: tuple[str, str, int], report: Report
    ) -> ItemOutcome:
        from_flavour, to_flavour, number = way
        victim = _victim(found, step, from_flavour) if found.count(from_flavour) > goal.get(from_flavour, 0) else None
        group = str(step.parameters["group"])
        member, client_id, host = (victim.member_id, victim.client_id, victim.host or "") if victim else ("", "", "")
        raised = self._raise_offsets(step) if to_flavour == OZKCC else None
        if raised is not None and raised.outcome == Outcome.REFUSED:
            return ItemOutcome(item, Outcome.REFUSED, from_flavour, None, f"{OFFSETS}: {raised.error}")
        here = {each.member_id for each in found.members if each.flavour == to_flavour}
        try:
            swap = Swap(group, member, client_id, host, from_flavour, to_flavour, number)
            said = self._deployer.replace(swap, self._say)
        except RunError as error:
            return ItemOutcome(item, Outcome.UNKNOWN, from_flavour, None, str(error))
        arrived = self._await(step, member, here, to_flavour, report)
        before: Json = {"flavour": from_flavour, "member": member, "host": host}
        if arrived is None:
            why = f"no new {to_flavour} was seen, or {member or 'the old one'} did not leave, in {_each_s(step):g} s"
            return ItemOutcome(item, Outcome.UNKNOWN, before, None, why)
        after: dict[str, Json] = {"flavour": to_flavour, "member": arrived, "said": said}
        if raised is not None:
            after["offsets_raised"] = raised.after
        return ItemOutcome(item, Outcome.CONFIRMED, before, after)

    def _await(self, step: Step, gone: str, here: set[str], flavour: str, report: Report) -> str | None:
        """The new member's id, once the old one is gone and every partition has a member again."""
        deadline = self._clock.monotonic() + _each_s(step)
        while self._clock.monotonic() < deadline:
            found = self._look(step)
            ids = {each.member_id for each in found.members}
            new = [each.member_id for each in found.members if each.flavour == flavour and each.member_id not in here]
            if new and gone not in ids and found.is_settled:
                return new[0]
            report([])
            self._clock.sleep(self._poll_s)
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


def _direction(before: Mapping[str, int], after: Mapping[str, int]) -> tuple[str, str]:
    """Which flavour becomes which."""
    change = {flavour: after.get(flavour, 0) - before.get(flavour, 0) for flavour in {**before, **after}}
    lost = [flavour for flavour, count in change.items() if count < 0]
    won = [flavour for flavour, count in change.items() if count > 0]
    assert len(lost) == len(won) == 1, (before, after)
    return lost[0], won[0]


def _is_on_the_way(counts: Counts, before: Counts, after: Counts) -> bool:
    """As before, as after, or in between; one may be missing, in the middle of its replacement."""
    from_flavour, to_flavour = _direction(before, after)
    others = [flavour for flavour in {*counts, *before} if flavour not in (from_flavour, to_flavour)]
    if any(counts.get(flavour, 0) != before.get(flavour, 0) for flavour in others):
        return False
    arrived = counts.get(to_flavour, 0) - before.get(to_flavour, 0)
    left = before.get(from_flavour, 0) - counts.get(from_flavour, 0)
    return 0 <= arrived <= left <= arrived + 1 and left <= before.get(from_flavour, 0) - after.get(from_flavour, 0)


def _victim(found: Standing, step: Step, flavour: str) -> MemberStanding:
    """Those the plan names first, then the oldest; a KC's age isn't known."""
    wanted = step.parameters["members"]
    assert isinstance(wanted, tuple)
    candidates = [member for member in found.members if member.flavour == flavour]
    named = [member for member in candidates if member.member_id in wanted]
    aged = sorted(candidates, key=lambda member: (member.since is None, member.since, member.member_id))
    return (named or aged)[0]


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


def _each_s(step: Step) -> float:
    return float(str(step.parameters["each_s"]))
