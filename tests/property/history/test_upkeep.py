"""A compacted history gives back what was appended: whatever ends it, whoever else is at it, whatever comes late."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter, SparkSession
from typer.testing import CliRunner

from kit.cli.main import app
from kit.errors import HistoryError, InputError
from kit.history import History, Upkeep
from kit.history.store import Reading
from kit.tables import schema as tables
from tests.generators.small_snapshots import FIRST, KEPT, N_ROWS, SECOND, TODAY, small_snapshot
from tests.property.history.faults import full, writing
from tests.soak import soak_only

pytestmark = pytest.mark.usefixtures("few_tables")


class KilledError(BaseException):
    """The process ends here: nothing catches it, nothing is put right."""


@pytest.fixture(scope="module")
def appended(spark: SparkSession, few_tables: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three snapshots on a day, one on the next, one today, and one of the first day that was never finished."""
    folder = tmp_path_factory.mktemp("appended") / "history"
    history = History(spark, str(folder))
    for number, at in enumerate((FIRST, FIRST, FIRST, SECOND, TODAY)):
        history.append(small_snapshot(spark, at, number))
    unfinished = small_snapshot(spark, FIRST, 9)
    history.append(unfinished)
    shutil.rmtree(folder / "snapshots" / "date=2026-11-20" / f"snapshot_id={unfinished.snapshot_id}")
    return folder


@pytest.fixture
def folder(appended: Path, tmp_path: Path) -> str:
    copy = tmp_path / "history"
    shutil.copytree(appended, copy)
    return str(copy)


def _upkeep(spark: SparkSession, folder: str, later: timedelta = timedelta(), kind: type[Upkeep] = Upkeep) -> Upkeep:
    return kind(spark, folder, lambda: TODAY + later)


def _found(spark: SparkSession, folder: str) -> dict[str, Counter[Any]]:
    history = History(spark, folder)
    return {
        table.name: Counter(map(str, history.load(table).collect()))
        for table in (tables.SNAPSHOTS, tables.GROUPS, tables.COMMITTED_OFFSETS)
    }


def _n_files(folder: str) -> int:
    return sum(1 for _ in Path(folder).rglob("*.parquet"))


@pytest.fixture(scope="module")
def expected(spark: SparkSession, appended: Path) -> dict[str, Counter[Any]]:
    found = _found(spark, str(appended))
    assert found["groups"].total() == 5 * N_ROWS
    return found


def test_each_day_but_today_is_put_together_and_every_table_stays_the_same(spark, folder, appended):
    before = History(spark, str(appended))
    done = list(_upkeep(spark, folder).compact())
    assert [(each.date, each.n_snapshots) for each in done] == [(FIRST.date(), 3), (SECOND.date(), 1)]
    assert [each.after.n_files for each in done] == [3, 3]  # read_errors has no rows, and no file
    assert [each.before.n_files for each in done] == [3 * 3 + 2, 3]  # with two of the unfinished snapshot
    after = History(spark, folder)
    for table in KEPT:
        assert Counter(map(str, after.load(table).collect())) == Counter(map(str, before.load(table).collect()))
    plain = spark.read.parquet(f"{folder}/days/committed_offsets")
    assert plain.count() == 4 * N_ROWS


def test_replaced_files_are_deleted_an_hour_later_and_no_sooner(spark, folder, expected):
    list(_upkeep(spark, folder).compact())
    n_files = _n_files(folder)
    assert list(_upkeep(spark, folder, timedelta(minutes=59)).compact()) == []
    assert _n_files(folder) == n_files
    list(_upkeep(spark, folder, timedelta(minutes=61)).compact())
    assert _n_files(folder) == n_files - 4 * 3
    assert not list(Path(folder, "groups").glob("date=2026-11-21/snapshot_id=*"))
    assert _found(spark, folder) == expected


@soak_only
def test_a_snapshot_that_comes_late_is_loaded_and_compacted_the_next_time(spark, folder):
    list(_upkeep(spark, folder).compact())
    late = small_snapshot(spark, FIRST, 7)
    History(spark, folder).append(late)
    assert History(spark, folder).load(tables.GROUPS).count() == 6 * N_ROWS
    (done,) = _upkeep(spark, folder, timedelta(hours=2)).compact()
    assert (done.date, done.n_snapshots) == (FIRST.date(), 1)
    list(_upkeep(spark, folder, timedelta(hours=4)).compact())
    assert History(spark, folder).load(tables.GROUPS).count() == 6 * N_ROWS


