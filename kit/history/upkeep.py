"""A history that lasts: many small files become few, days too old go, and what lies there is reported.

Each change is safe to interrupt between any two files, and two people may do it at once. See ``kit.history``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import polars as pl
from pyspark.sql import DataFrame, SparkSession, functions as F

from kit.errors import HistoryError, InputError
from kit.history.files import Size, describe_as
from kit.history.in_order import save, save_in_order
from kit.history.names import ABOUT, DAYS, GIVEN_UP, begun, day_of, run_name
from kit.history.store import PARTS_SCHEMA, Reading, Store, counts
from kit.tables import schema as tables

GRACE = timedelta(hours=1)
"""The time for which files stay after they were replaced: a reader that listed them before still reads them."""
FILE_BYTES = 128 * 2**20
"""A day's table is split into files of about this size."""
_TEMPORARY = "_temporary"
"""The place where Spark writes first."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """One day (UTC) whose appended snapshots are in one part now, and the size of both."""

    date: date
    n_snapshots: int
    before: Size
    after: Size


class Upkeep:
    """Keep one history small.

    Args:
        now: the time of the day that is not over yet, and by which files are old; UTC.

    Raises:
        HistoryError: there is no history, it is of another schema version, or Spark Connect can't delete files.
    """

    def __init__(
        self, spark: SparkSession, folder: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = Store(spark, folder)
        self._files = self._store.files
        self._now = now
        if Reading(self._store).is_empty:
            raise HistoryError(
                f"there is no history in {self._store.folder}. To begin one: offramp snapshot --history FOLDER"
            )

    def days(self) -> pl.DataFrame:
        """One row per day (UTC).

        Columns: date, n_snapshots (complete ones), n_compacted (of them, in a part), n_files, n_bytes.
        """
        appended, compacted = self._snapshots_by_day(), self._parts_by_day()
        rows = []
        for day in self._dates():
            in_parts = compacted.get(day, {})
            size = sum((self._files.size(folder) for folder in self._folders(day)), Size())
            n_snapshots = len(appended.get(day, set()) | in_parts.keys())
            rows.append((day, n_snapshots, len(in_parts), size.n_files, size.n_bytes))
        counted = dict.fromkeys(("n_snapshots", "n_compacted", "n_files", "n_bytes"), pl.Int64)
        return pl.DataFrame(rows, {"date": pl.Date, **counted}, orient="row")

    def compact(self) -> Iterator[Compacted]:
        """Delete what earlier compactions replaced, then put each day's snapshots together; today is not over yet.

        Raises:
            HistoryError: a file can't be written or deleted, or what was written isn't what was read. The history
                stays as it was before that day.
        """
        self._sweep()
        appended, compacted = self._snapshots_by_day(), self._parts_by_day()
        for day, found in sorted(appended.items()):
            missing = found - compacted.get(day, {}).keys()
            if missing and day < self._now().date():
                yield self._compact(day, sorted(missing))

    def expire(self, before: date) -> list[date]:
        """Delete all days before this one. → the days that were deleted.

        Raises:
            HistoryError: a file can't be deleted; a day of which something is left is not loaded any more.
        """
        if before > self._now().date():
            raise InputError(f"{before} has not ended yet. Only days before today can be deleted")
        gone = [day for day in self._dates() if day < before]
        for day in gone:
            # First what makes its snapshots count, so that none is ever loaded in part.
            for folder in self._folders(day):
                self._files.delete(folder)
        return gone

    def _compact(self, day: date, snapshot_ids: list[str]) -> Compacted:
        begun_at = self._now()
        part = f"date={day}/part={run_name(begun_at)}"
        spark = self._store.spark
        wanted = F.broadcast(spark.createDataFrame([(each,) for each in snapshot_ids], "snapshot_id string"))
        try:
            with describe_as(f"{self._store.folder}: {day} could not be compacted, and is unchanged"):
                self._write_part(day, part, begun_at, wanted)
        except HistoryError as error:
            # Whoever deletes a day deletes what is being written of it, too: Spark then misses its own files.
            if self._has_appended(day):
                raise
            raise self._expired(day) from error
        before = sum((self._files.size(self._store.path(f"{table.name}/date={day}")) for table in tables.ALL), Size())
        after = sum((self._files.size(self._store.path(f"{DAYS}/{table.name}/{part}")) for table in tables.ALL), Size())
        return Compacted(day, len(snapshot_ids), before, after)

    def _write_part(self, day: date, part: str, begun_at: datetime, wanted: DataFrame) -> None:
        data = _data()
        with ThreadPoolExecutor(max_workers=2) as pool:
            written = [name for name in pool.map(lambda table: self._write(table, day, part, wanted), data) if name]
        self._check(day, part, wanted, [table for table in data if table.name in written])
        self._finish(day, part, begun_at, self._still_there(tables.SNAPSHOTS, day, wanted))

    def _has_appended(self, day: date) -> bool:
        return bool(self._files.names(self._store.path(f"{tables.SNAPSHOTS.name}/date={day}")))

    def _finish(self, day: date, part: str, begun_at: datetime, snapshots: DataFrame) -> None:
        """Make a part count, unless its day has expired, or others may take it for given up and delete it."""
        if self._now() - begun_at > GIVEN_UP / 2:
            raise HistoryError(f"{self._store.folder}: {day} took too long to compact. Run the compaction again")
        finished = snapshots.withColumn("compacted_at", F.lit(self._now()))
        target = self._store.path(f"{DAYS}/{tables.SNAPSHOTS.name}/{part}")
        save(finished.coalesce(1), target)
        # An expiry deletes the appended ``snapshots`` first, then what is here.
        if not self._has_appended(day):
            self._files.delete(target)
            raise self._expired(day)

    def _expired(self, day: date) -> HistoryError:
        return HistoryError(f"{self._store.folder}: {day} was deleted while it was compacted. Run the compaction again")

    def _write(self, table: tables.Table, day: date, part: str, wanted: DataFrame) -> str | None:
        """Write a table's rows of a day; → its name, or None when there are none."""
        rows = self._appended(table, day, wanted)
        if rows is None:
            return None
        n_files = self._files.size(self._store.path(f"{table.name}/date={day}")).n_bytes // FILE_BYTES + 1
        save_in_order(rows, table, self._store.path(f"{DAYS}/{table.name}/{part}"), n_files)
        return table.name

    def _check(self, day: date, part: str, wanted: DataFrame, written: list[tables.Table]) -> None:
        frames = []
        for table in written:
            path = self._store.path(f"{DAYS}/{table.name}/{part}")
            copied = self._store.spark.read.schema(table.spark_schema).parquet(path)
            frames += [self._still_there(table, day, wanted), copied]
        found = counts(frames)
        for table in written:
            expected, n_written = next(found), next(found)
            if n_written != expected:
                raise HistoryError(
                    f"{self._store.folder}: {day} was not compacted and is unchanged: {table.name} has {expected:,} "
                    f"rows, but {n_written:,} were written"
                )

    def _still_there(self, table: tables.Table, day: date, wanted: DataFrame) -> DataFrame:
        """Return :meth:`_appended` of a table that was read before."""
        rows = self._appended(table, day, wanted)
        if rows is None:
            raise self._expired(day)
        return rows

    def _appended(self, table: tables.Table, day: date, wanted: DataFrame) -> DataFrame | None:
        """Rows of these snapshots of a day, stamped."""
        rows = self._store.read(f"{table.name}/date={day}", table.spark_schema)
        return (
            None if rows is None else rows.join(wanted, "snapshot_id", "left_semi").select(table.stamped_schema.names)
        )

    def _sweep(self) -> None:
        """Delete what parts replaced long enough ago, and parts that were never finished."""
        now, compacted = self._now(), self._parts_by_day()
        for day, found in self._snapshots_by_day().items():
            for snapshot_id in found:
                compacted_at = compacted.get(day, {}).get(snapshot_id)
                if compacted_at is not None and compacted_at < now - GRACE:
                    # The table that makes it count last: until then the next sweep finds it again.
                    for table in (*_data(), tables.SNAPSHOTS):
                        self._files.delete(self._store.path(f"{table.name}/date={day}/snapshot_id={snapshot_id}"))
        finished = self._finished()
        for table in tables.ALL:
            for folder in self._begun_long_ago(table, now):
                if folder.rpartition("=")[2] not in finished:
                    self._files.delete(folder)
                elif table is tables.SNAPSHOTS:  # Written last: only here can a run be cut off as it tidies up.
                    self._files.delete(f"{folder}/{_TEMPORARY}")
        for folder in self._cut_off(now):
            self._files.delete(folder)

    def _cut_off(self, now: datetime) -> Iterator[str]:
        """Return the files that Spark had begun for appends that were cut off, so long ago that no process works on
        them.
        """
        for name in (ABOUT, *(table.name for table in tables.ALL)):
            for each in self._files.names(self._store.path(name)):
                folder = self._store.path(f"{name}/{each}")
                is_begun = each == _TEMPORARY or each.startswith(".spark-staging-")
                if is_begun and (self._files.changed(folder) or now) < now - GIVEN_UP:
                    yield folder

    def _finished(self) -> set[str]:
        """Parts that ``snapshots`` lists; the folder of a part alone may be one that was cut off."""
        name = f"{DAYS}/{tables.SNAPSHOTS.name}"
        rows = self._store.read(name, PARTS_SCHEMA)
        with describe_as(f"{self._store.path(name)} can't be read"):
            return set() if rows is None else {row.part for row in rows.select("part").distinct().collect()}

    def _begun_long_ago(self, table: tables.Table, now: datetime) -> Iterator[str]:
        for day in self._files.names(self._store.path(f"{DAYS}/{table.name}")):
            for part in self._files.names(self._store.path(f"{DAYS}/{table.name}/{day}")):
                if begun(part.removeprefix("part=")) < now - GIVEN_UP:
                    yield self._store.path(f"{DAYS}/{table.name}/{day}/{part}")

    def _snapshots_by_day(self) -> Mapping[date, set[str]]:
        """Complete snapshots as they were appended."""
        found: defaultdict[date, set[str]] = defaultdict(set)
        rows = self._store.appended(tables.SNAPSHOTS)
        with describe_as(f"{self._store.path(tables.SNAPSHOTS.name)} can't be read"):
            for row in rows.select("date", "snapshot_id").collect() if rows is not None else ():
                found[row.date].add(row.snapshot_id)
        return found

    def _parts_by_day(self) -> Mapping[date, dict[str, datetime]]:
        """Return when each snapshot of a day was compacted."""
        found: defaultdict[date, dict[str, datetime]] = defaultdict(dict)
        rows = self._store.parts()
        at = F.unix_micros("compacted_at").alias("at")  # A timestamp would come in this machine's own zone.
        with describe_as(f"{self._store.path(f'{DAYS}/{tables.SNAPSHOTS.name}')} can't be read"):
            for row in rows.select("date", "snapshot_id", at).collect() if rows is not None else ():
                found[row.date][row.snapshot_id] = datetime.fromtimestamp(row.at / 1e6, UTC)
        return found

    def _dates(self) -> list[date]:
        """Days of which there is anything, the first one first."""
        names = {
            name
            for table in tables.ALL
            for folder in (table.name, f"{DAYS}/{table.name}")
            for name in self._files.names(self._store.path(folder))
        }
        found = (day_of(name) for name in names)
        return sorted(day for day in found if day is not None)

    def _folders(self, day: date) -> list[str]:
        """All folders of a day; those of ``snapshots`` first."""
        ordered = (tables.SNAPSHOTS, *_data())
        return [
            self._store.path(f"{prefix}{table.name}/date={day}") for table in ordered for prefix in ("", f"{DAYS}/")
        ]


def _data() -> list[tables.Table]:
    return [table for table in tables.ALL if table is not tables.SNAPSHOTS]
