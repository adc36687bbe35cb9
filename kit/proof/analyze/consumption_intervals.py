"""Consumption intervals: one member delivers a partition, and no other member takes over in between."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.ownership_at import (
    SEEN,
    SERIES,
    TOLERANCE_MS,
    acquired_since,
    extent,
    watched_since,
    with_ownership,
)
from kit.tables.groups import GROUP_PARTITION

EVICTION_MS = 1000
"""No member that fell silent is given up sooner: shorter than any session time-out of ZooKeeper or Kafka."""

_NEVER = -(2**62)
_IN_TIME = ["at_ms", "offset", "consumer"]
_OWN_ORDER = ["at_ms", "offset"]


@nw.narwhalify
def with_intervals(
    consumption: FrameT,
    owner_history: FrameT | None = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
) -> FrameT:
    """Consumed records with the interval they belong to: the start of all analyses of exclusivity.

    A member may come back after others delivered the partition. Either it took the partition over again: a new
    interval begins. Or it never let go: its interval continues across theirs. ``overlaps`` states the rule. Give the
    result to the other analyses in place of the consumption, and it is computed only once.

    Columns:
        group_id, topic, partition, consumer, at_ms, offset: the consumed record.
        rank: of the offset among those that anyone delivered.
        interval_number: from 0, per member and partition.
        is_doubtful: this record begins an interval that may also be a stale owner's continuation.
        interval_from_ms: the first record of the interval.
        is_late: another member began after this interval did.
        interrupted_by: who delivered last before the member came back; else null.
        interrupted_at_ms: when the first other member began; else null.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("aba")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 3000, 5000], "offset": [0, 1, 2]})
    >>> rows = with_intervals(consumed).sort("at_ms")
    >>> rows.select("consumer", "offset", "interval_number", "is_doubtful", "interrupted_by").rows()
    [('a', 0, 0, False, None), ('b', 1, 0, False, None), ('a', 2, 1, False, 'b')]
    """
    if "interval_number" in consumption.collect_schema().names():
        return consumption
    if owner_history is None:
        rows = _beside_neighbours(consumption.select(*SERIES, "at_ms", "offset"), [])
        rows = rows.with_columns(**_beginnings(*_by_offsets(eviction_ms)))
    else:
        rows = _beside_neighbours(with_ownership(consumption, owner_history, tolerance_ms), SEEN)
        rows = rows.with_columns(other_is_registered=_before("is_registered", GROUP_PARTITION, _IN_TIME))
        rows = rows.with_columns(**_beginnings(*_by_history(eviction_ms)))
    # Times only rise within a series: the latest beginning is that of the interval.
    rows = rows.with_columns(
        interval_number=nw.col("n_begun").cum_sum().over(*SERIES, order_by=_OWN_ORDER),
        interval_from_ms=nw.col("begun_at_ms").cum_max().over(*SERIES, order_by=_OWN_ORDER),
        late_at_ms=nw.col("late_at_ms").cum_max().over(*SERIES, order_by=_OWN_ORDER),
    )
    return rows.select(
        *SERIES,
        "at_ms",
        "offset",
        "rank",
        "interval_number",
        "is_doubtful",
        "interval_from_ms",
        is_late=nw.col("late_at_ms") >= nw.col("interval_from_ms"),
        interrupted_by=nw.when(nw.col("is_return")).then(nw.col("other_consumer")),
        interrupted_at_ms=nw.when(nw.col("is_return")).then(nw.col("previous_next_at_ms")),
    )


@nw.narwhalify
def consumption_intervals(
    consumption: FrameT,
    owner_history: FrameT | None = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
) -> FrameT:
    """One row per interval in which one member delivered a partition. For the arguments see :func:`overlaps`.

    Columns:
        group_id, topic, partition, consumer: whose interval.
        interval_number: from 0, per member and partition.
        first_at_ms, last_at_ms: epoch ms, both inclusive.
        first_offset, last_offset: lowest and highest.
        records: consumed records, repeated ones too.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("aabba")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 1200, 3000, 3100, 5000], "offset": [0, 1, 2, 3, 4]})
    >>> rows = consumption_intervals(consumed).sort("first_at_ms")
    >>> rows.select("consumer", "interval_number", "first_at_ms", "last_at_ms", "records").rows()
    [('a', 0, 1000, 1200, 2), ('b', 0, 3000, 3100, 2), ('a', 1, 5000, 5000, 1)]
    """
    rows: FrameT = nw.from_native(with_intervals(consumption, owner_history, eviction_ms, tolerance_ms))
    return intervals_of(rows).drop("late_records")


def intervals_of(rows: FrameT) -> FrameT:
    """``with_intervals`` rows → one row per interval, with the number of hand-outs after another member had begun."""
    late = nw.col("is_late").cast(nw.Int64).sum().alias("late_records")
    intervals = rows.group_by(*SERIES, "interval_number").agg(*extent(), late)
    numbers = ["first_at_ms", "last_at_ms", "first_offset", "last_offset", "records", "late_records"]
    return intervals.select(*SERIES, "interval_number", *numbers)


def _beside_neighbours(rows: FrameT, seen: list[str]) -> FrameT:
    """Each hand-out beside the one before it in the partition (``other_``) and by the same member (``previous_``).

    Ranks, not offsets: transaction markers and compaction leave offsets that no member can deliver.
    """
    rows = rows.with_columns(rank=nw.col("offset").rank("dense").cast(nw.Int64).over(*GROUP_PARTITION))
    rows = rows.with_columns(
        other_consumer=_before("consumer", GROUP_PARTITION, _IN_TIME),
        other_at_ms=_before("at_ms", GROUP_PARTITION, _IN_TIME),
        other_rank=_before("rank", GROUP_PARTITION, _IN_TIME),
        next_at_ms=nw.col("at_ms").shift(-1).over(*GROUP_PARTITION, order_by=_IN_TIME),
    )
    compared = ["at_ms", "rank", "next_at_ms", *seen]
    return rows.with_columns(**{f"previous_{name}": _before(name, SERIES, _OWN_ORDER) for name in compared})


def _before(name: str, within: list[str], order: list[str]) -> nw.Expr:
    return nw.col(name).shift(1).over(*within, order_by=order)


def _by_offsets(eviction_ms: int) -> tuple[nw.Expr, nw.Expr]:
    """Return whether a returning member took over again, and whether that is doubtful, by the offsets alone."""
    goes_on = nw.col("rank") == nw.col("previous_rank") + 1
    is_doubtful = goes_on & _someone_was_evicted(eviction_ms)
    return ~goes_on | is_doubtful, is_doubtful


def _by_history(eviction_ms: int) -> tuple[nw.Expr, nw.Expr]:
    """The same by the owner history where it saw everything, by the offsets elsewhere.

    A plain Kafka consumer needs no owner znode. A migration-enabled member that kept its own znode meanwhile (KIP-125)
    creates no new one when it takes over again: there too the offsets decide.
    """
    has_acquired = acquired_since("previous_")
    was_watched = nw.all_horizontal(watched_since("previous_"), nw.col("other_is_registered"), ignore_nulls=False)
    took_over, is_doubtful = _by_offsets(eviction_ms)
    return has_acquired | (~was_watched & took_over), ~has_acquired & ~was_watched & is_doubtful


def _beginnings(took_over: nw.Expr, is_doubtful: nw.Expr) -> dict[str, nw.Expr]:
    """Return what each delivery begins: an interval, an interval perhaps, or deliveries that are late."""
    is_return = ~nw.col("previous_rank").is_null() & (nw.col("other_consumer") != nw.col("consumer"))
    begins = (is_return & took_over).fill_null(False)
    goes_on = (is_return & ~took_over).fill_null(False)
    return {
        "is_return": is_return.fill_null(False),
        "n_begun": begins.cast(nw.Int64),
        "begun_at_ms": _at_ms_where(begins | nw.col("previous_rank").is_null()),
        "late_at_ms": _at_ms_where(goes_on),
        "is_doubtful": (is_return & is_doubtful).fill_null(False),
    }


def _at_ms_where(applies: nw.Expr) -> nw.Expr:
    """The time where it applies; elsewhere the least there is, so that a running maximum passes over it."""
    return nw.when(applies).then(nw.col("at_ms")).otherwise(nw.lit(_NEVER, nw.Int64))


def _someone_was_evicted(eviction_ms: int) -> nw.Expr:
    """Return whether a member fell silent: only then can a store send a member back to where it stopped while others
    read.

    Either the other members re-read exactly what the returning member had delivered: then the returning member went
    silent without committing. Or they read on and committed nothing of it: then the last of them went silent.
    """
    reached, own = nw.col("other_rank"), nw.col("previous_rank")
    own_silence = nw.col("previous_next_at_ms") - nw.col("previous_at_ms")
    their_silence = nw.col("at_ms") - nw.col("other_at_ms")
    return ((reached == own) & (own_silence >= eviction_ms)) | ((reached > own) & (their_silence >= eviction_ms))
