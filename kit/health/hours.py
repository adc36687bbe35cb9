"""Each group's hours beside the history: made once, kept when the snapshots themselves expire.

``<folder>/hours/date=YYYY-MM-DD/hour=H/looks=N-<run>/*.parquet``: one hour (UTC), made from N snapshots. It is
written elsewhere and gets its name in one move, so what has the name is whole; no two runs give the same name, for a
folder that is moved to where one is becomes a folder in it. Of an hour that is there more than once, since a snapshot
came late or two runs made it, one with most observations counts; the other files stay, since a process may be reading
them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import partial, reduce

import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession, functions as F

from kit.errors import HistoryError
from kit.health import analyses
from kit.history.files import describe_as
from kit.history.names import GIVEN_UP, begun, run_name
from kit.history.ranges import GroupRanges, Load
from kit.history.store import Reading, Store
from kit.tables import schema as tables

HOURS = "hours"
_STAGING = f"{HOURS}/_staging"
"""Spark's readers pass over what begins with an underscore."""
_BEFORE = timedelta(hours=24)
"""The time before a day in which the ends of logs are examined for the age of records: one observation an hour."""
_HOUR_MS = 3_600_000
_OFFSETS = 2_000_000
"""The number of offsets that are examined together: they and what is made of them took 1.5 GB."""
_FEW_ENDS = 500_000
"""The number of ends of logs, with their names, that have room in Spark's default memory of 1 GB."""
_DAY, _HOUR = re.compile(r"date=\d{4}-\d\d-\d\d"), re.compile(r"hour=\d+")
_PLACE = ["date", "hour", "looks"]
_LOOKS = re.compile(r"looks=(\d+)(-.+)?")
_OWNED = ("group_id", "source", "topic", "partition", "member_id", "is_shared")


