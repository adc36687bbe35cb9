"""A history's hours: made by Spark, beside its bare scan of the same columns."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession, functions as F

from kit.health.hours import Hours
from kit.profile import SparkSettings
from kit.spark.session import start
from kit.tables import schema as tables
from tests.bench.clock import compare, expect, say, timed
from tests.bench.parts import write_day
from tests.bench.rows import Row
from tests.bench.site import Site

GROUPS, PARTITIONS, TOPICS, LOOKS, HOURS = 10_000, 20, 100, 60, 1
GOAL = 0.3
_MONTH = 24 * 30
_BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
_CONF = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "8"}
_READ = {
    tables.COMMITTED_OFFSETS: ("snapshot_id", "group_id", "store", "topic", "partition", "committed_offset"),
    tables.LOG_OFFSETS: ("snapshot_id", "topic", "partition", "log_end_offset"),
    tables.OWNERSHIP: ("snapshot_id", "group_id", "source", "topic", "partition", "member_id"),
}


def compared(site: Site) -> Iterator[Row]:
    """Return the compared hours, those of a month's 720 that are written; the time of either grows with their
    number.
    """
    n_rows = GROUPS * PARTITIONS * LOOKS * HOURS
    say(f"hours: writing {HOURS} h of {GROUPS:,} groups × {PARTITIONS} partitions, {n_rows:,} offsets, compacted")
    spark = start(SparkSettings(conf=_CONF), "bench")
    try:
        with TemporaryDirectory() as folder:
            _write(spark, folder)
            ours = timed(lambda: _made(spark, folder), lambda found: expect("hours", found, HOURS))
            scan = timed(lambda: _scanned(spark, folder))
            name = f"hours of a history, {n_rows:,} offsets (1/{_MONTH // HOURS} of a month) vs bare scan"
            yield compare(name, ours, scan, GOAL, 3)
    finally:
        spark.stop()


def _made(spark: SparkSession, folder: str) -> int:
    shutil.rmtree(f"{folder}/hours", ignore_errors=True)
    hours = Hours(spark, folder, lambda: _BEGIN + timedelta(hours=HOURS))
    return sum(n_hours for _, n_hours in hours.make())


def _scanned(spark: SparkSession, folder: str) -> None:
    for table, columns in _READ.items():
        spark.read.parquet(f"{folder}/days/{table.name}").select(*columns).write.format("noop").mode("overwrite").save()


def _write(spark: SparkSession, folder: str) -> None:
    """Write a day like `offramp history compact`: sorted by group, a few files per table."""
    at = F.timestamp_seconds(F.lit(int(_BEGIN.timestamp())) + 60 * F.col("look"))
    stamp = (F.format_string("s-%06d", "look").alias("snapshot_id"), at.alias("observed_at"))
    n_looks = LOOKS * HOURS
    each = spark.range(GROUPS * PARTITIONS * n_looks, numPartitions=4)
    each = each.select((F.col("id") % n_looks).cast("int").alias("look"), F.expr(f"id div {n_looks}").alias("number"))
    place = (
        F.expr(f"concat('group-', number div {PARTITIONS})").alias("group_id"),
        F.lit("kafka").alias("store"),
        F.expr(f"concat('topic-', number div {PARTITIONS} % {TOPICS})").alias("topic"),
        F.expr(f"cast(number % {PARTITIONS} as int)").alias("partition"),
    )
    behind = F.when(F.col("number") % 5 == 0, F.col("number") % 1000).otherwise(0)
    group, store, topic, partition = place
    frames = {
        tables.COMMITTED_OFFSETS: each.select(
            *stamp, *place, (1000 * F.col("look") + 1_000_000 - behind).alias("committed_offset")
        ),
        tables.OWNERSHIP: each.select(
            *stamp, group, store.alias("source"), topic, partition,
            F.expr(f"concat('member-', number % {PARTITIONS} div 5, '-', look div 40)").alias("member_id"),
        ),
        tables.LOG_OFFSETS: spark.range(TOPICS * PARTITIONS * n_looks).select(
            (F.col("id") % n_looks).cast("int").alias("look"), F.expr(f"id div {n_looks}").alias("number")
        ).select(
            *stamp, F.expr(f"concat('topic-', number div {PARTITIONS})").alias("topic"), partition,
            (1000 * F.col("look") + 1_000_000).alias("log_end_offset"),
        ),
        tables.SNAPSHOTS: spark.range(n_looks).select(F.col("id").cast("int").alias("look")).select(
            *stamp, F.lit(_BEGIN).alias("compacted_at")
        ),
    }  # fmt: skip
    write_day(spark, frames, folder, _BEGIN.date())
