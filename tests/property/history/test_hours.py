"""A history's hours: right, made once, made again for what comes late, whole whatever ends the run that makes them."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import kit.health.hours
from kit.cli.main import app
from kit.errors import HistoryError
from kit.health.hours import Hours
from kit.history import History, Upkeep
from tests.generators import health_history
from tests.generators.health_history import START
from tests.limits import lower
from tests.property.history.faults import elsewhere, full, writing
from tests.soak import soak_only

HOUR = timedelta(hours=1)
GROUPS = {
    ("steady", "kafka"): lambda minute: max(0, 100 * minute - 5),
    ("dead", "kafka"): lambda minute: 100 * min(minute, 80),
    ("back", "kafka"): lambda minute: 100 * minute - (1000 if minute > 90 else 0),
    ("", "kafka"): lambda minute: 100 * minute - 1,
    ("a'b\"c\\d\n%20 Ω\U0001f600", "kafka"): lambda minute: 100 * minute - 2,
}
"""100 records a minute; looks each two minutes, from 22:00 to 0:20 (UTC)."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hours") / "history"
    health_history.write(folder, 140, GROUPS)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> str:
    copy = tmp_path / "history"
    shutil.copytree(written, copy)
    return str(copy)


def hours(spark: SparkSession, folder: str, later: timedelta = 2 * HOUR + timedelta(minutes=20)) -> Hours:
    return Hours(spark, folder, lambda: START + later)


def rows(spark: SparkSession, folder: str) -> dict[tuple[str, int], Any]:
    found = hours(spark, folder).load().collect()
    keyed = {(row.group_id, (row.hour_ms - int(START.timestamp() * 1000)) // 3_600_000): row for row in found}
    assert len(keyed) == len(found)
    return keyed


@pytest.fixture(scope="module")
def expected(spark: SparkSession, written: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """By Spark's own joins and sums, as of files that are elsewhere."""
    copy = tmp_path_factory.mktemp("expected") / "history"
    shutil.copytree(written, copy)
    assert sum(n_hours for _, n_hours in elsewhere(hours(spark, str(copy))).make()) == 2  # the third is not over
    found = rows(spark, str(copy))
    assert found.keys() == {(group, hour) for group, _ in GROUPS for hour in (0, 1)}
    return found


def test_an_hour_has_its_figures(expected):
    steady, dead, back = (expected[group, 1] for group in ("steady", "dead", "back"))
    assert (steady.lag_min, steady.lag_p50, steady.lag_p95, steady.lag_max) == (5, 5, 5, 5)
    assert (steady.n_looks, steady.n_unknown, steady.n_read, steady.n_written) == (30, 0, 6000, 6000)
    # It read until minute 80, its hour's last observation is at 118. Half of the observations are at 60 to 88.
    assert (dead.lag_min, dead.lag_p50, dead.lag_max, dead.lag_last) == (0, 800, 3800, 3800)
    assert dead.time_lag_lower_ms == 36 * 60_000
    assert dead.time_lag_upper_ms == 38 * 60_000
    assert (dead.n_stop, dead.n_warn, dead.n_read) == (0, 0, 2200)  # an observation of the hour was without lag
    assert (back.lag_p95, back.n_rewind) == (1000, 0)  # it ends before where others are, not before where it began
    assert expected["dead", 0].lag_max == 0


@pytest.mark.parametrize("n_rows", [1, 60, 10**9])
def test_they_are_the_same_of_ranges_of_groups(spark, folder, expected, n_rows, monkeypatch):
    """About so many offsets each: one group, two, all."""
    lower(monkeypatch, kit.health.hours, _OFFSETS=n_rows)
    list(hours(spark, folder).make())
    assert rows(spark, folder) == expected


def test_a_column_that_older_files_lack_is_null(spark, folder, expected):
    for file in Path(folder, "committed_offsets").rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop_columns(["committed_at"]), file)
    list(hours(spark, folder).make())
    assert rows(spark, folder) == expected


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda file: file.write_bytes(file.read_bytes()[:-9]), "can't be read: "),
        (lambda file: file.write_bytes(b""), "can't be read: "),
        (lambda file: _with_text(file), "holds committed_offset as String where Int64 is expected: another version of"),
    ],
    ids=["cut off", "empty", "another type"],
)
def test_a_file_that_reports_nothing_is_named_and_no_hour_is_made(spark, folder, change, why):
    file = sorted(Path(folder, "committed_offsets").rglob("*.parquet"))[5]
    change(file)
    with pytest.raises(
        HistoryError, match=rf"the hours of 2026-11-22 can't be made: .*{file.parent.name}/{file.name} {why}[^\n]+$"
    ):
        list(hours(spark, folder).make())
    with pytest.raises(HistoryError, match="no hours were made"):
        hours(spark, folder).load()


