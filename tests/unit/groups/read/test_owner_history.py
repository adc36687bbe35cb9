"""Lives of znodes put together from what a server said, in the order in which it said it."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from kit.errors import HistoryError
from kit.groups.read.znode_lives import Lives, load_owner_history
from kit.groups.read.znode_stream import Answer, ClusterState, Event
from kit.tables import schema as tables
from tests.generators.nasty_znodes import NASTY, PLACES

OWNER = "/consumers/g/owners/t/0"
MODE = "/consumers/g/migration/mode"


@pytest.fixture
def lives(tmp_path):
    return Lives("g", tmp_path / "owners.jsonl")


def stands(
    thread: str, czxid: int, created_ms: int, mzxid: int | None = None, modified_ms: int | None = None
) -> ClusterState:
    return ClusterState(thread.encode(), czxid, mzxid or czxid, created_ms, modified_ms or created_ms, 0xABC)


def answer(lives: Lives, at_ms: int, path: str, standing: ClusterState | None) -> None:
    lives.take_answer(Answer(at_ms, {path: standing}, None))


def lives_of(lives: Lives) -> list[tuple]:
    rows = sorted(lives.rows(), key=lambda row: (row.kind, row.from_ms))
    return [(row.member_id, row.from_ms, row.until_ms, row.ended_by) for row in rows]


def test_a_life_from_the_server_s_creation_to_the_report_of_its_end(lives):
    assert lives.take_event(Event(105, "CREATED", OWNER))
    answer(lives, 106, OWNER, stands("g_h-1-0", 7, 100))
    assert lives_of(lives) == [("g_h-1", 100, None, None)]
    assert not lives.take_event(Event(205, "DELETED", OWNER))
    assert lives_of(lives) == [("g_h-1", 100, 205, "deleted")]
    (row,) = lives.rows()
    assert (row.topic, row.partition, row.value, row.czxid, row.session_id) == ("t", 0, "g_h-1-0", 7, 0xABC)


def test_an_end_reported_late_is_no_later_than_what_is_there_next(lives):
    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    lives.take_event(Event(400, "DELETED", OWNER))
    lives.take_event(Event(401, "CREATED", OWNER))
    answer(lives, 402, OWNER, stands("g_h-2-0", 2, 120))
    assert lives_of(lives) == [("g_h-1", 10, 120, "deleted"), ("g_h-2", 120, None, None)]


def test_a_znode_gone_before_it_was_read_is_a_life_of_unknown_owner(lives):
    lives.take_event(Event(100, "CREATED", OWNER))
    lives.take_event(Event(101, "DELETED", OWNER))
    lives.take_event(Event(102, "CREATED", OWNER))
    answer(lives, 103, OWNER, stands("g_h-3-0", 9, 102))
    unknown, known = sorted(lives.rows(), key=lambda row: row.from_ms)
    assert (unknown.member_id, unknown.is_seen_late, unknown.from_ms, unknown.until_ms) == (None, True, 100, 101)
    assert "deleted before it could be read" in unknown.error
    assert (known.member_id, known.error) == ("g_h-3", None)


def test_a_znode_not_read_yet_is_reported_as_unknown(lives):
    lives.take_event(Event(100, "CREATED", OWNER))
    (row,) = lives.rows()
    assert row.member_id is None
    assert row.error


def test_a_znode_made_again_while_no_one_listened_is_another_life(lives):
    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    answer(lives, 900, OWNER, stands("g_h-1-0", 5, 700))
    assert lives_of(lives) == [("g_h-1", 10, 700, "replaced"), ("g_h-1", 700, None, None)]
    answer(lives, 1000, OWNER, None)
    assert lives_of(lives)[-1] == ("g_h-1", 700, 1000, "missed")


def test_a_changed_value_is_another_life(lives):
    answer(lives, 50, MODE, stands("zookeeper", 1, 10))
    assert lives.take_event(Event(90, "CHANGED", MODE))
    answer(lives, 91, MODE, stands("kafka", 1, 10, 4, 88))
    rows = sorted(lives.rows(), key=lambda row: row.from_ms)
    assert [(row.value, row.from_ms, row.until_ms, row.ended_by) for row in rows] == [
        ("zookeeper", 10, 88, "changed"),
        ("kafka", 88, None, None),
    ]


def test_the_same_value_again_is_the_same_life(lives):
    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    answer(lives, 60, OWNER, stands("g_h-1-0", 1, 10, 4, 55))
    assert lives_of(lives) == [("g_h-1", 10, None, None)]


def test_members_and_other_paths(lives):
    assert lives.take_event(Event(1, "CREATED", "/consumers/g/ids/g_h-1"))
    assert not lives.take_event(Event(1, "CREATED", "/consumers/g/owners/t"))
    assert not lives.take_event(Event(1, "CHANGED", "/consumers/g/ids/g_h-1"))
    answer(lives, 2, "/consumers/g/ids/g_h-1", stands("{}", 3, 1))
    (row,) = lives.rows()
    assert (row.kind, row.member_id, row.value) == ("member", "g_h-1", None)


def test_an_owner_znode_that_holds_no_thread_id(lives):
    answer(lives, 2, OWNER, stands("nobody", 3, 1))
    (row,) = lives.rows()
    assert row.member_id is None
    assert "holds 'nobody'" in row.error


def test_the_time_of_watching_ends_where_it_was_proven(lives):
    lives.watch(100)
    lives.proven_ms = 150
    assert lives_of(lives) == [(None, 100, 150, None)]
    lives.unwatch("missed")
    lives.watch(300)
    lives.unwatch("stopped")
    assert lives_of(lives) == [(None, 100, 150, "missed"), (None, 300, 300, "stopped")]


def test_the_file_gives_the_same_lives_back(lives, tmp_path):
    lives.watch(40)
    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    lives.take_event(Event(400, "DELETED", OWNER))
    lives.take_event(Event(401, "CREATED", OWNER))
    answer(lives, 402, OWNER, stands("g_h-2-0", 2, 120))
    lives.proven_ms = 500
    lives.unwatch("stopped")
    file = tmp_path / "owners.jsonl"
    assert set(load_owner_history(file)) == set(lives.rows())
    with file.open("a") as lines:
        lines.write('{"group_id": "g", "ki')
    assert set(load_owner_history(file)) == set(lives.rows())


def test_a_killed_watcher_has_proven_nothing_after_its_last_line(lives, tmp_path):
    lives.watch(40)
    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    lives.take_event(Event(400, "DELETED", OWNER))
    watch = next(row for row in load_owner_history(tmp_path / "owners.jsonl") if row.kind == "watch")
    assert (watch.from_ms, watch.until_ms, watch.ended_by) == (40, 400, "missed")


def test_a_file_of_something_else_is_refused(tmp_path):
    file = tmp_path / "other.jsonl"
    file.write_text(json.dumps({"at_ms": 1}) + "\n")
    with pytest.raises(HistoryError, match="not a history of owner znodes"):
        load_owner_history(file)
    with pytest.raises(HistoryError):
        load_owner_history(tmp_path / "none.jsonl")


def test_rows_fit_their_table(lives):
    from kit.tables import schema as tables

    answer(lives, 50, OWNER, stands("g_h-1-0", 1, 10))
    lives.watch(60)
    table = tables.OWNER_HISTORY.from_rows(lives.rows())
    assert table.to_pylist() == [asdict(row) for row in lives.rows()]


def lives_that_hold(data: bytes, place: str) -> Lives:
    lives = Lives("g", None)
    for path in (
        f"owners/orders/{place}",
        f"ids/{place}",
        "migration/mode",
        f"migration/ids/{place}",
        f"owners/{place}",
    ):
        whole = f"/consumers/g/{path}"
        lives.take_event(Event(1, "CREATED", whole))
        lives.take_answer(Answer(2, {whole: ClusterState(data, 1, 1, 1, 1, 0)}, None))
        lives.take_event(Event(3, "DELETED", whole))
    return lives


@pytest.mark.parametrize("place", PLACES)
def test_a_watcher_takes_whatever_znodes_hold(place):
    rows = tables.OWNER_HISTORY.from_rows([row for data in NASTY for row in lives_that_hold(data, place).rows()])
    assert set(rows["partition"].to_pylist()) <= {None, 0, 1, 7, 2147483647}
    assert max(len(error or "") for error in rows["error"].to_pylist()) < 1_000


@pytest.mark.parametrize("line", ["[" * 100_000, "[]", "5", '{"group_id": 1}', "²"])
def test_a_file_that_holds_something_else_is_reported(tmp_path, line):
    file = tmp_path / "lives.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(HistoryError, match="is not a history"):
        load_owner_history(file)
