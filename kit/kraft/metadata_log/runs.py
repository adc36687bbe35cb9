"""The batches of a file, by columns, and where in them records of one size are behind one another.

Batches that one request after another has made are often built alike: of one length, with as many records. If the
lengths of their records are the same, too, the first one shows for all of them where each record is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from google_crc32c import value as crc32c

from kit.kraft.metadata_log.batches import (
    CODEC,
    CRC_FROM,
    HEADER,
    IS_APPEND_TIME,
    MOST_OFFSET,
    batch_end,
    is_empty,
    varint,
)

_FEW, _MOST_LAYOUTS, _WINDOW = 4, 16, 256
"""Fewer batches of one length, and those that are built as none of so many, are walked through one by one."""
_FIELDS = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_delta", ">i4"),
        ("first_ms", ">i8"),
        ("last_ms", ">i8"),
        ("producer", "V14"),
        ("n_records", ">i4"),
    ]
)
"""``batches.HEADER``."""
Numbers = npt.NDArray[Any]


class NeedsRecordReader(Exception):
    """This log is for the plain reader."""


class Batches:
    """Batches that hold, follow on one another and need no unpacking: columns, a value for each. Else
    NeedsRecordReader.

    Of bytes that are not a file's last ones those count that are whole batches.
    """

    def __init__(self, data: bytes, is_last: bool = True) -> None:
        edges = np.array([0, *_ends(data, is_last)], np.int64)
        self.starts, self.ends = edges[:-1], edges[1:]
        headers: Numbers = np.empty(0, _FIELDS)
        if len(self.starts):
            headers = np.ndarray(len(data) - HEADER.size + 1, _FIELDS, data, strides=(1,))[self.starts]
        self.base_offsets, self.n_records = (headers[name].astype(np.int64) for name in ("base_offset", "n_records"))
        self.epochs, self.first_ms = (headers[name].astype(np.int64) for name in ("epoch", "first_ms"))
        self.is_control = headers["attributes"] & 0x20 != 0
        self._refuse(headers)
        if not all(map(self._holds(data), self.starts.tolist(), self.ends.tolist(), headers["crc"].tolist())):
            raise NeedsRecordReader

    def __len__(self) -> int:
        return len(self.starts)

    def _refuse(self, headers: Numbers) -> None:
        """Whatever would make a batch or its place in the log another than a plain one."""
        is_other = (headers["attributes"] & (CODEC | IS_APPEND_TIME) != 0) | (self.n_records < 1)
        is_other |= (self.base_offsets < 0) | (self.base_offsets > MOST_OFFSET)
        follow = self.base_offsets[1:] == self.base_offsets[:-1] + self.n_records[:-1]
        if is_other.any() or not follow.all() or (np.diff(self.epochs) < 0).any():
            raise NeedsRecordReader

    @staticmethod
    def _holds(data: bytes) -> Any:
        return lambda start, end, crc: crc32c(data[start + CRC_FROM : end]) == crc


def _ends(data: bytes, is_last: bool) -> Iterator[int]:
    view, at = memoryview(data), 0
    while at < len(data):
        end = batch_end(view, at)
        if isinstance(end, str):
            if not is_last or is_empty(view, at):
                return
            raise NeedsRecordReader
        yield (at := end)


def runs_of(data: bytes, batches: Batches) -> Numbers:
    """Rows of five: where the run begins, the records' size, how many, number of the first one, batch; in order.

    Control batches have none. Raises NeedsRecordReader.
    """
    plain = np.flatnonzero(~batches.is_control)
    sizes = np.stack([batches.ends - batches.starts, batches.n_records], axis=1)[plain]
    _, kinds = np.unique(sizes, axis=0, return_inverse=True)
    order = np.argsort(kinds, kind="stable")
    groups = np.split(plain[order], np.flatnonzero(np.diff(kinds[order])) + 1) if len(plain) else []
    runs = np.concatenate([np.empty((0, 5), np.int64), *(_runs_of_alike(data, batches, group) for group in groups)])
    return runs[np.argsort(runs[:, 0], kind="stable")]


def _runs_of_alike(data: bytes, batches: Batches, group: Numbers) -> Numbers:
    """Yield runs of batches with as many bytes and records."""
    octets, runs = np.frombuffer(data, np.uint8), list[Numbers]()
    for _ in range(_MOST_LAYOUTS):
        if len(group) < _FEW:
            break
        first = batches.starts[group[0]]
        layout = np.array(list(_walked(data, batches, int(group[0]))), np.int64)
        places = _length_octets(data, layout) - first
        starts = batches.starts[group]
        fits = (octets[starts[:, None] + places] == octets[first + places]).all(axis=1)
        runs.append(_moved(layout, starts[fits] - first, group[fits]))
        group = group[~fits]
    rest = [run for batch in group.tolist() for run in _walked(data, batches, batch)]
    return np.concatenate([*runs, np.array(rest, np.int64).reshape(-1, 5)])


def _length_octets(data: bytes, layout: Numbers) -> Numbers:
    """Return where all octets are that report how long a record is: where they are the same, so are all records'
    places.
    """
    places = [np.empty(0, np.int64)]
    for start, size, count, _, _ in layout.tolist():
        _, behind = varint(data, start)
        records = start + size * np.arange(count)
        places.append((records[:, None] + np.arange(behind - start)).ravel())
    return np.concatenate(places)


def _moved(layout: Numbers, distances: Numbers, group: Numbers) -> Numbers:
    """The same runs in other batches."""
    runs = np.tile(layout, (len(group), 1, 1))
    runs[:, :, 0] += distances[:, None]
    runs[:, :, 4] = group[:, None]
    return runs.reshape(-1, 5)


def _walked(data: bytes, batches: Batches, batch: int) -> Iterator[tuple[int, int, int, int, int]]:
    at, end, number = int(batches.starts[batch]) + HEADER.size, int(batches.ends[batch]), 0
    while at < end:
        length, behind = varint(data, at)
        size = behind + length - at
        count = _n_alike(data, at, behind - at, size, end) if size > 0 else 0
        if count < 1:
            raise NeedsRecordReader
        yield at, size, count, number, batch
        at, number = at + size * count, number + count
    if at != end or number != batches.n_records[batch]:
        raise NeedsRecordReader


def _n_alike(data: bytes, at: int, n_digits: int, size: int, end: int) -> int:
    """Return how many records from here on begin with the same length, and so follow on one another; not all if
    many.
    """
    if data[at + size : at + size + n_digits] != data[at : at + n_digits]:
        return int(at + size <= end)
    stop = min(end, at + size * _WINDOW)
    columns = [data[place:stop:size] for place in range(at, at + n_digits)]
    alike = min(len(each) - len(each.lstrip(each[:1])) for each in columns)
    return min(alike, (stop - at) // size)
