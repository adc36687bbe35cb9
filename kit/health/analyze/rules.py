"""Rules that raise an alarm, each with its parameters: what it reports of each partition at each time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Protocol

import narwhals as nw
from narwhals.typing import FrameT

from kit.health.analyze.burrow import partition_health
from kit.health.analyze.waiting import waiting_since
from kit.health.analyze.windows import INTERVALS, PARTITION


class Rule(Protocol):
    """``verdicts`` takes ``commits``, ``ends`` and ``times`` as ``commit_windows`` does, on either engine.

    Columns of what it gives: group_id, store, topic, partition, at_ms: the key; status: its word, null where it is
    not known; is_alarm; since_ms: of an alarm, since when it has been so (epoch): the last commit before a silence, or
    the last sampled end with nothing to read; the first of a window of equal commits, the last observation that was
    fine; else the observation itself; lag: in records.
    """

    def verdicts(self, commits: Any, ends: Any, times: Any) -> Any: ...


@dataclass(frozen=True)
class BurrowRule:
    """``kit.analyze.partition_health``; anything but ``OK`` is an alarm, ``WARN`` only with ``warns``."""

    intervals: int = INTERVALS
    allowed_lag: int = 0
    minimum_complete: float = 0.0
    warns: bool = False

    def verdicts(self, commits: Any, ends: Any, times: Any) -> Any:
        health = partition_health(commits, ends, times, self.intervals, self.allowed_lag, self.minimum_complete)
        rows: Any = nw.from_native(health)
        quiet = nw.col("status").is_in(["OK"] if self.warns else ["OK", "WARN"])
        status = nw.col("status")
        known = nw.when(status == "STOP").then(nw.col("committed_ms"))
        known = known.when(status == "STALL").then(nw.col("first_committed_ms"))
        return nw.to_native(_reported(rows, "status", ~quiet, nw.coalesce(known, nw.col("at_ms"))))


@dataclass(frozen=True)
class LagRule:
    """More than ``more_than`` records behind, at each search for at least ``for_ms``."""

    more_than: int
    for_ms: int = 0

    def verdicts(self, commits: Any, ends: Any, times: Any) -> Any:
        rows: Any = nw.from_native(waiting_since(commits, ends, times))
        is_over, at = nw.col("lag") > self.more_than, nw.col("at_ms")
        rows = rows.with_columns(fine_ms=nw.when(~is_over).then(at), first_ms=at.min().over(*PARTITION))
        filled = nw.col("fine_ms").fill_null(strategy="forward").over(*PARTITION, order_by="at_ms")
        rows, fine = rows.with_columns(fine_ms=filled), nw.col("fine_ms")
        since = nw.coalesce(fine, nw.col("first_ms"))
        is_alarm = is_over & (at - since >= self.for_ms)
        words = nw.when(is_alarm).then(nw.lit("behind")).when(is_over).then(nw.lit("lag is growing"))
        rows = rows.with_columns(status=words.when(~is_over).then(nw.lit("OK")))
        return nw.to_native(_reported(rows, "status", is_alarm, since))


@dataclass(frozen=True)
class SilenceRule:
    """Something waits for at least ``for_ms``, and no commit meanwhile: time without records is no silence.

    Counted from the last commit, or from the first sampled end with which something waited, whichever is later. So it
    is certain; where it is not yet, but may be (something waits from some time after the last end without), the status
    is null.
    """

    for_ms: int

    def verdicts(self, commits: Any, ends: Any, times: Any) -> Any:
        rows: Any = nw.from_native(waiting_since(commits, ends, times))
        at = nw.col("at_ms")
        since = nw.max_horizontal("arrived_ms", "fine_ms")
        waits = nw.col("lag") > 0
        is_alarm = waits & (at - nw.max_horizontal("arrived_ms", "waits_ms") >= self.for_ms)
        may_be = waits & (at - since >= self.for_ms)
        words = nw.when(is_alarm).then(nw.lit("silent")).when(~may_be).then(nw.lit("OK"))
        return nw.to_native(_reported(rows.with_columns(status=words), "status", is_alarm, since))


@dataclass(frozen=True)
class AnyRule:
    """An alarm of any of these; the status is that of the first by name with an alarm, else ``OK``."""

    rules: tuple[Rule, ...]

    def verdicts(self, commits: Any, ends: Any, times: Any) -> Any:
        said = [_or_ok(nw.from_native(rule.verdicts(commits, ends, times))) for rule in self.rules]
        return nw.to_native(reduce(_either, said))


def _or_ok(rows: FrameT) -> FrameT:
    status = nw.col("status")
    return rows.with_columns(status=nw.when(nw.col("is_alarm") | status.is_null()).then(status).otherwise(nw.lit("OK")))


def _either(one: FrameT, other: FrameT) -> FrameT:
    key, figures = [*PARTITION, "at_ms"], ["status", "is_alarm", "since_ms", "lag"]
    rows = one.join(other.rename({name: f"other_{name}" for name in figures}), on=key, how="full", suffix="_other")
    alarms = [nw.when(nw.col(f"{of}is_alarm")).then(nw.col(f"{of}status")) for of in ("", "other_")]
    first = nw.when(alarms[1] < alarms[0]).then(alarms[1]).otherwise(nw.coalesce(*alarms))
    return rows.select(
        *[nw.coalesce(name, f"{name}_other") for name in key],
        status=nw.coalesce(first, nw.col("status"), nw.col("other_status")),
        is_alarm=nw.coalesce("is_alarm", nw.lit(False)) | nw.coalesce("other_is_alarm", nw.lit(False)),
        since_ms=nw.min_horizontal("since_ms", "other_since_ms"),
        lag=nw.max_horizontal("lag", "other_lag"),
    )


def _reported(rows: FrameT, status: str, is_alarm: nw.Expr, since: nw.Expr) -> FrameT:
    since = nw.when(is_alarm).then(since)
    return rows.select(
        *PARTITION, "at_ms", status=status, is_alarm=is_alarm.fill_null(False), since_ms=since, lag="lag"
    )
