"""Measure the age of the next unread record: lag in time, with the bracket in which the truth lies."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.beyond_end import beyond_end_error, beyond_end_of
from kit.health.analyze.windows import PARTITION

POLLS, ANCHORS = "polls", "anchors"
NO_COMMIT = "the group has no committed offset, so auto.offset.reset decides where it begins"
IDLE_MS = 60_000
"""A log to which nothing was appended for so long is idle, where a single observation has to decide."""
_LOG = ["topic", "partition"]
_SAMPLED = ["sampled_ms", "sampled_until_ms"]
_FLAGS = ["is_idle", "is_truncated", "is_extrapolated"]


@nw.narwhalify
def time_lag_by_polls(partition_lag: FrameT, ends: FrameT, at_ms: int, holes: FrameT | None = None) -> FrameT:
    """Lag in time from a history of log ends: a record was appended between the polls that its offset lies between.

    After an end that went down (a topic that was made again, or a log that lost records) only later polls count.
    In compacted logs, and in ones with transactions, an offset may be no record's: then the next record may have come
    later than the poll that shows the offset. Such logs have to be named; their lower bound is 0.

    Args:
        partition_lag: rows of ``kit.analyze.partition_lag``; their own ends count as a poll at ``at_ms``.
        ends: topic, partition, log_end_offset, sampled_ms, sampled_until_ms (epoch: between which it was read).
        at_ms: when the ends of ``partition_lag`` were known (epoch).
        holes: topic, partition of the logs in which offsets may be no records.

    Columns:
        group_id, store, topic, partition: the key.
        committed_offset, lag: as they are there.
        method: ``polls``.
        time_lag_ms: at_ms − when the next unread record was appended, by a straight line between two polls; 0 if no
            record waits: without lag, or where retention has deleted all that was unread; null
            where nothing is known to draw it by.
        lower_ms, upper_ms: the truth lies between; null: no bound is known.
        is_idle: nothing was appended between the last two polls: the age of what waits grows by the clock alone; null:
            so few polls can't determine.
        is_truncated: the next record was deleted before it was read; all is reported of the oldest that is left.
        is_extrapolated: the record is older than every poll that counts: there is no upper bound.
        beyond_end: as in ``partition_lag``; if it is not 0, the age is unknown.
        error: why the lag, or the age, is unknown.

    Ends were 100, 160 and 220, polled every 30 s. The record at 130 came half-way between the first two:

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> lag = pl.DataFrame({"group_id": ["a", "b", "c"], "store": "kafka", **place, "committed_offset": [130, 40, 220],
    ...     "log_start_offset": [0, 0, 0], "log_end_offset": [220] * 3, "lag": [90, 180, 0]})
    >>> lag = lag.with_columns(error=pl.lit(None, pl.String))
    >>> ends = pl.DataFrame({**place, "log_end_offset": [100, 160, 220], "sampled_ms": [0, 30_000, 60_000]})
    >>> ends = ends.with_columns(sampled_until_ms="sampled_ms")
    >>> rows = time_lag_by_polls(lag, ends, 60_000).sort("committed_offset")
    >>> rows.select("committed_offset", "time_lag_ms", "lower_ms", "upper_ms", "is_extrapolated").rows()
    [(40, 90000, 60000, None, True), (130, 45000, 30000, 60000, False), (220, 0, 0, 0, False)]
    """
    now = {name: nw.lit(at_ms, nw.Int64) for name in _SAMPLED}
    own = partition_lag.select(*_LOG, "log_end_offset", **now).unique()
    earlier = ends.filter(nw.col("sampled_until_ms") < at_ms).select(*_LOG, "log_end_offset", *_SAMPLED)
    known = nw.concat([earlier, own]).filter(~nw.col("log_end_offset").is_null())
    points = _since_it_fell(known)
    placed = _placed(partition_lag)
    around = _around(placed, points)
    rows = placed.join(around, on=PARTITION, how="left").join(_idle(points), on=_LOG, how="left")
    rows = rows.with_columns(appended_ms=_on_the_line())
    return _reported(rows if holes is None else _with_holes(rows, holes, at_ms), POLLS, at_ms)


@nw.narwhalify
def time_lag_by_records(partition_lag: FrameT, arrivals: FrameT, method: str, at_ms: int) -> FrameT:
    """Lag in time from what the brokers report of the next unread records.

    ``is_idle``: the log got nothing within :data:`IDLE_MS` before the observation, by its records' own times; null:
    not asked, or not reported. ``is_extrapolated`` is never so: what is reported was found in the log.

    Args:
        partition_lag: rows of ``kit.analyze.partition_lag``.
        arrivals: ``tables.RECORD_TIMES``; one row per log and offset: groups at that offset share it.
        method: how they were found, for the column.
        at_ms: when the ends of ``partition_lag`` were known (epoch). A record that is dated later has no age: it is an
        error.

    Columns:
        group_id, store, topic, partition: the key.
        method: as given.
        all others: as in :func:`time_lag_by_polls`.

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> lag = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [3],
    ...     "log_start_offset": [7], "log_end_offset": [9], "lag": [6], "error": None},
    ...     schema_overrides={"error": pl.String})
    >>> arrivals = pl.DataFrame({**place, "offset": [7], "appended_ms": [4000], "from_ms": [4000], "until_ms": [4900],
    ...     "error": None, "is_quiet": False}, schema_overrides={"error": pl.String})
    >>> rows = time_lag_by_records(lag, arrivals, "bisection", 10_000)
    >>> rows.select("time_lag_ms", "lower_ms", "upper_ms", "is_truncated").rows()
    [(6000, 5100, 6000, True)]
    """
    flagged = arrivals.with_columns(is_idle="is_quiet", is_extrapolated=nw.lit(False))
    return _by_arrivals(partition_lag, flagged, method, at_ms)


@nw.narwhalify
def time_lag_by_anchors(partition_lag: FrameT, anchors: FrameT, at_ms: int, holes: FrameT | None = None) -> FrameT:
    """Lag in time by a straight line from a log's first record to its newest.

    It is off where records came unevenly, and the bracket is the whole log: the cheapest method and the weakest.
    If a log holds transactions, only markers may wait: its lower bound is 0, and such logs have to be named.
    ``is_idle``: the newest record is older than :data:`IDLE_MS`. ``is_extrapolated``: the record lies behind the newest
    one (timestamps went back there): no line leads to it, the newest time is taken.

    Args:
        partition_lag: rows of ``kit.analyze.partition_lag``.
        anchors: ``tables.LOG_ANCHORS``.
        at_ms: when the ends of ``partition_lag`` were known (epoch).
        holes: topic, partition of the logs that hold transactions.

    Columns:
        group_id, store, topic, partition: the key.
        method: ``anchors``.
        all others: as in :func:`time_lag_by_polls`.

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> lag = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [50],
    ...     "log_start_offset": [0], "log_end_offset": [101], "lag": [51], "error": None},
    ...     schema_overrides={"error": pl.String})
    >>> anchors = pl.DataFrame({**place, "first_offset": [0], "first_ms": [0], "newest_offset": [100],
    ...     "newest_ms": [8000], "error": None}, schema_overrides={"error": pl.String})
    >>> time_lag_by_anchors(lag, anchors, 9000).select("time_lag_ms", "lower_ms", "upper_ms").rows()
    [(5000, 1000, 9000)]
    """
    offset, first, newest = nw.col("offset"), nw.col("first_offset"), nw.col("newest_offset")
    line = _line("first_ms", "newest_ms", offset - first, newest - first)
    rows = _placed(partition_lag).select(*_LOG, "offset").unique().join(anchors, on=_LOG, how="inner")
    arrivals = rows.select(
        *_LOG,
        "offset",
        appended_ms=nw.when(offset >= newest).then("newest_ms").when(offset <= first).then("first_ms").otherwise(line),
        from_ms=nw.col("first_ms"),
        until_ms=nw.when(offset <= first).then("first_ms").otherwise("newest_ms"),
        error=nw.col("error"),
        is_idle=at_ms - nw.col("newest_ms") > IDLE_MS,
        is_extrapolated=offset > newest,
    )
    arrivals = arrivals if holes is None else _with_holes(arrivals, holes, at_ms)
    return _by_arrivals(partition_lag, arrivals, ANCHORS, at_ms)


def _by_arrivals(partition_lag: FrameT, arrivals: FrameT, method: str, at_ms: int) -> FrameT:
    rows = _placed(partition_lag).join(_found(arrivals, at_ms), on=[*_LOG, "offset"], how="left")
    reason = nw.concat_str([nw.lit("time lag: "), nw.col("arrival_error")])
    return _reported(rows.with_columns(error=nw.coalesce(reason, nw.col("error"))), method, at_ms)


def _found(arrivals: FrameT, at_ms: int) -> FrameT:
    is_later = (nw.col("appended_ms") > at_ms).fill_null(False)
    later = nw.when(is_later).then(nw.lit("the record's timestamp is later than this machine's clock"))
    # If only markers wait, the next record has the age 0.
    has_none = nw.col("appended_ms").is_null() & nw.col("error").is_null()
    to_come = nw.when(has_none).then(nw.lit(at_ms, nw.Int64))
    times = {name: to_come.when(~is_later).then(nw.col(name)) for name in ("appended_ms", "from_ms", "until_ms")}
    flags = ("is_idle", "is_extrapolated")
    return arrivals.select(*_LOG, "offset", *flags, **times, arrival_error=nw.coalesce(nw.col("error"), later))


def _placed(partition_lag: FrameT) -> FrameT:
    """With ``offset``: where the group will read next, which is the log's start if that has overtaken it."""
    start, committed = nw.col("log_start_offset"), nw.col("committed_offset")
    rows = partition_lag.select(*PARTITION, "committed_offset", "log_start_offset", "log_end_offset", "lag", "error")
    return rows.with_columns(
        offset=nw.when(start > committed).then(start).otherwise(committed),
        is_truncated=(start > committed),
    )


