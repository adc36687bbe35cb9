"""Executes steps that delete whole groups from Kafka: read, delete the unchanged groups, read back, report each group.

The coordinator itself refuses a group that has a member at that moment. Commits since the plan are searched
for just before; a commit between this read and the delete goes with the group (see docs/migration.md).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kit.clients.broker_client import DEADLINE_S
from kit.clients.cluster import Cluster
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Step
from kit.errors import ReadError, RunError
from kit.groups.read.rights import DELETE, READ
from kit.groups.read.topics import fetch_sight
from kit.moves.offsets.fetch import NOT_IN_KAFKA, GroupInStore, fetch_kafka, fetch_present, fetch_topics
from kit.moves.offsets.group_steps import before_of, describe_offsets, groups_of
from kit.moves.offsets.kafka import ABSENT, Answer, KafkaWriter
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.open_transactions import fetch_unstable
from kit.moves.offsets.rules import why_busy
from kit.moves.offsets.selection import Key, Place
from kit.moves.offsets.topics import Present, made_again
from kit.moves.undo_rights import kafka_refusal
from kit.text.naming import shortened
from kit.text.quantity import quantity

GROUPS_PER_BATCH = 100
"""Groups that are deleted, read back and reported together; a stop waits for one batch at most."""
Offsets = Mapping[Place, Stored]
Held = Offsets | str
"""The committed offsets of a group, or why they can't be read."""
_UNREAD = "the group's offsets can't be read"
_SINCE = "a client has committed offsets of this group since the plan"
_AGAIN = "a client has committed offsets of this group since the deletion, so the group is not changed"
_NOT_DONE = {Outcome.NOT_ATTEMPTED, Outcome.UNKNOWN}


