"""Bytes of a log segment or checkpoint → record batches of format 2 (``DefaultRecordBatch`` in Kafka) → records.

A batch that is damaged gives its reason and no records; what follows it is read when its length still leads to a
batch. Nothing raises for what is in the bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from google_crc32c import value as crc32c

from kit.kraft.metadata_log.fields import DecodeError, uvarint
from kit.text.quantity import quantity

Bytes: TypeAlias = bytes | memoryview
Row: TypeAlias = tuple[int, int, bytes | None, bytes | None]
"""Offset, time (ms), key, value."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""Base offset, length, epoch, magic, CRC, attributes, last offset delta, two times, producer (3), record count."""
_LENGTH_FROM, CRC_FROM = 12, 21
"""Its checksum is CRC-32C (Castagnoli)."""
MOST_OFFSET = 2**62
"""No log gets there: so many records take Kafka a million years."""
_MOST_BYTES = 256 * 2**20
"""A batch is 8 MiB at most when a controller writes it; one that grows beyond this is no batch of a metadata log."""
_CODECS = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
_SNAPPY_STREAM = b"\x82SNAPPY\0"
NULL = b"\x01"
CODEC, IS_APPEND_TIME, _IS_CONTROL = 0x07, 0x08, 0x20


class Header(NamedTuple):
    """A batch's header that holds."""

    base_offset: int
    epoch: int
    attributes: int
    last_delta: int
    first_ms: int
    last_ms: int
    n_records: int

    @property
    def codec(self) -> int:
        return self.attributes & CODEC

    @property
    def is_append_time(self) -> bool:
        return bool(self.attributes & IS_APPEND_TIME)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _IS_CONTROL)


class Batch(NamedTuple):
    """One batch. ``error`` gives the reason it has no records; then ``last_offset`` may be unknown, as may all of it
    be."""

    position: int
    base_offset: int | None
    last_offset: int | None
    epoch: int | None
    is_control: bool
    error: str | None
    records: list[Row]


def read_batches(data: Bytes) -> Iterator[Batch]:
    """All batches of a file, in order; the last one may be an error about what can't be read behind it."""
    view, at = memoryview(data), 0
    while at < len(view):
        end = batch_end(view, at)
        if isinstance(end, str):
            if not is_empty(view, at):
                yield _broken(at, end)
            break
        yield _batch(view, at, end)
        at = end


def is_empty(view: memoryview, at: int) -> bool:
    """Zeros to the end: room that was never written."""
    return len(view) - at >= HEADER.size and not bytes(view[at:]).strip(b"\0")


def whole_batches(data: Bytes) -> tuple[int, int, int] | None:
    """The bytes that are whole batches (a Fetch may cut the last one), the offset behind them and the last epoch."""
    view, at, whole = memoryview(data), 0, None
    while at < len(view) and isinstance(end := batch_end(view, at), int):
        base_offset, _, epoch, _, _, _, last_delta, *_ = HEADER.unpack_from(view, at)
        at, whole = end, (end, base_offset + last_delta + 1, epoch)
    return whole


def written_after(data: Bytes, offset: int) -> int | None:
    """Return when (ms) the first batch with a record behind ``offset`` was written; None: there is none."""
    tail = batches_after(data, offset)
    return int(HEADER.unpack_from(tail)[7]) if tail else None


def batches_after(data: Bytes, offset: int) -> memoryview:
    """The bytes from the first batch with a record behind ``offset`` on; none are decoded to find it."""
    view, at = memoryview(data), 0
    while at < len(view) and isinstance(end := batch_end(view, at), int):
        base_offset, _, _, _, _, _, last_delta, *_ = HEADER.unpack_from(view, at)
        if base_offset + last_delta > offset:
            return view[at:]
        at = end
    return view[:0]


def batch_end(view: memoryview, at: int) -> int | str:
    """Return where the batch ends, or why that is not known."""
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


def batch_header(view: memoryview, at: int, end: int) -> Header | str:
    """Return the header of a batch, or why it can't be believed."""
    base_offset, _, epoch, _, crc, attributes, last_delta, first_ms, last_ms, *_, count = HEADER.unpack_from(view, at)
    if (computed := crc32c(bytes(view[at + CRC_FROM : end]))) != crc:
        return f"the checksum of a batch is {computed:08x}, and should be {crc:08x}: its bytes were changed"
    if not 0 <= base_offset <= MOST_OFFSET:
        return f"a batch can't begin at offset {base_offset}"
    return Header(base_offset, epoch, attributes, last_delta, first_ms, last_ms, count)


def _batch(view: memoryview, at: int, end: int) -> Batch:
    header = batch_header(view, at, end)
    if isinstance(header, str):
        return _broken(at, header)
    base_offset = header.base_offset
    batch = Batch(at, base_offset, base_offset + header.last_delta, header.epoch, header.is_control, None, [])
    try:
        body = _unpacked(bytes(view[at + HEADER.size : end]), header.codec)
        records = list(records_in(body, header.n_records, base_offset, header.first_ms))
    except DecodeError as problem:
        return batch._replace(error=f"the records of a batch can't be read: {problem}")
    if header.is_append_time:
        records = [(offset, header.last_ms, key, value) for offset, _, key, value in records]
    return batch._replace(records=records)


def records_in(body: bytes, count: int, base_offset: int, first_ms: int) -> Iterator[Row]:
    """The records of a batch's body; raises DecodeError."""
    at = 0
    for _ in range(count):
        length, start = varint(body, at)
        at = start + length
        if length < 0 or at > len(body):
            raise DecodeError("the value ends too early")
        delta_ms, place = varint(body, start + 1)
        delta, place = varint(body, place)
        if not 0 <= delta < 2**31:
            raise DecodeError(f"a record's offset delta {delta} is outside the range of its batch")
        if body.startswith(NULL, place):  # Only control records have keys.
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
    import pyarrow as pa  # Controllers compress nothing, and it takes longer to load than a log to read.

    if codec not in _CODECS:
        raise DecodeError(f"the batch has compression {codec}, which this offramp can't read")
    try:
        return _snappy(body) if codec == 2 else _streamed(body, _CODECS[codec])
    except (OSError, ValueError, pa.ArrowException) as problem:
        raise DecodeError(f"the batch's {_CODECS[codec]} data can't be unpacked: {problem}") from None


def _streamed(body: bytes, codec: str) -> bytes:
    import pyarrow as pa

    with pa.input_stream(pa.py_buffer(body), compression=codec) as stream:
        content: bytes = stream.read(_MOST_BYTES)
    return content


def _snappy(body: bytes) -> bytes:
    """One block, or snappy-java's stream of blocks, which Java clients and brokers write."""
    if not body.startswith(_SNAPPY_STREAM):
        return _snappy_block(body)
    blocks, at = [], len(_SNAPPY_STREAM) + 8
    while at < len(body):
        (size,) = struct.unpack(">i", body[at : at + 4].rjust(4, b"\0"))
        if size <= 0:
            raise DecodeError("the batch's snappy data has a block of no size")
        blocks.append(_snappy_block(body[at + 4 : at + 4 + size]))
        at += 4 + size
    return b"".join(blocks)


def _snappy_block(block: bytes) -> bytes:
    import pyarrow as pa

    size, _ = uvarint(block, 0)
    if size > _MOST_BYTES:
        raise DecodeError(f"the batch's snappy data would become {quantity(size, 'byte')}")
    unpacked: bytes = pa.Codec("snappy").decompress(block, size, asbytes=True)
    return unpacked
