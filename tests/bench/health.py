"""Burrow's rules over many partitions: Spark and polars beside a straight restatement of them in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial
from itertools import pairwise
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession, functions as F

from kit import analyze
from kit.health import sources as health
from kit.history import History
from kit.profile import SparkSettings
from kit.spark.session import start
from kit.tables import schema as tables
from tests.bench.clock import compare, expect, say, timed
from tests.bench.parts import write_day
from tests.bench.rows import Row
from tests.bench.site import Site

PARTITIONS, COMMITS, LOGS = 1_000_000, 15, 2_000
GOAL, PART = 10, 10
"""The restatement judges each tenth partition; its time is reported for all."""
LIMIT_S = 60.0
"""In which Spark has judged them all."""
_STEP_MS = 60_000
_CONF = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "32"}
"""15 million rows are sorted: with the defaults of small tables they go to the disk."""
_NOW_MS = COMMITS * _STEP_MS
_DAY = date(1970, 1, 1)


def compared(site: Site) -> Iterator[Row]:
    """All read Parquet files and count the statuses; they are held equal, the restatement on its part."""
    say(f"health: writing {PARTITIONS:,} partitions × {COMMITS} commits by Spark")
    spark = start(SparkSettings(conf=_CONF), "bench")
    try:
        with TemporaryDirectory() as folder:
            _write(spark, folder)
            _write_history(spark, folder)
            name = f"Burrow's rules, {PARTITIONS:,} partitions × {COMMITS} commits"
            part = _judged(spark, f"{folder}/part", folder)
            python = timed(lambda: _restated(folder), lambda found: expect("statuses by Python", found, part))
            found = _judged(spark, f"{folder}/commits", folder)
            in_history = timed(
                lambda: _of_history(spark, folder), lambda statuses: expect("in a history", statuses, found)
            )
            in_history()
            looks = timed(lambda: _restated_history(folder), lambda found: expect("looks by Python", found, part))
            yield compare(f"{name}, of a history on Spark vs Python", in_history, lambda: PART * looks(), GOAL, 2)
            frames = timed(
                lambda: _judged(spark, f"{folder}/commits", folder), lambda again: expect("again", again, found)
            )
            row = compare(f"{name}, Spark's frames vs Python", frames, lambda: PART * python(), GOAL, 2)
            yield row
            yield Row(f"{name} vs its limit", row.ours, LIMIT_S, "s", 1)
            polars = timed(lambda: _judged_by_polars(folder), lambda statuses: expect("by polars", statuses, found))
            yield compare(f"{name}, by polars vs Python", polars, lambda: PART * python(), GOAL)
    finally:
        spark.stop()


def _of_history(spark: SparkSession, folder: str) -> dict[str, int]:
    looks = pl.DataFrame({"at_ms": [_NOW_MS]})
    rows = History(spark, f"{folder}/history").by_groups(
        lambda load: health.judged(load, partial(analyze.partition_health, intervals=COMMITS), looks)
    )
    return _counted(rows)


def _judged(spark: SparkSession, commits: str, folder: str) -> dict[str, int]:
    """Every column is computed, the evidence too."""
    times = spark.createDataFrame([(_NOW_MS,)], "at_ms bigint")
    ends = spark.read.parquet(f"{folder}/ends")
    return _counted(analyze.partition_health(spark.read.parquet(commits), ends, times, COMMITS))


def _counted(rows: DataFrame) -> dict[str, int]:
    counted = rows.groupBy("status").agg(F.count("*").alias("n"), F.max(F.length("evidence")))
    return {row["status"]: row["n"] for row in counted.collect()}


def _judged_by_polars(folder: str) -> dict[str, int]:
    commits, ends = (pl.read_parquet(f"{folder}/{name}/*.parquet") for name in ("commits", "ends"))
    rows: pl.DataFrame = analyze.partition_health(commits, ends, pl.DataFrame({"at_ms": [_NOW_MS]}), COMMITS)
    counted = rows.group_by("status").agg(pl.len(), pl.col("evidence").str.len_chars().max())
    return {status: n for status, n, _ in counted.iter_rows()}


def _write(spark: SparkSession, folder: str) -> None:
    """By turns one catches up, hangs, stops, steps back; the others fall behind."""
    at = spark.range(PARTITIONS * COMMITS)
    at = at.select((F.col("id") % COMMITS).alias("order"), F.expr(f"id div {COMMITS}").alias("number"))
    kind, order = F.col("number") % 7, F.col("order")
    offset = F.when(kind == 0, 1000 * (order + 1)).when(kind == 1, 50).when((kind == 2) & (order == 9), 1)
    step_ms = F.when(kind == 3, 1000).otherwise(_STEP_MS)
    rows = at.select(
        F.expr(f"concat('group-', number div {LOGS})").alias("group_id"),
        F.lit("kafka").alias("store"),
        F.expr(f"concat('topic-', number % {LOGS} div 20)").alias("topic"),
        F.expr("cast(number % 20 as int)").alias("partition"),
        offset.otherwise(10 * order + 100).alias("committed_offset"),
        (order * step_ms).cast("long").alias("committed_ms"),
        "order",
        "number",
    )
    rows.drop("number").write.parquet(f"{folder}/commits")
    rows.where(F.col("number") % PART == 0).drop("number").write.parquet(f"{folder}/part")
    ends = spark.range(LOGS * COMMITS).selectExpr(
        f"concat('topic-', id div {COMMITS * 20}) as topic",
        f"cast(id div {COMMITS} % 20 as int) as partition",
        f"(id % {COMMITS} + 1) * 1000 as log_end_offset",
        f"id % {COMMITS} * {_STEP_MS} as sampled_ms",
    )
    ends.write.parquet(f"{folder}/ends")


def _write_history(spark: SparkSession, folder: str) -> None:
    """The same commits, one in each observation."""
    commits = spark.read.parquet(f"{folder}/commits").withColumn("observed_ms", _STEP_MS * F.col("order"))
    looks = spark.range(COMMITS).select((_STEP_MS * F.col("id")).alias("observed_ms"))
    at, began = F.timestamp_millis("observed_ms"), F.timestamp_millis(F.lit(0))
    in_order = commits.repartitionByRange(4, "group_id").sortWithinPartitions("group_id", "topic", "partition", "order")
    frames = {
        tables.COMMITTED_OFFSETS: in_order.withColumn("committed_at", F.timestamp_millis("committed_ms")),
        tables.LOG_OFFSETS: spark.read.parquet(f"{folder}/ends").withColumn("observed_ms", F.col("sampled_ms")),
        tables.READ_TIMINGS: looks.withColumns({"step": F.lit("log offsets"), "started_at": at}),
        tables.SNAPSHOTS: looks.withColumn("compacted_at", began),
    }
    stamp = {"observed_at": at, "snapshot_id": F.col("observed_ms").cast("string")}
    write_day(spark, {table: rows.withColumns(stamp) for table, rows in frames.items()}, f"{folder}/history", _DAY)
    rows = spark.read.parquet(f"{folder}/history/days/committed_offsets")
    rows.where(F.col("partition") % PART == 0).write.parquet(f"{folder}/looks")


def _restated(folder: str) -> dict[str, int]:
    """Return the verdicts as a person would compute them: a list of commits per partition, and the rules from top
    to bottom.
    """
    windows = defaultdict(list)
    for row in pq.read_table(f"{folder}/part").to_pylist():
        windows[row["group_id"], row["store"], row["topic"], row["partition"]].append(
            (row["order"], row["committed_ms"], row["committed_offset"])
        )
    return _statuses(windows, folder)


def _restated_history(folder: str) -> dict[str, int]:
    """The same of observations: a commit is where an observation shows something else than the one before."""
    names = ["group_id", "store", "topic", "partition", "observed_at", "committed_offset", "committed_at", "error"]
    rows = pq.read_table(f"{folder}/looks", columns=names)
    for name in ("observed_at", "committed_at"):
        at = rows.column(name).cast(pa.timestamp("ms")).cast(pa.int64())
        rows = rows.set_column(rows.schema.get_field_index(name), name, at)
    looks = defaultdict(list)
    for row in rows.to_pylist():
        if row["error"] is None:
            seen = (row["observed_at"], row["committed_at"], row["committed_offset"])
            looks[row["group_id"], row["store"], row["topic"], row["partition"]].append(seen)
    windows = {}
    for key, each in looks.items():
        each.sort()
        news = [each[0], *(now for before, now in pairwise(each) if now[1:] != before[1:])]
        windows[key] = [(observed, observed if at is None else at, offset) for observed, at, offset in news]
    return _statuses(windows, folder)


def _statuses(windows: Mapping[tuple[Any, ...], list[tuple[int, int, int]]], folder: str) -> dict[str, int]:
    ends = defaultdict(list)
    for end in pq.read_table(f"{folder}/ends").to_pylist():
        ends[end["topic"], end["partition"]].append((end["sampled_ms"], end["log_end_offset"]))
    statuses: Counter[str] = Counter()
    for key, commits in windows.items():
        statuses[_status(sorted(commits)[-COMMITS:], sorted(ends[key[2:]])[-COMMITS:])] += 1
    return dict(statuses)


def _status(commits: Sequence[tuple[int, int, int]], ends: Sequence[tuple[int, int]]) -> str:
    times, offsets = [each[1] for each in commits], [each[2] for each in commits]
    lags = [max(0, [end for sampled, end in ends if sampled <= at][-1] - offset) for at, offset in zip(times, offsets)]
    if ends[-1][1] <= offsets[-1]:
        return "OK"
    is_caught_up = any(end <= offsets[-1] for _, end in ends)
    if _NOW_MS - times[-1] > times[-1] - times[0] and not is_caught_up:
        return "STOP"
    for turn, (before, offset) in enumerate(pairwise(offsets), 1):
        if offset < before:
            if max(offsets[turn:]) < before:
                return "REWIND"
            break
    if 0 in lags:
        return "OK"
    if len(set(offsets)) == 1:
        return "STALL"
    return "WARN" if all(lag >= before for before, lag in pairwise(lags)) else "OK"
