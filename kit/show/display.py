"""How tables and charts look in a notebook and in a report: drawn offline, no types, unknown as a dash.

Beside a kernel that holds credentials: whatever is no number becomes text here, visible and escaped, whatever its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl

from kit.analyze.time_format import with_worded_times
from kit.text.visible import cell, html_text

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MAX_ROWS = 1_000
_PROSE = {"sentence", "example", "error", "next_step"}
_CELL = "padding: .2em .7em; vertical-align: top; border-bottom: 1px solid #8883;"


def prepare() -> None:
    """Set this kernel's charts to SVG: for notebooks that draw some. Altair takes two seconds to load."""
    from kit.show import charts

    charts.enable_svg()


def table(frame: pl.DataFrame) -> Styler:
    """A small frame as an HTML table: digits grouped, two decimals, ``–`` for unknown; at most ``MAX_ROWS`` rows.

    Only sentences wrap; times are to the second, UTC unless ``is_utc`` says otherwise of a row. Text stays text: no
    name is markup, a link, or mathematics to JupyterLab.
    """
    if frame.is_empty():
        return pd.DataFrame({"": ["Nothing found."]}).style.hide(axis="index").hide(axis="columns")
    worded = _in_words(with_worded_times(frame.head(MAX_ROWS)))
    # Pandas makes a class of the columns' names: they become numbers, and stand in the head only.
    names = {str(at): name for at, name in enumerate(worded.columns)}
    worded.columns = list(names)
    styler = worded.to_pandas(types_mapper=pd.ArrowDtype).style.hide(axis="index")
    styler = styler.format(na_rep="–", thousands="\u2009", precision=2, escape="html")
    styler = styler.format_index(lambda at: html_text(names[at]), axis="columns")
    styler = styler.set_table_attributes('class="mathjax_ignore tex2jax_ignore"')
    numbers = [at for at, kind in worded.schema.items() if kind.is_numeric()]
    words = [at for at in names if at not in numbers]
    styler = styler.set_table_styles([{"selector": "th, td", "props": _CELL}, *_heads(worded, numbers)])
    styler = styler.set_properties(subset=numbers, **{"text-align": "right", "font-variant-numeric": "tabular-nums"})
    styler = styler.set_properties(subset=words, **{"text-align": "left"})
    styler = styler.set_properties(subset=[at for at in words if names[at] not in _PROSE], **{"white-space": "nowrap"})
    return styler if len(frame) <= MAX_ROWS else styler.set_caption(f"the first {MAX_ROWS:,} of {len(frame):,} rows")


def _in_words(frame: pl.DataFrame) -> pl.DataFrame:
    """Every column that holds no numbers as text: pandas escapes text alone, not what is in a list."""
    named = {name: frame[name] for name, kind in frame.schema.items() if not kind.is_numeric()}
    words = [[None if value is None else cell(value) for value in column.to_list()] for column in named.values()]
    return frame.with_columns(pl.Series(name, each, pl.String) for name, each in zip(named, words))


def _heads(frame: pl.DataFrame, numbers: list[str]) -> list[dict[str, str]]:
    sides = ("right" if name in numbers else "left" for name in frame.columns)
    return [{"selector": f"th.col{at}", "props": f"text-align: {side};"} for at, side in enumerate(sides)]
