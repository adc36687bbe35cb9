"""Carries out steps that delete whole groups from Kafka: read, delete what is as planned, read back, tell each group.

The coordinator itself refuses a group that has a member at that moment. That nobody has committed since the plan is
read just before; a commit between this read and the delete goes with the group (see docs/migration.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kit.cluster import Cluster
from kit.errors import RunError
from kit.migrate.engine.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.engine.step import Step
from kit.migrate.offsets.fetch import NOT_IN_KAFKA, GroupInStore, fetch_kafka, fetch_logs
from kit.migrate.offsets.group_steps import before_of, groups_of, told
from kit.migrate.offsets.kafka import ABSENT, Answer, KafkaWriter
from kit.migrate.offsets.moves import NOTHING, Stored, shortened
from kit.migrate.offsets.rules import why_busy
from kit.migrate.offsets.selection import Key, Place
from kit.read.broker_client import DEADLINE_S
from kit.text.quantity import quantity

GROUPS_PER_BATCH = 100
"""Groups that are deleted, read back and reported together; a stop waits for one batch at most."""
Offsets = Mapping[Place, Stored]
Held = Offsets | str
"""What a group has committed, or why that can't be read."""
_SINCE = "somebody has committed for it since the plan"
_AGAIN = "somebody has committed for it since it was deleted: it is left alone"
_NOT_DONE = {Outcome.NOT_ATTEMPTED, Outcome.UNKNOWN}


