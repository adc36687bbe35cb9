"""Columns as read, as polars frames: without Arrow, which takes longer to load than a small cluster to read."""

from __future__ import annotations

import typing
from datetime import datetime
from typing import Any

import polars as pl

from kit.tables.schema import Columns, Table, without_null

_TIME = pl.Datetime("us", "UTC")
_TYPES: dict[Any, Any] = {
    str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean, datetime: _TIME, "int32": pl.Int32,
    "binary": pl.Binary,
}  # fmt: skip


def as_polars(frame: Any) -> pl.DataFrame:
    """The rows of a frame of Spark or of polars, as polars; Spark works now."""
    return frame if isinstance(frame, pl.DataFrame) else pl.DataFrame(frame.toArrow())


def stamped_frame(columns: Columns, snapshot_id: str, observed_at: datetime) -> pl.DataFrame:
    """The rows as they are stored: the stamp, then the row."""
    stamp = pl.lit(snapshot_id).alias("snapshot_id"), pl.lit(observed_at, _TIME).alias("observed_at")
    return frame(columns).select(*stamp, pl.all())


def frame(columns: Columns) -> pl.DataFrame:
    """The rows as they were read."""
    return pl.DataFrame([pl.Series(name, columns[name], kind) for name, kind in polars_types(columns.table).items()])


def polars_types(table: Table) -> dict[str, Any]:
    """The type of each column of the rows as read."""
    return {name: polars_type(hint) for name, hint in table.hints.items()}


def polars_type(hint: Any) -> Any:
    """The type of a column by its hint."""
    inner = without_null(hint)
    if typing.get_origin(inner) is typing.Annotated:
        return _TYPES[typing.get_args(inner)[1]]
    if typing.get_origin(inner) is tuple:
        return pl.List(polars_type(typing.get_args(inner)[0]))
    return _TYPES[inner]


def rows_of(table: Table, **values: Any) -> pl.DataFrame:
    """Rows of a table by some of its columns: a list, or one value for all rows. The other columns are null.

    For worked cases and tests, which name only what they are about.

    >>> from kit.tables.schema import COMMITTED_OFFSETS
    >>> rows_of(COMMITTED_OFFSETS, group_id="g", partition=[0, 1]).select("group_id", "partition", "error").rows()
    [('g', 0, None), ('g', 1, None)]
    """
    n_rows = max((len(value) for value in values.values() if isinstance(value, list)), default=1 if values else 0)
    columns = {name: value if isinstance(value, list) else [value] * n_rows for name, value in values.items()}
    types = polars_types(table)
    return pl.DataFrame([pl.Series(name, columns.get(name, [None] * n_rows), kind) for name, kind in types.items()])
