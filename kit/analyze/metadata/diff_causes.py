"""Why a value differs in both stores, by what the metadata log says that it was before."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.metadata.diff import FAILED_WRITE, HAND_EDIT, ITEM_KEY, NOT_COPIED, item_values, partition_values


@nw.narwhalify
def with_causes(
    differences: FrameT, earlier_partitions: FrameT, earlier_items: FrameT, copied_until: int | None
) -> FrameT:
    """``metadata_diff`` with the causes that only the history of the values tells.

    Args:
        differences: ``tables.METADATA_DIFFERENCES``.
        earlier_partitions, earlier_items: ``tables.METADATA_PARTITIONS``, ``METADATA_ITEMS``, one row per record that
            set a value of what diverged.
        copied_until: the last offset of the copy out of ZooKeeper; None: what was before is not fully known.

    ``cause`` of a diverged value: ``hand_edit``: KRaft has not changed the value since the copy, or it never had what
    ZooKeeper holds: no controller wrote that. ``failed_write``: ZooKeeper holds what KRaft had before its last change:
    that change did not arrive (or somebody put the old value back). Null: not known; of what ZooKeeper lacks and KRaft
    made since the copy, nothing tells a write that failed from a deletion by hand.
    """
    value = "zookeeper_value"
    columns = [*ITEM_KEY, value]
    earlier = nw.concat(
        [
            partition_values(earlier_partitions, value).select(*columns),
            item_values(earlier_items, value).select(*columns),
        ]
    ).unique(columns)
    rows = differences.join(earlier.with_columns(was_held=nw.lit(True)), on=columns, how="left")
    was_held = nw.col("was_held").fill_null(False)
    is_untouched = (nw.col("offset") <= (-1 if copied_until is None else copied_until)).fill_null(False)
    is_foreign = ~nw.col(value).is_null() & ~was_held & nw.lit(copied_until is not None)
    is_open = (nw.col("verdict") == "diverged") & ~(nw.col("cause") == NOT_COPIED).fill_null(False)
    cause = (
        nw.when(is_open & (is_foreign | (is_untouched & ~nw.col("kraft_value").is_null())))
        .then(nw.lit(HAND_EDIT))
        .when(is_open & was_held & nw.col("cause").is_null())
        .then(nw.lit(FAILED_WRITE))
        .otherwise(nw.col("cause"))
    )
    return rows.with_columns(cause=cause).drop("was_held")
