"""Each group's hour in a row: lag, age, verdicts, owners. A report over weeks needs the hours only, without
observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import narwhals as nw
import polars as pl
from narwhals.typing import FrameT

from kit.health.analyze.over_time import time_lag_over_time
from kit.health.analyze.windows import PARTITION

_HOUR = ["group_id", "store", "hour_ms"]
_HOUR_MS = 3_600_000
_COUNTS = ("n_read", "n_written")
_QUARTERS = 4
_QUARTER_MS = _HOUR_MS // _QUARTERS
_POINTS = (("lag_min", 0), ("lag_p50", 50), ("lag_p95", 95), ("lag_max", 100))


@nw.narwhalify
def group_hours(committed_offsets: FrameT, log_offsets: FrameT, ownership: FrameT, looks: FrameT) -> FrameT:
    """Observations of groups, hour by hour (UTC).

    ``n_stop``, ``n_rewind`` and ``n_warn`` compare the hour's ends, the last observation before it being its first. In
    this order: a partition without lag at the end is well; nothing was committed and records wait: ``n_stop``; it ends
    before where it began: ``n_rewind``; it was without lag at an observation: well; it ends with more lag: ``n_warn``.
    These are not Burrow's verdicts, which are of ten commits at each observation.

    Args:
        committed_offsets: ``tables.COMMITTED_OFFSETS`` with written_ms, of the commit (epoch; null where the
            store does not keep it).
        log_offsets: ``tables.LOG_OFFSETS`` with at_ms (epoch): when the snapshot was complete. Ends of older
        observations make
            the lag in time narrower.
        ownership: ``tables.OWNERSHIP``.
        looks: :func:`looks_of_hours`.

    Columns: ``tables.GROUP_HOURS``. A group that no observation of an hour saw, and the observation before did, has a
    row without observations.
    """
    rows = _seen(committed_offsets, log_offsets, looks)
    newest = looks.filter(nw.col("is_last") == 1).select("snapshot_id", "at_ms").unique()
    ends_seen = committed_offsets.select(*PARTITION, "snapshot_id", "committed_offset")
    ages: FrameT = nw.from_native(
        time_lag_over_time(ends_seen.join(newest, on="snapshot_id", how="inner"), log_offsets)
    )
    ages = ages.with_columns(hour_ms=nw.col("at_ms") - nw.col("at_ms") % _HOUR_MS).drop("at_ms")
    hours = _verdicts(rows).join(_percentiles(_lags(rows)), on=_HOUR, how="left")
    hours = hours.join(ages, on=_HOUR, how="left").join(_moves(ownership, looks), on=_HOUR, how="left")
    return hours.with_columns(nw.col("n_looks", "n_unknown", "n_moves").fill_null(0))


def looks_of_hours(looks: pl.DataFrame, hours: Sequence[int]) -> pl.DataFrame:
    """The observations that some hours are made of, as :func:`group_hours` takes them: an observation can be of
    several.

    Args:
        looks: snapshot_id, at_ms (epoch) of all complete snapshots.
        hours: their begins (epoch).

    Columns:
        snapshot_id, at_ms, hour_ms: the observation, and of which hour; quarter: of that hour.
        is_own: 1: in the hour; is_first: 1: the last one before it, or its first where there is none; is_last.
        before: the quarter of which it is the last observation a quarter of an hour before; null: of none.
        n_own: how many observations are in the hour.

    >>> looks = pl.DataFrame({"snapshot_id": ["a", "b", "c"], "at_ms": [0, 2_700_000, 3_600_000]})
    >>> rows = looks_of_hours(looks, [3_600_000]).filter(pl.col("before").is_null() | (pl.col("before") < 2))
    >>> rows.select("snapshot_id", "is_own", "is_first", "is_last", "before").rows()
    [('c', 1, 0, 1, None), ('b', 0, 1, 0, None), ('b', 0, 0, 0, 0), ('c', 0, 0, 0, 1)]
    """
    ordered = looks.select("snapshot_id", "at_ms").sort("at_ms")
    wanted = pl.DataFrame({"hour_ms": sorted(hours)}, schema={"hour_ms": pl.Int64})
    own = ordered.with_columns(hour_ms=pl.col("at_ms") // _HOUR_MS * _HOUR_MS).join(wanted, on="hour_ms", how="semi")
    previous = wanted.with_columns(until_ms=pl.col("hour_ms") - 1)
    previous = previous.join_asof(ordered.with_columns(until_ms="at_ms"), on="until_ms", check_sortedness=False)
    quarters = wanted.join(pl.DataFrame({"before": range(_QUARTERS)}, schema={"before": pl.Int32}), how="cross")
    quarters = quarters.with_columns(until_ms=pl.col("hour_ms") + (pl.col("before") - 1) * _QUARTER_MS).sort("until_ms")
    quarters = quarters.join_asof(ordered.with_columns(until_ms="at_ms"), on="until_ms")
    at, hour = pl.col("at_ms"), "hour_ms"
    roles = [
        own.with_columns(is_own=pl.lit(1)),
        previous.with_columns(is_own=pl.lit(0), is_first=pl.lit(1)),
        quarters.with_columns(is_own=pl.lit(0), is_first=pl.lit(0)),
    ]
    rows = pl.concat(roles, how="diagonal").drop_nulls("snapshot_id")
    has_previous = (pl.col("is_first") == 1).any().over(hour)
    begins = (at == at.min().over(hour, "is_own")) & ~has_previous.fill_null(False)
    is_own = pl.col("is_own") == 1
    flags = {
        "is_first": pl.coalesce("is_first", (is_own & begins).cast(pl.Int32)),
        "is_last": (is_own & (at == at.max().over(hour, "is_own"))).cast(pl.Int32),
        "quarter": ((at - pl.col(hour)) // _QUARTER_MS).cast(pl.Int32),
        "n_own": is_own.sum().over(hour).cast(pl.Int32),
    }
    columns = ("snapshot_id", "at_ms", hour, "quarter", "is_own", "is_first", "is_last", "before", "n_own")
    return rows.with_columns(**flags).select(columns).cast({"is_own": pl.Int32, "before": pl.Int32})


def _seen(committed_offsets: FrameT, log_offsets: FrameT, looks: FrameT) -> FrameT:
    """Each partition at each observation, with its lag."""
    place = ["snapshot_id", "topic", "partition"]
    rows = committed_offsets.select(*PARTITION, "snapshot_id", "committed_offset", "written_ms")
    rows = rows.join(log_offsets.select(*place, "log_end_offset"), on=place, how="left")
    behind = nw.col("log_end_offset") - nw.col("committed_offset")
    rows = rows.with_columns(lag=nw.when(behind < 0).then(nw.lit(0, nw.Int64)).otherwise(behind))
    return rows.join(looks, on="snapshot_id", how="inner")


def _lags(rows: FrameT) -> FrameT:
    """The lag of each group at each observation of the hours; null where that of any partition is unknown."""
    own = rows.filter(nw.col("is_own") == 1).with_columns(is_unknown=nw.col("lag").is_null().cast(nw.Int64))
    groups = own.group_by(*_HOUR, "at_ms").agg(nw.col("lag").sum(), nw.col("is_unknown").sum())
    return groups.select(*_HOUR, "at_ms", lag=nw.when(nw.col("is_unknown") == 0).then(nw.col("lag")))


def _percentiles(lags: FrameT) -> FrameT:
    """By nearest rank, of the observations at which the lag was known."""
    rows = lags.with_columns(is_known=(~nw.col("lag").is_null()).cast(nw.Int64))
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


def _verdicts(rows: FrameT) -> FrameT:
    """Two aggregations: an hour of each partition, then of each group."""
    offset, end, lag = nw.col("committed_offset"), nw.col("log_end_offset"), nw.col("lag")
    is_own, is_first, is_last = (nw.col(name) == 1 for name in ("is_own", "is_first", "is_last"))
    is_waiting = is_own & (lag > 0)
    is_in = is_own | is_first
    parts: dict[str, nw.Expr] = {
        "first_offset": nw.when(is_first).then(offset),
        "last_offset": nw.when(is_last).then(offset),
        "first_end": nw.when(is_first).then(end),
        "last_end": nw.when(is_last).then(end),
        "first_lag": nw.when(is_first).then(lag),
        "last_lag": nw.when(is_last).then(lag),
        "highest": nw.when(is_in).then(offset),
        "waited_ms": nw.when(is_waiting).then(nw.col("at_ms") - nw.col("written_ms")),
    }
    parts |= {f"before_{quarter}": nw.when(nw.col("before") == quarter).then(offset) for quarter in range(_QUARTERS)}
    least: dict[str, nw.Expr] = {
        "lowest": nw.when(is_in).then(offset),
        "lowest_lag": nw.when(is_in).then(lag),
    }
    is_of = [is_waiting & (nw.col("quarter") == quarter) for quarter in range(_QUARTERS)]
    least |= {f"waiting_{quarter}": nw.when(is_now).then(offset) for quarter, is_now in enumerate(is_of)}
    rows = rows.with_columns(is_in=is_in.cast(nw.Int64), **parts, **least)
    rows = rows.group_by(*PARTITION, "hour_ms").agg(
        nw.col("is_in").sum().alias("n_looks"),
        nw.col("is_own").cast(nw.Int64).sum().alias("n_seen"),
        *[nw.col(name).max() for name in (*parts, "n_own")],
        *[nw.col(name).min() for name in least],
    )
    waits = (nw.col("last_lag") > 0) & (nw.col("n_looks") > 1)
    stops = waits & (nw.col("lowest") == nw.col("highest")) & (nw.col("lowest_lag") > 0)
    rewinds = waits & (nw.col("last_offset") < nw.col("first_offset"))
    warns = waits & (nw.col("lowest_lag") > 0) & (nw.col("last_lag") > nw.col("first_lag")) & ~stops & ~rewinds
    silent = nw.col("waited_ms") >= _QUARTER_MS
    for quarter in range(_QUARTERS):
        silent = _or(silent, nw.col(f"waiting_{quarter}") <= nw.col(f"before_{quarter}"))
    flags: dict[str, nw.Expr] = {
        "n_stop": stops,
        "n_rewind": rewinds & ~stops,
        "n_warn": warns,
        "n_silent": silent,
        "n_missed": nw.col("n_seen") < nw.col("n_own"),
    }
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
    """Owners of a partition beyond the first; there and back counts once. Members of share groups share partitions."""
    owned = ownership.filter(~nw.col("member_id").is_null() & ~nw.col("is_shared").fill_null(False))
    seen = looks.filter((nw.col("is_own") == 1) | (nw.col("is_first") == 1)).select("snapshot_id", "hour_ms").unique()
    rows = owned.join(seen, on="snapshot_id", how="inner")
    key = [*PARTITION, "hour_ms"]
    rows = rows.select(*PARTITION[:1], "topic", "partition", "member_id", "hour_ms", store="source")
    owners = rows.group_by(*key, "member_id").agg(one=nw.len().cast(nw.Int64)).group_by(*key)
    counted = owners.agg(n_owners=nw.len().cast(nw.Int64)).with_columns(n_moves=nw.col("n_owners") - 1)
    return counted.group_by(*_HOUR).agg(nw.col("n_moves").sum())


def _or(one: nw.Expr, other: nw.Expr) -> nw.Expr:
    """Unknown is no."""
    return one.fill_null(False) | other.fill_null(False)


@nw.narwhalify
def troubled(group_hours: FrameT, target_lag: int, silence_ms: int) -> FrameT:
    """The groups of which any observation may have raised an alarm: all others need not be examined.

    An alarm is one of ``BurrowRule`` with allowed_lag = ``target_lag``, or of ``SilenceRule(silence_ms)``. A fact that
    an hour can't determine counts as trouble: a lag that was unknown, a partition that was not seen at each
    observation. Silences of less than half an hour don't show in hours: then all groups are named.

    Columns:
        group_id, store: the key.

    >>> import polars as pl
    >>> hours = {"group_id": ["late", "silent", "well"], "store": "kafka", "lag_max": [90, 5, 5], "n_silent": [0, 1, 0]}
    >>> hours = pl.DataFrame(hours | {"n_missed": 0, "n_unknown": 0})
    >>> troubled(hours, target_lag=50, silence_ms=3_600_000).sort("group_id").rows()
    [('late', 'kafka'), ('silent', 'kafka')]
    """
    signs = [nw.col("lag_max") > target_lag, *[nw.col(name) > 0 for name in ("n_silent", "n_missed", "n_unknown")]]
    is_bad = nw.lit(silence_ms < 2 * _QUARTER_MS)
    for sign in signs[1:]:
        is_bad = is_bad | sign.fill_null(True)  # Hours of an older version don't know.
    return group_hours.filter(is_bad | signs[0].fill_null(False)).select("group_id", "store").unique()


@nw.narwhalify
def within_target_by_hours(group_hours: FrameT, target_lag: int) -> FrameT:
    """:func:`kit.analyze.within_target` from hours: between the percentiles of an hour lags are taken as even.

    Columns: as there. The observations of an hour represent the hour.

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
    rows = group_hours.filter(nw.col("n_looks") > 0).with_columns(
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
