"""Small frames → Altair charts of one observation: on white, so that light, dark and paper show the same.

Every function takes the outcome of an analysis of the same vocabulary as a polars, pandas or Arrow frame (of a Spark
frame: ``toArrow()``), embeds only the rows it draws, and reports in the subtitle what it left out. JupyterLab without a
network draws Altair's ``svg`` renderer only: call ``enable_svg()`` once per notebook.
"""

from __future__ import annotations

from typing import Any

import altair as alt
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.presentation import axes
from kit.presentation.chart import (
    BLUE,
    INK,
    ORANGE,
    QUIET,
    Chart,
    enable_svg as enable_svg,
    frame_of,
    labels,
    nothing,
    shortened,
    svg as svg,
    titled,
)
from kit.text.quantity import quantity

MAX_TOPICS = 40
MAX_PARTITIONS = 120
MAX_BARS = 40
MAX_BROKERS = 120
_VERDICT_COLOURS = {
    "equal": "#9db8d2",
    "zookeeper_ahead": "#3b6ea5",
    "kafka_ahead": "#d1603d",
    "missing_in_kafka": "#c9b458",
    "missing_in_zookeeper": "#8a6d9e",
    "unknown": "#c4cad0",
}
_SOURCE_TITLES = {"zookeeper": "ZooKeeper", "kafka": "Kafka"}


def lag_heatmap(partition_lag: IntoDataFrame, title: str = "Lag per partition") -> Chart:
    """``analyze.partition_lag`` → topic × partition, coloured by lag in records on a logarithmic scale.

    If the frame holds several groups or stores, the largest lag of a partition counts, of stores that are in use
    (``is_stale`` is not drawn). The topics with the most lag are drawn, at most ``MAX_TOPICS``. Of more than
    ``MAX_PARTITIONS`` partitions several share a cell, which shows the largest lag of them.
    """
    rows = frame_of(partition_lag)
    cells = _cells(rows.filter(~pl.col("is_stale")) if "is_stale" in rows.columns else rows)
    if cells.is_empty():
        return nothing(title)
    largest, left_out = _largest_topics(cells)
    drawn, per_cell = _sharing_cells(largest)
    known, other = drawn.filter(pl.col("state") == "known"), drawn.filter(pl.col("state") != "known")
    n_partitions = drawn["partition"].n_unique()
    step = min(26.0, max(5.0, 700 / n_partitions))
    share = f"{per_cell} partitions share a cell, which shows the largest lag of them" if per_cell > 1 else ""
    notes = [_lag_summary(cells), left_out, share]
    base = {"width": alt.Step(step), "height": alt.Step(18), "title": titled(title, notes)}
    layers = [_lag_cells(known, drawn), _stateless_cells(other, drawn)]
    chart: Chart = alt.layer(*layers).resolve_scale(color="independent").properties(**base)
    return chart


def member_share_bars(member_shares: IntoDataFrame, title: str = "Partitions per member") -> Chart:
    """``analyze.member_shares`` → a bar per member, crossed by the line of its fair share; one panel per source.

    At most ``MAX_BARS`` members are drawn, those with the most partitions first.
    """
    shares = frame_of(member_shares)
    if shares.is_empty():
        return nothing(title)
    drawn = shares.sort(["n_partitions", "group_id", "member_id"], descending=[True, False, False]).head(MAX_BARS)
    drawn = drawn.with_columns(panel=pl.col("source").replace(_SOURCE_TITLES))
    drawn = drawn.with_columns(member=labels(drawn, "member_id", shares["group_id"].n_unique() > 1))
    notes = ["Orange line: fair share", shortened(len(drawn), len(shares), "members")]
    members = alt.Y("member:N", title=None, sort=drawn["member"].to_list())
    tooltip = ["group_id:N", "source:N", "member_id:N", "n_partitions:Q", "n_threads:Q"]
    tips: list[Any] = [*tooltip, alt.Tooltip("fair_share:Q", format=".2f"), alt.Tooltip("share_ratio:Q", format=".2f")]
    count = alt.X("n_partitions:Q", title="partitions owned", axis=axes.of_counts(format="d"))
    base = alt.Chart(drawn).encode(y=members, tooltip=tips)
    bars = base.mark_bar(color=BLUE, height={"band": 0.7}).encode(x=count)
    fair = base.mark_tick(color=ORANGE, opacity=1, thickness=2.5, height={"band": 1}).encode(x="fair_share:Q")
    idle = (
        base.transform_filter("datum.is_idle").mark_text(align="left", dx=5, color=QUIET).encode(text=alt.value("idle"))
    )
    layered = alt.layer(bars, fair, idle.encode(x=alt.datum(0))).properties(height=alt.Step(20), width=520)
    panels = layered.facet(row=alt.Row("panel:N", title=None), spacing=18).resolve_scale(y="independent")
    chart: Chart = panels.properties(title=titled(title, notes))
    return chart


