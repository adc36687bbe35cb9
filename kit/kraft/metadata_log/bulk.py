"""Partitions and their changes by columns: the records that make up nearly all of a big log, a million in a second.

Records of one size and one shape have their fields at the same places. A record that was read plainly (``records``)
reports where they are and which bytes must be the same; NumPy cuts all that fit at once. Other records are read
plainly. Damaged, compressed or unordered data is not for this reader: it raises NeedsRecordReader, and the plain one
reports why.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from kit.kraft.metadata_log.batches import records_in
from kit.kraft.metadata_log.fields import DecodeError, uuid_text
from kit.kraft.metadata_log.files import LogFile
from kit.kraft.metadata_log.record_shapes import CHANGE, COLUMNS, PARTITION, Cut, Shape, shape_of
from kit.kraft.metadata_log.records import Record, parse_value, read_records
from kit.kraft.metadata_log.runs import Batches, NeedsRecordReader, Numbers, runs_of
from kit.text.fingerprints import Hide

_FEW, _MOST_SHAPES, _WORD = 16, 32, 8
"""Fewer records of one size, and those that fit none of so many shapes, are read plainly."""
_AT_ONCE = 2**16
"""Records of one size that are cut at once."""
_PART_BYTES = 8 * 2**20
"""The bytes of a file that are read at once: room that is used repeatedly. To get new room took a third of the time."""
_LISTS = ("replicas", "isr", "removing", "adding")
SCHEMA = {"offset": pl.Int64, "topic": pl.Int32} | {
    name: pl.List(pl.Int32) if name in _LISTS else pl.Int32 for name in COLUMNS.values()
}
"""A row: ``topic`` is the place in ``Bulk.topic_ids``; what a record doesn't name is null.