class GroupDeleter:
    """The actor of :data:`kit.migrate.offsets.group_steps.KIND`. ``deadline_s`` limits the retries of one batch."""

    def __init__(self, cluster: Cluster, deadline_s: float = DEADLINE_S) -> None:
        self._cluster = cluster
        self._kafka = KafkaWriter(cluster.broker_client, deadline_s)  # Remembers who coordinates what.

    def check(self, step: Step) -> Checked:
        """Whether any group may go now. Those that may not are named; ``act`` refuses each alone."""
        groups = groups_of(step)
        known = fetch_kafka(self._cluster, groups.__contains__)
        busy = [f"group {each!r} {why}" for each in sorted(groups) if (why := why_busy(known.get(each, NOT_IN_KAFKA)))]
        count = quantity(len(groups), "group")
        if not busy:
            return Checked(True, f"{count}, none with a member")
        left = f"{len(busy):,} of {count} will be left alone: {shortened(busy)}"
        return Checked(len(busy) < len(groups), left)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """By what the groups have committed now; a group without an offset counts as long as it is listed."""
        before = before_of(step)
        if acted is not None:
            return self._state_of_undo(step, {it.item: before[it.item] for it in acted.written})
        held = self._kafka.read_groups(before)
        if any(isinstance(each, str) for each in held.values()):
            return StepState.UNKNOWN
        there = self._there(before, held)
        if not there:
            return StepState.DONE
        is_as_before = there == set(before) and all(_same(held[each], before[each]) for each in before)
        return StepState.NOT_DONE if is_as_before else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        before, outcomes = before_of(step), list[ItemOutcome]()
        for names in _batches(before):
            done = self._delete({each: before[each] for each in names}, report)
            outcomes += done
            report(done)
        return outcomes

    def verify(self, step: Step) -> Verified:
        before = before_of(step)
        held = self._kafka.read_groups(before)
        there = sorted(self._there(before, held))
        evidence = {"n_groups": len(before), "n_deleted": len(before) - len(there)}
        if there:
            wrong = shortened(f"group {each!r} has {_said(held[each])}" for each in there)
            return Verified(
                False, f"still there: {len(there):,} of {quantity(len(before), 'group')}: {wrong}", evidence
            )
        return Verified(True, f"{quantity(len(before), 'group')} read back as deleted.", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Always true: ``undo`` looks at each group alone, so one that somebody uses again stops no other."""
        return Checked(True, f"{quantity(len(acted.written), 'group was', 'groups were')} deleted by this run")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Commit again what each group had that this run deleted, but for topics that don't exist any more.

        Raises:
            RunError: some groups were not brought back; the message has their number and the first ones.
        """
        before, outcomes = before_of(step), list[ItemOutcome]()
        ours = {it.item: before[it.item] for it in acted.written}
        gone = self._gone_topics(ours)
        for names in _batches(ours):
            done = self._restore({each: _without(ours[each], gone) for each in names}, report)
            done = [_with_left_out(it, ours[it.item], gone) for it in done]
            outcomes += done
            report(done)
        left = [f"{it.item}: {it.error}" for it in outcomes if it.outcome in _NOT_DONE or _is_refused_here(it)]
        if left:
            raise RunError(f"not brought back: {len(left):,} of {quantity(len(outcomes), 'group')}: {shortened(left)}")
        return outcomes

    def _delete(self, before: Mapping[str, Offsets], report: Report) -> list[ItemOutcome]:
        held = self._kafka.read_groups(before)
        there = self._there(before, held)
        outcomes = {each: it for each in before if (it := _undeletable(each, before[each], held[each], there))}
        todo = [each for each in before if each not in outcomes]
        if todo:
            report.attempt(todo)
            known = {each: found for each in todo if not isinstance(found := held[each], str)}
            answers = self._kafka.delete_groups(known)
            back = self._kafka.read_groups(todo)
            outcomes |= {each: _deleted(each, before[each], answers[each], back[each]) for each in todo}
        return [outcomes[each] for each in before]

    def _restore(self, wanted: Mapping[str, Offsets], report: Report) -> list[ItemOutcome]:
        held = self._kafka.read_groups(wanted)
        outcomes = {each: it for each in wanted if (it := _unrestorable(each, wanted[each], held[each]))}
        todo = [each for each in wanted if each not in outcomes]
        if todo:
            report.attempt(todo)
            answers = self._kafka.write(_keyed({each: wanted[each] for each in todo}), _known(wanted, held))
            back = self._kafka.read_groups(todo)
            outcomes |= {each: _restored(each, wanted[each], answers, back[each]) for each in todo}
        return [outcomes[each] for each in wanted]

    def _state_of_undo(self, step: Step, ours: Mapping[str, Offsets]) -> StepState:
        """DONE or PARTLY while a group is away that could be brought back, and that nobody else has made again."""
        gone = self._gone_topics(ours)
        wanted = {each: left for each, offsets in ours.items() if (left := _without(offsets, gone))}
        held = self._kafka.read_groups(wanted)
        if any(isinstance(each, str) for each in held.values()):
            return StepState.UNKNOWN
        away = [
            each for each in wanted if not _is_others(wanted[each], held[each]) and not _has(held[each], wanted[each])
        ]
        if not away:
            return StepState.NOT_DONE
        return StepState.DONE if len(away) == len(wanted) else StepState.PARTLY

    def _there(self, before: Mapping[str, Offsets], held: Mapping[str, Held]) -> set[str]:
        """Groups that have offsets, can't be read, or never had an offset and are listed."""
        bare = {each for each in before if not held[each]}
        listed = fetch_kafka(self._cluster, bare.__contains__) if any(not before[each] for each in bare) else {}
        return {each for each in before if held[each]} | {each for each in bare if _exists(listed.get(each))}

    def _gone_topics(self, groups: Mapping[str, Offsets]) -> set[str]:
        topics = {topic for offsets in groups.values() for topic, _ in offsets}
        return topics - {topic for topic, _ in fetch_logs(self._cluster, topics)} if topics else set()


def _exists(group: GroupInStore | None) -> bool:
    return group is not None and group.state != NOT_IN_KAFKA.state


def _undeletable(group_id: str, before: Offsets, held: Held, there: Collection[str]) -> ItemOutcome | None:
    """The outcome of a group that need not or must not be deleted; None: delete it."""
    if isinstance(held, str):
        return _outcome(group_id, Outcome.NOT_ATTEMPTED, before, held, f"its offsets can't be read: {held}")
    if group_id not in there:
        return _outcome(group_id, Outcome.UNCHANGED, before, held)
    if not _same(held, before):
        return _outcome(group_id, Outcome.REFUSED, before, held, f"{_SINCE}: {_difference(before, held)}")
    return None


def _deleted(group_id: str, before: Offsets, answer: Answer, back: Held) -> ItemOutcome:
    if not back and (answer == ABSENT or (before and answer.is_refused)):
        return _outcome(group_id, Outcome.UNCHANGED, before, back)  # Somebody else was faster.
    if not back and (answer.error is None or (before and not answer.is_certain)):
        return _outcome(group_id, Outcome.CONFIRMED, before, back)
    if answer.is_refused:
        return _outcome(group_id, Outcome.REFUSED, before, back, answer.error)
    told_error = answer.error or "it was deleted"
    return _outcome(group_id, Outcome.UNKNOWN, before, back, f"{told_error}; it has {_said(back)}")


def _unrestorable(group_id: str, wanted: Offsets, held: Held) -> ItemOutcome | None:
    """The outcome of a group that need not or must not be brought back; None: commit its offsets."""
    if isinstance(held, str):
        return _outcome(group_id, Outcome.NOT_ATTEMPTED, wanted, held, f"its offsets can't be read: {held}")
    if _is_others(wanted, held):
        return _outcome(group_id, Outcome.REFUSED, wanted, held, f"{_AGAIN}: {_difference(wanted, held)}")
    return _outcome(group_id, Outcome.UNCHANGED, wanted, held) if _has(held, wanted) else None


def _restored(group_id: str, wanted: Offsets, answers: Mapping[Key, Answer], back: Held) -> ItemOutcome:
    answered = [answers[group_id, *place] for place in wanted]
    are_refused = all(answer.is_refused for answer in answered)
    if not isinstance(back, str) and _has(back, wanted):
        return _outcome(group_id, Outcome.UNCHANGED if are_refused else Outcome.CONFIRMED, wanted, back)
    errors = sorted({answer.error for answer in answered if answer.error is not None})
    is_refused = not isinstance(back, str) and not back and all(answer.is_certain for answer in answered)
    outcome = Outcome.REFUSED if is_refused and errors else Outcome.UNKNOWN
    return _outcome(group_id, outcome, wanted, back, f"{'; '.join(errors) or 'accepted'}; it has {_said(back)}")


def _with_left_out(outcome: ItemOutcome, offsets: Offsets, gone: Collection[str]) -> ItemOutcome:
    lost = [f"{topic}-{partition}" for topic, partition in sorted(offsets) if topic in gone]
    if not lost or outcome.error is not None:
        return outcome
    return replace(outcome, error=f"not committed again, for the topic doesn't exist: {shortened(lost)}")


def _is_refused_here(outcome: ItemOutcome) -> bool:
    """By the coordinator; what somebody else uses again is left alone, and no failure."""
    return outcome.outcome == Outcome.REFUSED and not (outcome.error or "").startswith(_AGAIN)


def _outcome(group_id: str, outcome: Outcome, before: Offsets, held: Held, error: str | None = None) -> ItemOutcome:
    after = None if isinstance(held, str) or not held else told(held)
    return ItemOutcome(group_id, outcome, told(before), after, error)


def _same(held: Held, before: Offsets) -> bool:
    return not isinstance(held, str) and dict(held) == dict(before)


def _has(held: Held, wanted: Offsets) -> bool:
    return not isinstance(held, str) and all(held.get(place) == stored for place, stored in wanted.items())


def _is_others(wanted: Offsets, held: Held) -> bool:
    return not isinstance(held, str) and any(wanted.get(place) != stored for place, stored in held.items())


def _without(offsets: Offsets, topics: Collection[str]) -> Offsets:
    return {place: stored for place, stored in offsets.items() if place[0] not in topics}


def _keyed(groups: Mapping[str, Offsets]) -> dict[Key, Stored]:
    return {(each, *place): stored for each, offsets in groups.items() for place, stored in offsets.items()}


def _known(wanted: Mapping[str, Offsets], held: Mapping[str, Held]) -> dict[Key, Stored]:
    """What was read in the place of each wanted offset."""
    return {
        (each, *place): found.get(place, NOTHING)
        for each, offsets in wanted.items()
        if not isinstance(found := held[each], str)
        for place in offsets
    }


def _difference(before: Offsets, held: Offsets) -> str:
    """The first offset that is another, expected and found."""
    (topic, partition) = min(place for place in {*before, *held} if before.get(place) != held.get(place))
    expected, found = (side.get((topic, partition), Stored()) for side in (before, held))
    return f"{topic}-{partition}: expected {_stored(expected)}, found {_stored(found)}"


def _stored(stored: Stored) -> str:
    if stored.error is not None:
        return stored.error
    beside = [f"{name} {value!r}" for name, value in (("metadata", stored.metadata), ("epoch", stored.leader_epoch))
              if value is not None]  # fmt: skip
    return ", ".join([str(stored.offset) if stored.offset is not None else "none", *beside])


def _said(held: Held) -> str:
    return f"an unknown state: {held}" if isinstance(held, str) else told(held)


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    everything = list(names)
    for start in range(0, len(everything), GROUPS_PER_BATCH):
        yield everything[start : start + GROUPS_PER_BATCH]
