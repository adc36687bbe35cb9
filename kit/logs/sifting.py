"""What Spark's tasks do with log files: each reads the blocks whose numbers it is given, and keeps what may matter.

Python sees chunks, never lines: polars splits a chunk and holds all its lines against one filter.
"""

from __future__ import annotations

import bz2
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

import polars as pl
import pyarrow as pa
from pyarrow.fs import FileSystem

from kit.logs.layouts import MONTHS

BLOCK = 16 << 20
_CHUNK = 2 << 20
"""So many bytes are held at a time; the rest of a line that is longer is left out."""
_DECOMPRESSED: dict[str, Callable[[io.BufferedIOBase], io.BufferedIOBase]] = {".gz": gzip.open, ".bz2": bz2.open}
_DAMAGE = (OSError, EOFError, zlib.error)
_MARKS = (
    "dinator",
    "group ",
    "Group",
    "Member",
    "g group",
    "generation",
    "Reconcil",
    "d partitions",
    "ommit",
    "etting offset",
    "balanc",
    "beat",
    "metadata ",
    "kafka.consumer.",
    "ConsumerConnector",
    "ubscribe",
    "%7|",
)
"""One of them is in every line about coordination, in its text or in the name of its class."""
_MARKED = "|".join(re.escape(mark) for mark in _MARKS)

_TYPES = {
    "file": pl.String,
    "block": pl.Int64,
    "value": pl.String,
    "number": pl.Int64,
    "n_lines": pl.Int64,
    "has_nul": pl.Boolean,
    "damage": pl.String,
    "refusal": pl.String,
}
SCHEMA = (
    "file string, block bigint, value string, number bigint, n_lines bigint, has_nul boolean, damage string, "
    "refusal string"
)
"""A row per candidate, with its ``number`` in the block from 0. And one per block: how many lines begin in it, whether
it holds a NUL, what broke it off, why it can't be read at all."""


@dataclass(frozen=True)
class Block:
    """The lines of a file that begin at ``start`` or later and before ``end``."""

    file: str
    start: int
    end: float


def blocks_of(file: str, size: int) -> list[Block]:
    """What can be read side by side: a compressed file is one block."""
    if PurePosixPath(file).suffix in _DECOMPRESSED:
        return [Block(file, 0, math.inf)]
    return [Block(file, start, min(start + BLOCK, size)) for start in range(0, max(size, 1), BLOCK)]


@dataclass(frozen=True)
class Sift:
    """The task for ``mapInArrow`` over a range of numbers of ``blocks``; its rows are of ``SCHEMA``."""

    blocks: tuple[Block, ...]

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in _sifted(self.blocks[number]):
                    yield from rows.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _sifted(block: Block) -> Iterator[pl.DataFrame]:
    n_lines, has_nul, damage, refusal = 0, False, None, None
    try:
        for chunk in _chunks(block):
            lines = _split(chunk)
            yield _rows(block, lines.filter(_is_candidate(pl.col("value"))), number=pl.col("number") + n_lines)
            n_lines, has_nul = n_lines + len(lines), has_nul or b"\0" in chunk
    except _DAMAGE as error:
        if getattr(error, "errno", None) is None:
            damage = str(error)
        else:
            refusal = str(error)
    whole = {"n_lines": [n_lines], "has_nul": [has_nul], "damage": [damage], "refusal": [refusal]}
    yield _rows(block, pl.DataFrame(whole))


def _is_candidate(line: pl.Expr) -> pl.Expr:
    """Lines that may tell an event; true for all that do, and for not many others."""
    # As an alternative of fixed texts the engine walks a line once for all, many bytes at a step.
    return line.str.contains(_MARKED) | line.str.starts_with("%") | line.str.head(3).is_in(MONTHS)


def _rows(block: Block, known: pl.DataFrame, **computed: pl.Expr) -> pl.DataFrame:
    rows = known.with_columns(file=pl.lit(block.file), block=pl.lit(block.start), **computed)
    missing = [pl.lit(None).alias(name) for name in _TYPES if name not in rows.columns]
    return rows.with_columns(missing).select(pl.col(name).cast(type_) for name, type_ in _TYPES.items())


def _split(chunk: bytes) -> pl.DataFrame:
    """``value`` and ``number`` of its lines; bytes that are no UTF-8 are replaced."""
    try:
        return pl.read_lines(chunk, name="value", row_index_name="number")
    except pl.exceptions.ComputeError:
        return pl.read_lines(chunk.decode("utf-8", "replace").encode(), name="value", row_index_name="number")


def _chunks(block: Block) -> Iterator[bytes]:
    """Whole lines, some ten thousand at a time; those before the damage, then the error."""
    with _opened(block.file) as stream:
        left = block.end - block.start
        if block.start:  # the line that lies over the border belongs to the block before
            stream.seek(block.start - 1)
            left -= _skip_line(stream, left + 1) - 1
        while left > 0:
            chunk, error = _read(stream, min(_CHUNK, left))
            yield chunk
            if error is not None:
                raise error
            if not chunk:
                return
            left -= len(chunk)
            if not chunk.endswith(b"\n"):
                left -= _skip_line(stream, left)


def _opened(file: str) -> io.BufferedIOBase:
    scheme = re.match(r"(\w+):", file)
    system, path = FileSystem.from_uri(quote(file, safe="/:@") if scheme else f"file://{quote(file)}")
    stream = io.BufferedReader(system.open_input_file(path))
    suffix = PurePosixPath(path).suffix
    return _DECOMPRESSED[suffix](stream) if suffix in _DECOMPRESSED else stream


def _read(stream: io.BufferedIOBase, size: float) -> tuple[bytes, Exception | None]:
    """So many bytes and the rest of their last line, or as much as there is before the end or the damage."""
    parts, left, error = [], int(size), None
    try:
        while left and (part := stream.read1(left)):
            parts.append(part)
            left -= len(part)
        if parts and not parts[-1].endswith(b"\n"):
            parts.append(stream.readline(_CHUNK))
    except _DAMAGE as damage:
        error = damage
    return b"".join(parts), error


def _skip_line(stream: io.BufferedIOBase, most: float) -> int:
    """How many bytes the rest of the line has; no more than ``most`` are looked at."""
    skipped = 0
    while skipped < most and (part := stream.readline(int(min(_CHUNK, most - skipped)))):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped
