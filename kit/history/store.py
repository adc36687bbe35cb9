"""The tables of a history, read: what was appended and what was compacted, each snapshot once."""

from __future__ import annotations

import re
import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from functools import cached_property, reduce

import polars as pl
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, functions as F

from kit.errors import HistoryError, InputError
from kit.history.files import SPARK_ERRORS, Files, cause, describe_as
from kit.history.names import ABOUT, COPY, DAYS, PATTERNS, refuse_versions
from kit.history.parquet import files_of
from kit.tables import schema as tables
from kit.text.quantity import quantity

ABOUT_SCHEMA = "schema_version int"
PARTS_SCHEMA = f"{tables.SNAPSHOTS.spark_schema}, compacted_at timestamp, date date, part string"
"""``days/snapshots``: which snapshots each part holds. A part that it doesn't list was not written to the end."""
_PLACE = ["date", "part", "snapshot_id"]
_TIME = pl.Datetime("us", "UTC")
_IN_PART = "date date, part string"
_OWN = re.compile(r"date=\d{4}-\d\d-\d\d(/(snapshot_id|part)=[^/]+)?")


class Store:
    """The content of one folder.

    Raises:
        HistoryError: the folder holds a history of another schema version, or can't be read.
        InputError: no folder is named, or one that Spark reads as a pattern.
    """

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = folder.rstrip("/")
        if not self.folder:
            raise InputError(f"{folder!r} can't be the folder of a history. Name a folder that holds nothing else")
        if not set(PATTERNS).isdisjoint(self.folder):
            raise InputError(
                f"{folder} can't be the folder of a history, because Spark reads each of {PATTERNS} as "
                "a pattern. Name another folder"
            )
        refuse_versions(self.folder, self._versions())

    @cached_property
    def files(self) -> Files:
        """Raises HistoryError by Spark Connect, which delivers no file system."""
        return Files(self.spark, self.folder)

    @cached_property
    def local(self) -> str | None:
        """The folder on disks that Spark's tasks have too, for they are threads of this machine's driver; else None."""
        if not isinstance(self.spark, SparkSession) or not str(self.spark.sparkContext.master).startswith("local"):
            return None
        return self.files.local(self.folder)

    def path(self, name: str) -> str:
        return f"{self.folder}/{name}"

    def read(self, name: str, schema: str) -> DataFrame | None:
        """None when there is nothing at that path; a path that can't be read raises."""
        try:
            frame = self.spark.read.schema(schema).parquet(self.path(name))
            # Spark Connect notices a missing path only when it analyses the frame.
            frame.isLocal()
        except SPARK_ERRORS as error:
            condition = error.getCondition() if isinstance(error, PySparkException) else None
            if condition == "PATH_NOT_FOUND":
                return None
            is_mixed = (condition or "").startswith("CONFLICTING_")
            why = self._foreign(name, str(error)) if is_mixed else cause(error)
            raise HistoryError(f"{self.path(name)} can't be read: {why}") from error
        self._refuse_copies(name)
        return frame

    def _refuse_copies(self, name: str) -> None:
        """Spark takes ``date=2026-01-01 (copy)`` for that day: what is in it would count twice.

        Spark Connect delivers no file system to list files with.
        """
        if not isinstance(self.spark, SparkSession):
            return
        names = self.files.names(self.path(name))
        if copies := [each for each in names if COPY.fullmatch(each)]:
            why = f"{', '.join(copies[:3])} does not belong to a history. Move it to another folder"
            raise HistoryError(f"{self.path(name)} can't be read: {why}")

    def check(self, table: tables.Table, since: datetime | None = None) -> None:
        """Read each column of the files of a table once.

        A column that a file lacks is null, one that is not known is left out.

        Raises:
            HistoryError: naming a file that is damaged, has a column of another type, or lacks one that is never null.
        """
        stamped = table.stamped_schema
        for frame in (self.appended(table), self.read(f"{DAYS}/{table.name}", table.spark_schema)):
            if frame is None:
                continue
            is_asked = F.lit(True) if since is None else F.coalesce(F.col("observed_at") >= F.lit(since), F.lit(True))
            lacking = {
                field.name: F.min(F.when(F.col(field.name).isNull(), F.col("_metadata.file_path"))).alias(field.name)
                for field in stamped
                if not field.nullable
            }
            read = [F.count(F.col(name)).alias(f"n_{name}") for name in stamped.names]
            with describe_as(f"{self.path(table.name)} can't be read"):
                (found,) = frame.where(is_asked).agg(*lacking.values(), *read).collect()
            for name in lacking:
                if found[name] is not None:
                    raise HistoryError(
                        f"{found[name]} has rows without {name}, which {table.name} always has: another version of "
                        "offramp, or something else, wrote it; move it elsewhere"
                    )

    def _foreign(self, name: str, conflict: str) -> str:
        """Return Spark's error about folders that don't belong together: the folders that aren't a history's."""
        inside = re.findall(rf"^\t.*?/{re.escape(name)}/(.+)$", conflict, re.MULTILINE)
        foreign = [path for path in inside if not _OWN.fullmatch(path)]
        return f"{', '.join(foreign[:3]) or 'a file'} does not belong to a history. Move it to another folder"

    def appended(self, table: tables.Table) -> DataFrame | None:
        """Rows as they were appended, those of unfinished snapshots too, stamped and with their ``date``."""
        return self.read(table.name, f"{table.spark_schema}, date date")

    def parts(self) -> DataFrame | None:
        """Return where each compacted snapshot is: ``snapshots`` with compacted_at, date and part; one row per
        snapshot.

        If several parts hold it, the one finished first counts: no file that it was made from was deleted yet.
        """
        parts = self.read(f"{DAYS}/{tables.SNAPSHOTS.name}", PARTS_SCHEMA)
        if parts is None:
            return None
        first = parts.groupBy("snapshot_id").agg(F.min(F.struct("compacted_at", "part")).alias("first"))
        first = first.select("snapshot_id", F.col("first.part").alias("part"))
        return parts.join(F.broadcast(first), ["snapshot_id", "part"], "left_semi")

    def begin(self) -> None:
        """Write down of which schema version the history is, unless that is known.

        Each writer writes a file of its own: of two that write the same one, each would delete what the other is at.
        One that was cut off leaves a folder without a file, which reports nothing.
        """
        if self._versions():
            return
        about = self.spark.createDataFrame(
            [(tables.SCHEMA_VERSION, secrets.token_hex(8))], f"{ABOUT_SCHEMA}, writer string"
        )
        self.add(about, ABOUT, "writer")

    def add(self, rows: DataFrame, name: str, *key: str) -> None:
        """Write rows into folders of ``key``, each of which appears as a whole or not at all; again is once."""
        writing = rows.coalesce(1).write.mode("overwrite").option("partitionOverwriteMode", "dynamic")
        writing.partitionBy(*key).parquet(self.path(name))

    def _versions(self) -> set[int]:
        about = self.read(ABOUT, ABOUT_SCHEMA)
        if about is None:
            return set()
        with describe_as(f"{self.path(ABOUT)} can't be read"):
            return {row.schema_version for row in about.collect()}


