"""How the command line speaks: options that verbs share, tables, and errors as one line with an exit code.

Whatever is told goes through here, made visible: no name is markup, none moves the cursor, none begins a line. JSON is
exact, in ASCII. Polars and Rich are loaded by who prints a frame or a table.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from kit.errors import OfframpError, PartialRead
from kit.text.visible import cell, visible

if TYPE_CHECKING:
    import polars as pl

ProfileName = Annotated[
    str | None, typer.Option("--profile", "-p", help="Cluster of offramp.toml; by default its only one.")
]
ProfileFile = Annotated[Path | None, typer.Option("--profile-file", help="offramp.toml to read.")]

RunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of plans and runs; by default `runs` beside offramp.toml.")
]
RunId = Annotated[str, typer.Argument(help="The run's id; `offramp runs` lists them.")]
Pattern = Annotated[str, typer.Option("--groups", help="Regular expression a whole group id must match.")]
AsJson = Annotated[bool, typer.Option("--json", help="As JSON on standard output.")]

_PROSE = {"sentence", "example", "error", "next_step"}
_PIPE_WIDTH = 200
"""A pipe has no width of its own; 80 columns would fold every table."""


@contextmanager
def refusals() -> Iterator[None]:
    """The project's own errors as one line and their exit code; what could not be read, line by line."""
    try:
        yield
    except OfframpError as error:
        lines = str(error).split("\n") if isinstance(error, PartialRead) else [str(error)]
        message = "offramp: " + "\n".join(map(visible, lines))
        is_red = sys.stderr.isatty() and "NO_COLOR" not in os.environ
        sys.stderr.write(f"\x1b[1;31m{message}\x1b[0m\n" if is_red else f"{message}\n")
        raise typer.Exit(error.exit_code) from None


def print_rows(rows: pl.DataFrame, as_json: bool) -> None:
    """A frame as a table for people, or as JSON rows."""
    rows = rows.drop("snapshot_id", "observed_at", strict=False)
    if not as_json and "error" in rows.columns and rows["error"].null_count() == len(rows):
        rows = rows.drop("error")
    if as_json:
        print_json(rows.fill_nan(None).to_dicts())
        return
    from kit.analyze.time_format import with_worded_times

    rows = with_worded_times(rows)
    print_table({name: kind.is_numeric() for name, kind in rows.schema.items()}, rows.iter_rows())


def print_table(columns: Mapping[str, bool], rows: Iterable[Sequence[Any]]) -> None:
    """Rows for people, under the names of their columns; these say whether they hold numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            """Nobody reads on: ``kit.cli.main.main`` ends quietly."""
            raise

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name, is_number in columns.items():
        justify: Any = "right" if is_number else "left"
        is_prose = name in _PROSE
        # What doesn't fit ends in a mark: half a number must not look like one.
        table.add_column(
            Text(visible(name)), justify=justify, overflow="fold" if is_prose else "ellipsis", no_wrap=not is_prose
        )
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    Screen(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_WIDTH).print(table)


def print_sentences(rows: pl.DataFrame, at_most: int = 50) -> None:
    """The ``sentence`` of each row; what is left out is counted."""
    for sentence in rows["sentence"].head(at_most):
        tell(f"• {sentence}")
    if len(rows) > at_most:
        tell(f"… and {len(rows) - at_most} more")


def print_json(value: Any) -> None:
    """Exact data in ASCII: what would be a control character is an escape of JSON's."""
    text = json.dumps(value, default=_plain, indent=1)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def tell(*lines: str) -> None:
    """Lines on standard output."""
    _write(sys.stdout, lines)


def say(*lines: str) -> None:
    """Lines on standard error: how it goes, what to do."""
    _write(sys.stderr, lines)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _write(stream: TextIO, lines: Sequence[str]) -> None:
    stream.write("\n".join(map(visible, lines)) + "\n")
    stream.flush()


def _cell(value: Any) -> str:
    return f"{value:.2f}" if isinstance(value, float) else cell(value)
