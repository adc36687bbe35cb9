"""Shares, balance, placement and stickiness on hand-made groups."""

from __future__ import annotations

import math
from typing import Any

import polars as pl
import pytest

from kit.analyze import (
    broker_load,
    canary_share,
    group_balance,
    member_shares,
    stickiness,
    thread_shares,
    topic_skew,
)
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, ZOOKEEPER, Broker, Member, Ownership, Subscription, TopicPartition


def frame(table: tables.Table, rows: list[Any]) -> pl.DataFrame:
    return pl.from_arrow(table.from_rows(rows))


def member(member_id: str, source: str = ZOOKEEPER) -> Member:
    return Member("g", source, member_id, None, None, None, None, None, None, None)


def owned(topic: str, partition: int, member_id: str | None, thread: int = 0, error: str | None = None) -> Ownership:
    thread_id = f"{member_id}-{thread}" if member_id else None
    return Ownership("g", ZOOKEEPER, topic, partition, member_id, thread_id, None, None, error)


def placed(topic: str, partition: int, *replicas: int, leader: int | None = None) -> TopicPartition:
    return TopicPartition(topic, partition, False, leader, 1, replicas, replicas)


def reads(member_id: str, topic: str, n_threads: int, source: str = ZOOKEEPER) -> Subscription:
    return Subscription("g", source, member_id, topic, n_threads)


@pytest.fixture
def shares() -> pl.DataFrame:
    """8 + 3 partitions; a reads both topics with 3 and 1 threads, b only t with 1, c nothing known, d unregistered."""
    owners = [owned("t", each, "a") for each in range(5)] + [owned("u", 0, "a"), owned("t", 5, "b"), owned("t", 6, "d")]
    return member_shares(
        frame(tables.MEMBERS, [member("a"), member("b"), member("c")]),
        frame(tables.OWNERSHIP, [*owners, owned("t", 7, None, error="broken")]),
        frame(tables.SUBSCRIPTIONS, [reads("a", "t", 3), reads("a", "u", 1), reads("b", "t", 1)]),
        frame(tables.TOPIC_PARTITIONS, [placed("t", n, 1) for n in range(8)] + [placed("u", n, 1) for n in range(3)]),
    ).sort("member_id")


def test_fair_share_weighs_threads_per_topic(shares: pl.DataFrame) -> None:
    assert shares.drop("group_id", "source").rows() == [
        ("a", 6, 3, 9.0, 6 / 9, False),
        ("b", 1, 1, 2.0, 0.5, False),
        ("c", 0, None, None, None, True),
        ("d", 1, None, None, None, False),
    ]


def test_thirds_add_up_to_the_whole() -> None:
    names = ["a", "b", "c"]
    shares = member_shares(
        frame(tables.MEMBERS, [member(name, KAFKA) for name in names]),
        frame(tables.OWNERSHIP, []),
        frame(tables.SUBSCRIPTIONS, [reads(name, "t", 1, KAFKA) for name in names]),
        frame(tables.TOPIC_PARTITIONS, [placed("t", 0, 1)]),
    )
    assert shares["fair_share"].to_list() == pytest.approx([1 / 3] * 3, abs=1e-12)
    assert shares["is_idle"].all()


def test_a_subscription_to_a_missing_topic_is_a_share_of_nothing() -> None:
    shares = member_shares(
        frame(tables.MEMBERS, [member("a")]),
        frame(tables.OWNERSHIP, []),
        frame(tables.SUBSCRIPTIONS, [reads("a", "gone", 2)]),
        frame(tables.TOPIC_PARTITIONS, []),
    )
    assert shares.select("fair_share", "share_ratio").row(0) == (0.0, None)


def test_threads_are_numbered_from_the_subscription_and_idle_ones_are_seen() -> None:
    shares = thread_shares(
        frame(tables.MEMBERS, [member("a"), member("k", KAFKA)]),
        frame(tables.OWNERSHIP, [owned("t", 0, "a", 1), owned("t", 1, "a", 1), owned("u", 0, "a", 5)]),
        frame(tables.SUBSCRIPTIONS, [reads("a", "t", 2), reads("a", "u", 3), reads("a", "v", 0)]),
    )
    rows = shares.sort("source", "thread_id").select("source", "thread_id", "n_partitions", "is_idle").rows()
    assert rows == [
        (KAFKA, None, 0, True),
        (ZOOKEEPER, "a-0", 0, True),
        (ZOOKEEPER, "a-1", 2, False),
        (ZOOKEEPER, "a-2", 0, True),
        (ZOOKEEPER, "a-5", 1, False),
    ]


def test_balance_measures_the_spread(shares: pl.DataFrame) -> None:
    (row,) = group_balance(shares).to_dicts()
    assert (row["n_members"], row["n_idle"], row["n_partitions"]) == (4, 1, 8)
    assert row["max_over_mean"] == 3.0
    assert row["coefficient_of_variation"] == pytest.approx(math.sqrt((16 + 1 + 4 + 1) / 4) / 2)


