"""Identify a record on any cluster: by its timestamp, and a digest of its key and value."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from confluent_kafka import TIMESTAMP_CREATE_TIME, Consumer, KafkaError, Message, TopicPartition

from kit.clients.brokers import Key
from kit.clients.lone_consumer import LONE, describe_unread

DEADLINE_S = 60.0
"""Seconds without any record after which the rest counts as unread."""
_WAIT_S = 0.2
_PARTITIONS, _MESSAGES = 1_000, 5_000
"""The number of partitions that one consumer reads, and the number of records that are taken at a time."""
_SETTINGS = LONE | {"queued.min.messages": 1, "fetch.message.max.bytes": 16_384}


class Print(NamedTuple):
    """One record. ``at_ms``: its timestamp (epoch); None: it has none, or the broker set it when it was appended."""

    offset: int
    at_ms: int | None
    digest: bytes

    def is_equal(self, other: Print) -> bool:
        """Return whether both are copies of one record, as far as timestamp, key and value show."""
        return self.at_ms is not None and self.at_ms == other.at_ms and self.digest == other.digest


class Window(NamedTuple):
    """The part of a log to read: from an offset on, to below ``until``, and until ``is_enough`` is true of a record."""

    start: int
    until: int
    is_enough: Callable[[Print], bool] = lambda _: False


def read_prints(
    settings: Mapping[str, Any], windows: Mapping[Key, Window]
) -> tuple[dict[Key, list[Print]], dict[Key, str]]:
    """The records of each window in order, as a consumer of committed records sees them; and why one was not read.

    Args:
        settings: librdkafka's, with the brokers and their security.
    """
    found: dict[Key, list[Print]] = {key: [] for key in windows}
    failed: dict[Key, str] = {}
    wanted = {key: window for key, window in windows.items() if window.start < window.until}
    keys = sorted(wanted)
    for at in range(0, len(keys), _PARTITIONS):
        chunk = {key: wanted[key] for key in keys[at : at + _PARTITIONS]}
        _read({**settings, **_SETTINGS}, chunk, found, failed)
    return found, failed


def _read(
    settings: dict[str, Any],
    waiting: dict[Key, Window],
    found: dict[Key, list[Print]],
    failed: dict[Key, str],
) -> None:
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(*key, window.start) for key, window in waiting.items()])
        until = time.monotonic() + DEADLINE_S
        while waiting and time.monotonic() < until:
            ended = list(_take(consumer.consume(_MESSAGES, _WAIT_S), waiting, found, failed))
            if ended:
                until = time.monotonic() + DEADLINE_S
                consumer.incremental_unassign([TopicPartition(*key) for key in ended])
    finally:
        consumer.close()
    failed |= dict.fromkeys(waiting, f"the partition's records were not read within {DEADLINE_S:g} s")


def _take(
    messages: list[Message], waiting: dict[Key, Window], found: dict[Key, list[Print]], failed: dict[Key, str]
) -> Iterator[Key]:
    """Put the records where they belong; the partitions of which nothing more is to be read."""
    for message in messages:
        key, error = (message.topic() or "", message.partition() or 0), message.error()
        window = waiting.get(key)
        if window is None:
            continue
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                failed[key] = describe_unread(error)
            is_last = True
        else:
            record = _print(message)
            is_last = record.offset >= window.until - 1
            if record.offset < window.until:
                found[key].append(record)
                is_last = is_last or window.is_enough(record)
        if is_last:
            del waiting[key]
            yield key


def _print(message: Message) -> Print:
    kind, at_ms = message.timestamp()
    digest = hashlib.sha256()
    for part in (message.key(), message.value()):
        digest.update(b"-" if part is None else b"%d:" % len(part) + part)
    return Print(message.offset() or 0, at_ms if kind == TIMESTAMP_CREATE_TIME else None, digest.digest()[:16])