def _since_it_fell(points: FrameT) -> FrameT:
    before = nw.col("log_end_offset").shift(1).over(*_LOG, order_by="sampled_ms")
    rows = points.with_columns(before=before)
    rows = rows.with_columns(fell=(nw.col("log_end_offset") < nw.col("before")).fill_null(False).cast(nw.Int64))
    rows = rows.with_columns(life=nw.col("fell").cum_sum().over(*_LOG, order_by="sampled_ms"))
    rows = rows.with_columns(last_life=nw.col("life").max().over(*_LOG))
    return rows.filter(nw.col("life") == nw.col("last_life")).select(*_LOG, "log_end_offset", *_SAMPLED, "before")


def _idle(points: FrameT) -> FrameT:
    last = points.with_columns(last_ms=nw.col("sampled_ms").max().over(*_LOG))
    last = last.filter(nw.col("sampled_ms") == nw.col("last_ms"))
    return last.select(*_LOG, is_idle=nw.col("log_end_offset") == nw.col("before"))


def _with_holes(rows: FrameT, holes: FrameT, at_ms: int) -> FrameT:
    named = holes.select(*_LOG).unique().with_columns(has_holes=nw.lit(True))
    rows = rows.join(named, on=_LOG, how="left")
    until = nw.when(nw.col("has_holes") & ~nw.col("until_ms").is_null()).then(nw.lit(at_ms, nw.Int64))
    return rows.with_columns(until_ms=nw.coalesce(until, nw.col("until_ms")))


