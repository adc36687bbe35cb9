"""The lag rule, one vector per case of specs: what was committed, what the log holds, what an operator must see."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from kit.analyze import group_lag, member_lag, partition_lag, topic_lag
from kit.tables import schema as tables
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group,
    LogOffset,
    Ownership,
    Subscription,
    TopicPartition,
)


def committed(partition: int, offset: int | None, error: str | None = None, store: str = ZOOKEEPER, group: str = "g"):
    return CommittedOffset(group, store, "t", partition, offset, None, None, None, None, None, error)


def log(partition: int, start: int | None, end: int | None, error: str | None = None) -> LogOffset:
    return LogOffset("t", partition, start, end, error)


def owned(partition: int, member_id: str | None, source: str = ZOOKEEPER, error: str | None = None) -> Ownership:
    return Ownership("g", source, "t", partition, member_id, f"{member_id}-0", None, None, error)


def placed(partition: int, leader: int | None = 1, topic: str = "t") -> TopicPartition:
    error = None if leader else "no leader: the partition is offline"
    return TopicPartition(topic, partition, False, leader, 1, (1, 2), (1, 2), error)


def lag_of(
    commits: list[CommittedOffset],
    logs: list[LogOffset],
    owners: list[Ownership] = [],  # noqa: B006
    subscribed: list[Subscription] = [],  # noqa: B006
    partitions: list[TopicPartition] | None = None,
    groups: list[Group] | None = None,
) -> list[dict[str, Any]]:
    rows = partitions if partitions is not None else [placed(each.partition) for each in logs]
    frames = [
        pl.from_arrow(table.from_rows(given))
        for table, given in (
            (tables.COMMITTED_OFFSETS, commits),
            (tables.LOG_OFFSETS, logs),
            (tables.OWNERSHIP, owners),
            (tables.SUBSCRIPTIONS, subscribed),
            (tables.TOPIC_PARTITIONS, rows),
        )
    ]
    failed = None if groups is None else pl.from_arrow(tables.GROUPS.from_rows(groups))
    lag = partition_lag(*frames, failed)
    return lag.sort("group_id", "store", "topic", "partition").to_dicts()


def numbers(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("lag_raw", "lag", "lag_retained", "expired_unread", "has_no_commit", "error"))


@pytest.mark.parametrize(
    ("commit", "start", "end", "expected"),
    [
        pytest.param(40, 0, 100, (60, 60, 60, 0, False, None), id="behind"),
        pytest.param(100, 0, 100, (0, 0, 0, 0, False, None), id="caught up"),
        pytest.param(103, 0, 100, (-3, 0, 0, 0, False, None), id="negative raw: the commit is beyond the end"),
        pytest.param(5000, 0, 10, (-4990, 0, 0, 0, False, None), id="topic recreated"),
        pytest.param(20, 50, 100, (80, 80, 50, 30, False, None), id="commit below log start: 30 records are lost"),
        pytest.param(50, 50, 100, (50, 50, 50, 0, False, None), id="commit at log start"),
        pytest.param(20, 100, 100, (80, 80, 0, 80, False, None), id="everything was deleted"),
        pytest.param(0, 0, 0, (0, 0, 0, 0, False, None), id="empty partition"),
        pytest.param(2**40, 0, 2**40 + 7, (7, 7, 7, 0, False, None), id="beyond 32 bits"),
    ],
)
def test_parts_are_derived_from_commit_start_and_end(commit: int, start: int, end: int, expected: Any) -> None:
    (row,) = lag_of([committed(0, commit)], [log(0, start, end)])
    assert numbers(row) == expected
    assert (row["committed_offset"], row["log_start_offset"], row["log_end_offset"]) == (commit, start, end)


def test_an_unreadable_commit_is_unknown_never_zero_and_not_uncommitted() -> None:
    (row,) = lag_of([committed(0, None, "not a number")], [log(0, 0, 100)])
    assert numbers(row) == (None, None, None, None, False, "committed offset: not a number")


def test_no_commit_is_uncommitted_and_its_lag_is_null() -> None:
    (row,) = lag_of([], [log(0, 0, 100)], owners=[owned(0, "g_a")])
    assert numbers(row) == (None, None, None, None, True, None)
    assert row["member_id"] == "g_a"


def test_an_offset_row_that_holds_nothing_is_uncommitted() -> None:
    first, second = lag_of([committed(0, 7), committed(1, None)], [log(0, 0, 9), log(1, 0, 9)])
    assert (first["has_no_commit"], second["has_no_commit"]) == (False, True)


def test_a_leaderless_partition_has_no_lag_and_reports_why() -> None:
    (row,) = lag_of([committed(0, 5)], [], partitions=[placed(0, leader=None)])
    assert numbers(row) == (None, None, None, None, False, "log offsets: no leader: the partition is offline")


def test_an_unknown_log_start_leaves_the_plain_lag_known() -> None:
    (row,) = lag_of([committed(0, 5)], [log(0, None, 9, "NOT_LEADER_OR_FOLLOWER")])
    assert numbers(row) == (4, 4, None, None, False, "log offsets: NOT_LEADER_OR_FOLLOWER")


def test_an_unknown_log_end_leaves_what_was_lost_known() -> None:
    (row,) = lag_of([committed(0, 5)], [log(0, 9, None, "timed out")])
    assert numbers(row) == (None, None, None, 4, False, "log offsets: timed out")


def test_a_committed_partition_of_a_deleted_topic_reports_it() -> None:
    (row,) = lag_of([committed(3, 5)], [], partitions=[])
    assert row["lag"] is None
    assert row["error"] == "log offsets: no such topic-partition (deleted, or the topic was recreated smaller)"


def test_a_partition_that_was_not_read_is_unknown() -> None:
    (row,) = lag_of([committed(0, 5)], [], partitions=[placed(0)])
    assert numbers(row)[-1] == "log offsets: not read"


def test_reasons_are_put_together() -> None:
    (row,) = lag_of(
        [committed(0, None, "no authentication")],
        [log(0, None, None, "no leader")],
        owners=[owned(0, None, error="the owner znode holds 'x'")],
    )
    reasons = "committed offset: no authentication; log offsets: no leader; owner: the owner znode holds 'x'"
    assert row["error"] == reasons


def test_assigned_committed_and_subscribed_partitions_are_considered() -> None:
    rows = lag_of(
        [committed(0, 1)],
        [log(each, 0, 10) for each in range(4)],
        owners=[owned(1, "g_a")],
        subscribed=[Subscription("g", ZOOKEEPER, "g_a", "t", 2)],
        partitions=[placed(each) for each in range(3)],
    )
    assert [(row["partition"], row["has_no_commit"], row["member_id"]) for row in rows] == [
        (0, False, None),
        (1, True, "g_a"),
        (2, True, None),
    ]


def test_both_stores_have_their_own_rows_and_their_own_owners() -> None:
    kafka, zookeeper = lag_of(
        [committed(0, 4), committed(0, 6, store=KAFKA)],
        [log(0, 0, 10)],
        owners=[owned(0, "g_a"), owned(0, "g_a-uuid", KAFKA)],
    )
    assert (kafka["store"], kafka["lag"], kafka["member_id"]) == (KAFKA, 4, "g_a-uuid")
    assert (zookeeper["store"], zookeeper["lag"], zookeeper["member_id"]) == (ZOOKEEPER, 6, "g_a")


def test_a_commit_that_one_store_lacks_is_uncommitted_there() -> None:
    rows = lag_of([committed(0, 4), committed(1, 4), committed(1, 6, store=KAFKA)], [log(0, 0, 10), log(1, 0, 10)])
    assert [(row["store"], row["partition"], row["has_no_commit"]) for row in rows] == [
        (KAFKA, 0, True),
        (KAFKA, 1, False),
        (ZOOKEEPER, 0, False),
        (ZOOKEEPER, 1, False),
    ]


def test_a_store_without_an_offset_of_the_group_is_not_its_store() -> None:
    rows = lag_of([committed(0, 6, store=KAFKA)], [log(0, 0, 10)], owners=[owned(0, "g_a")])
    assert [(row["store"], row["member_id"]) for row in rows] == [(KAFKA, "g_a")]


def test_a_group_without_any_offset_is_placed_where_its_members_are() -> None:
    (row,) = lag_of([], [log(0, 0, 10)], subscribed=[Subscription("g", KAFKA, "m", "t", 1)])
    assert (row["store"], row["has_no_commit"]) == (KAFKA, True)


def test_a_failed_group_hides_whether_something_was_committed() -> None:
    failed = Group(
        "g", KAFKA, "Stable", None, None, None, 1, "the group's committed offsets can't be read: NOT_COORDINATOR"
    )
    (row,) = lag_of([], [log(0, 0, 10)], owners=[owned(0, "m", KAFKA)], groups=[failed])
    assert row["has_no_commit"] is False
    assert row["error"] == "group: the group's committed offsets can't be read: NOT_COORDINATOR"


def test_the_first_by_name_of_two_kafka_owners_is_shown_and_the_partition_counts_once() -> None:
    rows = lag_of([committed(0, 6, store=KAFKA)], [log(0, 0, 10)], [owned(0, "b", KAFKA), owned(0, "a", KAFKA)])
    assert [row["member_id"] for row in rows] == ["a"]


def test_the_lag_of_a_share_group_is_the_brokers_count_or_else_an_upper_bound() -> None:
    group = Group("g", KAFKA, "Stable", "share", "share", "simple", 1)
    starts = [
        replace(committed(0, 4, store=KAFKA), unfinished=2),
        committed(1, 4, store=KAFKA),
        committed(2, None, store=KAFKA),
    ]
    owners = [replace(owned(0, name, KAFKA), is_shared=True) for name in ("a", "b")]
    rows = lag_of(starts, [log(0, 0, 10), log(1, 0, 10), log(2, 0, 10)], owners, groups=[group])
    assert [(row["lag"], row["lag_retained"], row["is_upper_bound"]) for row in rows] == [
        (2, 2, False),
        (6, 6, True),
    ] + [(None, None, False)] * (len(rows) - 2)
    (total,) = group_lag(pl.DataFrame(rows)).to_dicts()
    assert (total["lag"], total["n_upper_bounds"]) == (8, 1)


@pytest.fixture
def mixed() -> pl.DataFrame:
    """Owned by a: lag 6 and an unreadable commit; owned by b: 30 lost; unowned: nothing committed."""
    rows = lag_of(
        [committed(0, 4), committed(1, None, "broken"), committed(2, 20)],
        [log(0, 0, 10), log(1, 0, 10), log(2, 50, 100), log(3, 0, 10)],
        owners=[owned(0, "g_a"), owned(1, "g_a"), owned(2, "g_b")],
        subscribed=[Subscription("g", ZOOKEEPER, "g_a", "t", 1)],
    )
    return pl.DataFrame(rows)


def test_group_totals_skip_and_count_what_is_unknown(mixed: pl.DataFrame) -> None:
    assert group_lag(mixed).to_dicts() == [
        {
            "group_id": "g",
            "store": ZOOKEEPER,
            "n_partitions": 4,
            "n_unowned": 1,
            "n_unknown": 2,
            "n_without_commit": 1,
            "n_beyond_end": 0,
            "n_upper_bounds": 0,
            "lag": 86,
            "max_lag": 80,
            "lag_retained": 56,
            "expired_unread": 30,
        }
    ]


def test_topic_totals_name_the_topic(mixed: pl.DataFrame) -> None:
    (row,) = topic_lag(mixed).to_dicts()
    assert (row["topic"], row["lag"], row["n_unowned"]) == ("t", 86, 1)


def test_member_totals_keep_the_unowned_apart_and_unknown_stays_null(mixed: pl.DataFrame) -> None:
    rows = member_lag(mixed).sort("member_id", nulls_last=True).to_dicts()
    shown = [(row["member_id"], row["lag"], row["n_unknown"], row["n_without_commit"]) for row in rows]
    assert shown == [("g_a", 6, 1, 0), ("g_b", 80, 0, 0), (None, None, 1, 1)]


def test_nothing_known_sums_to_null_not_zero() -> None:
    rows = lag_of([committed(0, None, "broken")], [log(0, 0, 10)])
    (total,) = group_lag(
        pl.DataFrame(rows, schema_overrides={"lag": pl.Int64, "expired_unread": pl.Int64, "beyond_end": pl.Int64})
    ).to_dicts()
    assert (total["lag"], total["max_lag"], total["expired_unread"], total["n_unknown"]) == (None, None, None, 1)
