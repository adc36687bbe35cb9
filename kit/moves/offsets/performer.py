"""Executes steps that write offsets: read, write the offsets that are as planned, read back, report each item.

:class:`OffsetsActor` does the steps of :data:`STEP_KINDS`; :class:`OffsetsPerformer` performs plans of only such steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

from kit.clients.broker_client import DEADLINE_S
from kit.clients.cluster import Cluster
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import refuse_altered, targets_of
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import PlanError, ReadError, RunError
from kit.groups.read.rights import DELETE, READ
from kit.moves.offsets.exclusive import ExclusiveWriter
from kit.moves.offsets.fetch import (
    NOT_IN_KAFKA,
    NOT_IN_ZOOKEEPER,
    fetch_kafka,
    fetch_logs,
    fetch_present,
    fetch_zookeeper,
    refuse_unless_connected,
)
from kit.moves.offsets.kafka import Answer, KafkaWriter
from kit.moves.offsets.moves import Stored, item_of, parse_item
from kit.moves.offsets.observations import observe_offsets
from kit.moves.offsets.rules import why_busy
from kit.moves.offsets.selection import Key, Place
from kit.moves.offsets.steps import RECIPES, after_of, before_of, deletes, groups_of, is_exclusive, store_of
from kit.moves.offsets.subject import STEP_KINDS
from kit.moves.offsets.topics import Present, made_again
from kit.moves.offsets.zookeeper import ZookeeperWriter, parents_of
from kit.moves.undo_rights import kafka_refusal
from kit.tables.groups import KAFKA
from kit.text.naming import shortened
from kit.text.quantity import quantity

KEYS_PER_BATCH = 5_000
"""Keys that are written, read back and reported together; a stop waits for one batch at most."""
_PARENTS = "parents"
_NOT_DONE = {Outcome.REFUSED, Outcome.NOT_ATTEMPTED, Outcome.UNKNOWN}
ReadPresent: TypeAlias = Callable[[Iterable[tuple[Place, Stored]]], Present]
"""Reads the topics of some offsets as they are now."""


class Writer(Protocol):
    """Reads and writes the offsets of one store."""

    def read(self, keys: Iterable[Key]) -> dict[Key, Stored]: ...

    def write(self, wanted: Mapping[Key, Stored], known: Mapping[Key, Stored]) -> dict[Key, Answer]: ...

    def take_made_parents(self) -> Mapping[str, int]:
        """Znodes above the offsets that were created since this was last asked, with their czxid."""
        ...

    def remove_parents(self, made: Mapping[str, int]) -> None: ...


class OffsetsActor:
    """Checks, executes, verifies and undoes the steps of :data:`STEP_KINDS` on one cluster.

    ``deadline_s`` limits the retries of one batch, after a coordinator that moves or a lost connection.
    """

    kinds = STEP_KINDS

    def __init__(self, cluster: Cluster, deadline_s: float = DEADLINE_S) -> None:
        self._cluster, self._deadline_s = cluster, deadline_s
        self._kafka = KafkaWriter(cluster.broker_client, deadline_s)  # Remembers who coordinates what.

    def check(self, step: Step) -> Checked:
        """Return whether no group has a member in the store, and every offset is still within its log."""
        groups, fetch = groups_of(step), fetch_kafka if store_of(step) == KAFKA else fetch_zookeeper
        absent = NOT_IN_KAFKA if store_of(step) == KAFKA else NOT_IN_ZOOKEEPER
        known = fetch(self._cluster, groups.__contains__)
        busy = {group_id: why for group_id in sorted(groups) if (why := why_busy(known.get(group_id, absent)))}
        if busy:
            named = shortened(f"group {group_id!r} {why}" for group_id, why in busy.items())
            return Checked(False, f"{len(busy):,} of {quantity(len(groups), 'group')} can't be written to: {named}")
        topics = self._present([]).topics
        again = [made_again(topics, key[1], stored) for key, stored in after_of(step).items()]
        reasons = {each.reason for each in again if each is not None}
        if reasons:
            return Checked(False, f"{shortened(sorted(reasons))}. Make a new plan")
        if (refused := self._refused(step, after_of(step))) is not None:
            return Checked(False, refused)
        if deletes(step):
            return Checked(True, f"{quantity(len(groups), 'group has', 'groups have')} no members")
        outside = self._outside(step)
        if outside:
            count = quantity(len(outside), "offset is", "offsets are")
            return Checked(False, f"{count} not within the log any more: {shortened(outside)}")
        count = quantity(len(step.changes), "offset is", "offsets are")
        return Checked(True, f"{quantity(len(groups), 'group has', 'groups have')} no members; {count} within the log")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """By the offsets now. PARTLY if an offset is neither the one before nor the one after: another operator or
        tool moved it.

        With ``acted``: PARTLY while an offset that this run wrote is still there. An offset that was moved since does
        not count, nor does one that ``undo`` refuses for good. A deleted offset whose topic was deleted too needs no
        undo.

        Raises:
            ReadError: one of the offsets can't be read.
        """
        before, after = before_of(step), after_of(step)
        asked = list(after)
        if acted is not None:
            back = self._back(step, acted)
            asked = [key for key in back.ours if not (deletes(step) and key in back.gone)]
        current = self._writer(step).read(asked)
        hidden = [f"{item_of(key)}: {current[key].error}" for key in asked if current[key].is_hidden]
        if hidden:
            raise ReadError(shortened(hidden))
        is_there = [current[key].offset == after[key].offset for key in asked]
        if all(is_there) and asked:
            return StepState.DONE
        if acted is not None:
            return StepState.PARTLY if any(is_there) else StepState.NOT_DONE
        is_back = all(current[key].offset == before[key].offset for key in asked)
        return StepState.NOT_DONE if is_back else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Write each offset that has not changed since the plan, in batches; each batch is read back and reported."""
        return self._carry_out(self._writer(step), before_of(step), after_of(step), report)

    def verify(self, step: Step) -> Verified:
        """Return whether each offset, read now, is the one that the step wrote."""
        after = after_of(step)
        current = self._writer(step).read(after)
        wrong = [
            _unlike(key, wanted, current[key]) for key, wanted in after.items() if current[key].offset != wanted.offset
        ]
        evidence: dict[str, Json] = {"n_offsets": len(after), "n_as_wanted": len(after) - len(wrong)}
        if wrong:
            return Verified(
                False,
                f"not as requested: {len(wrong):,} of {quantity(len(after), 'offset')}: {shortened(wrong)}",
                evidence,
            )
        return Verified(True, f"{quantity(len(after), 'offset')} read back as requested.", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether the login may write what an undo writes. ``undo`` checks each offset alone, so an offset that
        was moved since stops no other.
        """
        back, before = self._back(step, acted), before_of(step)
        refused = self._refused(step, {key: before[key] for key in back.ours if key not in back.gone})
        if refused is not None:
            return Checked(False, refused)
        sentence = f"{quantity(len(acted.written), 'offset was', 'offsets were')} written by this run"
        return Checked(True, sentence, {item_of(key): why for key, why in back.alone.items()})

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Restore each offset that this run wrote and no other client moved since, with its metadata.

        Offsets that this run did not write stay, and so do offsets in Kafka whose topic was deleted. An offset that was
        moved since stays and is reported, and so is one of a topic that was deleted and created again. A leader epoch
        above the partition's present one is not written, and the item's outcome has a note.

        Raises:
            RunError: some offsets were not restored; the message has their number and the first ones.
        """
        back = self._back(step, acted)
        ours = {*back.ours, *back.alone}.difference(back.gone)
        before = {key: stored for key, stored in before_of(step).items() if key in ours}
        after = {key: stored for key, stored in after_of(step).items() if key in ours}
        writer = self._writer(step)
        outcomes = self._carry_out(writer, after, before, report)
        if parents := _made_parents(acted):
            report([])  # Raises where the run must stop.
            writer.remove_parents(parents)
        wanted = {change.item: change.after for change in step.changes}
        others = {it.item for it in outcomes if it.outcome == Outcome.REFUSED and it.after != wanted[it.item]}
        others |= set(map(item_of, back.alone))
        left = [f"{it.item}: {it.error}" for it in outcomes if it.outcome in _NOT_DONE and it.item not in others]
        if left:
            raise RunError(f"not undone: {len(left):,} of {quantity(len(outcomes), 'offset')}: {shortened(left)}")
        return outcomes

    def _carry_out(
        self, writer: Writer, old: Mapping[Key, Stored], new: Mapping[Key, Stored], report: Report
    ) -> list[ItemOutcome]:
        outcomes: list[ItemOutcome] = []
        for keys in _batches(new):
            batch = _Batch({key: old[key] for key in keys}, {key: new[key] for key in keys})
            done = batch.carry_out(writer, self._present, report)
            outcomes += done
            report(done)
        return outcomes

    def _back(self, step: Step, acted: ActedRecord) -> _Back:
        """Split what this run wrote by what an undo may do with it now."""
        before = before_of(step)
        ours = {key: before[key] for outcome in acted.written if (key := parse_item(outcome.item)) in before}
        present = self._present((key[1:], stored) for key, stored in ours.items())
        why = {key: present.misplaced(key[1:], stored) for key, stored in ours.items()}
        alone = {key: it.reason for key, it in why.items() if it is not None and it.outcome == Outcome.REFUSED}
        is_forgotten = store_of(step) == KAFKA
        gone = {key for key in ours if is_forgotten and key not in alone and present.is_gone(key[1:])}
        return _Back([key for key in ours if key not in alone], gone, alone)

    def _refused(self, step: Step, wanted: Mapping[Key, Stored]) -> str | None:
        """Return why the login may not write these offsets to Kafka; None: it may, that is not known, or it is
        ZooKeeper.
        """
        if store_of(step) != KAFKA:
            return None
        rights: dict[str, set[int]] = {}
        for (group_id, *_), stored in wanted.items():
            rights.setdefault(group_id, set()).add(DELETE if stored.offset is None else READ)
        return kafka_refusal(self._cluster.broker_client, rights, {topic for _, topic, _ in wanted})

    def _present(self, offsets: Iterable[tuple[Place, Stored]]) -> Present:
        return fetch_present(self._cluster, offsets)

    def _outside(self, step: Step) -> list[str]:
        after = after_of(step)
        logs = fetch_logs(self._cluster, {topic for _, topic, _ in after})
        wrong = []
        for key, stored in after.items():
            log = logs.get(key[1:])
            if log is None:
                wrong.append(f"{item_of(key)}: no broker knows this partition")
            elif log.log_start_offset is None or log.log_end_offset is None:
                wrong.append(f"{item_of(key)}: {log.error}")
            elif not log.log_start_offset <= (stored.offset or 0) <= log.log_end_offset:
                wrong.append(f"{item_of(key)}: {stored.offset} is not in {log.log_start_offset}–{log.log_end_offset}")
        return wrong

    def _writer(self, step: Step) -> Writer:
        if step.kind not in self.kinds:
            raise PlanError(f"step {step.step_id!r} of kind {step.kind!r} does not write offsets")
        refuse_unless_connected(self._cluster, store_of(step))
        if store_of(step) == KAFKA:
            return ExclusiveWriter(self._cluster, self._deadline_s) if is_exclusive(step) else self._kafka
        return ZookeeperWriter(self._cluster.zookeeper, self._deadline_s)


class OffsetsPerformer(OffsetsActor):
    """A :class:`kit.engine.model.performer.Performer` for plans whose steps all write offsets."""

    @property
    def cluster_id(self) -> str:
        return self._cluster.confirmed_id()

    def refuse_altered(self, plan: Plan) -> None:
        refuse_altered(plan, RECIPES)

    def targets_of(self, step: Step) -> Mapping[str, str]:
        return targets_of(step, RECIPES)

    def observe(self, plan: Plan) -> Mapping[str, Json]:
        return observe_offsets(self._cluster, plan.observed)

    def settle(self, plan: Plan, other_run: str, go_on: Callable[[], None]) -> None:
        """Nothing: offsets are written by conditional requests, which come before their answer or never."""

    def end(self) -> None:
        """Nothing is opened for a run."""

    def refusal(self, plan: Plan) -> str | None:
        """Its rules are about offsets and members: each step's check and each write asks them itself."""
        return None


@dataclass(frozen=True, slots=True)
class _Back:
    """Offsets that a run wrote: ``ours`` may be restored, but for those of deleted topics (``gone``), which Kafka's
    coordinators forget and accept no more. ``alone`` must not, each with the reason."""

    ours: Sequence[Key]
    gone: Collection[Key]
    alone: Mapping[Key, str]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Offsets to change from ``old`` to ``new``: forward, or back in an undo."""

    old: Mapping[Key, Stored]
    new: Mapping[Key, Stored]

    def carry_out(self, writer: Writer, look: ReadPresent, report: Report) -> list[ItemOutcome]:
        current = writer.read(self.new)
        present = look((key[1:], stored) for key, stored in self.new.items())
        judged = {key: self._unwritten(key, current[key], present) for key in self.new}
        outcomes = {key: outcome for key, outcome in judged.items() if outcome is not None}
        todo = {key: present.fetchable(key[1:], it) for key, it in self.new.items() if key not in outcomes}
        if todo:
            report.attempt([item_of(key) for key in todo])
            answers = writer.write(todo, current)
            back = writer.read(todo)
            notes = {key: present.dropped_epoch(key[1:], self.new[key]) for key in todo}
            outcomes |= {key: self._written(key, answers[key], back[key], notes[key]) for key in todo}
            outcomes |= _with_parents([key for key in todo if outcomes[key].is_written], outcomes, writer)
        return [outcomes[key] for key in self.new]

    def _unwritten(self, key: Key, current: Stored, present: Present) -> ItemOutcome | None:
        """The outcome of an offset that need not or must not be written; None: write it."""
        if current.error is not None:
            return self._outcome(
                key, Outcome.NOT_ATTEMPTED, current, f"the offset there now can't be read: {current.error}"
            )
        if current.offset == self.new[key].offset:
            return self._outcome(key, Outcome.UNCHANGED, current)
        if (misplaced := present.misplaced(key[1:], self.new[key])) is not None:
            return self._outcome(key, misplaced.outcome, current, misplaced.reason)
        if current.offset != self.old[key].offset:
            return self._outcome(
                key,
                Outcome.REFUSED,
                current,
                f"expected {_said(self.old[key])}, found {_said(current)}: another operator or tool changed the "
                "offset since the plan",
            )
        return None

    def _written(self, key: Key, answer: Answer, back: Stored, note: str | None) -> ItemOutcome:
        if back.error is None and back.offset == self.new[key].offset:
            # If the write was refused for certain, another client wrote the value: no undo may touch it.
            return self._outcome(key, Outcome.UNCHANGED if answer.is_refused else Outcome.CONFIRMED, back, note)
        if answer.is_refused:
            return self._outcome(key, Outcome.REFUSED, back, answer.error)
        reads = f"can't be read back: {back.error}" if back.error else f"reads back as {_said(back)}"
        return self._outcome(
            key, Outcome.UNKNOWN, back, f"{answer.error or 'the write was accepted'}; the offset {reads}"
        )

    def _outcome(self, key: Key, outcome: Outcome, current: Stored, error: str | None = None) -> ItemOutcome:
        after = current.offset if current.error is None else None
        return ItemOutcome(item_of(key), outcome, self.old[key].offset, after, error)


def _with_parents(
    written: Sequence[Key], outcomes: Mapping[Key, ItemOutcome], writer: Writer
) -> dict[Key, ItemOutcome]:
    """Each parent that was created goes into the details of the first offset below it: an undo deletes no other."""
    left, noted = dict(writer.take_made_parents()), dict[Key, ItemOutcome]()
    for key in written if left else ():
        if mine := {path: left.pop(path) for path in parents_of(key) if path in left}:
            noted[key] = replace(outcomes[key], details={_PARENTS: mine})
    return noted


def _made_parents(acted: ActedRecord) -> dict[str, int]:
    """By path, the czxid of each parent that this run created."""
    made = dict[str, int]()
    for outcome in acted.outcomes:
        if isinstance(outcome.details, Mapping) and isinstance(parents := outcome.details.get(_PARENTS), Mapping):
            made |= {path: czxid for path, czxid in parents.items() if isinstance(czxid, int)}
    return made


def _batches(keys: Iterable[Key]) -> Iterator[list[Key]]:
    everything = list(keys)
    for start in range(0, len(everything), KEYS_PER_BATCH):
        yield everything[start : start + KEYS_PER_BATCH]


def _unlike(key: Key, wanted: Stored, current: Stored) -> str:
    return f"{item_of(key)}: wanted {_said(wanted)}, found {current.error or _said(current)}"


def _said(stored: Stored) -> str:
    return "none" if stored.offset is None else str(stored.offset)


def performer_of(context: PlanContext) -> OffsetsPerformer:
    return OffsetsPerformer(context.cluster)