class GroupDeleter:
    """The actor of :data:`kit.moves.offsets.group_steps.KIND`. ``deadline_s`` limits the retries of one batch."""

    def __init__(self, cluster: Cluster, deadline_s: float = DEADLINE_S) -> None:
        self._cluster = cluster
        self._kafka = KafkaWriter(cluster.broker_client, deadline_s)  # Remembers who coordinates what.

    def check(self, step: Step) -> Checked:
        """Return whether the login may delete each group, and any group may go now. Groups that may not be deleted are
        named; ``act`` refuses each alone.
        """
        groups = groups_of(step)
        known = fetch_kafka(self._cluster, groups.__contains__)
        busy = [f"group {each!r} {why}" for each in sorted(groups) if (why := why_busy(known.get(each, NOT_IN_KAFKA)))]
        busy += [f"group {each!r}: {why}" for each, why in self._made_again(before_of(step)).items()]
        count = quantity(len(groups), "group")
        refused = kafka_refusal(self._cluster.broker_client, dict.fromkeys(groups, (DELETE,)), ())
        if refused is not None:
            return Checked(False, refused)
        if not busy:
            return Checked(True, f"{count}, none with a member")
        left = f"{len(busy):,} of {count} will not be deleted: {shortened(busy)}"
        return Checked(len(busy) < len(groups), left)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """By what the groups have committed now; a group without an offset counts as long as it is listed.

        Raises:
            ReadError: the offsets of one of them can't be read.
        """
        before = before_of(step)
        if acted is not None:
            return self._state_of_undo(step, {it.item: before[it.item] for it in acted.written})
        held = self._read(before)
        there = _there(before, held, self._listed_bare(before, held))
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
        there = sorted(_there(before, held, self._listed_bare(before, held)))
        evidence = {"n_groups": len(before), "n_deleted": len(before) - len(there)}
        if there:
            wrong = shortened(f"group {each!r} has {_said(held[each])}" for each in there)
            return Verified(
                False, f"still there: {len(there):,} of {quantity(len(before), 'group')}: {wrong}", evidence
            )
        return Verified(True, f"{quantity(len(before), 'group')} read back as deleted.", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether the login may commit what an undo commits. ``undo`` examines each group alone, so a group that
        is in use again stops no other group.
        """
        before = before_of(step)
        parts = self._parts({it.item: before[it.item] for it in acted.written})
        topics = {topic for part in parts.values() for topic, _ in part.wanted}
        rights = {each: (READ,) for each, part in parts.items() if part.wanted}
        if (refused := kafka_refusal(self._cluster.broker_client, rights, topics)) is not None:
            return Checked(False, refused)
        alone = {each: part.left_out for each, part in parts.items() if not part.wanted and part.left_out}
        sentence = f"{quantity(len(acted.written), 'group was', 'groups were')} deleted by this run"
        return Checked(True, sentence, alone)

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Commit again what each group had that this run deleted, but for topics that don't exist any more.

        A topic that was deleted and created again is another topic: offsets of the old one are refused.

        Raises:
            RunError: some groups were not brought back; the message has their number and the first ones.
        """
        before, outcomes, failed = before_of(step), list[ItemOutcome](), list[ItemOutcome]()
        ours = {it.item: before[it.item] for it in acted.written}
        for names in _batches(ours):
            alone, tried = self._restore({each: ours[each] for each in names}, report)
            outcomes += [*alone, *tried]
            failed += [it for it in alone if it.outcome in _NOT_DONE]
            failed += [it for it in tried if it.outcome in {*_NOT_DONE, Outcome.REFUSED}]
            report([*alone, *tried])
        left = [f"{it.item}: {it.error}" for it in failed]
        if left:
            raise RunError(f"not brought back: {len(left):,} of {quantity(len(outcomes), 'group')}: {shortened(left)}")
        return outcomes

    def _delete(self, before: Mapping[str, Offsets], report: Report) -> list[ItemOutcome]:
        sight = fetch_sight(
            self._cluster.broker_client, self._cluster.zookeeper
        )  # Rights may have changed since the plan.
        if not sight.is_whole:
            outcome = Outcome.NOT_ATTEMPTED if sight.is_whole is None else Outcome.REFUSED
            return [_outcome(each, outcome, it, sight.sentence, sight.sentence) for each, it in before.items()]
        held = self._kafka.read_groups(before)
        bare = self._listed_bare(before, held)
        there = _there(before, held, bare)
        outcomes = {each: it for each in before if (it := _undeletable(each, before[each], held[each], there))}
        outcomes |= {
            each: _outcome(
                each, Outcome.NOT_ATTEMPTED, before[each], held[each], f"the group can't be read: {it.error}"
            )
            for each, it in bare.items()
            if it.error is not None and each not in outcomes
        }
        again = self._made_again({each: offsets for each, offsets in before.items() if each not in outcomes})
        outcomes |= {
            each: _outcome(each, Outcome.REFUSED, before[each], held[each], why) for each, why in again.items()
        }
        todo = [each for each in before if each not in outcomes]
        unstable = fetch_unstable(self._cluster, self._kafka, todo) if todo else {}
        outcomes |= {
            each: _outcome(each, Outcome.NOT_ATTEMPTED, before[each], held[each], f"{_UNREAD}: {why}")
            for each, why in unstable.items()
        }
        todo = [each for each in todo if each not in unstable]
        if todo:
            report.attempt(todo)
            known = {each: found for each in todo if not isinstance(found := held[each], str)}
            answers = self._kafka.delete_groups(known)
            back = self._kafka.read_groups(todo)
            outcomes |= {each: _deleted(each, before[each], answers[each], back[each]) for each in todo}
        return [outcomes[each] for each in before]

    def _restore(self, ours: Mapping[str, Offsets], report: Report) -> tuple[list[ItemOutcome], list[ItemOutcome]]:
        """The groups for which nothing was sent, and those that were tried."""
        parts = self._parts(ours)
        wanted = {each: part.wanted for each, part in parts.items()}
        held = self._kafka.read_groups(ours)
        named = self._kafka.read(_keyed(wanted))  # An offset that only a transaction has sent is not among a group's.
        held |= {group_id: it.error for (group_id, *_), it in named.items() if it.error is not None}
        alone = {each: it for each, part in parts.items() if (it := _unrestorable(each, part, held[each]))}
        todo, tried = [each for each in ours if each not in alone], list[ItemOutcome]()
        if todo:
            report.attempt(todo)
            answers = self._kafka.write(_keyed({each: wanted[each] for each in todo}), _known(wanted, held))
            back = self._kafka.read_groups(todo)
            tried = [_restored(each, wanted[each], answers, back[each]) for each in todo]
        return [_with_left_out(it, parts[it.item]) for it in alone.values()], [
            _with_left_out(it, parts[it.item]) for it in tried
        ]

    def _state_of_undo(self, step: Step, ours: Mapping[str, Offsets]) -> StepState:
        """DONE or PARTLY while a group is away that could be brought back, and that no other operator or tool has
        made again.
        """
        wanted = {each: part.wanted for each, part in self._parts(ours).items() if part.wanted}
        held = self._read(wanted)
        away = [
            each for each in wanted if not _is_others(wanted[each], held[each]) and not _has(held[each], wanted[each])
        ]
        if not away:
            return StepState.NOT_DONE
        return StepState.DONE if len(away) == len(wanted) else StepState.PARTLY

    def _read(self, group_ids: Iterable[str]) -> dict[str, Offsets]:
        found = self._kafka.read_groups(group_ids)
        unread = [f"group {each!r}: {why}" for each, why in found.items() if isinstance(why, str)]
        if unread:
            raise ReadError(shortened(unread))
        return {each: offsets for each, offsets in found.items() if not isinstance(offsets, str)}

    def _listed_bare(self, before: Mapping[str, Offsets], held: Mapping[str, Held]) -> dict[str, GroupInStore]:
        """The groups without an offset that are listed. One may be another group by now, for example a share group."""
        bare = {each for each in before if not held[each]}
        return fetch_kafka(self._cluster, bare.__contains__) if any(not before[each] for each in bare) else {}

    def _made_again(self, groups: Mapping[str, Offsets]) -> dict[str, str]:
        """The groups with an offset of a topic that was created again since the plan, with the reason."""
        topics = fetch_topics(self._cluster) if groups else {}
        again = {
            each: {why.reason for (topic, _), stored in offsets.items() if (why := made_again(topics, topic, stored))}
            for each, offsets in groups.items()
        }
        return {each: f"{shortened(sorted(reasons))}. Make a new plan" for each, reasons in again.items() if reasons}

    def _parts(self, groups: Mapping[str, Offsets]) -> dict[str, _Parts]:
        """Return the offsets of each group that may be committed again now, by the topics and logs of this moment."""
        present = fetch_present(self._cluster, (item for offsets in groups.values() for item in offsets.items()))
        return {each: _parts_of(offsets, present) for each, offsets in groups.items()}


@dataclass(frozen=True, slots=True)
class _Parts:
    """One group's offsets: those to commit again, and those that can't be.

    ``gone``: the partition doesn't exist; ``misplaced``: the topic is another one now, with the reason; ``unsure``: why
    nothing can be committed at the moment. ``epochs``: notes for those that are committed without their leader epoch.
    """

    wanted: Offsets
    gone: Sequence[Place]
    misplaced: Mapping[Place, str]
    unsure: str | None
    epochs: Mapping[Place, str]

    @property
    def left_out(self) -> str:
        """The offsets that are not committed again, or not as they were, with the reasons; empty if there are none."""
        by_reason: dict[str, list[str]] = {}
        for (topic, partition), why in sorted(self.misplaced.items()):
            by_reason.setdefault(why, []).append(f"{topic}-{partition}")
        gone = [f"{topic}-{partition}" for topic, partition in sorted(self.gone)]
        notes = [f"not committed again, for the topic doesn't exist: {shortened(gone)}"] if gone else []
        notes += [f"{topic}-{partition} {why}" for (topic, partition), why in sorted(self.epochs.items())[:3]]
        return "; ".join(notes + [f"not committed again: {shortened(of)}: {why}" for why, of in by_reason.items()])


def _parts_of(offsets: Offsets, present: Present) -> _Parts:
    why = {place: present.misplaced(place, stored) for place, stored in offsets.items()}
    misplaced = {place: it.reason for place, it in why.items() if it is not None and it.outcome == Outcome.REFUSED}
    unsure = [it.reason for it in why.values() if it is not None and it.outcome != Outcome.REFUSED]
    gone = [place for place in offsets if place not in misplaced and present.is_gone(place)]
    left = {place: stored for place, stored in offsets.items() if place not in misplaced and place not in gone}
    wanted = {place: present.fetchable(place, stored) for place, stored in left.items()}
    epochs = {place: note for place, it in left.items() if (note := present.dropped_epoch(place, it)) is not None}
    return _Parts(wanted, gone, misplaced, unsure[0] if unsure else None, epochs)


def _there(before: Mapping[str, Offsets], held: Mapping[str, Held], bare: Mapping[str, GroupInStore]) -> set[str]:
    """Groups that have offsets, can't be read, or never had an offset and are listed."""
    listed = {each for each, group in bare.items() if group.state != NOT_IN_KAFKA.state}
    return {each for each in before if held[each]} | listed


def _undeletable(group_id: str, before: Offsets, held: Held, there: Collection[str]) -> ItemOutcome | None:
    """The outcome of a group that need not or must not be deleted; None: delete it."""
    if isinstance(held, str):
        return _outcome(group_id, Outcome.NOT_ATTEMPTED, before, held, f"{_UNREAD}: {held}")
    if group_id not in there:
        return _outcome(group_id, Outcome.UNCHANGED, before, held)
    if not _same(held, before):
        return _outcome(group_id, Outcome.REFUSED, before, held, f"{_SINCE}: {_difference(before, held)}")
    return None


def _deleted(group_id: str, before: Offsets, answer: Answer, back: Held) -> ItemOutcome:
    if not back and (answer == ABSENT or (before and answer.is_refused)):
        return _outcome(group_id, Outcome.UNCHANGED, before, back)  # Another operator or tool was faster.
    if not back and (answer.error is None or (before and not answer.is_certain)):
        return _outcome(group_id, Outcome.CONFIRMED, before, back)
    if answer.is_refused:
        return _outcome(group_id, Outcome.REFUSED, before, back, answer.error)
    told_error = answer.error or "the group was deleted"
    return _outcome(group_id, Outcome.UNKNOWN, before, back, f"{told_error}; it has {_said(back)}")


def _unrestorable(group_id: str, parts: _Parts, held: Held) -> ItemOutcome | None:
    """The outcome of a group that need not or must not be brought back; None: commit its offsets."""
    wanted = parts.wanted
    if isinstance(held, str):
        return _outcome(group_id, Outcome.NOT_ATTEMPTED, wanted, held, f"{_UNREAD}: {held}")
    if _is_others(wanted, held):
        return _outcome(group_id, Outcome.REFUSED, wanted, held, f"{_AGAIN}: {_difference(wanted, held)}")
    if parts.unsure is not None:
        return _outcome(group_id, Outcome.NOT_ATTEMPTED, wanted, held, parts.unsure)
    if parts.misplaced and not wanted:
        return _outcome(group_id, Outcome.REFUSED, wanted, held, parts.left_out)
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


def _with_left_out(outcome: ItemOutcome, parts: _Parts) -> ItemOutcome:
    return outcome if outcome.error is not None else replace(outcome, error=parts.left_out or None)


def _outcome(group_id: str, outcome: Outcome, before: Offsets, held: Held, error: str | None = None) -> ItemOutcome:
    after = None if isinstance(held, str) or not held else describe_offsets(held)
    return ItemOutcome(group_id, outcome, describe_offsets(before), after, error)


def _same(held: Held, before: Offsets) -> bool:
    return not isinstance(held, str) and dict(held) == dict(before)


def _has(held: Held, wanted: Offsets) -> bool:
    return not isinstance(held, str) and all(held.get(place) == stored for place, stored in wanted.items())


def _is_others(wanted: Offsets, held: Held) -> bool:
    return not isinstance(held, str) and any(wanted.get(place) != stored for place, stored in held.items())


def _keyed(groups: Mapping[str, Offsets]) -> dict[Key, Stored]:
    return {(each, *place): stored for each, offsets in groups.items() for place, stored in offsets.items()}


def _known(wanted: Mapping[str, Offsets], held: Mapping[str, Held]) -> dict[Key, Stored]:
    """Return the offset that was read in the place of each wanted offset."""
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
    return f"an unknown state: {held}" if isinstance(held, str) else describe_offsets(held)


def _batches(names: Iterable[str]) -> Iterator[list[str]]:
    everything = list(names)
    for start in range(0, len(everything), GROUPS_PER_BATCH):
        yield everything[start : start + GROUPS_PER_BATCH]
