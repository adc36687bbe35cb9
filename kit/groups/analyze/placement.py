"""Measure how evenly topics lie on the brokers."""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
from narwhals.typing import FrameT

_COUNTS = ("n_leaders", "n_preferred", "n_replicas", "n_in_sync")


@nw.narwhalify
def broker_load(topic_partitions: FrameT, brokers: FrameT) -> FrameT:
    """Leaders and replicas per broker that answers or holds a replica.

    Columns:
        broker_id, host, rack: host and rack are null for a broker that is not in the brokers' list.
        is_live: it is in that list.
        n_leaders, n_replicas, n_in_sync: how many it has.
        n_preferred: partitions of which it is the first replica.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> placed = {"partition": [0, 1], "leader": [1, 1], "replicas": [[1, 2], [2, 1]], "isr": [[1], [1]]}
    >>> partitions = rows_of(schema.TOPIC_PARTITIONS, topic="t", **placed)
    >>> rows = broker_load(partitions, rows_of(schema.BROKERS, broker_id=1, host="one")).sort("broker_id")
    >>> rows.select("broker_id", "is_live", "n_leaders", "n_preferred", "n_replicas", "n_in_sync").rows()
    [(1, True, 2, 1, 2, 2), (2, False, 0, 1, 2, 0)]
    """
    live = brokers.select("broker_id", "host", "rack", is_live=nw.lit(True))
    tallies = _tallies(topic_partitions, [])
    tallies.append(_tally(live))
    counts = nw.concat(tallies).group_by("broker_id").agg(*[nw.col(name).sum() for name in _COUNTS])
    rows = counts.join(live, on="broker_id", how="left")
    return rows.select("broker_id", "host", "rack", nw.col("is_live").fill_null(False), *_COUNTS)


@nw.narwhalify
def topic_skew(topic_partitions: FrameT, brokers: FrameT) -> FrameT:
    """CMAK's skew and spread per topic (its ``TopicIdentity``), unrounded.

    With P partitions of R replicas in all on B brokers, a broker is skewed above ceil(R / B) replicas and leader-skewed
    above ceil(P / B) leaders. CMAK counts in-sync replicas and rounds down; here replicas count, in sync or not,
    because a broker that is down is no better placed.

    Columns:
        topic: the key.
        n_partitions, n_replicas, n_brokers: P, R and B.
        n_skewed, n_leader_skewed: brokers above the limits.
        skew_percent, leader_skew_percent: their shares among the B; null for a topic without a known replica.
        spread_percent: B among all brokers, live or holding a replica; null as above.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> placed = {"partition": [0, 1, 2], "leader": [1, 1, 2], "replicas": [[1], [1], [2]], "isr": [[1], [1], [2]]}
    >>> partitions = rows_of(schema.TOPIC_PARTITIONS, topic="t", **placed)
    >>> rows = topic_skew(partitions, rows_of(schema.BROKERS, broker_id=[1, 2, 3, 4]))
    >>> rows.select("n_brokers", "n_skewed", "skew_percent", "spread_percent").rows()
    [(2, 0, 0.0, 50.0)]
    """
    held = nw.concat(_tallies(topic_partitions, ["topic"])).group_by("topic", "broker_id")
    per_broker = held.agg(nw.col("n_replicas").sum(), nw.col("n_leaders").sum()).filter(nw.col("n_replicas") > 0)
    sizes = topic_partitions.group_by("topic").agg(nw.len().cast(nw.Int64).alias("n_partitions"))
    placed = per_broker.group_by("topic").agg(
        nw.len().cast(nw.Int64).alias("n_brokers"), nw.col("n_replicas").sum().alias("all_replicas")
    )
    topics = sizes.join(placed, on="topic", how="left").join(_all_brokers(per_broker, brokers), how="cross")
    skewed = per_broker.join(topics, on="topic", how="inner").with_columns(
        n_skewed=_is_above("n_replicas", "all_replicas"), n_leader_skewed=_is_above("n_leaders", "n_partitions")
    )
    counts = skewed.group_by("topic").agg(nw.col("n_skewed").sum(), nw.col("n_leader_skewed").sum())
    return _percentages(topics.join(counts, on="topic", how="left"))


def _percentages(topics: FrameT) -> FrameT:
    return topics.select(
        "topic",
        "n_partitions",
        nw.col("all_replicas").fill_null(0).alias("n_replicas"),
        nw.col("n_brokers").fill_null(0),
        nw.col("n_skewed").fill_null(0),
        nw.col("n_leader_skewed").fill_null(0),
        skew_percent=_percent("n_skewed", "n_brokers"),
        leader_skew_percent=_percent("n_leader_skewed", "n_brokers"),
        spread_percent=_percent("n_brokers", "all_brokers"),
    )


def _all_brokers(per_broker: FrameT, brokers: FrameT) -> FrameT:
    ids = nw.concat([brokers.select("broker_id"), per_broker.select("broker_id")]).unique()
    return ids.select(nw.len().cast(nw.Int64).alias("all_brokers"))


def _tallies(topic_partitions: FrameT, keys: Sequence[str]) -> list[FrameT]:
    replicas = nw.col("replicas")
    preferred = nw.when(replicas.list.len() > 0).then(replicas.list.get(0))
    roles = {
        "n_leaders": topic_partitions.select(*keys, broker_id=nw.col("leader")),
        "n_preferred": topic_partitions.select(*keys, broker_id=preferred),
        "n_replicas": topic_partitions.select(*keys, broker_id=replicas).explode("broker_id"),
        "n_in_sync": topic_partitions.select(*keys, broker_id=nw.col("isr")).explode("broker_id"),
    }
    return [_tally(frame.filter(~nw.col("broker_id").is_null()), role, keys) for role, frame in roles.items()]


def _tally(frame: FrameT, role: str | None = None, keys: Sequence[str] = ()) -> FrameT:
    """One row per mention of a broker: 1 in the column of its role, 0 in the other columns."""
    counts = [nw.lit(int(name == role), nw.Int64).alias(name) for name in _COUNTS]
    return frame.select(*keys, "broker_id", *counts)


def _is_above(held: str, spread: str) -> nw.Expr:
    """held > ceil(spread / n_brokers), in whole numbers."""
    return ((nw.col(held) - 1) * nw.col("n_brokers") >= nw.col(spread)).cast(nw.Int64)


def _percent(part: str, whole: str) -> nw.Expr:
    percent = (nw.col(part) * 100).cast(nw.Float64) / nw.col(whole).cast(nw.Float64)
    return nw.when(nw.col(whole) > 0).then(percent)
