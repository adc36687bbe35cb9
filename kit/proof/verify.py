"""Proof by history: everything the analyses say about one history of consumption, computed once.

``prove`` is for tests, demos and the migration's verdict: all results as polars frames, whatever engine did the work.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import polars as pl

from kit.proof import analyses
from kit.proof.analyze.consumption_intervals import EVICTION_MS
from kit.proof.analyze.ownership_at import TOLERANCE_MS


@dataclass(frozen=True)
class Proof:
    """One frame per analysis of ``kit.analyze``; ``unowned_consumption`` is None without an owner history."""

    verdict: pl.DataFrame
    summary: pl.DataFrame
    sentences: pl.DataFrame
    consumption_intervals: pl.DataFrame
    overlaps: pl.DataFrame
    lost: pl.DataFrame
    duplicates: pl.DataFrame
    stalls: pl.DataFrame
    handovers: pl.DataFrame
    unowned_consumption: pl.DataFrame | None = None

    def describe(self) -> str:
        """The sentences, one per line: what a failed check should report."""
        return "\n".join(self.sentences["sentence"].sort())

    told = describe  # its name before 1.0


def prove(
    consumption: Any,
    production: Any,
    owner_history: Any = None,
    ends: Any = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
    clock_skew_ms: int = 0,
) -> Proof:
    """Judge a history; frames of polars or of Spark, all of one engine. On Spark the intervals are cached meanwhile.

    Arguments and results: ``kit.analyze.overlaps``, ``lost``, ``duplicates``, ``stalls``, ``handovers``,
    ``unowned_consumption``, ``verdict``.
    """
    consumption, production, owner_history, ends = map(_lazy, (consumption, production, owner_history, ends))
    with ExitStack() as kept:
        intervals = _kept(kept, analyses.with_intervals(consumption, owner_history, eviction_ms, tolerance_ms))
        records = _kept(kept, analyses.records_of(intervals, production))
        results = _results(intervals, records, ends, clock_skew_ms)
        if owner_history is not None:
            results["unowned_consumption"] = _collect(
                analyses.unowned_consumption(intervals, owner_history, tolerance_ms)
            )
    judged = analyses.verdict(**results)
    return Proof(judged, analyses.verdict_summary(judged), analyses.verdict_sentences(judged), **results)


def handed_out_of(members: pl.DataFrame, produced: pl.DataFrame) -> pl.DataFrame:
    """Return the delivered records of each partition from its first produced record on.

    By offset, not by time: consumers often have a record before its producer hears that it was written.
    """
    place = ["topic", "partition"]
    first = produced.group_by(place).agg(pl.col("offset").min().alias("first"))
    return members.join(first, on=place).filter(pl.col("offset") >= pl.col("first")).drop("first")


def _results(intervals: Any, records: Any, ends: Any, clock_skew_ms: int) -> dict[str, pl.DataFrame]:
    return {
        "consumption_intervals": _collect(analyses.consumption_intervals(intervals)),
        "overlaps": _collect(analyses.overlaps(intervals, clock_skew_ms=clock_skew_ms)),
        "duplicates": _collect(analyses.duplicates(intervals, clock_skew_ms=clock_skew_ms)),
        "lost": _collect(analyses.lost(intervals, records, ends)),
        "stalls": _collect(analyses.stalls(intervals, records)),
        "handovers": _collect(analyses.handovers(intervals, records)),
    }


def _lazy(frame: Any) -> Any:
    """polars plans better what it sees as a whole."""
    return frame.lazy() if isinstance(frame, pl.DataFrame) else frame


def _kept(kept: ExitStack, frame: Any) -> Any:
    """A frame that several analyses start from, not computed by each of them again."""
    if isinstance(frame, pl.LazyFrame):
        return frame.collect().lazy()
    frame = frame.persist()
    kept.callback(frame.unpersist)
    return frame


def _collect(frame: Any) -> pl.DataFrame:
    return frame.collect() if isinstance(frame, pl.LazyFrame) else pl.DataFrame(frame.toArrow())
