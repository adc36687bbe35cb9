"""Forecast lag at the rates that were seen: when it is closed, and when retention deletes unread records.

Retention works on whole segments (Kafka's ``UnifiedLog.deleteRetentionMsBreachedSegments`` and ``…SizeBreached…``):
by time, one goes when its newest record, and each segment before it, is older than ``retention.ms``; by size, when
what is left without it is still ``retention.bytes``. No request shows where segments begin, so a record goes no sooner
than if its segment ended with it, and no later than if its segment were as long as ``segment.ms`` and
``segment.bytes`` allow; then the broker has to check (``log.retention.check.interval.ms``).
"""

from __future__ import annotations

from dataclasses import dataclass

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.beyond_end import BEYOND_END, beyond_end_error, beyond_end_of
from kit.health.analyze.time_lag import NO_COMMIT
from kit.health.analyze.velocity import lag_velocity
from kit.health.analyze.windows import PARTITION

TRENDS = (BEYOND_END, "caught up", "closing", "steady", "growing", "standing", "unknown")
_LOG = ["topic", "partition"]
_BOUNDS = ("", "_lower", "_upper")
_NEVER_MS = 100 * 365 * 86_400_000.0
"""The time beyond which a forecast, at rates seen for a minute, is not distinguished from never."""
_INFINITE = float("inf")


@nw.narwhalify
def outlook_positions(partition_lag: FrameT, retention: FrameT) -> FrameT:
    """The records whose times :func:`lag_outlook` asks for.

    Args:
        partition_lag: rows of ``kit.analyze.partition_lag``.
        retention: ``tables.LOG_RETENTION``.

    Columns:
        topic, partition, offset: the next unread record of each group with one, and the one by which its segment has
            ended: ``segment.bytes`` further on, records taken as evenly long; no row where the log is shorter.

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> lag = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [20],
    ...     "log_start_offset": [0], "log_end_offset": [100], "lag": [80], "error": [None]})
    >>> retention = pl.DataFrame({**place, "segment_bytes": [300], "size_bytes": [1000]})
    >>> sorted(outlook_positions(lag, retention).rows())
    [('t', 0, 20), ('t', 0, 50)]
    """
    columns = [*_LOG, "segment_bytes", "size_bytes"]
    rows = _placed(partition_lag).join(retention.select(*columns), on=_LOG, how="left")
    rows = rows.with_columns(beyond=_beyond()).filter(nw.col("unread") > 0)
    following = rows.select(*_LOG, offset=nw.col("beyond")).filter(~nw.col("offset").is_null())
    return nw.concat([rows.select(*_LOG, "offset"), following]).unique()


@nw.narwhalify
def lag_outlook(partition_lag: FrameT, looks: FrameT, retention: FrameT, arrivals: FrameT, at_ms: int) -> FrameT:
    """Return when the lag is closed, and when the next unread record is deleted, if all continues as it was seen.

    The bounds are what the slowest and the quickest step between two observations would come to. Between its next
    record and the end a log is taken to have grown evenly; where it came in bursts, deletion may overtake a reader
    sooner than the bracket of a reader that moves reports. Of one that is stalled (``pause_ms``), it holds anyway.

    Args:
        partition_lag: the last observation, rows of ``kit.analyze.partition_lag``.
        looks: all of them, as ``lag_velocity`` takes them.
        retention: ``tables.LOG_RETENTION``.
        arrivals: ``tables.RECORD_TIMES`` of :func:`outlook_positions`.
        at_ms: when the ends of ``partition_lag`` were known (epoch).

    Columns:
        group_id, store, topic, partition: the key.
        lag, lag_retained: as in ``partition_lag``; the outlook is that of the records that are still there.
        trend: ``beyond the end``: the commit is, and all of the outlook is unknown;
            ``caught up``: no record waits, at most a transaction's marker;
            ``closing``, ``growing``; ``steady``: neither, in each step; ``standing``: no commit
            among the observations, and something to read; ``unknown``.
        close_ms, close_lower_ms, close_upper_ms: until the lag is 0; null: unknown, or no bound.
        is_never_closed: in no step did the lag fall.
        deletion_ms, deletion_lower_ms, deletion_upper_ms: until retention reaches what the group reads next.
        is_never_deleted: not at this rate, or retention deletes nothing here; null: unknown.
        deletion_by: ``time`` or ``size``: the limit that is reached first.
        pause_ms: if the group stopped now, for so long nothing unread would be deleted; null: unknown, or no limit.
        consumed_per_s, produced_per_s, lag_per_s: in records; lag_per_s_lower, lag_per_s_upper: slowest, quickest.
        n_looks: by which the rates were found.
        expired_unread: records that were deleted before the group read them.
        beyond_end: as in ``partition_lag``.
        is_restarted: a position or an end went back among the observations: only later ones count.
        error: why something is unknown.
    """
    rates = lag_velocity(looks)
    rows = _placed(partition_lag).join(nw.from_native(rates), on=PARTITION, how="left")
    limits = retention.select(*[name for name in retention.collect_schema().names() if name != "error"])
    reasons = retention.select(*_LOG, retention_error="error")
    rows = rows.join(limits, on=_LOG, how="left").join(reasons, on=_LOG, how="left")
    rows = _with_times(rows.with_columns(beyond=_beyond()), arrivals, at_ms)
    rows = rows.with_columns(**_closing(), **_limits(), **_sizes())
    rows = rows.with_columns(**_deletions(), **_pauses())
    rows = rows.with_columns(**_first_limit())
    return _reported(rows)


