"""Measure how long a partition was not delivered although it had unread records, and how long each change of owners
took.
"""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.consumption_intervals import EVICTION_MS, consumption_intervals
from kit.proof.analyze.ownership_at import TOLERANCE_MS, distinct
from kit.proof.analyze.records import records_of
from kit.tables.groups import GROUP_PARTITION


@nw.narwhalify
def stalls(consumption: FrameT, production: FrameT) -> FrameT:
    """The longest stall of each partition: time without a new record delivered while there was one to read.

    A stall ends with the first hand-out of a record. It begins with the first hand-out of the record before, or with
    the record's own acknowledgement, whichever is later: to read a tail again is no progress. A record whose
    production is unknown ends no stall. Time before the first hand-out of a partition is start-up, not a stall.

    Columns:
        group_id, topic, partition: the key.
        longest_ms, longest_from_ms, longest_until_ms: null if fewer than two records were delivered.
        open_ms: how long unread records had waited when the history ended: since the last new record or, if later,
            since the oldest one's acknowledgement; null if none waits.
        waiting: how many records wait.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("abb")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 4000, 4010], "offset": [0, 1, 2]})
    >>> written = {"at_ms": [900, 1500, 1600, 4500, 5500], "offset": [0, 1, 2, 3, 4]}
    >>> produced = pl.DataFrame({"topic": "t", "partition": 0} | written)
    >>> stalls(consumed, produced).drop("group_id", "topic", "partition").to_dicts()
    [{'longest_ms': 2500, 'longest_from_ms': 1500, 'longest_until_ms': 4000, 'open_ms': 1000, 'waiting': 2}]
    """
    records: FrameT = nw.from_native(records_of(consumption, production))
    rows = _waits(records)
    partitions = rows.group_by(*GROUP_PARTITION).agg(
        longest_ms=nw.col("longest_ms").max(),
        longest_until_ms=nw.col("longest_until_ms").min(),
        waiting=nw.col("is_waiting").sum(),
        oldest_ms=nw.col("waiting_from_ms").min(),
        last_ms=nw.col("first_at_ms").max(),
        newest_ms=nw.col("produced_at_ms").max(),
    )
    end = nw.max_horizontal("last_ms", "newest_ms").max().over("group_id")
    since = nw.max_horizontal("oldest_ms", "last_ms")
    partitions = partitions.with_columns(end_ms=end, since_ms=since)
    return partitions.select(
        *GROUP_PARTITION,
        "longest_ms",
        longest_from_ms=nw.col("longest_until_ms") - nw.col("longest_ms"),
        longest_until_ms="longest_until_ms",
        open_ms=nw.when(nw.col("waiting") > 0).then(nw.col("end_ms") - nw.col("since_ms")),
        waiting="waiting",
    )


@nw.narwhalify
def handovers(
    consumption: FrameT,
    production: FrameT | None = None,
    owner_history: FrameT | None = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
) -> FrameT:
    """Each change of the member that delivers a partition. For the arguments see ``overlaps``.

    Columns:
        group_id, topic, partition: the key.
        consumer, successor: the old and the new member.
        last_at_ms: the last hand-out by the old one.
        first_at_ms: the first by the new one.
        gap_ms: first − last; negative: they crossed, see ``overlaps``.
        waited_ms: the part of the gap in which the successor's first record had been acknowledged; null if that time is
            unknown.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("ab")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 4000], "offset": [0, 1]})
    >>> written = {"at_ms": [900, 1500], "offset": [0, 1]}
    >>> produced = pl.DataFrame({"topic": "t", "partition": 0} | written)
    >>> handovers(consumed, produced).select("consumer", "successor", "gap_ms", "waited_ms").rows()
    [('a', 'b', 3000, 2500)]
    """
    intervals: FrameT = nw.from_native(consumption_intervals(consumption, owner_history, eviction_ms, tolerance_ms))
    order = ["first_at_ms", "last_at_ms", "consumer"]
    before = {f"old_{name}": nw.col(name).shift(1).over(*GROUP_PARTITION, order_by=order) for name in _OLD}
    changes = intervals.with_columns(**before).filter(nw.col("old_consumer") != nw.col("consumer"))
    since = nw.max_horizontal("old_last_at_ms", "produced_at_ms")
    waited = nw.when(~nw.col("produced_at_ms").is_null()).then(_at_least_zero(nw.col("first_at_ms") - since))
    return _with_production(changes, production).select(
        *GROUP_PARTITION,
        consumer="old_consumer",
        successor="consumer",
        last_at_ms="old_last_at_ms",
        first_at_ms="first_at_ms",
        gap_ms=nw.col("first_at_ms") - nw.col("old_last_at_ms"),
        waited_ms=waited,
    )


_OLD = ["consumer", "last_at_ms"]


def _with_production(changes: FrameT, production: FrameT | None) -> FrameT:
    if production is None:
        return changes.with_columns(produced_at_ms=nw.lit(None, nw.Int64))
    wanted = changes.with_columns(offset="first_offset")
    is_theirs = "first_at_ms" in production.collect_schema().names()
    produced = production if is_theirs else production.with_columns(produced_at_ms="at_ms")
    key = [*GROUP_PARTITION, "offset"] if is_theirs else ["topic", "partition", "offset"]
    # Inner first: then Spark may hold the few changes, not the many records, for the join.
    wanted_only = produced.select(*key, "produced_at_ms").join(distinct(wanted, *key), on=key, how="inner")
    return wanted.join(wanted_only, on=key, how="left")


def _waits(records: FrameT) -> FrameT:
    """Each record with the stall that its first hand-out ended, or whether it waits still."""
    before = nw.col("first_at_ms").shift(1).over(*GROUP_PARTITION, order_by=["order_ms", "offset"])
    rows = records.with_columns(order_ms=nw.coalesce(nw.col("first_at_ms"), nw.lit(-1, nw.Int64)))
    rows = rows.with_columns(before_ms=before)
    since = nw.max_horizontal("before_ms", "produced_at_ms")
    ends_one = ~nw.any_horizontal(*map(_is_unknown, _PARTS), ignore_nulls=False)
    handed_out = nw.when(~_is_unknown("first_at_ms")).then(nw.col("offset"))
    rows = rows.with_columns(
        reached=handed_out, stall_ms=nw.when(ends_one).then(_at_least_zero(nw.col("first_at_ms") - since))
    )
    rows = rows.with_columns(
        reached=nw.col("reached").max().over(*GROUP_PARTITION),
        longest_ms=nw.col("stall_ms").max().over(*GROUP_PARTITION),
    )
    is_passed = (nw.col("offset") < nw.col("reached")).fill_null(False)
    is_waiting = nw.col("first_at_ms").is_null() & ~is_passed
    return rows.with_columns(
        longest_until_ms=nw.when(nw.col("stall_ms") == nw.col("longest_ms")).then(nw.col("first_at_ms")),
        is_waiting=is_waiting.cast(nw.Int64),
        waiting_from_ms=nw.when(is_waiting).then(nw.col("produced_at_ms")),
    )


_PARTS = ["produced_at_ms", "first_at_ms", "before_ms"]


def _is_unknown(name: str) -> nw.Expr:
    return nw.col(name).is_null()


def _at_least_zero(milliseconds: nw.Expr) -> nw.Expr:
    """A producer may learn of its record's acknowledgement after a member has handed the record out."""
    return nw.when(milliseconds < 0).then(nw.lit(0, nw.Int64)).otherwise(milliseconds)
