"""A history gives the same result group by group: by ranges of groups on local disks, and by Spark elsewhere."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kit
from kit import analyze
from kit.errors import HistoryError, InputError
from kit.health import sources as health
from kit.history import History, Upkeep, in_order, snapshots
from kit.history.files import cause
from kit.history.in_order import Copies
from kit.history.store import Reading
from kit.tables import schema as tables
from tests.generators import health_history
from tests.generators.health_history import START
from tests.limits import lower
from tests.property.history.faults import elsewhere
from tests.soak import soak_only

GROUPS = {
    ("steady", "kafka"): lambda minute: max(0, 100 * minute - 5),
    ("dead", "kafka"): lambda minute: 100 * min(minute, 30),
    ("dead", "zookeeper"): lambda minute: 100 * min(minute, 50),
    ("back", "kafka"): lambda minute: 100 * minute - (1000 if minute > 60 else 0),
    ("late", "kafka"): lambda minute: 100 * minute if minute > 80 else None,
    ("", "kafka"): lambda minute: 100 * minute - 1,
    ("a'b\"c\\d\n%20 Ω\U0001f600", "kafka"): lambda minute: 100 * min(minute, 40),
}
SOME = ["dead", "a'b\"c\\d\n%20 Ω\U0001f600", "nobody"]
SINCE = START + timedelta(minutes=20)
NAMES = ("verdicts", "health", "alarms", "lags", "ages", "with holes")
QUICK = ("verdicts", "alarms", "ages")
Work = Callable[[Any], Any]
RULE = analyze.AnyRule((analyze.BurrowRule(5, 100, 0.3), analyze.SilenceRule(15 * 60_000)))


@pytest.fixture(scope="module")
def folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Looks each four minutes over midnight (UTC); the first day's are compacted."""
    folder = tmp_path_factory.mktemp("by-groups") / "history"
    health_history.write(folder, 140, GROUPS, frozenset(range(2, 140, 4)))
    upkeep = Upkeep(spark, str(folder), lambda: START + timedelta(days=1))
    assert [each.n_snapshots for each in upkeep.compact()] == [30]
    return str(folder)


@pytest.fixture(scope="module")
def works(spark: SparkSession, folder: str) -> dict[str, Work]:
    looks = health.looks_of(kit.collect(History(spark, folder).load(tables.SNAPSHOTS, SINCE)), 4)
    return {
        "verdicts": lambda load: health.judged(load, RULE.verdicts, looks),
        "health": lambda load: health.judged(load, analyze.partition_health, looks),
        "alarms": lambda load: analyze.group_alarms(health.judged(load, RULE.verdicts, looks)),
        "lags": health.lags,
        "ages": health.ages,
        "with holes": partial(health.ages, holes=["t"]),
    }


