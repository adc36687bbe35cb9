"""A history's files on this machine's disks, read with polars."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from kit.errors import HistoryError, InputError
from kit.tables import schema as tables
from kit.tables.polars import polars_types

Files: TypeAlias = Mapping[str, Sequence[str]]
"""Local paths of a table's files, each with the snapshots to take of it; one that is of a single snapshot has no column
that names it."""
_Scan: TypeAlias = tuple[str, pl.LazyFrame]
"""The scan of a file."""
_TIME = pl.Datetime("us", "UTC")
_ERRORS = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
_FILES, _ROWS = 64, 1_000_000
"""The number of files, and of rows, that a check reads together."""


def files_of(folder: str) -> list[str]:
    """All that Spark would read, whatever its ending; none where the folder isn't there.

    Raises:
        HistoryError: it is no folder, or can't be read; a folder is in it, which is not of a history.
    """
    try:
        with os.scandir(folder) as entries:
            inside = sorted((each.name, each.is_dir()) for each in entries if each.name[0] not in "._")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise HistoryError(f"{folder} can't be read: {error.strerror}") from error
    foreign = [name for name, is_folder in inside if is_folder]
    if foreign:
        raise HistoryError(
            f"{folder} can't be read: {foreign[0]} does not belong to a history. Move it to another folder"
        )
    return [f"{folder}/{name}" for name, _ in inside]


def read(files: Mapping[str, Files], is_in: pl.Expr, table: tables.Table, *names: str) -> pl.DataFrame:
    """snapshot_id and these columns; a column that a file lacks is null.

    Raises:
        HistoryError: a file can't be read, has a column of another type, or lacks a value that is never null.
        InputError: ``files`` doesn't know the table, or the table such a column.
    """
    if table.name not in files:
        raise InputError(f"by_groups loads no rows of {table.name}, only of {', '.join(files)}")
    known = _types(table)
    if unknown := set(names) - known.keys():
        raise InputError(f"{table.name} has no {', '.join(sorted(unknown))}; it has {', '.join(known)}")
    types = {name: known[name] for name in dict.fromkeys(["snapshot_id", *names])}
    scans = [(file, _scan(file, ids, types, is_in)) for file, ids in files[table.name].items()]
    frames = _collected(scans)
    for (file, _), rows in zip(scans, frames):
        for name in types.keys() & _never_null(table):
            if rows[name].null_count():
                raise _lacks(file, table, name)
    return pl.concat([pl.DataFrame(schema=types), *frames], rechunk=True)


def is_among(name: str, values: Collection[str]) -> pl.Expr:
    """Return whether a file's rows are among the values. Of a plain list with up to a hundred values, polars 2.1
    compares each row with each of them.
    """
    return pl.col(name).is_in(pl.Series(list(values), dtype=pl.String).implode())


def check(files: Iterable[str], table: tables.Table) -> None:
    """Read each column of each file once; one that a file lacks is null.

    Raises:
        HistoryError: naming a file that can't be read, has a column of another type, or lacks one that is never null.
    """
    for some in _portions(files, table):
        for (file, _), counts in zip(some, _collected(some)):
            (n_known,) = counts.to_dicts()
            for name in _never_null(table):
                if n_known.get(name, n_known["_rows"]) < n_known["_rows"]:
                    raise _lacks(file, table, name)


def _lacks(file: str, table: tables.Table, name: str) -> HistoryError:
    return HistoryError(
        f"{file} has rows without {name}, which {table.name} always has. Another version of offramp, or another "
        "program, wrote it. Move it to another folder"
    )


def n_rows(files: Iterable[str]) -> int:
    """Return the number of rows of all files together. Raises HistoryError: a file can't be read; an empty one
    neither.
    """
    return sum(_n_rows(file, _opened(file, {})[0]) for file in files)


def _n_rows(file: str, rows: pl.LazyFrame) -> int:
    return int(_collected([(file, rows.select(pl.len()))])[0].item())


def _portions(files: Iterable[str], table: tables.Table) -> Iterator[list[_Scan]]:
    """Counts to be made together: of many small files, or of a part of a large one, whose columns have room at once."""
    some, n_rows = list[_Scan](), 0
    for file in files:
        rows, found = _opened(file, _types(table))
        n_in_file = _n_rows(file, rows)
        for at in range(0, n_in_file, _ROWS):
            some.append((file, _counts(file, rows.slice(at, _ROWS), found, table)))
            n_rows += min(_ROWS, n_in_file - at)
            if n_rows >= _ROWS or len(some) == _FILES:
                yield some
                some, n_rows = [], 0
    yield some


def _counts(file: str, rows: pl.LazyFrame, found: Collection[str], table: tables.Table) -> pl.LazyFrame:
    """Return how many rows, and in how many of them each column is known; a folder's name may name the snapshot."""
    names = [name for name in _types(table) if name != "snapshot_id" or not is_of_one(file)]
    known = [pl.col(name).count() if name in found else pl.lit(0).alias(name) for name in names]
    return rows.select(*known, _rows=pl.len())


