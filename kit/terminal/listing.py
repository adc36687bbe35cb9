"""Sort, filter and shorten the rows of every listing verb, and print them as data."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kit.errors import InputError
from kit.terminal.terminal import AsJson, cell_text, print_json, print_table, screen_size, tell, tell_csv
from kit.text.quantity import quantity

if TYPE_CHECKING:
    import polars as pl

SHOWN = 50
"""Rows that a terminal shows by itself: the worst of them fit on two screens. A pipe gets all."""
LONGEST_CONDITION = 4_000
"""Characters of ``--where``: a chain of thousands of ORs takes polars minutes, and a longer one all of its stack."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The options of a listing verb, as typed."""

    sort: Annotated[
        str | None,
        typer.Option("--sort", metavar="COLUMN", help="Sort by this column: numbers largest first, text from A to Z."),
    ] = None
    where: Annotated[
        str | None,
        typer.Option(
            "--where", metavar="SQL", help='Show only rows for which this condition holds, as in "lag > 1000".'
        ),
    ] = None
    everything: Annotated[bool, typer.Option("--all", help=f"Show all rows on a terminal, even more than {SHOWN}.")] = (
        False
    )
    as_json: AsJson = False
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the rows as CSV on standard output.")] = False
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Write the rows to this Parquet file.")
    ] = None

    def __post_init__(self) -> None:
        if self.as_json + self.as_csv + (self.parquet is not None) > 1:
            raise typer.BadParameter("--json, --csv and --parquet are three output formats: choose one")

    @property
    def is_data(self) -> bool:
        """For programs: every row and every column, exactly."""
        return self.as_json or self.as_csv or self.parquet is not None

    def chosen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """The rows that were asked for, in the order that was asked for.

        Raises:
            InputError: there is no such column, or the condition can't be understood.
        """
        rows = rows.drop("snapshot_id", "observed_at", strict=False)
        if self.where is not None:
            rows = _where(rows, self.where)
        if self.sort is not None:
            if self.sort not in rows.columns:
                raise InputError(
                    f"--sort {self.sort}: there is no such column; the columns are {', '.join(rows.columns)}"
                )
            is_number = rows.schema[self.sort].is_numeric()
            rows = rows.sort(self.sort, descending=is_number, nulls_last=True, maintain_order=True)
        return rows

    def print(
        self,
        rows: pl.DataFrame,
        spare: Sequence[str] = (),
        in_words: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
    ) -> pl.DataFrame:
        """Print :meth:`chosen` rows; the worst come first. ``spare``: see ``kit.terminal.table``. Returns what is
        shown.

        Args:
            in_words: what people see instead; sorting and conditions go by the rows themselves.

        Raises:
            InputError: as :meth:`chosen`; the file can't be written.
        """
        rows = self.chosen(rows)
        if self.parquet is not None:
            _write_parquet(rows, self.parquet)
        elif self.as_csv:
            tell_csv(rows)
        elif self.as_json:
            print_json(rows.fill_nan(None).to_dicts())
        else:
            return self._show(rows, spare, in_words)
        return rows

    def _show(
        self, rows: pl.DataFrame, spare: Sequence[str], in_words: Callable[[pl.DataFrame], pl.DataFrame] | None
    ) -> pl.DataFrame:
        n_hidden = 0 if self.everything or not sys.stdout.isatty() else max(0, len(rows) - SHOWN)
        notes = ["no row"] if rows.is_empty() else []
        if n_hidden:
            notes.append(f"{n_hidden:,} of {quantity(len(rows), 'row')} not shown: --all, --where or --csv gives them")
        shown = rows.head(len(rows) - n_hidden)
        print_frame(in_words(shown) if in_words else shown, spare, notes)
        return shown


def print_frame(
    rows: pl.DataFrame, spare: Sequence[str] = (), notes: Sequence[str] = (), may_page: bool = True
) -> None:
    """A frame as a table for people; a column ``error`` without any goes."""
    print_table(*_texts(rows), spare, notes, may_page)


def that_fit(rows: pl.DataFrame, n_lines: int, spare: Sequence[str] = ()) -> pl.DataFrame:
    """The first rows whose table has at most so many lines, its heading among them; one row at least."""
    from kit.terminal.table import table_lines

    shown = rows.head(max(1, n_lines))
    while len(shown) > 1:
        lines, dropped = table_lines(*_texts(shown), screen_size().columns, spare)
        if len(lines) + bool(dropped) <= n_lines:
            break
        shown = shown.head(len(shown) - 1)
    return shown


def _texts(rows: pl.DataFrame) -> tuple[dict[str, bool], list[list[str]]]:
    """Column → whether it holds numbers; every value as its text."""
    from kit.text.time_format import with_worded_times

    if "error" in rows.columns and rows["error"].null_count() == len(rows):
        rows = rows.drop("error")
    rows = with_worded_times(rows)
    columns = {name: kind.is_numeric() for name, kind in rows.schema.items()}
    return columns, [[cell_text(value) for value in row] for row in rows.iter_rows()]


def _where(rows: pl.DataFrame, condition: str) -> pl.DataFrame:
    import polars as pl

    if len(condition) > LONGEST_CONDITION:
        raise InputError(
            f"--where has {len(condition):,} characters, and {LONGEST_CONDITION:,} are the most: --groups takes a "
            "pattern of names, and --csv prints every row"
        )
    try:
        asked = pl.sql_expr(condition)
        if _is_of_each_row(asked, rows.schema):
            return rows.filter(asked)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError, ValueError) as error:
        why = str(error).strip().partition("\n")[0]
        raise InputError(
            f"--where {condition!r} can't be understood ({why}); it is SQL over {', '.join(rows.columns)}"
        ) from None
    raise InputError(
        f"--where {condition!r} asks about all rows at once (max, count, OVER …). Give a condition for a single row, "
        'as in "lag > 1000"; --csv prints every row'
    )


def _is_of_each_row(asked: pl.Expr, schema: pl.Schema) -> bool:
    """Return whether no part examines other rows; polars would give what such a part reports to each row."""
    from polars.exceptions import ColumnNotFoundError

    parts = [asked]
    while parts:
        part = parts.pop()
        with suppress(ColumnNotFoundError):  # It would know the column's type, as no aggregate does.
            if not (part.meta.is_literal() or part.meta.is_row_separable()):
                return False
        parts += part.meta.pop(schema=schema)
    return True


def _write_parquet(rows: pl.DataFrame, file: Path) -> None:
    """All of it or nothing: a full disk leaves what was there before."""
    from polars.exceptions import PolarsError

    is_special = file.exists() and not file.is_file()  # a folder, a pipe
    target = file.resolve() if file.is_file() else file
    draft = target if is_special else target.with_name(f".{target.name}.{os.getpid()}")
    try:
        rows.write_parquet(draft)
        draft.replace(target)
    except (OSError, PolarsError) as error:
        if not is_special:
            draft.unlink(missing_ok=True)
        why = error.strerror if isinstance(error, OSError) else None
        raise InputError(f"--parquet: {file} can't be written: {why or error}") from None
    tell(f"{quantity(len(rows), 'row')} in {file}")
