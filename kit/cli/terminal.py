"""How the command line speaks: options that verbs share, tables, and errors as one line with an exit code.

Whatever is told goes through here as :class:`rich.text.Text`, made visible: no name is markup, none moves the cursor,
none begins a line. JSON is exact, in ASCII.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kit.analyze.time_format import with_worded_times
from kit.errors import OfframpError, PartialRead
from kit.text.visible import cell, visible

ProfileName = Annotated[
    str | None, typer.Option("--profile", "-p", help="Cluster of offramp.toml; by default its only one.")
]
ProfileFile = Annotated[Path | None, typer.Option("--profile-file", help="offramp.toml to read.")]

# A pipe has no width of its own; a file of 80 columns would fold every table.
_WIDTH = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200


class _Screen(Console):
    def on_broken_pipe(self) -> None:
        """Nobody reads on: ``kit.cli.main.main`` ends quietly."""
        raise


_out, _err = _Screen(width=_WIDTH), _Screen(stderr=True)


@contextmanager
def refusals() -> Iterator[None]:
    """The project's own errors as one line and their exit code; what could not be read, line by line."""
    try:
        yield
    except OfframpError as error:
        lines = str(error).split("\n") if isinstance(error, PartialRead) else [str(error)]
        _err.print(_text("offramp: ", *lines, style="bold red"), soft_wrap=True)
        raise typer.Exit(error.exit_code) from None


def print_rows(rows: pl.DataFrame, as_json: bool) -> None:
    """A frame as a table for people, or as JSON rows."""
    rows = rows.drop("snapshot_id", "observed_at", strict=False)
    if not as_json and "error" in rows.columns and rows["error"].null_count() == len(rows):
        rows = rows.drop("error")
    if as_json:
        print_json(rows.fill_nan(None).to_dicts())
        return
    rows = with_worded_times(rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in rows.schema.items():
        is_prose = name in {"sentence", "example", "error", "next_step"}
        justify: Any = "right" if kind.is_numeric() else "left"
        # What doesn't fit ends in a mark: half a number must not look like one.
        table.add_column(
            Text(visible(name)), justify=justify, overflow="fold" if is_prose else "ellipsis", no_wrap=not is_prose
        )
    for row in rows.iter_rows():
        table.add_row(*(Text(_cell(value)) for value in row))
    _out.print(table)


def print_sentences(rows: pl.DataFrame, at_most: int = 50) -> None:
    """The ``sentence`` of each row; what is left out is counted."""
    for sentence in rows["sentence"].head(at_most):
        _out.print(_text("• ", sentence))
    if len(rows) > at_most:
        tell(f"… and {len(rows) - at_most} more")


def print_json(value: Any) -> None:
    """Exact data in ASCII: what would be a control character is an escape of JSON's."""
    text = json.dumps(value, default=_plain, indent=1)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def tell(*lines: str) -> None:
    """Lines on standard output."""
    _out.print(_text("", *lines), soft_wrap=True)


def say(*lines: str) -> None:
    """Lines on standard error: how it goes, what to do."""
    _err.print(_text("", *lines), soft_wrap=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _text(begin: str, *lines: str, style: str = "") -> Text:
    return Text(begin + "\n".join(map(visible, lines)), style=style)


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else cell(value)
