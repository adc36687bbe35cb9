"""Read the tables of a notebook's outputs, or of a page."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any, TypeAlias

from bs4 import BeautifulSoup

Row: TypeAlias = dict[str, "int | float | str | None"]
THIN_SPACE = "\u2009"


def of_html(html: str) -> list[list[Row]]:
    """Every table with a head: a list of rows by column name."""
    tables = BeautifulSoup(html, "html.parser").find_all("table")
    return [_rows(table) for table in tables if table.select("thead th")]


def of_notebook(notebook: Any) -> list[list[Row]]:
    """The tables of all outputs."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [table for output in outputs for table in of_html(output.get("data", {}).get("text/html", ""))]


def searchable(html: str) -> list[Row]:
    """The rows of the page's folded table, by heading: they stand in its script as JSON."""
    data, head = (re.search(rf'"{name}": (".*"),\n', html)[1] for name in ("data_json", "table_html"))  # type: ignore
    names = [cell.get_text(strip=True) for cell in BeautifulSoup(json.loads(head), "html.parser").find_all("th")]
    return [dict(zip(names, map(_plain, row), strict=True)) for row in json.loads(json.loads(data))]


def _plain(value: Any) -> Any:
    """A float is a pair: as it is shown, and as it is sorted."""
    return value[1] if isinstance(value, list) else unescape(value) if isinstance(value, str) else value


def with_columns(tables: list[list[Row]], *columns: str) -> list[Row]:
    """The only table that has rows and all these columns."""
    found = [table for table in tables if table and table[0].keys() >= set(columns)]
    assert len(found) == 1, f"{len(found)} tables with {columns}"
    return found[0]


def _rows(table: Any) -> list[Row]:
    names = [_name(cell) for cell in table.find("thead").find_all("th")]
    lines = [line.find_all("td") for line in table.find("tbody").find_all("tr")]
    texts = [[cell.get_text(strip=True).replace("\u00a0", " ") for cell in line] for line in lines]
    return [dict(zip(names, map(_value, line), strict=True)) for line in texts]


def _name(cell: Any) -> str:
    """Return the column's name of a heading for people; the name is in its title."""
    titled = cell.find(title=True)
    return str(titled["title"]) if titled else str(cell.get_text(strip=True))


def _value(text: str) -> int | float | str | None:
    if text == "–":
        return None
    for kind in (int, float):
        try:
            return kind(text.replace(THIN_SPACE, ""))
        except ValueError:
            continue
    return text
