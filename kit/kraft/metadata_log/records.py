"""A record of a metadata log: framed value → its type, version and fields.

A value is the frame version (1), ``apiKey`` and version as unsigned varints, then the message (KIP-631). Types that
aren't known, and newer versions of known ones, keep their bytes. Secrets end here: what a credential is made of and
the values of brokers' settings that may be passwords become ``***``; Kafka's ``RecordRedactor`` redacts the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from kit.kraft.metadata_log.batches import Batch, Bytes, read_batches
from kit.kraft.metadata_log.fields import DecodeError, Field, Reader, is_in, struct_reader, uvarint
from kit.kraft.metadata_log.secrets import has_secrets, without_secrets
from kit.text.fingerprints import Hide, stars
from kit.text.quantity import quantity

BEGIN, END, ABORT = 23, 24, 25
FRAME_VERSION, _MOST = 1, 32_767


@dataclass(frozen=True)
class RecordType:
    """A metadata record type, or a control record type, as ``record_types.json`` has it."""

    name: str
    versions: str
    fields: tuple[Field, ...]


def _types(kind: str) -> Mapping[int, RecordType]:
    table = json.loads(files(__package__).joinpath("record_types.json").read_text(encoding="utf-8"))[kind]
    return {int(key): RecordType(each["name"], each["versions"], tuple(each["fields"])) for key, each in table.items()}


RECORD_TYPES = _types("records")
"""By ``apiKey``: all of Kafka 4.1, which are those of 3.9 and ClearElr."""
CONTROL_TYPES = _types("controls")
"""By the type in a control record's key."""


class Record(NamedTuple):
    """One record, or one place that can't be read (``error``).

    ``api_key`` is None for control records and where it can't be read. ``body`` has Kafka's names; None where it could
    not be read: then ``raw`` are the value's bytes, if its type or version is not known, and ``error`` reports it.
    """

    offset: int | None
    epoch: int | None
    written_ms: int
    api_key: int | None
    version: int | None
    name: str | None
    body: dict[str, Any] | None
    raw: bytes | None = None
    error: str | None = None
    is_known: bool = True
    """False for a type or version of a newer Kafka, which is no damage."""
    gap: tuple[int, int] | None = None
    """The first and the last offset that are missing: the place is a gap of the log."""
    file: str = ""


def read_records(data: Bytes, file: str = "", hide: Hide = stars) -> Iterator[Record]:
    """Every record of a segment's or checkpoint's bytes, control records too; a damaged batch is one with an error.

    ``hide`` reports what is in a secret's place.
    """
    for batch in read_batches(data):
        yield from _records_of(batch, file, hide)


def _records_of(batch: Batch, file: str, hide: Hide) -> Iterator[Record]:
    if batch.error is not None:
        yield Record(None, batch.epoch, -1, None, None, None, None, error=batch.error, file=file)
    epoch = batch.epoch
    for offset, written_ms, key, value in batch.records:
        record = _control(key, value) if batch.is_control else parse_value(value, hide)
        yield Record(offset, epoch, written_ms, *record[3:-1], file)


def parse_value(value: bytes | None, hide: Hide = stars) -> Record:
    """A framed value → a record without its place."""
    key = version = None
    try:
        if value is None:
            raise DecodeError("the record has no value")
        frame, at = uvarint(value, 0)
        if frame != FRAME_VERSION:
            raise DecodeError(f"version {frame} of a record's frame is not known")
        key, at = uvarint(value, at)
        version, at = uvarint(value, at)
        if max(key, version) > _MOST:
            raise DecodeError("the record's type or version is no number of 16 bits")
        return _typed(RECORD_TYPES.get(key), "record", key, version, value, at, hide)
    except DecodeError as problem:
        name = RECORD_TYPES[key].name if key is not None and key in RECORD_TYPES else None
        key, version = (None if each is None or each > _MOST else each for each in (key, version))
        return Record(None, None, -1, key, version, name, None, error=str(problem))


def _control(key: bytes | None, value: bytes | None) -> Record:
    """A control record: the key has its own version and the type; the value begins with its version."""
    kind = int.from_bytes((key or b"")[2:4], "big", signed=True) if len(key or b"") >= 4 else -1
    version = int.from_bytes((value or b"")[:2], "big", signed=True)
    try:
        record = _typed(CONTROL_TYPES.get(kind), "control record", kind, version, value or b"", 0)
    except DecodeError as problem:
        record = Record(None, None, -1, None, version, CONTROL_TYPES[kind].name, None, error=str(problem))
    return record._replace(api_key=None)


def _typed(
    kind: RecordType | None, category: str, key: int, version: int, value: bytes, at: int, hide: Hide = stars
) -> Record:
    if kind is None:
        error = f"type {key} of a {category} is not known"
        return Record(None, None, -1, key, version, None, None, value, error, is_known=False)
    reader = _reader(category, key, version)
    if reader is None:
        error = f"version {version} of {kind.name} is not known"
        raw = None if has_secrets(kind.name) else value
        return Record(None, None, -1, key, version, kind.name, None, raw, error, is_known=False)
    body, end = reader(value, at)
    if end != len(value):
        raise DecodeError(f"{quantity(len(value) - end, 'byte follows', 'bytes follow')} the fields")
    return Record(None, None, -1, key, version, kind.name, without_secrets(kind.name, body, hide))


@cache
def _reader(category: str, key: int, version: int) -> Reader | None:
    """None where that version of it is not known."""
    kind = (RECORD_TYPES if category == "record" else CONTROL_TYPES)[key]
    return struct_reader(kind.fields, version) if is_in(version, kind.versions) else None
