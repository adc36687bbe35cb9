"""An offset belongs to the topic that has its name now, or does not; old steps and files have no topic ids."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from kit.clients.broker_client import Deadline
from kit.engine.model.performer import Outcome
from kit.errors import PlanError
from kit.moves.offsets.fetch import Seen, agreed
from kit.moves.offsets.files import load_offsets, save_offsets
from kit.moves.offsets.group_steps import DeleteGroupsParameters, before_of as before_of_groups, delete_steps
from kit.moves.offsets.moves import OffsetTarget, Stored, clamp
from kit.moves.offsets.steps import OffsetStepParameters, after_of, before_of, offset_steps, remade
from kit.moves.offsets.topics import Present, Topic
from kit.tables.groups import LogOffset

OLD, NEW = "5s0dGiGXRZqN5NOYZmgYrw", "Qm9vLXRvcGljLWlkLTAxMQ"
PLACE = ("orders", 0)
LOG = {PLACE: LogOffset("orders", 0, 10, 40)}
BLIND = {PLACE: LogOffset("orders", 0, None, None, "no leader")}


@pytest.mark.parametrize(
    ("mine", "now", "offset", "logs", "outcome"),
    [
        (OLD, OLD, 500, {}, None),
        (OLD, NEW, 20, LOG, Outcome.REFUSED),
        (OLD, NEW, None, LOG, Outcome.REFUSED),
        (None, NEW, 20, LOG, None),
        (None, NEW, 10, LOG, None),
        (None, NEW, 40, LOG, None),
        (None, NEW, 41, LOG, Outcome.REFUSED),
        (OLD, None, 9, LOG, Outcome.REFUSED),
        (None, None, 20, BLIND, Outcome.NOT_ATTEMPTED),
        (None, None, 20, {}, Outcome.NOT_ATTEMPTED),
        (None, None, None, {}, None),
    ],
)
def test_an_offset_of_another_topic_is_misplaced(mine, now, offset, logs, outcome):
    """Without both ids, an offset outside the log is refused, and an unknown log proves nothing."""
    present = Present({"orders": Topic(now, {0: 3})}, logs)
    found = present.misplaced(PLACE, Stored(offset, topic_id=mine))
    assert (found and found.outcome) == outcome
    if (mine, now) == (OLD, NEW):
        assert f"its id is {NEW}, and the offset belongs to the topic with id {OLD}" in found.reason


def test_a_deleted_topic_is_gone_and_not_misplaced():
    assert Present({}).is_gone(PLACE)
    assert Present({}).misplaced(PLACE, Stored(20, topic_id=OLD)) is None
    smaller = Present({"orders": Topic(NEW, {0: 3})})
    assert smaller.misplaced(("orders", 1), Stored(20, topic_id=OLD)).outcome == Outcome.REFUSED


@pytest.mark.parametrize(
    ("mine", "present", "kept"),
    [(None, 3, None), (3, 3, 3), (0, 3, 0), (4, 3, None), (4, None, None), (None, None, None)],
)
def test_a_leader_epoch_above_the_present_one_is_not_written(mine, present, kept):
    topics = Present({"orders": Topic(OLD, {0: present})})
    stored = Stored(20, "m", mine, topic_id=OLD)
    assert topics.fetchable(PLACE, stored) == Stored(20, "m", kept)
    assert (topics.dropped_epoch(PLACE, stored) is None) == (mine == kept)
    assert topics.misplaced(PLACE, stored) is None


def test_without_topic_ids_a_leader_epoch_above_the_present_one_proves_another_log():
    present = Present({"orders": Topic(None, {0: 3})}, LOG)
    assert present.misplaced(PLACE, Stored(20, None, 3)) is None
    found = present.misplaced(PLACE, Stored(20, None, 4))
    assert (found.outcome, "leader epoch 4 is above" in found.reason) == (Outcome.REFUSED, True)


def test_steps_keep_the_ids_of_their_topics():
    moves = [clamp(OffsetTarget(("g", topic, 0), Stored(3), 5), 0, 9) for topic in ("orders", "unknown")]
    known = {"can_delete": True, "missing_parents": (), "new_groups": (), "topic_ids": {"orders": OLD, "other": NEW}}
    (step,) = offset_steps("kafka", moves, **known)
    assert OffsetStepParameters.of(step).topic_ids == {"orders": OLD}
    for offsets in (before_of(step), after_of(step)):
        assert [stored.topic_id for stored in offsets.values()] == [OLD, None]
    (step,) = delete_steps({"g": {("orders", 0): Stored(3)}}, (), known["topic_ids"])
    assert DeleteGroupsParameters.of(step).topic_ids == {"orders": OLD}
    assert before_of_groups(step)["g"]["orders", 0].topic_id == OLD


def test_a_step_of_an_older_version_has_no_topic_ids():
    move = clamp(OffsetTarget(("g", "orders", 0), Stored(3), 5), 0, 9)
    (step,) = offset_steps("kafka", [move], can_delete=True, missing_parents=(), new_groups=(), topic_ids={})
    assert "topic_ids" not in step.parameters
    assert remade(step) == step
    assert before_of(step)["g", "orders", 0].topic_id is None
    lacking = replace(step, parameters={name: it for name, it in step.parameters.items() if name != "kept"})
    with pytest.raises(PlanError, match="'kept' is missing"):
        before_of(lacking)


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
@pytest.mark.parametrize("topic_id", [OLD, "-Uj7zZ0sQ6q3mYt1bJxYVg", None])
def test_a_file_keeps_topic_ids(tmp_path, suffix, topic_id):
    """An id may begin as a spreadsheet's formula does."""
    path = tmp_path / f"offsets.{suffix}"
    key = ("g", "orders", 0)
    save_offsets(path, "cluster", "kafka", {key: Stored(5, topic_id=topic_id)}, datetime(2026, 1, 2, tzinfo=UTC))
    assert load_offsets(path, "cluster").offsets[key].topic_id == topic_id


def test_a_file_of_an_older_version_has_no_topic_ids(tmp_path):
    path = tmp_path / "offsets.csv"
    key = ("g", "orders", 0)
    save_offsets(path, "cluster", "kafka", {key: Stored(5, "m", 3)}, datetime(2026, 1, 2, tzinfo=UTC))
    text = path.read_text().replace('"format":3', '"format":2').replace(',"topic_id"', "").replace(',""', "")
    path.write_text("\n".join(line.removesuffix(",") for line in text.splitlines()) + "\n")
    stored = load_offsets(path, "cluster").offsets[key]
    assert (stored, stored.topic_id) == (Stored(5, "m", 3), None)


@pytest.mark.parametrize("late", [0, 2])
def test_brokers_that_disagree_about_a_topic_are_asked_again(late):
    paused = list[int]()

    def read() -> Seen:
        return Seen({}, set(), {"orders"} if len(paused) < late else set())

    assert agreed(read, paused.append, Deadline(60.0)).listed == set()
    assert paused == list(range(late))


def test_brokers_that_disagree_to_the_end_are_believed_in_nothing():
    found = agreed(lambda: Seen({}, set(), {"orders"}), lambda attempt: None, Deadline(0.0))
    assert found.listed == {"orders"}
