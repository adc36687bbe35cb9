"""Any bytes: rows, with an error where they are none; whole records come back as they were written."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import pytest
from google_crc32c import value as crc32c
from hypothesis import given, settings, strategies as st

from kit.kraft.metadata_log import read_log
from kit.kraft.metadata_log.batches import read_batches
from kit.kraft.metadata_log.fields import is_in
from kit.kraft.metadata_log.records import RECORD_TYPES, parse_value, read_records
from kit.kraft.metadata_log.rows import record_batches
from kit.kraft.metadata_log.secrets import without_secrets
from kit.kraft.metadata_log.transactions import with_transactions
from tests import metadata_records as written
from tests.coordinator_records import compact, tags, uvarint

_NUMBERS = {
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "bool": st.booleans(),
}
_UUIDS = st.integers(0, 2**128 - 1).map(written.uuid)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def values(field: Any, version: int) -> st.SearchStrategy[Any]:
    kind = field["type"]
    if kind == "struct":
        return bodies(field["fields"], version)
    if kind.startswith("[]"):
        element = {key: each for key, each in field.items() if key != "nullable"} | {"type": kind[2:]}
        found = st.lists(values(element, version), max_size=3)
    elif kind in _NUMBERS:
        return _NUMBERS[kind]
    elif kind == "bytes":
        found = st.binary(max_size=9).map(lambda octets: base64.b64encode(octets).decode())
    else:
        found = _UUIDS if kind == "uuid" else _TEXTS
    is_nullable = "nullable" in field and is_in(version, field["nullable"])
    return st.none() | found if is_nullable else found


def bodies(fields: Any, version: int) -> st.SearchStrategy[dict[str, Any]]:
    here = [each for each in fields if is_in(version, each["versions"])]
    plain = {each["name"]: values(each, version) for each in here if "tag" not in each}
    tagged = {each["name"]: values(each, version) for each in here if "tag" in each}
    return st.fixed_dictionaries(plain, optional=tagged)


@st.composite
def records(draw: st.DrawFn) -> tuple[str, int, dict[str, Any]]:
    kind = RECORD_TYPES[draw(st.sampled_from(sorted(RECORD_TYPES)))]
    first, _, last = kind.versions.partition("-")
    version = draw(st.integers(int(first), int(last or first)))
    return kind.name, version, draw(bodies(kind.fields, version))


@given(records())
def test_a_record_comes_back_as_it_was_written(record):
    name, version, body = record
    found = parse_value(written.value(name, body, version))
    assert (found.error, found.name, found.version) == (None, name, version)
    defaults = {each["name"]: each["default"] for each in RECORD_TYPES[written.KEYS[name]].fields if "tag" in each}
    told = {key: value for key, value in body.items() if key not in defaults or value != defaults[key]}
    assert found.body == without_secrets(name, told)


@given(records(), st.data())
def test_a_cut_record_is_a_row_with_an_error(record, data):
    octets = written.value(*record[:1], record[2], record[1])
    found = parse_value(octets[: data.draw(st.integers(0, len(octets) - 1))])
    assert found.body is None
    assert found.error is not None
    assert found.raw is None


@given(st.binary(max_size=300))
def test_random_bytes_are_no_record(octets):
    for found in (parse_value(octets), parse_value(b"\x01" + octets)):
        assert (found.body is None) == (found.error is not None)


@given(st.sampled_from(sorted(RECORD_TYPES)), st.integers(0, 3), st.binary(max_size=120))
def test_random_fields_of_a_known_type(key, version, octets):
    found = parse_value(written.framed(key, version, octets))
    assert (found.body is None) == (found.error is not None)
    assert found.api_key == key


LOG = written.control(0, "LeaderChange", {"leaderId": 1}) + written.segment(
    written.topic("orders", 1),
    written.partition(1, 0),
    written.value("BeginTransaction"),
    written.change(1, 0, isr=[1], leader=2),
    written.value("EndTransaction"),
    written.credential("alice", b"hush-hush"),
    written.config(4, "", "ssl.key.password", "hush-hush"),
    written.quota({"user": None}, "producer_byte_rate", 1.5),
    written.broker(1),
    written.framed(29, 0, b"later"),
    base_offset=1,
)
WHOLE = list(read_records(LOG))
ENDS = {each.position: len(each.records) for each in read_batches(LOG)}


@given(st.integers(0, len(LOG)))
def test_a_cut_log_is_what_is_whole_and_one_error(size):
    found = list(read_records(LOG[:size]))
    good = [each for each in found if each.error is None or not each.is_known]
    assert good == WHOLE[: len(good)]
    n_whole = sum(n for position, n in ENDS.items() if end_of(position) <= size)
    assert len(good) == n_whole
    assert len(found) - len(good) == (0 if size in {0, *map(end_of, ENDS)} else 1)


def end_of(position: int) -> int:
    return min((each for each in [*ENDS, len(LOG)] if each > position), default=len(LOG))


def rows(octets: bytes) -> list[dict[str, Any]]:
    return [row for each in record_batches(with_transactions(read_records(octets, "f"))) for row in each.to_pylist()]


@given(st.lists(st.tuples(st.integers(0, len(LOG) - 1), st.integers(1, 255)), min_size=1, max_size=4))
def test_flipped_bits_are_reported_and_touch_no_other_batch(flips):
    octets = bytearray(LOG)
    for at, bits in flips:
        octets[at] ^= bits
    found = list(read_records(bytes(octets)))
    # Base offset and epoch are not under the checksum, nor in Kafka.
    uncovered = {
        at for position in ENDS for at in [*range(position, position + 8), *range(position + 12, position + 16)]
    }
    if {at for at, each in enumerate(LOG) if each != octets[at]} - uncovered:
        assert any(each.error is not None and each.is_known for each in found)
    for each in found:
        same = [whole for whole in WHOLE if whole.body == each.body and whole.name == each.name]
        assert same or each.body is None
    told = str(rows(bytes(octets)))
    assert "hush" not in told
    assert "aHVzaC" not in told


@settings(max_examples=60)
@given(st.binary(max_size=400), st.booleans(), st.integers(0, len(LOG)))
def test_a_file_of_anything_is_read(octets, is_checkpoint, size):
    """Random bytes behind a good beginning: an image, an account, records; nothing raises."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"{0:020}-{1:010}.checkpoint" if is_checkpoint else f"{0:020}.log"
        (Path(folder) / name).write_bytes(LOG[:size] + octets)
        log = read_log(folder)
        assert log.files["n_records"].sum() == len(log.records)
        assert len(log.partitions) == log.image.n_partitions
        assert log.items.columns
        assert str(log)


