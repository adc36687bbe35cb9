"""The two offset stores of a group side by side (KIP-125, dual commit)."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import GROUP_PARTITION, KAFKA, ZOOKEEPER

VERDICTS = ("equal", "kafka_ahead", "zookeeper_ahead", "missing_in_kafka", "missing_in_zookeeper", "unknown")


@nw.narwhalify
def store_parity(committed_offsets: FrameT, groups: FrameT | None = None) -> FrameT:
    """The committed offsets of both stores side by side: each partition that a store holds, or that could not be read.

    Args:
        groups: ``tables.GROUPS``. With it, a missing offset is unknown where that side of the group could not be read.

    Columns:
        group_id, topic, partition: the key.
        zookeeper_offset, kafka_offset: the committed offsets.
        difference: kafka − zookeeper in records; null if either is unknown.
        verdict: ``equal``, ``kafka_ahead``, ``zookeeper_ahead``, ``missing_in_kafka``, ``missing_in_zookeeper``, or
            ``unknown`` where a read error hides one of the two.

    >>> import polars as pl
    >>> rows = {"group_id": "g", "store": ["zookeeper", "kafka", "kafka"], "topic": "t", "partition": [0, 0, 1]}
    >>> rows |= {"committed_offset": [40, 45, 7], "error": [None] * 3}
    >>> committed = pl.DataFrame(rows, schema_overrides={"error": pl.String})
    >>> store_parity(committed).sort("partition").select("partition", "difference", "verdict").rows()
    [(0, 5, 'kafka_ahead'), (1, None, 'missing_in_zookeeper')]
    """
    is_known = ~nw.col("committed_offset").is_null() | ~nw.col("error").is_null()
    known = committed_offsets.filter(is_known).select(*GROUP_PARTITION, *_columns_of(ZOOKEEPER), *_columns_of(KAFKA))
    names = ["zookeeper_offset", "zookeeper_unread", "kafka_offset", "kafka_unread"]
    sides = known.group_by(*GROUP_PARTITION).agg(*[nw.col(name).max() for name in names])
    return _with_unread_groups(sides, groups).select(
        *GROUP_PARTITION,
        "zookeeper_offset",
        "kafka_offset",
        difference=nw.col("kafka_offset") - nw.col("zookeeper_offset"),
        verdict=_verdict(),
    )


@nw.narwhalify
def group_parity(store_parity: FrameT) -> FrameT:
    """``store_parity`` per group.

    Columns:
        group_id, n_partitions: the key, and how many partitions the row counts.
        n_equal, n_kafka_ahead, n_zookeeper_ahead, n_missing_in_kafka, n_missing_in_zookeeper, n_unknown: by verdict.
        max_kafka_ahead, max_zookeeper_ahead: the largest difference in that direction, in records; 0 if none is ahead,
            null if no partition has both offsets.

    >>> import polars as pl
    >>> verdicts = ["kafka_ahead", "zookeeper_ahead", "equal"]
    >>> rows = pl.DataFrame({"group_id": "g", "difference": [5, -2, 0], "verdict": verdicts})
    >>> group_parity(rows).select("n_equal", "max_kafka_ahead", "max_zookeeper_ahead").rows()
    [(1, 5, 2)]
    """
    flags = {f"n_{verdict}": (nw.col("verdict") == verdict).cast(nw.Int64) for verdict in VERDICTS}
    difference = nw.col("difference")
    counted = store_parity.with_columns(
        **flags,
        max_kafka_ahead=nw.when(difference < 0).then(nw.lit(0, nw.Int64)).otherwise(difference),
        max_zookeeper_ahead=nw.when(difference > 0).then(nw.lit(0, nw.Int64)).otherwise(-difference),
    )
    totals = counted.group_by("group_id").agg(
        nw.len().alias("n_partitions"),
        *[nw.col(name).sum() for name in flags],
        nw.col("max_kafka_ahead").max(),
        nw.col("max_zookeeper_ahead").max(),
    )
    return totals.select(
        "group_id", nw.col("n_partitions").cast(nw.Int64), *flags, "max_kafka_ahead", "max_zookeeper_ahead"
    )


def _with_unread_groups(sides: FrameT, groups: FrameT | None) -> FrameT:
    if groups is None:
        return sides.with_columns(zookeeper_failed=nw.lit(False), kafka_failed=nw.lit(False))
    for source in (ZOOKEEPER, KAFKA):
        failed = groups.filter((nw.col("source") == source) & ~nw.col("error").is_null())
        failed = failed.select("group_id", nw.lit(True).alias(f"{source}_failed")).unique()
        sides = sides.join(failed, on="group_id", how="left")
    return sides.with_columns(nw.col("zookeeper_failed", "kafka_failed").fill_null(False))


def _columns_of(store: str) -> list[nw.Expr]:
    is_here = nw.col("store") == store
    is_unread = is_here & nw.col("committed_offset").is_null() & ~nw.col("error").is_null()
    return [
        nw.when(is_here).then(nw.col("committed_offset")).alias(f"{store}_offset"),
        is_unread.cast(nw.Int32).alias(f"{store}_unread"),
    ]


def _verdict() -> nw.Expr:
    zookeeper, kafka = nw.col("zookeeper_offset"), nw.col("kafka_offset")
    return (
        nw.when(_is_hidden(ZOOKEEPER) | _is_hidden(KAFKA))
        .then(nw.lit("unknown"))
        .when(zookeeper.is_null())
        .then(nw.lit("missing_in_zookeeper"))
        .when(kafka.is_null())
        .then(nw.lit("missing_in_kafka"))
        .when(kafka == zookeeper)
        .then(nw.lit("equal"))
        .when(kafka > zookeeper)
        .then(nw.lit("kafka_ahead"))
        .otherwise(nw.lit("zookeeper_ahead"))
    )


def _is_hidden(store: str) -> nw.Expr:
    is_unread = nw.col(f"{store}_failed") | (nw.col(f"{store}_unread") > 0)
    return nw.col(f"{store}_offset").is_null() & is_unread
