"""Files of offsets as people hand them on: saved by a spreadsheet, with a blank line, or of Kafka's own command."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kit.errors import InputError
from kit.moves.offsets.files import load_offsets, save_offsets
from kit.moves.offsets.kafka_tool import load_tool_file
from kit.moves.offsets.moves import Stored

NOW = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
OFFSETS = {("shop", "orders", 0): Stored(5, "m", 3), ("shop, too", "orders", 1): Stored(7)}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "offsets.csv"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW)
    return path


def saved_by_a_spreadsheet(path: Path, delimiter: str) -> bytes:
    """Return what a spreadsheet writes: cells of all lines, padded to the widest line, with CRLF and a byte order
    mark.
    """
    rows = list(csv.reader(io.StringIO(path.read_text(), newline="")))
    width = max(map(len, rows))
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter).writerows([*(row + [""] * (width - len(row)) for row in rows), [""] * width])
    return text.getvalue().encode("utf-8-sig")


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_a_file_that_a_spreadsheet_saved_again_is_read(saved, delimiter):
    saved.write_bytes(saved_by_a_spreadsheet(saved, delimiter))
    found = load_offsets(saved, "cluster")
    assert (found.offsets, found.cluster_id, found.store) == (OFFSETS, "cluster", "kafka")
    assert found.exported_at == NOW.isoformat()


def test_a_column_that_is_there_twice_is_refused(saved):
    header, columns, *rows = saved.read_text().splitlines()
    doubled = [header, f'{columns},"offset"', *(f"{row},9" for row in rows)]
    saved.write_text("\n".join(doubled) + "\n")
    with pytest.raises(InputError, match="line 2: the column 'offset' is there twice"):
        load_offsets(saved, "cluster", edited=True)


def test_a_blank_last_line_is_no_row(tmp_path):
    path = tmp_path / "offsets.jsonl"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + b"\n \n")
    assert load_offsets(path, "cluster").offsets == OFFSETS


def test_no_file_is_replaced(saved):
    before = saved.read_bytes()
    with pytest.raises(InputError, match="exists and is not overwritten"):
        save_offsets(saved, "cluster", "kafka", {}, NOW)
    assert saved.read_bytes() == before


def test_messages_name_the_flags(saved):
    saved.write_text(saved.read_text().replace(",5,", ",6,"))
    with pytest.raises(InputError, match="--edited"):
        load_offsets(saved, "cluster")


def test_the_csv_of_kafkas_command_is_written(tmp_path):
    path = tmp_path / "kafka.csv"
    save_offsets(path, "cluster", "kafka", OFFSETS, NOW, "kafka")
    assert path.read_text() == '"shop","orders",0,5\n"shop, too","orders",1,7\n'
    assert load_tool_file(path, ()) == {key: Stored(stored.offset) for key, stored in OFFSETS.items()}
    with pytest.raises(InputError, match=r"ends in \.csv"):
        save_offsets(tmp_path / "kafka.jsonl", "cluster", "kafka", OFFSETS, NOW, "kafka")
