"""A whole table of thousands of rows, folded away: to search and to sort in a browser, without a network.

DataTables draws it, by way of itables. Names are text there as everywhere: made visible here, escaped by itables.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Any

import polars as pl
from itables import JavascriptFunction, options
from itables.javascript import generate_init_offline_itables_html, to_html_datatable

from kit.presentation.headings import heading
from kit.text.time_format import with_worded_times
from kit.text.visible import cell, html_text

_TO_ITS_SITE = re.compile(r"<a href=[^>]*>.*?</a>|\(need .*?\?\)", re.DOTALL)
_OPTIONS: dict[str, Any] = {
    "connected": False,
    "display_logo_when_loading": False,
    "showIndex": False,
    "show_dtypes": False,
    "allow_html": False,
    "autoWidth": False,  # Folded away, its columns have no width to measure.
    "maxBytes": 0,
    "maxRows": 0,
    "maxColumns": 0,
    "lengthMenu": [25, 100, 1000],
    "classes": "display compact nowrap",
    "style": "width:100%;margin:0",
}

# The library's dark style goes by a class: as JupyterLab reports where it is there, else as the browser does.
_DARK = """<script>{
const light = document.body.dataset.jpThemeLight, dark = matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.classList.toggle("dark", light === undefined ? dark : light === "false");
}</script>"""


_STYLE = """<style>.whole-table table.dataTable tbody td:first-child {
white-space: normal; overflow-wrap: anywhere; min-width: 14em; }</style>"""
"""A name of 249 characters would push all numbers out of sight."""


_GROUPED = JavascriptFunction(
    "function (data, type) { return type === 'display' && typeof data === 'number' ? data.toLocaleString('en') : data }"
)
"""Digits of a number as all other tables have them; sorted and searched is the number."""


class Searchable:
    """``frame`` as HTML with its own script, some 1.4 MB before the first row; as plain text only its summary.

    Meant once per page.
    """

    def __init__(self, frame: pl.DataFrame, summary: str) -> None:
        self._frame, self._summary = frame, summary

    def __repr__(self) -> str:
        return self._summary

    def _repr_html_(self) -> str:
        inside = f"<summary>{html_text(self._summary)}</summary>{_STYLE}{_DARK}{_library()}{_table(self._frame)}"
        return f'<details class="whole-table" style="overflow-x:auto">{inside}</details>'


def _library() -> str:
    """The script and its style, without its message to readers of a notebook that is not trusted."""
    page: str = generate_init_offline_itables_html(options.dt_bundle)
    return page[: page.rindex("</script>") + len("</script>")]


def _table(frame: pl.DataFrame) -> str:
    worded = with_worded_times(frame)
    texts = [name for name, kind in worded.schema.items() if not kind.is_numeric()]
    shown = [pl.Series(name, [cell(value) for value in worded[name].to_list()], pl.String) for name in texts]
    rounded = worded.with_columns(pl.col(pl.Float64, pl.Float32).round(2)).with_columns(shown)
    own_id = hashlib.sha256(" ".join(frame.columns).encode()).hexdigest()[:8]
    numbers = [at for at, kind in enumerate(rounded.dtypes) if kind.is_numeric()]
    columns: list[dict[str, Any]] = [
        {"targets": numbers, "type": "num", "className": "dt-right", "render": _GROUPED},
        {"targets": "_all", "defaultContent": "–"},
    ]
    named = rounded.rename(_heads(frame.columns))
    html: str = to_html_datatable(named, table_id=f"all-{own_id}", columnDefs=columns, **_OPTIONS)
    before, script, after = html.partition("<script")
    return f"{_TO_ITS_SITE.sub('', before)}{script}{after}"


def _heads(names: list[str]) -> dict[str, str]:
    """Two columns that would share a heading keep their own names."""
    counts = Counter(map(heading, names))
    return {name: cell(heading(name) if counts[heading(name)] == 1 else name) for name in names}
