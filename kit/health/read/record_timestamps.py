"""The timestamp of the record at an offset, by reading that record: exact, at the cost of a fetch per partition."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, Message, TopicPartition

from kit.clients.broker_client import DEADLINE_S
from kit.clients.brokers import Key
from kit.clients.lone_consumer import LONE, describe_unread
from kit.health.read.offset_times import Position
from kit.tables.groups import RecordTime

_WAIT_S = 0.2
_SETTINGS = LONE | {
    # One batch of each partition is enough; a broker sends a whole one however large.
    "queued.min.messages": 1,
    "fetch.message.max.bytes": 1024,
    # After a batch librdkafka fetches no partition for this long, by default a second.
    "fetch.queue.backoff.ms": 1,
}
_ALL = {"isolation.level": "read_uncommitted"}


class _Next(NamedTuple):
    """The record that a consumer found from an offset on, with its time, or the place after which there is none."""

    offset: int
    at_ms: int | None = None
    error: str | None = None
    is_record: bool = True


def read_record_times(
    settings: Mapping[str, Any],
    positions: Collection[Position],
    ends: Mapping[Key, int],
    at_ms: int,
) -> list[RecordTime]:
    """The timestamps of the next records at or after these offsets, as a consumer of committed records sees them.

    Args:
        settings: librdkafka's, with the brokers and their security.
        ends: where each log ended at the observation, at ``at_ms`` (epoch).

    If nothing below the end is left to read, only markers and aborted records, all is null. A record whose
    transaction is open was appended at its time if it is committed; if it is not, the next one has yet to come: so its
    latest time is ``at_ms``. A partition that gives none until the deadline is a row with an error.
    """
    settings, deadline = {**settings, **_SETTINGS}, time.monotonic() + DEADLINE_S
    following = {
        (*key, offset): each for layer in _layers(positions) for key, offset, each in _read(settings, layer, deadline)
    }
    stopped = {place[:2]: each.offset for place, each in following.items() if _is_open(each, ends[place[:2]])}
    open_records = {key: each for key, _, each in _read(settings | _ALL, stopped, deadline)}
    return [
        _open_row(place, open_records[place[:2]], at_ms)
        if _is_open(each, ends[place[:2]])
        else _row(place, each, ends[place[:2]])
        for place, each in following.items()
    ]


def _layers(positions: Collection[Position]) -> Iterator[dict[Key, int]]:
    """A consumer reads a partition from one place at a time."""
    offsets: dict[Key, list[int]] = defaultdict(list)
    for topic, partition, offset in sorted(set(positions)):
        offsets[topic, partition].append(offset)
    for layer in range(max(map(len, offsets.values()), default=0)):
        yield {key: each[layer] for key, each in offsets.items() if layer < len(each)}


def _read(settings: Mapping[str, Any], offsets: Mapping[Key, int], deadline: float) -> Iterator[tuple[Key, int, _Next]]:
    """By a consumer of its own: what another has paused stays paused when it is assigned again."""
    waiting = dict(offsets)
    if not waiting:
        return
    consumer = Consumer(dict(settings))
    try:
        consumer.assign([TopicPartition(*key, offset) for key, offset in waiting.items()])
        while waiting and time.monotonic() < deadline:
            for message in consumer.consume(len(waiting), _WAIT_S):
                key = (message.topic(), message.partition())
                if key in waiting:
                    yield key, waiting.pop(key), _next(message)
                    consumer.pause([TopicPartition(*key)])
    finally:
        consumer.close()
    for key, offset in waiting.items():
        yield key, offset, _Next(offset, None, "the next unread record could not be fetched within the time limit")


def _next(message: Message) -> _Next:
    offset, error = message.offset() or 0, message.error()
    if error is not None:
        is_end = error.code() == KafkaError._PARTITION_EOF
        return _Next(offset, None, None if is_end else describe_unread(error), is_record=not is_end)
    kind, at_ms = message.timestamp()
    is_dated = kind != TIMESTAMP_NOT_AVAILABLE
    return _Next(
        offset, at_ms if is_dated else None, None if is_dated else "the records of this partition have no timestamp"
    )


def _is_open(following: _Next, end: int) -> bool:
    """It stopped below the end: there a transaction begins that is not decided yet."""
    return not following.is_record and following.offset < end


def _row(place: Position, following: _Next, end: int) -> RecordTime:
    if following.error is not None:
        return RecordTime(*place, None, None, None, following.error)
    # A record from the end on was appended after the observation.
    at_ms = following.at_ms if following.offset < end else None
    return RecordTime(*place, at_ms, at_ms, at_ms)


def _open_row(place: Position, following: _Next, at_ms: int) -> RecordTime:
    if following.at_ms is None:
        return RecordTime(
            *place,
            None,
            None,
            None,
            following.error or "no record can be read yet: the next records belong to an open transaction",
        )
    return RecordTime(*place, following.at_ms, following.at_ms, max(following.at_ms, at_ms))