def leaders_per_broker(broker_load: IntoDataFrame, title: str = "Leaders per broker") -> Chart:
    """``analyze.broker_load`` → a bar of leaders per broker, a line for its preferred leaderships, the mean.

    At most ``MAX_BROKERS`` are drawn, those that lead the most partitions.
    """
    load = frame_of(broker_load)
    if load.is_empty():
        return nothing(title)
    down = pl.when(pl.col("is_live")).then(pl.lit("")).otherwise(pl.lit(" (down)"))
    busiest = load.sort("n_leaders", "broker_id", descending=[True, False], nulls_last=True).head(MAX_BROKERS)
    drawn = busiest.sort("broker_id").with_columns(broker=pl.col("broker_id").cast(pl.String) + down)
    notes = ["Orange line: if every partition were led by its preferred leader; dashed: mean of the live brokers"]
    notes.append(shortened(len(drawn), len(load), "brokers, those that lead most"))
    brokers = alt.X(
        "broker:N", title="broker id", sort=drawn["broker"].to_list(), axis=alt.Axis(labelAngle=0, labelOverlap=True)
    )
    tips = ["broker:N", "host:N", "rack:N", "n_leaders:Q", "n_preferred:Q", "n_replicas:Q", "n_in_sync:Q"]
    count = alt.Y("n_leaders:Q", title="partitions led", axis=axes.of_counts(format="d"))
    base = alt.Chart(drawn).encode(x=brokers, tooltip=tips)
    bars = base.mark_bar(color=BLUE, width={"band": 0.7}).encode(y=count)
    preferred = base.mark_tick(color=ORANGE, opacity=1, thickness=2.5, width={"band": 0.9}).encode(y="n_preferred:Q")
    mean = alt.Chart(_mean_of_live(load)).mark_rule(strokeDash=[4, 4], color=INK).encode(y="mean:Q")
    width = alt.Step(max(8.0, min(64.0, 700 / len(drawn))))
    chart: Chart = alt.layer(bars, preferred, mean).properties(width=width, height=160, title=titled(title, notes))
    return chart


def store_parity_chart(store_parity: IntoDataFrame, title: str = "ZooKeeper's offsets against Kafka's") -> Chart:
    """``analyze.store_parity`` → partitions per verdict, a bar per topic (per group where the frame holds several).

    Groups that keep offsets in one store only have nothing to compare; they are counted in the subtitle.

    At most ``MAX_BARS`` bars are drawn, those with the most partitions that are not equal first.
    """
    everything = frame_of(store_parity)
    parity, alone = _in_both_stores(everything)
    if parity.is_empty():
        return nothing(title, alone)
    by = "topic" if parity["group_id"].n_unique() == 1 else "group_id"
    every = _least_equal(parity, by)
    names = every[:MAX_BARS]
    counts = parity.filter(pl.col(by).is_in(names)).group_by(by, "verdict")
    drawn = counts.agg(n_partitions=pl.len(), least=pl.col("difference").min(), most=pl.col("difference").max()).sort(
        by, "verdict"
    )
    present = [verdict for verdict in _VERDICT_COLOURS if verdict in set(drawn["verdict"])]
    words = [verdict.replace("_", " ") for verdict in present]
    drawn = drawn.with_columns(pl.col("verdict").str.replace_all("_", " "), rank=_rank(present))
    scale = alt.Scale(domain=words, range=[_VERDICT_COLOURS[verdict] for verdict in present])
    chart = alt.Chart(drawn).mark_bar(height={"band": 0.7})
    plural = "topics" if by == "topic" else "groups"
    shown = shortened(len(names), len(every), f"{plural}, those that differ most")
    bars: Chart = chart.encode(
        y=alt.Y(f"{by}:N", title=None, sort=names),
        x=alt.X("n_partitions:Q", title="partitions", axis=axes.of_counts(format="d")),
        color=alt.Color("verdict:N", title=None, scale=scale, sort=words),
        order="rank:Q",
        tooltip=[f"{by}:N", "verdict:N", "n_partitions:Q", *_difference_tips()],
    ).properties(width=520, height=alt.Step(22), title=titled(title, [_equal_summary(parity), shown, *alone]))
    return bars


# -- lag -------------------------------------------------------------------------------------------------------------


def _cells(lag: pl.DataFrame) -> pl.DataFrame:
    """One row per topic and partition: the largest known lag, else no commit or unknown."""
    cells = lag.group_by("topic", "partition").agg(
        pl.col("lag").max(), pl.col("member_id").min(), pl.col("error").min(), pl.col("has_no_commit").all()
    )
    state = pl.when(pl.col("lag").is_not_null()).then(pl.lit("known"))
    other = state.when(pl.col("has_no_commit")).then(pl.lit("no commit")).otherwise(pl.lit("unknown"))
    return cells.with_columns(state=other).sort("topic", "partition")


