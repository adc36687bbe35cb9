"""Fields of Kafka's flexible messages, read from bytes by a table of their names, types, versions and tags.

KIP-482 has the encoding: lengths are unsigned varints of n + 1 (0 is null), a structure ends with its tagged fields.
A reader takes bytes and a position, and gives the value and the position behind it. Values are those of Kafka's own
JSON (``MetadataJsonConverters``): ids in URL-safe base64, bytes in base64, a tagged field only where it is not its
default. All readers of one version of one message are made once.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, TypeAlias

from kit.text.quantity import quantity

Reader: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
Field: TypeAlias = Mapping[str, Any]
"""``name``, ``type``, ``versions``; ``nullable`` (versions), ``tag`` with ``default``, ``fields`` of a structure."""

_TOO_SHORT = "the value ends too early"


class DecodeError(Exception):
    """The bytes are no such value; why, for the row."""


def uvarint(data: bytes, at: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes."""
    if at < len(data) and (only := data[at]) < 0x80:  # Nearly all are one byte.
        return only, at + 1
    value = 0
    for shift in range(0, 35, 7):
        try:
            octet = data[at]
        except IndexError:
            raise DecodeError(_TOO_SHORT) from None
        at += 1
        value |= (octet & 0x7F) << shift
        if octet < 0x80:
            return value, at
    raise DecodeError("the value has a number that never ends")


def is_in(version: int, versions: str) -> bool:
    """Return whether ``0``, ``0-3`` or ``2+`` has a version."""
    first, _, last = versions.rstrip("+").partition("-")
    return version >= int(first) and (versions.endswith("+") or version <= int(last or first))


def struct_reader(fields: Sequence[Field], version: int) -> Reader:
    """The reader of a structure in one version; its values are dictionaries."""
    known = [each for each in fields if is_in(version, each["versions"])]
    plain = [(each["name"], _reader(each, version)) for each in known if "tag" not in each]
    tagged = {each["tag"]: (each["name"], _reader(each, version), each["default"]) for each in known if "tag" in each}

    shapes = Shapes(known) if Shapes.can_hold(known) else None

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        body: dict[str, Any] = {}
        if shapes is not None and (body := shapes.read(data, at) or body):
            return body, len(data)
        start = at
        for name, reader in plain:
            body[name], at = reader(data, at)
        if shapes is not None and data[at:] == b"\0":
            shapes.learn(body, len(data) - start)
        n_tags, at = uvarint(data, at)
        for _ in range(n_tags):
            tag, at = uvarint(data, at)
            size, at = uvarint(data, at)
            _need(data, at, size)
            if tag in tagged:
                name, reader, default = tagged[tag]
                value, end = reader(data, at)
                if end != at + size:
                    raise DecodeError(f"the field {name} is {quantity(end - at, 'byte')} long, and should be {size}")
                if value != default:
                    body[name] = value
            at += size
        return body, at

    return read


class Shapes:
    """Whole messages of numbers, ids and lists of them, each cut at once where its lists are as long as known ones.

    A message of that size fits when each list's length is the expected one and no tag follows; else nothing is read.
    """

    _FORMS: ClassVar = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "int64": "q", "uuid": "16s"}
    _LONGEST, _MOST = 126, 64

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = [each for each in fields if "tag" not in each]
        self._by_size: dict[int, tuple[Any, ...]] = {}

    @classmethod
    def can_hold(cls, fields: Sequence[Field]) -> bool:
        plain = [each for each in fields if "tag" not in each]
        kinds = {each["type"].removeprefix("[]") for each in plain}
        has_lists = any(each["type"].startswith("[]") for each in plain)
        return has_lists and kinds <= set(cls._FORMS) and not any("nullable" in each for each in plain)

    def learn(self, body: Mapping[str, Any], size: int) -> None:
        """Remember how long the lists of a message are that was read."""
        forms, counts, at = [">"], list[tuple[int, int]](), 0
        cuts: list[tuple[str, int, int | None, bool]] = []
        for field in self._fields:
            kind, value = field["type"], body[field["name"]]
            is_id = kind.endswith("uuid")
            if not kind.startswith("[]"):
                forms.append(self._FORMS[kind])
                cuts.append((field["name"], at, None, is_id))
                at += 1
                continue
            counts.append((at, len(value) + 1))
            forms += ["B", *[self._FORMS[kind[2:]]] * len(value)]
            cuts.append((field["name"], at + 1, at + 1 + len(value), is_id))
            at += 1 + len(value)
        if all(count <= self._LONGEST for _, count in counts) and len(self._by_size) < self._MOST:
            whole = struct.Struct("".join([*forms, "B"]))
            if whole.size == size:
                self._by_size[size] = whole.unpack_from, (*counts, (at, 0)), tuple(cuts)

    def read(self, data: bytes, at: int) -> dict[str, Any] | None:
        """The fields; None where no known shape fits."""
        shape = self._by_size.get(len(data) - at)
        if shape is None:
            return None
        unpack, counts, cuts = shape
        values = unpack(data, at)
        for place, count in counts:
            if values[place] != count:
                return None
        body: dict[str, Any] = {}
        for name, start, end, is_id in cuts:
            if end is None:
                body[name] = uuid_text(values[start]) if is_id else values[start]
            else:
                some = values[start:end]
                body[name] = list(map(uuid_text, some)) if is_id else list(some)
        return body


