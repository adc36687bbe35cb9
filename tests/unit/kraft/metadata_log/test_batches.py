"""Record batches: layout, checksums, compression, damage."""

from __future__ import annotations

import struct

import pytest
from google_crc32c import value as crc32c

from kit.kraft.metadata_log.batches import HEADER, read_batches, whole_batches
from tests import metadata_records as written

NO_OP = bytes.fromhex("01140000")
REAL = bytes.fromhex(
    "00000000000000080000003c00000001027f78df36000000000000000001a206bce96700"
    "0001a206bce967ffffffffffffffffffffffffffff000000011400000001080114000000"
)
"""A NoOp that a controller of 4.1.1 wrote. DumpLogSegments: size 72, CreateTime 1795409373543, crc 2138627894."""


def test_a_checksum_is_castagnolis():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0


def test_a_batch_of_a_controller():
    (batch,) = read_batches(REAL)
    assert (batch.error, batch.base_offset, batch.last_offset, batch.epoch, batch.is_control) == (None, 8, 8, 1, False)
    assert batch.records == [(8, 1795409373543, None, NO_OP)]
    assert int.from_bytes(REAL[17:21], "big") == 2138627894


def test_offsets_and_times_are_counted_from_the_batch():
    octets = written.batch(
        100, [b"a", b"b", None], epoch=7, first_ms=1000, deltas_ms=[0, 5, -3], keys=[b"k", None, b""]
    )
    (batch,) = read_batches(octets)
    assert batch.records == [(100, 1000, b"k", b"a"), (101, 1005, None, b"b"), (102, 997, b"", None)]
    assert batch.epoch == 7


def test_append_time_is_one_for_all():
    octets = written.batch(0, [b"a", b"b"], first_ms=1000, deltas_ms=[0, 5], attributes=0x08)
    assert [each[1] for each in next(read_batches(octets)).records] == [1005, 1005]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "snappy-java", "lz4", "zstd"])
def test_every_compression_of_kafka(codec):
    values = [bytes([at]) * 300 for at in range(20)]
    (batch,) = read_batches(written.batch(0, values, codec=codec))
    assert [each[3] for each in batch.records] == values


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_an_unknown_compression_is_reported(codec):
    octets = written.batch(0, [b"value"])
    attributes = ["none", "gzip", "snappy", "lz4", "zstd"].index(codec)
    body = struct.pack(">h", attributes) + octets[23:]
    (batch,) = read_batches(octets[:17] + struct.pack(">I", crc32c(body)) + body)
    assert batch.records == []
    assert batch.error is not None
    assert batch.error.startswith("the records of a batch can't be read: the batch's ")


def test_a_changed_byte_is_reported_and_the_next_batch_is_read():
    octets = bytearray(written.batch(0, [b"aaaa"]) + written.batch(1, [b"bbbb"]))
    octets[65] ^= 0x01
    broken, whole = read_batches(bytes(octets))
    assert (broken.base_offset, broken.records) == (None, [])
    assert "checksum of a batch" in broken.error
    assert whole.records[0][0] == 1


@pytest.mark.parametrize(
    ("keep", "told"),
    [
        (61 + 5, "the file ends within a batch: 7 of 73 bytes are missing"),
        (40, "the file ends within the header of a batch: 40 bytes are left"),
    ],
)
def test_a_cut_file_ends_with_what_is_missing(keep, told):
    octets = written.batch(0, [b"a"]) + written.batch(1, [b"value"])
    first = len(written.batch(0, [b"a"]))
    batches = list(read_batches(octets[: first + keep]))
    assert [each.error for each in batches] == [None, told]


def test_zeros_at_the_end_are_room_that_no_one_wrote_to():
    assert [each.error for each in read_batches(written.batch(0, [b"a"]) + bytes(200))] == [None]
    assert list(read_batches(b"")) == []


@pytest.mark.parametrize(
    ("at", "octets", "told"),
    [
        (16, b"\x01", "no batch of format 2 begins here: its format is 1"),
        (8, b"\xff\xff\xff\xff", "a batch can't be -1 bytes long"),
        (8, b"\x00\x00\x00\x05", "a batch can't be 5 bytes long"),
    ],
)
def test_a_header_that_is_none(at, octets, told):
    good = bytearray(written.batch(0, [b"a"]))
    good[at : at + len(octets)] = octets
    assert [each.error for each in read_batches(bytes(good))] == [told]


def test_a_count_that_is_too_high_or_too_low_is_reported():
    for count in (1, 3):
        octets = bytearray(written.batch(0, [b"a", b"b"]))
        octets[57:61] = struct.pack(">i", count)
        octets[17:21] = struct.pack(">I", crc32c(bytes(octets[21:])))
        (batch,) = read_batches(bytes(octets))
        assert batch.records == []
        assert "can't be read" in batch.error


@pytest.mark.parametrize("base_offset", [-1, 2**63 - 1])
def test_an_offset_that_no_log_has(base_offset):
    (batch,) = read_batches(written.batch(base_offset, [b"a"]))
    assert (batch.error, batch.records) == (f"a batch can't begin at offset {base_offset}", [])


def test_a_fetch_that_cuts_its_last_batch():
    octets = written.batch(5, [b"a", b"b"], epoch=2) + written.batch(7, [b"c"], epoch=3)
    assert whole_batches(octets) == (len(octets), 8, 3)
    assert whole_batches(octets[:-1]) == (len(written.batch(5, [b"a", b"b"])), 7, 2)
    assert whole_batches(octets[: HEADER.size]) is None
