"""Burrow's rules over many partitions: Spark and polars beside a straight restatement of them in Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from tempfile import TemporaryDirectory

import polars as pl
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kit import analyze
from kit.profile import SparkSettings
from kit.spark.session import start
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import Site

PARTITIONS, COMMITS, LOGS = 1_000_000, 15, 2_000
GOAL, PART = 10, 10
"""The restatement judges each tenth partition; its time is told for all."""
LIMIT_S = 60.0
"""In which Spark has judged them all."""
_STEP_MS = 60_000
_CONF = {"spark.driver.memory": "3g", "spark.sql.shuffle.partitions": "32"}
"""15 million rows are sorted: with the defaults of small tables they go to the disk."""
_NOW_MS = COMMITS * _STEP_MS


def compared(site: Site) -> Iterator[Row]:
    """Both read Parquet files and count the statuses; they are held equal on the restatement's part."""
    say(f"health: writing {PARTITIONS:,} partitions × {COMMITS} commits by Spark")
    spark = start(SparkSettings(conf=_CONF), "bench")
    try:
        with TemporaryDirectory() as folder:
            _write(spark, folder)
            part = _judged(spark, f"{folder}/part", folder)
            in_spark = _judged(spark, f"{folder}/commits", folder)
            python = timed(lambda: _restated(folder), lambda found: expect("statuses by Python", found, part))
            ours = timed(
                lambda: _judged(spark, f"{folder}/commits", folder),
                lambda found: expect("partitions that were judged", sum(found.values()), PARTITIONS),
            )
            name = f"Burrow's rules, {PARTITIONS:,} partitions × {COMMITS} commits"
            row = compare(f"{name} vs Python", ours, lambda: PART * python(), GOAL, 2)
            yield row
            yield Row(f"{name} vs its limit", row.ours, LIMIT_S, "s", 1)
            polars = timed(lambda: _judged_by_polars(folder), lambda found: expect("by polars", found, in_spark))
            yield compare(f"{name}, by polars vs Python", polars, lambda: PART * python(), GOAL)
    finally:
        spark.stop()


def _judged(spark: SparkSession, commits: str, folder: str) -> dict[str, int]:
    """Every column is computed, the evidence too."""
    times = spark.createDataFrame([(_NOW_MS,)], "at_ms bigint")
    ends = spark.read.parquet(f"{folder}/ends")
    rows: DataFrame = analyze.partition_health(spark.read.parquet(commits), ends, times, COMMITS)
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


def _restated(folder: str) -> dict[str, int]:
    """As one would write it: a list of commits per partition, and the rules from top to bottom."""
    ends = defaultdict(list)
    for end in pq.read_table(f"{folder}/ends").to_pylist():
        ends[end["topic"], end["partition"]].append((end["sampled_ms"], end["log_end_offset"]))
    windows = defaultdict(list)
    for row in pq.read_table(f"{folder}/part").to_pylist():
        windows[row["group_id"], row["store"], row["topic"], row["partition"]].append(
            (row["order"], row["committed_ms"], row["committed_offset"])
        )
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
