"""Snapshot, history, logs and analyses on the Spark that a profile asks for; prints the numbers as JSON.

``python -m tests.servers.spark_mode <profile file> <history folder> <log>``: a process of its own, since a process can
hold a classic session or a Connect session, not both.
"""

from __future__ import annotations

import gc
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

import kit
from kit import analyze
from kit.errors import HistoryError
from kit.health import sources as health
from kit.history import Upkeep
from kit.rebalances.logs import lines, read_client_logs
from kit.rebalances.offsets_topic import read_offsets_topic, verify_offsets_topic

COUNTED = ("snapshots", "groups", "committed_offsets")
LAG = ("group_id", "store", "topic", "partition", "committed_offset", "log_end_offset", "lag")
READINESS = ("group_id", "stage", "effective_mode", "n_ozkcc", "n_kc")


def main(profile_file: str, folder: str, log: str) -> None:
    """Append one snapshot twice and another once, then read everything back."""
    profile = kit.load_profile(file=profile_file)
    spark = kit.spark_session(profile)
    history = kit.History(spark, folder)
    with pytest.raises(HistoryError, match="To begin one: offramp snapshot"):
        history.load(kit.tables.schema.GROUPS)
    with kit.connect(profile) as cluster:
        first = kit.take_snapshot(spark, cluster, "mode-.*")
        history.append(first)
        history.append(first)
        assert history.previous(first) is None
        second = kit.take_snapshot(spark, cluster, "mode-.*")
        history.append(second)
    assert history.previous(second).snapshot_id == first.snapshot_id
    history.verify(second)
    topic = read_offsets_topic(spark, profile, "mode-.*")
    commits = pl.DataFrame(topic.commits.toArrow()).sort("partition", "offset")
    commits = commits.unique(["group_id", "topic", "topic_partition"], keep="last")
    lag = kit.collect(kit.views.lag(second))
    readiness = kit.collect(kit.views.readiness(second))
    result = {
        "spark": spark.version,
        "rows": {name: history.load(getattr(kit.tables.schema, name.upper())).count() for name in COUNTED},
        "since": history.load(kit.tables.schema.GROUPS, since=datetime.now(UTC) + timedelta(hours=1)).count(),
        "plain": spark.read.parquet(f"{folder}/committed_offsets").count(),
        "partitioned": sorted({"coordinator", "date"} & {*spark.read.parquet(f"{folder}/groups").columns}),
        "commits": rows(commits, "group_id", "topic", "topic_partition", "committed_offset"),
        "generations": topic.generations.count(),
        "account": verify_offsets_topic(topic),
        "told": told(spark, log),
        "describe_by_tasks": describe_by_tasks(spark, log),
        "lag": rows(lag, *LAG),
        "judged": rows(judged(spark, topic.commits, history), *LAG),
        "readiness": rows(readiness, *READINESS),
    }
    compact(spark, profile, folder)
    again = {name: history.load(getattr(kit.tables.schema, name.upper())).count() for name in COUNTED}
    assert again == result["rows"]
    assert history.previous(second).snapshot_id == first.snapshot_id
    history.verify(second)
    print(json.dumps(result))


def compact(spark: SparkSession, profile: kit.Profile, folder: str) -> None:
    """Compact as if it were tomorrow; Spark Connect refuses this."""
    later = datetime.now(UTC) + timedelta(days=1)
    if profile.spark.remote is not None:
        with pytest.raises(HistoryError, match="can't be maintained through Spark Connect"):
            Upkeep(spark, folder, lambda: later)
        return
    (done,) = Upkeep(spark, folder, lambda: later).compact()
    assert done.n_snapshots == 2
    assert done.after.n_files < done.before.n_files
    assert list(Upkeep(spark, folder, lambda: later + timedelta(hours=2)).compact()) == []
    assert not list(Path(folder, "groups").rglob("*.parquet"))


def judged(spark: SparkSession, commits: DataFrame, history: kit.History) -> pl.DataFrame:
    """By Burrow's rules: Spark's tasks measure the windows."""
    log_offsets, timings = (history.load(each) for each in (kit.tables.LOG_OFFSETS, kit.tables.READ_TIMINGS))
    ends = health.ends_of_history(log_offsets, timings)
    now = spark.createDataFrame([(round(datetime.now(UTC).timestamp() * 1000),)], "at_ms bigint")
    return pl.DataFrame(analyze.partition_health(health.commits_of_topic(commits), ends, now).toArrow())


def told(spark: SparkSession, log: str) -> list[tuple[object, ...]]:
    """Return what a log shows with nothing but the events."""
    events = read_client_logs(spark, log, zone="UTC").events
    gc.collect()
    return rows(pl.DataFrame(events.toArrow()), "line", "kind", "group_id", "generation")


def describe_by_tasks(spark: SparkSession, log: str) -> list[tuple[object, ...]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_HELD_HERE", 0)
        return told(spark, log)


def rows(frame: pl.DataFrame, *columns: str) -> list[tuple[object, ...]]:
    return sorted(frame.select(columns).rows(), key=str)


if __name__ == "__main__":
    main(*sys.argv[1:])
