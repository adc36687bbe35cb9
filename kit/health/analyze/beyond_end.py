"""Commits beyond the end of a log among the verdicts: Burrow's rules see a lag of 0 there, and say ``OK``."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.groups.analyze.beyond_end import beyond_end_error
from kit.health.analyze.windows import PARTITION

BEYOND = "BEYOND"


@nw.narwhalify
def with_beyond_end(verdicts: FrameT, partition_lag: FrameT) -> FrameT:
    """Verdicts in which a partition whose commit is beyond the end of its log has the status ``BEYOND``.

    Args:
        verdicts: rows with group_id, store, topic, partition and status; evidence too, if they have it.
        partition_lag: rows of ``kit.analyze.partition_lag`` of the same observation.

    Columns: those of ``verdicts``.

    >>> import polars as pl
    >>> key = {"group_id": "g", "store": "kafka", "topic": "t", "partition": [0, 1]}
    >>> verdicts = pl.DataFrame({**key, "status": "OK", "evidence": "its lag of 0 records is allowed (0)"})
    >>> rows = with_beyond_end(verdicts, pl.DataFrame({**key, "beyond_end": [0, 7]}))
    >>> rows.sort("partition")["status"].to_list()
    ['OK', 'BEYOND']
    """
    names = verdicts.collect_schema().names()
    beyond = partition_lag.filter(nw.col("beyond_end") > 0).select(*PARTITION, "beyond_end")
    rows = verdicts.join(beyond, on=PARTITION, how="left")
    is_beyond = ~nw.col("beyond_end").is_null()
    values = {"status": nw.lit(BEYOND), "evidence": beyond_end_error(nw.col("beyond_end"))}
    changed = {
        name: nw.when(is_beyond).then(value).otherwise(nw.col(name)) for name, value in values.items() if name in names
    }
    return rows.with_columns(**changed).select(*names)
