"""Acknowledged records that no member delivered: lost, or still to come."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.records import records_of
from kit.tables.groups import GROUP_PARTITION

STATUSES = ("lost", "unread")


@nw.narwhalify
def lost(consumption: FrameT, production: FrameT, ends: FrameT | None = None) -> FrameT:
    """Produced records that no member of the group delivered, as ranges of successive records.

    Considered are all partitions of every topic of which the group delivered anything: also a partition that no
    member ever read. A group that began at the end of the log has to be judged by what was produced from then on.

    Args:
        consumption: consumed records of all members (``tables.CONSUMPTION``).
        production: acknowledged records (``tables.PRODUCTION``), or the result of ``records_of``; offsets that hold
            none (transaction markers) are not missed.
        ends: topic, partition, log_end_offset: the group had to deliver everything below it.

    Columns:
        group_id, topic, partition: the key.
        status: ``lost``: below the highest offset that anyone delivered of that partition, or below the given end.
            ``unread``: above; the group may still read it.
        first_offset, last_offset, records: the range.
        first_produced_at_ms, last_produced_at_ms: epoch ms of the acknowledgements.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("aa")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 1200], "offset": [0, 2]})
    >>> written = {"at_ms": [900, 910, 920, 930], "offset": [0, 1, 2, 3]}
    >>> produced = pl.DataFrame({"topic": "t", "partition": 0} | written)
    >>> lost(consumed, produced).sort("first_offset").select("status", "first_offset", "last_offset", "records").rows()
    [('lost', 1, 1, 1), ('unread', 3, 3, 1)]
    """
    records: FrameT = nw.from_native(records_of(consumption, production))
    missing = records.filter(nw.col("first_at_ms").is_null())
    return _ranges(_with_status(missing, consumption, ends))


def _with_status(missing: FrameT, consumption: FrameT, ends: FrameT | None) -> FrameT:
    reached = consumption.group_by(*GROUP_PARTITION).agg(reached=nw.col("offset").max())
    rows = missing.join(reached, on=GROUP_PARTITION, how="left")
    if ends is None:
        rows = rows.with_columns(end=nw.lit(None, nw.Int64))
    else:
        rows = rows.join(ends.select("topic", "partition", end="log_end_offset"), on=["topic", "partition"], how="left")
    is_passed = (nw.col("offset") < nw.col("reached")).fill_null(False)
    is_due = (nw.col("offset") < nw.col("end")).fill_null(False)
    return rows.with_columns(status=nw.when(is_passed | is_due).then(nw.lit("lost")).otherwise(nw.lit("unread")))


def _ranges(rows: FrameT) -> FrameT:
    key = [*GROUP_PARTITION, "status"]
    is_apart = nw.col("previous_offset") != nw.col("offset").shift(1).over(*key, order_by="offset")
    rows = rows.with_columns(is_apart=is_apart.cast(nw.Int64).fill_null(0))
    rows = rows.with_columns(stretch=nw.col("is_apart").cum_sum().over(*key, order_by="offset"))
    ranges = rows.group_by(*key, "stretch").agg(
        first_offset=nw.col("offset").min(),
        last_offset=nw.col("offset").max(),
        records=nw.len().cast(nw.Int64),
        first_produced_at_ms=nw.col("produced_at_ms").min(),
        last_produced_at_ms=nw.col("produced_at_ms").max(),
    )
    ends = ["first_offset", "last_offset", "records", "first_produced_at_ms", "last_produced_at_ms"]
    return ranges.select(*key, *ends)
