"""A history without Spark is the one that Spark writes and counts: by both ways the same, in any order of the two."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession

from kit.errors import HistoryError
from kit.history import History, HistoryHere, Upkeep, folder_here
from kit.profile import Profile, SparkSettings
from kit.tables import schema as tables
from kit.tables.groups import SnapshotInfo
from kit.tables.snapshot import Snapshot, in_spark_too
from tests.generators.random_snapshots import Rows, snapshots
from tests.generators.small_snapshots import FIRST, SECOND, TODAY, small_snapshot
from tests.generators.snapshots import AT, snapshot_of
from tests.soak import IS_SOAK


def rows_of(spark: SparkSession, folder: Path) -> dict[str, list[Any]]:
    """Return the rows as Spark reads them, which is as they are read here."""
    history = History(spark, str(folder))
    for table in tables.ALL:
        names = table.stamped_schema.names
        here, there = HistoryHere(folder).load(table), pl.DataFrame(history.load(table).select(*names).toArrow())
        assert here.columns == names
        assert sorted(map(repr, here.rows())) == sorted(map(repr, there.cast(here.schema).rows()))
    return {table.name: sorted(map(str, history.load(table).collect())) for table in tables.ALL}


@settings(max_examples=10 if IS_SOAK else 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshots())
def test_rows_appended_here_are_read_by_spark_as_rows_that_spark_appends(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, rows: Rows
) -> None:
    folder = tmp_path_factory.mktemp("both")
    taken = snapshot_of({name: each for name, each in rows.items() if name != "later_ownership"})
    info = snapshot_of({"snapshots": [SnapshotInfo("lab", "id", AT, AT, ".*", "1")]}).snapshots
    taken = replace(taken, snapshots=info)
    HistoryHere(folder / "here").append(taken)
    History(spark, str(folder / "spark")).append(in_spark_too(spark, taken))
    assert rows_of(spark, folder / "here") == rows_of(spark, folder / "spark")


def local(snapshot: Snapshot[Any]) -> Snapshot[pl.DataFrame]:
    return replace(snapshot, **{table.name: collected(getattr(snapshot, table.name)) for table in tables.ALL})


def collected(frame: Any) -> pl.DataFrame:
    return pl.DataFrame(frame.toArrow())


@pytest.mark.usefixtures("few_tables")
def test_days_are_counted_as_spark_counts_them(spark: SparkSession, tmp_path: Path) -> None:
    """By turns written by both; compacted, compacted and swept, and with what was cut off."""
    for number, at in enumerate((FIRST, FIRST, SECOND, TODAY)):
        taken = small_snapshot(spark, at, number)
        if number % 2:
            History(spark, str(tmp_path)).append(taken)
        HistoryHere(tmp_path).append(local(taken))  # Again is once.

    def check() -> pl.DataFrame:
        days = HistoryHere(tmp_path).days()
        assert days.equals(Upkeep(spark, str(tmp_path)).days())
        return days

    assert check().select("n_snapshots", "n_compacted").rows() == [(2, 0), (1, 0), (1, 0)]
    before = rows_of(spark, tmp_path)
    for later in (timedelta(), timedelta(hours=2)):
        list(Upkeep(spark, str(tmp_path), lambda later=later: TODAY + later).compact())
        assert check().select("n_snapshots", "n_compacted").rows() == [(2, 2), (1, 1), (1, 0)]
    assert rows_of(spark, tmp_path) == before
    cut_off = local(small_snapshot(spark, TODAY, 9))
    HistoryHere(tmp_path)._add(tables.GROUPS, cut_off.groups, cut_off.snapshot_id)
    assert check()["n_snapshots"].to_list() == [2, 1, 1]
    assert rows_of(spark, tmp_path) == before
    (tmp_path / "snapshots" / "date=2026-11-20 (copy)").mkdir()
    for count in (HistoryHere(tmp_path).days, lambda: Upkeep(spark, str(tmp_path)).days()):
        with pytest.raises(HistoryError, match=r"date=2026-11-20 \(copy\) does not belong to a history"):
            count()


@pytest.mark.usefixtures("few_tables")
def test_another_schema_version_and_no_history_are_the_same_errors(spark: SparkSession, tmp_path: Path) -> None:
    def errors(*asked: Callable[[], object]) -> set[str]:
        found = set()
        for each in asked:
            with pytest.raises(HistoryError) as told:
                each()
            found.add(str(told.value))
        return found

    none = tmp_path / "none"
    assert len(errors(HistoryHere(none).days, lambda: Upkeep(spark, str(none)).days())) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "SCHEMA_VERSION", 99)
        HistoryHere(none).append(local(small_snapshot(spark, FIRST, 1)))
    assert len(errors(lambda: HistoryHere(none), lambda: History(spark, str(none)))) == 1


@pytest.mark.parametrize(
    ("folder", "spark", "is_here"),
    [
        ("history", SparkSettings(), True),
        ("/tmp/history", SparkSettings(master="local[2]"), True),
        ("s3a://bucket/history", SparkSettings(), False),
        ("file:/tmp/history", SparkSettings(), False),
        ("h*", SparkSettings(), False),
        ("", SparkSettings(), False),
        ("history", SparkSettings(master="spark://one:7077"), False),
        ("history", SparkSettings(remote="sc://one"), False),
        ("history", SparkSettings(conf={"spark.hadoop.fs.defaultFS": "hdfs://one"}), False),
    ],
)
def test_a_folder_is_here_only_where_spark_would_find_it_on_this_machine(folder, spark, is_here, monkeypatch):
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    profile = Profile(name="lab", bootstrap_servers="127.0.0.1:9092", spark=spark, file=Path("offramp.toml"))
    assert (folder_here(profile, folder) is not None) == is_here
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/hadoop")
    assert folder_here(profile, folder) is None


def test_info_loads_no_spark(tmp_path: Path) -> None:
    """In a process of its own: this one has Spark."""
    info = SnapshotInfo("lab", "id", AT, AT, ".*", "1")
    HistoryHere(tmp_path / "history").append(snapshot_of({"snapshots": [info]}))
    file = tmp_path / "offramp.toml"
    file.write_text('[clusters.lab]\nbootstrap_servers = "127.0.0.1:1"\n')
    words = ["history", "info", str(tmp_path / "history"), "--json", "--profile-file", str(file)]
    code = (
        "import sys; from kit.cli.main import app; app({}, standalone_mode=False); sys.exit('pyspark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code.format(words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [day["n_snapshots"] for day in json.loads(done.stdout)] == [1]