def test_balance_of_nothing_owned_is_unknown(shares: pl.DataFrame) -> None:
    (row,) = group_balance(shares.filter(pl.col("member_id") == "c")).to_dicts()
    assert (row["n_idle"], row["max_over_mean"], row["coefficient_of_variation"]) == (1, None, None)


def test_canary_is_weighed_against_its_fair_share(shares: pl.DataFrame) -> None:
    (row,) = canary_share(shares, ["b"]).to_dicts()
    assert (row["n_members"], row["n_canaries"]) == (4, 1)
    assert (row["canary_partitions"], row["rest_partitions"], row["n_partitions"]) == (1, 7, 8)
    assert (row["canary_fair_share"], row["share_ratio"]) == (2.0, 0.5)


@pytest.mark.parametrize("canary", [[], ["nobody"], ["b", "c"]])
def test_canary_without_a_known_fair_share_has_no_ratio(shares: pl.DataFrame, canary: list[str]) -> None:
    (row,) = canary_share(shares, canary).to_dicts()
    assert (row["canary_fair_share"], row["share_ratio"]) == (None, None)


TOPIC = [placed("t", 0, 1, 2, leader=1), placed("t", 1, 1, 3, leader=1), placed("t", 2, 1, 2, leader=2)]
BROKERS = [Broker(each, f"h{each}", 9092, "r", False, None) for each in (1, 2, 4)]


def test_brokers_with_nothing_and_brokers_that_are_down_have_their_rows() -> None:
    load = broker_load(frame(tables.TOPIC_PARTITIONS, TOPIC), frame(tables.BROKERS, BROKERS)).sort("broker_id")
    assert load.select(
        "broker_id", "host", "is_live", "n_leaders", "n_preferred", "n_replicas", "n_in_sync"
    ).rows() == [
        (1, "h1", True, 2, 3, 3, 3),
        (2, "h2", True, 1, 0, 2, 2),
        (3, None, False, 0, 0, 1, 1),
        (4, "h4", True, 0, 0, 0, 0),
    ]


def test_skew_and_spread_are_cmaks() -> None:
    """6 replicas and 3 leaders on 3 of 4 brokers: above 2 replicas or 1 leader is skewed, which only broker 1 is."""
    (row,) = topic_skew(frame(tables.TOPIC_PARTITIONS, TOPIC), frame(tables.BROKERS, BROKERS)).to_dicts()
    assert (row["n_partitions"], row["n_replicas"], row["n_brokers"]) == (3, 6, 3)
    assert (row["n_skewed"], row["n_leader_skewed"]) == (1, 1)
    assert row["skew_percent"] == pytest.approx(100 / 3)
    assert row["leader_skew_percent"] == pytest.approx(100 / 3)
    assert row["spread_percent"] == 75.0


def test_the_average_is_rounded_up_before_skew_is_judged() -> None:
    """4 leaders on 3 brokers: two on one of them is ceil(4/3), so not skewed."""
    rows = [placed("t", n, broker, leader=broker) for n, broker in enumerate((1, 2, 3, 1))]
    (row,) = topic_skew(frame(tables.TOPIC_PARTITIONS, rows), frame(tables.BROKERS, [])).to_dicts()
    assert (row["n_skewed"], row["n_leader_skewed"], row["spread_percent"]) == (0, 0, 100.0)


def test_a_topic_without_a_known_replica_has_no_percentages() -> None:
    (row,) = topic_skew(frame(tables.TOPIC_PARTITIONS, [placed("t", 0)]), frame(tables.BROKERS, BROKERS)).to_dicts()
    assert (row["n_brokers"], row["skew_percent"], row["spread_percent"]) == (0, None, None)


def test_stickiness_counts_kept_moved_gained_and_lost() -> None:
    before = [owned("t", 0, "a"), owned("t", 1, "a"), owned("t", 2, "b"), owned("t", 4, "b"), owned("t", 5, "a")]
    after = [owned("t", 0, "a"), owned("t", 1, "b"), owned("t", 3, "a"), owned("t", 4, "b")]
    unread = owned("t", 5, None, error="broken")
    (row,) = stickiness(frame(tables.OWNERSHIP, before), frame(tables.OWNERSHIP, [*after, unread])).to_dicts()
    assert row == {
        "group_id": "g",
        "source": ZOOKEEPER,
        "n_partitions": 4,
        "n_kept": 2,
        "n_moved": 1,
        "n_gained": 1,
        "n_lost": 1,
        "n_unknown": 1,
        "stickiness": 0.5,
    }


def test_a_new_group_has_no_stickiness() -> None:
    (row,) = stickiness(frame(tables.OWNERSHIP, []), frame(tables.OWNERSHIP, [owned("t", 0, "a")])).to_dicts()
    assert (row["n_gained"], row["n_partitions"], row["stickiness"]) == (1, 0, None)
