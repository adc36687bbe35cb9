"""Many files of metadata logs, read by Spark's tasks: each reads the files whose numbers it is given.

For copies of many nodes or of many days. A file is read by itself: how a transaction ended is known where its end
is in the same file, and no image is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import polars as pl
import pyarrow as pa

from kit.errors import ReadError
from kit.kraft.metadata_log.file_summary import Tally
from kit.kraft.metadata_log.files import LogFile, find_files
from kit.kraft.metadata_log.replay import stream
from kit.kraft.metadata_log.rows import record_batches
from kit.kraft.metadata_log.transactions import with_transactions
from kit.tables import schema as tables
from kit.tables.metadata import MetadataFile
from kit.tables.schema import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Task: TypeAlias = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class MetadataFiles:
    """``records`` (``tables.METADATA_RECORDS``) is Spark's and lazy: each use reads the files again, unless cached.
    ``files`` (``tables.METADATA_FILES``) accounts for every record and is there.
    """

    records: DataFrame
    files: pl.DataFrame


def read_files(spark: SparkSession, paths: Iterable[str | Path]) -> MetadataFiles:
    """Read files of one or many logs side by side: folders as for ``read_log``, or single files.

    They must lie where Spark's tasks run, under the same path. A file that can't be read is named in the account.

    Raises:
        InputError, NotFound: there is no such path, or a folder without a log.
    """
    files = find_files(paths)
    counted = pl.DataFrame(_frame(spark, files, account(files), tables.METADATA_FILES).toArrow())
    return MetadataFiles(_frame(spark, files, records(files), tables.METADATA_RECORDS), counted.sort("file"))


def _frame(spark: SparkSession, files: Sequence[LogFile], task: Task, table: Table) -> DataFrame:
    return spark.range(len(files)).mapInArrow(task, table.spark_row_schema)


def records(files: Sequence[LogFile]) -> Task:
    """``tables.METADATA_RECORDS``."""

    def metadata_records(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in _given(files, numbers):
            yield from record_batches(with_transactions(stream([file])))

    return metadata_records


def account(files: Sequence[LogFile]) -> Task:
    """``tables.METADATA_FILES``."""

    def metadata_files(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from tables.METADATA_FILES.from_rows(map(_summary, _given(files, numbers))).to_batches()

    return metadata_files


def _given(files: Sequence[LogFile], numbers: Iterable[pa.RecordBatch]) -> Iterator[LogFile]:
    return (files[number] for batch in numbers for number in batch.column(0).to_pylist())


def _summary(file: LogFile) -> MetadataFile:
    tally = Tally(file)
    try:
        for record in stream([file]):
            tally.add(record)
    except ReadError as error:
        return replace(tally.row(), problems=(str(error),), n_errors=1, is_whole=False)
    return tally.row()
