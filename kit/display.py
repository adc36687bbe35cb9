"""How tables and charts look in a notebook and in a report: drawn offline, no types, unknown as a dash."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import polars as pl

from kit import charts

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

MAX_ROWS = 1_000
_CELL = "padding: .2em .7em; text-align: left; vertical-align: top; border-bottom: 1px solid #8883;"


def prepare() -> None:
    """Set this kernel's charts to SVG."""
    charts.enable_svg()


def table(frame: pl.DataFrame) -> Styler:
    """A small frame as an HTML table: digits grouped, two decimals, ``–`` for unknown; at most ``MAX_ROWS`` rows."""
    shown = frame.head(MAX_ROWS).to_pandas(types_mapper=pd.ArrowDtype)
    styler = shown.style.hide(axis="index").format(na_rep="–", thousands="\u2009", precision=2, escape="html")
    numbers = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    styler = styler.set_table_styles([{"selector": "th, td", "props": _CELL}])
    styler = styler.set_properties(subset=numbers, **{"text-align": "right", "font-variant-numeric": "tabular-nums"})
    if len(frame) > MAX_ROWS:
        styler = styler.set_caption(f"the first {MAX_ROWS:,} of {len(frame):,} rows")
    return styler if not frame.is_empty() else styler.set_caption("no rows")
