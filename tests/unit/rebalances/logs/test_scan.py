"""Blocks of files → lines with their numbers, whatever the borders."""

from __future__ import annotations

import bz2
import gzip
import tempfile
import zlib
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given, settings, strategies as st

from kit.rebalances.logs import scan, wordings
from tests.limits import lower

MARKED, OTHER = "generation %d of a group", "nothing %d"
TEXTS = st.lists(
    st.tuples(st.sampled_from([MARKED, OTHER, ""]), st.sampled_from(["\n", "\r\n"]), st.integers(0, 60)), max_size=30
)


def sift(path: Path, block: int, chunk: int) -> pl.DataFrame:
    """All rows, in the file's order, read with blocks and chunks of so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        lower(patch, scan, BLOCK=block, _CHUNK=chunk, LONGEST=chunk)
        blocks = scan.blocks_of(str(path), path.stat().st_size)
        return pl.concat([pl.DataFrame(rows) for each in blocks for rows in scan._scanned(each, few=0)]).sort(
            "block", "number"
        )


def numbered(rows: pl.DataFrame) -> list[tuple[int, str]]:
    """Candidates, with their line numbers in the file from 0."""
    blocks = rows.filter(pl.col("n_lines").is_not_null()).select("block", "n_lines").sort("block")
    before = blocks.with_columns(above=pl.col("n_lines").cum_sum() - pl.col("n_lines")).select("block", "above")
    found = rows.filter(pl.col("value").is_not_null()).join(before, on="block", maintain_order="left")
    return found.select(pl.col("number") + pl.col("above"), "value").rows()


@settings(max_examples=60, deadline=None)
@given(TEXTS, st.booleans(), st.integers(5, 200), st.integers(200, 400))
@example([(MARKED, "\n", 0)] * 3, True, len("generation 0 of a group\n"), 300)
def test_no_border_hides_a_line_or_reports_it_twice(parts, is_ended, block, chunk):
    lines = [(text % number if text else "") + "·" * length for number, (text, _, length) in enumerate(parts)]
    text = "".join(line + end for line, (_, end, _) in zip(lines, parts))
    text = text if is_ended else text.rstrip("\r\n")
    wanted = text.split("\n")[: text.count("\n") + (not text.endswith("\n") and text != "")]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a b%20.log"
        path.write_text(text, encoding="utf-8", newline="")
        rows = sift(path, block, chunk)
    assert numbered(rows) == [(n, line.rstrip("\r")) for n, line in enumerate(wanted) if "group" in line]
    assert (rows["n_lines"].sum(), rows["n_cut"].sum()) == (len(wanted), 0)
    assert set(rows["file"]) == {str(path)}


@pytest.mark.parametrize(("suffix", "opened"), [("gz", gzip.open), ("bz2", bz2.open)])
def test_compressed_files_are_one_block(tmp_path, suffix, opened):
    path = tmp_path / f"a.log.{suffix}"
    for _ in range(2):  # rotation may append
        with opened(path, "ab") as log:
            log.write(b"generation 1\nno\n" * 100)
    rows = sift(path, 64, 128)
    assert [number for number, _ in numbered(rows)] == list(range(0, 400, 2))
    assert (rows["n_lines"].sum(), rows["block"].n_unique()) == (400, 1)


@pytest.mark.parametrize("chunk", range(1 << 12, (1 << 12) + 3))
def test_the_part_before_the_damage_is_read(tmp_path, chunk):
    path = tmp_path / "a.log.gz"
    whole = gzip.compress(b"".join(b"generation %d\n" % n for n in range(10_000)))
    path.write_bytes(whole[: len(whole) // 2])
    rows = sift(path, 1 << 20, chunk)
    found = numbered(rows)
    readable = zlib.decompressobj(wbits=31).decompress(whole[: len(whole) // 2]).count(b"\n")
    assert len(found) - readable in (0, 1)
    assert found[:-1] == [(n, f"generation {n}") for n in range(len(found) - 1)]  # the last one may be torn
    assert rows["damage"].drop_nulls().to_list() == [
        "Compressed file ended before the end-of-stream marker was reached"
    ]


@pytest.mark.parametrize("suffix", ["log", "log.gz"])
def test_a_line_without_end_is_not_held_in_memory(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    text = b"generation 1\n" + b"group " * 100_000 + b"\ngeneration 2\n"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    rows = sift(path, 1 << 14, 1 << 12)
    assert [(number, value[:12]) for number, value in numbered(rows)] == [
        (0, "generation 1"),
        (1, "group group "),
        (2, "generation 2"),
    ]
    assert rows["value"].str.len_bytes().max() <= 3 * (1 << 12)
    assert rows["n_cut"].sum() == 1


@pytest.mark.parametrize(
    ("few", "held", "are_few"),
    [(100, 1000, True), (10, 1000, False), (100, 10, False)],
    ids=["few", "many", "pieces"],
)
def test_all_candidates_of_a_block_are_few_or_none(tmp_path, monkeypatch, few, held, are_few):
    path = tmp_path / "a.log"
    path.write_bytes(b"generation 1\nno\n" * 3)
    lower(monkeypatch, scan, _CHUNK=16, _HELD=held)
    rows = pl.concat([pl.DataFrame(rows) for rows in scan._scanned(scan.Block(str(path), 0, path.stat().st_size), few)])
    assert rows.select("value", "is_few", "n_candidates").rows() == [("generation 1", are_few, None)] * 3 + [
        (None, None, 3)
    ]


def test_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "a.log"
    path.write_bytes(b"generation \xff\xfe of\n\0\0\n")
    rows = sift(path, 1 << 20, 1 << 20)
    assert numbered(rows) == [(0, "generation �� of")]
    assert rows["has_nul"].drop_nulls().to_list() == [True]


def test_a_file_that_may_not_be_read_is_no_damaged_one(tmp_path):
    (gone,) = scan._scanned(scan.Block(str(tmp_path / "gone.log"), 0, 10), few=0)
    assert gone["damage"].to_pylist() == [None]
    assert "No such file" in gone["refusal"][0].as_py()


@pytest.mark.parametrize("source", wordings.BY_SOURCE)
def test_no_wording_of_an_event_needs_the_name_of_its_class(tmp_path, source):
    told = [each.template.replace("{}", "x") for each in wordings.BY_SOURCE[source] if each.kind != wordings.CONTEXT]
    path = tmp_path / "a.log"
    path.write_text("".join(f"{text}\nnothing\n" for text in told))
    rows = sift(path, 1 << 20, 1 << 20)
    assert [value for _, value in numbered(rows)] == [text.rstrip("\n") for text in told]
    assert rows["n_candidates"].sum() == len(told)
