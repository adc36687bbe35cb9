"""Generations that a coordinator stored → who came, who went, which partitions moved."""

from __future__ import annotations

from datetime import timedelta

import polars as pl

from kit.rebalances.analyze.stored import topic_rebalances
from kit.tables import schema as tables
from tests.unit.rebalances.analyze.records import AT, stored_generations


def told(frame: pl.DataFrame, *columns: str) -> list[tuple]:
    return frame.select(columns).rows()


def test_members_that_come_and_go():
    found = topic_rebalances(
        stored_generations(
            ("g", 1, {"a": ["t-0", "t-1"]}),
            ("g", 2, {"a": ["t-0"], "b": ["t-1"]}),
            ("g", 3, {"b": ["t-0", "t-1"]}),
            ("g", 4, {}),
        )
    )
    assert found.schema == pl.DataFrame(tables.REBALANCES.schema.empty_table()).schema
    assert told(found, "generation", "members", "joined", "left") == [
        (1, ["a"], None, None),
        (2, ["a", "b"], ["b"], []),
        (3, ["b"], [], ["a"]),
        (4, [], [], ["b"]),
    ]
    assert told(found, "moved", "kept") == [(None, None), (["t-1"], ["t-0"]), (["t-0"], ["t-1"]), (None, None)]
    assert told(found, "leader_id", "assignor") == [("a", "range"), ("a", "range"), ("b", "range"), (None, None)]
    assert found["ended_at"].to_list() == [AT + timedelta(seconds=n) for n in range(4)]
    assert found["started_at"].null_count() == found["duration_ms"].null_count() == 4


def test_partitions_that_no_one_has_any_more():
    found = topic_rebalances(
        stored_generations(("g", 1, {"a": ["t-0", "t-1"]}), ("g", 2, {"a": ["t-0"]}), ("g", 3, {}))
    )
    assert found["partitions_without_known_owner"].to_list() == [[], ["t-1"], []]


def test_a_generation_that_was_compacted_away_leaves_its_neighbours_unknown():
    found = topic_rebalances(stored_generations(("g", 3, {"a": ["t-0"]}), ("g", 5, {"b": ["t-0"]})))
    assert told(found, "joined", "left", "moved") == [(None, None, None), (None, None, ["t-0"])]


def test_a_group_that_was_deleted_starts_again():
    found = topic_rebalances(stored_generations(("g", 1, {"a": ["t-0"]}), ("g", None, {}), ("g", 1, {"b": ["t-0"]})))
    assert told(found, "generation", "members", "joined", "moved") == [(1, ["a"], None, None), (1, ["b"], None, None)]


def test_one_generation_stored_twice_is_one_rebalance():
    found = topic_rebalances(
        stored_generations(("g", 1, {"a": ["t-0"]}), ("g", 1, {"a2": ["t-0"]}), ("g", 2, {"a2": ["t-0"]}))
    )
    assert told(found, "generation", "members", "joined") == [(1, ["a2"], None), (2, ["a2"], [])]
    assert found["ended_at"].to_list() == [AT, AT + timedelta(seconds=2)]


def test_groups_are_kept_apart_and_a_value_that_cant_be_read_is_no_rebalance():
    frame = stored_generations(("h", 1, {"a": ["t-0"]}), ("g", 1, {"b": ["t-0"]}), ("h", 2, {"a": ["t-0"]}))
    unread = frame.filter(pl.col("offset") == 1).with_columns(
        pl.lit(None, pl.Int64).alias("generation"), pl.lit("cut").alias("error")
    )
    found = topic_rebalances(pl.concat([frame.filter(pl.col("offset") != 1), unread]))
    assert told(found, "group_id", "generation", "kept") == [("h", 1, None), ("h", 2, ["t-0"])]


def test_nothing_stored_gives_no_rows():
    assert topic_rebalances(pl.DataFrame(tables.GROUP_GENERATIONS.schema.empty_table())).is_empty()
