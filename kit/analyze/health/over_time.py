"""Lag over a time: how long each group was within a target, and its worst hours."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

_GROUP = ["group_id", "store"]
_HOUR_MS = 3_600_000


@nw.narwhalify
def lag_over_time(committed_offsets: FrameT, log_offsets: FrameT) -> FrameT:
    """The lag of each group in each snapshot of a history.

    Args:
        committed_offsets, log_offsets: ``tables.COMMITTED_OFFSETS`` and ``LOG_OFFSETS`` with snapshot_id and, the
            first, at_ms: when the snapshot was complete (epoch).

    Columns:
        group_id, store, at_ms: the key.
        lag: in records, of the partitions with a commit; null where that of any of them is unknown.

    >>> import polars as pl
    >>> place = {"snapshot_id": "s", "topic": "t", "partition": [0, 1]}
    >>> commits = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [5, 9], "at_ms": 10})
    >>> lag_over_time(commits, pl.DataFrame({**place, "log_end_offset": [8, 7]})).rows()
    [('g', 'kafka', 10, 3)]
    """
    ends = log_offsets.select("snapshot_id", "topic", "partition", "log_end_offset")
    rows = committed_offsets.join(ends, on=["snapshot_id", "topic", "partition"], how="left")
    behind = nw.col("log_end_offset") - nw.col("committed_offset")
    rows = rows.with_columns(
        lag=nw.when(behind < 0).then(nw.lit(0, nw.Int64)).otherwise(behind),
        is_unknown=behind.is_null().cast(nw.Int64),
    )
    groups = rows.group_by(*_GROUP, "at_ms").agg(nw.col("lag").sum(), nw.col("is_unknown").sum())
    return groups.select(*_GROUP, "at_ms", lag=nw.when(nw.col("is_unknown") == 0).then(nw.col("lag")))


@nw.narwhalify
def within_target(lags: FrameT, target_lag: int) -> FrameT:
    """For which share of the time each group was no more than ``target_lag`` records behind.

    A look counts until the next one of the group: the last one counts for no time.

    Args:
        lags: :func:`lag_over_time`.

    Columns:
        group_id, store: the key.
        share_within: of the time in which the lag was known, 0 to 1; null: of no time.
        known_ms, unknown_ms: for how long it was known, and was not.
        over_ms: for how long it was more.
        max_lag, last_lag: in records.

    >>> import polars as pl
    >>> lags = pl.DataFrame({"group_id": "g", "store": "kafka", "at_ms": [0, 10, 40], "lag": [5, 500, 7]})
    >>> within_target(lags, 100).select("share_within", "over_ms", "max_lag", "last_lag").rows()
    [(0.25, 30, 500, 7)]
    """
    at, lag = nw.col("at_ms"), nw.col("lag")
    following = at.shift(-1).over(*_GROUP, order_by="at_ms")
    rows = lags.with_columns(lasted=(following - at).fill_null(0), last_ms=at.max().over(*_GROUP))
    lasted, none = nw.col("lasted"), nw.lit(0, nw.Int64)
    rows = rows.with_columns(
        over_ms=nw.when(lag > target_lag).then(lasted).otherwise(none),
        unknown_ms=nw.when(lag.is_null()).then(lasted).otherwise(none),
        last_lag=nw.when(at == nw.col("last_ms")).then(lag),
        max_lag=lag,
    )
    sums = rows.group_by(*_GROUP).agg(
        *[nw.col(name).sum() for name in ("lasted", "over_ms", "unknown_ms")],
        *[nw.col(name).max() for name in ("max_lag", "last_lag")],
    )
    known = nw.col("lasted") - nw.col("unknown_ms")
    share = (known - nw.col("over_ms")).cast(nw.Float64) / nw.when(known > 0).then(known).cast(nw.Float64)
    return sums.select(*_GROUP, "unknown_ms", "over_ms", "max_lag", "last_lag", share_within=share, known_ms=known)


@nw.narwhalify
def lag_by_hour(lags: FrameT) -> FrameT:
    """The largest lag of each group in each hour of UTC.

    Args:
        lags: :func:`lag_over_time`.

    Columns:
        group_id, store, hour_ms: the key; hour_ms is its begin (epoch).
        max_lag: in records; null where it was never known.
    """
    rows = lags.with_columns(hour_ms=nw.col("at_ms") - nw.col("at_ms") % _HOUR_MS)
    return rows.group_by(*_GROUP, "hour_ms").agg(max_lag=nw.col("lag").max())
