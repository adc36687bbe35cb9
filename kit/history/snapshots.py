"""Snapshots appended to a history, and given back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, cast

import polars as pl
from pyspark.sql import Column, DataFrame, Row, SparkSession, functions as F

from kit.errors import HistoryError, InputError
from kit.history import parquet
from kit.history.files import describe_as
from kit.history.in_order import copies_of
from kit.history.ranges import GroupRanges, Load
from kit.history.store import Reading, Store, counts
from kit.tables import schema as tables
from kit.tables.snapshot import Snapshot
from kit.text.quantity import quantity

_OFFSETS, _FEW_LOOKS = 1_000_000, 60
"""The number of offsets that are examined together; of more observations a quarter, for the ends of their logs are
as many rows again. They and what a report makes of them took 1.5 GB, or 1.
"""
_BY_GROUPS = (tables.COMMITTED_OFFSETS, tables.LOG_OFFSETS, tables.READ_TIMINGS)
_AT_MS = "unix_millis(observed_at) as at_ms"


class History:
    """Snapshots in one folder.

    Raises:
        HistoryError: the folder holds a history of another schema version, or can't be read.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self._store = Store(spark, folder)

    def append(self, snapshot: Snapshot[DataFrame]) -> None:
        """Write one snapshot; again is the same as once.

        Raises:
            HistoryError: it can't be written; what is there of it counts as not written.
        """
        with describe_as(f"{self._store.folder} can't be written"):
            self._append(snapshot)

    def _append(self, snapshot: Snapshot[DataFrame]) -> None:
        self._store.begin()
        write = self._writer(snapshot)
        with ThreadPoolExecutor(max_workers=4) as pool:
            list(pool.map(write, [table for table in tables.ALL if table is not tables.SNAPSHOTS]))
        write(tables.SNAPSHOTS)

    def verify(self, snapshot: Snapshot[DataFrame]) -> None:
        """Compare the number of rows of every table with what the history gives back.

        Raises:
            HistoryError: naming the table, what was expected and what was found.
        """
        (this,) = snapshot.snapshots.selectExpr("snapshot_id", _AT_MS).collect()
        kept = _snapshot(Reading(self._store), this)
        with describe_as(f"{self._store.folder} can't be read"):
            found = counts([getattr(each, table.name) for table in tables.ALL for each in (snapshot, kept)])
        for table in tables.ALL:
            expected, n_kept = next(found), next(found)
            if n_kept != expected:
                raise HistoryError(
                    f"{self._store.path(table.name)}: {snapshot.snapshot_id} has {quantity(expected, 'row')}, "
                    f"the history {n_kept:,}"
                )

    def previous(self, snapshot: Snapshot[DataFrame]) -> Snapshot[DataFrame] | None:
        """The newest complete snapshot of the same cluster and groups before this one; None when there is none."""
        reading = Reading(self._store)
        if reading.is_empty:
            return None
        (this,) = snapshot.snapshots.collect()
        older = reading.load(tables.SNAPSHOTS).where(
            (F.col("cluster_id") == this.cluster_id)
            & (F.col("group_pattern") == this.group_pattern)
            & (F.col("started_at") < F.lit(this.started_at))
        )
        with describe_as(f"{self._store.folder} can't be read"):
            newest = older.orderBy(F.col("started_at").desc()).selectExpr("snapshot_id", _AT_MS).head(1)
        return _snapshot(reading, newest[0]) if newest else None

    def latest(self) -> Snapshot[DataFrame]:
        """The newest complete snapshot.

        Raises:
            HistoryError: there is none in the folder.
        """
        reading = Reading(self._store)
        with describe_as(f"{self._store.folder} can't be read"):
            complete = reading.load(tables.SNAPSHOTS).orderBy(F.col("ended_at").desc())
            newest = complete.selectExpr("snapshot_id", _AT_MS).head(1)
        if not newest:
            raise HistoryError(
                f"there is no complete snapshot in {self._store.folder}. To append one: offramp "
                "snapshot --history FOLDER"
            )
        return _snapshot(reading, newest[0])

    def recent_lags(self, snapshot: Snapshot[DataFrame], group_ids: Sequence[str], last: int = 12) -> DataFrame:
        """Return how the lag of some groups came to be what it is, over the ``last`` snapshots like this one, which is
        one.

        Columns: group_id, store, started_at (of the snapshot), lag (in records; null where any partition's is).
        """
        reading = Reading(self._store)
        (this,) = snapshot.snapshots.collect()
        alike = reading.load(tables.SNAPSHOTS).where(
            (F.col("cluster_id") == this.cluster_id)
            & (F.col("group_pattern") == this.group_pattern)
            & (F.col("started_at") <= F.lit(this.started_at))
        )
        newest = alike.orderBy(F.col("started_at").desc()).select("snapshot_id", "started_at").limit(last)
        committed = reading.load(tables.COMMITTED_OFFSETS).where(F.col("group_id").isin(list(group_ids)))
        ends = reading.load(tables.LOG_OFFSETS).select("snapshot_id", "topic", "partition", "log_end_offset")
        behind = F.greatest(F.col("log_end_offset") - F.col("committed_offset"), F.lit(0))
        is_known = F.col("log_end_offset").isNotNull() & F.col("committed_offset").isNotNull()
        lag = F.when(is_known, F.coalesce("unfinished", behind))
        rows = committed.join(F.broadcast(newest), "snapshot_id")
        rows = rows.join(ends, ["snapshot_id", "topic", "partition"], "left").withColumn("lag", lag)
        is_known = F.count("lag") == F.count(F.lit(1))
        return rows.groupBy("group_id", "store", "started_at").agg(F.when(is_known, F.sum("lag")).alias("lag"))

    def load(self, table: tables.Table, since: datetime | None = None) -> DataFrame:
        """All complete snapshots' rows of one table, from those observed at or after ``since`` (aware datetime).

        Raises:
            HistoryError: there is no history in the folder.
        """
        reading = Reading(self._store)
        complete = reading.load(tables.SNAPSHOTS)
        if since is not None:
            complete = complete.where(F.col("observed_at") >= F.lit(since))
        if table is tables.SNAPSHOTS:
            return complete
        return reading.load(table).join(complete.select("snapshot_id"), "snapshot_id", "left_semi")

    def by_groups(
        self,
        work: Callable[[Load], Any],
        since: datetime | None = None,
        group_ids: Iterable[str] | None = None,
    ) -> DataFrame:
        """Return what ``work`` makes of the complete snapshots' rows, with each group examined by itself.

        On this machine's disks a range of groups at a time: Spark's tasks read the files with polars. Many
        observations that are not compacted are copied first, in the order of groups, to ``spark.local.dir``. Elsewhere
        by Spark.

        Args:
            work: gets a function that gives the columns of a table, as polars frames or as Spark's:
                ``load(tables.COMMITTED_OFFSETS, "topic", "observed_at")``. Of ``LOG_OFFSETS`` it gives the topics with
                offsets; of ``READ_TIMINGS`` all; snapshot_id besides. It gives a frame of the same kind, and must not
                put groups together: it is done many times, and once with frames without rows.
            since: as :meth:`load` has it.
            group_ids: of these groups alone.

        Raises:
            HistoryError: there is no history in the folder, or it can't be read.
            InputError: ``work`` asks for another table or column; ``group_ids`` are no names.
        """
        reading, chosen = Reading(self._store), _names(group_ids)
        if self._store.local is None:
            return cast(DataFrame, work(partial(self._rows_of_groups, since, chosen)))
        looks = reading.observations(since)
        days = _days(looks)
        files = reading.local_files(dict.fromkeys(_BY_GROUPS, days))
        newest_first = looks["snapshot_id"].reverse().to_list()
        n_offsets = _OFFSETS if len(newest_first) <= _FEW_LOOKS else _OFFSETS // 4
        ranges = GroupRanges(files, newest_first, n_offsets, chosen)
        bounds = ranges.bounds()
        in_order = copies_of(self._store.spark, self._store.local).instead(files, reading, days, len(bounds) + 1)
        return replace(ranges, files=in_order).map(self._store.spark, work, bounds)

    def _rows_of_groups(
        self, since: datetime | None, group_ids: Sequence[str] | None, table: tables.Table, *names: str
    ) -> DataFrame:
        if table not in _BY_GROUPS:
            names_of = ", ".join(each.name for each in _BY_GROUPS)
            raise InputError(f"by_groups loads no rows of {table.name}, only of {names_of}")
        of_groups, rows = self.load(tables.COMMITTED_OFFSETS, since), self.load(table, since)
        if group_ids is not None:
            of_groups = of_groups.where(F.col("group_id").isin(group_ids))
        if table is tables.COMMITTED_OFFSETS:
            rows = of_groups
        elif "topic" in table.hints:
            rows = rows.join(F.broadcast(of_groups.select("topic").distinct()), "topic", "left_semi")
        return rows.select(*dict.fromkeys(["snapshot_id", *names]))

    def check(self, *kept: tables.Table, since: datetime | None = None) -> None:
        """Read these tables once, from those observed at or after ``since``.

        Snapshots of another version are read by the names of columns: one that a file lacks is null, one that is not
        known is left out.

        Raises:
            HistoryError: naming a file that is damaged, has a column of another type, or lacks one that is never null.
        """
        if self._store.local is None:
            for table in kept:
                self._store.check(table, since)
            return
        reading = Reading(self._store)
        days = _days(reading.observations(since))
        files = reading.local_files(dict.fromkeys(kept, days))
        for table in kept:
            parquet.check(files[table.name], table)

    def _writer(self, snapshot: Snapshot[DataFrame]) -> Callable[[tables.Table], None]:
        def write(table: tables.Table) -> None:
            frame: DataFrame = getattr(snapshot, table.name)
            dated = frame.withColumn("date", _utc_date("observed_at"))
            self._store.add(dated, table.name, "date", "snapshot_id")

        return write


def _names(group_ids: Iterable[str] | None) -> list[str] | None:
    if group_ids is None:
        return None
    names = [group_ids] if isinstance(group_ids, str) else list(dict.fromkeys(group_ids))
    if isinstance(group_ids, str) or not all(isinstance(each, str) for each in names):
        raise InputError(f"group_ids must be a list of group names; it is {group_ids!r:.200}")
    return names


def _days(looks: pl.DataFrame) -> dict[str, date]:
    return dict(looks.select("snapshot_id", pl.from_epoch("at_ms", "ms").dt.date()).iter_rows())


def _utc_date(time: str) -> Column:
    """Whatever the session's time zone: by ``to_date`` one snapshot would have a day in each zone it is appended in."""
    return F.date_from_unix_date(F.floor(F.unix_seconds(time) / 86_400).cast("int"))


def _snapshot(reading: Reading, found: Row) -> Snapshot[DataFrame]:
    """By its snapshot_id and at_ms (epoch)."""
    day = datetime.fromtimestamp(found.at_ms / 1000, UTC).date()
    kept = {table.name: reading.of_snapshots(table, [found.snapshot_id], [day]) for table in tables.ALL}
    return Snapshot(found.snapshot_id, **kept)
