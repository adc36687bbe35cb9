"""Offsets that a group left in a store: told only where one look can tell, and then in no total and no finding."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from kit import analyze, views
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group,
    LogOffset,
    Member,
    Ownership,
    Subscription,
    TopicPartition,
)

KC = Member("g", KAFKA, "kc-1", "kc", *[None] * 6)
OZKCC = Member("g", ZOOKEEPER, "old", None, None, None, None, False, None, None)
MEZKCC = Member("g", ZOOKEEPER, "new", None, None, None, None, True, None, None)
EKC = Member("g", KAFKA, "new-1", "new", *[None] * 6)


def committed(store: str, *offsets: int) -> list[CommittedOffset]:
    return [CommittedOffset("g", store, "t", number, offset, *[None] * 5) for number, offset in enumerate(offsets)]


def snapshot(
    members: list[Member], commits: list[CommittedOffset], error: str | None = None, group: str = "g"
) -> Snapshot[pl.DataFrame]:
    """One group on a topic of two partitions that end at 1,000; the first member has both."""
    owner = members[0] if members else None
    rows = {
        "groups": [Group("g", source, "Stable", None, None, None, None, error) for source in (ZOOKEEPER, KAFKA)],
        "members": members,
        "committed_offsets": commits,
        "subscriptions": [Subscription("g", owner.source, owner.member_id, "t", 1)] if owner else [],
        "ownership": [
            Ownership("g", owner.source, "t", number, owner.member_id, None, None, None)
            for number in range(2)
            if owner is not None
        ],
        "topic_partitions": [TopicPartition("t", number, False, 1, 0, (1,), (1,)) for number in range(2)],
        "log_offsets": [LogOffset("t", number, 0, 1000) for number in range(2)],
    }
    frames = {table.name: pl.DataFrame(table.from_rows(rows.get(table.name, []))) for table in tables.ALL}
    return Snapshot(snapshot_id="s", **frames)


BOTH = [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 990, 1000)]
ZOOKEEPER_AHEAD = [*committed(ZOOKEEPER, 990, 1000), *committed(KAFKA, 100, 1000)]


@pytest.mark.parametrize(
    ("members", "commits", "expected"),
    [
        pytest.param([KC], BOTH, ZOOKEEPER, id="plain consumers never read ZooKeeper"),
        pytest.param([KC], ZOOKEEPER_AHEAD, ZOOKEEPER, id="even if it is ahead: Kafka's offsets were reset"),
        pytest.param([KC], committed(ZOOKEEPER, 100, 100), ZOOKEEPER, id="even if they commit nothing"),
        pytest.param([KC], committed(KAFKA, 1, 1), None, id="nothing in ZooKeeper"),
        pytest.param([OZKCC], ZOOKEEPER_AHEAD, KAFKA, id="old consumers that commit to ZooKeeper"),
        pytest.param([OZKCC], BOTH, None, id="old ones that may commit to Kafka, or were wound back"),
        pytest.param([OZKCC], [*committed(ZOOKEEPER, 5), *committed(KAFKA, 5)], None, id="equal"),
        pytest.param([MEZKCC, EKC], BOTH, None, id="migration-enabled ones may commit to both"),
        pytest.param([OZKCC, KC], BOTH, None, id="an unsafe mix uses both"),
        pytest.param([], BOTH, None, id="nobody uses either"),
    ],
)
def test_a_store_is_stale_only_if_surely_nobody_uses_it(members, commits, expected):
    found = views.stale_stores(snapshot(members, commits))
    assert found.rows() == ([("g", expected)] if expected else [])


def test_nothing_is_claimed_of_a_group_that_could_not_be_read():
    assert views.stale_stores(snapshot([KC], BOTH, error="refused")).is_empty()


def test_a_stale_lag_is_marked_and_counts_nowhere():
    found = snapshot([KC], BOTH)
    lag = views.lag(found).sort("store", "partition")
    assert lag.select("store", "lag", "is_stale").rows() == [
        ("kafka", 10, False),
        ("kafka", 0, False),
        ("zookeeper", 900, True),
        ("zookeeper", 900, True),
    ]
    assert views.group_lag(lag).select("store", "lag").rows() == [("kafka", 10)]
    assert analyze.topic_lag(lag)["lag"].to_list() == [10]
    assert analyze.member_lag(lag)["lag"].to_list() == [10]
    (row,) = views.summary(found).to_dicts()
    assert (row["zookeeper_lag"], row["kafka_lag"], row["stale_store"]) == (None, 10, ZOOKEEPER)


@pytest.mark.parametrize(
    ("members", "commits", "store", "lag"),
    [
        pytest.param([], BOTH, KAFKA, 10, id="nobody is left: the store that is ahead"),
        pytest.param([], ZOOKEEPER_AHEAD, ZOOKEEPER, 10, id="nobody is left, and it is ZooKeeper"),
        pytest.param([], [*BOTH[:2], *committed(KAFKA, 1000)], ZOOKEEPER, 1800, id="one partition is no store in use"),
        pytest.param([OZKCC], BOTH, ZOOKEEPER, 1800, id="old consumers: by the mode in effect, wound back or not"),
        pytest.param([OZKCC], committed(KAFKA, 5, 5), KAFKA, 1990, id="the only one that has offsets"),
        pytest.param([MEZKCC, EKC], BOTH, ZOOKEEPER, 1800, id="both in use: by the mode in effect"),
        pytest.param([KC], BOTH, KAFKA, 10, id="plain Kafka consumers"),
        pytest.param([KC], committed(ZOOKEEPER, 1, 1), None, None, id="nothing but what was left over"),
    ],
)
def test_a_groups_lag_is_that_of_the_store_in_use(members, commits, store, lag):
    (row,) = views.summary(snapshot(members, commits)).to_dicts()
    assert (row["store_in_use"], row["lag"]) == (store, lag)


def test_offsets_left_over_do_not_make_a_group_without_members_hurt():
    (row,) = views.summary(snapshot([], [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 1000, 1000)])).to_dicts()
    assert (row["attention"], row["lag"]) == (None, 0)


def test_the_group_with_the_most_lag_is_one_that_is_behind_in_use():
    left, behind = snapshot([KC], BOTH), snapshot([KC], committed(KAFKA, 985, 995))
    together = both(left, behind)
    assert views.lag(together).sort("lag")["group_id"][-1] == "g"
    assert views.most_lagging(together) == "h"
    stopped = snapshot([], [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 1000, 1000)])
    assert views.most_lagging(both(stopped, behind)) == "h"


def both(one: Any, other: Any) -> Any:
    """Group ``g`` of the first, and of the other as ``h``."""
    frames = {}
    for table in tables.ALL:
        rows, more = getattr(one, table.name), getattr(other, table.name)
        is_shared = "group_id" not in rows.columns
        frames[table.name] = rows if is_shared else pl.concat([rows, more.with_columns(group_id=pl.lit("h"))])
    return Snapshot(snapshot_id="s", **frames)


def test_members_that_commit_nothing_are_told_though_old_offsets_lie_in_the_other_store():
    found = snapshot([KC], committed(ZOOKEEPER, 100, 100))
    assert set(views.findings(found)["finding"]) == {"assigned_never_committed"}
    (row,) = views.summary(found).to_dicts()
    assert (row["attention"], row["zookeeper_lag"], row["kafka_lag"]) == ("commits nothing", None, None)
    lag = views.lag(found)
    assert lag.filter(~pl.col("is_stale"))["has_no_commit"].to_list() == [True, True]
    assert lag.filter("is_stale")["lag"].to_list() == [900, 900]


@pytest.mark.parametrize(
    ("members", "commits", "error", "expected"),
    [
        pytest.param([], committed(KAFKA, 0, 1000), None, "nobody reads it", id="no members, and records to read"),
        pytest.param([], committed(KAFKA, 1000, 1000), None, None, id="no members, and nothing to read"),
        pytest.param([KC], committed(KAFKA, 0, 0), None, None, id="a lag alone may pass"),
        pytest.param([KC], committed(KAFKA, 0, 0), "refused", "could not be read", id="not read"),
        pytest.param([MEZKCC, KC], committed(ZOOKEEPER, 0, 0), None, None, id="each partition once"),
    ],
)
def test_what_hurts_is_told_of_each_group(members, commits, error, expected):
    (row,) = views.summary(snapshot(members, commits, error)).to_dicts()
    assert row["attention"] == expected


def test_a_group_is_ready_when_nothing_blocks_its_next_step():
    told = {
        "ready": views.readiness(snapshot([OZKCC], committed(ZOOKEEPER, 0, 0))),
        "blocked": views.readiness(snapshot([OZKCC], BOTH)),
        "mixed": views.readiness(snapshot([OZKCC, KC], BOTH)),
        "done": views.readiness(snapshot([KC], BOTH)),
        "empty": views.readiness(snapshot([], BOTH)),
    }
    answers = {name: rows["is_ready"].item() for name, rows in told.items()}
    assert answers == {"ready": True, "blocked": False, "mixed": False, "done": None, "empty": None}