def _collected(scans: Sequence[_Scan]) -> list[pl.DataFrame]:
    try:
        return pl.collect_all(scan for _, scan in scans)
    except _ERRORS:
        for file, scan in scans:  # Which one was it?
            with _naming(file):
                scan.collect()
        raise


def _never_null(table: tables.Table) -> list[str]:
    return [field.name for field in table.stamped_schema if not field.nullable]


def _types(table: tables.Table) -> dict[str, Any]:
    return {"snapshot_id": pl.String, "observed_at": _TIME, **polars_types(table)}


@contextmanager
def _naming(file: str) -> Iterator[None]:
    try:
        yield
    except _ERRORS as error:
        raise HistoryError(f"{file} can't be read: {str(error).partition(chr(10))[0]}") from error


def _scan(file: str, ids: Sequence[str], types: Mapping[str, Any], is_in: pl.Expr) -> pl.LazyFrame:
    rows, found = _opened(file, types)
    lacking = {name: pl.lit(None, kind) for name, kind in types.items() if name not in found}
    if is_of_one(file):
        lacking["snapshot_id"], is_its = pl.lit(ids[0]), pl.lit(True)
    elif "snapshot_id" in lacking:
        raise HistoryError(
            f"{file} can't be read: it has no column snapshot_id, so another program than offramp wrote it"
        )
    else:
        is_its = is_among("snapshot_id", ids)
    rows = rows.with_columns(**lacking).filter(is_its & is_in)
    return rows.select(_typed(name, found.get(name, kind), kind) for name, kind in types.items())


def is_of_one(file: str) -> bool:
    """Its folder's name shows the snapshot."""
    return Path(file).parent.name.startswith("snapshot_id=")


def _opened(file: str, types: Mapping[str, Any]) -> tuple[pl.LazyFrame, Mapping[str, Any]]:
    """The rows, and which columns of which types they have."""
    rows = pl.scan_parquet(file, hive_partitioning=False, glob=False)
    with _naming(file):
        found = rows.collect_schema()
    for name, kind in types.items():
        if not _is_alike(found.get(name, kind), kind):
            why = f"holds {name} as {found[name]} where {kind} is expected: another version of offramp wrote it"
            raise HistoryError(f"{file} {why}")
    return rows, found


def _typed(name: str, found: Any, kind: Any) -> pl.Expr:
    """A time without a zone is one of UTC."""
    is_other_time = kind.is_temporal() and found != kind
    return (pl.col(name).dt.epoch("us") if is_other_time else pl.col(name)).cast(kind)


def _is_alike(found: Any, kind: Any) -> bool:
    return (
        found == kind
        or all(each.is_integer() for each in (found, kind))
        or all(each.is_temporal() for each in (found, kind))
    )
