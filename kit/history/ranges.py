"""A history a range of groups at a time: Spark's tasks read the files themselves, with polars.

For histories on this machine's own disks. Joins and sums of Spark's own take up to three times as long
(docs/decisions/two-engines.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kit.errors import InputError
from kit.history.parquet import Files, is_among, read
from kit.tables import schema as tables

Load: TypeAlias = Callable[..., Any]
"""A table and names of columns → rows, with snapshot_id."""
Work: TypeAlias = Callable[[Load], pl.DataFrame]
_TRIED = 10
"""Observations, for offsets of groups that are named: they may be of none. And such groups in a range."""
_Range: TypeAlias = tuple[str | None, str | None]
"""From a group on, until before another; None: from the first, to the last."""


@dataclass(frozen=True)
class GroupRanges:
    """A history's tables, by their names.

    ``newest_first``: the snapshots; ``n_offsets``: in a range, about; ``group_ids``: of these groups alone.
    """

    files: Mapping[str, Files]
    newest_first: Sequence[str]
    n_offsets: int
    group_ids: Collection[str] | None = None

    def map(self, spark: SparkSession, work: Work, bounds: Sequence[str]) -> DataFrame:
        """Return what ``work`` makes of the rows of each range between two ``bounds``, as :meth:`bounds` gives them.

        They are those of its groups, and the ends of the logs that they commit to.

        Raises:
            HistoryError: a file can't be read. If Spark's task finds that out, it is within Spark's own error.
            InputError: ``work`` gives a column of a type that Spark doesn't have.
        """
        ranges = list(pairwise([None, *bounds, None]))
        nothing: dict[str, Files] = {name: {} for name in self.files}
        schema = _plain(work(partial(read, nothing, pl.lit(True))).to_arrow().schema)
        task = partial(self._in_batches, work, schema, ranges)
        return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(task, tables.spark_ddl(schema))

    def bounds(self) -> list[str]:
        """Names of groups between which there are about as many offsets each, by the newest observation of any."""
        offsets = self.files[tables.COMMITTED_OFFSETS.name]
        tried = self.newest_first if self.group_ids is None else self.newest_first[:_TRIED]
        for snapshot_id in tried:
            at = {file: [snapshot_id] for file, ids in offsets.items() if snapshot_id in ids}
            groups = read({tables.COMMITTED_OFFSETS.name: at}, self._chosen, tables.COMMITTED_OFFSETS, "group_id")
            if len(groups):
                step = max(1, self.n_offsets // len(self.newest_first))
                return groups["group_id"].sort().gather_every(step, offset=step).unique().sort().to_list()
        return sorted(self.group_ids or [])[_TRIED::_TRIED]

    @property
    def _chosen(self) -> pl.Expr:
        return pl.lit(True) if self.group_ids is None else is_among("group_id", self.group_ids)

    def _in_batches(
        self, work: Work, schema: pa.Schema, ranges: Sequence[_Range], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch["id"].to_pylist():
                rows = work(self._load(*ranges[number])).select(schema.names)
                yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()

    def _load(self, first: str | None, before: str | None) -> Load:
        """A row without a group, which no history has, is of the first range: reading it raises."""
        group, is_in = pl.col("group_id"), self._chosen
        if first is not None:
            is_in &= group >= first
        if before is not None:
            is_in &= group < before if first is not None else (group < before) | group.is_null()
        return _Rows(self.files, is_in)


@dataclass
class _Rows:
    """The rows of some groups, and of the logs that they commit to."""

    files: Mapping[str, Files]
    is_in: pl.Expr
    topics: list[str] | None = None

    def __call__(self, table: tables.Table, *names: str) -> pl.DataFrame:
        if "group_id" in table.hints:
            rows = read(self.files, self.is_in, table, *names)
            if table.name == tables.COMMITTED_OFFSETS.name and "topic" in names:
                self.topics = rows["topic"].unique().to_list()
            return rows
        if "topic" not in table.hints:
            return read(self.files, pl.lit(True), table, *names)
        if self.topics is None:
            self(tables.COMMITTED_OFFSETS, "topic")
        return read(self.files, is_among("topic", self.topics or []), table, *names)


def _plain(schema: pa.Schema) -> pa.Schema:
    """Return the type as Spark has it.

    Raises:
        InputError: ``work`` gives a column of a type that it doesn't have.
    """
    return pa.schema([(field.name, _plain_type(field.name, field.type)) for field in schema])


def _plain_type(name: str, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_plain_type(name, kind.value_type))
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_dictionary(kind):
        return pa.string()
    if pa.types.is_integer(kind) and kind not in (pa.int32(), pa.uint64()):
        return pa.int64()
    if kind in (pa.string(), pa.int32(), pa.float32(), pa.float64(), pa.bool_()) or pa.types.is_timestamp(kind):
        return kind
    raise InputError(f"work gives {name} as {kind}, which Spark doesn't have. Cast it to a number, a string or a time")
