"""Each record of a group once: when it was acknowledged and when it was first delivered."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.ownership_at import distinct
from kit.tables.groups import GROUP_PARTITION

_RECORD = [*GROUP_PARTITION, "offset"]


@nw.narwhalify
def records_of(consumption: FrameT, production: FrameT) -> FrameT:
    """Return the records that were produced into, or delivered of, every topic of which the group delivered anything.

    Give the result to ``lost``, ``stalls`` and ``handovers`` in place of the production to compute it only once. It is
    one aggregation of both sides, which are of the same size: a join would have to hold one of them.

    Columns:
        group_id, topic, partition, offset: the key.
        previous_offset: of the record before; null: the first.
        produced_at_ms: epoch ms; null: not known to be produced.
        first_at_ms: when it was first delivered, epoch ms; null: never.

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": "a"}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 1200], "offset": [0, 2]})
    >>> produced = pl.DataFrame({"topic": "t", "partition": 0, "at_ms": [900, 910, 920], "offset": [0, 1, 2]})
    >>> rows = records_of(consumed, produced).sort("offset")
    >>> rows.select("offset", "previous_offset", "produced_at_ms", "first_at_ms").rows()
    [(0, None, 900, 1000), (1, 0, 910, None), (2, 1, 920, 1200)]
    """
    if "first_at_ms" in production.collect_schema().names():
        return production
    topics = distinct(consumption, "group_id", "topic")
    produced = production.join(topics, on="topic", how="inner")
    produced = produced.select(*_RECORD, produced_at_ms="at_ms", first_at_ms=_unknown())
    handed_out = consumption.select(*_RECORD, produced_at_ms=_unknown(), first_at_ms="at_ms")
    # The window puts each partition together, so that Spark aggregates there: keys that are nearly all different
    # would otherwise be aggregated twice.
    previous = nw.col("offset").shift(1).over(*GROUP_PARTITION, order_by="offset")
    rows = nw.concat([produced, handed_out]).with_columns(previous_offset=previous)
    is_another = nw.col("previous_offset") < nw.col("offset")  # Not this record's own row of the other side.
    rows = rows.with_columns(previous_offset=nw.when(is_another).then(nw.col("previous_offset")))
    return rows.group_by(*_RECORD).agg(*[nw.col(name).min() for name in _TOLD])


_TOLD = ["previous_offset", "produced_at_ms", "first_at_ms"]


def _unknown() -> nw.Expr:
    return nw.lit(None, nw.Int64)
