"""Whatever the stores do, an offset's outcome is true, none is lost, none leaves its log, none goes back unasked."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from hypothesis import given, settings, strategies as st

from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, StepState
from kit.engine.model.plan import parse_plan
from kit.engine.model.values import parse_json, readable
from kit.errors import NothingToDo, UnsafePlan
from kit.moves.offsets import build
from kit.moves.offsets.build import build_plan
from kit.moves.offsets.fetch import GroupInStore, Stores
from kit.moves.offsets.files import load_offsets, save_offsets
from kit.moves.offsets.inputs import PlanInputs, PlanOptions
from kit.moves.offsets.kafka import ACCEPTED, Answer
from kit.moves.offsets.moves import OffsetTarget, Stored, clamp, item_of, parse_item
from kit.moves.offsets.performer import OffsetsActor, _Batch
from kit.moves.offsets.steps import after_of, before_of, offset_steps, remade
from kit.moves.offsets.topics import Present, Topic
from kit.moves.undo_rights import UNDO_RIGHTS
from kit.tables.groups import LogOffset
from tests.reporting import Permissive

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OFFSETS = st.integers(0, 30)
topics = st.text("abc.-_", min_size=1, max_size=6)
group_ids = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)


@given(st.integers(-50, 80), OFFSETS, OFFSETS, st.none() | OFFSETS)
def test_a_clamped_offset_is_within_its_log_and_reports_why(wanted, one, other, before):
    start, end = sorted((one, other))
    move = clamp(OffsetTarget(("g", "t", 0), Stored(before), wanted), start, end)
    assert start <= move.after <= end
    assert (move.reason is None) == (move.after == wanted)
    again = clamp(OffsetTarget(("g", "t", 0), Stored(move.after), move.after), start, end)
    assert (again.after, again.is_change, again.reason) == (move.after, False, None)
    assert move.is_backwards == (before is not None and move.after < before)


@given(group_ids, topics, st.integers(0, 10_000))
def test_an_item_is_read_back_as_its_key(group_id, topic, partition):
    assert parse_item(item_of((group_id, topic, partition))) == (group_id, topic, partition)


rows = st.dictionaries(
    st.tuples(group_ids, topics, st.integers(0, 2**31 - 1)),
    st.builds(
        Stored,
        st.integers(0, 2**63 - 1),
        st.none() | st.text(st.characters(codec="utf-8"), min_size=1),
        st.none() | st.integers(0, 2**31 - 1),
    ),
    max_size=5,
)


@settings(deadline=None, max_examples=40)
@given(rows, st.sampled_from(["jsonl", "csv"]))
def test_a_file_holds_any_text_as_it_was(offsets, suffix):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"offsets.{suffix}"
        save_offsets(path, "c", "kafka", offsets, NOW)
        assert load_offsets(path, "c").offsets == offsets


KEYS = [("g", "t", number) for number in range(4)]
FAULTS = ("none", "refused", "lost before", "lost after", "moved before", "moved after", "unreadable")


class Store:
    """One store in memory that does to each write what it is reported to."""

    can_delete = True

    def __init__(self, values, faults) -> None:
        self.values, self.faults, self.written = dict(values), dict(faults), set()
        self.made, self.removed = {}, {}

    def read(self, keys):
        return {key: self._seen(key) for key in keys}

    def _seen(self, key):
        is_hidden = self.faults.get(key) == "unreadable"
        return Stored(error="not now") if is_hidden else Stored(self.values.get(key))

    def write(self, wanted, known):
        return {key: self._write(key, stored) for key, stored in wanted.items()}

    def _write(self, key, stored):
        fault = self.faults.get(key, "none")
        if fault == "refused":
            return Answer("no")
        if fault == "moved before":
            self.values[key] = 99
            return Answer("somebody wrote this")
        if fault == "lost before":
            return Answer("lost", is_certain=False)
        self.values[key] = stored.offset
        self.written.add(key)
        if fault == "moved after":
            self.values[key] = 99
        return Answer("lost", is_certain=False) if fault == "lost after" else ACCEPTED

    def take_made_parents(self):
        made, self.made = self.made, {}
        return made

    def remove_parents(self, made):
        self.removed |= made


values = st.dictionaries(st.sampled_from(KEYS), OFFSETS)
faults = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(FAULTS))


@given(values, values, values, faults)
def test_an_outcome_shows_what_happened(there, old, new, wrong):
    store = Store(there, wrong)
    batch = _Batch({key: Stored(old.get(key)) for key in new}, {key: Stored(offset) for key, offset in new.items()})
    outcomes = batch.carry_out(store, lambda offsets: Present({}), Permissive())
    assert [it.item for it in outcomes] == [item_of(key) for key in new]
    for key, it in zip(new, outcomes):
        if it.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED):
            assert store.values.get(key) == new[key] == it.after
        if it.outcome == Outcome.CONFIRMED:
            assert there.get(key) == old.get(key), "a value was overwritten that nobody had planned with"
        if it.outcome in (Outcome.UNCHANGED, Outcome.REFUSED, Outcome.NOT_ATTEMPTED):
            assert key not in store.written
        assert (it.error is None) == (it.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED))


def plan_of(before, wanted, logs, **options):
    """A plan for one group of Kafka; no cluster is asked anything. ``wanted``: None deletes."""
    held = {key[1:]: Stored(offset, "m") for key, offset in before.items()}
    stores = Stores({"g": GroupInStore("Empty", (), held)}, None)
    client = SimpleNamespace(supports=lambda request, version: True)
    cluster = SimpleNamespace(broker_client=client, confirmed_id=lambda: "c", name="c", zookeeper=None)
    inputs = PlanInputs(cluster, "reset", "kafka", stores, logs, PlanOptions("ann", NOW, **options))
    may_all = UNDO_RIGHTS.found(True, "all")
    with patch.object(build, "kafka_finding", lambda *needed: may_all):
        return build_plan(inputs, [OffsetTarget(key, inputs.committed(key), offset) for key, offset in wanted.items()])


logs = st.fixed_dictionaries(
    {
        key[1:]: st.tuples(OFFSETS, OFFSETS).map(lambda pair, place=key[1:]: LogOffset(*place, min(pair), max(pair)))
        for key in KEYS
    }
)
wishes = st.dictionaries(st.sampled_from(KEYS), st.integers(-5, 40), min_size=1)


@given(values, wishes, logs, st.sampled_from([{}, {"allow_backwards": True}, {"skip_backwards": True}]))
def test_a_plan_leaves_no_log_and_goes_back_only_when_asked(before, wanted, logs, allowed):
    targets = {
        key: min(max(offset, logs[key[1:]].log_start_offset), logs[key[1:]].log_end_offset)
        for key, offset in wanted.items()
    }
    changed = {key: after for key, after in targets.items() if before.get(key) != after}
    backwards = {key for key, after in changed.items() if key in before and after < before[key]}
    expected = {key: after for key, after in changed.items() if "skip_backwards" not in allowed or key not in backwards}
    try:
        plan = plan_of(before, wanted, logs, **allowed)
    except UnsafePlan:
        assert backwards
        assert not allowed
        return
    except NothingToDo:
        assert not expected
        return
    assert not backwards or allowed
    (step,) = plan.steps
    assert {key: stored.offset for key, stored in after_of(step).items()} == expected
    assert {key: stored.offset for key, stored in before_of(step).items()} == {key: before.get(key) for key in expected}
    skipped = backwards if "skip_backwards" in allowed else set()
    assert set(plan.parameters["left_out"]) == {item_of(key) for key in skipped}
    assert parse_plan(parse_json(readable(plan.to_json())), "the plan").digest == plan.digest
    nothing_left = {**before, **expected}
    with pytest.raises(NothingToDo):  # a plan that was executed wants nothing more
        plan_of(nothing_left, expected, logs)


class ModelActor(OffsetsActor):
    """The actor on a store in memory."""

    def __init__(self, store) -> None:
        super().__init__(SimpleNamespace(broker_client=None))
        self.store = store

    gone = frozenset()

    def _present(self, offsets):
        left = [key[2] for key in KEYS if key not in self.gone]
        return Present(
            {"t": Topic(None, dict.fromkeys(left, 0))},
            {("t", number): LogOffset("t", number, 0, 1000) for number in left},
        )

    def _writer(self, step):
        return self.store


@given(values, wishes, logs, faults)
def test_acting_twice_is_acting_once_and_undo_leads_back(before, wanted, logs, wrong):
    try:
        step = plan_of(before, wanted, logs, allow_backwards=True).steps[0]
    except NothingToDo:
        return
    wrong = {key: fault for key, fault in wrong.items() if fault in ("refused", "lost before", "lost after")}
    actor = ModelActor(Store(before, wrong))
    assert actor.state(step) == StepState.NOT_DONE
    actor.act(step, Permissive())
    actor.store.faults.clear()
    report = Permissive()
    outcomes = actor.act(step, report)
    assert list(outcomes) == report.told
    assert {it.outcome for it in outcomes} <= {Outcome.CONFIRMED, Outcome.UNCHANGED}
    assert (actor.state(step), actor.verify(step).ok) == (StepState.DONE, True)
    was_written = actor.store.written
    actor.store.written = set()
    actor.act(step, report)
    assert (actor.store.written, was_written) == (set(), set(after_of(step)))
    written = tuple(replace(it, outcome=Outcome.CONFIRMED) for it in outcomes)
    actor.undo(step, ActedRecord(step.step_id, written), report)
    assert actor.state(step) == StepState.NOT_DONE
    assert {key: stored for key, stored in actor.store.values.items() if stored is not None} == before


def deleting(before):
    """The step that deletes all of these."""
    return plan_of(before, dict.fromkeys(before), {}, overrides=("kept_elsewhere",)).steps[0]


@given(values.filter(bool), faults, st.sets(st.sampled_from(KEYS)))
def test_deleted_offsets_come_back_but_for_topics_that_are_gone(before, wrong, gone):
    step = deleting(before)
    assert remade(step) == step
    wrong = {key: fault for key, fault in wrong.items() if fault in ("refused", "lost before", "lost after")}
    actor = ModelActor(Store(before, wrong))
    acted = ActedRecord(step.step_id, tuple(actor.act(step, Permissive())))
    actor.store.faults.clear()
    actor.gone = {key for key in gone if actor.store.values.get(key) is None}
    again = ModelActor(actor.store)  # another process
    again.gone = actor.gone
    again.undo(step, acted, Permissive())
    assert again.state(step, acted) == StepState.NOT_DONE
    left = {key: offset for key, offset in actor.store.values.items() if offset is not None}
    assert left == {key: offset for key, offset in before.items() if key not in actor.gone}


def test_an_undo_removes_the_parents_that_this_run_made_and_no_other():
    moves = [clamp(OffsetTarget((group_id, "t", 0), Stored(), 5), 0, 9) for group_id in ("a", "b")]
    missing = {f"/consumers/{group_id}{below}" for group_id in ("a", "b") for below in ("", "/offsets", "/offsets/t")}
    (step,) = offset_steps("zookeeper", moves, can_delete=True, missing_parents=missing, new_groups=(), topic_ids={})
    actor = ModelActor(Store({}, {}))
    mine = {"/consumers/a/offsets": 7, "/consumers/a/offsets/t": 8, "/consumers/b/offsets/t": 9}
    actor.store.made = dict(mine)
    outcomes = {it.item: it for it in actor.act(step, Permissive())}
    acted = ActedRecord(step.step_id, (outcomes["a/t-0"], ItemOutcome("b/t-0", Outcome.NOT_ATTEMPTED)))
    actor.undo(step, acted, Permissive())
    assert actor.store.removed == {path: czxid for path, czxid in mine.items() if "/a/" in path}


def test_a_request_that_was_moved_to_the_end_is_not_as_wanted_already():
    key = ("g", "t", 0)
    log = {("t", 0): LogOffset("t", 0, 0, 10)}
    with pytest.raises(
        NothingToDo, match="no offset would change, but 1 of 1 offset are not as requested: g/t-0: 99 is"
    ):
        plan_of({key: 10}, {key: 99}, log)
    with pytest.raises(NothingToDo, match=r"every offset is as requested already$"):
        plan_of({key: 10}, {key: 10}, log)
