"""Arrow binary columns seen through NumPy: integers and texts at computed positions, a whole batch at once."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

_PADDING = np.zeros(8, np.uint8)


class BinaryColumn:
    """The bytes of a binary column, end to end; ``start`` and ``end`` of each row in them. A null is an empty row."""

    def __init__(self, column: pa.Array) -> None:
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        octets = np.frombuffer(data, np.uint8) if data is not None else _PADDING
        # A wrong length points anywhere: eight more bytes, and positions held below them, make every read safe.
        self._data = np.concatenate([octets, _PADDING])
        self.start, self.end = bounds[:-1], bounds[1:]

    def integer(self, at: Ints, kind: str) -> Ints:
        """The integers of ``kind`` (``>i2``, ``>i4``, ``>i8``) at ``at``; nonsense beyond a row's end."""
        n_places = len(self._data) - np.dtype(kind).itemsize + 1
        at_every_octet: npt.NDArray[Any] = np.ndarray(n_places, kind, self._data, strides=(1,))
        return at_every_octet[np.clip(at, 0, n_places - 1)].astype(np.int64)

    def uvarint(self, at: Ints) -> tuple[Ints, Ints]:
        """Unsigned varints of at most five bytes, and where they end; one that is longer ends nowhere."""
        value, after, going = np.zeros_like(at), at.copy(), np.ones(len(at), np.bool_)
        for shift in range(0, 35, 7):
            octet = self._data[np.clip(after, 0, len(self._data) - 1)].astype(np.int64)
            value += np.where(going, (octet & 0x7F) << shift, 0)
            after += going
            going &= octet >= 0x80
            if not going.any():
                break
        return value, np.where(going, np.iinfo(np.int64).max // 2, after)

    def octet(self, at: Ints) -> Ints:
        """Single bytes."""
        return self._data[np.clip(at, 0, len(self._data) - 1)].astype(np.int64)

    def texts(self, at: Ints, length: Ints) -> tuple[pa.Array, Mask]:
        """Strings, all within the bytes, and which of them are no UTF-8 (those are null)."""
        bounds = np.zeros(len(at) + 1, np.int64)
        np.cumsum(length, out=bounds[1:])
        gathered = self._data[np.repeat(at - bounds[:-1], length) + np.arange(bounds[-1])]
        buffers = [None, pa.py_buffer(bounds.astype(np.int32)), pa.py_buffer(gathered)]
        column = pa.Array.from_buffers(pa.binary(), len(at), buffers)
        try:
            return column.cast(pa.string()), np.zeros(len(at), np.bool_)
        except pa.ArrowInvalid:
            texts = [_decoded(each) for each in column.to_pylist()]
            return pa.array(texts, pa.string()), np.array([each is None for each in texts], np.bool_)


def _decoded(octets: bytes) -> str | None:
    try:
        return octets.decode()
    except UnicodeDecodeError:
        return None


def integers(values: Ints, kind: pa.DataType, is_null: Mask | None = None) -> pa.Array:
    """An Arrow column of integers; null where the mask reports it."""
    return pa.array(values, mask=is_null).cast(kind)


_LAST_MS = 253_402_300_799_999
"""The end of the year 9999: Python has no later time."""


def times(ms: Ints, is_null: Any = False) -> pa.Array:
    """Epoch milliseconds → UTC; null where the mask reports it, where negative, and where no calendar has it."""
    unknown = (ms < 0) | (ms > _LAST_MS) | is_null
    return pa.array(np.where(unknown, 0, ms) * 1000, mask=unknown).cast(pa.timestamp("us", tz="UTC"))
