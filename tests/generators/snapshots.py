"""Snapshots whose rows a test writes down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import polars as pl

from kit.groups.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.polars import stamped_frame

AT = datetime(2026, 1, 2, tzinfo=UTC)


def snapshot_of(rows: Mapping[str, Iterable[Any]], at: datetime = AT) -> Snapshot[pl.DataFrame]:
    """The snapshot that has these rows by the name of their table; the other tables are empty."""
    frames = {table.name: stamped_frame(table.columns_of(rows.get(table.name, ())), "s", at) for table in tables.ALL}
    return Snapshot("s", **frames)


def with_each_group(snapshots: Mapping[str, Snapshot[pl.DataFrame]]) -> Snapshot[pl.DataFrame]:
    """Put snapshots of one group each into one snapshot, in which the groups have the given names.

    Tables of the whole cluster are those of the first snapshot.
    """
    first = next(iter(snapshots.values()))
    frames = {}
    for table in tables.ALL:
        frames[table.name] = getattr(first, table.name)
        if "group_id" in frames[table.name].columns:
            of_each = {name: getattr(snapshot, table.name) for name, snapshot in snapshots.items()}
            frames[table.name] = pl.concat(rows.with_columns(group_id=pl.lit(name)) for name, rows in of_each.items())
    return Snapshot(first.snapshot_id, **frames)
