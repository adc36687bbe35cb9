"""Spark and polars read the same records from the same files, and report the same broken lines."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from kit.errors import HistoryError, PartialRead
from kit.proof.consumption import (
    load_consumption,
    load_production,
    spark_consumption,
    spark_production,
    verify_loaded,
)
from kit.tables import schema as tables


def line(number: int, consumer: str) -> str:
    record = {"at_ms": 1000 + number, "consumer": consumer, "topic": "t", "partition": 0, "offset": number}
    return json.dumps(record) + "\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.jsonl").write_text("".join(line(number, "a") for number in range(100)))
    (tmp_path / "b.jsonl").write_text(line(100, "b") + "\n" + line(101, "b") + line(102, "b")[:30])
    (tmp_path / "other.jsonl").write_text(line(0, "other"))
    return tmp_path


def test_records_and_unfinished_lines(spark: SparkSession, folder: Path) -> None:
    ours, theirs = load_consumption(folder, "g", ["a", "b"]), spark_consumption(spark, str(folder), "g", ["a", "b"])
    found = pl.DataFrame(theirs.records.toArrow())
    assert found.columns == tables.CONSUMPTION.schema.names
    assert found.schema == ours.records.schema
    assert found.sort("offset").equals(ours.records.sort("offset"))
    assert len(found) == 102
    assert verify_loaded(theirs) == verify_loaded(ours) == "102 records were read; 1 line is unfinished."
    assert pl.DataFrame(theirs.unread_lines.toArrow()).rows() == ours.unread_lines.rows()


@pytest.mark.parametrize(
    "broken", ["nonsense}\n", '{"at_ms": 1, "consumer": "a"}\n', line(1, "a")[:15] + line(2, "a"), "[1]}\n"]
)
def test_malformed_lines(spark: SparkSession, folder: Path, broken: str) -> None:
    with (folder / "a.jsonl").open("a") as lines:
        lines.write(broken)
    for loaded in (load_consumption(folder, "g"), spark_consumption(spark, str(folder), "g")):
        with pytest.raises(PartialRead, match=r"1 line could not be read.*a\.jsonl"):
            verify_loaded(loaded)


def test_two_records_in_a_line_are_never_taken_for_one(spark: SparkSession, folder: Path) -> None:
    with (folder / "a.jsonl").open("a") as lines:
        lines.write(line(200, "a").rstrip() + line(201, "a"))
    with pytest.raises(PartialRead, match="1 line could not be read"):
        verify_loaded(spark_consumption(spark, str(folder), "g"))


def test_production_and_a_missing_folder(spark: SparkSession, tmp_path: Path) -> None:
    record = {"at_ms": 5, "producer": "p", "topic": "t", "partition": 1, "offset": 7, "number": 9}
    (tmp_path / "p.jsonl").write_text(json.dumps(record) + "\n")
    found = pl.DataFrame(spark_production(spark, str(tmp_path)).records.toArrow())
    assert found.equals(load_production(tmp_path).records)
    with pytest.raises(HistoryError, match="that Spark can read"):
        spark_production(spark, str(tmp_path / "none"))