def _placed(partition_lag: FrameT) -> FrameT:
    """With ``offset``, where the group reads next, and ``unread``: how many records wait there."""
    start, committed, end = nw.col("log_start_offset"), nw.col("committed_offset"), nw.col("log_end_offset")
    offset = nw.when(start > committed).then(start).otherwise(committed)
    rows = partition_lag.select(
        *PARTITION,
        "lag",
        "error",
        offset=offset,
        expired_unread=nw.when(start > committed)
        .then(start - committed)
        .when(start <= committed)
        .then(nw.lit(0, nw.Int64)),
        retained=end - start,
        beyond_end=beyond_end_of(committed, end),
        is_known=~nw.col("lag").is_null(),
        log_end_offset=end,
    )
    unread = nw.col("log_end_offset") - nw.col("offset")
    unread = nw.when(unread > 0).then(unread).otherwise(nw.lit(0, nw.Int64))
    unread = nw.when("is_known").then(unread)
    # The brokers' count of a share group can be less than by its offsets.
    counted = nw.when(nw.col("lag") < unread).then(nw.col("lag")).otherwise(unread)
    return rows.with_columns(unread=unread, lag_retained=counted)


def _beyond() -> nw.Expr:
    """The offset by which the segment of the next record has ended; null where the log is shorter, or not known."""
    size, segment = nw.col("size_bytes").cast(nw.Float64), nw.col("segment_bytes").cast(nw.Float64)
    records = (segment * nw.col("retained").cast(nw.Float64) / nw.when(size > 0).then(size)).ceil()
    waiting = nw.col("unread").cast(nw.Float64)
    return nw.col("offset") + nw.when(records < waiting).then(records).cast(nw.Int64)


def _with_times(rows: FrameT, arrivals: FrameT, at_ms: int) -> FrameT:
    """With how old the next record is, at least and at most, and how much younger records of its segment may be."""
    names = {"appended_ms": "appended_ms", "from_ms": "from_ms", "until_ms": "until_ms", "arrival_error": "error"}
    next_records = arrivals.select(*_LOG, "offset", **{name: nw.col(column) for name, column in names.items()})
    # If only markers wait, the time of the next record is that of the observation.
    has_none = nw.col("appended_ms").is_null() & nw.col("arrival_error").is_null()
    times = ("appended_ms", "from_ms", "until_ms")
    next_records = next_records.with_columns(
        has_none=has_none,
        **{name: nw.when(has_none).then(nw.lit(at_ms, nw.Int64)).otherwise(nw.col(name)) for name in times},
    )
    ended = arrivals.select(*_LOG, beyond="offset", ended_ms="until_ms")
    rows = rows.join(next_records, on=[*_LOG, "offset"], how="left").join(ended, on=[*_LOG, "beyond"], how="left")
    younger = nw.col("ended_ms") - nw.col("until_ms")
    younger = nw.when(younger < 0).then(nw.lit(0, nw.Int64)).otherwise(younger)
    is_read = nw.col("has_none").fill_null(False) & (nw.col("unread") > 0)
    rows = rows.with_columns(unread=nw.when(is_read).then(nw.lit(0, nw.Int64)).otherwise(nw.col("unread")))
    ages = {"age_lower": "from_ms", "age": "appended_ms", "age_upper": "until_ms"}
    return rows.with_columns(
        **{name: _age(at_ms - nw.col(time)) for name, time in ages.items()},
        slack=(nw.min_horizontal("segment_ms", younger) + nw.col("check_ms")).cast(nw.Float64),
    )


def _age(age: nw.Expr) -> nw.Expr:
    """In the scenario of the name: the lower bound of a deletion is that of the oldest record. 0 without lag."""
    nothing = nw.when(nw.col("unread") == 0).then(nw.lit(0.0))
    return nothing.otherwise(nw.when(age < 1).then(nw.lit(1.0)).otherwise(age.cast(nw.Float64)))


