"""Snapshots of other versions, damaged files, copied days: nulls, or one sentence that names the file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kit.errors import HistoryError
from kit.history import History, Upkeep, parquet
from kit.tables import schema as tables
from kit.tables.groups import CommittedOffset
from tests.generators import health_history
from tests.generators.health_history import START
from tests.limits import lower

TABLE = tables.COMMITTED_OFFSETS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    health_history.write(tmp_path / "history", 6, {("g", "kafka"): lambda minute: minute})
    return tmp_path / "history"


def second_file(folder: Path) -> Path:
    return sorted((folder / TABLE.name).rglob("part.parquet"))[1]


def rewrite(file: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.ParquetFile(file).read()), file)


def as_type(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.set_column(rows.schema.get_field_index(name), name, rows[name].cast(kind))


def test_a_column_that_is_missing_is_null_and_one_that_is_not_known_is_left_out(spark: SparkSession, folder):
    rewrite(second_file(folder), lambda rows: rows.drop_columns(["metadata", "version"]))
    first = sorted((folder / TABLE.name).rglob("part.parquet"))[0]
    rewrite(first, lambda rows: rows.append_column("of_tomorrow", pa.array(["x"] * len(rows))))
    rewrite(first, as_type("committed_offset", pa.int32()))  # a narrower one fits
    history = History(spark, str(folder))
    history.check(TABLE, tables.LOG_OFFSETS)
    rows = history.load(TABLE).orderBy("observed_at").collect()
    assert [row.committed_offset for row in rows] == [0, 2, 4, 6]
    assert {row.metadata for row in rows} == {None}
    assert "of_tomorrow" not in rows[0].asDict()
    list(Upkeep(spark, str(folder), lambda: START.replace(day=25)).compact())
    history.check(TABLE)
    assert [row.committed_offset for row in history.load(TABLE).orderBy("observed_at").collect()] == [0, 2, 4, 6]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda rows: rows.drop_columns(["store"]),
            "part.parquet has rows without store, which committed_offsets always",
        ),
        (
            as_type("committed_offset", pa.string()),
            "holds committed_offset as String where Int64 is expected: another",
        ),
    ],
)
def test_a_file_that_can_not_be_read_is_refused_by_name(spark: SparkSession, folder, change, said):
    file = second_file(folder)
    rewrite(file, change)
    with pytest.raises(HistoryError) as raised:
        History(spark, str(folder)).check(TABLE)
    assert said in str(raised.value)
    assert f"{file.parent.name}/{file.name}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_damaged_file_is_one_sentence(spark: SparkSession, folder):
    second_file(folder).write_bytes(b"nonsense" * 9)
    with pytest.raises(HistoryError, match=r"part\.parquet can't be read: parquet: File out of spec") as raised:
        History(spark, str(folder)).check(TABLE)
    assert "\n" not in str(raised.value)


def test_a_large_file_is_checked_a_part_at_a_time_and_small_ones_together(tmp_path, monkeypatch):
    """A day of 10,000 groups, checked as a whole, took more than 13 GB."""
    in_calls = []

    def collect_all(scans: Iterable[pl.LazyFrame]) -> list[pl.DataFrame]:
        found = [scan.collect() for scan in scans]
        in_calls.append(sum(each["_rows"][0] for each in found if "_rows" in each.columns))
        return found

    lower(monkeypatch, parquet, _ROWS=10)
    monkeypatch.setattr(pl, "collect_all", collect_all)
    rows = TABLE.stamp(TABLE.from_rows([CommittedOffset("g", "kafka", "t", 0, 7, *[None] * 5)] * 35), "s", START)
    files = [str(tmp_path / f"{n_rows}.parquet") for n_rows in (4, 4, 35)]
    for file, n_rows in zip(files, (4, 4, 35)):
        pq.write_table(rows.slice(0, n_rows), file)
    parquet.check([*files[:1], *files], TABLE)
    assert [n_rows for n_rows in in_calls if n_rows] == [12, 10, 10, 10, 5]
    topics = pa.array(["t"] * 33 + [None, "t"])
    pq.write_table(rows.set_column(rows.schema.get_field_index("topic"), "topic", topics), files[2])
    with pytest.raises(HistoryError, match=r"/35\.parquet has rows without topic, which committed_offsets always"):
        parquet.check(files, TABLE)


def test_a_copy_of_a_day_is_not_counted_twice(spark: SparkSession, folder):
    day = second_file(folder).parents[1]
    shutil.copytree(day, day.with_name(f"{day.name} (copy)"))
    with pytest.raises(
        HistoryError,
        match=r"date=2026-11-22 \(copy\) does not belong to a history. Move it to "
        "another folder$",
    ):
        History(spark, str(folder)).load(TABLE)
