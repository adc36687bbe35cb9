"""One of Spark's tasks reports the same of lines wherever portions end; patterns without lookaround; zones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from polars.testing import assert_frame_equal

from kit.errors import InputError
from kit.rebalances.logs import batching, extract, layouts, scan, texts
from kit.tables import schema as tables
from tests.generators import log_texts
from tests.limits import lower

_LINES = pa.schema([("file", pa.string()), ("block", pa.int64()), ("number", pa.int64()), ("value", pa.string())])


def scanned(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines of all files in order, and how many are before each block."""
    blocks = [block for path in sorted(folder.iterdir()) for block in scan.blocks_of(str(path), path.stat().st_size)]
    rows = pl.concat([pl.DataFrame(batch) for block in blocks for batch in scan._scanned(block, few=0)])
    lines = rows.filter(pl.col("value").is_not_null()).sort("file", "block", "number")
    return lines.select(_LINES.names), lines.select("file", "block", n_before=pl.lit(0)).unique()


def told(lines: pl.DataFrame, before: pl.DataFrame, portion: int) -> pl.DataFrame:
    def batches() -> Iterator[pa.RecordBatch]:
        for each in lines.iter_slices(portion):
            yield from each.to_arrow().cast(_LINES).to_batches()

    with pytest.MonkeyPatch.context() as patch:
        lower(patch, batching, _ROWS=portion - 1)
        rows = pa.Table.from_batches(list(extract.ExtractEvents(before, None, None)(batches())))
    return pl.DataFrame(rows).with_columns(pl.col("layouts").list.sort())


@pytest.fixture(scope="module")
def lines(tmp_path_factory) -> tuple[pl.DataFrame, pl.DataFrame]:
    return scanned(log_texts.write(tmp_path_factory.mktemp("texts")))


@pytest.mark.parametrize("portion", [4, 31])
def test_it_does_not_matter_where_a_portion_ends(lines, portion):
    whole = told(*lines, 1_000_000)
    assert len(whole.filter(pl.col("kind").is_not_null())) > 80
    assert_frame_equal(told(*lines, portion), whole, check_row_order=False)


@pytest.mark.parametrize("portion", [1, 1_000_000])
def test_any_entry_may_prove_the_zone(tmp_path, portion):
    """Any entry of a file that shows something may do so; a file that doesn't has no account."""
    said = (
        "[2018-05-01 08:00:00,100] INFO Discovered coordinator k:9092 (id: 1 rack: null) for group g. (a.Coordinator)\n"
    )
    proof = "[2018-05-01 10:00:00,000] DEBUG A group of bytes, createdTimeMs=1525161600000, sendTimeMs=0 (a.Client)\n"
    (tmp_path / "both.log").write_text(said + proof)
    (tmp_path / "proof.log").write_text(proof)
    (row,) = told(*scanned(tmp_path), portion).filter(pl.col("n_events").is_not_null()).rows(named=True)
    assert (row["file"], row["n_events"]) == (str(tmp_path / "both.log"), 1)
    assert (row["least_step"], row["most_step"]) == (8, 8)


def rdkafka_list(pause: int) -> str:
    """A list of two partitions, with so many other lines between them."""
    head = "%7|1795264659.784|GRPASSIGNMENT|till#consumer-2| [thrd:main]: "
    other = f"{log_texts.NOISE.splitlines()[0]} of a group \n" * pause
    first, second = (f"{head} kiosk-orders [{number}] offset INVALID\n" for number in range(2))
    return f"{head}List with 2 partition(s):\n{first}{other}{second}"


@pytest.mark.parametrize("portion", [100, 1_000_000])
@pytest.mark.parametrize(("pause", "n_listed"), [(0, 2), (900, 2), (1100, 1)])
def test_a_list_ends_where_it_pauses_for_long(tmp_path, pause, n_listed, portion):
    (tmp_path / "a.log").write_text(rdkafka_list(pause))
    listed = told(*scanned(tmp_path), portion).filter(pl.col("partitions").list.len() > 0)
    assert listed["partitions"].to_list() == [["kiosk-orders-0", "kiosk-orders-1"][:n_listed]]


WORDS = st.lists(st.sampled_from(["leader", "local ", "lead", "er", " ", "ocal", "x", "l"]), max_size=6).map("".join)


@given(WORDS)
def test_a_text_before_is_matched_without_lookbehind(text):
    wanted = re.search(r"(?<!local )(?<!leader)Epoch", text + "Epoch") is not None
    pattern = texts.not_behind("local ", "leader") + "Epoch"
    assert pl.select(texts.has(pl.lit(text + "Epoch"), pattern)).item() == wanted


@given(st.text("membrx ", max_size=8))
def test_a_text_after_is_matched_without_lookahead(text):
    wanted = re.search(r"id (?!member)", "id " + text) is not None
    assert pl.select(texts.has(pl.lit("id " + text), "id " + texts.not_before("member"))).item() == wanted


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("+05:30", datetime(2024, 1, 1, 5, 30), datetime(2024, 1, 1)),
        ("-0800", datetime(2024, 1, 1), datetime(2024, 1, 1, 8)),
        ("UTC", datetime(2024, 1, 1), datetime(2024, 1, 1)),
        ("Europe/Paris", datetime(2024, 7, 1, 2), datetime(2024, 7, 1)),
        ("Europe/Paris", datetime(2024, 3, 31, 2, 30), datetime(2024, 3, 31, 1, 30)),
        ("Europe/Paris", datetime(2024, 10, 27, 2, 30), datetime(2024, 10, 27, 0, 30)),
    ],
    ids=["offset", "west", "utc", "summer", "skipped", "shown twice"],
)
def test_zones(zone, local, utc):
    layouts.check_zone(zone)
    assert pl.select(layouts.utc_of(pl.lit(local), zone)).item() == utc


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "5", "+5"])
def test_no_zones(zone):
    with pytest.raises(InputError, match="no time zone"):
        layouts.check_zone(zone)


def test_columns_are_those_of_events():
    assert extract.ARROW_SCHEMA.names[: len(tables.LOG_EVENTS.schema.names)] == tables.LOG_EVENTS.schema.names


def test_rows_that_stay_do_not_keep_the_texts_of_the_rest():
    def held(rows: pl.DataFrame) -> int:
        return rows.to_arrow(compat_level=pl.CompatLevel.newest()).get_total_buffer_size()

    texts_of_many = pl.DataFrame({"raw": [f"{number} " * 100 for number in range(1000)]})
    one = texts_of_many.filter(pl.int_range(pl.len()) % 300 == 0)
    assert held(one) > 100_000
    assert held(batching.detached(one)) < 5_000
    assert_frame_equal(batching.detached(one), one)
