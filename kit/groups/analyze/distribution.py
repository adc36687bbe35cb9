"""Measure how evenly a group's partitions are spread over its members and threads."""

from __future__ import annotations

from collections.abc import Collection

import narwhals as nw
import polars
from narwhals.typing import FrameT

from kit.groups.analyze.coverage import existing_partitions, live_members
from kit.tables.groups import KAFKA, ZOOKEEPER

_MEMBER = ["group_id", "source", "member_id"]
_THREAD = [*_MEMBER, "thread_id"]
_UNIT = 2.0**40
"""Shares are added as whole multiples of 2^-40: a sum of floats depends on the order of the rows, this one doesn't."""


@nw.narwhalify
def member_shares(members: FrameT, ownership: FrameT, subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    """Partitions per member, registered or only seen as an owner.

    A fair share is, per topic, its partitions × the member's threads / all threads subscribed to it in that source,
    summed over topics. A Kafka member is one thread: KIP-125 gives each MEZKCC one share in Kafka's assignment.

    Columns:
        group_id, source, member_id: the key.
        n_partitions: how many it owns.
        n_threads: most streams for one topic, since thread ids are reused across topics; null without a subscription.
        fair_share: in partitions; null without a subscription, and of a share group, whose members share partitions.
        share_ratio: n_partitions / fair_share; null if the fair share is 0 or unknown.
        is_idle: it owns nothing.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> group = {"group_id": "g", "source": "kafka"}
    >>> members = rows_of(schema.MEMBERS, **group, member_id=["a", "b"])
    >>> asked = rows_of(schema.SUBSCRIPTIONS, **group, member_id=["a", "b"], topic="t", n_threads=1)
    >>> partitions = rows_of(schema.TOPIC_PARTITIONS, topic="t", partition=[0, 1, 2], replicas=[[1], [1], [1]])
    >>> owned = rows_of(schema.OWNERSHIP, **group, topic="t", partition=[0, 1, 2], member_id=["a", "a", "b"])
    >>> rows = member_shares(members, owned, asked, partitions).sort("member_id")
    >>> rows.select("member_id", "n_partitions", "n_threads", "fair_share", "is_idle").rows()
    [('a', 2, 1, 1.5, False), ('b', 1, 1, 1.5, False)]
    """
    known = live_members(members).select(*_MEMBER, n_partitions=nw.lit(0, nw.Int64))
    owned = _owned(ownership, _MEMBER)
    counts = nw.concat([known, owned]).group_by(*_MEMBER).agg(nw.col("n_partitions").sum())
    rows = counts.join(_fair_shares(subscriptions, topic_partitions), on=_MEMBER, how="left")
    is_shared = nw.col("is_shared").fill_null(False)
    shared = ownership.filter(is_shared).select("group_id", "source").unique().with_columns(shared=nw.lit(True))
    rows = rows.join(shared, on=["group_id", "source"], how="left").with_columns(
        fair_share=nw.when(nw.col("shared").is_null()).then(nw.col("fair_share"))
    )
    return rows.select(
        *_MEMBER,
        "n_partitions",
        "n_threads",
        "fair_share",
        share_ratio=_ratio(nw.col("n_partitions"), nw.col("fair_share")),
        is_idle=nw.col("n_partitions") == 0,
    )


@nw.narwhalify
def thread_shares(members: FrameT, ownership: FrameT, subscriptions: FrameT) -> FrameT:
    """Partitions per thread: the threads that subscriptions ask for (``<consumer id>-<0 … n−1>``) and those that own.

    Columns:
        group_id, source, member_id: the key.
        thread_id: null for a Kafka member, which is one thread.
        n_partitions, is_idle: how many it owns; whether it owns nothing.

    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> key = {"group_id": "g", "source": "zookeeper", "member_id": "a"}
    >>> asked = rows_of(schema.SUBSCRIPTIONS, **key, topic="t", n_threads=2)
    >>> owned = rows_of(schema.OWNERSHIP, **key, topic="t", partition=[0, 1], thread_id="a-0")
    >>> rows = thread_shares(rows_of(schema.MEMBERS, **key), owned, asked).sort("thread_id")
    >>> rows.select("thread_id", "n_partitions", "is_idle").rows()
    [('a-0', 2, False), ('a-1', 0, True)]
    """
    streams = subscriptions.filter(nw.col("source") == ZOOKEEPER).group_by(*_MEMBER).agg(nw.col("n_threads").max())
    numbered = _numbered(streams).with_columns(
        thread_id=nw.concat_str([nw.col("member_id"), nw.col("thread").cast(nw.String)], separator="-")
    )
    whole = members.filter(nw.col("source") == KAFKA).with_columns(thread_id=nw.lit(None, nw.String))
    known = nw.concat([numbered.select(*_THREAD), whole.select(*_THREAD)]).with_columns(
        n_partitions=nw.lit(0, nw.Int64)
    )
    counts = nw.concat([known, _owned(ownership, _THREAD)]).group_by(*_THREAD).agg(nw.col("n_partitions").sum())
    return counts.select(*_THREAD, "n_partitions", is_idle=nw.col("n_partitions") == 0)


@nw.narwhalify
def group_balance(member_shares: FrameT) -> FrameT:
    """Return how evenly the partitions of a group are spread, from ``member_shares``, per group and source.

    Columns:
        group_id, source, n_members, n_idle, n_partitions: the key and the counts.
        max_over_mean: 1.0 is even; null if no partition is owned.
        coefficient_of_variation: population standard deviation / mean; null if no partition is owned.

    >>> import polars as pl
    >>> shares = {"group_id": "g", "source": "kafka", "n_partitions": [6, 2], "is_idle": [False, False]}
    >>> group_balance(pl.DataFrame(shares)).select("n_members", "max_over_mean", "coefficient_of_variation").rows()
    [(2, 1.5, 0.5)]
    """
    squared = member_shares.with_columns(
        square=nw.col("n_partitions") * nw.col("n_partitions"), n_idle=nw.col("is_idle").cast(nw.Int64)
    )
    totals = squared.group_by("group_id", "source").agg(
        nw.len().cast(nw.Int64).alias("n_members"),
        nw.col("n_idle").sum(),
        nw.col("n_partitions").max().alias("most"),
        nw.col("n_partitions").sum(),
        nw.col("square").sum(),
    )
    n_members, n_partitions = nw.col("n_members"), nw.col("n_partitions")
    deviation = (n_members * nw.col("square") - n_partitions * n_partitions).cast(nw.Float64).sqrt()
    return totals.select(
        "group_id",
        "source",
        "n_members",
        "n_idle",
        "n_partitions",
        max_over_mean=_ratio(nw.col("most") * n_members, n_partitions),
        coefficient_of_variation=_ratio(deviation, n_partitions),
    )


@nw.narwhalify
def canary_share(member_shares: FrameT, canary: Collection[str]) -> FrameT:
    """Return the canary's partitions beside its fair share, per group and source: KIP-125's promise, so the gate of a
    canary.

    Args:
        canary: the canary's members, by id.

    Columns:
        group_id, source, n_members, n_canaries, n_partitions: the key and the counts.
        canary_partitions, rest_partitions: what the canary owns, and what all other members own.
        canary_fair_share: in partitions; null without a canary, or if one member's is unknown.
        share_ratio: canary_partitions / canary_fair_share.

    >>> import polars as pl
    >>> shares = {"group_id": "g", "source": "kafka", "member_id": ["a", "b", "c"]}
    >>> shares |= {"n_partitions": [2, 5, 5], "fair_share": [4.0, 4.0, 4.0]}
    >>> rows = canary_share(pl.DataFrame(shares), ["a"])
    >>> rows.select("n_canaries", "canary_partitions", "rest_partitions", "canary_fair_share", "share_ratio").rows()
    [(1, 2, 10, 4.0, 0.5)]
    """
    is_canary = nw.col("member_id").is_in(list(canary))
    fair_units = (nw.col("fair_share") * _UNIT).floor().cast(nw.Int64)
    flagged = member_shares.with_columns(
        n_canaries=is_canary.cast(nw.Int64),
        canary_partitions=nw.when(is_canary).then(nw.col("n_partitions")).otherwise(nw.lit(0, nw.Int64)),
        fair_units=nw.when(is_canary).then(fair_units),
    )
    sums = ("n_canaries", "n_partitions", "canary_partitions", "fair_units")
    totals = flagged.group_by("group_id", "source").agg(
        nw.len().cast(nw.Int64).alias("n_members"),
        nw.col("fair_units").count().alias("n_known"),
        *[nw.col(name).sum() for name in sums],
    )
    is_known = (nw.col("n_canaries") > 0) & (nw.col("n_known") == nw.col("n_canaries"))
    totals = totals.with_columns(canary_fair_share=nw.when(is_known).then(nw.col("fair_units") / _UNIT))
    return totals.select(
        "group_id",
        "source",
        "n_members",
        "n_canaries",
        "n_partitions",
        "canary_partitions",
        (nw.col("n_partitions") - nw.col("canary_partitions")).alias("rest_partitions"),
        "canary_fair_share",
        share_ratio=_ratio(nw.col("canary_partitions"), nw.col("canary_fair_share")),
    )


def _owned(ownership: FrameT, keys: list[str]) -> FrameT:
    owned = ownership.filter(~nw.col("member_id").is_null())
    return owned.select(*_THREAD, "topic", "partition").unique().select(*keys, n_partitions=nw.lit(1, nw.Int64))


def _fair_shares(subscriptions: FrameT, topic_partitions: FrameT) -> FrameT:
    by_topic = ["group_id", "source", "topic"]
    threads = subscriptions.select(*_MEMBER, "topic", nw.col("n_threads").cast(nw.Int64))
    totals = threads.group_by(*by_topic).agg(nw.col("n_threads").sum().alias("all_threads"))
    existing = existing_partitions(topic_partitions)
    sizes = existing.group_by("topic").agg(nw.len().cast(nw.Int64).alias("size"))
    rows = threads.join(totals, on=by_topic, how="left").join(sizes, on="topic", how="left")
    share = _ratio(nw.col("size").fill_null(0) * nw.col("n_threads"), nw.col("all_threads"))
    rows = rows.with_columns(units=(share * _UNIT + 0.5).floor().cast(nw.Int64))
    sums = rows.group_by(*_MEMBER).agg(nw.col("n_threads").max(), nw.col("units").sum())
    return sums.select(*_MEMBER, "n_threads", fair_share=nw.col("units") / _UNIT)


def _ratio(part: nw.Expr, whole: nw.Expr) -> nw.Expr:
    """part / whole as a float; null where the whole is 0 or unknown (Spark would raise, polars give infinity)."""
    return nw.when(whole > 0).then(part.cast(nw.Float64) / whole.cast(nw.Float64))


def _numbered(streams: FrameT) -> FrameT:
    """One row per number 0 … n_threads−1 in column ``thread``; narwhals has no range of integers per row."""
    asked = streams.filter(nw.col("n_threads") > 0)
    native = nw.to_native(asked)
    if asked.implementation.is_spark_like():
        numbered = native.selectExpr(*_MEMBER, "explode(sequence(0, n_threads - 1)) AS thread")
    else:
        numbers = polars.int_ranges(0, "n_threads").alias("thread")
        numbered = native.select(*_MEMBER, numbers).explode("thread")
    frame: FrameT = nw.from_native(numbered)
    return frame
