"""The form of tables and charts in a notebook and in a report: drawn offline, no types, unknown as a dash.

Beside a kernel that holds credentials: whatever is no number becomes text here, visible and escaped, whatever its type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl

from kit.presentation.headings import heading, worded
from kit.text.quantity import quantity
from kit.text.time_format import with_worded_times
from kit.text.visible import cell, html_text

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MAX_ROWS = 1_000
_PROSE = {"sentence", "example", "error", "evidence", "next_step", "remedy", "value"}
_BOUNDS = {"age", "closed_in", "unread_deleted_in"}
"""From – to: a line each where there is little room, each in one piece."""
_ONE_PIECE = {r"(\d) (\pL)": "${1}\u00a0${2}", r"\b(d|h|min) (\d)": "${1}\u00a0${2}", " –": "\u00a0–"}
_LONG, _PHRASE = 60, 30
"""Characters above which a column wraps, of names and of texts with blanks: a long one pushes others off the page."""
_CELL = "padding: .2em .7em; vertical-align: top; border-bottom: 1px solid #8883;"


def prepare() -> None:
    """Set this kernel's charts to SVG: for notebooks that draw some. Altair takes two seconds to load."""
    from kit.presentation.chart import enable_svg

    enable_svg()


def table(frame: pl.DataFrame, anchor: str = "", links: Sequence[str] = (), rows: int = MAX_ROWS) -> Styler:
    """A small frame as an HTML table: digits grouped, two decimals, ``–`` for unknown; the first ``rows`` rows.

    Headings are for people, the column's name is reported where the pointer rests. A column ``error`` without any goes.
    Only sentences, bounds and long names wrap; times are to the second, UTC unless ``is_utc`` reports otherwise of a
    row. Text stays text: no name is markup, a link, or mathematics to JupyterLab.

    Args:
        anchor: a column whose values are places of the page: links lead there. At most one table of a page has it.
        links: columns whose values are links to those places.
    """
    if frame.is_empty():
        return pd.DataFrame({"": ["Nothing found."]}).style.hide(axis="index").hide(axis="columns")
    if "error" in frame.columns and frame["error"].null_count() == len(frame):
        frame = frame.drop("error")
    texts = _in_words(with_worded_times(frame.head(rows)))
    # Pandas makes a class of the columns' names: they become numbers, and are in the head only.
    names = {str(at): name for at, name in enumerate(texts.columns)}
    texts.columns = list(names)
    styler = texts.to_pandas(types_mapper=pd.ArrowDtype).style.hide(axis="index")
    styler = styler.format(na_rep="–", thousands=",", precision=2, escape="html")
    places = {at: _place if name == anchor else _link for at, name in names.items() if name in (anchor, *links)}
    styler = styler.format(places, na_rep="–", escape="html", subset=list(places)) if places else styler
    styler = styler.format_index(lambda at: _head(names[at]), axis="columns")
    styler = styler.set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
    numbers = [at for at, kind in texts.schema.items() if kind.is_numeric()]
    words = [at for at in names if at not in numbers]
    styler = styler.set_table_styles([{"selector": "th, td", "props": _CELL}, *_heads(texts, numbers)])
    styler = styler.set_properties(subset=numbers, **{"text-align": "right", "font-variant-numeric": "tabular-nums"})
    styler = styler.set_properties(subset=words, **{"text-align": "left"})
    long = [at for at in words if names[at] in _PROSE or max(map(len, texts[at].drop_nulls()), default=0) > _LONG]
    phrases = [at for at in words if at not in long and any(map(_is_phrase, texts[at].drop_nulls()))]
    short = [at for at in words if at not in (*long, *phrases) and names[at] not in _BOUNDS]
    styler = styler.set_properties(subset=short, **{"white-space": "nowrap"})
    styler = styler.set_properties(subset=phrases, **{"min-width": "9em"})
    styler = styler.set_properties(subset=long, **{"min-width": "15em", "overflow-wrap": "anywhere"})
    return styler if len(frame) <= rows else styler.set_caption(f"the first {rows:,} of {quantity(len(frame), 'row')}")


def _is_phrase(text: str) -> bool:
    """Words that wrap between them; a name in the same column is not broken."""
    return " " in text and len(text) > _PHRASE


def _head(name: str) -> str:
    label = heading(name)
    return html_text(name) if label == name else f'<span title="{html_text(name)}">{html_text(label)}</span>'


def _place(escaped: str) -> str:
    return f'<span id="{_place_of(escaped)}">{escaped}</span>'


def _link(escaped: str) -> str:
    return f'<a href="#{_place_of(escaped)}">{escaped}</a>'


def _place_of(escaped: str) -> str:
    return f"at-{hashlib.sha256(escaped.encode()).hexdigest()[:12]}"


def _in_words(frame: pl.DataFrame) -> pl.DataFrame:
    """Every column that holds no numbers as text: pandas escapes text alone, not what is in a list."""
    named = {name: frame[name] for name, kind in frame.schema.items() if not kind.is_numeric()}
    words = [
        [None if value is None else worded(name, cell(value)) for value in column.to_list()]
        for name, column in named.items()
    ]
    frame = frame.with_columns(pl.Series(name, each, pl.String) for name, each in zip(named, words))
    bounds = pl.col([name for name in named if name in _BOUNDS])
    for blank, unbroken in _ONE_PIECE.items():
        bounds = bounds.str.replace_all(blank, unbroken)
    return frame.with_columns(bounds)


def _heads(frame: pl.DataFrame, numbers: list[str]) -> list[dict[str, str]]:
    sides = ("right" if name in numbers else "left" for name in frame.columns)
    wrapped = {"selector": "th", "props": "white-space: normal; vertical-align: bottom;"}
    return [wrapped, *({"selector": f"th.col{at}", "props": f"text-align: {side};"} for at, side in enumerate(sides))]
