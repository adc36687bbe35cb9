"""The timestamp of the record at an offset, by reading that record: exact, at the cost of a fetch per partition."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from kit.read.broker_client import DEADLINE_S
from kit.read.brokers import Key
from kit.read.lone_consumer import LONE
from kit.read.offset_times import Position
from kit.tables.groups import RecordTime

_WAIT_S = 0.2
_SETTINGS = LONE | {
    # One batch of each partition is enough; a broker sends a whole one however large.
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 1024,
}


def read_record_times(
    settings: Mapping[str, Any], positions: Collection[Position], deadline_s: float = DEADLINE_S
) -> list[RecordTime]:
    """The timestamps of the next records at or after these offsets, as a consumer of committed records sees them.

    Args:
        settings: librdkafka's, with the brokers and their security.

    A partition that gives none until the deadline, or none at all (an open transaction, nothing left but markers), is a
    row with an error.
    """
    deadline = time.monotonic() + deadline_s
    return [row for layer in _layers(positions) for row in _read(settings, layer, deadline)]


def _layers(positions: Collection[Position]) -> Iterator[dict[Key, int]]:
    """A consumer reads a partition from one place at a time."""
    offsets: dict[Key, list[int]] = defaultdict(list)
    for topic, partition, offset in sorted(set(positions)):
        offsets[topic, partition].append(offset)
    for layer in range(max(map(len, offsets.values()), default=0)):
        yield {key: each[layer] for key, each in offsets.items() if layer < len(each)}


def _read(settings: Mapping[str, Any], offsets: dict[Key, int], deadline: float) -> Iterator[RecordTime]:
    """By a consumer of its own: what another has paused stays paused when it is assigned again."""
    waiting = dict(offsets)
    consumer = Consumer({**settings, **_SETTINGS})
    try:
        consumer.assign([TopicPartition(*key, offset) for key, offset in waiting.items()])
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(len(waiting), _WAIT_S):
                key = (message.topic(), message.partition())
                if key in waiting:
                    yield _row(key, waiting.pop(key), message)
                    consumer.pause([TopicPartition(*key)])
    finally:
        consumer.close()
    for key, offset in waiting.items():
        yield RecordTime(*key, offset, None, None, None, "its next record was not read in time")


def _row(key: Key, offset: int, message: Message) -> RecordTime:
    error = message.error()
    if error is not None:
        is_end = error.code() == KafkaError._PARTITION_EOF
        said = "there is no committed record to read yet" if is_end else error.str()
        return RecordTime(*key, offset, None, None, None, said)
    kind, at_ms = message.timestamp()
    if kind == TIMESTAMP_NOT_AVAILABLE:
        return RecordTime(*key, offset, None, None, None, "its records carry no time")
    return RecordTime(*key, offset, at_ms, at_ms, at_ms)
