"""Read log files in Spark's tasks: each task reads the blocks whose numbers it is given, and keeps what may matter.

Python sees chunks, never lines: Hyperscan searches for all marks of a chunk at once, Arrow takes the lines that have
one.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

import hyperscan
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.fs import FileSystem

from kit.rebalances.logs import brod_records
from kit.rebalances.logs.layouts import MONTHS
from kit.rebalances.logs.multiline import TABLE_MARKS
from kit.rebalances.logs.wordings import BESIDE, BY_SOURCE, CONTEXT

BLOCK = 16 << 20
_CHUNK = 1 << 19
"""Bytes scanned at a time: they stay in the processor's cache meanwhile."""
LONGEST = 2 << 20
"""A longer line is cut, and counted."""
_HELD = 4 << 20
"""Bytes of rows that go to Spark at once."""
_DECOMPRESSED: dict[str, Callable[[io.BufferedIOBase], io.BufferedIOBase]] = {".gz": gzip.open, ".bz2": bz2.open}
_DAMAGE = (OSError, EOFError, zlib.error)
_MARKS = (
    "dinat",
    "DINATOR",
    "eneration",
    "mber id",
    "mberId",
    "mber_id",
    "s assigned",
    "s revoked",
    "artitions to ",
    "dPartitions",
    "sumer group",
    "oin_group",
    "ync_group",
    "eave_group",
    "oin-group",
    "OIN_GROUP",
    "YNC_GROUP",
    "EAVE_GROUP",
    "group ",
    "Group",
    "Member",
    "g group",
    "Reconcil",
    "d partitions",
    "artitions assigned",
    "artitions re",
    "artitions lost",
    "artition(s) ",
    "new partitions",
    "ommit",
    "etting offset",
    "balanc",
    "BALANC",
    "beat",
    "metadata ",
    "kafka.consumer.",
    "ConsumerConnector",
    "ubscribe",
    "%7|",
    "claim the partition",
    *brod_records.MARKS,
)
"""One of them is in most lines about coordination, in their text or in the name of their class."""
_TEMPLATES = [each for known in BY_SOURCE.values() for each in known if each.kind != CONTEXT]
_UNMARKED = [each for each in _TEMPLATES if not any(mark in each.template for mark in _MARKS)]
"""Some layouts print no class, and an entry of several lines has it in its last: these are searched for themselves."""
_BEGINNINGS = rf"^(?:%|{'|'.join(MONTHS)})"
_TYPES = {
    "file": pa.string(),
    "block": pa.int64(),
    "value": pa.string(),
    "number": pa.int64(),
    "is_few": pa.bool_(),
    "n_lines": pa.int64(),
    "n_candidates": pa.int64(),
    "n_cut": pa.int64(),
    "has_nul": pa.bool_(),
    "damage": pa.string(),
    "refusal": pa.string(),
}
SCHEMA = (
    "file string, block bigint, value string, number bigint, is_few boolean, n_lines bigint, n_candidates bigint, "
    "n_cut bigint, has_nul boolean, damage string, refusal string"
)
"""A row per candidate, with its ``number`` in the block from 0; ``is_few``: its block has few. And one per block: how
many lines begin in it, how many of them are candidates and how many were cut, whether it holds a NUL, what broke it
off, why it can't be read at all."""


@dataclass(frozen=True)
class Block:
    """The lines of a file that begin at ``start`` or later and before ``end``."""

    file: str
    start: int
    end: float


def blocks_of(file: str, size: int) -> list[Block]:
    """Return the blocks that can be read side by side: a compressed file is one block."""
    if PurePosixPath(file).suffix in _DECOMPRESSED:
        return [Block(file, 0, math.inf)]
    return [Block(file, start, min(start + BLOCK, size)) for start in range(0, max(size, 1), BLOCK)]


@dataclass(frozen=True)
class CandidateScan:
    """The task for ``mapInArrow`` over a range of numbers of ``blocks``; its rows are of ``SCHEMA``.

    ``few``: candidate bytes per block below which the driver parses them.
    """

    blocks: tuple[Block, ...]
    few: int

    def __call__(self, numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from _scanned(self.blocks[number], self.few)


def _scanned(block: Block, few: int) -> Iterator[pa.RecordBatch]:
    held, size, n_lines, n_candidates, n_cut, has_nul = [], 0, 0, 0, 0, False
    damage = refusal = None
    try:
        for chunk in _chunks(block):
            if chunk is None:
                n_cut += 1
                continue
            borders = _borders(chunk)
            numbers = _candidates(chunk, borders)
            if numbers.size:
                lines = _lines(chunk, borders, numbers)
                held.append((lines, numbers + n_lines))
                size, n_candidates = size + lines.nbytes, n_candidates + len(lines)
            if size > _HELD:
                yield _candidate_rows(block, held, is_few=False)
                held, size = [], 0
            n_lines, has_nul = n_lines + len(borders) - 1, has_nul or b"\0" in chunk
    except _DAMAGE as error:
        if getattr(error, "errno", None) is None:
            damage = str(error)
        else:
            refusal = str(error)
    if held:
        is_whole = sum(len(lines) for lines, _ in held) == n_candidates
        yield _candidate_rows(block, held, is_few=is_whole and size <= few)
    counts = {"n_lines": n_lines, "n_candidates": n_candidates, "n_cut": n_cut, "has_nul": has_nul}
    yield _rows(block, 1, **counts, damage=damage, refusal=refusal)


def _candidate_rows(
    block: Block, held: list[tuple[pa.BinaryArray, npt.NDArray[np.int64]]], is_few: bool
) -> pa.RecordBatch:
    lines, numbers = zip(*held)
    texts = _texts(pa.concat_arrays(lines))
    return _rows(block, len(texts), value=texts, number=integers(np.concatenate(numbers)), is_few=is_few)


def _rows(block: Block, n: int, **columns: Any) -> pa.RecordBatch:
    """``columns``: whole ones, or values that are the same in each row."""
    of_all = {"file": block.file, "block": block.start, **columns}
    arrays = [_whole(of_all.get(name), n, type_) for name, type_ in _TYPES.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(_TYPES))


def _whole(value: Any, n: int, type_: pa.DataType) -> pa.Array:
    if isinstance(value, pa.Array):
        return value
    if value is None:
        return pa.nulls(n, type_)
    if isinstance(value, str):
        return _strings([value.encode()] * n)
    if isinstance(value, bool):
        bits = np.packbits(np.full(n, value), bitorder="little")
        return pa.Array.from_buffers(type_, n, [None, pa.py_buffer(bits)])
    return integers(np.full(n, value, np.int64))


def integers(values: npt.NDArray[np.int64]) -> pa.Int64Array:
    """The same memory as a column.

    ``pa.array``, ``pa.repeat`` and ``pa.scalar`` load pandas where that is installed: that takes as long as reading
    megabytes of a log.
    """
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _strings(texts: Sequence[bytes]) -> pa.StringArray:
    """Return texts as UTF-8."""
    borders = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(b"".join(texts))]
    return pa.Array.from_buffers(pa.string(), len(texts), buffers)