Lists that are all of one length may be polars' Array, which is many times quicker to move about.
"""
ByteArray = npt.NDArray[np.uint8]


@dataclass
class Bulk:
    """A part of a file: ``first`` and ``last`` record; partitions and changes in ``rows``, all others in ``rest``."""

    name: str
    first: Record | None = None
    last: Record | None = None
    rest: list[Record] = field(default_factory=list)
    rows: dict[int, list[pl.DataFrame]] = field(default_factory=lambda: {PARTITION: [], CHANGE: []})
    topic_ids: list[str] = field(default_factory=list)

    def since(self, offset: int) -> Bulk:
        """Without the records before an offset."""
        rest = [each for each in self.rest if each.offset is not None and each.offset >= offset]
        rows = {kind: [each.filter(pl.col("offset") >= offset) for each in some] for kind, some in self.rows.items()}
        return replace(self, rest=rest, rows=rows)


def read_bulks(file: LogFile, hide: Hide) -> Iterator[Bulk]:
    """Read a file, some MiB at a time; raises NeedsRecordReader, ReadError."""
    with file.opened() as stream:
        left, n_bytes = b"", _PART_BYTES
        while True:
            data = left + file.taken(stream, n_bytes)
            is_last = len(data) < len(left) + n_bytes
            try:
                reading = _Reading(data, file.name, hide, is_last)
            except DecodeError:
                raise NeedsRecordReader from None
            yield reading.bulk
            if is_last:
                return
            # An incomplete batch, or no batch at all, takes more room each time.
            n_bytes = _PART_BYTES if reading.end else 2 * n_bytes
            left = data[reading.end :]


class _Reading:
    """A part of one file, up to ``end``."""

    def __init__(self, data: bytes, name: str, hide: Hide, is_last: bool) -> None:
        self.bulk = Bulk(name)
        self._data, self._hide = data, hide
        self._octets = np.frombuffer(data, np.uint8)
        self._batches = batches = Batches(data, is_last)
        self.end = int(batches.ends[-1]) if len(batches) else 0
        self._topics: dict[bytes, int] = {}
        self._alone: dict[int, list[dict[str, Any]]] = {PARTITION: [], CHANGE: []}
        for batch in np.flatnonzero(batches.is_control).tolist():
            self.bulk.rest += read_records(data[batches.starts[batch] : batches.ends[batch]], name, hide)
        runs = runs_of(data, batches)
        for size in np.unique(runs[:, 1]).tolist():
            for some in _portions(runs[runs[:, 1] == size]):
                self._read(size, some)
        self._finish(runs)

    def _read(self, size: int, runs: Numbers) -> None:
        """All records of one size."""
        counts = runs[:, 2]
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        starts = np.repeat(runs[:, 0], counts) + size * within
        numbers, batches = np.repeat(runs[:, 3], counts) + within, np.repeat(runs[:, 4], counts)
        records = np.ndarray(len(self._octets) - size + 1, f"V{size}", self._data, strides=(1,))[starts]
        records, left = records.view(np.uint8).reshape(-1, size), np.arange(len(starts))
        for _ in range(_MOST_SHAPES):
            if len(left) < _FEW:
                break
            shape = shape_of(records[0].tobytes())
            fits = left == left[0] if shape is None else _fits(records, shape)
            some = left[fits]
            if shape is None:
                self._read_plainly(starts[some], size, numbers[some], batches[some])
            else:
                read = self._read_values if shape.topic is None else self._cut
                read(shape, records if fits.all() else records[fits], numbers[some], batches[some])
            records, left = records[~fits], left[~fits]
        self._read_plainly(starts[left], size, numbers[left], batches[left])

    def _cut(self, shape: Shape, records: ByteArray, numbers: Numbers, batches: Numbers) -> None:
        """The fields of records that are built alike, as a frame."""
        self._refuse_others(shape, records, numbers)
        columns = {
            "offset": self._batches.base_offsets[batches] + numbers,
            "topic": self._topics_of(records, shape.topic or 0),
        }
        columns |= {cut.name: _values(records, cut) for cut in shape.cuts}
        self.bulk.rows[shape.kind].append(_frame(columns))

    def _read_values(self, shape: Shape, records: ByteArray, numbers: Numbers, batches: Numbers) -> None:
        """Records of other types whose frames are built alike: their values, one by one."""
        self._refuse_others(shape, records, numbers)
        later = _number(records, *shape.later)
        offsets = self._batches.base_offsets[batches] + numbers
        times = self._batches.first_ms[batches] + (later >> 1 ^ -(later & 1))
        size = records.shape[1] - 1 - shape.value
        values = np.ascontiguousarray(records[:, shape.value : -1]).tobytes()
        places = zip(offsets.tolist(), self._batches.epochs[batches].tolist(), times.tolist())
        for at, (offset, epoch, written_ms) in enumerate(places):
            record = parse_value(values[at * size : (at + 1) * size], self._hide)
            self.bulk.rest.append(Record(offset, epoch, written_ms, *record[3:-1], self.bulk.name))

    @staticmethod
    def _refuse_others(shape: Shape, records: ByteArray, numbers: Numbers) -> None:
        """Records whose number is not their place in the batch."""
        if not np.array_equal(_number(records, *shape.number), numbers * 2):
            raise NeedsRecordReader

    def _topics_of(self, records: ByteArray, at: int) -> Numbers:
        """The number of each id; ids are resolved where they change."""
        pairs = np.ascontiguousarray(records[:, at : at + 16]).view("<u8")
        is_new = np.ones(len(pairs), np.bool_)
        is_new[1:] = (pairs[1:, 0] != pairs[:-1, 0]) | (pairs[1:, 1] != pairs[:-1, 1])
        octets = pairs[is_new].tobytes()
        numbers = [self._topic(octets[at : at + 16]) for at in range(0, len(octets), 16)]
        return np.repeat(np.array(numbers, np.int32), np.diff([*np.flatnonzero(is_new), len(pairs)]))

    def _topic(self, octets: bytes) -> int:
        return self._topics.setdefault(octets, len(self._topics))

    def _read_plainly(self, starts: Numbers, size: int, numbers: Numbers, batches: Numbers) -> None:
        for start, number, batch in zip(starts.tolist(), numbers.tolist(), batches.tolist()):
            record = self._record(start, size, number, batch)
            if record.api_key in self._alone and record.body is not None:
                self._alone[record.api_key].append(_row(record, self._topic(_octets_of(record))))
            else:
                self.bulk.rest.append(record)

    def _record(self, start: int, size: int, number: int, batch: int) -> Record:
        octets, batches = self._data[start : start + size], self._batches
        base_offset, epoch = int(batches.base_offsets[batch]), int(batches.epochs[batch])
        ((offset, written_ms, _, value),) = records_in(octets, 1, base_offset, int(batches.first_ms[batch]))
        record = parse_value(value, self._hide)
        if offset != base_offset + number or (record.error is not None and record.is_known):
            raise NeedsRecordReader
        return record._replace(offset=offset, epoch=epoch, written_ms=written_ms, file=self.bulk.name)

    def _finish(self, runs: Numbers) -> None:
        bulk, is_control = self.bulk, self._batches.is_control
        for kind, alone in self._alone.items():
            bulk.rows[kind] += [pl.DataFrame(alone, SCHEMA)] if alone else []
        bulk.topic_ids = list(map(uuid_text, self._topics))
        bulk.rest.sort(key=lambda each: each.offset or 0)
        if any(each.error is not None and each.is_known for each in bulk.rest):
            raise NeedsRecordReader
        if len(is_control):
            bulk.first = bulk.rest[0] if is_control[0] else self._of_run(runs[0], 0)
            bulk.last = bulk.rest[-1] if is_control[-1] else self._of_run(runs[-1], runs[-1][2] - 1)

    def _of_run(self, run: Numbers, at: int) -> Record:
        start, size, _, number, batch = run.tolist()
        return self._record(start + size * at, size, number + at, batch)


def _portions(runs: Numbers) -> list[Numbers]:
    """Yield as many runs at once as need little room for what is cut from them; the room is used repeatedly."""
    return np.split(runs, np.flatnonzero(np.diff(np.cumsum(runs[:, 2]) // _AT_ONCE)) + 1)


def _fits(records: ByteArray, shape: Shape) -> npt.NDArray[np.bool_]:
    """Return which are built as the first one is."""
    fits = np.ones(len(records), np.bool_)
    for at, mask in _masks(shape, records.shape[1]):
        words = records[:, at : at + _WORD].view("<u8")[:, 0]
        fits &= (words ^ words[0]) & mask == 0
    return fits


def _number(records: ByteArray, start: int, end: int) -> Numbers:
    """Return the number of each record whose digits are there, with its sign in the last bit."""
    values = np.zeros(len(records), np.int64)
    for digit, at in enumerate(range(start, end)):
        values |= (records[:, at] & 0x7F).astype(np.int64) << 7 * digit
    return values


def _values(records: ByteArray, cut: Cut) -> Numbers:
    length = 1 if cut.length is None else cut.length
    values = records[:, cut.at : cut.at + cut.width * length].view(f">i{cut.width}")
    return (values[:, 0] if cut.length is None else values).astype(np.int32)


def _masks(shape: Shape, size: int) -> Iterator[tuple[int, np.uint64]]:
    """Words of a record, by where they begin: which of their bits are the same in all of its shape."""
    bits = bytearray(size)
    for at in shape.digits:
        bits[at] = 0x80
    for at in shape.same:
        bits[at] = 0xFF
    at = 0
    while at < size and (left := bytes(bits[at:]).lstrip(b"\0")):
        at = min(size - len(left), size - _WORD)
        yield at, np.uint64(int.from_bytes(bits[at : at + _WORD], "little"))
        at += _WORD


def _frame(columns: dict[str, Numbers]) -> pl.DataFrame:
    n_rows = len(columns["offset"])
    return pl.DataFrame(
        [
            pl.Series(name, columns[name])
            if kind == pl.List and name in columns
            else _numbers(name, columns, kind, n_rows)
            for name, kind in SCHEMA.items()
        ]
    )


def _numbers(name: str, columns: dict[str, Numbers], kind: Any, n_rows: int) -> pl.Series:
    return (
        pl.Series(name, columns[name]).cast(kind)
        if name in columns
        else pl.repeat(None, n_rows, dtype=kind, eager=True).alias(name)
    )


def _row(record: Record, topic: int) -> dict[str, Any]:
    body = record.body or {}
    return {"offset": record.offset, "topic": topic} | {name: body.get(key) for key, name in COLUMNS.items()}


def _octets_of(record: Record) -> bytes:
    return base64.urlsafe_b64decode((record.body or {})["topicId"] + "==")