def _closing() -> dict[str, nw.Expr]:
    unread = nw.col("unread")
    closing = {}
    for bound in _BOUNDS:
        rate = nw.col(f"lag_per_s{bound}")
        time = _whole_ms(1000.0 * unread.cast(nw.Float64) / nw.when(rate < 0).then(-rate))
        closing[f"close{bound}_ms"] = nw.when(unread == 0).then(nw.lit(0, nw.Int64)).otherwise(time)
    return closing


def _limits() -> dict[str, nw.Expr]:
    """Return which limits there are; null: not known."""
    policy = nw.col("cleanup_policy")
    deletes = policy.str.contains("delete")
    return {
        "by_time": deletes & (nw.col("retention_ms") >= 0),
        "by_size": deletes & (nw.col("retention_bytes") >= 0),
    }


def _sizes() -> dict[str, nw.Expr]:
    """Return how many records of the log's mean length the limit of size is, with none, half and all of a segment
    more.
    """
    size, retained = nw.col("size_bytes").cast(nw.Float64), nw.col("retained").cast(nw.Float64)
    per_byte = nw.when(~nw.col("is_tiered") & (retained > 0)).then(retained) / nw.when(size > 0).then(size)
    shares = {"": 0.5, "_lower": 0.0, "_upper": 1.0}
    return {
        f"room{bound}": (nw.col("retention_bytes") + share * nw.col("segment_bytes").cast(nw.Float64)) * per_byte
        for bound, share in shares.items()
    }


@dataclass(frozen=True)
class _Scenario:
    """Rates in records per second, times in milliseconds: the lower bound is a slow reader of a quick log."""

    bound: str

    @property
    def produced(self) -> nw.Expr:
        return nw.col("produced_per_s" + {"": "", "_lower": "_upper", "_upper": "_lower"}[self.bound])

    @property
    def consumed(self) -> nw.Expr:
        return nw.col(f"consumed_per_s{self.bound}")

    @property
    def slack(self) -> nw.Expr:
        return {"": 0.5, "_lower": 0.0, "_upper": 1.0}[self.bound] * nw.col("slack")

    def by_time(self) -> nw.Expr:
        """Return when the front of deletion, which moves through the log as the log grew, overtakes the reader."""
        unread, age = nw.col("unread").cast(nw.Float64), nw.col(f"age{self.bound}")
        retention = nw.col("retention_ms").cast(nw.Float64)
        retention = retention if self.bound == "_lower" else retention + self.slack
        waiting = 1000.0 * unread
        is_within = self.consumed * retention < waiting
        part = 1.0 - self.consumed * age / nw.when(unread > 0).then(waiting)
        within = (retention - age) / nw.when(part > 0).then(part)
        gains = self.produced - self.consumed
        later = (self.produced * retention - waiting) / nw.when(gains > 0).then(gains)
        time = nw.when(retention <= age).then(nw.lit(0.0)).when(is_within).then(within).when(gains > 0).then(later)
        or_never = time.when(gains <= 0).then(nw.lit(_INFINITE))
        return _known(nw.col("by_time"), nw.when(~age.is_null()).then(or_never))

    def by_size(self) -> nw.Expr:
        """Return when what lies behind the reader is as long as the limit."""
        missing = nw.col(f"room{self.bound}") - nw.col("unread").cast(nw.Float64)
        gains = self.produced - self.consumed
        check = nw.col("check_ms").cast(nw.Float64) if self.bound == "_upper" else nw.lit(0.0)
        time = nw.when(missing <= 0).then(check)
        time = time.when(gains > 0).then(1000.0 * missing / nw.when(gains > 0).then(gains) + check)
        return _known(nw.col("by_size"), time.when((gains <= 0) & (missing > 0)).then(nw.lit(_INFINITE)))


def _known(is_limited: nw.Expr, time: nw.Expr) -> nw.Expr:
    """Infinite without the limit; null where something of it is not known."""
    bounded = nw.when(time >= _NEVER_MS).then(nw.lit(_INFINITE)).otherwise(time)
    return nw.when(~is_limited).then(nw.lit(_INFINITE)).when(is_limited).then(bounded)


def _deletions() -> dict[str, nw.Expr]:
    scenarios = {}
    for bound in _BOUNDS:
        scenarios[f"time{bound}"] = _Scenario(bound).by_time()
        scenarios[f"size{bound}"] = _Scenario(bound).by_size()
    return scenarios


