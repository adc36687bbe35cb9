"""How the command line speaks: options that verbs share, tables, and errors as one line with an exit code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer
from rich.console import Console
from rich.table import Table

from kit.analyze.worded_times import with_worded_times
from kit.errors import OfframpError

ProfileName = Annotated[
    str | None, typer.Option("--profile", "-p", help="Cluster of offramp.toml; by default its only one.")
]
ProfileFile = Annotated[Path | None, typer.Option("--profile-file", help="offramp.toml to read.")]

# A pipe has no width of its own; a file of 80 columns would fold every table.
out = Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else 200)
err = Console(stderr=True)


@contextmanager
def refusals() -> Iterator[None]:
    """The project's own errors as one line and their exit code."""
    try:
        yield
    except OfframpError as error:
        err.print(f"offramp: {error}", style="bold red", highlight=False, markup=False, soft_wrap=True)
        raise typer.Exit(error.exit_code) from None


def print_rows(rows: pl.DataFrame, as_json: bool) -> None:
    """A frame as a table for people, or as JSON rows."""
    rows = rows.drop("snapshot_id", "observed_at", strict=False)
    if not as_json and "error" in rows.columns and rows["error"].null_count() == len(rows):
        rows = rows.drop("error")
    if as_json:
        json.dump(rows.to_dicts(), sys.stdout, default=as_text, indent=1)
        sys.stdout.write("\n")
        return
    rows = with_worded_times(rows)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, kind in rows.schema.items():
        is_prose = name in {"sentence", "example", "error", "next_step"}
        table.add_column(name, justify="right" if kind.is_numeric() else "left", overflow="fold", no_wrap=not is_prose)
    for row in rows.iter_rows():
        table.add_row(*(_cell(value) for value in row))
    out.print(table)


def print_sentences(rows: pl.DataFrame, at_most: int = 50) -> None:
    """The ``sentence`` of each row; what is left out is counted."""
    for sentence in rows["sentence"].head(at_most):
        out.print(f"• {sentence}", markup=False, highlight=False)
    if len(rows) > at_most:
        out.print(f"… and {len(rows) - at_most} more")


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def say(text: str) -> None:
    err.print(text, highlight=False, markup=False, soft_wrap=True)
