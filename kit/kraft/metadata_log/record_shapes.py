"""Find the fields of a partition's record, and the bytes which show that another record of that size is built alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kit.kraft.metadata_log.batches import NULL, varint
from kit.kraft.metadata_log.fields import DecodeError, Field, is_in, uvarint
from kit.kraft.metadata_log.records import FRAME_VERSION, RECORD_TYPES

PARTITION, CHANGE = 3, 5
COLUMNS = {
    "partitionId": "partition",
    "replicas": "replicas",
    "isr": "isr",
    "removingReplicas": "removing",
    "addingReplicas": "adding",
    "leader": "leader",
    "leaderRecoveryState": "recovery",
    "leaderEpoch": "leader_epoch",
    "partitionEpoch": "epoch",
}
"""Fields of both types that a table of partitions has, by what an image calls them."""
_MOST_DIGITS = 9
"""A time that is written with more is thousands of years from its batch's."""
_WIDTHS = {"int8": 1, "int32": 4, "uuid": 16}


class Cut(NamedTuple):
    """A field: numbers of ``width`` bytes from ``at`` on. ``length``: of the list; None: it is none."""

    name: str
    at: int
    width: int
    length: int | None


class Shape(NamedTuple):
    """Places from a record's first byte on. In all records of one shape the bytes at ``same`` are the same, and those
    of ``digits`` (numbers of varying value) have the same first bit; ``later`` and ``number`` bound the digits of the
    time after its batch's and of its number in the batch. ``value`` is where its value begins. ``cuts`` are the fields
    behind ``topic``, the id; None: other types, which are not cut.
    """

    kind: int
    same: tuple[int, ...]
    digits: tuple[int, ...]
    later: tuple[int, int]
    number: tuple[int, int]
    value: int
    topic: int | None
    cuts: tuple[Cut, ...]


def shape_of(octets: bytes) -> Shape | None:
    """The shape of a record that can be read; None: it is written in a rare way, and read by itself."""
    try:
        return _shape_of(octets)
    except DecodeError:
        return None


def _shape_of(octets: bytes) -> Shape | None:
    _, attributes = varint(octets, 0)
    _, number = varint(octets, attributes + 1)
    _, key = varint(octets, number)
    length, value = varint(octets, key + 1)
    frame, at = uvarint(octets, value)
    if (
        number - attributes > _MOST_DIGITS
        or octets[key : key + 1] != NULL
        or value + length + 1 != len(octets)
        or frame != FRAME_VERSION
    ):
        return None
    kind, at = uvarint(octets, at)
    version, at = uvarint(octets, at)
    same = [*range(attributes + 1), *range(key, at)]
    topic, cuts = None, list[Cut]()
    if kind in (PARTITION, CHANGE):
        layout = _Layout(octets, at, len(octets) - 1)
        if not is_in(version, RECORD_TYPES[kind].versions) or not layout.take(RECORD_TYPES[kind].fields, version):
            return None
        same += [*layout.same, len(octets) - 1]
        topic, cuts = layout.topic, layout.cuts
    digits = tuple(range(attributes + 1, key))
    return Shape(kind, tuple(same), digits, (attributes + 1, number), (number, key), value, topic, tuple(cuts))


class _Layout:
    """The fields of one message, walked through once."""

    def __init__(self, octets: bytes, at: int, end: int) -> None:
        self.same: list[int] = []
        self.cuts: list[Cut] = []
        self.topic: int | None = None
        self._octets, self._at, self._end = octets, at, end

    def take(self, fields: Sequence[Field], version: int) -> bool:
        """Return whether all lengths and tags are plain bytes, no tag comes twice, and the message ends where it
        should.
        """
        known = [each for each in fields if is_in(version, each["versions"])]
        tagged = {each["tag"]: each for each in known if "tag" in each}
        is_plain = all(self._field(each) for each in known if "tag" not in each)
        for _ in range(self._fixed() if is_plain else 0):
            field, size = tagged.pop(self._fixed(), None), self._fixed()
            end = self._at + size
            if field is None or not self._field(field) or self._at != end:
                return False
        return is_plain and self._at == self._end

    def _fixed(self) -> int:
        """A byte that reports how the message is built."""
        if self._at >= self._end or self._octets[self._at] > 127:
            raise DecodeError("a length or tag of more than one byte")
        self.same.append(self._at)
        self._at += 1
        return self._octets[self._at - 1]

    def _field(self, field: Field) -> bool:
        kind, count = field["type"], None
        if kind.startswith("[]"):
            count = self._fixed() - 1
            if count < 0:
                return False
        width = _WIDTHS[kind.removeprefix("[]")]
        if field["name"] == "topicId":
            self.topic = self._at
        elif field["name"] in COLUMNS:
            self.cuts.append(Cut(COLUMNS[field["name"]], self._at, width, count))
        self._at += width * (1 if count is None else count)
        return True
