"""A history on this machine's disks, without Spark: appended to, counted, and read if it is small (``kit.history``)."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from functools import cached_property
from pathlib import Path

import polars as pl

from kit.errors import HistoryError
from kit.history.names import ABOUT, COPY, DAYS, PATTERNS, day_of, refuse_versions
from kit.history.parquet import files_of, read
from kit.profile import Profile
from kit.tables import schema as tables
from kit.tables.snapshot import Snapshot

SMALL_BYTES = 32_000_000
"""The largest size of parquet files that are read here; larger tables are read by Spark."""
_ADDRESS = re.compile(r"\w[\w+.-]*:")
_ERRORS = (OSError, pl.exceptions.PolarsError)


def folder_here(profile: Profile, folder: str) -> Path | None:
    """The folder, if the profile's Spark would find it on this machine's disks; else None, and Spark has to read it.

    By facts alone: whether Spark runs in this machine's driver, and whether anything names another file system.
    """
    spark = profile.spark
    is_local = spark.remote is None and spark.master.startswith("local")
    has_others = any(name.endswith("fs.defaultFS") for name in spark.conf) or "HADOOP_CONF_DIR" in os.environ
    is_name = folder.strip("/") and not _ADDRESS.match(folder) and set(PATTERNS).isdisjoint(folder)
    return Path(folder) if is_local and not has_others and is_name else None


class HistoryHere:
    """The history that :func:`folder_here` returned.

    Raises:
        HistoryError: the folder holds a history of another schema version, or can't be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        refuse_versions(str(folder), self._versions)

    @cached_property
    def _versions(self) -> set[int]:
        found = set[int]()
        for file in (each for each in _files_in(self._folder / ABOUT) if not each.name.startswith((".", "_"))):
            with _naming(f"{self._folder / ABOUT} can't be read"):
                found |= set(pl.read_parquet(file, columns=["schema_version"], hive_partitioning=False).to_series())
        return found

    def append(self, snapshot: Snapshot[pl.DataFrame]) -> None:
        """Write one snapshot; again is the same as once. As ``History.append``: ``snapshots`` makes it count.

        Raises:
            HistoryError: it can't be written; what is there of it counts as not written.
        """
        with _naming(f"{self._folder} can't be written"):
            if not self._versions:
                about = pl.DataFrame({"schema_version": [tables.SCHEMA_VERSION]}, {"schema_version": pl.Int32})
                self._place(about, ABOUT, f"writer={secrets.token_hex(8)}")
            for table in (*(each for each in tables.ALL if each is not tables.SNAPSHOTS), tables.SNAPSHOTS):
                self._add(table, getattr(snapshot, table.name), snapshot.snapshot_id)

    def _add(self, table: tables.Table, rows: pl.DataFrame, snapshot_id: str) -> None:
        for day in rows["observed_at"].dt.date().unique():
            of_day = rows.filter(pl.col("observed_at").dt.date() == day)
            self._place(of_day.drop("snapshot_id"), table.name, f"date={day}/snapshot_id={snapshot_id}")

    def _place(self, rows: pl.DataFrame, name: str, place: str) -> None:
        """Write a folder that appears as a whole or not at all; what is there already is the same."""
        draft, target = self._folder / name / f".spark-staging-{secrets.token_hex(8)}", self._folder / name / place
        draft.mkdir(parents=True)
        try:
            rows.write_parquet(draft / "part-00000.snappy.parquet", compression="snappy")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not files_of(str(target)):
                draft.rename(target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def days(self) -> pl.DataFrame:
        """One row per day (UTC); columns as ``Upkeep.days`` has them.

        Raises:
            HistoryError: there is no history in the folder, or it can't be read.
        """
        rows = []
        for day in self._days():
            loose, in_parts = self._appended(day), self._parts(day).keys()
            files = [file for name in self._names() for file in _files_in(self._folder / name / f"date={day}")]
            n_bytes = sum(file.stat().st_size for file in files)
            rows.append((day, len(loose | in_parts), len(in_parts), len(files), n_bytes))
        counted = dict.fromkeys(("n_snapshots", "n_compacted", "n_files", "n_bytes"), pl.Int64)
        return pl.DataFrame(rows, {"date": pl.Date, **counted}, orient="row")

    def is_small(self, *of: tables.Table) -> bool:
        """Return whether these tables can be loaded here, by the sizes of their files."""
        folders = [self._folder / f"{prefix}{table.name}" for table in of for prefix in ("", f"{DAYS}/")]
        return sum(file.stat().st_size for folder in folders for file in _files_in(folder)) <= SMALL_BYTES

    def load(self, table: tables.Table) -> pl.DataFrame:
        """All complete snapshots' rows of one table, stamped, as ``History.load`` has them.

        Raises:
            HistoryError: there is no history in the folder, or it can't be read.
        """
        files = dict[str, list[str]]()
        for day in self._days():
            parts = self._parts(day)
            for snapshot_id, part in parts.items():
                for file in files_of(f"{self._folder}/{DAYS}/{table.name}/date={day}/part={part}"):
                    files.setdefault(file, []).append(snapshot_id)
            for snapshot_id in sorted(self._appended(day) - parts.keys()):
                place = f"{self._folder}/{table.name}/date={day}/snapshot_id={snapshot_id}"
                files |= {file: [snapshot_id] for file in files_of(place)}
        return read({table.name: files}, pl.lit(True), table, *table.stamped_schema.names)

    @staticmethod
    def _names() -> list[str]:
        return [f"{prefix}{table.name}" for table in tables.ALL for prefix in ("", f"{DAYS}/")]

    def _days(self) -> list[date]:
        if not any(self._dates_of(name) for name in (tables.SNAPSHOTS.name, f"{DAYS}/{tables.SNAPSHOTS.name}")):
            raise HistoryError(
                f"there is no history in {self._folder}. To begin one: offramp snapshot --history FOLDER"
            )
        return sorted({day for name in self._names() for day in self._dates_of(name)})

    def _dates_of(self, name: str) -> set[date]:
        folder = self._folder / name
        with _naming(f"{folder} can't be read"):
            names = sorted(os.listdir(folder)) if folder.is_dir() else []
        if copies := [each for each in names if COPY.fullmatch(each)]:
            why = f"{', '.join(copies[:3])} does not belong to a history. Move it to another folder"
            raise HistoryError(f"{folder} can't be read: {why}")
        return {day for each in names if (day := day_of(each)) is not None}

    def _appended(self, day: date) -> set[str]:
        """Complete snapshots as they were appended."""
        folder = self._folder / tables.SNAPSHOTS.name / f"date={day}"
        found = folder.glob("snapshot_id=*") if folder.is_dir() else ()
        return {each.name.partition("=")[2] for each in found if files_of(str(each))}

    def _parts(self, day: date) -> dict[str, str]:
        """By compacted snapshot, its part; of several parts the one that was finished first (``Store.parts``)."""
        found = dict[str, tuple[datetime, str]]()
        folder = self._folder / DAYS / tables.SNAPSHOTS.name / f"date={day}"
        for place in folder.glob("part=*") if folder.is_dir() else ():
            part = place.name.partition("=")[2]
            for file in files_of(str(place)):
                with _naming(f"{self._folder / DAYS / tables.SNAPSHOTS.name} can't be read"):
                    rows = pl.read_parquet(file, columns=["snapshot_id", "compacted_at"], hive_partitioning=False)
                for snapshot_id, at in rows.select("snapshot_id", "compacted_at").iter_rows():
                    found[snapshot_id] = min(found.get(snapshot_id, (at, part)), (at, part))
        return {snapshot_id: part for snapshot_id, (_, part) in found.items()}


def _files_in(folder: Path) -> Iterator[Path]:
    """All files below a folder but Hadoop's checksums, which it counts nowhere."""
    for file in folder.rglob("*") if folder.is_dir() else ():
        if file.is_file() and not (file.name.startswith(".") and file.name.endswith(".crc")):
            yield file


@contextmanager
def _naming(what: str) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error).partition("\n")[0]
        raise HistoryError(f"{what}: {why}") from error
