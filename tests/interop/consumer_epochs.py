"""What the coordinator stored about groups of the new protocol (KIP-848): who had which partitions in which epoch."""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass, field

from confluent_kafka import Consumer, TopicPartition

from kit.lab import Lab
from kit.lab.topics import QUIET

TOPIC = "__consumer_offsets"
MEMBER, TARGET, ASSIGNMENT = 5, 6, 8
SECONDS = 30


@dataclass
class Epochs:
    """``members`` per epoch; ``assigned`` has each member's epoch and partitions of its one topic, in order."""

    members: dict[int, frozenset[str]] = field(default_factory=dict)
    assigned: dict[str, list[tuple[int, frozenset[int]]]] = field(default_factory=lambda: defaultdict(list))


class _Reader:
    """Reads a key, or a value in the flexible form, from its front."""

    def __init__(self, octets: bytes) -> None:
        self.octets, self.at = octets, 0

    def number(self, kind: str) -> int:
        (found,) = struct.unpack_from(kind, self.octets, self.at)
        self.at += struct.calcsize(kind)
        return int(found)

    def text(self) -> str:
        length = self.number(">h")
        self.at += length
        return self.octets[self.at - length : self.at].decode()

    def count(self) -> int:
        count = self.number(">B") - 1
        assert count < 127, "longer ones are of more octets"
        return count

    def partitions(self) -> frozenset[int]:
        found: set[int] = set()
        for _ in range(self.count()):
            self.at += 16  # the topic's id
            found |= {self.number(">i") for _ in range(self.count())}
            assert self.number(">B") == 0, "no tagged fields are known here"
        return frozenset(found)


def fetch_epochs(lab: Lab) -> dict[str, Epochs]:
    """Every group's, from the topic's first record to its last."""
    found: dict[str, Epochs] = defaultdict(Epochs)
    alive: dict[str, set[str]] = defaultdict(set)
    for key, value in fetch_records(lab):
        reader = _Reader(key)
        kind, group = reader.number(">h"), reader.text()
        if kind == MEMBER:
            changed = alive[group].discard if value is None else alive[group].add
            changed(reader.text())
        elif kind == TARGET and value is not None:
            found[group].members[struct.unpack_from(">i", value, 2)[0]] = frozenset(alive[group])
        elif kind == ASSIGNMENT and value is not None:
            found[group].assigned[reader.text()].append(parse_assignment(value))
    return found


def fetch_records(lab: Lab) -> list[tuple[bytes, bytes | None]]:
    settings = {"bootstrap.servers": lab.servers.addresses(), "group.id": "nobody", "enable.auto.commit": False}
    consumer = Consumer(QUIET | settings)
    try:
        partitions = consumer.list_topics(TOPIC, SECONDS).topics[TOPIC].partitions
        places = [TopicPartition(TOPIC, number, 0) for number in partitions]
        left = sum(consumer.get_watermark_offsets(place, SECONDS)[1] for place in places)
        consumer.assign(places)
        found = consumer.consume(left, SECONDS)
        assert [each.error() for each in found if each.error()] == []
        assert len(found) == left, "a group's records are in one partition and whole, if nothing was compacted away"
        return [(each.key() or b"", each.value()) for each in found]
    finally:
        consumer.close()


def parse_assignment(value: bytes) -> tuple[int, frozenset[int]]:
    """Epoch and partitions of a current assignment."""
    reader = _Reader(value)
    reader.number(">h")
    epoch = reader.number(">i")
    reader.at += 5  # the epoch before and the state
    return epoch, reader.partitions()
