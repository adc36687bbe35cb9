"""Rows written in the order of groups: the days that are compacted, and copies of observations that are not compacted
yet.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import TypeAlias

from pyspark.sql import DataFrame, SparkSession

from kit.errors import HistoryError
from kit.history.files import describe_as
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
_Stamp: TypeAlias = tuple[str, int, int]
"""A file, when it was written (ns), and its size."""
Save: TypeAlias = Callable[[DataFrame, tables.Table, str, int], None]


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


class Copies:
    """Copies of observations as they were appended: each has all groups, so that every range of groups would read every
    observation.

    They lie among Spark's temporary files (``spark.local.dir``) and go with it; about as large as the observations
    themselves.
    ``save`` writes rows of a table to a folder, in the given number of files.
    """

    def __init__(self, temporary: str, save: Save = save_in_order) -> None:
        self._temporary, self._save = temporary, save
        self._lock = threading.Lock()
        self._copied: dict[_Stamp, str] = {}
        """An observation's file → the folder that it was copied to."""
        self._n_rows: dict[str, dict[str, int]] = {}
        """The number of rows of each table in each such folder."""

    def instead(
        self, files: Mapping[str, Files], reading: Reading, days: Mapping[str, date], n_ranges: int
    ) -> dict[str, Files]:
        """Files of the same rows. Observations are copied if that takes less time than to read them ``n_ranges`` times.

        Raises:
            HistoryError: they can't be read, or written.
        """
        stamps = {file: _stamp(file) for of_table in files.values() for file in of_table if is_of_one(file)}
        with self._lock:
            self._forget_what_is_gone()
            new = {
                ids[0]
                for of_table in files.values()
                for file, ids in of_table.items()
                if file in stamps and stamps[file] not in self._copied
            }
            if len(new) * n_ranges > _OPENED:
                chosen = {
                    name: {file: ids for file, ids in of_table.items() if file in stamps and ids[0] in new}
                    for name, of_table in files.items()
                }
                folder = self._copy(chosen, reading, {each: days[each] for each in new}, n_ranges)
                self._copied |= {stamps[file]: folder for of_table in chosen.values() for file in of_table}
            return {name: self._replaced(name, of_table, stamps) for name, of_table in files.items()}

    def _forget_what_is_gone(self) -> None:
        """Whoever tidies up temporary files may have deleted some of a copy."""
        for folder, expected in list(self._n_rows.items()):
            with suppress(HistoryError):
                if expected == {name: n_rows(files_of(f"{folder}/{name}")) for name in expected}:
                    continue
            del self._n_rows[folder]
            self._copied = {stamp: other for stamp, other in self._copied.items() if other != folder}
            shutil.rmtree(folder, ignore_errors=True)

    def _copy(self, files: Mapping[str, Files], reading: Reading, days: Mapping[str, date], n_ranges: int) -> str:
        what = f"{quantity(len(days), 'observation')} can't be copied to {self._temporary} (spark.local.dir)"
        try:
            folder = tempfile.mkdtemp(prefix="offramp-history-", dir=self._temporary)
        except OSError as error:
            raise HistoryError(f"{what}: {error.strerror}") from error
        try:
            with describe_as(what):
                for table in (each for each in tables.ALL if each.name in files):
                    rows = reading.of_snapshots(table, sorted(days), sorted(set(days.values())))
                    n_files = n_ranges // _RANGES_IN_FILE + 1 if "group_id" in table.hints else 1
                    self._save(rows, table, f"file://{folder}/{table.name}", n_files)
            # Spark passes over a file that is empty, or was deleted since it was listed.
            found = {name: n_rows(files_of(f"{folder}/{name}")) for name in files}
            for name, of_table in files.items():
                if found[name] != (expected := n_rows(of_table)):
                    raise HistoryError(f"{what}: {found[name]:,} of {quantity(expected, 'row')} of {name} were written")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        self._n_rows[folder] = found
        return folder

    def _replaced(self, name: str, files: Files, stamps: Mapping[str, _Stamp]) -> Files:
        kept, copied = dict[str, Sequence[str]](), defaultdict[str, list[str]](list)
        for file, ids in files.items():
            if file in stamps and stamps[file] in self._copied:
                copied[self._copied[stamps[file]]].append(ids[0])
            else:
                kept[file] = ids
        return kept | {file: ids for folder, ids in copied.items() for file in files_of(f"{folder}/{name}")}


_COPIES: dict[tuple[str, str], Copies] = {}
"""By Spark's application and the history's folder."""


def copies_of(spark: SparkSession, folder: str) -> Copies:
    """The same for all that read this history by this Spark."""
    return _COPIES.setdefault((str(spark.sparkContext.applicationId), folder), Copies(_temporary(spark)))


def _stamp(file: str) -> _Stamp:
    try:
        status = os.stat(file)
    except OSError as error:
        raise HistoryError(f"{file} can't be read: {error.strerror}") from error
    return file, status.st_mtime_ns, status.st_size


def _temporary(spark: SparkSession) -> str:
    """Make a temporary folder. If a kernel that was not asked to end leaves it, Spark deletes it."""
    return str(spark.sparkContext._temp_dir)