class Reading:
    """The tables of a store as they are now: what is compacted meanwhile changes nothing here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._parts = store.parts()  # Before any other table is listed: a part's rows are there before it is listed.

    @property
    def is_empty(self) -> bool:
        return not self._sources(tables.SNAPSHOTS)

    def load(self, table: tables.Table) -> DataFrame:
        """The rows of each snapshot once, stamped; those of unfinished snapshots are among them.

        Raises:
            HistoryError: there is no history in the folder.
        """
        sources = [frame.select(table.stamped_schema.names) for frame in self._sources(table)]
        if not sources and table is tables.SNAPSHOTS:
            raise self._nothing()
        return self._together(table, sources)

    def of_snapshots(self, table: tables.Table, snapshot_ids: Sequence[str], days: Sequence[date]) -> DataFrame:
        """Load like :meth:`load`, of these snapshots alone, which are of these days (UTC).

        The file of each of them is found before: no row has to be joined with that.
        """
        held = defaultdict[str | None, list[str]](list)
        for each in snapshot_ids:
            held[self._places.get(each)].append(each)
        loose = held.pop(None, [])
        appended = self._store.appended(table) if loose else None
        compacted = self._store.read(f"{DAYS}/{table.name}", f"{table.spark_schema}, {_IN_PART}") if held else None
        frames = [appended.where(F.col("snapshot_id").isin(loose))] if appended is not None else []
        if compacted is not None:
            is_in = {part: (F.col("part") == part) & F.col("snapshot_id").isin(ids) for part, ids in held.items()}
            frames += [compacted.where(condition) for condition in is_in.values()]
        is_asked = F.col("date").isin(list(days))
        return self._together(table, [frame.where(is_asked).select(table.stamped_schema.names) for frame in frames])

    def folders(self, table: tables.Table, looks: Mapping[str, date]) -> dict[str, list[str]]:
        """Return where these snapshots' rows lie, by the day (UTC) of each: folders, each with those that it has for
        us.

        A folder that isn't there (no snapshot had a row) is among them.
        """
        found = defaultdict[str, list[str]](list)
        for snapshot_id, day in looks.items():
            part = self._places.get(snapshot_id)
            name = f"snapshot_id={snapshot_id}" if part is None else f"part={part}"
            prefix = "" if part is None else f"{DAYS}/"
            found[self._store.path(f"{prefix}{table.name}/date={day}/{name}")].append(snapshot_id)
        return dict(found)

    def local_files(self, kept: Mapping[tables.Table, Mapping[str, date]]) -> dict[str, dict[str, list[str]]]:
        """The files of :meth:`folders` by table, as local paths, as they are now; for a store that is ``local``.

        Raises:
            HistoryError: a folder can't be read, or snapshots were deleted since they were listed.
        """
        found = {
            table.name: {file: ids for folder, ids in self._inside(table, looks) for file in files_of(folder)}
            for table, looks in kept.items()
        }
        every = {snapshot_id: day for looks in kept.values() for snapshot_id, day in looks.items()}
        listed = self._inside(tables.SNAPSHOTS, every)  # The line that makes a snapshot count is deleted first.
        if gone := [each for folder, ids in listed if not files_of(folder) for each in ids]:
            why = f"{quantity(len(gone), 'snapshot was', 'snapshots were')} deleted meanwhile, for example {min(gone)}"
            raise HistoryError(f"{self._store.folder} can't be read: {why}. Read it again")
        return found

    def _inside(self, table: tables.Table, looks: Mapping[str, date]) -> list[tuple[str, list[str]]]:
        """:meth:`folders` as local paths."""
        prefix = f"{self._store.folder}/"
        return [
            (f"{self._store.local}/{folder.removeprefix(prefix)}", ids)
            for folder, ids in self.folders(table, looks).items()
        ]

    def observations(self, since: datetime | None = None) -> pl.DataFrame:
        """All complete snapshots observed since: snapshot_id, at_ms (epoch), in order.

        Raises:
            HistoryError: there is no history in the folder, or it can't be read.
        """
        appended = self._store.appended(tables.SNAPSHOTS)
        if appended is None and self._parts is None:
            raise self._nothing()
        rows = self._in_parts.select("snapshot_id", "observed_at")
        if appended is not None:
            with describe_as(f"{self._store.folder} can't be read"):
                loose = _collected(appended, *rows.columns)
            rows = pl.concat([rows, loose.join(rows, on="snapshot_id", how="anti")])
        if since is not None:
            rows = rows.filter(pl.col("observed_at") >= since.astimezone(UTC))
        return rows.select("snapshot_id", at_ms=pl.col("observed_at").dt.epoch("ms")).sort("at_ms")

    def _nothing(self) -> HistoryError:
        return HistoryError(
            f"there is no history of snapshots in {self._store.folder}. To begin one: offramp snapshot --history FOLDER"
        )

    def _together(self, table: tables.Table, frames: Sequence[DataFrame]) -> DataFrame:
        if not frames:  # No snapshot had a row of it.
            return self._store.spark.createDataFrame([], table.spark_schema)
        return reduce(DataFrame.unionAll, frames)

    @cached_property
    def _in_parts(self) -> pl.DataFrame:
        """The compacted snapshots: snapshot_id, part, observed_at."""
        if self._parts is None:
            return pl.DataFrame(schema={"snapshot_id": pl.String, "part": pl.String, "observed_at": _TIME})
        with describe_as(f"{self._store.path(DAYS)} can't be read"):
            return _collected(self._parts, "snapshot_id", "part", "observed_at")

    @cached_property
    def _places(self) -> dict[str, str]:
        """In which part each of them is."""
        return dict(self._in_parts.select("snapshot_id", "part").iter_rows())

    def _sources(self, table: tables.Table) -> list[DataFrame]:
        """Return what was appended and is in no part, and what is in parts."""
        appended, compacted = self._store.appended(table), self._compacted(table)
        if appended is not None and self._parts is not None:
            in_parts = F.broadcast(self._parts.select("snapshot_id"))
            appended = appended.join(in_parts, "snapshot_id", "left_anti")
        return [frame for frame in (appended, compacted) if frame is not None]

    def _compacted(self, table: tables.Table) -> DataFrame | None:
        if self._parts is None or table is tables.SNAPSHOTS:
            return self._parts
        rows = self._store.read(f"{DAYS}/{table.name}", f"{table.spark_schema}, {_IN_PART}")
        if rows is None:
            return None
        return rows.join(F.broadcast(self._parts.select(*_PLACE)), _PLACE, "left_semi")


def _collected(snapshots: DataFrame, *names: str) -> pl.DataFrame:
    """Times in UTC, whatever the session's time zone."""
    return pl.DataFrame(snapshots.select(*names).toArrow()).cast({"observed_at": _TIME})


def counts(frames: Sequence[DataFrame]) -> Iterator[int]:
    """Return how many rows each has, by one job: a job for each costs more than the counting."""
    marked = [frame.select(F.lit(at).alias("frame")) for at, frame in enumerate(frames)]
    counted = reduce(lambda one, other: one.unionAll(other), marked).groupBy("frame").count().collect()
    found = {row["frame"]: row["count"] for row in counted}
    return (found.get(at, 0) for at in range(len(frames)))