@pytest.mark.parametrize("left", ["_staging/20261122T230000Z-dead", "date=2026-11-22/hour=22"])
def test_a_run_that_died_before_its_first_hour_has_made_none(spark, folder, left):
    """Its folders held no hour, and were loaded as a table without rows."""
    Path(folder, "hours", left).mkdir(parents=True)
    with pytest.raises(HistoryError, match="no hours were made"):
        hours(spark, folder).load()


def _with_text(file: Path) -> None:
    table = pq.read_table(file, partitioning=None)
    at = table.schema.get_field_index("committed_offset")
    pq.write_table(table.set_column(at, "committed_offset", table["committed_offset"].cast("string")), file)


@soak_only
def test_an_hour_is_made_once_and_again_after_a_late_snapshot(spark, folder, expected):
    late = sorted(Path(folder, "snapshots").rglob("part.parquet"))[3].parent
    away = Path(folder).parent / "late"
    shutil.move(late, away)
    assert sum(n for _, n in hours(spark, folder).make()) == 2
    assert rows(spark, folder)["steady", 0].n_looks == 29
    assert list(hours(spark, folder).make()) == []
    shutil.move(away, late)
    assert list(hours(spark, folder).make()) == [(START.date(), 1)]
    assert rows(spark, folder) == expected
    later = dict(hours(spark, folder, 4 * HOUR).make())
    assert later == {START.date() + timedelta(days=1): 1}


@soak_only
def test_they_are_the_same_of_a_compacted_history_and_outlive_its_snapshots(spark, folder, expected):
    days_later = START + timedelta(days=2)
    list(Upkeep(spark, folder, lambda: days_later).compact())
    list(hours(spark, folder).make())
    assert rows(spark, folder) == expected
    Upkeep(spark, folder, lambda: days_later).expire(days_later.date())
    assert rows(spark, folder) == expected
    with pytest.raises(HistoryError, match="there is no complete snapshot"):
        History(spark, folder).latest()


@soak_only
def test_a_snapshot_in_two_parts_counts_once(spark, folder, expected):
    list(Upkeep(spark, folder, lambda: START + timedelta(days=2)).compact())
    for part in Path(folder, "days").glob("*/date=*/part=*"):
        shutil.copytree(part, part.with_name(f"{part.name}-again"))  # as two runs at once leave it
    list(hours(spark, folder).make())
    assert rows(spark, folder) == expected


@soak_only
def test_the_hour_that_is_not_over_is_reported_and_not_kept(spark, folder, expected):
    def told() -> list[int]:
        found = hours(spark, folder).until_now(START).select("hour_ms").distinct().collect()
        return sorted((row.hour_ms - int(START.timestamp() * 1000)) // 3_600_000 for row in found)

    assert told() == [2]
    list(hours(spark, folder).make())
    assert told() == [0, 1, 2]
    assert rows(spark, folder) == expected
    assert hours(spark, folder).load(START + HOUR / 2).select("hour_ms").distinct().count() == 2


@soak_only
def test_a_folder_that_was_begun_is_no_hour(spark, folder, expected):
    Path(folder, "hours", "date=2026-11-22", "hour=22").mkdir(parents=True)
    list(hours(spark, folder).make())
    assert rows(spark, folder) == expected


@soak_only
def test_hours_in_which_no_group_was_seen_are_made_once(spark, tmp_path):
    folder = tmp_path / "history"
    health_history.write(folder, 60, {})
    assert list(hours(spark, str(folder)).make()) == [(START.date(), 2)]
    assert list(hours(spark, str(folder)).make()) == []
    assert hours(spark, str(folder)).load().count() == 0


def test_a_full_disk_and_hours_that_are_not_there_are_one_sentence(spark, folder):
    with pytest.raises(HistoryError, match=r"no hours were made in .*: `offramp history hours` makes them$"):
        hours(spark, folder).load()

    why = r"the hours of 2026-11-22 can't be made: No space left on device$"
    with writing(full), pytest.raises(HistoryError, match=why):
        list(hours(spark, folder).make())


@soak_only
@pytest.mark.usefixtures("spark_of_verbs")
def test_the_verb(folder, tmp_path, monkeypatch):
    (tmp_path / "offramp.toml").write_text('[clusters.demo]\nbootstrap_servers = "127.0.0.1:1"\n')
    monkeypatch.setenv("OFFRAMP_PROFILE_FILE", str(tmp_path / "offramp.toml"))

    def told() -> list[str]:
        result = CliRunner().invoke(app, ["history", "hours", folder])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()

    assert told() == ["2026-11-22  2 hours", "2026-11-23  1 hour"]
    assert told() == ["No hourly summary to make: every completed hour has one."]
