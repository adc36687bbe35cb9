"""Offsets that a group left in a store: shown only where one observation shows it, in no total and no finding."""

from __future__ import annotations

import polars as pl

from kit import analyze
from kit.groups import views
from kit.groups.snapshot import Snapshot
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
from tests.generators.snapshots import snapshot_of, with_each_group

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
    return snapshot_of(rows)


BOTH = [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 990, 1000)]
ZOOKEEPER_AHEAD = [*committed(ZOOKEEPER, 990, 1000), *committed(KAFKA, 100, 1000)]


STALE_STORES: dict[str, tuple[list[Member], list[CommittedOffset], str | None]] = {
    "plain consumers never read ZooKeeper": ([KC], BOTH, ZOOKEEPER),
    "even if it is ahead: Kafka's offsets were reset": ([KC], ZOOKEEPER_AHEAD, ZOOKEEPER),
    "even if they commit nothing": ([KC], committed(ZOOKEEPER, 100, 100), ZOOKEEPER),
    "nothing in ZooKeeper": ([KC], committed(KAFKA, 1, 1), None),
    "old consumers that commit to ZooKeeper": ([OZKCC], ZOOKEEPER_AHEAD, KAFKA),
    "old ones that may commit to Kafka, or were wound back": ([OZKCC], BOTH, None),
    "equal": ([OZKCC], [*committed(ZOOKEEPER, 5), *committed(KAFKA, 5)], None),
    "migration-enabled ones may commit to both": ([MEZKCC, EKC], BOTH, None),
    "an unsafe mix uses both": ([OZKCC, KC], BOTH, None),
    "nobody uses either": ([], BOTH, None),
}


def test_a_store_is_stale_only_if_surely_no_one_uses_it():
    groups = {name: snapshot(members, commits) for name, (members, commits, _) in STALE_STORES.items()}
    found = views.stale_stores(with_each_group(groups))
    expected = [(name, store) for name, (*_, store) in STALE_STORES.items() if store is not None]
    assert sorted(found.rows()) == sorted(expected)


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


STORES_IN_USE: dict[str, tuple[list[Member], list[CommittedOffset], str | None, int | None]] = {
    "nobody is left: the store that is ahead": ([], BOTH, KAFKA, 10),
    "nobody is left, and it is ZooKeeper": ([], ZOOKEEPER_AHEAD, ZOOKEEPER, 10),
    "one partition is no store in use": ([], [*BOTH[:2], *committed(KAFKA, 1000)], ZOOKEEPER, 1800),
    "old consumers: by the mode in effect, wound back or not": ([OZKCC], BOTH, ZOOKEEPER, 1800),
    "the only one that has offsets": ([OZKCC], committed(KAFKA, 5, 5), KAFKA, 1990),
    "both in use: by the mode in effect": ([MEZKCC, EKC], BOTH, ZOOKEEPER, 1800),
    "plain Kafka consumers": ([KC], BOTH, KAFKA, 10),
    "nothing but what was left over": ([KC], committed(ZOOKEEPER, 1, 1), None, None),
}


def test_a_groups_lag_is_that_of_the_store_in_use():
    groups = {name: snapshot(members, commits) for name, (members, commits, *_) in STORES_IN_USE.items()}
    found = views.summary(with_each_group(groups)).select("group_id", "store_in_use", "lag")
    assert {name: (store, lag) for name, store, lag in found.iter_rows()} == {
        name: (store, lag) for name, (*_, store, lag) in STORES_IN_USE.items()
    }


def test_offsets_left_over_need_no_attention_in_a_group_without_members():
    (row,) = views.summary(snapshot([], [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 1000, 1000)])).to_dicts()
    assert (row["attention"], row["lag"]) == (None, 0)


def test_the_group_with_the_most_lag_is_one_that_is_behind_in_use():
    left, behind = snapshot([KC], BOTH), snapshot([KC], committed(KAFKA, 985, 995))
    together = with_each_group({"g": left, "h": behind})
    assert views.lag(together).sort("lag")["group_id"][-1] == "g"
    assert views.most_lagging(together) == "h"
    stopped = snapshot([], [*committed(ZOOKEEPER, 100, 100), *committed(KAFKA, 1000, 1000)])
    assert views.most_lagging(with_each_group({"g": stopped, "h": behind})) == "h"


def test_members_that_commit_nothing_are_reported_though_old_offsets_lie_in_the_other_store():
    found = snapshot([KC], committed(ZOOKEEPER, 100, 100))
    assert set(views.findings(found)["finding"]) == {"assigned_never_committed"}
    (row,) = views.summary(found).to_dicts()
    assert (row["attention"], row["zookeeper_lag"], row["kafka_lag"]) == ("commits nothing", None, None)
    lag = views.lag(found)
    assert lag.filter(~pl.col("is_stale"))["has_no_commit"].to_list() == [True, True]
    assert lag.filter("is_stale")["lag"].to_list() == [900, 900]


def test_problems_are_reported_of_each_group():
    groups = {
        "no members, and records to read": snapshot([], committed(KAFKA, 0, 1000)),
        "no members, and nothing to read": snapshot([], committed(KAFKA, 1000, 1000)),
        "a lag alone may pass": snapshot([KC], committed(KAFKA, 0, 0)),
        "not read": snapshot([KC], committed(KAFKA, 0, 0), error="refused"),
        "each partition once": snapshot([MEZKCC, KC], committed(ZOOKEEPER, 0, 0)),
    }
    told = dict(views.summary(with_each_group(groups)).select("group_id", "attention").iter_rows())
    hurt = {"no members, and records to read": "no active members", "not read": "could not be read"}
    assert told == dict.fromkeys(groups) | hurt


def test_a_group_is_ready_when_nothing_blocks_its_next_step():
    groups = {
        "ready": snapshot([OZKCC], committed(ZOOKEEPER, 0, 0)),
        "blocked": snapshot([OZKCC], BOTH),
        "mixed": snapshot([OZKCC, KC], BOTH),
        "done": snapshot([KC], BOTH),
        "empty": snapshot([], BOTH),
    }
    answers = dict(views.readiness(with_each_group(groups)).select("group_id", "is_ready").iter_rows())
    assert answers == {"ready": True, "blocked": False, "mixed": False, "done": None, "empty": None}