def _reader(field: Field, version: int) -> Reader:
    is_nullable = "nullable" in field and is_in(version, field["nullable"])
    kind = field["type"]
    if kind == "struct":
        return struct_reader(field["fields"], version)
    if kind.startswith("[]"):
        return _array(field, version, is_nullable)
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    return _uuid if kind == "uuid" else _sized(kind, field["name"], is_nullable)


def _number(form: str, kind: Callable[[Any], Any] = int) -> Reader:
    unpack, size = struct.Struct(form).unpack_from, struct.calcsize(form)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        try:
            return kind(unpack(data, at)[0]), at + size
        except struct.error:
            raise DecodeError(_TOO_SHORT) from None

    return read


def _finite(value: float) -> float | str:
    """JSON has no other numbers; Kafka writes all others as text."""
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


_NUMBERS = {
    "int8": _number(">b"),
    "int16": _number(">h"),
    "uint16": _number(">H"),
    "int32": _number(">i"),
    "int64": _number(">q"),
    "float64": _number(">d", _finite),
    "bool": _number(">b", bool),
}


def _uuid(data: bytes, at: int) -> tuple[str, int]:
    _need(data, at, 16)
    return uuid_text(data[at : at + 16]), at + 16


@lru_cache(maxsize=65_536)
def uuid_text(octets: bytes) -> str:
    """An id as Kafka prints it."""
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")


def _need(data: bytes, at: int, size: int) -> None:
    if at + size > len(data):
        raise DecodeError(_TOO_SHORT)


def _length(data: bytes, at: int, name: str, is_nullable: bool) -> tuple[int, int]:
    """-1 is null."""
    counted, at = uvarint(data, at)
    if counted == 0 and not is_nullable:
        raise DecodeError(f"the field {name} is null")
    # Whatever it counts, each is a byte at least: a wrong number must not keep us.
    _need(data, at, counted - 1)
    return counted - 1, at


def _sized(kind: str, name: str, is_nullable: bool) -> Reader:
    is_text = kind == "string"

    def read(data: bytes, at: int) -> tuple[str | None, int]:
        length, at = _length(data, at, name, is_nullable)
        if length < 0:
            return None, at
        octets = data[at : at + length]
        try:
            return octets.decode() if is_text else base64.b64encode(octets).decode(), at + length
        except UnicodeDecodeError:
            raise DecodeError(f"the field {name} is no UTF-8") from None

    return read


def _array(field: Field, version: int, is_nullable: bool) -> Reader:
    name, kind = field["name"], field["type"]
    if kind == "[]int32":
        return _integers(name, is_nullable)
    each = _reader(_element(field), version)

    def read(data: bytes, at: int) -> tuple[list[Any] | None, int]:
        count, at = _length(data, at, name, is_nullable)
        if count < 0:
            return None, at
        items = []
        for _ in range(count):
            value, at = each(data, at)
            items.append(value)
        return items, at

    return read


def _element(field: Field) -> Field:
    return {key: value for key, value in field.items() if key != "nullable"} | {"type": field["type"][2:]}


def _integers(name: str, is_nullable: bool) -> Reader:
    def read(data: bytes, at: int) -> tuple[list[int] | None, int]:
        count, at = _length(data, at, name, is_nullable)
        if count < 0:
            return None, at
        _need(data, at, 4 * count)
        return list(struct.unpack_from(f">{count}i", data, at)), at + 4 * count

    return read
