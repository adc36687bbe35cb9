"""A history of snapshots of which it is known what happened: written as ``kit.history`` lays it out, without Spark."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from kit.history.names import ABOUT
from kit.tables import schema as tables
from kit.tables.groups import CommittedOffset, Group, LogOffset, Member, ReadTiming, SnapshotInfo

START = datetime(2026, 11, 22, 22, 0, tzinfo=UTC)
STEP = timedelta(minutes=2)
Position = Callable[[int], int | None]


def write(
    folder: Path, minutes: int, groups: dict[tuple[str, str], Position], holes: frozenset[int] = frozenset()
) -> None:
    """A snapshot each two minutes; a topic of one partition that gets 100 records each minute.

    Args:
        groups: group and store → minute → its committed offset.
        holes: minutes at which nobody looked.
    """
    _write(folder / ABOUT / "about.parquet", {"schema_version": [tables.SCHEMA_VERSION]})
    for minute in range(0, minutes + 1, 2):
        if minute not in holes:
            _snapshot(folder, minute, groups, is_last=minute == minutes)


def _snapshot(folder: Path, minute: int, groups: dict[tuple[str, str], Position], is_last: bool) -> None:
    at = START + timedelta(minutes=minute)
    begun = at - timedelta(seconds=1)
    rows: dict[tables.Table, list[Any]] = {table: [] for table in (tables.ALL if is_last else ())}
    rows[tables.LOG_OFFSETS] = [LogOffset("t", 0, 0, 100 * minute)]
    rows[tables.COMMITTED_OFFSETS] = [
        CommittedOffset(group, store, "t", 0, position(minute), *[None] * 5)
        for (group, store), position in groups.items()
    ]
    rows[tables.READ_TIMINGS] = [ReadTiming("log offsets", begun, 10.0, 1)]
    rows[tables.SNAPSHOTS] = [SnapshotInfo("lab", "id", begun, at, ".*", "1")]
    if is_last:
        names = sorted({group for group, _ in groups})
        rows[tables.GROUPS] = [Group(name, "kafka", "Stable", "classic", "consumer", "range", 1) for name in names]
        rows[tables.MEMBERS] = [Member(name, "kafka", f"{name}-1", "c", "h", *[None] * 5) for name in names]
    snapshot_id = f"{at:%Y%m%dT%H%M%SZ}-history"
    for table, each in rows.items():
        stamped = table.stamp(table.from_rows(each), snapshot_id, at).drop_columns(["snapshot_id"])
        place = folder / table.name / f"date={at:%Y-%m-%d}" / f"snapshot_id={snapshot_id}"
        place.mkdir(parents=True)
        pq.write_table(stamped, place / "part.parquet")


def _write(file: Path, columns: dict[str, list[Any]]) -> None:
    import pyarrow as pa

    file.parent.mkdir(parents=True)
    pq.write_table(pa.table(columns).cast(pa.schema([("schema_version", pa.int32())])), file)
