"""Lag and health as charts: what each tool shows, what rules reported when, the worst hours. Style:
``kit.presentation.chart``.
"""

from __future__ import annotations

import altair as alt
import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.health.analyze.definitions import DEFINITIONS
from kit.presentation.chart import INK, Chart, frame_of, labels, nothing, shortened, titled

MAX_LINES = 40
MAX_SPANS = 3_000
_AS_KAFKA, _OTHER, _NONE, _HIDDEN = "as Kafka's own command", "another number", "no number", "not listed"
_COLOURS = {_AS_KAFKA: "#d6e2ef", _OTHER: "#f2c1a8", _NONE: "#eceff2", _HIDDEN: "#ffffff"}
_STATUSES = {
    "OK": "#c5d8ea",
    "WARN": "#e0c46c",
    "STOP": "#d1603d",
    "STALL": "#8a6d9e",
    "REWIND": "#3b6ea5",
    "unknown": "#d8dde2",
}
_BOUNDS = {False: "between both bounds", True: "lower bound of the age"}
_MARKS = (0, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
_AGE = (
    "datum.value < 60 ? datum.value + ' s' : datum.value < 3600 ? datum.value / 60 + ' min' : "
    "datum.value < 86400 ? datum.value / 3600 + ' h' : datum.value / 86400 + ' d'"
)


def lag_by_tool(lag_definitions: IntoDataFrame, title: str = "The same offsets, as twelve tools show them") -> Chart:
    """``analyze.lag_definitions`` → a line per partition, a column per tool, the number that it shows.

    At most ``MAX_LINES`` partitions are drawn, those first about which most tools disagree with Kafka's command.
    """
    every = nw.from_native(lag_definitions, eager_only=True).to_polars()
    if every.is_empty():
        return nothing(title)
    key = ["group_id", "store", "topic", "partition"]
    kafka = pl.col("lag").filter(pl.col("tool") == "kafka").first()
    is_other = pl.col("is_listed") & pl.col("lag").is_not_null() & pl.col("lag").ne_missing(kafka)
    order = every.group_by(key).agg(differs=is_other.sum(), kafka_lag=kafka)
    chosen = order.sort("differs", *key, descending=[True, *[False] * 4]).head(MAX_LINES).with_row_index("rank")
    drawn = frame_of(every.join(chosen, on=key, nulls_equal=True).sort("rank"))
    what = pl.when(~pl.col("is_listed")).then(pl.lit(_HIDDEN)).when(pl.col("lag").is_null()).then(pl.lit(_NONE))
    same = pl.col("lag") == pl.col("kafka_lag")
    drawn = drawn.with_columns(shown=what.when(same).then(pl.lit(_AS_KAFKA)).otherwise(pl.lit(_OTHER)))
    titles = {tool: each.title for tool, each in DEFINITIONS.items()}
    drawn = drawn.with_columns(line=_line(drawn), number=_number(), title=pl.col("tool").replace(titles))
    lines = drawn["line"].unique(maintain_order=True).to_list()
    drawn = drawn.select("line", "title", "shown", "number", "topic", "partition")
    longest = max(map(len, drawn["number"]))
    present = [each for each in _COLOURS if each in set(drawn["shown"])]
    scale = alt.Scale(domain=present, range=[_COLOURS[each] for each in present])
    base = alt.Chart(drawn).encode(
        x=alt.X("title:N", title=None, sort=[each.title for each in DEFINITIONS.values()], axis=_AXIS),
        y=alt.Y("line:N", title=None, sort=lines),
    )
    colour = alt.Color("shown:N", title=None, scale=scale, sort=present, legend=_LEGEND)
    cells = base.mark_rect(stroke="#c9d1d9").encode(color=colour)
    numbers = base.mark_text(fontSize=11, color=INK).encode(text="number:N")
    note = shortened(len(chosen), len(order), "partitions; those on which most tools disagree come first")
    chart: Chart = alt.layer(cells, numbers).properties(
        width=alt.Step(max(64, 7 * longest + 4)), height=alt.Step(24), title=titled(title, [note])
    )
    return chart


def verdict_timeline(
    verdict_spans: IntoDataFrame, incidents: IntoDataFrame | None = None, title: str = "Verdicts over time"
) -> Chart:
    """``analyze.verdict_spans`` → a line per partition, a bar per span, coloured by what was reported; UTC.

    At most ``MAX_LINES`` partitions are drawn, those that were longest not well, and of them the last ``MAX_SPANS``
    spans. ``incidents`` (group_id, from_ms, until_ms) of the groups that are drawn are marked in grey.
    """
    every = frame_of(verdict_spans)
    if every.is_empty():
        return nothing(title)
    rows = every.with_columns(line=_line(every), lasted=pl.col("until_ms") - pl.col("from_ms"))
    bad = rows.group_by("line").agg(bad=pl.col("lasted").filter(pl.col("status") != "OK").sum())
    lines = bad.sort("bad", "line", descending=[True, False])["line"].to_list()
    chosen = rows.filter(pl.col("line").is_in(lines[:MAX_LINES])).sort("from_ms")
    drawn = chosen.tail(MAX_SPANS).with_columns(_at("from_ms"), _at("until_ms"))
    present = [*(each for each in _STATUSES if each in set(drawn["status"]))]
    present += sorted(set(drawn["status"]) - set(_STATUSES))
    scale = alt.Scale(domain=present, range=[_STATUSES.get(each, "#8a6d9e") for each in present])
    bars = (
        alt.Chart(drawn)
        .mark_bar(height={"band": 0.75}, minBandSize=2)
        .encode(
            x=alt.X("from_at:T", title=None, scale=alt.Scale(type="utc")),
            x2="until_at:T",
            y=alt.Y("line:N", title=None, sort=lines[:MAX_LINES]),
            color=alt.Color("status:N", title=None, scale=scale, sort=present, legend=_LEGEND),
        )
    )
    notes = [
        shortened(min(len(lines), MAX_LINES), len(lines), "partitions; those with the longest trouble come first"),
        shortened(len(drawn), len(chosen), "time spans; the last ones are shown"),
    ]
    layers, marked = [bars], _incidents(incidents, drawn)
    if len(marked):
        times = {"x": "from_at:T", "x2": "until_at:T"}
        line = alt.Y("line:N", title=None, sort=lines[:MAX_LINES])
        band = alt.Chart(marked).mark_rect(color=INK, opacity=0.3).encode(**times, y=line)
        layers, notes = [band, bars], [*notes, "Grey: event in the group"]
    chart: Chart = alt.layer(*layers).properties(width=760, height=alt.Step(20), title=titled(title, notes))
    return chart


def ages_of_groups(group_outlook: IntoDataFrame, title: str = "Age of the oldest unread record") -> Chart:
    """``analyze.group_outlook`` → a bar per group from the lower to the upper bound, a tick at the likeliest age.

    At most ``MAX_LINES`` groups with an unread record are drawn, the latest ones. An open bar, in orange, has no upper
    bound.
    """
    late = frame_of(group_outlook).filter(pl.col("lower_ms").is_not_null() & (pl.col("lag") > 0))
    if late.is_empty():
        return nothing(title)
    late = late.with_columns(line=labels(late, "store", True) if late["store"].n_unique() > 1 else "group_id")
    drawn = late.sort("lower_ms", "line", descending=[True, False]).head(MAX_LINES)
    seconds = {name: pl.col(f"{name}_ms") / 1000 for name in ("lower", "upper", "time_lag")}
    drawn = drawn.with_columns(**seconds, bound=pl.col("upper_ms").is_null().replace_strict(_BOUNDS))
    drawn = drawn.with_columns(upper=pl.coalesce("upper", "lower"))
    most = max(1.0, *drawn["upper"])
    marks = [second for second in _MARKS if second <= most]
    axis = alt.Axis(values=marks, labelExpr=_AGE, labelOverlap=True)
    lines = alt.Y("line:N", title=None, sort=drawn["line"].to_list())
    ages = alt.Scale(type="symlog", domain=[0, most])
    present = sorted(set(drawn["bound"]))
    colours = alt.Scale(domain=present, range=["#d1603d" if each == _BOUNDS[True] else "#9db8d2" for each in present])
    base = alt.Chart(drawn.select("line", "lower", "upper", "time_lag", "bound")).encode(y=lines)
    bars = base.mark_bar(height={"band": 0.6}).encode(
        x=alt.X("lower:Q", title=None, scale=ages, axis=axis),
        x2="upper:Q",
        color=alt.Color("bound:N", title=None, scale=colours, sort=present, legend=_LEGEND),
    )
    ticks = [
        base.mark_tick(color=INK, thickness=2, height={"band": 0.8}).encode(x=alt.X(f"{name}:Q", scale=ages))
        for name in ("lower", "time_lag")
    ]
    note = shortened(len(drawn), len(late), "groups; those with the oldest unread record come first")
    chart: Chart = alt.layer(bars, *ticks).properties(width=560, height=alt.Step(20), title=titled(title, [note]))
    return chart


def hours_heatmap(lag_by_hour: IntoDataFrame, title: str = "The largest lag of each hour") -> Chart:
    """``analyze.lag_by_hour`` → group × hour of UTC, coloured by lag in records on a logarithmic scale.

    At most ``MAX_LINES`` groups are drawn, those with the most lag. An hour without an observation is blank.
    """
    every = frame_of(lag_by_hour)
    known = every.drop_nulls("max_lag")
    if known.is_empty():
        return nothing(title)
    known = known.with_columns(line=labels(known, "store", True) if known["store"].n_unique() > 1 else "group_id")
    worst = known.group_by("line").agg(pl.col("max_lag").max()).sort("max_lag", "line", descending=[True, False])
    lines = worst["line"].head(MAX_LINES).to_list()
    drawn = known.filter(pl.col("line").is_in(lines)).with_columns(_at("hour_ms"))
    most = max(1, *drawn["max_lag"].to_list())
    scale = alt.Scale(type="symlog", domain=[0, most], range=["#edf2f7", "#6f9bc8", "#1d3f66"])
    legend = alt.Legend(orient="bottom", labelExpr="format(datum.value, '.3~s')", gradientLength=240)
    n_hours = drawn["hour_ms"].n_unique()
    drawn = drawn.with_columns(until_at=pl.col("hour_at").dt.offset_by("1h"))
    notes = [shortened(len(lines), len(worst), "groups; those with the most lag come first")]
    chart: Chart = (
        alt.Chart(drawn)
        .mark_rect(stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("hour_at:T", title=None, scale=alt.Scale(type="utc")),
            x2="until_at:T",
            y=alt.Y("line:N", title=None, sort=lines),
            color=alt.Color("max_lag:Q", title="lag (records)", scale=scale, legend=legend),
        )
        .properties(width=min(760, max(240, 30 * n_hours)), height=alt.Step(18), title=titled(title, notes))
    )
    return chart


def _at(name: str) -> pl.Expr:
    return pl.from_epoch(name, "ms").dt.replace_time_zone("UTC").alias(name.replace("_ms", "_at"))


def _incidents(incidents: IntoDataFrame | None, drawn: pl.DataFrame) -> pl.DataFrame:
    if incidents is None:
        return pl.DataFrame()
    lines = drawn.select("group_id", "line").unique()
    return frame_of(incidents).join(lines, on="group_id").select("line", _at("from_ms"), _at("until_ms"))


_LEGEND = alt.Legend(orient="bottom")
_AXIS = alt.Axis(orient="top", labelAngle=-35, ticks=False, domain=False, labelLimit=200)


def _line(rows: pl.DataFrame) -> pl.Expr:
    """The group's name only where there are several, and the store's."""
    place = pl.format("{}-{}", "topic", "partition")
    if rows["store"].n_unique() > 1:
        place = pl.format("{} in {}", place, "store")
    return pl.format("{} · {}", "group_id", place) if rows["group_id"].n_unique() > 1 else place


def _number() -> pl.Expr:
    digits = pl.col("lag").map_elements(lambda lag: f"{lag:,}", return_dtype=pl.String)
    return pl.when("is_listed").then(digits.fill_null("–")).otherwise(pl.lit(""))