@settings(max_examples=60)
@given(st.lists(records(), max_size=12), st.integers(-(2**63), 2**63 - 1) | st.just(0), st.integers(0, 2**31 - 1))
def test_records_that_fit_nothing_are_replayed(some, base_offset, epoch):
    """Every table can be made of any fields that Kafka could have written, in any order."""
    given_values = [*(written.value(name, body, version) for name, version, body in some), written.topic("last", 1)]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / f"{0:020}.log").write_bytes(written.batch(base_offset, given_values, epoch))
        log = read_log(folder)
        assert len(log.records) == log.files["n_records"].sum() >= 1
        assert (len(log.partitions), len(log.nodes)) == (
            log.image.n_partitions,
            len(log.image.brokers) + len(log.image.controllers),
        )
        is_replayed = base_offset == 0 and "BeginTransaction" not in {name for name, _, _ in some}
        assert not is_replayed or ("topic", "last") in log.items.select("kind", "entity").rows()


@given(st.lists(st.tuples(st.integers(0, 60), st.binary(max_size=12)), max_size=8))
def test_a_batch_of_any_values_under_a_good_checksum(parts):
    """A bug, or somebody's hand: every record by itself is read or says why not."""
    values = [written.framed(key, 0, octets) for key, octets in parts]
    found = list(read_records(written.batch(0, values))) if values else []
    assert [each.offset for each in found] == list(range(len(values)))
    assert all((each.body is None) == (each.error is not None) for each in found)


@given(st.binary(max_size=80), st.integers(0, 4), st.integers(-3, 5))
def test_a_batch_of_any_body_under_a_good_checksum(body, codec, count):
    good = written.batch(0, [b"value"])
    covered = bytes([0, codec]) + good[23:57] + count.to_bytes(4, "big", signed=True) + body
    head = good[:8] + (9 + len(covered)).to_bytes(4, "big") + good[12:17]
    (batch,) = read_batches(head + crc32c(covered).to_bytes(4, "big") + covered)
    assert batch.error is None or batch.records == []


@pytest.mark.parametrize("per_batch", [1, 2, 5, 100])
def test_an_image_does_not_depend_on_how_records_are_batched(per_batch):
    values = [written.topic("a", 1), written.partition(1, 0), *(written.change(1, 0, leader=at % 3) for at in range(9))]
    with tempfile.TemporaryDirectory() as folder:
        written.write_log(Path(folder), {0: written.segment(*values, per_batch=per_batch)})
        (row,) = read_log(folder).partitions.to_dicts()
    assert (row["leader"], row["leader_epoch"], row["partition_epoch"]) == (8 % 3, 9, 9)


def test_the_compact_form_is_the_one_of_kafka():
    """The encoder of these tests, against bytes written down manually (KIP-482)."""
    assert compact("ab") == b"\x03ab"
    assert compact(None) == b"\x00"
    assert uvarint(300) == b"\xac\x02"
    assert tags({2: b"x", 0: b""}) == b"\x02\x00\x00\x02\x01x"
