"""A history's hours, a range of groups at a time: Spark's tasks read the files themselves, with polars.

For histories on this machine's own disks. Joins and sums of Spark's own take up to three times as long
(docs/decisions/two-engines.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kit import analyze
from kit.errors import HistoryError
from kit.tables import schema as tables
from kit.tables.polars import polars_types

Folders = Mapping[str, Sequence[str]]
"""Local folders of a table's files, each with the snapshots to take of it; one that is of a single snapshot has no
column that names it."""
FILES = "[!._]*.parquet"
_ROWS = 2_000_000
"""So many offsets are in a range, about: they and what is made of them took 1.5 GB."""
_OFFSETS = ["group_id", "store", "topic", "partition", "committed_offset", "committed_at"]
_ENDS = ["topic", "partition", "log_end_offset"]
_OWNERS = ["group_id", "source", "topic", "partition", "member_id"]


@dataclass(frozen=True)
class GroupRanges:
    """What ``analyze.group_hours`` takes, by the folders of its tables.

    ``looks``: ``analyze.looks_of_hours``; ``ends_at``: snapshot_id and at_ms of the looks whose ends count.
    """

    committed_offsets: Folders
    log_offsets: Folders
    ownership: Folders
    looks: pl.DataFrame
    ends_at: pl.DataFrame

    def hours(self, spark: SparkSession) -> DataFrame:
        """``tables.GROUP_HOURS``.

        Raises:
            HistoryError: a file can't be read, now or when Spark asks for the rows.
        """
        bounds = [None, *self._bounds(), None]
        ranges = spark.createDataFrame(list(pairwise(bounds)), "first string, before string")
        schema = tables.GROUP_HOURS.spark_row_schema
        return ranges.repartition(len(bounds) - 1).mapInArrow(self._of_batches, schema)

    def _bounds(self) -> list[str]:
        """Names of groups between which there are about as many offsets each, by the newest look that saw any."""
        n_looks = self.looks["snapshot_id"].n_unique()
        for snapshot_id in self.looks.sort("at_ms", descending=True)["snapshot_id"].unique(maintain_order=True):
            at = {folder: [snapshot_id] for folder, ids in self.committed_offsets.items() if snapshot_id in ids}
            groups = _read(tables.COMMITTED_OFFSETS, at, ["group_id"], pl.lit(True))["group_id"].sort()
            if len(groups):
                step = max(1, _ROWS // n_looks)
                return groups.gather_every(step, offset=step).unique().sort().to_list()
        return []

    def _of_batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = tables.GROUP_HOURS.schema
        for batch in batches:
            for first, before in zip(batch["first"].to_pylist(), batch["before"].to_pylist()):
                rows = self._of_range(first, before).select(schema.names)
                yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()

    def _of_range(self, first: str | None, before: str | None) -> pl.DataFrame:
        group = pl.col("group_id")
        is_in = pl.lit(True) if first is None else group >= first
        is_in = is_in if before is None else is_in & (group < before)
        offsets = _read(tables.COMMITTED_OFFSETS, self.committed_offsets, _OFFSETS, is_in)
        is_read = pl.col("topic").is_in(offsets["topic"].unique().to_list())
        rows: pl.DataFrame = analyze.group_hours(
            offsets.rename({"committed_at": "written_ms"}),
            _read(tables.LOG_OFFSETS, self.log_offsets, _ENDS, is_read).join(self.ends_at, on="snapshot_id"),
            _read(tables.OWNERSHIP, self.ownership, _OWNERS, is_in),
            self.looks,
        )
        return rows


def _read(table: tables.Table, folders: Folders, names: Sequence[str], is_in: pl.Expr) -> pl.DataFrame:
    """snapshot_id and these columns, times in ms (epoch); a column that a file lacks is null.

    Raises:
        HistoryError: a file can't be read, or has a column of another type.
    """
    types = {"snapshot_id": pl.String, **{name: polars_types(table)[name] for name in names}}
    none = pl.DataFrame(schema={name: pl.Int64 if kind.is_temporal() else kind for name, kind in types.items()})
    scans = {folder: _scan(folder, ids, types).filter(is_in) for folder, ids in folders.items()}
    try:
        return pl.concat([none, *pl.collect_all(scans.values())])
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


def _scan(folder: str, ids: Sequence[str], types: Mapping[str, Any]) -> pl.LazyFrame:
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
    if "snapshot_id" in found:
        rows = rows.filter(pl.col("snapshot_id").is_in(ids))
    else:
        rows = rows.with_columns(snapshot_id=pl.lit(ids[0]))
    lacking = {name: pl.lit(None, kind) for name, kind in types.items() if name not in found and name != "snapshot_id"}
    rows = rows.with_columns(**lacking)
    times = [pl.col(name).dt.epoch("ms") for name, kind in types.items() if kind.is_temporal()]
    return rows.with_columns(*times).select(
        pl.col(name) if kind.is_temporal() else pl.col(name).cast(kind) for name, kind in types.items()
    )


def _is_alike(found: Any, kind: Any) -> bool:
    return (
        found == kind
        or all(each.is_integer() for each in (found, kind))
        or all(each.is_temporal() for each in (found, kind))
    )