def _largest_topics(cells: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    totals = cells.group_by("topic").agg(pl.col("lag").sum()).sort(["lag", "topic"], descending=[True, False])
    topics = totals["topic"].head(MAX_TOPICS).to_list()
    order = pl.DataFrame({"topic": topics}).with_row_index("rank")
    drawn = cells.join(order, on="topic").sort("rank", "partition").drop("rank")
    return drawn, shortened(len(topics), len(totals), "topics, those with the most lag")


def _sharing_cells(cells: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The cells to draw, and how many partitions share one; ``partition`` is the first of a cell."""
    highest: Any = cells["partition"].max()
    per_cell = 1 + highest // MAX_PARTITIONS
    if per_cell == 1:
        return cells, 1
    first = (pl.col("partition") // per_cell * per_cell).alias("partition")
    by_cell = cells.sort("lag", descending=True, nulls_last=True, maintain_order=True)
    shared = by_cell.group_by("topic", first, maintain_order=True).first()
    order = cells.select(pl.col("topic").unique(maintain_order=True)).with_row_index("rank")
    return shared.join(order, on="topic").sort("rank", "partition").drop("rank"), per_cell


def _lag_summary(cells: pl.DataFrame) -> str:
    known = cells["lag"].drop_nulls()
    if known.is_empty():
        return f"No lag is known, {quantity(len(cells), 'partition')}"
    return (
        f"{quantity(known.sum(), 'record')} behind; lag known of {len(known):,} of {quantity(len(cells), 'partition')}"
    )


def _axes(drawn: pl.DataFrame) -> dict[str, Any]:
    partitions = sorted(set(drawn["partition"].to_list()))
    axis = alt.Axis(labelAngle=0, labelOverlap=True, ticks=False, domain=False)
    return {
        "x": alt.X("partition:O", title="partition", axis=axis, scale=alt.Scale(domain=partitions)),
        "y": alt.Y(
            "topic:N",
            title=None,
            axis=alt.Axis(ticks=False, domain=False),
            scale=alt.Scale(domain=drawn["topic"].unique(maintain_order=True).to_list()),
        ),
    }


def _lag_cells(known: pl.DataFrame, drawn: pl.DataFrame) -> alt.Chart:
    most = max([1, *known["lag"].to_list()])
    scale = alt.Scale(type="symlog", domain=[0, most], range=["#edf2f7", "#6f9bc8", "#1d3f66"])
    marks = [mark for mark in (0, *(10**power for power in range(1, 16))) if mark < most / 2]
    n_topics = drawn["topic"].n_unique()
    legend = alt.Legend(
        values=[*marks[:: 1 + len(marks) // 6], most],
        labelExpr="format(datum.value, '.3~s')",
        gradientLength=min(110, max(40, 18 * n_topics)),
    )
    tips = ["topic:N", "partition:O", alt.Tooltip("lag:Q", format=","), "member_id:N"]
    colour = alt.Color("lag:Q", title="lag (records)", scale=scale, legend=None if known.is_empty() else legend)
    cells: alt.Chart = alt.Chart(known).mark_rect(stroke="white").encode(**_axes(drawn), color=colour, tooltip=tips)
    return cells


def _stateless_cells(other: pl.DataFrame, drawn: pl.DataFrame) -> alt.Chart:
    states = sorted(set(other["state"].to_list()))
    colours = {"no commit": "#f0d9a8", "unknown": "#d9a08b"}
    scale = alt.Scale(domain=states, range=[colours[state] for state in states])
    colour = alt.Color("state:N", title="no lag", scale=scale, legend=alt.Legend() if states else None)
    tips = ["topic:N", "partition:O", "state:N", "error:N", "member_id:N"]
    cells: alt.Chart = alt.Chart(other).mark_rect(stroke="white").encode(**_axes(drawn), color=colour, tooltip=tips)
    return cells


# -- members, brokers, parity ----------------------------------------------------------------------------------------


def _mean_of_live(load: pl.DataFrame) -> pl.DataFrame:
    return load.filter(pl.col("is_live")).select(mean=pl.col("n_leaders").mean()).drop_nulls()


def _in_both_stores(parity: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    is_known = [pl.col(f"{store}_offset").is_not_null().any().over("group_id") for store in ("zookeeper", "kafka")]
    both = parity.filter(is_known[0] & is_known[1])
    n_groups = parity["group_id"].n_unique()
    n_alone = n_groups - both["group_id"].n_unique()
    return both, [f"offsets in one store only: {n_alone:,} of {quantity(n_groups, 'group')}"] * (n_alone > 0)


def _least_equal(parity: pl.DataFrame, by: str) -> list[str]:
    unequal = parity.group_by(by).agg(n=(pl.col("verdict") != "equal").sum(), size=pl.len())
    return unequal.sort(["n", "size", by], descending=[True, True, False])[by].to_list()


def _equal_summary(parity: pl.DataFrame) -> str:
    return f"equal in both stores: {(parity['verdict'] == 'equal').sum():,} of {quantity(len(parity), 'partition')}"


def _rank(verdicts: list[str]) -> pl.Expr:
    ranks = {verdict.replace("_", " "): rank for rank, verdict in enumerate(verdicts)}
    return pl.col("verdict").str.replace_all("_", " ").replace_strict(ranks, return_dtype=pl.Int32)


def _difference_tips() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("least:Q", title="smallest difference (records)", format=","),
        alt.Tooltip("most:Q", title="largest difference (records)", format=","),
    ]
