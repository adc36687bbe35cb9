"""Find the znodes of a snapshot: each begins where the one before ends, so none can be found by its number.

Found in windows: wherever a path could begin, one is supposed; those stay that another one ends at. If these lie end
to end from a known beginning, they are the znodes, whatever else is in their data. Elsewhere it is read byte by
byte.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]
Index: TypeAlias = tuple[Ints, Ints]
"""The places where the length of each znode's data is, and where it ends."""

FIXED_BYTES = 68
WINDOW = 2**20
"""The bytes that are worked on at once, so that they stay near the processor: eight times as much takes twice as
long.
"""
MOST_DATA = 2**30
"""No server takes a znode of more (its jute.maxbuffer is 1 MiB unless raised); a length that reports it is damaged."""
_NONE = np.empty(0, np.int64)
_SLASH, _INT, _MOST_PASSES = 0x2F, struct.Struct(">i"), 8


def index(data: bytes, at: int) -> Index:
    """The whole znodes that begin within a window from ``at``; none if there is none, or the end of all is there."""
    return _supposed(data, at) or _walked(data, at)


def indexed(data: bytes, at: int, size: int) -> Index:
    """The whole znodes that begin within so many bytes from ``at``."""
    middles, ends, until = list[Ints](), list[Ints](), at + size
    while at < until:
        some, these = index(data, at)
        if not len(these):
            break
        middles.append(some)
        ends.append(these)
        at = int(these[-1])
    return np.concatenate([_NONE, *middles]), np.concatenate([_NONE, *ends])


def _supposed(data: bytes, at: int) -> Index | None:
    """None where the znodes can't be distinguished from what resembles some."""
    if len(data) - at < FIXED_BYTES:
        return None
    octets, until = np.frombuffer(data, np.uint8), min(at + WINDOW, len(data) - 5)
    window = octets[at : until + 4]
    starts = np.flatnonzero((window[:-4] == 0) & (window[1:-3] == 0) & (window[4:] == _SLASH)) + at
    starts = np.concatenate([[at], starts[starts > at]])  # The root's path is empty.
    middles, ends, is_one = _ends(data, octets, starts)
    starts, middles, ends = starts[is_one], middles[is_one], ends[is_one]
    for _ in range(_MOST_PASSES):
        is_end = np.zeros(WINDOW, np.bool_)
        is_end[0] = True
        is_end[(ends - at)[ends < until]] = True
        stays = is_end[starts - at]
        if stays.all():
            break
        starts, middles, ends = starts[stays], middles[stays], ends[stays]
    is_proved = len(starts) > 0 and starts[0] == at and np.array_equal(starts[1:], ends[:-1])
    return (middles, ends) if is_proved else None


def _ends(data: bytes, octets: npt.NDArray[np.uint8], starts: Ints) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
    """Return where each would end; and whether it may be one: within the file, and no end of all, which is the path
    ``/``.
    """
    length = octets[starts + 2].astype(np.int64) << 8 | octets[starts + 3]
    middles = np.minimum(starts + 4 + length, len(data) - 4)
    numbers: npt.NDArray[Any] = np.ndarray(len(data) - 3, ">i4", data, strides=(1,))
    size = numbers[middles].astype(np.int64)
    ends = middles + 4 + np.maximum(size, 0) + FIXED_BYTES
    is_last = (length == 1) & (octets[starts + 4] == _SLASH)
    return middles, ends, (size >= -1) & (size <= MOST_DATA) & (ends <= len(data)) & ~is_last


def _walked(data: bytes, at: int) -> Index:
    middles, ends, until = list[int](), list[int](), at + WINDOW
    try:
        while at < until:
            (length,) = _INT.unpack_from(data, at)
            middle = at + 4 + length
            (size,) = _INT.unpack_from(data, middle)
            end = middle + 4 + max(size, 0) + FIXED_BYTES
            if length < 0 or (length == 1 and data[at + 4] == _SLASH) or not -1 <= size <= MOST_DATA or end > len(data):
                break
            middles.append(middle)
            ends.append(at := end)
    except struct.error:
        pass  # A cut znode has no end.
    return np.array(middles, np.int64), np.array(ends, np.int64)
