"""Records handed out more than once: by whom, when, and why."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.groups.coverage import GROUP_PARTITION
from kit.analyze.proof.consumption_intervals import EVICTION_MS, with_turns
from kit.analyze.proof.ownership_at import TOLERANCE_MS

CAUSES = ("tail", "stale", "rewind")

_CONTRACT = [
    *GROUP_PARTITION,
    "first_offset",
    "last_offset",
    "records",
    "consumer",
    "again",
    "cause",
    "cause_consumer",
    "first_at_ms",
    "last_at_ms",
    "again_first_at_ms",
    "again_last_at_ms",
]


@nw.narwhalify
def duplicates(
    consumption: FrameT,
    owner_history: FrameT | None = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
    clock_skew_ms: int = 0,
) -> FrameT:
    """Offsets handed out again, as ranges; each hand-out after an offset's first one counts once.

    ``cause``: ``tail`` – ``consumer`` had handed it out before the turn of ``again`` began: its uncommitted tail, read
    again by a successor; ``stale`` – one of the two handed it out after the other's turn had begun and without having
    taken over (``cause_consumer``: the one that began first); ``rewind`` – the same member twice: it went back, or got
    the partition back at an older committed offset.

    Columns: group_id, topic, partition, first_offset, last_offset, records; consumer (handed it out the time before),
    again (once more), cause, cause_consumer; first_at_ms, last_at_ms (of ``consumer``'s hand-outs), again_first_at_ms,
    again_last_at_ms: from ``last_at_ms`` to ``again_first_at_ms`` is the window of the cause. For the arguments see
    ``overlaps``.
    """
    rows: FrameT = nw.from_native(with_turns(consumption, owner_history, eviction_ms, tolerance_ms))
    return _ranges(_caused(_repeated(rows), clock_skew_ms))


def _repeated(rows: FrameT) -> FrameT:
    """Hand-outs beside the one of the same offset before them."""
    order = ["rank", "at_ms", "consumer"]
    told = ["rank", "consumer", "at_ms", "turn", "turn_from_ms"]
    beside = {f"first_{name}": nw.col(name).shift(1).over(*GROUP_PARTITION, order_by=order) for name in told}
    return rows.with_columns(**beside).filter(nw.col("first_rank") == nw.col("rank"))


def _caused(rows: FrameT, clock_skew_ms: int) -> FrameT:
    """A tail, if the one whose turn is the older handed the record out before the other's turn began."""
    again, first = nw.col("consumer"), nw.col("first_consumer")
    first_began, again_began = nw.col("first_turn_from_ms"), nw.col("turn_from_ms")
    first_is_older = (first_began < again_began) | ((first_began == again_began) & (first < again))
    older_at = nw.when(first_is_older).then(nw.col("first_at_ms")).otherwise(nw.col("at_ms"))
    is_tail = older_at <= nw.max_horizontal("first_turn_from_ms", "turn_from_ms") + clock_skew_ms
    cause = nw.when(again == first).then(nw.lit("rewind")).when(is_tail).then(nw.lit("tail")).otherwise(nw.lit("stale"))
    return rows.with_columns(
        cause=cause, cause_consumer=nw.when(first_is_older).then(first).otherwise(again), again="consumer"
    )


def _ranges(rows: FrameT) -> FrameT:
    """Consecutive offsets (by rank) with the same members, turns and cause are one range."""
    key = [*GROUP_PARTITION, "first_consumer", "again", "cause", "cause_consumer", "first_turn", "turn"]
    step = nw.col("rank") - nw.col("rank").shift(1).over(*key, order_by=["rank", "at_ms"])
    rows = rows.with_columns(is_apart=(step > 1).cast(nw.Int64).fill_null(0))
    rows = rows.with_columns(stretch=nw.col("is_apart").cum_sum().over(*key, order_by=["rank", "at_ms"]))
    found = rows.group_by(*key, "stretch").agg(
        first_offset=nw.col("offset").min(),
        last_offset=nw.col("offset").max(),
        records=nw.len().cast(nw.Int64),
        from_ms=nw.col("first_at_ms").min(),
        last_at_ms=nw.col("first_at_ms").max(),
        again_first_at_ms=nw.col("at_ms").min(),
        again_last_at_ms=nw.col("at_ms").max(),
    )
    return found.with_columns(consumer="first_consumer", first_at_ms="from_ms").select(*_CONTRACT)