class Hours:
    """The hours of one history.

    Args:
        now: an hour has ended, and is made, when it ended before; UTC.

    Raises:
        HistoryError: the history is of another schema version, or Spark Connect can't move files.
    """

    def __init__(
        self, spark: SparkSession, folder: str, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._store = Store(spark, folder)
        self._files = self._store.files
        self._now = now

    def make(self) -> Iterator[tuple[date, int]]:
        """Make the hours that have ended and not there, or that late snapshots changed. → each day, how many of it.

        Raises:
            HistoryError: there is no history, or a file can't be read, written or moved. Hours that are made stay.
        """
        self._sweep()
        reading = Reading(self._store)
        looks = self._looks(reading)
        made = self._made()
        counted = looks.group_by("hour_ms").len().filter(pl.col("hour_ms") <= self._now().timestamp() * 1000 - _HOUR_MS)
        pending = defaultdict[date, dict[int, int]](dict)
        for hour_ms, n_looks in counted.sort("hour_ms").iter_rows():
            day, hour = _place(hour_ms)
            if made[day].get(hour, 0) < n_looks:
                pending[day][hour_ms] = n_looks
        for day, hours in pending.items():
            self._make(reading, day, hours, looks)
            yield day, len(hours)

    def load(self, since: datetime | None = None) -> DataFrame:
        """``tables.GROUP_HOURS`` of the hours that were not over at ``since`` (aware datetime).

        Raises:
            HistoryError: none was made, or they can't be read.
        """
        rows = self._kept(since)
        if rows is None:
            raise HistoryError(f"no hours were made in {self._store.folder}: `offramp history hours` makes them")
        return rows

    def until_now(self, since: datetime) -> DataFrame:
        """Load like :meth:`load`, with the current hour by its observations so far; that hour is not kept.

        Raises:
            HistoryError: there is no history, or it can't be read.
        """
        reading, kept = Reading(self._store), self._kept(since)
        looks = self._looks(reading)
        begins = looks.filter(pl.col("hour_ms") > self._now().timestamp() * 1000 - _HOUR_MS)["hour_ms"].unique()
        current = [self._rows(reading, begins.to_list(), looks)] if len(begins) else []
        frames = [*current, *([kept] if kept is not None else [])]
        nothing = self._store.spark.createDataFrame([], tables.GROUP_HOURS.spark_row_schema)
        return reduce(DataFrame.unionByName, frames) if frames else nothing

    def _kept(self, since: datetime | None) -> DataFrame | None:
        rows = self._store.read(HOURS, f"{tables.GROUP_HOURS.spark_row_schema}, date date, hour int, `looks` string")
        if rows is None or next(self._hours_made(), None) is None:  # A run that died left its staging folder alone.
            return None
        n_looks = F.split("looks", "-")[0].cast("int")
        best = rows.groupBy("date", "hour").agg(F.max_by("looks", F.struct(n_looks, "looks")).alias("looks"))
        rows = rows.join(F.broadcast(best), _PLACE, "left_semi").drop(*_PLACE)
        return rows if since is None else rows.where(F.col("hour_ms") > int(since.timestamp() * 1000) - _HOUR_MS)

    def _looks(self, reading: Reading) -> pl.DataFrame:
        """All complete snapshots: snapshot_id, at_ms, hour_ms."""
        return reading.observations().with_columns(hour_ms=pl.col("at_ms") // _HOUR_MS * _HOUR_MS)

    def _made(self) -> Mapping[date, dict[int, int]]:
        """From how many snapshots each hour was made, by the names of the folders."""
        made = defaultdict[date, dict[int, int]](dict)
        for day, hour, n_snapshots in self._hours_made():
            made[day][hour] = n_snapshots
        return made

    def _hours_made(self) -> Iterator[tuple[date, int, int]]:
        """Yield day, hour and number of snapshots of each hour that was made."""
        for day in self._files.names(self._store.path(HOURS)):
            for hour in self._files.names(self._store.path(f"{HOURS}/{day}")) if _DAY.fullmatch(day) else ():
                names = map(_LOOKS.fullmatch, self._files.names(self._store.path(f"{HOURS}/{day}/{hour}")))
                counts = [int(each[1]) for each in names if each]
                if _HOUR.fullmatch(hour) and counts:
                    yield date.fromisoformat(_value(day)), int(_value(hour)), max(counts)

    def _make(self, reading: Reading, day: date, hours: Mapping[int, int], looks: pl.DataFrame) -> None:
        run = run_name(self._now())
        staging = self._store.path(f"{_STAGING}/{run}")
        with describe_as(f"{self._store.folder}: the hours of {day} can't be made"), _unpruned(self._store.spark):
            rows = self._rows(reading, hours, looks).withColumn("of_hour", F.col("hour_ms"))
            few = rows.repartition(len(hours), "hour_ms").sortWithinPartitions("group_id", "store")
            few.write.option("compression", "zstd").partitionBy("of_hour").parquet(staging)
        for hour_ms, n_looks in hours.items():
            _, hour = _place(hour_ms)
            folder = self._store.path(f"{HOURS}/date={day}/hour={hour}")
            self._files.move(f"{staging}/of_hour={hour_ms}", folder, f"looks={n_looks}-{run}")
        self._files.delete(staging)

    def _rows(self, reading: Reading, hours: Collection[int], looks: pl.DataFrame) -> DataFrame:
        chosen = analyses.looks_of_hours(looks, list(hours))
        day_ms, before_ms = min(hours), min(hours) - int(_BEFORE.total_seconds() * 1000)
        hourly = looks.filter(pl.col("hour_ms").is_between(before_ms, day_ms, closed="left")).group_by("hour_ms").last()
        ends_at = pl.concat([chosen.select("snapshot_id", "at_ms"), hourly.select("snapshot_id", "at_ms")]).unique()

        way = self._by_ranges if self._store.local else self._by_spark
        return way(reading, chosen, ends_at).select(tables.GROUP_HOURS.schema.names)

    def _by_ranges(self, reading: Reading, chosen: pl.DataFrame, ends_at: pl.DataFrame) -> DataFrame:
        looks = {tables.COMMITTED_OFFSETS: chosen, tables.LOG_OFFSETS: ends_at, tables.OWNERSHIP: chosen}
        files = reading.local_files({table: _days(at) for table, at in looks.items()})
        newest_first = chosen.sort("at_ms", descending=True)["snapshot_id"].unique(maintain_order=True).to_list()
        ranges, work = GroupRanges(files, newest_first, _OFFSETS), partial(_group_hours, chosen, ends_at)
        return ranges.map(self._store.spark, work, ranges.bounds())

    def _by_spark(self, reading: Reading, chosen: pl.DataFrame, ends_at: pl.DataFrame) -> DataFrame:
        def small(frame: pl.DataFrame) -> DataFrame:
            return F.broadcast(self._store.spark.createDataFrame(frame.rechunk().to_arrow()))

        def seen(table: tables.Table, at: pl.DataFrame, *columns: str | Column) -> DataFrame:
            days = sorted({_place(at_ms)[0] for at_ms in at["at_ms"]})
            return reading.of_snapshots(table, at["snapshot_id"].to_list(), days).select("snapshot_id", *columns)

        at = chosen.select("snapshot_id", "at_ms").unique()
        key = ("group_id", "store", "topic", "partition", "committed_offset")
        ends = seen(tables.LOG_OFFSETS, ends_at, "topic", "partition", "log_end_offset").join(
            small(ends_at), "snapshot_id"
        )
        if ends.count() <= _FEW_ENDS:  # Else Spark sorts the offsets of all observations, to join them.
            ends = F.broadcast(ends)
        rows: DataFrame = analyses.group_hours(
            seen(tables.COMMITTED_OFFSETS, at, *key, F.unix_millis("committed_at").alias("written_ms")),
            ends,
            seen(tables.OWNERSHIP, at, *_OWNED),
            small(chosen),
        )
        return rows

    def _sweep(self) -> None:
        """Delete what runs wrote that were cut off."""
        for name in self._files.names(self._store.path(_STAGING)):
            if begun(name) < self._now() - GIVEN_UP:
                self._files.delete(self._store.path(f"{_STAGING}/{name}"))


def _group_hours(looks: pl.DataFrame, ends_at: pl.DataFrame, load: Load) -> pl.DataFrame:
    key = ("group_id", "store", "topic", "partition", "committed_offset")
    offsets = load(tables.COMMITTED_OFFSETS, *key, "committed_at").with_columns(
        written_ms=pl.col("committed_at").dt.epoch("ms")
    )
    ends = load(tables.LOG_OFFSETS, "topic", "partition", "log_end_offset").join(ends_at, on="snapshot_id")
    owners = load(tables.OWNERSHIP, *_OWNED)
    rows: pl.DataFrame = analyses.group_hours(offsets, ends, owners, looks)
    return rows


def _days(looks: pl.DataFrame) -> dict[str, date]:
    return {snapshot_id: _place(at_ms)[0] for snapshot_id, at_ms in looks.select("snapshot_id", "at_ms").iter_rows()}


@contextmanager
def _unpruned(spark: SparkSession) -> Iterator[None]:
    """Days and snapshots are named; where Spark searches for them itself as well, a plan with as many joins fails.

    It ends with “dynamicpruning has not finished” (Spark 4.3).
    """
    setting = "spark.sql.optimizer.dynamicPartitionPruning.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        yield
    finally:
        spark.conf.set(setting, str(before))


def _place(hour_ms: int) -> tuple[date, int]:
    at = datetime.fromtimestamp(hour_ms / 1000, UTC)
    return at.date(), at.hour


def _value(name: str) -> str:
    return name.partition("=")[2]
