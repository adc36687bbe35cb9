"""Sum up the lag, the outlook and the health of each group from the rows of its partitions."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.health.analyze.beyond_end import BEYOND
from kit.health.analyze.windows import PARTITION

_GROUP = ["group_id", "store"]
_WORTH = {"OK": 1, "WARN": 2, "STOP": 3, "STALL": 4, "REWIND": 5, BEYOND: 6}
_LATEST = ["time_lag_ms", "lower_ms", "upper_ms", "close_lower_ms", "close_upper_ms"]
_SOONEST = ["deletion_lower_ms", "deletion_upper_ms"]


@nw.narwhalify
def group_outlook(time_lag: FrameT, outlook: FrameT, partition_health: FrameT) -> FrameT:
    """A row per group and store.

    A group is as late as its oldest unread record, has caught up when its last partition has, and loses records when
    its first partition does. An unknown value of one partition leaves a bound open that it could move.

    Args:
        time_lag: rows of ``kit.health.sources.time_lag``.
        outlook: rows of ``lag_outlook`` of the same partitions.
        partition_health: rows of ``partition_health``, one observation; a partition may be missing.

    Columns:
        group_id, store: the key.
        n_partitions, n_unknown: as in ``group_lag``: all of them, and those whose lag is unknown.
        n_without_age: partitions of which the age is unknown, also if the lag is known: a commit beyond the end.
        lag: in records, of the partitions where it is known.
        time_lag_ms, lower_ms, upper_ms: the age of the oldest unread record, and its bracket.
        close_lower_ms, close_upper_ms, is_never_closed: until the lag of each partition is 0.
        deletion_lower_ms, deletion_upper_ms, is_never_deleted: until retention reaches the first unread record.
        status, evidence: of the partition that is worst off by Burrow's rules, of equals the one with the most lag.

    One partition is 9 to 10 s late; of the other it is not known, so there is no upper bound:

    >>> import polars as pl
    >>> place = {"group_id": "g", "store": "kafka", "topic": "t", "partition": [0, 1]}
    >>> late = pl.DataFrame({**place, "lag": [7, 2], "time_lag_ms": [9500, None], "lower_ms": [9000, None],
    ...     "upper_ms": [10_000, None], "error": [None, "no leader"]})
    >>> times = {"close_lower_ms": [4, 6], "close_upper_ms": [5, None], "is_never_closed": False}
    >>> deleted = {"deletion_lower_ms": [70, 30], "deletion_upper_ms": [80, 90], "is_never_deleted": False}
    >>> health = pl.DataFrame({**place, "status": ["OK", "STOP"], "evidence": ["fine", "silent"]})
    >>> rows = group_outlook(late, pl.DataFrame({**place, **times, **deleted}), health)
    >>> rows.select("n_without_age", "lag", "lower_ms", "upper_ms", "close_lower_ms", "close_upper_ms").rows()
    [(1, 9, 9000, None, 6, None)]
    >>> rows.select("deletion_lower_ms", "deletion_upper_ms", "status", "evidence").rows()
    [(30, 80, 'STOP', 't-1: silent')]
    """
    rows = _together(time_lag, outlook, partition_health)
    parts = rows.group_by(*_GROUP).agg(
        nw.len().cast(nw.Int64).alias("n_partitions"),
        nw.col("lag").sum(),
        *[nw.col(name).max() for name in _LATEST],
        *[nw.col(name).min() for name in _SOONEST],
        nw.col("worth").max().alias("worst"),
        nw.col("lag").max().alias("max_lag"),
        *[nw.col(f"{name}_open").sum() for name in ["lag", *_LATEST, *_SOONEST]],
        nw.col("never_closed", "not_never_deleted").sum(),
    )
    parts = parts.join(_worst(rows, parts), on=_GROUP, how="left")
    is_closed = nw.col("never_closed") == 0
    closing = {name: nw.when(is_closed).then(nw.col(name)) for name in ("close_lower_ms", "close_upper_ms")}
    return parts.with_columns(**closing).select(
        *_GROUP,
        "n_partitions",
        n_unknown="lag_open",
        n_without_age="time_lag_ms_open",
        lag=nw.when(~nw.col("max_lag").is_null()).then(nw.col("lag")),  # A sum over unknown lags is 0 in polars.
        time_lag_ms=_closed("time_lag_ms"),
        lower_ms="lower_ms",
        upper_ms=_closed("upper_ms"),
        close_lower_ms="close_lower_ms",
        close_upper_ms=_closed("close_upper_ms"),
        is_never_closed=~is_closed,
        deletion_lower_ms=_closed("deletion_lower_ms"),
        deletion_upper_ms="deletion_upper_ms",
        is_never_deleted=nw.col("not_never_deleted") == 0,
        status="status",
        evidence="evidence",
    )


def _together(time_lag: FrameT, outlook: FrameT, partition_health: FrameT) -> FrameT:
    """A row per partition, with what it leaves open: 1 where a bound is unknown, else 0."""
    late = time_lag.select(*PARTITION, "lag", "time_lag_ms", "lower_ms", "upper_ms")
    times = ["close_lower_ms", "close_upper_ms", "is_never_closed", *_SOONEST, "is_never_deleted"]
    verdicts = partition_health.select(*PARTITION, "status", "evidence")
    rows = late.join(outlook.select(*PARTITION, *times), on=PARTITION, how="left")
    rows = rows.join(verdicts, on=PARTITION, how="left")
    never = nw.col("is_never_deleted").fill_null(False)
    unbound = {f"{name}_open": nw.col(name).is_null().cast(nw.Int64) for name in ["lag", *_LATEST]}
    undated = {f"{name}_open": (nw.col(name).is_null() & ~never).cast(nw.Int64) for name in _SOONEST}
    return rows.with_columns(
        **unbound,
        **undated,
        never_closed=nw.col("is_never_closed").fill_null(False).cast(nw.Int64),
        not_never_deleted=(~never).cast(nw.Int64),
        worth=nw.col("status").replace_strict(list(_WORTH), list(_WORTH.values()), return_dtype=nw.Int64, default=None),
    )


def _worst(rows: FrameT, parts: FrameT) -> FrameT:
    """Status and evidence of the worst partition; of equals the one with the most lag, then the first by name."""
    worst = rows.join(parts.select(*_GROUP, "worst"), on=_GROUP, how="inner").filter(nw.col("worth") == nw.col("worst"))
    most = worst.group_by(*_GROUP).agg(nw.col("lag").max().alias("most"))
    worst = worst.join(most, on=_GROUP, how="inner").filter(
        (nw.col("lag") == nw.col("most")) | nw.col("most").is_null()
    )
    where = [nw.col("topic"), nw.lit("-"), nw.col("partition").cast(nw.String), nw.lit(": "), nw.col("evidence")]
    said = worst.with_columns(evidence=nw.concat_str(where))
    return said.group_by(*_GROUP).agg(nw.col("status", "evidence").min())


def _closed(name: str) -> nw.Expr:
    """Null where any partition leaves it open."""
    return nw.when(nw.col(f"{name}_open") == 0).then(nw.col(name))
