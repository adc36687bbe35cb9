"""Columns of znodes that a server's answers and its files have alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LAST_MS = 253_402_300_799_999
"""The end of the year 9999: Python has no later time."""
_CONTAINER = 1 << 63


def is_session(owners: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which owners are sessions. Containers and znodes with a time to live have marks there
    (``EphemeralType``).
    """
    octets = owners.view(np.uint64)
    is_marked: npt.NDArray[np.bool_] = (owners == 0) | (octets == _CONTAINER) | (octets >> np.uint64(56) == 0xFF)
    return ~is_marked


def times(ms: npt.NDArray[np.int64]) -> pa.Array:
    """Epoch milliseconds → UTC; null where no calendar has it."""
    unknown = (ms < 0) | (ms > LAST_MS)
    return column(pa.timestamp("us", tz="UTC"), np.where(unknown, 0, ms) * 1000, ~unknown)


def column(kind: pa.DataType, values: npt.NDArray[Any], is_known: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """NumPy's memory as a column of a type of that width.

    ``pa.array`` does it, too, but loads pandas where that is installed: that takes as long as reading 200,000 znodes.
    """
    known = None if is_known is None else bits(is_known)
    return pa.Array.from_buffers(kind, len(values), [known, pa.py_buffer(np.ascontiguousarray(values))])


def octets(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """A column of bytes, or of texts in UTF-8, of less than 2 GiB in all."""
    some = [each or b"" for each in values]
    ends = np.cumsum([0, *map(len, some)]).astype(np.int32)
    known = bits(np.array([each is not None for each in values], np.bool_))
    return pa.Array.from_buffers(kind, len(some), [known, pa.py_buffer(ends), pa.py_buffer(b"".join(some))])


def numbers(array: pa.Array, kind: str) -> npt.NDArray[Any]:
    """The other way: a column's memory, of that type and without nulls, as NumPy's."""
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * np.dtype(kind).itemsize)


def flags(values: npt.NDArray[np.bool_]) -> pa.Array:
    """A column of truths."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits(values)])


def bits(values: npt.NDArray[np.bool_]) -> pa.Buffer:
    """A bit for each, as Arrow keeps them."""
    return pa.py_buffer(np.packbits(values, bitorder="little"))
