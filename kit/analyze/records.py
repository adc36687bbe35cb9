"""Each record of a group once: when it was acknowledged and when it was first handed out."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.coverage import GROUP_PARTITION
from kit.analyze.holdings import distinct

_RECORD = [*GROUP_PARTITION, "offset"]


@nw.narwhalify
def records_of(consumption: FrameT, production: FrameT) -> FrameT:
    """What was produced into, or handed out of, every topic of which the group handed out anything.

    Give the result to ``lost``, ``pauses`` and ``handovers`` in place of the production to compute it only once. It is
    one aggregation of both sides, which are of the same size: a join would have to hold one of them.

    Columns: group_id, topic, partition, offset; produced_at_ms (null: not known to be produced); first_at_ms,
    last_at_ms (null: never handed out); before_ms (the partition's hand-out before the first one of this record, by
    anyone and of anything; of the very first one its own time).
    """
    if "before_ms" in production.collect_schema().names():
        return production
    topics = distinct(consumption, "group_id", "topic")
    produced = production.join(topics, on="topic", how="inner")
    produced = produced.select(*_RECORD, produced_at_ms="at_ms", at_ms=_unknown())
    handed_out = consumption.select(*_RECORD, produced_at_ms=_unknown(), at_ms="at_ms")
    rows = _with_before(nw.concat([produced, handed_out]))
    return rows.group_by(*_RECORD).agg(
        nw.col("produced_at_ms").min(),
        first_at_ms=nw.col("at_ms").min(),
        last_at_ms=nw.col("at_ms").max(),
        before_ms=nw.col("before_ms").min(),
    )


def _with_before(rows: FrameT) -> FrameT:
    """Hand-outs in order of time, what was only produced before them: so a record's first one has the least before."""
    rows = rows.with_columns(order=nw.coalesce(nw.col("at_ms"), nw.lit(-1, nw.Int64)))
    before = nw.col("at_ms").shift(1).over(*GROUP_PARTITION, order_by=["order", "offset"])
    return rows.with_columns(before_ms=before).with_columns(before_ms=nw.coalesce("before_ms", "at_ms"))


def _unknown() -> nw.Expr:
    return nw.lit(None, nw.Int64)
