"""Log files → events, lines that were not understood, and an account of every file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from kit import tables
from kit.errors import InputError
from kit.logs import accounts, layouts, lines, telling
from kit.logs.lines import CANDIDATE, ORDER, Lines, kept_on_disk

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FOR_ONE_TASK = 25_000
"""So many lines are told in less than a second."""
_NOTHING = telling.ARROW_SCHEMA.empty_table()
"""Spark makes no DataFrame of a table without any batch."""


@dataclass(frozen=True)
class ClientLogs:
    """``events`` (``tables.LOG_EVENTS``) and ``unknown_lines`` (``tables.LOG_LINES``) are Spark's and lazy: computed
    at each use, from what was kept on Spark's disks. ``files`` (``tables.LOG_FILES``) accounts for every line."""

    events: DataFrame
    unknown_lines: DataFrame
    files: pl.DataFrame


def read_client_logs(
    spark: SparkSession, paths: str | Iterable[str], zone: str | None = None, layout: str | None = None
) -> ClientLogs:
    """Read logs of consumers or brokers: files, folders or patterns, gz too, layouts mixed.

    The files are read once, now.

    Args:
        zone: of times that don't say theirs (``Europe/Paris``, ``+05:30``); None: as the file proves it, else unknown.
        layout: one of ``layouts.NAMES``; None: whichever fits, line by line.

    Raises:
        InputError: no such layout or zone.
        NotFound: no such file.
        ReadError: a file can't be read at all.
    """
    if layout is not None and layout not in layouts.NAMES:
        raise InputError(f"there is no layout {layout!r}; there are {', '.join(layouts.NAMES)}")
    if zone is not None:
        layouts.check_zone(zone)
    wanted = [paths] if isinstance(paths, str) else list(paths)
    sifted = lines.sifted(spark, wanted)
    read = lines.read_lines(sifted)
    found, told = _told(spark, sifted, read, telling.Tell(read.before, layout, zone))
    files = accounts.log_files(found, read.n_lines, read.damaged, read.odd - set(found), layout)
    unknown = told.where("wording IS NOT NULL").select(*tables.LOG_LINES.schema.names)
    return ClientLogs(_events(told, accounts.proved(found)), unknown, files)


def verify_logs(logs: ClientLogs) -> str:
    """What was read, in sentences; each file with a problem has one.

    Raises:
        PartialRead: a file is damaged, is no text, or has not the layout given: which and why.
    """
    return accounts.verified(logs.files)


def _told(spark: SparkSession, sifted: DataFrame, read: Lines, tell: telling.Tell) -> tuple[accounts.Told, DataFrame]:
    """What each file told, and all rows. Few lines are told in the driver, many in tasks: one for a file, in order."""
    if read.few is not None:
        lines = read.few.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()
        told = pa.concat_tables([_NOTHING, pa.Table.from_batches(tell(lines), _NOTHING.schema)])
        # In one piece: of a table of several, Spark drops all that stands behind a piece without rows.
        table = told.combine_chunks()
        return accounts.of(table), spark.createDataFrame(table, telling.SCHEMA)
    wanted = sifted.where("value IS NOT NULL").select(*CANDIDATE)
    n_tasks = min(len(read.n_lines), 1 + read.n_candidates // _FOR_ONE_TASK)
    gathered = wanted.repartition(n_tasks, "file") if n_tasks > 1 else wanted.coalesce(1)
    told = kept_on_disk(gathered.sortWithinPartitions(*ORDER).mapInArrow(tell, telling.SCHEMA))
    return accounts.of(told.where("n_events IS NOT NULL").select("file", *telling.ACCOUNT).toArrow()), told


def _events(told: DataFrame, proved: Mapping[str, int]) -> DataFrame:
    """With the times of files that prove their zone."""
    files = json.dumps(proved).replace("'", r"\u0027")
    shift = f"try_element_at(from_json(r'{files}', 'map<string, bigint>'), file)"
    known = {"observed_at": f"coalesce(observed_at, timestamp_micros(local_at - {shift})) AS observed_at"}
    columns = [known.get(name, name) if proved else name for name in tables.LOG_EVENTS.schema.names]
    return told.where("kind IS NOT NULL").selectExpr(*columns)
