"""Print for the command line: options that verbs share, tables, and errors as one line with an exit code.

Whatever is reported goes through here, made visible: no name is markup, none moves the cursor, none begins a line.
JSON is exact, in ASCII. Polars is loaded by who prints a frame.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from kit.errors import OfframpError, PartialRead
from kit.terminal.progress import make_room
from kit.text.visible import cell, visible

if TYPE_CHECKING:
    import polars as pl

    from kit.profile import Profile

RunsFolder = Annotated[
    Path | None, typer.Option("--runs", help="Folder of plans and runs; by default `runs` beside offramp.toml.")
]
RunId = Annotated[str, typer.Argument(help="The run's id; `offramp runs` lists them.")]
Pattern = Annotated[str, typer.Option("--groups", help="Regular expression a whole group id must match.")]
EVERY_GROUP = ".*"
"""The pattern of ``kit.groups.snapshot``, which loads clients and frames."""
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]

LONGEST_WAIT_S = 86_400.0
_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r", "'")
_PIPE_WIDTH = 10_000
"""A pipe has no width of its own. In it nothing wraps and no column goes: other programs read it line by line."""


def a_number(value: float) -> float:
    """The callback of an option with a range: ``nan`` is in every range, and who waits for it doesn't wait."""
    if math.isnan(value):
        raise typer.BadParameter("nan is not a number")
    return value


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


def print_table(
    columns: Mapping[str, bool],
    rows: Sequence[Sequence[str]],
    spare: Sequence[str] = (),
    notes: Sequence[str] = (),
    may_page: bool = True,
) -> None:
    """Rows for people, as texts, under the names of their columns; these report whether they hold numbers.

    By a pager where it is longer than the terminal and that may be. ``spare``: see ``kit.terminal.table``; ``notes``
    are printed below.
    """
    from kit.terminal.table import table_lines

    is_screen = sys.stdout.isatty()
    size = screen_size()
    lines, dropped = table_lines(columns, rows, size.columns, spare)
    if is_screen and "NO_COLOR" not in os.environ:
        lines[0] = f"\x1b[1m{lines[0]}\x1b[0m"
    if dropped:
        lines.append(f"No room for {', '.join(dropped)}: widen the terminal{', or take --json' if may_page else ''}")
    lines += map(visible, notes)
    text = "\n".join(lines) + "\n"
    if may_page and is_screen and len(lines) >= size.lines and sys.stdin.isatty():
        from pydoc import pager

        os.environ.setdefault("LESS", "-FRX")
        pager(text)
    else:
        sys.stdout.write(text)


def screen_size() -> os.terminal_size:
    """In cells; a pipe is wide, and of no height."""
    return get_terminal_size((_PIPE_WIDTH, 0))


def clear_screen() -> None:
    """Clear the screen: the next output is in the place of the last one."""
    sys.stdout.write("\x1b[H\x1b[2J")


def print_sentences(rows: pl.DataFrame, at_most: int = 50) -> None:
    """The ``sentence`` of each row; what is left out is counted."""
    for sentence in rows["sentence"].head(at_most):
        tell(f"• {sentence}")
    if len(rows) > at_most:
        tell(f"… and {len(rows) - at_most:,} more")


def print_json(value: Any) -> None:
    """Exact data in ASCII: what would be a control character is an escape of JSON's."""
    text = json.dumps(value, default=_plain, indent=1)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def tell(*lines: str) -> None:
    """Lines on standard output."""
    _write(sys.stdout, lines)


def say(*lines: str) -> None:
    """Lines on standard error: how it goes, what to do. If they can't be written, the work still continues."""
    with suppress(OSError):
        _write(sys.stderr, lines)


def say_left_out(profile: Profile, pattern: str = EVERY_GROUP) -> None:
    """Report the groups that the profile leaves out of what is read now; nothing if a pattern chose the groups."""
    if profile.leave_out_groups and pattern == EVERY_GROUP:
        named = ", ".join(map(visible, profile.leave_out_groups))
        say(f"offramp: leave_out_groups of the profile leaves out groups that match {named}; --groups reads them")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _write(stream: TextIO, lines: Sequence[str]) -> None:
    if not lines:
        return
    make_room()
    stream.write("\n".join(map(visible, lines)) + "\n")
    stream.flush()


def tell_csv(rows: pl.DataFrame) -> None:
    """Rows as CSV: lists as JSON; an apostrophe before a text that a spreadsheet would run, or that begins with one.

    On a terminal, which would obey them, names are made visible.
    """
    import polars as pl

    is_screen = sys.stdout.isatty()

    def text_of(value: Any) -> str | None:
        if value is None:
            return None
        text = value if isinstance(value, str) else json.dumps(value, default=_plain)
        text = visible(text) if is_screen else text
        return "'" + text if text.startswith(_FORMULA_BEGINS) else text

    texts = [name for name, kind in rows.schema.items() if kind.is_nested() or kind == pl.String]
    rows = rows.with_columns(pl.Series(name, map(text_of, rows[name].to_list()), pl.String) for name in texts)
    sys.stdout.write(rows.write_csv())


def cell_text(value: Any) -> str:
    """A value of a table: as :func:`kit.text.visible.cell`, with two decimals."""
    return f"{value:.2f}" if isinstance(value, float) else cell(value)
