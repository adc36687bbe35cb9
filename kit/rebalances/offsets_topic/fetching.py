"""One task's partitions, fetched side by side between fixed bounds, batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kit.clients.cluster import librdkafka_settings
from kit.clients.lone_consumer import LONE, describe_unread
from kit.profile import Profile
from kit.rebalances.offsets_topic.binary_column import Ints
from kit.tables.collector import without_collector

BATCH = 10_000
WAIT_S = 0.05
"""Also what bounds a batch of large records: no more than the queue and what comes in this time."""
STALL_S = 30.0
"""After this time without a record the rest of a range counts as unreadable."""
_SETTINGS = LONE | {
    "max.poll.interval.ms": 86_400_000,
    "queued.max.messages.kbytes": 32_768,
    "fetch.queue.backoff.ms": 10,
}


@dataclass(frozen=True)
class PartitionRange:
    """One partition and its bounds: from ``start`` until before ``end``."""

    partition: int
    start: int
    end: int


@dataclass(frozen=True)
class Records:
    """A batch of records as columns; ``written_ms`` is -1 where unknown."""

    partition: Ints
    offset: Ints
    written_ms: Ints
    keys: pa.Array
    values: pa.Array

    def __len__(self) -> int:
        return len(self.offset)


def reader_settings(profile: Profile) -> dict[str, Any]:
    """librdkafka's settings for a consumer that only reads."""
    return {**librdkafka_settings(profile), **_SETTINGS}


class Fetch:
    """Iterate to read; afterwards ``read_until`` and ``errors`` say of each partition how that ended.

    A partition ends at its bound, or before where its log does: compaction and control records leave no last record to
    wait for, and a reader of committed records sees the end at the first open transaction.
    """

    def __init__(self, profile: Profile, topic: str, parts: Sequence[PartitionRange], stall_s: float = STALL_S) -> None:
        self._profile, self._topic, self.parts, self._stall_s = profile, topic, parts, stall_s
        self.read_until = {part.partition: part.end for part in parts if part.start >= part.end}
        self.errors: dict[int, str] = {}
        self._last_word = ""
        self._ends = np.zeros(1 + max((part.partition for part in parts), default=0), np.int64)
        for part in parts:
            self._ends[part.partition] = part.end

    def __iter__(self) -> Iterator[Records]:
        self._open = {part.partition for part in self.parts} - set(self.read_until)
        if not self._open:
            return
        self._consumer = Consumer({**reader_settings(self._profile), "error_cb": self._note})
        try:
            wanted = [part for part in self.parts if part.partition in self._open]
            self._consumer.assign([TopicPartition(self._topic, part.partition, part.start) for part in wanted])
            yield from self._batches()
        finally:
            self._consumer.close()

    def _note(self, error: KafkaError) -> None:
        self._last_word = error.str()

    def _batches(self) -> Iterator[Records]:
        waited = 0.0
        while self._open:
            records, notices = self._next()
            if len(records):
                yield from self._within_bounds(records)
            for message, error in notices:
                self._hear(message, error)
            waited = 0.0 if len(records) else waited + WAIT_S
            if waited >= self._stall_s:
                why = f": {self._last_word}" if self._last_word else ""
                self.errors |= dict.fromkeys(self._open, f"nothing came for {self._stall_s:g} s{why}")
                return

    def _next(self) -> tuple[Records, list[tuple[Message, KafkaError]]]:
        with without_collector():
            messages = self._consumer.consume(BATCH, WAIT_S)
            errors = list(map(Message.error, messages))
            if not any(errors):
                return _records(messages), []
            notices = [(each, error) for each, error in zip(messages, errors) if error is not None]
            return _records([each for each, error in zip(messages, errors) if error is None]), notices

    def _within_bounds(self, records: Records) -> Iterator[Records]:
        """Return the records below the ends; a partition that has reached its own end is done."""
        last = np.full(len(self._ends), -1, np.int64)
        np.maximum.at(last, records.partition, records.offset)
        for partition in np.flatnonzero(last >= self._ends - 1).tolist():
            self._done(partition, int(self._ends[partition]))
        is_within = records.offset < self._ends[records.partition]
        yield records if is_within.all() else _filtered(records, is_within)

    def _done(self, partition: int, at: int) -> None:
        if partition in self._open:
            self._open.discard(partition)
            self.read_until[partition] = at
            self._consumer.pause([TopicPartition(self._topic, partition)])

    def _hear(self, message: Message, error: KafkaError) -> None:
        """The end of a partition, or why it can't be read; what is about none is librdkafka's to retry.

        librdkafka searches for the coordinator of a group that it never joins. Its refusal names no topic, and
        partition 0.
        """
        partition, offset = message.partition(), message.offset()
        if message.topic() is None or partition not in self._open:
            self._last_word = error.str()
        elif error.code() == KafkaError._PARTITION_EOF:
            end = int(self._ends[partition])
            self._done(partition, end if offset is None else min(offset, end))
        else:
            self._open.discard(partition)
            self.errors[partition] = describe_unread(error)


def _records(messages: Sequence[Message]) -> Records:
    count = len(messages)
    return Records(
        np.fromiter(map(Message.partition, messages), np.int64, count),
        np.fromiter(map(Message.offset, messages), np.int64, count),
        np.fromiter(map(itemgetter(1), map(Message.timestamp, messages)), np.int64, count),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
    )


def _filtered(records: Records, keep: Any) -> Records:
    mask = pa.array(keep)
    return Records(
        records.partition[keep],
        records.offset[keep],
        records.written_ms[keep],
        records.keys.filter(mask),
        records.values.filter(mask),
    )
