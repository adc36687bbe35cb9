"""Consumption and production files: read whole, while they are written, and with lines that hold nothing."""

from __future__ import annotations

import json

import pytest

from kit.errors import HistoryError, PartialRead
from kit.proof.consumption import load_consumption, load_production, verify_loaded
from kit.tables import schema as tables


def line(number: int, consumer: str = "a", **fields) -> str:
    record = {"at_ms": 1000 + number, "consumer": consumer, "topic": "t", "partition": 0, "offset": number, **fields}
    return json.dumps(record) + "\n"


def test_the_members_of_a_group(tmp_path):
    (tmp_path / "a.jsonl").write_text(line(0) + line(1))
    (tmp_path / "b.jsonl").write_text(line(2, "b"))
    (tmp_path / "other.jsonl").write_text(line(3, "other"))
    (tmp_path / "notes.txt").write_text("not read")
    loaded = load_consumption(tmp_path, "g", ["a", "b"])
    assert loaded.records.schema.names() == tables.CONSUMPTION.schema.names
    assert loaded.records["offset"].to_list() == [0, 1, 2]
    assert set(loaded.records["group_id"]) == {"g"}
    assert len(load_consumption(tmp_path, "g").records) == 4
    assert verify_loaded(loaded) == "3 records were read; 0 lines are unfinished."


def test_production(tmp_path):
    record = {"at_ms": 5, "producer": "p", "topic": "t", "partition": 1, "offset": 7, "number": 9}
    (tmp_path / "p.jsonl").write_text(json.dumps(record) + "\n")
    assert load_production(tmp_path).records.rows(named=True) == [
        {"topic": "t", "partition": 1, "producer": "p", "at_ms": 5, "offset": 7, "number": 9}
    ]


@pytest.mark.parametrize("written", [1, 20, len(line(1)) - 2])
def test_a_line_that_is_being_written_is_reported_and_breaks_nothing(tmp_path, written):
    (tmp_path / "a.jsonl").write_text(line(0) + line(1)[:written])
    loaded = load_consumption(tmp_path, "g")
    assert loaded.records["offset"].to_list() == [0]
    assert loaded.unread_lines.rows() == [("a.jsonl", line(1)[:written], "unfinished")]
    assert verify_loaded(loaded) == "1 record was read; 1 line is unfinished."


def test_a_whole_record_without_its_line_end_counts(tmp_path):
    (tmp_path / "a.jsonl").write_text(line(0) + line(1).rstrip())
    loaded = load_consumption(tmp_path, "g")
    assert loaded.records["offset"].to_list() == [0, 1]
    assert loaded.unread_lines.is_empty()


@pytest.mark.parametrize(
    "broken",
    [
        "nonsense}\n",
        line(1, offset="1"),
        line(1, at_ms=1.5),
        line(1, partition=True),
        line(1, partition=2**31),
        line(1, topic=None),
        '{"at_ms": 1}\n',
        "[1, 2]}\n",
        line(1)[:15] + line(2),
        line(1).rstrip() + line(2),
    ],
)
def test_a_malformed_line_is_reported_with_its_file(tmp_path, broken):
    (tmp_path / "a.jsonl").write_text(line(0) + broken + "\n" + line(9))
    loaded = load_consumption(tmp_path, "g")
    assert loaded.records["offset"].to_list() == [0, 9]
    assert loaded.unread_lines["reason"].to_list() == ["malformed"]
    with pytest.raises(PartialRead, match=r"1 line could not be read.*a\.jsonl"):
        verify_loaded(loaded)


def test_an_empty_folder_is_empty_and_a_missing_one_is_reported(tmp_path):
    (tmp_path / "a.jsonl").touch()
    loaded = load_consumption(tmp_path, "g")
    assert loaded.records.is_empty()
    assert loaded.records.schema.names() == tables.CONSUMPTION.schema.names
    with pytest.raises(HistoryError, match="no folder"):
        load_consumption(tmp_path / "none", "g")
