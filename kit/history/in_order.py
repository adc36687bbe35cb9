"""Rows written in the order of groups: the days that are compacted, and copies of looks that are not compacted yet."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from kit.errors import HistoryError
from kit.history.files import told_as
from kit.history.parquet import Files, files_of, is_of_one, n_rows
from kit.history.store import Reading
from kit.tables import schema as tables
from kit.text.quantity import quantity

_SORTED_BY = ("group_id", "topic", "partition", "observed_at")
_ROW_GROUP = 250_000
"""Rows that are read or passed over together; by its size alone, one has several million."""
_OPENED = 300
"""Files to be opened for all ranges together, from which on copies take less time."""
_RANGES_IN_FILE = 32


class Copies:
    """Of looks as they were appended: each has all groups, so that every range of groups would read every look.

    They lie among Spark's temporary files (``spark.local.dir``) and go with it; about as large as the looks themselves.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._copied: dict[str, str] = {}
        """Snapshot → the folder that it was copied to."""

    def instead(
        self, files: Mapping[str, Files], reading: Reading, days: Mapping[str, date], n_ranges: int
    ) -> dict[str, Files]:
        """Files of the same rows. Looks are copied if that takes less time than to read them ``n_ranges`` times.

        Raises:
            HistoryError: they can't be read, or written.
        """
        loose = {each for file, ids in files[tables.COMMITTED_OFFSETS.name].items() if is_of_one(file) for each in ids}
        if len(new := loose - self._copied.keys()) * n_ranges > _OPENED:
            self._copy(
                {
                    name: {file: ids for file, ids in of_table.items() if is_of_one(file) and ids[0] in new}
                    for name, of_table in files.items()
                },
                reading,
                {each: days[each] for each in new},
                n_ranges,
            )
        return {name: self._replaced(name, of_table) for name, of_table in files.items()}

    def _copy(
        self,
        files: Mapping[str, Files],
        reading: Reading,
        days: Mapping[str, date],
        n_ranges: int,
    ) -> None:
        what = f"{quantity(len(days), 'look')} can't be copied to spark.local.dir"
        try:
            folder = tempfile.mkdtemp(prefix="offramp-history-", dir=_temporary(self._spark))
        except OSError as error:
            raise HistoryError(f"{what}: {error}") from error
        with told_as(what):
            for table in (each for each in tables.ALL if each.name in files):
                rows = reading.of_snapshots(table, sorted(days), sorted(set(days.values())))
                n_files = n_ranges // _RANGES_IN_FILE + 1 if "group_id" in table.hints else 1
                save_in_order(rows, table, f"file://{folder}/{table.name}", n_files)
                # Spark passes over a file that is empty, or was deleted since it was listed.
                expected, found = n_rows(files[table.name]), n_rows(files_of(f"{folder}/{table.name}"))
                if found != expected:
                    raise HistoryError(f"{what}: of {table.name} {found:,} of {quantity(expected, 'row')} came")
        self._copied |= dict.fromkeys(days, folder)

    def _replaced(self, name: str, files: Files) -> Files:
        kept, copied = dict[str, Sequence[str]](), defaultdict[str, list[str]](list)
        for file, ids in files.items():
            if is_of_one(file) and ids[0] in self._copied:
                copied[self._copied[ids[0]]].append(ids[0])
            else:
                kept[file] = ids
        return kept | {file: ids for folder, ids in copied.items() for file in files_of(f"{folder}/{name}")}


def _temporary(spark: SparkSession) -> str:
    """What a kernel leaves that is not asked to end, Spark deletes."""
    return str(spark.sparkContext._temp_dir)


def save_in_order(rows: DataFrame, table: tables.Table, folder: str, n_files: int) -> None:
    """Write a folder that isn't there yet, of files that follow each other."""
    keys = [name for name in _SORTED_BY if name in table.stamped_schema.names]
    spread = rows.coalesce(1) if n_files == 1 else rows.repartitionByRange(n_files, *keys)
    save(spread.sortWithinPartitions(*keys), folder)


def save(rows: DataFrame, folder: str) -> None:
    """Write a folder that isn't there yet, without Hadoop's marks of success: ``snapshots`` is ours."""
    options = {
        "compression": "zstd",
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "parquet.block.row.count.limit": str(_ROW_GROUP),
    }
    rows.write.options(**options).parquet(folder)
