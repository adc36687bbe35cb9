"""Compare two snapshots."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT


@nw.narwhalify
def lag_change(before: FrameT, after: FrameT) -> FrameT:
    """Two ``group_lag`` frames → how each lag changed; a group that only one snapshot knows has null for the other.

    Columns:
        group_id, store: the key.
        lag_before, lag, change: in records; null where unknown.

    >>> import polars as pl
    >>> before = pl.DataFrame({"group_id": ["g"], "store": ["kafka"], "lag": [10]})
    >>> after = pl.DataFrame({"group_id": ["g", "new"], "store": ["kafka", "kafka"], "lag": [4, 7]})
    >>> lag_change(before, after).sort("group_id").rows()
    [('g', 'kafka', 10, 4, -6), ('new', 'kafka', None, 7, None)]
    """
    keys = nw.concat([frame.select("group_id", "store") for frame in (before, after)]).unique()
    rows = keys.join(before.select("group_id", "store", lag_before="lag"), on=["group_id", "store"], how="left")
    rows = rows.join(after.select("group_id", "store", "lag"), on=["group_id", "store"], how="left")
    return rows.select("group_id", "store", "lag_before", "lag", change=nw.col("lag") - nw.col("lag_before"))


@nw.narwhalify
def partition_progress(before: FrameT, after: FrameT) -> FrameT:
    """Two ``partition_lag`` frames → who read on between them, for the partitions of both, in stores that are in use.

    Columns:
        group_id, store, topic, partition: the key.
        member_id: the owner now.
        committed_before, committed_offset: then and now.
        consumed: in records; negative after a rewind.
        produced, lag: in records.
        verdict: ``moving``; ``idle`` (nothing to read); ``stalled`` (records to read, no commit in between: too little
            time for a commit, or a consumer that hangs); ``rewound``; ``unknown``.

    >>> import polars as pl
    >>> key = {"group_id": "g", "store": "kafka", "topic": "t", "partition": [0, 1, 2]}
    >>> before = pl.DataFrame(key | {"committed_offset": [5, 5, 9], "log_end_offset": [9, 9, 9]})
    >>> after = key | {"committed_offset": [8, 5, 9], "log_end_offset": [9, 12, 9], "lag": [1, 7, 0]}
    >>> after |= {"lag_retained": [1, 7, 0]}
    >>> rows = partition_progress(before, pl.DataFrame(after | {"member_id": "a", "is_stale": False}))
    >>> rows.sort("partition").select("partition", "consumed", "produced", "verdict").rows()
    [(0, 3, 0, 'moving'), (1, 0, 3, 'stalled'), (2, 0, 0, 'idle')]
    """
    key = ["group_id", "store", "topic", "partition"]
    earlier = before.select(*key, committed_before="committed_offset", end_before="log_end_offset")
    rows = (
        after.filter(~nw.col("is_stale"))
        .join(earlier, on=key, how="inner")
        .with_columns(
            consumed=nw.col("committed_offset") - nw.col("committed_before"),
            produced=nw.col("log_end_offset") - nw.col("end_before"),
        )
    )
    consumed = nw.col("consumed")
    verdict = (
        nw.when(consumed.is_null() | nw.col("lag").is_null())
        .then(nw.lit("unknown"))
        .when(consumed < 0)
        .then(nw.lit("rewound"))
        .when(consumed > 0)
        .then(nw.lit("moving"))
        .when(nw.coalesce("lag_retained", "lag") > 0)
        .then(nw.lit("stalled"))
        .otherwise(nw.lit("idle"))
    )
    columns = ["member_id", "committed_before", "committed_offset", "consumed", "produced", "lag"]
    return rows.select(*key, *columns, verdict=verdict)
