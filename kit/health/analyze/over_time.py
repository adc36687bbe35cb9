"""Lag over a time: how long each group was within a target, and its worst hours."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

_GROUP = ["group_id", "store"]
_LOG = ["topic", "partition"]
_HOUR_MS = 3_600_000
_NEVER = 1 << 62


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
def time_lag_over_time(committed_offsets: FrameT, log_offsets: FrameT, holes: FrameT | None = None) -> FrameT:
    """Return how old the oldest unread record of each group was at each observation, by the observations of the ends of
    its logs.

    A record came after the last observation that saw the log end at or before it, and not after the first that saw
    more. An observation before an end that went down, as that of a topic made again does, shows nothing of what came
    later.

    In compacted logs, and in ones with transactions, an offset may be no record's: then the next record came later, or
    none waits at all, and no observation shows. Such logs have to be named; their lower bound is 0, their upper one
    holds anyway. Of one that is not named, an offset is taken for a record, and the lower bound may be too high.

    Args:
        committed_offsets, log_offsets: as :func:`lag_over_time` has them, both with at_ms.
        holes: topic, partition of the logs in which offsets may be no records.

    Columns:
        group_id, store, at_ms: the key.
        time_lag_lower_ms, time_lag_upper_ms: the truth lies between, if ``holes`` names each such log; 0 without lag.
            Null: the lag of a partition is unknown; of the upper one also: the record is older than the first
            observation.

    >>> import polars as pl
    >>> place = {"snapshot_id": ["a", "b", "c"], "topic": "t", "partition": 0, "at_ms": [0, 10, 20]}
    >>> commits = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [5, 9, 12]})
    >>> ends = pl.DataFrame({**place, "log_end_offset": [9, 15, 30]})
    >>> time_lag_over_time(commits, ends).sort("at_ms").select("time_lag_lower_ms", "time_lag_upper_ms").rows()
    [(0, None), (0, 10), (10, 20)]
    >>> rows = time_lag_over_time(commits, ends, pl.DataFrame({"topic": ["t"], "partition": [0]})).sort("at_ms")
    >>> rows.select("time_lag_lower_ms", "time_lag_upper_ms").rows()
    [(0, None), (0, 10), (0, 20)]
    """
    looks = ["snapshot_id", *_LOG]
    end = nw.col("log_end_offset")
    ends = log_offsets.filter(~end.is_null()).select(*looks, "log_end_offset", seen_ms="at_ms")
    fell = (end < end.shift(1).over(*_LOG, order_by="seen_ms")).fill_null(False).cast(nw.Int64)
    ends = ends.with_columns(fell=fell)
    ends = ends.with_columns(life=nw.col("fell").cum_sum().over(*_LOG, order_by="seen_ms"))
    rows = committed_offsets.select(*_GROUP, *looks, "at_ms", "committed_offset").join(ends, on=looks, how="left")
    behind = end - nw.col("committed_offset")
    is_behind = (behind > 0).fill_null(False)
    waiting = rows.filter(is_behind).select(
        *_GROUP, *_LOG, "life", "at_ms", offset="committed_offset", before=nw.lit(-_NEVER), after=nw.lit(_NEVER)
    )
    none, number = nw.lit(None, nw.String), nw.lit(None, nw.Int64)
    marks = ends.select(
        none.alias("group_id"), none.alias("store"), *_LOG, "life", number.alias("at_ms"),
        offset="log_end_offset", before="seen_ms", after="seen_ms",
    )  # fmt: skip
    order = ["offset", "is_commit"]
    placed = nw.concat([marks.with_columns(is_commit=nw.lit(0)), waiting.with_columns(is_commit=nw.lit(1))])
    placed = placed.with_columns(
        before=nw.col("before").cum_max().over(*_LOG, "life", order_by=order),
        after=nw.col("after").cum_min(reverse=True).over(*_LOG, "life", order_by=order),
    ).filter(nw.col("is_commit") == 1)
    at, before, after = nw.col("at_ms"), nw.col("before"), nw.col("after")
    if holes is not None:
        named = holes.select(*_LOG).unique().with_columns(has_holes=nw.lit(True))
        placed = placed.join(named, on=_LOG, how="left")
        placed = placed.with_columns(after=nw.when(~nw.col("has_holes").fill_null(False)).then(after).otherwise(at))
    ages = placed.with_columns(
        time_lag_lower_ms=nw.when(after < at).then(at - after).otherwise(nw.lit(0, nw.Int64)),
        time_lag_upper_ms=nw.when(before > -_NEVER).then(at - before),
    )
    ages = ages.with_columns(has_none=nw.col("time_lag_upper_ms").is_null().cast(nw.Int64))
    ages = ages.group_by(*_GROUP, "at_ms").agg(nw.col("time_lag_lower_ms", "time_lag_upper_ms", "has_none").max())
    rows = rows.with_columns(is_unknown=behind.is_null().cast(nw.Int64), is_behind=is_behind.cast(nw.Int64))
    groups = rows.group_by(*_GROUP, "at_ms").agg(nw.col("is_unknown", "is_behind").max())
    groups = groups.join(ages, on=[*_GROUP, "at_ms"], how="left")
    is_known, zero = nw.col("is_unknown") == 0, nw.when(nw.col("is_behind") == 0).then(nw.lit(0, nw.Int64))
    upper = nw.when(nw.col("has_none") == 0).then(nw.col("time_lag_upper_ms"))
    return groups.select(
        *_GROUP,
        "at_ms",
        time_lag_lower_ms=nw.when(is_known).then(nw.coalesce(zero, nw.col("time_lag_lower_ms"))),
        time_lag_upper_ms=nw.when(is_known).then(nw.coalesce(zero, upper)),
    )


@nw.narwhalify
def within_target(lags: FrameT, target_lag: int) -> FrameT:
    """For which share of the time each group was no more than ``target_lag`` records behind.

    An observation counts until the next one of the group: the last one counts for no time.

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
def within_age(ages: FrameT, target_ms: int) -> FrameT:
    """For which share of the time the oldest unread record of each group was no older than ``target_ms``.

    Args:
        ages: :func:`time_lag_over_time`. If the target lies within the bracket, nothing is known.

    Columns: as :func:`within_target` has them, lags in ms; those of an observation that has ended are its lower bound.

    >>> import polars as pl
    >>> ages = pl.DataFrame({"group_id": "g", "store": "kafka", "at_ms": [0, 10, 20], "time_lag_lower_ms": [0, 40, 20],
    ...     "time_lag_upper_ms": [10, 50, 40]})
    >>> within_age(ages, 30).select("share_within", "known_ms", "unknown_ms").rows()
    [(0.5, 20, 0)]
    """
    lower, upper = nw.col("time_lag_lower_ms"), nw.col("time_lag_upper_ms")
    age = nw.when(upper <= target_ms).then(upper).when(lower > target_ms).then(lower)
    rows: FrameT = nw.from_native(within_target(ages.select(*_GROUP, "at_ms", lag=age), target_ms))
    return rows


@nw.narwhalify
def lag_by_hour(lags: FrameT) -> FrameT:
    """The largest lag of each group in each hour of UTC.

    Args:
        lags: :func:`lag_over_time`.

    Columns:
        group_id, store, hour_ms: the key; hour_ms is its begin (epoch).
        max_lag: in records; null where it was never known.

    >>> import polars as pl
    >>> lags = {"group_id": "g", "store": "kafka", "at_ms": [0, 60_000, 3_600_000], "lag": [5, 9, None]}
    >>> lag_by_hour(pl.DataFrame(lags)).sort("hour_ms").select("hour_ms", "max_lag").rows()
    [(0, 9), (3600000, None)]
    """
    rows = lags.with_columns(hour_ms=nw.col("at_ms") - nw.col("at_ms") % _HOUR_MS)
    return rows.group_by(*_GROUP, "hour_ms").agg(max_lag=nw.col("lag").max())
