"""Columns of znodes that a server's answers and its files have alike."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

LAST_MS = 253_402_300_799_999
"""The end of the year 9999: Python has no later time."""
_CONTAINER = 1 << 63


def is_session(owners: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which owners are sessions. Containers and znodes with a time to live have marks there (``EphemeralType``)."""
    octets = owners.view(np.uint64)
    is_marked: npt.NDArray[np.bool_] = (owners == 0) | (octets == _CONTAINER) | (octets >> np.uint64(56) == 0xFF)
    return ~is_marked


def times(ms: npt.NDArray[np.int64]) -> pa.Array:
    """Epoch milliseconds → UTC; null where no calendar has it."""
    unknown = (ms < 0) | (ms > LAST_MS)
    return pa.array(np.where(unknown, 0, ms) * 1000, mask=unknown).cast(pa.timestamp("us", tz="UTC"))
