"""The charts: what they draw, what they leave out and say so, and that they draw without a browser or a network."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import altair as alt
import polars as pl
import pytest

from kit.groups.show import charts
from tests.unit.presentation.svg_text import drawn_texts


def lag(n_topics: int = 2, n_partitions: int = 3) -> pl.DataFrame:
    rows = [
        {
            "group_id": "g",
            "store": "zookeeper",
            "topic": f"t{topic:03}",
            "partition": partition,
            "member_id": None,
            "lag": topic * 10 + partition,
            "has_no_commit": False,
            "error": None,
        }
        for topic in range(n_topics)
        for partition in range(n_partitions)
    ]
    return pl.DataFrame(rows)


def shares(n_members: int = 3) -> pl.DataFrame:
    rows = [
        {
            "group_id": "g",
            "source": "zookeeper",
            "member_id": f"g_{each:03}",
            "n_partitions": each,
            "n_threads": 1,
            "fair_share": 1.5,
            "share_ratio": each / 1.5,
            "is_idle": each == 0,
        }
        for each in range(n_members)
    ]
    return pl.DataFrame(rows)


def load() -> pl.DataFrame:
    columns = ("broker_id", "host", "rack", "is_live", "n_leaders", "n_preferred", "n_replicas", "n_in_sync")
    return pl.DataFrame([(1, "a", None, True, 6, 4, 9, 9), (2, None, None, False, 0, 2, 9, 0)], columns, orient="row")


def parity(n_topics: int = 2) -> pl.DataFrame:
    columns = ("group_id", "topic", "partition", "zookeeper_offset", "kafka_offset", "difference", "verdict")
    rows = [("g", f"t{each:03}", 0, 5, 9, 4, "kafka_ahead") for each in range(n_topics)]
    return pl.DataFrame([*rows, ("g", "t000", 1, 5, 5, 0, "equal")], columns, orient="row")


CHARTS: list[tuple[Callable[..., Any], Callable[[], pl.DataFrame], str]] = [
    (charts.lag_heatmap, lag, "partition"),
    (charts.member_share_bars, shares, "partitions owned"),
    (charts.leaders_per_broker, load, "partitions led"),
    (charts.store_parity_chart, parity, "partitions"),
]
each_chart = pytest.mark.parametrize(("draw", "frame", "axis"), CHARTS, ids=[draw.__name__ for draw, *_ in CHARTS])


def subtitle(chart: Any) -> str:
    return " | ".join(chart.to_dict()["title"]["subtitle"])


def rows_of(chart: Any) -> list[dict[str, Any]]:
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


@cache
def picture(draw: Callable[..., Any], frame: Callable[[], pl.DataFrame]) -> str:
    """Drawn once: several tests read it."""
    return charts.svg(draw(frame(), title="What is shown"))


@each_chart
def test_draws_a_self_contained_svg_with_titles(draw: Any, frame: Any, axis: str) -> None:
    drawn = picture(draw, frame)
    assert drawn.startswith("<svg")
    assert {"What is shown", axis} <= set(drawn_texts(drawn))
    assert "<script" not in drawn
    assert set(re.findall(r'https?://[^"\s]+', drawn)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


@each_chart
def test_an_empty_frame_is_labelled(draw: Any, frame: Any, axis: str) -> None:
    assert "nothing to show" in drawn_texts(charts.svg(draw(frame().head(0))))


@each_chart
def test_polars_pandas_and_arrow_draw_the_same(draw: Any, frame: Any, axis: str) -> None:
    polars, title = picture(draw, frame), "What is shown"
    assert charts.svg(draw(frame().to_arrow(), title=title)) == polars
    pandas = frame().drop("rack", strict=False).with_columns(rack=None).to_pandas()
    assert charts.svg(draw(pandas, title=title)).count("<path") == polars.count("<path")


@each_chart
def test_is_drawn_on_white_in_the_common_style(draw: Any, frame: Any, axis: str) -> None:
    assert 'fill="white"' in picture(draw, frame)


def test_the_style_is_not_forced_on_other_charts() -> None:
    before = alt.theme.active
    charts.svg(charts.lag_heatmap(lag()))
    assert alt.theme.active == before


def test_enable_svg_draws_offline() -> None:
    with alt.renderers.enable("default"), alt.theme.enable("default"):
        charts.enable_svg()
        bundle = charts.lag_heatmap(lag())._repr_mimebundle_()
        assert set(bundle) == {"image/svg+xml"}


def test_two_charts_in_one_page_share_no_id() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', charts.svg(charts.lag_heatmap(lag(n))))) for n in (2, 3)]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_heat_map_embeds_one_row_per_partition_and_distinguishes_unknown_from_uncommitted() -> None:
    rows = lag(1, 3).with_columns(
        lag=pl.Series([7, None, None], dtype=pl.Int64), has_no_commit=pl.Series([False, True, False])
    )
    chart = charts.lag_heatmap(pl.concat([rows, rows]))
    assert sorted(row["state"] for row in rows_of(chart)) == ["known", "no commit", "unknown"]
    assert subtitle(chart) == "7 records behind; lag known of 1 of 3 partitions"


def test_a_partition_that_is_unknown_in_one_store_is_not_called_uncommitted() -> None:
    rows = lag(1, 1).with_columns(lag=pl.lit(None, pl.Int64))
    (row,) = rows_of(charts.lag_heatmap(pl.concat([rows, rows.with_columns(has_no_commit=pl.lit(True))])))
    assert row["state"] == "unknown"


def test_a_store_that_no_one_uses_is_not_drawn() -> None:
    rows = lag(2, 1).with_columns(is_stale=pl.col("topic") == "t001")
    assert [row["topic"] for row in rows_of(charts.lag_heatmap(rows))] == ["t000"]


def test_heat_map_keeps_the_topics_with_the_most_lag_and_reports_it() -> None:
    chart = charts.lag_heatmap(lag(50, 150))
    rows = rows_of(chart)
    assert {row["topic"] for row in rows} == {f"t{each:03}" for each in range(10, 50)}
    assert "40 of 50 topics, those with the most lag | 2 partitions share a cell" in subtitle(chart)
    assert [row["lag"] for row in rows if row["topic"] == "t049"] == [490 + each for each in range(1, 150, 2)]


def test_a_cell_shows_the_worst_of_its_partitions_even_where_others_are_unknown() -> None:
    rows = lag(1, 5_000).with_columns(lag=pl.when(pl.col("partition") == 4_321).then(7))
    (row,) = [row for row in rows_of(charts.lag_heatmap(rows)) if row["lag"] == 7]
    assert row["partition"] == 4_321 // 42 * 42


def test_member_bars_keep_the_largest_and_mark_the_idle() -> None:
    chart = charts.member_share_bars(shares(60))
    assert subtitle(chart) == "Orange line: fair share | 40 of 60 members"
    assert {row["member_id"] for row in rows_of(chart)} == {f"g_{each:03}" for each in range(20, 60)}
    assert "idle" in drawn_texts(charts.svg(charts.member_share_bars(shares(3))))


def test_members_of_two_sources_have_two_panels() -> None:
    both = pl.concat([shares(), shares().with_columns(source=pl.lit("kafka"))])
    assert {"ZooKeeper", "Kafka"} <= set(drawn_texts(charts.svg(charts.member_share_bars(both))))


def test_a_broker_that_is_down_is_reported() -> None:
    assert "2 (down)" in drawn_texts(charts.svg(charts.leaders_per_broker(load())))


def test_parity_counts_partitions_per_verdict_and_topic() -> None:
    chart = charts.store_parity_chart(parity())
    counts = sorted((row["topic"], row["verdict"], row["n_partitions"]) for row in rows_of(chart))
    assert counts == [("t000", "equal", 1), ("t000", "kafka ahead", 1), ("t001", "kafka ahead", 1)]
    assert subtitle(chart) == "equal in both stores: 1 of 3 partitions"


def test_parity_of_several_groups_has_a_bar_per_group() -> None:
    frame = pl.concat([parity(), parity().with_columns(group_id=pl.lit("h"))])
    assert {row["group_id"] for row in rows_of(charts.store_parity_chart(frame))} == {"g", "h"}
    assert "40 of 50 topics" in subtitle(charts.store_parity_chart(parity(50)))