def _borders(chunk: bytes) -> npt.NDArray[np.int32]:
    """Return where its lines begin, and where the last one ends."""
    ends = np.flatnonzero(np.frombuffer(chunk, np.uint8) == ord("\n")) + 1
    rest = [] if chunk.endswith(b"\n") else [len(chunk)]
    return np.concatenate([[0], ends, rest]).astype(np.int32)


def _candidates(chunk: bytes, borders: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """The numbers of the lines that may hold an event: all that do, and few others."""
    mark_ends: list[int] = []
    _marks().scan(chunk, match_event_handler=lambda _mark, _start, end, _flags, _context: mark_ends.append(end))
    return np.unique(np.searchsorted(borders[1:], np.array(mark_ends, dtype=np.int64) - 1, side="right"))


@functools.cache
def _marks() -> hyperscan.Database:
    own = {max(each.template.split("{}"), key=len) for each in _UNMARKED}
    in_json = {each.template.removesuffix(BESIDE) for each in _UNMARKED if each.template.endswith(BESIDE)}
    patterns = [re.escape(text).encode() for text in sorted({*_MARKS, *own})]
    patterns += [each.encode() for each in (_BEGINNINGS, *brod_records.LINE_MARKS, *TABLE_MARKS)]
    patterns += [rf'"{re.escape(text)}\\*"'.encode() for text in sorted(in_json)]
    patterns += [f"msg={re.escape(text)} ".encode() for text in sorted(in_json)]
    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=patterns, flags=[hyperscan.HS_FLAG_MULTILINE] * len(patterns))
    return database


def _lines(chunk: bytes, borders: npt.NDArray[np.int32], numbers: npt.NDArray[np.int64]) -> pa.BinaryArray:
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(chunk)]
    return pa.Array.from_buffers(pa.binary(), len(borders) - 1, buffers).take(integers(numbers))


def _texts(lines: pa.BinaryArray) -> pa.StringArray:
    """Without the lines' ends; bytes that are no UTF-8 are replaced."""
    try:
        texts = lines.cast(pa.string())
    except pa.ArrowInvalid:
        texts = _strings([line.decode("utf-8", "replace").encode() for line in lines.to_pylist()])
    return pc.utf8_rtrim(texts, "\r\n")


def _chunks(block: Block) -> Iterator[bytes | None]:
    """Whole lines, some ten thousand at a time, and None after one that was cut; those before the damage, then the
    error."""
    with _opened(block.file) as stream:
        left = block.end - block.start
        if block.start:  # the line that lies over the border belongs to the block before
            stream.seek(block.start - 1)
            left -= _skip_line(stream, left + 1) - 1
        while left > 0:
            chunk, error = _read(stream, min(_CHUNK, left))
            if chunk:
                yield chunk
            if error is not None:
                raise error
            if not chunk:
                return
            left -= len(chunk)
            if not chunk.endswith(b"\n"):
                rest = stream.readline(1)
                left -= len(rest)
                if rest not in (b"", b"\n"):
                    yield None
                    left -= _skip_line(stream, left)


def _opened(file: str) -> io.BufferedIOBase:
    scheme = re.match(r"(\w+):", file)
    system, path = FileSystem.from_uri(quote(file, safe="/:@") if scheme else f"file://{quote(file)}")
    stream = io.BufferedReader(system.open_input_file(path))
    suffix = PurePosixPath(path).suffix
    return _DECOMPRESSED[suffix](stream) if suffix in _DECOMPRESSED else stream


def _read(stream: io.BufferedIOBase, size: float) -> tuple[bytes, Exception | None]:
    """Return so many bytes and the rest of their last line, or as much as there is before the end or the damage."""
    parts, left, error = [], int(size), None
    try:
        while left and (part := stream.read1(left)):
            parts.append(part)
            left -= len(part)
        if parts and not parts[-1].endswith(b"\n"):
            parts.append(stream.readline(LONGEST))
    except _DAMAGE as damage:
        error = damage
    return b"".join(parts), error


def _skip_line(stream: io.BufferedIOBase, most: float) -> int:
    """Return how many bytes the rest of the line has; no more than ``most`` are read."""
    skipped = 0
    while skipped < most and (part := stream.readline(int(min(LONGEST, most - skipped)))):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped
