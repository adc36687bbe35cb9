"""Log files → events, lines that were not understood, and an account of every file."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import polars as pl
import pyarrow as pa

from kit.errors import InputError
from kit.rebalances.logs import file_summary, layouts, lines
from kit.rebalances.logs.extract import ARROW_SCHEMA, SCHEMA, ExtractEvents
from kit.rebalances.logs.lines import CANDIDATE, ORDER, Lines, kept_on_disk
from kit.rebalances.logs.task_summary import COUNTS
from kit.tables import schema as tables
from kit.tables.spark import in_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Frame = TypeVar("Frame")
_FOR_ONE_TASK = 25_000
"""One task extracts events from so many lines in less than a second."""
_EVENTS, _UNKNOWN = (
    pa.schema([ARROW_SCHEMA.field(name) for name in table.schema.names])
    for table in (tables.LOG_EVENTS, tables.LOG_LINES)
)


@dataclass(frozen=True)
class ClientLogs(Generic[Frame]):
    """``events`` (``tables.LOG_EVENTS``) and ``unknown_lines`` (``tables.LOG_LINES``) ; ``files``
    (``tables.LOG_FILES``) accounts for every line. Spark's frames are lazy: computed at each use, from what was kept
    on Spark's disks. ``local.read_logs_here`` gives polars frames."""

    events: Frame
    unknown_lines: Frame
    files: pl.DataFrame


def read_client_logs(
    spark: SparkSession, paths: str | Iterable[str], zone: str | None = None, layout: str | None = None
) -> ClientLogs[DataFrame]:
    """Read logs of consumers or brokers: files, folders or patterns, gz too, layouts mixed.

    The files are read once, now.

    Args:
        zone: of times that don't report theirs (``Europe/Paris``, ``+05:30``); None: as the file proves it, else
        unknown. layout: one of ``layouts.NAMES``; None: whichever fits, line by line.

    Raises:
        InputError: no such layout or zone.
        NotFound: no such file.
        ReadError: a file can't be read at all.
    """
    check_arguments(zone, layout)
    wanted = [paths] if isinstance(paths, str) else list(paths)
    scanned = lines.scan_candidates(spark, wanted)
    read = lines.read_lines(scanned)
    extract = ExtractEvents(read.before, layout, zone)
    if read.few is None:
        counts, events, unknown = _extracted_in_tasks(scanned, read, extract)
    else:
        counts, *tables_here = extracted_here(read.few, extract)
        events, unknown = (in_spark(spark, rows) for rows in tables_here)
    files = file_summary.log_files(counts, read, layout)
    return ClientLogs(events, unknown, files)


def verify_logs(logs: ClientLogs[Any]) -> str:
    """Return what was read, in sentences; each file with a problem has one.

    Raises:
        PartialRead: a file is damaged, is no text, or has not the layout given: which and why.
    """
    return file_summary.verified(logs.files)


def check_arguments(zone: str | None, layout: str | None) -> None:
    """Raises InputError: no such layout or zone."""
    if layout is not None and layout not in layouts.NAMES:
        raise InputError(f"there is no layout {layout!r}; there are {', '.join(layouts.NAMES)}")
    if zone is not None:
        layouts.check_zone(zone)


def extracted_here(few: pl.DataFrame, extract: ExtractEvents) -> tuple[file_summary.FileCounts, pa.Table, pa.Table]:
    """Return the results of lines in this process: the counts of each file, the events, and the lines that were not
    understood.
    """
    lines = few.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()
    table = pa.Table.from_batches(extract(lines), ARROW_SCHEMA)
    counts, events = file_summary.counts_by_file(table), pl.DataFrame(table.filter(table.column("kind").is_valid()))
    shift_us = pl.col("file").replace_strict(file_summary.proved(counts), default=None, return_dtype=pl.Int64)
    shifted = pl.from_epoch(pl.col("local_at") - shift_us, time_unit="us").dt.replace_time_zone("UTC")
    known = events.with_columns(pl.coalesce("observed_at", shifted)).to_arrow(compat_level=pl.CompatLevel.oldest())
    unknown = table.filter(table.column("wording").is_valid())
    return counts, known.select(_EVENTS.names).cast(_EVENTS), unknown.select(_UNKNOWN.names).cast(_UNKNOWN)


def _extracted_in_tasks(
    scanned: DataFrame, read: Lines, extract: ExtractEvents
) -> tuple[file_summary.FileCounts, DataFrame, DataFrame]:
    """Extract like :func:`extracted_here`, of many lines: one task for a file, in order."""
    wanted = scanned.where("value IS NOT NULL").select(*CANDIDATE)
    n_tasks = min(len(read.n_lines), 1 + read.n_candidates // _FOR_ONE_TASK)
    gathered = wanted.repartition(n_tasks, "file") if n_tasks > 1 else wanted.coalesce(1)
    rows = kept_on_disk(gathered.sortWithinPartitions(*ORDER).mapInArrow(extract, SCHEMA))
    counts = file_summary.counts_by_file(rows.where("n_events IS NOT NULL").select("file", *COUNTS).toArrow())
    proved = file_summary.proved(counts)
    files = json.dumps(proved).replace("'", r"\u0027")
    shift = f"try_element_at(from_json(r'{files}', 'map<string, bigint>'), file)"
    known = {"observed_at": f"coalesce(observed_at, timestamp_micros(local_at - {shift})) AS observed_at"}
    columns = [known.get(name, name) if proved else name for name in _EVENTS.names]
    unknown = rows.where("wording IS NOT NULL").select(*_UNKNOWN.names)
    return counts, rows.where("kind IS NOT NULL").selectExpr(*columns), unknown
