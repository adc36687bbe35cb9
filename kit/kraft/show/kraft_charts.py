"""A cluster on its way from ZooKeeper to KRaft, as pictures. In the style of ``kit.presentation.chart``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import altair as alt
import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.kraft.analyze.phase import NO_ZOOKEEPER, PHASES, UNKNOWN
from kit.kraft.analyze.soak import GAPS
from kit.presentation import axes
from kit.presentation.chart import INK, Chart, drawn_text, frame_of, nothing, shortened, titled
from kit.text.quantity import quantity

MAX_DOTS = 120
MAX_LINES = 30
MAX_KINDS = 20
MAX_POINTS = 400
_PALE, _RED, _AMBER = "#f4f6f8", "#b3372b", "#e0a458"
_PHASE_COLOURS = dict(
    zip((*PHASES, NO_ZOOKEEPER, UNKNOWN), ("#d8b04a", "#ecd9a0", "#9cc0e0", "#3b6ea5", "#1d3f66", "#9db8d2", "#c4cad0"))
)
_VERDICT_COLOURS = {
    "equal": "#9db8d2",
    "expected": "#c9d6c0",
    "in flight": _AMBER,
    "diverged": _RED,
    "unknown": "#c4cad0",
}
_DOT_COLOURS = {
    "broker, ZooKeeper mode": "#b8891c",
    "broker, migration mode": "#5b94c7",
    "broker, KRaft mode": "#1d3f66",
    "controller": "#6b5b8a",
    "controller, no flag": "#cfc8dc",
    "no answer": _RED,
}
_CELL_COLOURS = {
    "ZooKeeper mode": "#f3e6b3",
    "migration mode": "#cfe0f1",
    "KRaft mode": "#9db8d2",
    "leads": "#9db8d2",
    "follows": "#cfe0f1",
    "no answer": "#f0c4bd",
    UNKNOWN: "#f0c4bd",
}
_BOX, _STEP, _PER_LINE, _HEAD, _MARGIN = 144, 32, 4, 36, 24
_CIRCLE, _SQUARE, _RING = 420, 560, 640
"""Areas in pixels: an id of four digits fits into each, and rings side by side do not touch."""
_DIGITS, _FONT, _SMALLEST = 4, 8, 5
"""A longer id is drawn smaller."""
_MODES = {"zookeeper": "ZooKeeper mode", "migration": "migration mode", "kraft": "KRaft mode"}
_OPEN = ("n_diverged", "n_in_flight", "n_unknown")
_WIDTH = 700


def phase_strip(places: IntoDataFrame, phase: str = UNKNOWN, title: str = "Phase of the cluster") -> Chart:
    """``tables.KRAFT_NODES`` → a box per phase, the cluster's filled, and in each a dot per node that runs like that.

    A controller is a square; a ring reports that a broker is in ``/brokers/ids``. At
    most ``MAX_DOTS`` nodes are drawn, first those that don't answer or are not in the cluster's phase.
    """
    every = _polars(places)
    if every.is_empty():
        return nothing(title, [f"phase {phase}; no node was read"])
    is_home = (pl.col("stands_at") == phase) & pl.col("error").is_null()
    chosen = frame_of(every.sort(is_home, "role", "node_id", "address", nulls_last=True).head(MAX_DOTS))
    seen = {phase if phase in _PHASE_COLOURS else UNKNOWN, *chosen["stands_at"]}
    named = [*PHASES, *(each for each in (NO_ZOOKEEPER, UNKNOWN) if each in seen)]
    dots = _dots(chosen, named)
    height = _HEAD + _STEP * (1 + max(dots["line"].to_list()))
    size = {"width": _BOX * len(named), "height": height}
    notes = [
        "Square: controller; circle: broker, with a ring if it is in /brokers/ids. Number: id",
        _node_counts(every),
        shortened(len(chosen), len(every), "nodes; those in another phase come first"),
    ]
    layers = [*_boxes(named, phase, size), *_dot_marks(dots, size)]
    chart: Chart = alt.layer(*layers).properties(**size, title=titled(title, notes))
    return chart


def node_grid(places: IntoDataFrame, title: str = "Nodes") -> Chart:
    """``tables.KRAFT_NODES`` → a line per node, a cell per fact.

    At most ``MAX_LINES`` nodes are drawn, first those that don't answer.
    """
    every = _polars(places)
    if every.is_empty():
        return nothing(title)
    chosen = every.sort(pl.col("error").is_null(), "role", "node_id", "address", nulls_last=True).head(MAX_LINES)
    chosen = frame_of(chosen)
    cells = chosen.select(
        pl.Series("line", _names(chosen), pl.String).alias("line"),
        pl.int_range(pl.len()).alias("at"),
        pl.when(pl.col("role") == "broker").then(_mode()).otherwise(_part()).alias("mode"),
        _yes_no("has_flag").alias("migration flag"),
        _yes_no("in_zookeeper").alias("in /brokers/ids"),
        pl.col("registered_as").fill_null("–").alias("in the metadata log"),
        pl.col("stands_at").alias("runs as in phase"),
    )
    facts = cells.columns[2:]
    long = cells.unpivot(on=facts, index=["line", "at"], variable_name="fact", value_name="value")
    bare: dict[str, Any] = {"domain": False, "ticks": False}
    column = alt.X("fact:N", sort=facts, title=None, axis=alt.Axis(orient="top", labelAngle=0, **bare))
    line = alt.Y("at:O", title=None, axis=alt.Axis(labels=False, **bare))
    base = alt.Chart(long).encode(x=column, y=line)
    known = [value for value in _CELL_COLOURS if value in set(long["value"])]
    colours = alt.condition(
        alt.FieldOneOfPredicate("value", known),
        alt.Color("value:N", legend=None, scale=alt.Scale(domain=known, range=[_CELL_COLOURS[each] for each in known])),
        alt.value(_PALE),
    )
    rects = base.mark_rect(stroke="white", strokeWidth=3).encode(color=colours)
    texts = base.mark_text(fontSize=11, color=INK, limit=134).encode(text="value:N")
    heads = alt.Chart(cells).mark_text(align="right", dx=-8, fontSize=11, color=INK)
    heads = heads.encode(x=alt.value(0), y=line, text="line:N")
    notes = [_node_counts(every), shortened(len(chosen), len(every), "nodes; those that don't answer come first")]
    size = {"width": alt.Step(142), "height": alt.Step(26), "title": titled(title, notes)}
    chart: Chart = alt.layer(rects, texts, heads).properties(**size)
    return chart


def verdict_matrix(differences: IntoDataFrame, title: str = "ZooKeeper beside KRaft") -> Chart:
    """``tables.METADATA_DIFFERENCES`` → how many values of each kind have which verdict, a number per cell.

    No bars: one diverged value must be seen beside a million equal ones. At most ``MAX_KINDS`` kinds are drawn.
    """
    rows = frame_of(_polars(differences).select("kind", pl.col("verdict").str.replace_all("_", " ")))
    if rows.is_empty():
        return nothing(title)
    counted = rows.group_by("kind", "verdict").agg(n=pl.len())
    is_fine = pl.col("verdict").is_in(["equal", "expected"])
    kinds = counted.group_by("kind").agg(n_open=pl.col("n").filter(~is_fine).sum(), n=pl.col("n").sum())
    kinds = kinds.sort("n_open", "n", "kind", descending=[True, True, False])
    chosen = kinds["kind"].head(MAX_KINDS).to_list()
    drawn = counted.filter(pl.col("kind").is_in(chosen)).sort("kind", "verdict")
    drawn = drawn.with_columns(label=pl.Series([f"{each:,}" for each in drawn["n"]], dtype=pl.String))
    words = list(_VERDICT_COLOURS)
    bare: dict[str, Any] = {"domain": False, "ticks": False}
    base = alt.Chart(drawn).encode(
        x=alt.X(
            "verdict:N", title=None, scale=alt.Scale(domain=words), axis=alt.Axis(orient="top", labelAngle=0, **bare)
        ),
        y=alt.Y("kind:N", title=None, sort=chosen, axis=alt.Axis(**bare)),
    )
    scale = alt.Scale(domain=words, range=list(_VERDICT_COLOURS.values()))
    rects = base.mark_rect(stroke="white", strokeWidth=3).encode(color=alt.Color("verdict:N", scale=scale, legend=None))
    ink = alt.condition("datum.verdict === 'diverged'", alt.value("white"), alt.value(INK))
    texts = base.mark_text(fontSize=12).encode(text="label:N", color=ink)
    n_equal = rows.filter(pl.col("verdict") == "equal").height
    notes = [f"equal in both stores: {n_equal:,} of {quantity(len(rows), 'value')}"]
    notes.append(shortened(len(chosen), len(kinds), "kinds; those with the most differences come first"))
    size = {"width": alt.Step(96), "height": alt.Step(28), "title": titled(title, notes)}
    chart: Chart = alt.layer(rects, texts).properties(**size)
    return chart


def drift_timeline(states: IntoDataFrame, title: str = "Dual write over time") -> Chart:
    """``tables.KRAFT_STATES`` of many observations → the phase, the records behind, the values that differ, the equal
    ones.

    If a number was not known, or there was no observation, there is a gap. Of more than ``MAX_POINTS`` observations
    some share a point, which shows the worst of each number.
    """
    every = _polars(states).sort("at")
    if every.is_empty():
        return nothing(title)
    drawn, per_point = _sharing_points(every)
    behind, equal = _line(drawn, "lag", "records behind"), _line(drawn, "n_equal", "equal values", is_last=True)
    panels = alt.vconcat(_phases(drawn), behind, _stacked(drawn), equal, spacing=10)
    n_looks = quantity(len(every), "observation")
    looks = (
        f"Observations: {len(every):,}"
        if per_point == 1
        else f"{quantity(drawn['phase'].count(), 'point')} of {n_looks}"
    )
    share = f", each the worst of {per_point}" if per_point > 1 else ""
    n_unread = every["error"].count()
    unread = f"in {n_unread:,} of {quantity(len(every), 'observation')} something could not be read" if n_unread else ""
    titles = titled(title, [f"{looks}{share}", unread])
    chart: Chart = panels.resolve_scale(color="independent").properties(title=titles)
    return chart


def _polars(rows: IntoDataFrame) -> pl.DataFrame:
    return nw.from_native(rows, eager_only=True).to_polars()


# -- nodes -----------------------------------------------------------------------------------------------------------


def _mode() -> pl.Expr:
    return pl.col("mode").replace_strict(_MODES, default="no answer", return_dtype=pl.String)


def _part() -> pl.Expr:
    leads = pl.when(pl.col("is_leader")).then(pl.lit("leads")).otherwise(pl.lit("follows"))
    return pl.when(pl.col("mode").is_null()).then(pl.lit("no answer")).otherwise(leads)


def _yes_no(name: str) -> pl.Expr:
    said = pl.when(pl.col(name)).then(pl.lit("yes")).otherwise(pl.lit("no"))
    return pl.when(pl.col(name).is_null()).then(pl.lit("–")).otherwise(said)


def _names(nodes: pl.DataFrame) -> list[str]:
    rows = nodes.select("role", "node_id", "address").iter_rows()
    parts = ((role, "" if number is None else str(number), address or "") for role, number, address in rows)
    return [drawn_text(" ".join(part for part in named if part)) for named in parts]


def _node_counts(nodes: pl.DataFrame) -> str:
    counts = {role: nodes.filter(pl.col("role") == role).height for role in ("broker", "controller")}
    parts = [f"{count:,} {role}{'' if count == 1 else 's'}" for role, count in counts.items()]
    n_silent = nodes["error"].count()
    return ", ".join([*parts, *([f"{n_silent:,} of {len(nodes):,} don't answer"] if n_silent else [])])


def _dots(nodes: pl.DataFrame, named: Sequence[str]) -> pl.DataFrame:
    """Return where each node is drawn, how, and with which number."""
    is_broker = pl.col("role") == "broker"
    has_no_flag = pl.col("has_flag").eq(False).fill_null(False)
    controller = pl.when(has_no_flag).then(pl.lit("controller, no flag")).otherwise(pl.lit("controller"))
    kind = pl.when(is_broker).then(pl.lit("broker, ") + _mode()).otherwise(controller)
    rows = nodes.sort("role", "node_id", "address", nulls_last=True).select(
        box=pl.col("stands_at").replace_strict({each: at for at, each in enumerate(named)}, default=len(named) - 1),
        kind=pl.when(pl.col("mode").is_null()).then(pl.lit("no answer")).otherwise(kind),
        shape=pl.when(is_broker).then(pl.lit("circle")).otherwise(pl.lit("square")),
        is_pale=~is_broker & has_no_flag,
        has_ring=pl.col("in_zookeeper").fill_null(False),
        number=pl.col("node_id").cast(pl.String).fill_null("?"),
        area=pl.when(is_broker).then(_CIRCLE).otherwise(_SQUARE),
    )
    digits = pl.col("number").str.len_chars()
    rows = rows.with_columns(font=(_DIGITS * _FONT / digits).clip(_SMALLEST, _FONT))
    at = pl.int_range(pl.len()).over("box")
    placed = rows.with_columns(line=at // _PER_LINE, column=at % _PER_LINE)
    return placed.with_columns(
        x=_BOX * pl.col("box") + _STEP * pl.col("column") + 19, y=_HEAD + _STEP * pl.col("line") + 8
    )


def _boxes(named: Sequence[str], phase: str, size: dict[str, Any]) -> list[alt.Chart]:
    here = phase if phase in named else UNKNOWN
    rows = [
        {
            "name": each,
            "left": at * _BOX,
            "right": (at + 1) * _BOX - 6,
            "fill": _PHASE_COLOURS[each] if each == here else _PALE,
            "ink": "white" if each == here and each in PHASES[3:] else INK,
        }
        for at, each in enumerate(named)
    ]
    base = alt.Chart(pl.DataFrame(rows)).encode(x=_place("left", size["width"]), y=alt.value(0))
    box = base.mark_rect(cornerRadius=4, fillOpacity=0.35, stroke="#b9c3cc").encode(
        x2="right:Q", y2=alt.value(size["height"]), color=alt.Color("fill:N", scale=None)
    )
    head = base.mark_rect(cornerRadius=4).encode(
        x2="right:Q", y2=alt.value(_MARGIN), color=alt.Color("fill:N", scale=None)
    )
    names = base.mark_text(align="left", dx=10, dy=13, fontSize=12).encode(
        text="name:N", color=alt.Color("ink:N", scale=None)
    )
    return [box, head, names]


def _dot_marks(dots: pl.DataFrame, size: dict[str, Any]) -> list[alt.Chart]:
    kinds = [kind for kind in _DOT_COLOURS if kind in set(dots["kind"])]
    scale = alt.Scale(domain=kinds, range=[_DOT_COLOURS[kind] for kind in kinds])
    vertical = alt.Y("y:Q", scale=alt.Scale(domain=[size["height"], 0], nice=False), axis=None)
    base = alt.Chart(dots).encode(x=_place("x", size["width"]), y=vertical)
    rings = base.transform_filter("datum.has_ring").mark_point(
        shape="circle", size=_RING, strokeWidth=2, color="#b8891c"
    )
    points = base.mark_point(filled=True, opacity=1).encode(
        size=alt.Size("area:Q", scale=None, legend=None),
        color=alt.Color(
            "kind:N",
            title=None,
            scale=scale,
            sort=kinds,
            legend=alt.Legend(orient="bottom", direction="horizontal", offset=8, symbolStrokeWidth=0),
        ),
        shape=alt.Shape("shape:N", scale=None, legend=None),
    )
    ink = alt.condition("datum.is_pale", alt.value(INK), alt.value("white"))
    size_of_id = alt.Size("font:Q", scale=None, legend=None)
    ids = base.mark_text(fontWeight="bold").encode(text="number:N", color=ink, size=size_of_id)
    return [rings, points, ids]


def _place(name: str, width: int) -> alt.X:
    return alt.X(f"{name}:Q", scale=alt.Scale(domain=[0, width], nice=False), axis=None)


# -- over time -------------------------------------------------------------------------------------------------------


def _sharing_points(states: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """The points to draw, and how many observations share one: its phase is the last, its numbers are the worst of
    them.
    """
    numbers = ["lag", *_OPEN]
    per_point = 1 + (len(states) - 1) // MAX_POINTS
    rows = states.select("at", "phase", "n_equal", *numbers, point=pl.int_range(pl.len()) // per_point)
    drawn = rows.group_by("point", maintain_order=True).agg(
        pl.col("at").first(), pl.col("phase").last(), pl.col("n_equal").min(), *(pl.col(each).max() for each in numbers)
    )
    drawn = frame_of(drawn)
    # An observation lasts until the next one; the last one, and one before a gap, as long as most.
    lasted: Any = drawn["at"].diff().median() or timedelta(seconds=10)
    drawn = drawn.with_columns(until=pl.col("at").shift(-1).fill_null(pl.col("at") + pl.lit(lasted)))
    is_long = pl.col("until") - pl.col("at") > pl.lit(GAPS * lasted)
    unseen = drawn.filter(is_long).select(pl.col("at") + pl.lit(lasted), "until")
    seen = drawn.with_columns(until=pl.when(is_long).then(pl.col("at") + pl.lit(lasted)).otherwise("until"))
    return pl.concat([seen, unseen], how="diagonal").sort("at"), per_point


def _time(drawn: pl.DataFrame, is_last: bool = False) -> alt.X:
    one_day = drawn["at"].dt.date().n_unique() == 1
    form = "%H:%M:%S" if one_day else "%m-%d %H:%M"
    axis = alt.Axis(format=form, labelOverlap=True, tickCount=6, labels=is_last, ticks=is_last)
    span = [int(each.timestamp() * 1000) for each in (drawn["at"][0], drawn["until"][-1])]
    scale = alt.Scale(type="utc", domain=span, nice=False)
    return alt.X("at:T", title="time (UTC)" if is_last else None, scale=scale, axis=axis)


def _count(field: str, title: str, most: int | None) -> alt.Y:
    scale = alt.Scale(domain=[0, max(1, most or 0)])
    return alt.Y(field, title=title, scale=scale, axis=axes.of_counts(format="~s", tickCount=4))


def _phases(drawn: pl.DataFrame) -> alt.Chart:
    present = [phase for phase in _PHASE_COLOURS if phase in set(drawn["phase"])]
    scale = alt.Scale(domain=present, range=[_PHASE_COLOURS[phase] for phase in present])
    legend = alt.Legend(orient="top", direction="horizontal", offset=4)
    colour = alt.Color("phase:N", title=None, scale=scale, sort=present, legend=legend)
    bars: alt.Chart = alt.Chart(drawn.drop_nulls("phase")).mark_rect()
    bars = bars.encode(x=_time(drawn), x2="until:T", color=colour)
    return bars.properties(width=_WIDTH, height=14)


def _line(drawn: pl.DataFrame, name: str, title: str, is_last: bool = False) -> Any:
    rows = drawn.select("at", "until", pl.col(name).alias("n"))
    most: Any = rows["n"].max()
    base = alt.Chart(rows).encode(x=_time(drawn, is_last), y=_count("n:Q", title, most))
    line = base.mark_line(interpolate="step-after", color="#3b6ea5", strokeWidth=1.5)
    dots = base.mark_circle(size=14, color="#3b6ea5", opacity=1)
    return alt.layer(line, dots, width=_WIDTH, height=80)


def _stacked(drawn: pl.DataFrame) -> alt.Chart:
    """Values that are diverged, in flight and unknown, one above the other."""
    words = {each: each.removeprefix("n_").replace("_", " ") for each in _OPEN}
    tops = [pl.sum_horizontal(_OPEN[: at + 1]).alias(words[each]) for at, each in enumerate(_OPEN)]
    long = drawn.select("at", "until", *tops).unpivot(index=["at", "until"], variable_name="verdict", value_name="top")
    floor = pl.col("top").shift(1).over("at", order_by=pl.col("verdict").cast(pl.Enum(list(words.values()))))
    long = long.with_columns(floor=floor.fill_null(0))
    scale = alt.Scale(domain=list(words.values()), range=[_VERDICT_COLOURS[each] for each in words.values()])
    most: Any = long["top"].max()
    rects: alt.Chart = alt.Chart(long.filter(pl.col("top") > pl.col("floor"))).mark_rect()
    return rects.encode(
        x=_time(drawn),
        x2="until:T",
        y=_count("floor:Q", "values that differ", most),
        y2="top:Q",
        color=alt.Color("verdict:N", title=None, scale=scale, legend=alt.Legend(orient="right")),
    ).properties(width=_WIDTH, height=80)
