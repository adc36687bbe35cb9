"""Each group's hour in a row: lag, age, verdicts, owners. What a report over weeks needs, without its looks."""

from __future__ import annotations

from itertools import pairwise

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.health.over_time import lag_over_time, time_lag_over_time
from kit.analyze.health.windows import PARTITION

_HOUR = ["group_id", "store", "hour_ms"]
_HOUR_MS = 3_600_000
_COUNTS = ("n_read", "n_written")
_POINTS = (("lag_min", 0), ("lag_p50", 50), ("lag_p95", 95), ("lag_max", 100))


@nw.narwhalify
def group_hours(committed_offsets: FrameT, log_offsets: FrameT, ownership: FrameT, looks: FrameT) -> FrameT:
    """Looks at groups, hour by hour (UTC).

    The verdict on a partition is of the whole hour and of the last look before it, in Burrow's order: without lag at
    the end it is well; ``stop``: nothing was committed and records wait; ``rewind``: it ends before where it began; a
    look without lag: well; ``warn``: it ends with more lag than it began.

    Args:
        committed_offsets, log_offsets: ``tables.COMMITTED_OFFSETS`` and ``LOG_OFFSETS``, both with at_ms (epoch): when
            the snapshot was complete. Ends of older looks make the lag in time narrower.
        ownership: ``tables.OWNERSHIP``.
        looks: snapshot_id, at_ms, hour_ms (its begin), is_own (0: the last look before the hour), is_first and is_last
            (1: of them all); a look can be in two hours.

    Columns: ``tables.GROUP_HOURS``.
    """
    own = looks.filter(nw.col("is_own") == 1).select("snapshot_id", "hour_ms")
    last = looks.filter(nw.col("is_last") == 1).select("snapshot_id", "hour_ms")
    lags: FrameT = nw.from_native(
        lag_over_time(committed_offsets.join(own, on="snapshot_id", how="inner"), log_offsets)
    )
    newest = committed_offsets.join(last.select("snapshot_id"), on="snapshot_id", how="semi")
    ages: FrameT = nw.from_native(time_lag_over_time(newest, log_offsets))
    ages = ages.with_columns(hour_ms=nw.col("at_ms") - nw.col("at_ms") % _HOUR_MS).drop("at_ms")
    rows = _percentiles(lags).join(_verdicts(committed_offsets, log_offsets, looks), on=_HOUR, how="left")
    rows = rows.join(ages, on=_HOUR, how="left").join(_moves(ownership, looks), on=_HOUR, how="left")
    return rows.with_columns(n_moves=nw.col("n_moves").fill_null(0))


def _percentiles(lags: FrameT) -> FrameT:
    """By nearest rank, of the looks at which the lag was known."""
    rows = lags.with_columns(
        hour_ms=nw.col("at_ms") - nw.col("at_ms") % _HOUR_MS, is_known=(~nw.col("lag").is_null()).cast(nw.Int64)
    )
    position = nw.col("is_known").cum_sum().over(*_HOUR, order_by=["lag", "at_ms"])
    rows = rows.with_columns(
        position=position, n_known=nw.col("is_known").sum().over(*_HOUR), last_ms=nw.col("at_ms").max().over(*_HOUR)
    )
    points = {
        name: nw.when(100 * nw.col("position") >= share * nw.col("n_known")).then(nw.col("lag"))
        for name, share in _POINTS
    }
    rows = rows.with_columns(
        **points,
        lag_last=nw.when(nw.col("at_ms") == nw.col("last_ms")).then(nw.col("lag")),
        n_unknown=1 - nw.col("is_known"),
    )
    return rows.group_by(*_HOUR).agg(
        nw.len().cast(nw.Int64).alias("n_looks"),
        nw.col("n_unknown").sum(),
        *[nw.col(name).min() for name, _ in _POINTS],
        nw.col("lag_last").max(),
    )


def _verdicts(committed_offsets: FrameT, log_offsets: FrameT, looks: FrameT) -> FrameT:
    """Two aggregations: an hour of each partition, then of each group."""
    place = ["snapshot_id", "topic", "partition"]
    rows = committed_offsets.select(*PARTITION, "snapshot_id", "committed_offset")
    rows = rows.join(log_offsets.select(*place, "log_end_offset"), on=place, how="left")
    rows = rows.join(looks.select("snapshot_id", "hour_ms", "is_last", "is_first"), on="snapshot_id", how="inner")
    offset, end = nw.col("committed_offset"), nw.col("log_end_offset")
    lag = nw.when(end - offset < 0).then(nw.lit(0, nw.Int64)).otherwise(end - offset)
    is_first, is_last = nw.col("is_first") == 1, nw.col("is_last") == 1
    parts: dict[str, nw.Expr] = {
        "first_offset": nw.when(is_first).then(offset),
        "last_offset": nw.when(is_last).then(offset),
        "first_end": nw.when(is_first).then(end),
        "last_end": nw.when(is_last).then(end),
        "first_lag": nw.when(is_first).then(lag),
        "last_lag": nw.when(is_last).then(lag),
    }
    rows = rows.with_columns(lowest=offset, highest=offset, lowest_lag=lag, **parts)
    rows = rows.group_by(*PARTITION, "hour_ms").agg(
        nw.len().cast(nw.Int64).alias("n_looks"),
        *[nw.col(name).max() for name in (*parts, "highest")],
        *[nw.col(name).min() for name in ("lowest", "lowest_lag")],
    )
    waits = (nw.col("last_lag") > 0) & (nw.col("n_looks") > 1)
    stops = waits & (nw.col("lowest") == nw.col("highest")) & (nw.col("lowest_lag") > 0)
    rewinds = waits & (nw.col("last_offset") < nw.col("first_offset"))
    warns = waits & (nw.col("lowest_lag") > 0) & (nw.col("last_lag") > nw.col("first_lag")) & ~stops & ~rewinds
    flags: dict[str, nw.Expr] = {"n_stop": stops, "n_rewind": rewinds & ~stops, "n_warn": warns}
    rows = rows.with_columns(
        n_read=nw.col("last_offset") - nw.col("first_offset"),
        n_written=nw.col("last_end") - nw.col("first_end"),
        **{name: flag.fill_null(False).cast(nw.Int64) for name, flag in flags.items()},
    )
    hours = rows.group_by(*_HOUR).agg(
        nw.len().cast(nw.Int64).alias("n_partitions"),
        *[nw.col(name).sum() for name in (*flags, *_COUNTS)],
        *[nw.col(name).count().alias(f"known_{name}") for name in _COUNTS],
    )
    known = {name: nw.when(nw.col(f"known_{name}") > 0).then(nw.col(name)) for name in _COUNTS}
    return hours.with_columns(**known).drop(*(f"known_{name}" for name in _COUNTS))