@pytest.fixture(scope="module")
def loaded(spark: SparkSession, folder: str) -> Callable[..., pl.DataFrame]:
    """All rows of each table, without by_groups."""
    kept = History(spark, folder)
    read = (tables.COMMITTED_OFFSETS, tables.LOG_OFFSETS, tables.READ_TIMINGS)
    rows = {table.name: pl.DataFrame(kept.load(table, SINCE).toArrow()) for table in read}

    def load(some: list[str] | None, table: tables.Table, *names: str) -> pl.DataFrame:
        asked = rows[table.name].select(*dict.fromkeys(["snapshot_id", *names]))
        return asked.filter(pl.col("group_id").is_in(some)) if some and "group_id" in names else asked

    return load


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Set how many offsets a range has, and how many files are opened before looks are copied."""

    def set_limits(n_offsets: int = 10**9, n_opened: int = 0) -> None:
        lower(monkeypatch, snapshots, _OFFSETS=n_offsets)
        lower(monkeypatch, in_order, _OPENED=n_opened)

    return set_limits


@pytest.fixture
def register(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, Copies], None]:
    """Give a history its copies, before anybody reads it."""
    application = str(spark.sparkContext.applicationId)
    return lambda folder, copies: monkeypatch.setitem(in_order._COPIES, (application, str(folder)), copies)


def ordered(rows: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(rows.rows(), key=lambda row: tuple((value is None, str(value)) for value in row))


def found(spark: SparkSession, folder: str, work: Work, **wishes: Any) -> list[tuple[Any, ...]]:
    return ordered(kit.collect(History(spark, folder).by_groups(work, SINCE, **wishes)))


@pytest.mark.parametrize(
    ("name", "some"),
    [
        *(pytest.param(name, None, marks=[] if name in QUICK else soak_only) for name in NAMES),
        *(pytest.param(name, SOME, marks=[] if name == "alarms" else soak_only) for name in NAMES),
    ],
)
def test_ranges_give_the_result_of_all_rows_together(spark, folder, works, loaded, name, some, limits):
    """A range of about one group, the observations of the second day as they were appended, and in copies; a range of
    all.
    """
    expected = ordered(works[name](partial(loaded, some)))
    for n_rows, n_opened in ((1, 10**9), (1, 0), (10**9, 10**9)):
        limits(n_rows, n_opened)
        assert found(spark, folder, works[name], group_ids=some) == expected
    quiet = {"steady", "", "late"} if name == "alarms" else set()
    assert {row[0] for row in expected} == {group for group, _ in GROUPS if some is None or group in some} - quiet


@pytest.mark.parametrize(
    ("name", "some"),
    [
        ("lags", SOME),
        *(pytest.param(name, None, marks=soak_only) for name in NAMES),
    ],
)
def test_spark_gives_the_same(spark, folder, works, loaded, name, some):
    kept = elsewhere(History(spark, folder))
    expected = ordered(works[name](partial(loaded, some)))
    assert ordered(kit.collect(kept.by_groups(works[name], SINCE, group_ids=some))) == expected


def test_whatever_the_time_zone_of_the_session_is(spark, folder, works):
    """Looks that are compacted, and looks that are not, are chosen by the same time."""
    expected = found(spark, folder, works["lags"])
    try:
        for zone in ("America/New_York", "Asia/Kathmandu"):
            spark.conf.set("spark.sql.session.timeZone", zone)
            assert found(spark, folder, works["lags"]) == expected
            rows = History(spark, folder).by_groups(works["lags"], SINCE.astimezone(ZoneInfo(zone)))
            assert ordered(kit.collect(rows)) == expected
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def copied(copies: Copies) -> list[int]:
    """Return how many observations each copy holds, the first copy first."""
    looks = {(folder, Path(file).parent) for (file, *_), folder in copies._copied.items() if "log_offsets" in file}
    return [sum(of == folder for of, _ in looks) for folder in copies._n_rows]


def test_observations_are_copied_once_and_new_ones_when_they_are_many(spark, folder, works, limits, tmp_path):
    """A history that continues while it is read; the copies outlive what is deleted meanwhile."""
    copy, later = shutil.copytree(folder, tmp_path / "history"), tmp_path / "later"
    health_history.write(later, 148, GROUPS, frozenset(range(148)) - {144})
    limits(1, 20)
    kept, copies = History(spark, str(copy)), in_order.copies_of(spark, str(copy))
    frames = [kept.by_groups(works["lags"], SINCE), kept.by_groups(works["lags"], SINCE)]
    assert copied(copies) == [6]
    shutil.rmtree(copy / "committed_offsets")
    for frame in frames:
        assert ordered(kit.collect(frame)) == found(spark, folder, works["lags"])
    shutil.copytree(Path(folder, "committed_offsets"), copy / "committed_offsets")
    for table in ("committed_offsets", "log_offsets", "read_timings", "snapshots"):
        shutil.copytree(later / table, copy / table, dirs_exist_ok=True)
    expected = found(spark, str(copy), works["lags"])
    assert len(expected) > len(found(spark, folder, works["lags"]))
    assert ordered(kit.collect(kept.by_groups(works["lags"], SINCE))) == expected
    assert copied(copies) == [6]  # Two observations are few.
    limits(1, 0)
    assert ordered(kit.collect(kept.by_groups(works["lags"], SINCE))) == expected
    assert copied(copies) == [6, 2]


def test_copies_are_made_once_for_all_who_read_a_history(spark, folder, works, limits, tmp_path):
    """Several threads share the copies, too; what was deleted of them is copied again, and so is an observation
    that is another one now.
    """
    copy = shutil.copytree(folder, tmp_path / "history")
    limits(1, 0)
    expected = found(spark, folder, works["lags"])
    copies = in_order.copies_of(spark, str(copy))
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: found(spark, str(copy), works["lags"]), range(3))) == [expected] * 3
    (first,) = copies._n_rows
    shutil.rmtree(Path(first, "log_offsets"))
    assert found(spark, str(copy), works["lags"]) == expected
    (second,) = copies._n_rows
    assert [Path(each).exists() for each in (first, second)] == [False, True]
    files = Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet")
    for file in sorted(files)[:1]:
        pq.write_table(pq.ParquetFile(file).read()[1:], file)
    assert len(found(spark, str(copy), works["lags"])) == len(expected) - 1
    assert len(copies._n_rows) == 2


def test_copies_that_can_not_be_written_are_one_sentence(spark, folder, works, limits, register, tmp_path):
    copy, gone = shutil.copytree(folder, tmp_path / "history"), tmp_path / "gone"
    limits()
    register(copy, Copies(str(gone)))
    why = r"^6 observations can't be copied to .*/gone \(spark.local.dir\): "
    with pytest.raises(HistoryError, match=rf"{why}No such file"):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)
    gone.mkdir()
    register(copy, Copies(str(gone), lambda rows, table, target, n_files: in_order.save(rows, "file:///proc/0")))
    with pytest.raises(HistoryError, match=rf"{why}.*/proc/0"):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)
    assert list(gone.iterdir()) == []


def test_snapshots_that_expire_while_files_are_listed_are_missed(spark, folder, works, monkeypatch, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "history")
    listed = Reading.observations

    def observations(self, since=None):
        rows = listed(self, since)
        for table in ("snapshots", "committed_offsets", "log_offsets", "read_timings"):
            shutil.rmtree(copy / table / "date=2026-11-23")
        return rows

    monkeypatch.setattr(Reading, "observations", observations)
    with pytest.raises(
        HistoryError, match=r"history can't be read: 6 snapshots were deleted meanwhile, .* Read it again$"
    ):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)


def test_an_empty_file_is_an_error_in_copies_too(spark, folder, works, limits, tmp_path):
    """Spark passes over it."""
    copy = shutil.copytree(folder, tmp_path / "history")
    file = sorted(Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet"))[0]
    file.write_bytes(b"")
    limits()
    with pytest.raises(HistoryError, match=f"^{re.escape(str(file))} can't be read: "):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)


def test_rows_that_go_while_observations_are_copied_are_missed(spark, folder, works, limits, register, tmp_path):
    def save(rows: DataFrame, table: tables.Table, target: str, n_files: int) -> None:
        in_order.save_in_order(rows.limit(5), table, target, n_files)

    copy = shutil.copytree(folder, tmp_path / "history")
    limits()
    register(copy, Copies(str(tmp_path), save))
    came = r"^6 observations can't be copied to .*: 5 of 42 rows of committed_offsets were written$"
    with pytest.raises(HistoryError, match=came):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)


def test_no_group_has_no_rows_and_all_columns(spark, folder, works):
    rows = kit.collect(History(spark, folder).by_groups(works["verdicts"], SINCE, []))
    assert rows.is_empty()
    assert rows.columns == [
        "group_id", "store", "topic", "partition", "at_ms", "status", "is_alarm", "since_ms", "lag",
    ]  # fmt: skip


def test_one_observation_of_all_is_none_before_since(spark, folder, works):
    later = History(spark, folder).by_groups(works["lags"], START + timedelta(minutes=139))
    assert kit.collect(later)["at_ms"].unique().to_list() == [round(START.timestamp() * 1000) + 140 * 60_000]


def test_a_file_that_can_not_be_read_is_named(spark, folder, works, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "history")
    file = sorted(Path(copy, "days", "committed_offsets").rglob("*.parquet"))[0]
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(PySparkException) as raised:
        kit.collect(History(spark, str(copy)).by_groups(works["lags"], SINCE))
    assert f"{file} can't be read: " in cause(raised.value)


def test_files_of_one_folder_may_differ_in_columns_and_endings(spark, folder, works, tmp_path):
    """Two rows in a file of their own, which lacks a column that may be null."""
    copy = shutil.copytree(folder, tmp_path / "history")
    file = sorted(Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet"))[0]
    rows = pq.ParquetFile(file).read()
    pq.write_table(rows[2:], file)
    pq.write_table(rows[:2].drop_columns(["committed_at"]), file.with_name("other"))
    assert found(spark, str(copy), works["verdicts"]) == found(spark, folder, works["verdicts"])
    file.with_name("sub").mkdir()
    with pytest.raises(HistoryError, match=r"sub does not belong to a history\. Move it to another folder"):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)


def test_a_file_of_many_snapshots_has_to_name_them(spark, folder, works, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "history")
    for file in Path(copy, "days", "committed_offsets").rglob("*.parquet"):
        pq.write_table(pq.ParquetFile(file).read().drop_columns(["snapshot_id"]), file)
    with pytest.raises(PySparkException) as raised:
        kit.collect(History(spark, str(copy)).by_groups(works["lags"], SINCE))
    told = f"{file} can't be read: it has no column snapshot_id, so another program than offramp wrote it"
    assert cause(raised.value) == told
    with pytest.raises(HistoryError, match="has rows without snapshot_id, which committed_offsets always has"):
        History(spark, str(copy)).check(tables.COMMITTED_OFFSETS)


@pytest.mark.parametrize("n_offsets", [1, 10**9])
def test_a_row_without_a_group_is_refused(spark, folder, works, tmp_path, n_offsets, limits):
    """Without a group it would be lost; a range without a name would have all groups once more."""
    copy = shutil.copytree(folder, tmp_path / "history")
    limits(n_offsets, 10**9)
    for file in Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        nobody = pa.array([None, *rows["group_id"].to_pylist()[1:]], pa.string())
        pq.write_table(rows.set_column(rows.schema.get_field_index("group_id"), "group_id", nobody), file)
    with pytest.raises((HistoryError, PySparkException)) as raised:
        kit.collect(History(spark, str(copy)).by_groups(works["lags"], SINCE))
    assert "has rows without group_id, which committed_offsets always has" in str(raised.value)


def test_a_file_is_refused_as_a_folder(spark, folder, works, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "history")
    look = sorted(Path(copy, "log_offsets", "date=2026-11-23").iterdir())[0]
    shutil.rmtree(look)
    look.write_text("a file")
    with pytest.raises(HistoryError, match=f"^{re.escape(str(look))} can't be read: Not a directory$"):
        History(spark, str(copy)).by_groups(works["lags"], SINCE)


def test_the_folders_name_reports_the_snapshot(spark, folder, works, tmp_path):
    """Whatever a column says, which Spark passes over, too."""
    copy = shutil.copytree(folder, tmp_path / "history")
    for file in Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        pq.write_table(rows.append_column("snapshot_id", pa.array(["other"] * len(rows))), file)
    assert found(spark, str(copy), works["lags"]) == found(spark, folder, works["lags"])


def test_a_time_zone_that_polars_does_not_know_is_one_sentence(spark, folder, works, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "history")
    for file in Path(copy, "committed_offsets", "date=2026-11-23").rglob("*.parquet"):
        rows = pq.ParquetFile(file).read()
        at = rows["committed_at"].cast(pa.timestamp("us", "+05:45"))
        pq.write_table(rows.set_column(rows.schema.get_field_index("committed_at"), "committed_at", at), file)
    with pytest.raises(HistoryError, match=r"^/.* can't be read: .*\+05:45"):
        History(spark, str(copy)).check(tables.COMMITTED_OFFSETS)


def test_numbers_lists_and_blanks_are_no_trouble(spark, folder):
    def work(load: Any) -> pl.DataFrame:
        rows = load(tables.COMMITTED_OFFSETS, "group_id", "partition", "topic").filter(pl.col("group_id") == "steady")
        rows = rows.with_columns(pl.col("topic").cast(pl.Categorical)).sort("partition")
        return rows.group_by("group_id", "topic").agg(
            pl.len().alias("n rows"), pl.col("topic").unique().alias("topics")
        )

    (row,) = kit.collect(History(spark, folder).by_groups(work, SINCE)).to_dicts()
    assert row == {"group_id": "steady", "topic": "t", "n rows": 31, "topics": ["t"]}
    with pytest.raises(InputError, match=r"work gives took as duration.*, which Spark doesn't have. Cast it"):
        History(spark, folder).by_groups(lambda load: pl.DataFrame({"took": [timedelta(1)]}))


@pytest.mark.parametrize("group_ids", ["dead", ["dead", None], [7]])
def test_groups_that_are_no_list_of_names_are_refused(spark, folder, works, group_ids):
    """Each letter of a name would be a group's, and of those there are no rows."""
    with pytest.raises(InputError, match=r"group_ids must be a list of group names; it is "):
        History(spark, folder).by_groups(works["lags"], SINCE, group_ids)


