"""Snapshots of a few rows, of which it is known what they hold: for histories whose every row is counted."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kit.groups.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.spark import in_spark

FIRST, SECOND, TODAY = (datetime(2026, 11, day, 9, tzinfo=UTC) for day in (20, 21, 22))
N_ROWS = 3
KEPT = (tables.GROUPS, tables.COMMITTED_OFFSETS, tables.READ_ERRORS, tables.SNAPSHOTS)
"""Tables of these histories: what holds for one of them holds for the others, and each costs a Spark job."""


def snapshot_id(at: datetime, number: int) -> str:
    return f"{at:%Y%m%dT%H%M}-{number}"


def small_snapshot(spark: SparkSession, at: datetime, number: int) -> Snapshot[Any]:
    """Some rows in each table, but one in ``snapshots`` and none in ``read_errors``."""
    n_rows = {tables.SNAPSHOTS: 1, tables.READ_ERRORS: 0}
    frames = {}
    for table in tables.ALL:
        rows = range(n_rows.get(table, N_ROWS))
        columns = {field.name: [_value(field.type, number * 10 + row, at) for row in rows] for field in table.schema}
        stamped = table.stamp(pa.table(columns, schema=table.schema), snapshot_id(at, number), at)
        frames[table.name] = in_spark(spark, stamped)
    return Snapshot(snapshot_id(at, number), **dict.fromkeys(f.name for f in fields(Snapshot)[1:]) | frames)


def _value(kind: pa.DataType, number: int, at: datetime) -> Any:
    if pa.types.is_timestamp(kind):
        return at
    if pa.types.is_list(kind):
        return []
    if pa.types.is_boolean(kind):
        return bool(number % 2)
    return f"name-{number % 10}" if pa.types.is_string(kind) else number
