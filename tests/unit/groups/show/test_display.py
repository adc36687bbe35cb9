"""Tables for people: headings and values in words, digits grouped in one way, unknown as a dash."""

from __future__ import annotations

import re

import polars as pl
from bs4 import BeautifulSoup

from kit.groups.show import display


def cells(frame: pl.DataFrame) -> list[list[str]]:
    page = BeautifulSoup(display.table(frame).to_html(), "html.parser")
    return [[cell.get_text().strip() for cell in row.find_all(["th", "td"])] for row in page.find_all("tr")]


def test_codes_truth_and_numbers_are_for_people():
    frame = pl.DataFrame(
        {
            "group_id": ["owned_twice", "b"],
            "finding": ["assigned_never_committed", None],
            "is_ready": [True, None],
            "lag": [10_000, None],
            "skew_percent": [7600.5, None],
        }
    )
    assert cells(frame) == [
        ["group", "finding", "ready", "lag, records", "skew, %"],
        ["owned_twice", "assigned never committed", "yes", "10,000", "7,600.50"],
        ["b", "–", "–", "–", "–"],
    ]


def test_a_long_name_wraps_and_pushes_nothing_off_the_page():
    page = display.table(pl.DataFrame({"group_id": ["g" * 249], "topic": ["t"], "lag": [1]})).to_html()
    wrapped, unbroken = (re.search(rf"_row0_col{at} {{([^}}]*)}}", page).group(1) for at in (0, 1))
    assert "overflow-wrap: anywhere" in wrapped
    assert "nowrap" not in wrapped
    assert "nowrap" in unbroken


def test_a_phrase_wraps_sooner_than_a_name():
    rows = {"source": ["ApiVersions, DescribeQuorum, the metadata log"], "member_id": ["m" * 45], "lag": [1]}
    page = display.table(pl.DataFrame(rows)).to_html()
    phrase, name = (re.search(rf"_row0_col{at} {{([^}}]*)}}", page).group(1) for at in (0, 1))
    assert "nowrap" not in phrase
    assert "nowrap" in name


def test_left_out_items_are_counted():
    frame = pl.DataFrame({"lag": range(1_001)})
    assert "the first 1,000 of 1,001 rows" in display.table(frame).to_html()


def test_a_column_of_errors_without_any_goes_and_any_keeps_it():
    rows = pl.DataFrame({"lag": [1, 2], "error": [None, None]}, schema_overrides={"error": pl.String})
    assert cells(rows)[0] == ["lag, records"]
    assert cells(rows.with_columns(error=pl.Series([None, "refused"])))[0] == ["lag, records", "why it is unknown"]


def test_bounds_wrap_and_take_no_room_from_the_sentence_beside_them():
    rows = {"age": ["4 min 12 s – 4 min 13 s"], "status": ["STOP"], "evidence": ["no commit"]}
    page = display.table(pl.DataFrame(rows)).to_html()
    bounds, status = (re.search(rf"_row0_col{at} {{([^}}]*)}}", page).group(1) for at in (0, 1))
    assert "nowrap" not in bounds
    assert "nowrap" in status
    assert "4\u00a0min\u00a012\u00a0s\u00a0– 4\u00a0min\u00a013\u00a0s" in page  # It breaks at one place.
