"""Bytes of a log segment or checkpoint → record batches of format 2 (``DefaultRecordBatch`` in Kafka) → records.

A batch that is damaged gives its reason and no records; what follows it is read when its length still leads to a
batch. Nothing raises for what stands in the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from kit.metadata_log.crc32c import crc32c_each
from kit.metadata_log.fields import DecodeError, uvarint
from kit.text.quantity import quantity

Bytes: TypeAlias = bytes | memoryview
Row: TypeAlias = tuple[int, int, bytes | None, bytes | None]
"""Offset, time (ms), key, value."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, epoch, magic, CRC, attributes, last offset delta, two times, producer (3), record count."""
_LENGTH_FROM, _CRC_FROM = 12, 21
MOST_OFFSET = 2**62
"""No log gets there: so many records take Kafka a million years."""
_MOST_BYTES = 256 * 2**20
"""A batch is 8 MiB at most when a controller writes it; one that grows beyond this is no batch of a metadata log."""
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_SNAPPY_STREAM = b"\x82SNAPPY\0"
_NULL = b"\x01"
_IS_APPEND_TIME, _IS_CONTROL = 0x08, 0x20


class Batch(NamedTuple):
    """One batch. ``error`` says why it has no records; then ``last_offset`` may be unknown, as may all of it be."""

    position: int
    base_offset: int | None
    last_offset: int | None
    epoch: int | None
    is_control: bool
    error: str | None
    records: list[Row]


def read_batches(data: Bytes) -> Iterator[Batch]:
    """All batches of a file, in order; the last one may be an error about what can't be read behind it."""
    view, at, whole, problem = memoryview(data), 0, list[tuple[int, int]](), None
    while at < len(view):
        end = _end(view, at)
        if isinstance(end, str):
            if len(view) - at < HEADER.size or bytes(view[at:]).strip(b"\0"):  # Zeros: room that nobody wrote to.
                problem = _broken(at, end)
            break
        whole.append((at, end))
        at = end
    checksums = crc32c_each(view, [(start + _CRC_FROM, end) for start, end in whole])
    for (start, end), checksum in zip(whole, checksums):
        yield _batch(view, start, end, checksum)
    if problem is not None:
        yield problem


def whole_batches(data: Bytes) -> tuple[int, int, int] | None:
    """The bytes that are whole batches (a Fetch may cut the last one), the offset behind them and the last epoch."""
    view, at, found = memoryview(data), 0, None
    while at < len(view) and isinstance(end := _end(view, at), int):
        base_offset, _, epoch, _, _, _, last_delta, *_ = HEADER.unpack_from(view, at)
        at, found = end, (end, base_offset + last_delta + 1, epoch)
    return found


def written_after(data: Bytes, offset: int) -> int | None:
    """When (ms) the first batch with a record behind ``offset`` was written; None: there is none."""
    view, at = memoryview(data), 0
    while at < len(view) and isinstance(end := _end(view, at), int):
        base_offset, _, _, _, _, _, last_delta, first_ms, *_ = HEADER.unpack_from(view, at)
        if base_offset + last_delta > offset:
            return int(first_ms)
        at = end
    return None


def _end(view: memoryview, at: int) -> int | str:
    """Where the batch ends, or why nobody knows."""
    if len(view) - at < HEADER.size:
        return f"the file ends within the header of a batch: {quantity(len(view) - at, 'byte is', 'bytes are')} left"
    _, length, _, magic, *_ = HEADER.unpack_from(view, at)
    if magic != 2:
        return f"no batch of format 2 begins here: its format is {magic}"
    end = at + _LENGTH_FROM + length
    if end - at < HEADER.size:
        return f"a batch can't be {quantity(length, 'byte')} long"
    if end > len(view):
        return f"the file ends within a batch: {end - len(view)} of {end - at} bytes are missing"
    return int(end)


