"""Rebalances as charts: what each member did when, and how many partitions moved. Style: ``kit.presentation.chart``."""

from __future__ import annotations

from typing import Any

import altair as alt
import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.presentation import axes
from kit.presentation.chart import INK, QUIET, Chart, frame_of, labels, nothing, shortened, titled
from kit.rebalances.analyze.spans import PHASES
from kit.text.quantity import quantity

MAX_MEMBERS = 60
MAX_SPANS = 3_000
MAX_GENERATIONS = 300
_COLOURS = ("#8a6d9e", "#d1603d", "#e0a458", "#c9b458", "#6f9bc8", "#3b6ea5", "#c4cad0")
_UTC = alt.Scale(type="utc")
_CHURN = ("group_id", "generation", "is_utc", "started_at", "ended_at", "moved", "joined", "left")


def rebalance_timeline(spans: IntoDataFrame, title: str = "Rebalances") -> Chart:
    """``analyze.member_spans`` or ``generation_spans`` → a line per member, a bar per phase, the generations marked.

    The partitions of a member are shown at the pointer. At most ``MAX_MEMBERS`` members are drawn, those that
    rebalanced most, and of them the last ``MAX_SPANS`` phases.
    """
    every = frame_of(spans)
    if every.is_empty():
        return nothing(title)
    counts = every.group_by("group_id", "member").agg(
        n=pl.struct("life", "generation").n_unique(), first=pl.col("began_at").min()
    )
    chosen = counts.sort("n", "first", descending=[True, False]).head(MAX_MEMBERS)
    of_chosen = every.join(chosen.select("group_id", "member"), on=["group_id", "member"], nulls_equal=True)
    drawn = of_chosen.sort("began_at").tail(MAX_SPANS)
    drawn = drawn.with_columns(line=labels(drawn, "member", of_chosen["group_id"].n_unique() > 1))
    notes = [shortened(len(chosen), len(counts), "members; those that rebalanced most come first")]
    notes.append(shortened(len(drawn), len(of_chosen), "phases; the last ones are shown"))
    order = drawn.group_by("line").agg(pl.col("began_at").min()).sort("began_at", "line")["line"].to_list()
    present = [phase for phase in PHASES if phase in set(drawn["phase"])]
    scale = alt.Scale(domain=present, range=[dict(zip(PHASES, _COLOURS))[phase] for phase in present])
    line = alt.Y("line:N", title=None, sort=order)
    bars = (
        alt.Chart(drawn)
        .mark_bar(height={"band": 0.7}, minBandSize=2)
        .encode(
            x=_time("began_at", drawn),
            x2="ended_at:T",
            y=line,
            color=alt.Color("phase:N", title=None, scale=scale, sort=present),
            tooltip=_tips(),
        )
    )
    marks = alt.Chart(_generation_marks(drawn)).encode(x="at:T")
    rules = marks.mark_rule(color=INK, opacity=0.35, strokeDash=[3, 3])
    numbers = marks.mark_text(color=QUIET, fontSize=10, dy=-6, baseline="bottom").encode(
        y=alt.value(0), text="number:N"
    )
    layered: Chart = alt.layer(bars, rules, numbers).properties(
        width=760, height=alt.Step(22), title=titled(title, [*notes, "Numbers: generations, from when all had joined"])
    )
    return layered


def churn_chart(rebalances: IntoDataFrame, title: str = "Churn") -> Chart:
    """``tables.REBALANCES`` → per generation the partitions that moved, and members that came and went.

    A generation whose time isn't known is left out, and counted; of all other generations the last ``MAX_GENERATIONS``
    are drawn.
    """
    columns = nw.from_native(rebalances, eager_only=True).select(*_CHURN)
    every = frame_of(columns.to_native()).with_columns(at=pl.coalesce("ended_at", "started_at"))
    every_timed = every.filter(pl.col("at").is_not_null())
    timed = every_timed.sort("at").tail(MAX_GENERATIONS)
    if timed.is_empty():
        return nothing(title)
    counted = timed.select(
        "group_id",
        "generation",
        "is_utc",
        "at",
        pl.col("moved").list.len().alias("partitions moved"),
        pl.col("joined").list.len().alias("members joined"),
        pl.col("left").list.len().alias("members left"),
    )
    long = counted.unpivot(index=["group_id", "generation", "is_utc", "at"], variable_name="what", value_name="count")
    long = long.filter(pl.col("count") > 0)
    if long.is_empty():
        return nothing(
            title, [(f"{quantity(len(timed), 'generation')}, in which no partition moved and no member came or left")]
        )
    whats = ["partitions moved", "members joined", "members left"]
    scale = alt.Scale(domain=whats, range=["#3b6ea5", "#6a9a5b", "#d1603d"])
    base = (
        alt.Chart(long)
        .mark_circle(size=60, opacity=0.9)
        .encode(
            x=_time("at", long),
            y=alt.Y("count:Q", title=None, axis=axes.of_counts(format="d")),
            color=alt.Color("what:N", title=None, scale=scale, sort=whats),
            tooltip=["group_id:N", "generation:Q", "what:N", "count:Q"],
        )
    )
    stems = base.mark_rule(strokeWidth=2).encode(y2=alt.datum(0))
    panels = alt.layer(stems, base).properties(width=760, height=70)
    left_out = len(every) - len(every_timed)
    drawn = shortened(len(timed), len(every_timed), "generations, the last ones") or quantity(len(timed), "generation")
    notes = [drawn, f"{left_out:,} without a time are left out" if left_out else ""]
    chart: Chart = panels.facet(
        row=alt.Row("what:N", sort=whats, header=alt.Header(labels=False, title=None)), spacing=8
    ).properties(title=titled(title, notes))
    return chart


def _time(column: str, drawn: pl.DataFrame) -> alt.X:
    """The axis of time, in UTC or as printed where no log names its zone; with the day where there are several days."""
    days = drawn[column].dt.date().n_unique()
    zones = {True: "UTC", False: "as printed"}
    title = f"time ({', or '.join(zones[is_utc] for is_utc in sorted(set(drawn['is_utc']), reverse=True))})"
    form = "%H:%M:%S" if days == 1 else "%Y-%m-%d %H:%M"
    return alt.X(
        f"{column}:T", title=title, scale=_UTC, axis=alt.Axis(format=form, labelOverlap="greedy", labelSeparation=8)
    )


def _generation_marks(drawn: pl.DataFrame) -> pl.DataFrame:
    """Each group's generations, each at the time when its first member held partitions; with its life, if the group had
    several.
    """
    held = drawn.filter(pl.col("phase").str.starts_with("holding") & pl.col("generation").is_not_null())
    marks = held.group_by("group_id", "life", "generation").agg(at=pl.col("began_at").min()).sort("at")
    number, has_lives = pl.col("generation").cast(pl.String), (pl.col("life") > 1).any().over("group_id")
    of_life = number + pl.lit(" (life ") + pl.col("life").cast(pl.String) + pl.lit(")")
    return marks.with_columns(number=pl.when(has_lives).then(of_life).otherwise(number))


def _tips() -> list[Any]:
    moment = "%H:%M:%S.%L"
    return [
        alt.Tooltip("group_id:N", title="group"),
        "member:N",
        "life:Q",
        "generation:Q",
        "phase:N",
        alt.Tooltip("began_at:T", title="from", format=moment),
        alt.Tooltip("ended_at:T", title="to", format=moment),
        "partitions:N",
        "reason:N",
    ]
