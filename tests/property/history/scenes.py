"""Histories on which writers are ended or raced, and what must hold of them afterwards."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kit.health.hours import Hours
from kit.history import History, Upkeep
from kit.tables import schema as tables
from tests.generators.small_snapshots import FIRST, N_ROWS, SECOND, TODAY, small_snapshot, snapshot_id

BEGUN = {snapshot_id(FIRST, 1), snapshot_id(FIRST, 2), snapshot_id(SECOND, 3)}
"""The snapshots of every scene except that of a history's first snapshot."""
ADDED = 4
NEW = snapshot_id(SECOND, ADDED)
LONG_AFTER = timedelta(days=3)


@dataclass(frozen=True)
class InterruptedWrite:
    """The write of a writer that is ended, and the snapshots that may and must be there then, by their ids.

    ``moment`` begins the change at which most is at stake.
    """

    name: str
    verb: str
    moment: str
    is_empty: bool = False
    is_compacted: bool = False
    later: timedelta = timedelta()

    @property
    def held(self) -> set[str]:
        """Confirmed before: none may be missing, but those that are to be deleted."""
        gone = {each for each in BEGUN if each.startswith(f"{FIRST:%Y%m%d}")}
        return set() if self.is_empty else BEGUN - gone if self.verb == "expire" else BEGUN

    @property
    def allowed(self) -> set[str]:
        return (set() if self.is_empty else BEGUN) | ({NEW} if self.verb == "append" else set())


SCENES = [
    InterruptedWrite("first append", "append", "rename offramp_history/", is_empty=True),
    InterruptedWrite("append", "append", "rename snapshots/date"),
    InterruptedWrite("compact", "compact", "rename days/snapshots/date"),
    InterruptedWrite("sweep", "compact", "delete snapshots/date", is_compacted=True, later=timedelta(hours=2)),
    InterruptedWrite("hours", "hours", "rename hours/date"),
    InterruptedWrite("expire", "expire", "delete snapshots/date"),
    InterruptedWrite("expire of a compacted day", "expire", "delete days/snapshots/date", is_compacted=True),
]


def begin(spark: SparkSession, folder: Path) -> None:
    """Three snapshots of two days that have ended."""
    history = History(spark, str(folder))
    for at, number in ((FIRST, 1), (FIRST, 2), (SECOND, 3)):
        history.append(small_snapshot(spark, at, number))


def found(spark: SparkSession, folder: Path) -> set[str]:
    """The snapshots that are there; each whole, no row twice.

    A history in which nothing was confirmed yet may hold nothing.
    """
    if not any(folder.glob("snapshots/date=*")) and not any(folder.glob("days/snapshots/date=*")):
        return set()
    history = History(spark, str(folder))
    ids = [row.snapshot_id for row in history.load(tables.SNAPSHOTS).collect()]
    assert len(ids) == len(set(ids)), ids
    for table in (tables.GROUPS, tables.COMMITTED_OFFSETS):
        rows = history.load(table).collect()
        counted = Counter(row.snapshot_id for row in rows)
        assert counted == dict.fromkeys(ids, N_ROWS), (table.name, counted)
        assert len(set(map(str, rows))) == len(rows)
    return set(ids)


def hours(spark: SparkSession, folder: Path) -> list[Any]:
    """The hours that are there, in order; each group's once."""
    if not any(folder.glob("hours/date=*")):
        return []
    rows = Hours(spark, str(folder), _at(timedelta())).load().orderBy("hour_ms", "group_id", "store").collect()
    assert len({(row.hour_ms, row.group_id, row.store) for row in rows}) == len(rows)
    return [row.asDict() for row in rows]


def check(spark: SparkSession, folder: Path, scene: InterruptedWrite) -> None:
    """Readable; none lost that was confirmed; the next run of the same ends clean, and leaves no rubbish."""
    there = found(spark, folder)
    assert scene.held <= there <= scene.allowed
    hours(spark, folder)
    again(spark, folder, scene)
    expected = {NEW} if scene.is_empty else scene.held | ({NEW} if scene.verb == "append" else set())
    assert found(spark, folder) == expected
    made = hours(spark, folder)
    if scene.verb == "hours":
        assert {row["hour_ms"] for row in made} == {round(at.timestamp() * 1000) for at in (FIRST, SECOND)}
    tidy(spark, folder)
    assert found(spark, folder) == expected
    assert hours(spark, folder) == made
    assert rubbish(folder) == []


def again(spark: SparkSession, folder: Path, scene: InterruptedWrite) -> None:
    if scene.verb == "append":
        History(spark, str(folder)).append(small_snapshot(spark, SECOND, ADDED))
    elif scene.verb == "compact":
        list(Upkeep(spark, str(folder), _at(scene.later)).compact())
    elif scene.verb == "hours":
        list(Hours(spark, str(folder), _at(scene.later)).make())
    else:
        Upkeep(spark, str(folder), _at(scene.later)).expire(SECOND.date())


def tidy(spark: SparkSession, folder: Path) -> None:
    """Do what schedulers do in the days after; what was written until now is of ``TODAY``."""
    for path in folder.rglob("*"):
        os.utime(path, (TODAY.timestamp(), TODAY.timestamp()))
    for later in (LONG_AFTER, LONG_AFTER + timedelta(hours=2)):
        list(Upkeep(spark, str(folder), _at(later)).compact())
        if (folder / "hours").exists():
            list(Hours(spark, str(folder), _at(later)).make())


def rubbish(folder: Path) -> list[str]:
    """Leave what was begun and never used: Spark's own folders, parts and folders without a file."""
    parts = {path.name for path in folder.glob("days/snapshots/date=*/part=*")}
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_dir()
        and (
            path.name.startswith((".", "_temporary"))
            or (path.parent.name == "_staging")
            or (path.name.startswith("part=") and path.name not in parts)
        )
    )


def _at(later: timedelta) -> Any:
    def now() -> datetime:
        return TODAY + later

    return now