def test_groups_may_be_named_in_any_order_and_twice(spark, folder, works):
    some = (each for each in [*SOME, "dead"])
    assert found(spark, folder, works["lags"], group_ids=some) == found(spark, folder, works["lags"], group_ids=SOME)
    nobody = [f"nobody-{number}" for number in range(25)]
    assert found(spark, folder, works["lags"], group_ids=nobody) == []


def test_a_column_that_a_table_does_not_have_is_refused(spark, folder):
    with pytest.raises(InputError, match="committed_offsets has no nope; it has snapshot_id, "):
        History(spark, folder).by_groups(lambda load: load(tables.COMMITTED_OFFSETS, "nope"))


@pytest.mark.parametrize("is_local", [True, False])
def test_a_table_that_is_not_delivered_is_refused(spark, folder, is_local):
    """No rows would resemble no members."""
    kept = History(spark, folder) if is_local else elsewhere(History(spark, folder))
    with pytest.raises(InputError, match="loads no rows of members, only of committed_offsets, log_offsets"):
        kept.by_groups(lambda load: load(tables.MEMBERS, "group_id"))


def test_an_error_of_the_work_is_reported(spark, folder):
    def work(load: Any) -> pl.DataFrame:
        rows = load(tables.COMMITTED_OFFSETS, "group_id")
        return rows.select("group_id", n=1 // (0 if len(rows) else 1))

    with pytest.raises(PySparkException, match="ZeroDivisionError"):
        kit.collect(History(spark, folder).by_groups(work, SINCE))