def _around(placed: FrameT, points: FrameT) -> FrameT:
    """The polls on both sides of each offset, and the outermost ones: ends only grow, so extremes are enough."""
    end, sampled = nw.col("log_end_offset"), nw.col("sampled_ms")
    is_before = end <= nw.col("offset")
    rows = placed.select(*PARTITION, "offset").join(points.drop("before"), on=_LOG, how="inner")
    rows = rows.filter(~nw.col("offset").is_null()).with_columns(
        left_end=nw.when(is_before).then(end),
        left_ms=nw.when(is_before).then(sampled),
        right_end=nw.when(~is_before).then(end),
        right_ms=nw.when(~is_before).then(nw.col("sampled_until_ms")),
        first_end=end,
        first_ms=sampled,
    )
    return (
        rows.group_by(*PARTITION)
        .agg(
            *[nw.col(name).max() for name in ("left_end", "left_ms")],
            *[nw.col(name).min() for name in ("right_end", "right_ms", "first_end", "first_ms")],
            last_end=nw.col("log_end_offset").max(),
            last_ms=nw.col("sampled_ms").max(),
        )
        .with_columns(
            from_ms=nw.col("left_ms"), until_ms=nw.col("right_ms"), is_extrapolated=nw.col("left_ms").is_null()
        )
    )


def _on_the_line() -> nw.Expr:
    offset = nw.col("offset")
    between = _line("left_ms", "right_ms", offset - nw.col("left_end"), nw.col("right_end") - nw.col("left_end"))
    before = _line("first_ms", "last_ms", offset - nw.col("first_end"), nw.col("last_end") - nw.col("first_end"))
    return nw.when(nw.col("is_extrapolated")).then(before).otherwise(between)


def _line(begin: str, end: str, part: nw.Expr, whole: nw.Expr) -> nw.Expr:
    """begin + (end − begin) · part / whole; null for a flat line."""
    slope = part.cast(nw.Float64) / nw.when(whole > 0).then(whole).cast(nw.Float64)
    return nw.col(begin) + ((nw.col(end) - nw.col(begin)).cast(nw.Float64) * slope).round(0).cast(nw.Int64)


def _reported(rows: FrameT, method: str, at_ms: int) -> FrameT:
    beyond_end = beyond_end_of(nw.col("committed_offset"), nw.col("log_end_offset"))
    # Nothing waits either where retention has deleted all that the group had not read.
    is_read = (nw.col("lag") == 0) | (nw.col("offset") >= nw.col("log_end_offset")).fill_null(False)
    has_none = nw.when(~(beyond_end > 0)).then(is_read)
    values = {"time_lag_ms": "appended_ms", "lower_ms": "until_ms", "upper_ms": "from_ms"}
    return rows.select(
        *PARTITION,
        "committed_offset",
        "lag",
        nw.lit(method).alias("method"),
        *[_age(has_none, at_ms - nw.col(time)).alias(name) for name, time in values.items()],
        *[nw.when(~nw.col("lag").is_null()).then(nw.col(name)).alias(name) for name in _FLAGS],
        beyond_end=beyond_end,
        error=nw.coalesce(
            "error", beyond_end_error(beyond_end), nw.when(nw.col("lag").is_null()).then(nw.lit(NO_COMMIT))
        ),
    )


def _age(has_none: nw.Expr, age: nw.Expr) -> nw.Expr:
    """0 without lag; at least 0; null where the lag is."""
    at_least_zero = nw.when(age < 0).then(nw.lit(0, nw.Int64)).otherwise(age)
    return nw.when(has_none).then(nw.lit(0, nw.Int64)).when(~has_none).then(at_least_zero)
