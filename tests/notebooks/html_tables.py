"""What the tables of a notebook's outputs, or of a page, say."""

from __future__ import annotations

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


def with_columns(tables: list[list[Row]], *columns: str) -> list[Row]:
    """The only table that has rows and all these columns."""
    found = [table for table in tables if table and table[0].keys() >= set(columns)]
    assert len(found) == 1, f"{len(found)} tables with {columns}"
    return found[0]


def _rows(table: Any) -> list[Row]:
    names = [cell.get_text(strip=True) for cell in table.find("thead").find_all("th")]
    lines = [[cell.get_text(strip=True) for cell in line.find_all("td")] for line in table.find("tbody").find_all("tr")]
    return [dict(zip(names, map(_value, line), strict=True)) for line in lines]


def _value(text: str) -> int | float | str | None:
    if text == "–":
        return None
    for kind in (int, float):
        try:
            return kind(text.replace(THIN_SPACE, ""))
        except ValueError:
            continue
    return text
