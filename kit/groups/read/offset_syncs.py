"""MirrorMaker 2's topic of offset syncs: which offset of a source's log became which of the copy's."""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from kit.clients.brokers import Key
from kit.clients.lone_consumer import LONE, describe_unread
from kit.errors import NotFound, ReadError

_DEADLINE_S, _WAIT_S, _MESSAGES = 120.0, 1.0, 10_000
Syncs = Mapping[Key, list[tuple[int, int]]]
"""By topic and partition of the source: offset there and offset in the copy, ascending."""


def read_syncs(settings: Mapping[str, Any], topic: str) -> Syncs:
    """All syncs of the topic, which has one partition.

    Args:
        settings: librdkafka's, of the cluster that has the topic.

    Raises:
        NotFound: there is no such topic.
        ReadError: it can't be read to its end.
    """
    consumer = Consumer({**settings, **LONE})
    syncs: dict[Key, dict[int, int]] = {}
    try:
        if topic not in consumer.list_topics(timeout=_DEADLINE_S).topics:
            raise NotFound(f"there is no topic {topic!r}: name MirrorMaker 2's topic of offset syncs by --syncs-topic")
        consumer.assign([TopicPartition(topic, 0, 0)])
        until = time.monotonic() + _DEADLINE_S
        while time.monotonic() < until:
            for message in consumer.consume(_MESSAGES, _WAIT_S):
                error = message.error()
                if error is None:
                    _take(syncs, message.key(), message.value())
                elif error.code() == KafkaError._PARTITION_EOF:
                    return {place: sorted(each.items()) for place, each in syncs.items()}
                elif message.topic() is not None:  # Else it is about the group without members.
                    raise ReadError(f"topic {topic!r} can't be read: {describe_unread(error)}")
    finally:
        consumer.close()
    raise ReadError(f"topic {topic!r} was not read to its end within {_DEADLINE_S:g} s")


def _take(syncs: dict[Key, dict[int, int]], key: bytes | None, value: bytes | None) -> None:
    """Kafka's ``OffsetSync``: key (topic, partition), value (offset in the source, offset in the copy)."""
    if key is None or value is None:
        return
    try:
        (length,) = struct.unpack_from(">h", key)
        topic, (partition,) = key[2 : 2 + length].decode(), struct.unpack_from(">i", key, 2 + length)
        upstream, downstream = struct.unpack_from(">qq", value)
    except (struct.error, UnicodeDecodeError):
        return
    of_place = syncs.setdefault((topic, partition), {})
    # A source that was made again begins at 0: its earlier records have no meaning any more.
    for offset in [each for each in of_place if each > upstream]:
        del of_place[offset]
    of_place[upstream] = downstream
