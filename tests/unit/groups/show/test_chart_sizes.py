"""No chart fails, takes long, or grows a page because of size; what it leaves out is counted above it.

Every chart of ``kit.groups.show`` is here by itself: ``tests/hostile_faces.py`` finds them.
"""

from __future__ import annotations

import re

import polars as pl
import pytest

from kit.groups.show import charts
from tests import hostile_faces
from tests.soak import first
from tests.unit.presentation.svg_text import drawn_text

pytestmark = pytest.mark.slow

MANY, LONG = 100_000, 249
LARGEST = 1_000_000
CHARTS = [name for name in hostile_faces.CHARTS if name != "nothing"]
each_chart = pytest.mark.parametrize("name", CHARTS)


def long_names(count: int) -> list[str]:
    return [f"{at:06d}".rjust(LONG, "n") for at in range(count)]


def many_rows(name: str) -> pl.DataFrame:
    """Return the rows of ``long_names(MANY)``, a second apart."""
    row = hostile_faces.chart_rows(name, long_names(1))
    rows = row.join(pl.DataFrame({"number": range(MANY)}), how="cross")
    texts = [
        pl.format("{}{}", pl.lit("n" * (LONG - 6)), "number").alias(each)
        for each in row.select(pl.col(pl.String)).columns
    ]
    shown = {"source", "phase", "verdict", "store"}
    later = [pl.col(each) + pl.duration(seconds="number") for each in row.select(pl.col(pl.Datetime)).columns]
    rows = rows.with_columns([each for each in texts if each.meta.output_name() not in shown] + later)
    return rows.drop("number")


@each_chart
def test_nothing(name):
    rows = hostile_faces.chart_rows(name, ["one"]).clear()
    assert "nothing to show" in drawn_text(charts.svg(hostile_faces.CHARTS[name](rows)))


@each_chart
def test_one_row_of_the_longest_name(name):
    svg = charts.svg(hostile_faces.chart(name, long_names(1), "t"))
    assert "nothing to show" not in drawn_text(svg)


@pytest.mark.parametrize("name", first(CHARTS, 3))
def test_a_hundred_thousand(name):
    svg = charts.svg(hostile_faces.CHARTS[name](many_rows(name)))
    assert re.search(f" of {MANY:,} ", drawn_text(svg)), drawn_text(svg)
    assert len(svg) < LARGEST


def test_a_topic_of_five_thousand_partitions():
    row = hostile_faces.chart_rows("lag_heatmap", long_names(1))
    rows = pl.concat([row.with_columns(partition=pl.lit(at), lag=pl.lit(at)) for at in range(5_000)])
    svg = charts.svg(charts.lag_heatmap(rows))
    assert "42 partitions share a cell" in drawn_text(svg)
    assert svg.count("rect mark") - svg.count("rect mark container") == 120


@pytest.mark.parametrize("name", ["member_share_bars", "rebalance_timeline"])
def test_a_group_of_two_thousand_members(name):
    rows = hostile_faces.chart_rows(name, long_names(2_000)).with_columns(group_id=pl.lit("orders"))
    drawn = drawn_text(charts.svg(hostile_faces.CHARTS[name](rows)))
    assert re.search(r"\b(40|60) of 2,000 members", drawn), drawn
    assert "orders" not in drawn


def test_names_that_differ_beyond_what_is_drawn_stay_apart():
    rows = hostile_faces.chart_rows("lag_heatmap", [f"{'a' * 100}{at}{'z' * 100}" for at in range(3)])
    drawn = drawn_text(charts.svg(charts.lag_heatmap(rows)))
    label = f"{'a' * 22}…{'z' * 21}"
    assert {label, f"{label} (2)", f"{label} (3)"} <= set(drawn.split(" | "))
