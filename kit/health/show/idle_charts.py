"""Groups that are not in use, as pictures: how many of each class, and how old their last commits are."""

from __future__ import annotations

import altair as alt
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.groups.analyze.idle import ACTIVE, CLASSES, DAY_MS, DEAD, IDLE, RANDOM_NAME
from kit.presentation import axes
from kit.presentation.chart import Chart, frame_of, nothing, titled
from kit.text.quantity import quantity

_UNTOLD = "can't be reported"
_COLOURS = {ACTIVE: "#6f9bc8", IDLE: "#c5d8ea", RANDOM_NAME: "#e0c46c", DEAD: "#d1603d", _UNTOLD: "#d8dde2"}
_HOUR_MS = DAY_MS // 24
_AGES = {
    "up to an hour": _HOUR_MS,
    "a day": DAY_MS,
    "a week": 7 * DAY_MS,
    "30 days": 30 * DAY_MS,
    "a year": 365 * DAY_MS,
}
_OLDER, _UNKNOWN = "older", "unknown"
_LEGEND = alt.Legend(orient="bottom")


def group_classes(idle_groups: IntoDataFrame, title: str = "Groups by use and store") -> Chart:
    """``analyze.idle_groups`` → a bar per store, of how many groups of each class it has."""
    drawn = _classed(idle_groups)
    if drawn.is_empty():
        return nothing(title)
    counts = drawn.group_by("store", "class").agg(groups=pl.len())
    bars = alt.Chart(counts).mark_bar(stroke="white", strokeWidth=0.5)
    chart: Chart = bars.encode(
        x=alt.X("groups:Q", title="groups", axis=axes.of_counts(format=",d")),
        y=alt.Y("store:N", title=None),
        color=_colour(counts),
    ).properties(width=620, height=alt.Step(34), title=titled(title, [_summary(drawn)]))
    return chart


def commit_ages(idle_groups: IntoDataFrame, title: str = "Age of the last commit") -> Chart:
    """``analyze.idle_groups`` → how many groups made their last commit how long ago, coloured by class."""
    drawn = _classed(idle_groups)
    if drawn.is_empty():
        return nothing(title)
    age: pl.Expr = pl.lit(_OLDER)
    for word, most_ms in reversed(_AGES.items()):
        age = pl.when(pl.col("commit_age_ms") <= most_ms).then(pl.lit(word)).otherwise(age)
    age = pl.when(pl.col("commit_age_ms").is_null()).then(pl.lit(_UNKNOWN)).otherwise(age)
    counts = drawn.with_columns(age=age).group_by("age", "class").agg(groups=pl.len())
    words = [*_AGES, _OLDER, _UNKNOWN]
    n_known = len(drawn) - drawn["commit_age_ms"].null_count()
    notes = [f"Known for {n_known:,} of {quantity(len(drawn), 'group')} per store"]
    bars = alt.Chart(counts).mark_bar(stroke="white", strokeWidth=0.5)
    chart: Chart = bars.encode(
        x=alt.X("age:N", title=None, sort=words, scale=alt.Scale(domain=words), axis=alt.Axis(labelAngle=0)),
        y=alt.Y("groups:Q", title="groups", axis=axes.of_counts(format=",d")),
        color=_colour(counts),
    ).properties(width=620, height=220, title=titled(title, notes))
    return chart


def _classed(idle_groups: IntoDataFrame) -> pl.DataFrame:
    """With a word for what can't be reported."""
    rows = frame_of(idle_groups)
    known = pl.when(pl.col("class").is_in(CLASSES)).then("class").otherwise(pl.lit(_UNTOLD))
    return rows.with_columns(known.alias("class"), pl.col("store").fill_null("?"))


def _colour(counts: pl.DataFrame) -> alt.Color:
    present = [name for name in _COLOURS if name in set(counts["class"])]
    scale = alt.Scale(domain=present, range=[_COLOURS[name] for name in present])
    return alt.Color("class:N", title=None, scale=scale, sort=present, legend=_LEGEND)


def _summary(drawn: pl.DataFrame) -> str:
    counts = dict(drawn.group_by("class").agg(pl.len()).iter_rows())
    counted = " · ".join(f"{counts[name]:,} {name}" for name in _COLOURS if name in counts)
    return f"{counted}: of {quantity(len(drawn), 'group')} in a store"
