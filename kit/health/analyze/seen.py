"""Read commits and log ends from a history of snapshots, or the coordinators' topic: times in epoch ms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
from narwhals.typing import FrameT

from kit.health.analyze.lists import together
from kit.health.analyze.windows import PARTITION

_ORDER = "observed_ms"


@nw.narwhalify
def commits_seen(committed_offsets: FrameT) -> FrameT:
    """Committed offsets of many snapshots → the commits that they show, for ``partition_health``.

    A commit shows where the offset, or the time at which it was written, is another than in the snapshot before. A
    coordinator does not report the time, so a consumer that commits the same offset again appears silent: what Burrow
    calls a stall is a stop here. ``topic_commits`` sees each commit.

    Args:
        committed_offsets: ``tables.COMMITTED_OFFSETS`` with observed_ms, of the snapshot, and written_ms, of the commit
            (null where the store does not keep it).

    Columns: those of ``commits`` in ``commit_windows``. committed_ms is written_ms, else observed_ms, which is late by
    up to the time between two snapshots; committed_offset is null where the store no longer has one.

    >>> import polars as pl
    >>> key = {"group_id": "g", "store": "kafka", "topic": "t", "partition": 0}
    >>> history = pl.DataFrame({**key, "committed_offset": [5, 5, 9], "observed_ms": [10, 20, 30], "written_ms": None,
    ...     "error": None}, schema_overrides={"written_ms": pl.Int64, "error": pl.String})
    >>> commits_seen(history).sort("order").select("committed_offset", "committed_ms").rows()
    [(5, 10), (9, 30)]
    """
    rows = committed_offsets.filter(nw.col("error").is_null())
    rows = _with_before(rows, ["committed_offset", "written_ms", _ORDER])
    is_new = nw.col(f"{_ORDER}_before").is_null() | _differs("committed_offset") | _differs("written_ms")
    return rows.filter(is_new).select(
        *PARTITION,
        "committed_offset",
        committed_ms=nw.coalesce(nw.col("written_ms"), nw.col(_ORDER)),
        order=nw.col(_ORDER),
    )


@nw.narwhalify
def topic_commits(offset_commits: FrameT) -> FrameT:
    """Commits of ``__consumer_offsets`` → commits for ``partition_health``; a tombstone forgets what was before it.

    Args:
        offset_commits: ``tables.OFFSET_COMMITS`` with written_ms, of the record, and committed_ms, of the commit.

    Columns: those of ``commits`` in ``commit_windows``; order is the record's own place.

    >>> import polars as pl
    >>> records = pl.DataFrame({"group_id": "g", "topic": "t", "topic_partition": 3, "offset": [70, 71, 72],
    ...     "committed_offset": [5, None, None], "committed_ms": [10, None, None], "written_ms": [11, 21, 31],
    ...     "is_tombstone": [False, True, False], "error": [None, None, "the value ends too early"]})
    >>> topic_commits(records).select("partition", "committed_offset", "committed_ms", "order").rows()
    [(3, 5, 10, 70), (3, None, 21, 71)]
    """
    rows = offset_commits.filter(nw.col("is_tombstone") | ~nw.col("committed_offset").is_null())
    return rows.select(
        "group_id",
        nw.lit("kafka").alias("store"),
        "topic",
        partition="topic_partition",
        committed_offset="committed_offset",
        committed_ms=nw.coalesce(nw.col("committed_ms"), nw.col("written_ms")),
        order=nw.col("offset"),
    )


def _with_before(rows: FrameT, names: Sequence[str]) -> FrameT:
    """With what was there in the snapshot before. polars sorts once: as windows it takes three times as long."""
    native: Any = nw.to_native(rows)
    if isinstance(native, (pl.DataFrame, pl.LazyFrame)):
        ordered, _, lengths = together(native.lazy().collect(), PARTITION, _ORDER)
        is_first = np.zeros(len(ordered), bool)
        is_first[np.cumsum(lengths) - lengths] = True
        known = pl.when(~pl.Series(is_first))
        found = ordered.with_columns(known.then(pl.col(name).shift(1)).alias(f"{name}_before") for name in names)
        with_before: FrameT = nw.from_native(found if isinstance(native, pl.DataFrame) else found.lazy())
        return with_before
    over = {f"{name}_before": nw.col(name).shift(1).over(*PARTITION, order_by=_ORDER) for name in names}
    return rows.with_columns(**over)


def _differs(name: str) -> nw.Expr:
    """From the row before; null is a value like any other."""
    now, before = nw.col(name), nw.col(f"{name}_before")
    return (now != before).fill_null(False) | (now.is_null() != before.is_null())
