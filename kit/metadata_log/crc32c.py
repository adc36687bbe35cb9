"""CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of record batches.

A batch of some bytes goes byte by byte. A long one is cut into rows of one length, which NumPy takes side by side, a
column at a time; then the rows' checksums are joined. That works because the register is linear: leading zeros change
nothing, and a row's register moves over the rows behind it by the same linear step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

_SHORT = 4_096
_ONES = 0xFFFFFFFF
_WIDTH, _HEAD, _FEW = 256, 4, 8
_LONG, _PORTION = 2**18, 2**22


def _table() -> list[int]:
    found = list(range(256))
    for _ in range(8):
        found = [each >> 1 ^ (0x82F63B78 if each & 1 else 0) for each in found]
    return found


_TABLE = _table()
_TABLE_ARRAY = np.array(_TABLE, np.uint32)


def crc32c(data: bytes | memoryview) -> int:
    """The checksum; 0xE3069283 of ``b"123456789"``."""
    return _short(data) if len(data) < _SHORT else _long(data)


def _short(data: bytes | memoryview) -> int:
    crc = _ONES
    for octet in data:
        crc = _TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return crc ^ _ONES


def _long(data: bytes | memoryview) -> int:
    width = 1 << len(data).bit_length() // 2 - 2  # A step over a column costs more than one over a row.
    n_rows = -(-len(data) // width)
    octets = np.zeros(n_rows * width, np.uint8)
    octets[-len(data) :] = np.frombuffer(data, np.uint8)
    octets[-len(data) :][:4] ^= 0xFF  # What begins with a register of ones is what begins so with one of zeros.
    rows = _over(np.zeros(n_rows, np.uint32), octets.reshape(n_rows, width))
    tables = _moves(width)
    crc = 0
    for row in rows.tolist():
        crc = tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24]
        crc ^= row
    return crc ^ _ONES


def crc32c_each(data: bytes | memoryview, bounds: Sequence[tuple[int, int]]) -> list[int]:
    """The checksums of many short parts, side by side; none has fewer than four bytes."""
    found: list[int] = []
    for some in _portions(bounds):
        found += _many(data, some) if len(some) > _FEW else [crc32c(data[start:end]) for start, end in some]
    return found


def _portions(bounds: Sequence[tuple[int, int]]) -> Iterator[Sequence[tuple[int, int]]]:
    """Parts of one size class each, so many that a processor's cache holds them."""
    start = size = 0
    for at, (first, end) in enumerate(bounds):
        is_long = end - first > _LONG
        if at > start and (size + end - first > _PORTION or is_long):
            yield bounds[start:at]
            start, size = at, 0
        size += _PORTION if is_long else end - first
    yield bounds[start:]


def _many(data: bytes | memoryview, bounds: Sequence[tuple[int, int]]) -> list[int]:
    sizes = np.array([end - start for start, end in bounds])
    n_rows = -(-sizes // _WIDTH)
    ends = np.cumsum(n_rows) * _WIDTH
    octets = np.zeros(int(ends[-1]), np.uint8)
    for (start, end), size, stop in zip(bounds, sizes.tolist(), ends.tolist()):
        octets[stop - size : stop] = np.frombuffer(data[start:end], np.uint8)
        octets[stop - size : stop][:_HEAD] ^= 0xFF
    rows = _over(np.zeros(len(octets) // _WIDTH, np.uint32), octets.reshape(-1, _WIDTH))
    tables, crcs, first = np.array(_moves(_WIDTH), np.uint32), np.zeros(len(sizes), np.uint32), ends // _WIDTH - n_rows
    for number in range(int(n_rows.max())):
        going = np.flatnonzero(n_rows > number)
        crc = crcs[going]
        moved = tables[0][crc & 0xFF] ^ tables[1][crc >> 8 & 0xFF] ^ tables[2][crc >> 16 & 0xFF] ^ tables[3][crc >> 24]
        crcs[going] = moved ^ rows[first[going] + number]
    found: list[int] = (crcs ^ np.uint32(_ONES)).tolist()
    return found


def _over(registers: npt.NDArray[np.uint32], rows: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
    for column in np.ascontiguousarray(rows.T):
        registers = _TABLE_ARRAY[(registers ^ column) & 0xFF] ^ registers >> np.uint32(8)
    return registers


@lru_cache(maxsize=32)
def _moves(width: int) -> list[list[int]]:
    """What each byte of a register becomes when it moves over ``width`` zeros: a table for each of its four bytes."""
    values = np.concatenate([np.arange(256, dtype=np.uint32) << np.uint32(shift) for shift in (0, 8, 16, 24)])
    moved: list[int] = _over(values, np.zeros((len(values), width), np.uint8)).tolist()
    return [moved[at : at + 256] for at in range(0, 1024, 256)]
