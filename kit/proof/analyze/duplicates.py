"""Records delivered more than once: by whom, when, and why."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.consumption_intervals import EVICTION_MS, with_intervals
from kit.proof.analyze.ownership_at import TOLERANCE_MS
from kit.tables.groups import GROUP_PARTITION

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
    """Offsets delivered again, as ranges; each hand-out after an offset's first one counts once.

    For the arguments see ``overlaps``.

    Columns:
        group_id, topic, partition, first_offset, last_offset, records: the range.
        consumer: handed it out the time before.
        again: handed it out once more.
        cause: ``tail``: ``consumer`` handed it out before the interval of ``again`` began; the successor read an
            uncommitted tail again. ``stale``: one of the two handed it out after the other's interval had begun, and
            had not taken over. ``rewind``: the same member twice; it went back, or got the partition back at an older
            committed offset.
        cause_consumer: the one whose interval began first.
        first_at_ms, last_at_ms: when ``consumer`` handed it out.
        again_first_at_ms, again_last_at_ms: when ``again`` did. The cause lies between ``last_at_ms`` and
            ``again_first_at_ms``.

    a delivered offset 1 and did not commit it, so its successor b reads it again:

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("aabb")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 1200, 3000, 3100], "offset": [0, 1, 1, 2]})
    >>> duplicates(consumed).select("first_offset", "last_offset", "consumer", "again", "cause").rows()
    [(1, 1, 'a', 'b', 'tail')]
    """
    rows: FrameT = nw.from_native(with_intervals(consumption, owner_history, eviction_ms, tolerance_ms))
    return _ranges(_caused(_repeated(rows), clock_skew_ms))


def _repeated(rows: FrameT) -> FrameT:
    """Hand-outs beside the one of the same offset before them."""
    order = ["rank", "at_ms", "consumer"]
    compared = ["rank", "consumer", "at_ms", "interval_number", "interval_from_ms"]
    beside = {f"first_{name}": nw.col(name).shift(1).over(*GROUP_PARTITION, order_by=order) for name in compared}
    return rows.with_columns(**beside).filter(nw.col("first_rank") == nw.col("rank"))


def _caused(rows: FrameT, clock_skew_ms: int) -> FrameT:
    """A tail, if the one whose interval is the older handed the record out before the other's interval began."""
    again, first = nw.col("consumer"), nw.col("first_consumer")
    first_began, again_began = nw.col("first_interval_from_ms"), nw.col("interval_from_ms")
    first_is_older = (first_began < again_began) | ((first_began == again_began) & (first < again))
    older_at = nw.when(first_is_older).then(nw.col("first_at_ms")).otherwise(nw.col("at_ms"))
    is_tail = older_at <= nw.max_horizontal("first_interval_from_ms", "interval_from_ms") + clock_skew_ms
    cause = nw.when(again == first).then(nw.lit("rewind")).when(is_tail).then(nw.lit("tail")).otherwise(nw.lit("stale"))
    return rows.with_columns(
        cause=cause, cause_consumer=nw.when(first_is_older).then(first).otherwise(again), again="consumer"
    )


def _ranges(rows: FrameT) -> FrameT:
    """Consecutive offsets (by rank) with the same members, intervals and cause are one range."""
    key = [
        *GROUP_PARTITION,
        "first_consumer",
        "again",
        "cause",
        "cause_consumer",
        "first_interval_number",
        "interval_number",
    ]
    step = nw.col("rank") - nw.col("rank").shift(1).over(*key, order_by=["rank", "at_ms"])
    rows = rows.with_columns(is_apart=(step > 1).cast(nw.Int64).fill_null(0))
    rows = rows.with_columns(stretch=nw.col("is_apart").cum_sum().over(*key, order_by=["rank", "at_ms"]))
    ranges = rows.group_by(*key, "stretch").agg(
        first_offset=nw.col("offset").min(),
        last_offset=nw.col("offset").max(),
        records=nw.len().cast(nw.Int64),
        from_ms=nw.col("first_at_ms").min(),
        last_at_ms=nw.col("first_at_ms").max(),
        again_first_at_ms=nw.col("at_ms").min(),
        again_last_at_ms=nw.col("at_ms").max(),
    )
    return ranges.with_columns(consumer="first_consumer", first_at_ms="from_ms").select(*_CONTRACT)
