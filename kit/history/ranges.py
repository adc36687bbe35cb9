"""A history a range of groups at a time: Spark's tasks read the files themselves, with polars.

For histories on this machine's own disks. Joins and sums of Spark's own take up to three times as long
(docs/decisions/two-engines.md).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kit.errors import HistoryError
from kit.tables import schema as tables
from kit.tables.polars import polars_types

Folders: TypeAlias = Mapping[str, Sequence[str]]
"""Local folders of a table's files, each with the snapshots to take of it; one that is of a single snapshot has no
column that names it."""
Load: TypeAlias = Callable[..., Any]
"""A table and names of columns → rows, with snapshot_id."""
FILES = "[!._]*.parquet"
_TIME = pl.Datetime("us", "UTC")
_ROWS = 2_000_000
"""So many offsets are in a range, about: they and what is made of them took 1.5 GB."""


@dataclass(frozen=True)
class GroupRanges:
    """A history's tables, by their names.

    ``newest_first``: the snapshots with offsets; ``group_ids``: of these groups alone.
    """

    folders: Mapping[str, Folders]
    newest_first: Sequence[str]
    group_ids: Collection[str] | None = None

    def map(self, spark: SparkSession, work: Callable[[Load], pl.DataFrame]) -> DataFrame:
        """What ``work`` makes of each range's rows: those of its groups, and the ends of the logs that they commit to.

        Raises:
            HistoryError: a file can't be read, now or when Spark asks for the rows.
        """
        bounds = [None, *self._bounds(), None]
        ranges = spark.createDataFrame(list(pairwise(bounds)), "first string, before string")
        schema = _plain(work(partial(_read, {}, pl.lit(True))).to_arrow().schema)
        task = partial(self._in_batches, work, schema)
        return ranges.repartition(len(bounds) - 1).mapInArrow(task, tables.spark_ddl(schema))

    def _bounds(self) -> list[str]:
        """Names of groups between which there are about as many offsets each, by the newest look that saw any."""
        offsets = self.folders[tables.COMMITTED_OFFSETS.name]
        for snapshot_id in self.newest_first:
            at = {folder: [snapshot_id] for folder, ids in offsets.items() if snapshot_id in ids}
            groups = _read({tables.COMMITTED_OFFSETS.name: at}, self._chosen, tables.COMMITTED_OFFSETS, "group_id")
            if len(groups):
                step = max(1, _ROWS // len(self.newest_first))
                return groups["group_id"].sort().gather_every(step, offset=step).unique().sort().to_list()
        return []

    @property
    def _chosen(self) -> pl.Expr:
        return pl.lit(True) if self.group_ids is None else pl.col("group_id").is_in(list(self.group_ids))

    def _in_batches(
        self, work: Callable[[Load], pl.DataFrame], schema: pa.Schema, batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for first, before in zip(batch["first"].to_pylist(), batch["before"].to_pylist()):
                rows = work(self._load(first, before)).select(schema.names)
                yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()

    def _load(self, first: str | None, before: str | None) -> Load:
        group, is_in = pl.col("group_id"), self._chosen
        is_in = is_in if first is None else is_in & (group >= first)
        return _Rows(self.folders, is_in if before is None else is_in & (group < before))


@dataclass
class _Rows:
    """Those of some groups, and of the logs that they commit to."""

    folders: Mapping[str, Folders]
    is_in: pl.Expr
    topics: list[str] | None = None

    def __call__(self, table: tables.Table, *names: str) -> pl.DataFrame:
        if "group_id" in table.hints:
            rows = _read(self.folders, self.is_in, table, *names)
            if table.name == tables.COMMITTED_OFFSETS.name and "topic" in names:
                self.topics = rows["topic"].unique().to_list()
            return rows
        if "topic" not in table.hints:
            return _read(self.folders, pl.lit(True), table, *names)
        if self.topics is None:
            self(tables.COMMITTED_OFFSETS, "topic")
        return _read(self.folders, pl.col("topic").is_in(self.topics or []), table, *names)


def _plain(schema: pa.Schema) -> pa.Schema:
    """Spark knows no Arrow strings of 64-bit length, which polars gives."""
    kinds = [pa.string() if pa.types.is_large_string(field.type) else field.type for field in schema]
    return pa.schema(list(zip(schema.names, kinds)))


def _read(folders: Mapping[str, Folders], is_in: pl.Expr, table: tables.Table, *names: str) -> pl.DataFrame:
    """snapshot_id and these columns; a column that a file lacks is null.

    Raises:
        HistoryError: a file can't be read, or has a column of another type.
    """
    known = {"snapshot_id": pl.String, "observed_at": _TIME, **polars_types(table)}
    types = {name: known[name] for name in dict.fromkeys(["snapshot_id", *names])}
    scans = {folder: _scan(folder, ids, types, is_in) for folder, ids in folders.get(table.name, {}).items()}
    try:
        return pl.concat([pl.DataFrame(schema=types), *pl.collect_all(scans.values())])
    except (OSError, pl.exceptions.PolarsError):
        for folder, scan in scans.items():  # Which one was it?
            with _told(folder):
                scan.collect()
        raise


@contextmanager
def _told(folder: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        raise HistoryError(f"{folder} can't be read: {str(error).partition(chr(10))[0]}") from error


def _scan(folder: str, ids: Sequence[str], types: Mapping[str, Any], is_in: pl.Expr) -> pl.LazyFrame:
    files = sorted(Path(folder).glob(FILES))
    if not files:
        raise HistoryError(f"{folder} can't be read: its files are gone")
    rows = pl.scan_parquet(files, hive_partitioning=False, glob=False)
    with _told(folder):
        found = rows.collect_schema()
    for name, kind in types.items():
        if not _is_alike(found.get(name, kind), kind):
            why = f"holds {name} as {found[name]} where {kind} is expected: another version of offramp wrote it"
            raise HistoryError(f"{folder} {why}")
    is_its = pl.col("snapshot_id").is_in(ids) if "snapshot_id" in found else pl.lit(True)
    lacking = {name: pl.lit(None, kind) for name, kind in types.items() if name not in found}
    if "snapshot_id" in lacking:
        lacking["snapshot_id"] = pl.lit(ids[0])
    rows = rows.filter(is_its & is_in).with_columns(**lacking)
    return rows.select(_typed(name, found.get(name, kind), kind) for name, kind in types.items())


def _typed(name: str, found: Any, kind: Any) -> pl.Expr:
    """A time without a zone is one of UTC."""
    is_other_time = kind.is_temporal() and found != kind
    return (pl.col(name).dt.epoch("us") if is_other_time else pl.col(name)).cast(kind)


def _is_alike(found: Any, kind: Any) -> bool:
    return (
        found == kind
        or all(each.is_integer() for each in (found, kind))
        or all(each.is_temporal() for each in (found, kind))
    )