def _moves(ownership: FrameT, looks: FrameT) -> FrameT:
    """Owners of a partition beyond the first; there and back counts once."""
    owned = ownership.filter(~nw.col("member_id").is_null())
    rows = owned.join(looks.select("snapshot_id", "hour_ms"), on="snapshot_id", how="inner")
    key = [*PARTITION, "hour_ms"]
    rows = rows.select(*PARTITION[:1], "topic", "partition", "member_id", "hour_ms", store="source")
    owners = rows.group_by(*key, "member_id").agg(one=nw.len().cast(nw.Int64)).group_by(*key)
    counted = owners.agg(n_owners=nw.len().cast(nw.Int64)).with_columns(n_moves=nw.col("n_owners") - 1)
    return counted.group_by(*_HOUR).agg(nw.col("n_moves").sum())


@nw.narwhalify
def troubled(group_hours: FrameT, target_lag: int) -> FrameT:
    """The groups that were not well in any hour: more than the target behind, or silent, or thrown back.

    Columns: group_id, store.
    """
    is_bad = (nw.col("lag_max") > target_lag) | (nw.col("n_stop") > 0) | (nw.col("n_rewind") > 0)
    return group_hours.filter(is_bad).select("group_id", "store").unique()


@nw.narwhalify
def within_target_by_hours(group_hours: FrameT, target_lag: int) -> FrameT:
    """:func:`kit.analyze.within_target` from hours: between the percentiles of an hour lags are taken as even.

    Columns: as there. The looks of an hour stand for the hour.

    >>> import polars as pl
    >>> hours = pl.DataFrame({"group_id": "g", "store": "kafka", "hour_ms": [0, 3_600_000], "n_looks": 60,
    ...     "n_unknown": 0, "lag_min": [0, 0], "lag_p50": [0, 50], "lag_p95": [0, 500], "lag_max": [0, 900],
    ...     "lag_last": [0, 900]})
    >>> within_target_by_hours(hours, 50).select("share_within", "max_lag", "last_lag").rows()
    [(0.75, 900, 900)]
    """
    target = nw.lit(float(target_lag))
    share = nw.when(nw.col("lag_max") <= target_lag).then(nw.lit(1.0))
    for (low, from_), (high, to) in reversed(list(pairwise(_POINTS))):
        begin, width = nw.col(low).cast(nw.Float64), (nw.col(high) - nw.col(low)).cast(nw.Float64)
        part = (target - begin) / nw.when(width > 0).then(width).otherwise(nw.lit(1.0))
        share = share.when(nw.col(low) <= target_lag).then((from_ + (to - from_) * part) / 100)
    unknown = nw.col("n_unknown").cast(nw.Float64) / nw.col("n_looks").cast(nw.Float64) * _HOUR_MS
    rows = group_hours.with_columns(
        share=share.otherwise(nw.lit(0.0)),
        unknown_ms=unknown.round(0).cast(nw.Int64),
        newest_ms=nw.col("hour_ms").max().over("group_id", "store"),
    )
    known = nw.lit(_HOUR_MS, nw.Int64) - nw.col("unknown_ms")
    rows = rows.with_columns(
        known_ms=known,
        over_ms=(known.cast(nw.Float64) * (1 - nw.col("share"))).round(0).cast(nw.Int64),
        last_lag=nw.when(nw.col("hour_ms") == nw.col("newest_ms")).then(nw.col("lag_last")),
    )
    sums = rows.group_by("group_id", "store").agg(
        *[nw.col(name).sum() for name in ("unknown_ms", "over_ms", "known_ms")],
        nw.col("lag_max").max().alias("max_lag"),
        nw.col("last_lag").max(),
    )
    known = nw.col("known_ms")
    part = (known - nw.col("over_ms")).cast(nw.Float64) / nw.when(known > 0).then(known).cast(nw.Float64)
    columns = ("unknown_ms", "over_ms", "max_lag", "last_lag")
    return sums.select("group_id", "store", *columns, share_within=part, known_ms=known)