def _pauses() -> dict[str, nw.Expr]:
    """Return the time for which a group can stop from now on, at the earliest."""
    left = nw.col("retention_ms").cast(nw.Float64) - nw.col("age_lower")
    missing, rate = nw.col("room_lower") - nw.col("unread").cast(nw.Float64), nw.col("produced_per_s_upper")
    full = nw.when(missing <= 0).then(nw.lit(0.0)).when(rate > 0).then(1000.0 * missing / nw.when(rate > 0).then(rate))
    return {
        "pause_time": _known(nw.col("by_time"), nw.when(left <= 0).then(nw.lit(0.0)).otherwise(left)),
        "pause_size": _known(nw.col("by_size"), full.when(rate == 0).then(nw.lit(_INFINITE))),
    }


def _first_limit() -> dict[str, nw.Expr]:
    soonest = _earlier("time_lower", "size_lower")
    by_size = nw.when(nw.col("size_lower") < nw.col("time_lower")).then(nw.lit("size")).otherwise(nw.lit("time"))
    return {
        "soonest": soonest,
        "until": _earlier("time", "size"),
        # Whatever the other limit does, it deletes no later than this.
        "latest": nw.min_horizontal("time_upper", "size_upper"),
        "pause": _earlier("pause_time", "pause_size"),
        "deletion_by": nw.when(soonest < _INFINITE).then(by_size),
    }


def _earlier(one: str, other: str) -> nw.Expr:
    """Null where either is unknown."""
    is_known = ~nw.col(one).is_null() & ~nw.col(other).is_null()
    return nw.when(is_known).then(nw.min_horizontal(one, other))


def _trend() -> nw.Expr:
    unread, slowest, quickest = nw.col("unread"), nw.col("lag_per_s_lower"), nw.col("lag_per_s_upper")
    beyond, caught, closing, steady, growing, standing, unknown = (nw.lit(trend) for trend in TRENDS)
    trend = (
        nw.when(nw.col("beyond_end") > 0)
        .then(beyond)
        .when(unread == 0)
        .then(caught)
        .when(unread.is_null() | slowest.is_null())
        .then(unknown)
    )
    trend = trend.when(nw.col("consumed_per_s_upper") <= 0).then(standing)
    return trend.when(quickest < 0).then(closing).when(slowest > 0).then(growing).otherwise(steady)


def _whole_ms(time: nw.Expr) -> nw.Expr:
    return nw.when(time < _NEVER_MS).then(time).round(0).cast(nw.Int64)


def _reported(rows: FrameT) -> FrameT:
    unread, soonest = nw.col("unread"), nw.col("soonest")
    one_look = nw.when(nw.col("n_looks").is_null() & ~unread.is_null()).then(
        nw.lit("there is only one usable observation, so no rate is known")
    )
    without_commit = nw.when(unread.is_null()).then(nw.lit(NO_COMMIT))
    # An unreadable size does not matter without a limit of size.
    is_open = soonest.is_null() | ((soonest < _INFINITE) & nw.col("latest").is_null())
    reasons = [
        nw.when(is_open).then(nw.concat_str([nw.lit(f"{subject}: "), nw.col(name)]))
        for subject, name in (("record times", "arrival_error"), ("retention", "retention_error"))
    ]
    is_within = ~(nw.col("beyond_end") > 0)
    never_closed = nw.when(unread == 0).then(nw.lit(False)).otherwise(nw.col("lag_per_s_lower") >= 0)
    never_deleted = nw.when(~soonest.is_null()).then(soonest == _INFINITE)
    rates = ["consumed_per_s", "produced_per_s", "lag_per_s", "lag_per_s_lower", "lag_per_s_upper"]
    times = {"": "until", "_lower": "soonest", "_upper": "latest"}
    return rows.select(
        *PARTITION,
        "lag",
        "lag_retained",
        _trend().alias("trend"),
        *[nw.when(is_within).then(nw.col(f"close{bound}_ms")).alias(f"close{bound}_ms") for bound in _BOUNDS],
        nw.when(is_within).then(never_closed).alias("is_never_closed"),
        *[
            _whole_ms(nw.when(is_within).then(nw.col(time))).alias(f"deletion{bound}_ms")
            for bound, time in times.items()
        ],
        nw.when(is_within).then(never_deleted).alias("is_never_deleted"),
        nw.when(is_within).then(nw.col("deletion_by")).alias("deletion_by"),
        _whole_ms(nw.when(is_within).then(nw.col("pause"))).alias("pause_ms"),
        *rates,
        "n_looks",
        "expired_unread",
        "beyond_end",
        "is_restarted",
        error=nw.coalesce(nw.col("error"), beyond_end_error(nw.col("beyond_end")), *reasons, one_look, without_commit),
    )