def test_days_list_their_content(spark, folder):
    upkeep = _upkeep(spark, folder)
    next(upkeep.compact())
    days = upkeep.days()
    assert days.select("date", "n_snapshots", "n_compacted").rows() == [
        (FIRST.date(), 3, 3), (SECOND.date(), 1, 0), (TODAY.date(), 1, 0),
    ]  # fmt: skip
    on_disk = sum(path.stat().st_size for path in Path(folder).rglob("date=*/**/*.parquet"))
    assert days["n_bytes"].sum() == on_disk


@pytest.mark.usefixtures("spark_of_verbs")
def test_the_verbs(spark, folder, tmp_path, monkeypatch):
    (tmp_path / "offramp.toml").write_text('[clusters.demo]\nbootstrap_servers = "127.0.0.1:1"\n')
    monkeypatch.setenv("OFFRAMP_PROFILE_FILE", str(tmp_path / "offramp.toml"))
    Path(folder, "groups", "date=backup").mkdir()  # somebody's own

    def told(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["history", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert "3 days (UTC), 5 snapshots: 17 files of " in told("info", folder)
    assert re.search(
        r"2026-11-20  3 snapshots: 11 files of 3\d\.\d kB are 3 files of \d+(\.\d+)? kB now", told("compact", folder)
    )
    assert "No day to compact" in told("compact", folder)
    assert json.loads(told("info", folder, "--json"))[0]["n_compacted"] == 3
    assert "days before" in told("expire", folder, "--days", "1")
    assert _found(spark, folder)["snapshots"].total() == 5
    assert "are deleted" in told("expire", folder, "--days", "1", "--delete")
    assert "Nothing is older" in told("expire", folder, "--days", "1")


def _ending(at: int, *, is_done: bool) -> Callable[..., Any]:
    """Return how Spark writes while the process ends at write ``at``, before or after it was done."""
    write, numbers = DataFrameWriter.parquet, count(1)

    def counted(*arguments: Any, **named: Any) -> Any:
        number = next(numbers)
        if number == at and not is_done:
            raise KilledError
        result = write(*arguments, **named)
        if number == at:
            raise KilledError
        return result

    return counted


@soak_only
@pytest.mark.parametrize(("at", "is_done"), [(1, True), (3, False)])  # of three: read_errors has no rows
def test_ended_at_any_write_it_is_as_before_and_the_next_one_continues(spark, folder, expected, at, is_done):
    with writing(_ending(at, is_done=is_done)), pytest.raises(KilledError):
        list(_upkeep(spark, folder).compact())
    assert _found(spark, folder) == expected
    days_later = timedelta(days=2)
    list(_upkeep(spark, folder, days_later).compact())
    list(_upkeep(spark, folder, days_later + timedelta(hours=2)).compact())
    assert _found(spark, folder) == expected
    for table in ("groups", "committed_offsets"):  # Nothing of the part that was begun is left.
        assert len(list(Path(folder, "days", table).glob("date=2026-11-20/part=*"))) == 1


def test_a_reader_that_listed_the_files_before_reads_them_after(spark, folder):
    """Neither half of a read knows the part that is finished between them."""
    reading = Reading(Upkeep(spark, folder)._store)
    list(_upkeep(spark, folder).compact())
    assert reading.load(tables.COMMITTED_OFFSETS).count() == 6 * N_ROWS  # that of the unfinished snapshot, too


class Forgetful(Upkeep):
    def _write(self, table, day, part, wanted):
        return super()._write(table, day, part, wanted.limit(1) if table is tables.GROUPS else wanted)


def test_rows_that_were_not_written_are_noticed(spark, folder, expected):
    with pytest.raises(
        HistoryError, match=r"2026-11-20 was not compacted and is unchanged: groups has 9 rows, but 3 were written"
    ):
        list(_upkeep(spark, folder, kind=Forgetful).compact())
    assert _found(spark, folder) == expected


def test_a_full_disk_is_one_sentence(spark, folder, expected):
    why = r"2026-11-20 could not be compacted, .*: No space left on device$"
    with writing(full), pytest.raises(HistoryError, match=why):
        list(_upkeep(spark, folder).compact())
    assert _found(spark, folder) == expected


def test_impossible_requests_are_refused(spark, folder, tmp_path):
    with pytest.raises(InputError, match="2026-11-23 has not ended yet"):
        _upkeep(spark, folder).expire(date(2026, 11, 23))
    with pytest.raises(HistoryError, match="there is no history in"):
        Upkeep(spark, str(tmp_path / "nothing"))


@soak_only
def test_a_compaction_that_was_cut_off_as_it_became_whole_leaves_nothing(spark, folder, expected):
    list(_upkeep(spark, folder).compact())
    for file in Path(folder, "days/snapshots").rglob("*.parquet"):
        file.unlink()  # The folders of the parts are there; what lists them is not.
    list(_upkeep(spark, folder, timedelta(days=2)).compact())
    assert _found(spark, folder) == expected
    for table in ("snapshots", "groups"):
        assert len(list(Path(folder, "days", table).glob("date=2026-11-20/part=*"))) == 1


class ExpiredBefore(Upkeep):
    """Another process expires the day before this one reads what makes its part count."""

    def _check(self, *arguments):
        super()._check(*arguments)
        _upkeep(self._store.spark, self._store.folder).expire(TODAY.date())


class ExpiredMeanwhile(Upkeep):
    """Another process expires the day just before this one writes what makes its part count."""

    def _finish(self, day, part, begun_at, snapshots):
        read = self._store.spark.createDataFrame(snapshots.collect(), snapshots.schema)
        _upkeep(self._store.spark, self._store.folder).expire(TODAY.date())
        super()._finish(day, part, begun_at, read)


def test_a_day_that_expires_while_it_is_compacted_does_not_come_back(spark, folder):
    for kind in (ExpiredBefore, ExpiredMeanwhile):
        History(spark, folder).append(small_snapshot(spark, FIRST, 1))
        with pytest.raises(HistoryError, match="2026-11-20 was deleted while it was compacted"):
            list(_upkeep(spark, folder, kind=kind).compact())
        assert _found(spark, folder)["snapshots"].total() == 1  # today's


def test_a_snapshot_has_one_day_whatever_the_time_zone_of_the_session(spark, tmp_path):
    night = small_snapshot(spark, datetime(2026, 11, 21, 2, tzinfo=UTC), 1)
    for zone in ("America/New_York", "Pacific/Kiritimati", "UTC"):
        spark.conf.set("spark.sql.session.timeZone", zone)
        History(spark, str(tmp_path)).append(night)
    assert [path.name for path in (tmp_path / "groups").glob("date=*")] == ["date=2026-11-21"]


def test_a_foreign_or_damaged_file_is_one_sentence(spark, folder):
    days = sorted(Path(folder, "snapshots").glob("date=*"))
    own = days[0] / "old"
    own.mkdir()
    (own / "notes.txt").write_text("mine")
    with pytest.raises(
        HistoryError, match=r"/snapshots can't be read: date=2026-11-20/old does not belong to a history"
    ):
        _upkeep(spark, folder)
    shutil.rmtree(own)
    file = next(days[0].rglob("*.parquet"))
    file.write_bytes(b"PAR1")
    with pytest.raises(HistoryError, match=rf"/snapshots can't be read: [^\n]*{file.name}[^\n]*$"):
        _upkeep(spark, folder).days()
    shutil.rmtree(days[0])
    days[0].with_name("date=20261120").mkdir()  # a day that Python reads, and no history writes
    assert _upkeep(spark, folder).days()["date"].to_list()[1:] == [SECOND.date(), TODAY.date()]
    next(Path(folder, "offramp_history").rglob("*.parquet")).write_bytes(b"PAR1")
    with pytest.raises(HistoryError, match="/offramp_history can't be read: "):
        _upkeep(spark, folder)


@pytest.mark.parametrize(
    ("folder", "error", "why"),
    [
        ("", InputError, "'' can't be the folder of a history"),
        ("/", InputError, "'/' can't be the folder of a history"),
        ("lake[1]", InputError, r"lake\[1\] can't be the folder of a history, because Spark reads each of"),
        ("lake/*", InputError, r"lake/\* can't be the folder of a history, because Spark reads each of"),
        ("nosuch://x/y", HistoryError, 'can\'t be read: No FileSystem for scheme "nosuch"$'),
        ("file://x/y", HistoryError, "can't be read: Wrong FS: file://x/y/offramp_history, expected: file:///$"),
    ],
)
def test_a_folder_that_is_none(spark, folder, error, why):
    with pytest.raises(error, match=why):
        Upkeep(spark, folder)


@pytest.fixture(autouse=True)
def _as_before(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.catalog.clearCache()