def _broken(at: int, error: str) -> Batch:
    return Batch(at, None, None, None, False, error, [])


def _batch(view: memoryview, at: int, end: int, found: int) -> Batch:
    base_offset, _, epoch, _, crc, attributes, last_delta, first_ms, last_ms, *_, count = HEADER.unpack_from(view, at)
    if found != crc:
        return _broken(at, f"the checksum of a batch is {found:08x}, and should be {crc:08x}: its bytes were changed")
    if not 0 <= base_offset <= MOST_OFFSET:
        return _broken(at, f"a batch can't begin at offset {base_offset}")
    batch = Batch(at, base_offset, base_offset + last_delta, epoch, bool(attributes & _IS_CONTROL), None, [])
    try:
        body = _unpacked(bytes(view[at + HEADER.size : end]), attributes & 0x07)
        records = list(_records(body, count, base_offset, first_ms))
    except DecodeError as problem:
        return batch._replace(error=f"the records of a batch can't be read: {problem}")
    if attributes & _IS_APPEND_TIME:
        records = [(offset, last_ms, key, value) for offset, _, key, value in records]
    return batch._replace(records=records)


def _records(body: bytes, count: int, base_offset: int, first_ms: int) -> Iterator[Row]:
    at = 0
    for _ in range(count):
        length, start = varint(body, at)
        at = start + length
        if length < 0 or at > len(body):
            raise DecodeError("the value ends too early")
        delta_ms, place = varint(body, start + 1)
        delta, place = varint(body, place)
        if not 0 <= delta < 2**31:
            raise DecodeError(f"a record can't be {delta} behind its batch's first")
        if body.startswith(_NULL, place):  # Only control records have keys.
            key, place = None, place + 1
        else:
            key, place = _sized(body, place, at)
        value, place = _sized(body, place, at)
        yield base_offset + delta, first_ms + delta_ms, key, value
    if at != len(body):
        raise DecodeError(f"{quantity(len(body) - at, 'byte follows', 'bytes follow')} its last record")


def _sized(body: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    length, at = varint(body, at)
    if length < 0:
        return None, at
    if at + length > end:
        raise DecodeError("the value ends too early")
    return body[at : at + length], at + length


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag varint; of at most ten bytes, because times have 64 bits."""
    if at < len(data) and (octet := data[at]) < 0x80:  # Nearly all are one byte.
        return octet >> 1 ^ -(octet & 1), at + 1
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise DecodeError("the value has a number that never ends")
        octet = data[at]
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7


def _unpacked(body: bytes, codec: int) -> bytes:
    if codec == 0:
        return body
    if codec not in _CODECS:
        raise DecodeError(f"its compression {codec} is not known")
    try:
        return _snappy(body) if codec == 2 else _streamed(body, _CODECS[codec])
    except (OSError, ValueError, pa.ArrowException) as problem:
        raise DecodeError(f"its {_CODECS[codec]} can't be unpacked: {problem}") from None


def _streamed(body: bytes, codec: str) -> bytes:
    with pa.input_stream(pa.py_buffer(body), compression=codec) as stream:
        found: bytes = stream.read(_MOST_BYTES)
    return found


def _snappy(body: bytes) -> bytes:
    """One block, or snappy-java's stream of blocks, which Java clients and brokers write."""
    if not body.startswith(_SNAPPY_STREAM):
        return _snappy_block(body)
    found, at = [], len(_SNAPPY_STREAM) + 8
    while at < len(body):
        (size,) = struct.unpack(">i", body[at : at + 4].rjust(4, b"\0"))
        if size <= 0:
            raise DecodeError("its snappy has a block of no size")
        found.append(_snappy_block(body[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(found)


def _snappy_block(block: bytes) -> bytes:
    size, _ = uvarint(block, 0)
    if size > _MOST_BYTES:
        raise DecodeError(f"its snappy would become {quantity(size, 'byte')}")
    unpacked: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return unpacked
