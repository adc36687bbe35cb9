"""Define the common part of charts: their style, on white, so that light, dark and paper show the same; texts that can
be drawn.

JupyterLab without a network draws Altair's ``svg`` renderer only: call ``enable_svg()`` once per notebook.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import altair as alt
import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.text.visible import cell

Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart

LONGEST_LABEL = 44
LONGEST_TITLE = 160
"""Characters of one text that a chart draws: measuring longer ones takes the drawing library seconds each."""

BLUE, ORANGE, INK, QUIET, _FAINT = "#3b6ea5", "#d1603d", "#22313f", "#5c6b7a", "#e3e7eb"
_TAG = re.compile(r"""<[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*>""")
_ID = re.compile(r'(\bid="|="url\(#)([^")]+)(\)?")')
_OWN_ID = re.compile(r'(\bid="|="url\(#)@-')
_PROPERTIES = frozenset(
    (
        *("constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString"),
        *("valueOf", "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"),
    )
)
_TEXT = {"labelColor": QUIET, "titleColor": INK, "labelFontSize": 11, "titleFontSize": 11}
_CONFIG: Any = {
    "background": "white",
    "padding": 12,
    "font": "DejaVu Sans, Helvetica, Arial, sans-serif",
    "title": {
        "anchor": "start",
        "color": INK,
        "fontSize": 14,
        "subtitleColor": QUIET,
        "subtitleFontSize": 11,
        "subtitlePadding": 4,
        "offset": 12,
    },
    "axis": {**_TEXT, "titleFontWeight": "normal", "gridColor": _FAINT, "domainColor": QUIET, "labelLimit": 320},
    "legend": {**_TEXT, "titleFontWeight": "normal", "labelLimit": 240},
    "header": {**_TEXT, "titleFontSize": 12},
    "view": {"stroke": None},
}


@alt.theme.register("offramp", enable=False)
def _theme() -> alt.theme.ThemeConfig:
    return {"config": _CONFIG}


def enable_svg() -> None:
    """Draw every Altair chart of this kernel as SVG in offramp's style; nothing is loaded from a network."""
    alt.renderers.enable("svg")
    alt.theme.enable("offramp")


def svg(chart: Chart) -> str:
    """One self-contained ``<svg>`` element; the same rows give the same text.

    Ids are the chart's own, so several can be in one page.
    """
    with alt.theme.enable("offramp"):
        drawn = io.StringIO()
        chart.save(drawn, format="svg")
    return with_own_ids(drawn.getvalue())


def with_own_ids(text: str) -> str:
    """Vega numbers its ids by the process: here they are numbered by the chart and carry its digest.

    In tags alone: what is drawn as text may report anything.
    """
    numbers: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return f"{match[1]}@-{numbers.setdefault(match[2], len(numbers))}{match[3]}"

    text = _TAG.sub(lambda tag: _ID.sub(numbered, tag[0]), text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return _TAG.sub(lambda tag: _OWN_ID.sub(rf"\g<1>c{digest}-", tag[0]), text)


def frame_of(frame: IntoDataFrame) -> pl.DataFrame:
    """The rows to draw, their texts made visible and short; those that differ do so still.

    SVG can't hold control characters at all.
    """
    rows = nw.from_native(frame, eager_only=True).to_polars()
    return rows.with_columns(_visible(rows[name]) for name, kind in rows.schema.items() if kind == pl.String)


def labels(drawn: pl.DataFrame, name: str, has_groups: bool) -> pl.Series:
    """Members of several groups may be named alike: then the group's name comes first."""
    if not has_groups:
        return drawn[name]
    return _visible(drawn.select(pl.col("group_id").fill_null("?") + pl.lit(" · ") + pl.col(name)).to_series())


def _visible(texts: pl.Series) -> pl.Series:
    spelled: dict[str, str] = {}
    counts: dict[str, int] = {}
    for text in texts.unique(maintain_order=True).drop_nulls():
        shown = drawn_text(text)
        counts[shown] = counts.get(shown, 0) + 1
        spelled[text] = shown if counts[shown] == 1 else f"{shown} ({counts[shown]})"
    changed = {text: shown for text, shown in spelled.items() if text != shown}
    return texts.replace(changed) if changed else texts


def nothing(title: str, notes: Sequence[str] = ()) -> Chart:
    note = alt.Chart(pl.DataFrame({"note": ["nothing to show"]})).mark_text(color=QUIET, fontSize=13)
    chart: Chart = note.encode(text="note:N").properties(width=320, height=60, title=titled(title, notes))
    return chart


def drawn_text(text: str, longest: int = LONGEST_LABEL) -> str:
    """A text as it is drawn, … in the middle of a long one.

    Vega takes the name of a property of every JavaScript object for that property.
    """
    shown = cell(text)
    if len(shown) > longest:
        shown = f"{shown[: longest // 2]}…{shown[1 - longest // 2 :]}"
    return f"{shown} " if shown in _PROPERTIES else shown


def titled(title: str, notes: Sequence[str]) -> alt.TitleParams:
    words = [drawn_text(text, LONGEST_TITLE) for text in (title, *notes) if text]
    return alt.TitleParams(words[0] if title else "", subtitle=words[1:] if title else words)


def shortened(n_drawn: int, n_all: int, what: str) -> str:
    return "" if n_drawn == n_all else f"{n_drawn} of {n_all:,} {what}"
