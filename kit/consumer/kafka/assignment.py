"""The assigned partitions of a Kafka consumer: their positions, and which are paused.

librdkafka differs from Java's client: it applies an assignment only after the callback that announces it, keeps the
pause flag of a revoked partition, and has no position before the first record. This module hides the differences.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    IllegalStateException,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from kit.consumer.kafka.commits import Commits
from kit.consumer.kafka.queries import Queries
from kit.consumer.kafka.settings import KafkaSettings
from kit.consumer.kafka.values import OffsetAndMetadata, bare, library_partition
from kit.errors import InputError

SEEK_S, SEEK_AGAIN_S = 10.0, 0.01

Key: TypeAlias = tuple[str, int]


class Assignment:
    """The assignment of one consumer. Only the thread that polls the consumer uses it."""

    def __init__(self, raw: Consumer, settings: KafkaSettings, queries: Queries, commits: Commits) -> None:
        self._raw = raw
        self._settings = settings
        self._queries = queries
        self._commits = commits
        self._adding: dict[Key, TopicPartition] = {}
        self._applied: set[Key] = set()
        self._paused: set[Key] = set()
        self._positions: dict[Key, Message | TopicPartition] = {}
        self._unstored: set[Key] = set()
        # First offset of each partition in the batch that was delivered last.
        self._began: dict[Key, TopicPartition] = {}
        # Called with a partition whose position was moved.
        self.moved: Callable[[TopicPartition], None] = lambda partition: None

    # --- a rebalance ---

    def begin_adding(self, partitions: Sequence[TopicPartition]) -> None:
        """Note an assignment that is announced and not yet applied: ``seek`` may still choose where it starts.

        The request for positions makes librdkafka create the partitions: it loses a pause of an unknown partition.
        """
        self._adding = {_key(each): each for each in partitions}
        if partitions:
            self._raw.position(list(partitions))

    def finish_adding(self) -> None:
        """Apply the announced assignment; raises KafkaException."""
        added, self._adding = list(self._adding.values()), {}
        if self._settings.incremental:
            self._raw.incremental_assign(added)
            self._applied |= {_key(each) for each in added}
        else:
            self._raw.assign(added)
            self._applied = {_key(each) for each in added}

    def remove(self, partitions: Sequence[TopicPartition]) -> None:
        """Give partitions up and forget their pauses and positions; raises KafkaException."""
        keys = {_key(each) for each in partitions}
        paused = [TopicPartition(*key) for key in sorted(keys & self._paused)]
        self._paused -= keys
        self._unstored -= keys
        self._applied = self._applied - keys if self._settings.incremental else set()
        for key in keys:
            self._positions.pop(key, None)
        if paused:
            self._raw.resume(paused)
        if self._settings.incremental:
            self._raw.incremental_unassign(list(partitions))
        else:
            self._raw.unassign()

    # --- what was delivered ---

    def mark_handed_over(self, messages: Iterable[Message]) -> None:
        """Note that the application has these records."""
        self._began = {}
        for message in messages:
            if message.error() is None:
                key = str(message.topic()), int(message.partition() or 0)
                self._began.setdefault(key, TopicPartition(*key, int(message.offset() or 0)))
                self._positions[key] = message
                self._unstored.add(key)

    def take_back(self) -> None:
        """The application did not process the last batch: no commit includes it."""
        self._positions |= {key: start for key, start in self._began.items() if key in self._unstored}

    def store(self) -> None:
        """Let automatic commits include the last batch. Called when the application asks for more records."""
        if self._unstored and self._settings.auto_commits:
            consumed = self.consumed()
            offsets = [library_partition(each, consumed[each]) for each in consumed if _key(each) in self._unstored]
            if offsets:
                self._raw.store_offsets(offsets=offsets)
        self._unstored.clear()

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The next offset of each partition that delivered a record, or was sought to a number."""
        offsets = {TopicPartition(*key): _next_offset(position) for key, position in sorted(self._positions.items())}
        return {partition: value for partition, value in offsets.items() if value.offset >= 0}

    # --- for the application ---

    def partitions(self) -> set[TopicPartition]:
        return {TopicPartition(*key) for key in self._keys()}

    def paused(self) -> set[TopicPartition]:
        return {TopicPartition(*key) for key in self._paused}

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = self._assigned(partitions)
        self._raw.pause(chosen)
        self._paused |= {_key(each) for each in chosen}

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        chosen = self._assigned(partitions)
        self._raw.resume(chosen)
        self._paused -= {_key(each) for each in chosen}

    def seek(self, partition: TopicPartition, to: int | OffsetAndMetadata) -> None:
        value = to if isinstance(to, OffsetAndMetadata) else OffsetAndMetadata(to)
        if value.offset < 0:
            raise InputError(f"seek: the offset {value.offset} of {_name(partition)} is negative")
        (chosen,) = self._assigned([partition])
        self._go_to(library_partition(chosen, OffsetAndMetadata(value.offset, "", value.leader_epoch)))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        self._seek_all(partitions, OFFSET_BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        self._seek_all(partitions, OFFSET_END)

    def position(self, partition: TopicPartition, timeout: float) -> int:
        """The next offset; before the first record it is derived: sought, else committed, else by the reset policy."""
        (chosen,) = self._assigned([partition])
        known = self._positions.get(_key(chosen))
        offset = _next_offset(known).offset if known is not None else self._committed(chosen, timeout)
        if offset >= 0:
            return offset
        # The position is fixed from now on, even if records are written or offsets are committed meanwhile.
        settled = self._resolve(chosen, offset, timeout)
        if known is not None or _key(chosen) in self._adding:
            self._go_to(TopicPartition(chosen.topic, chosen.partition, settled))
        return settled

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records from the position to the end of the log, as of the last fetch."""
        (chosen,) = self._assigned([partition])
        known = self._positions.get(_key(chosen))
        _, high = self._raw.get_watermark_offsets(chosen, cached=True)
        if known is None or high < 0 or _next_offset(known).offset < 0:
            return None
        return int(max(0, high - _next_offset(known).offset))

    def _keys(self) -> set[Key]:
        try:
            applied = {_key(each) for each in self._raw.assignment()}
        except KafkaException as error:
            if error.args[0].code() != KafkaError._DESTROY:
                raise
            applied = self._applied  # A consumer that closes amid a rebalance may answer no more.
        return applied | self._adding.keys()

    def _assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """The partitions without their offsets; raises IllegalStateException when one is not assigned."""
        chosen = [bare(each) for each in partitions]
        missing = {_key(each) for each in chosen} - self._keys()
        if missing:
            names = ", ".join(_name(TopicPartition(*key)) for key in sorted(missing))
            raise IllegalStateException(f"not assigned to this consumer: {names}")
        return chosen

    def _seek_all(self, partitions: Iterable[TopicPartition], offset: int) -> None:
        chosen = self._assigned(partitions) or self._assigned(self.partitions())
        for each in chosen:
            self._go_to(TopicPartition(each.topic, each.partition, offset))

    def _go_to(self, target: TopicPartition) -> None:
        key = _key(target)
        if key in self._adding:
            self._adding[key] = target
        else:
            self._seek_when_started(target)
            self.moved(target)
        self._positions[key] = target
        self._unstored.add(key)

    def _seek_when_started(self, target: TopicPartition) -> None:
        """librdkafka refuses to seek until it has begun to fetch, some milliseconds after the assignment."""
        deadline = time.monotonic() + SEEK_S
        while True:
            try:
                return self._raw.seek(target)
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE or time.monotonic() > deadline:
                    raise
            time.sleep(SEEK_AGAIN_S)

    def _committed(self, partition: TopicPartition, timeout: float) -> int:
        (committed,) = self._commits.committed(self._raw, [partition], timeout)
        if committed.offset >= 0:
            return int(committed.offset)
        logical = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END}.get(self._settings.reset)
        if logical is None:
            raise KafkaException(
                KafkaError(KafkaError._NO_OFFSET, f"{_name(partition)} has no committed offset and no reset policy")
            )
        return int(logical)

    def _resolve(self, partition: TopicPartition, logical: int, timeout: float) -> int:
        ask = self._queries.beginning_offsets if logical == OFFSET_BEGINNING else self._queries.end_offsets
        return ask([partition], timeout)[partition]


def _next_offset(position: Message | TopicPartition) -> OffsetAndMetadata:
    """The offset after the last record delivered, else the one sought; that may be logical (negative)."""
    if isinstance(position, TopicPartition):
        return OffsetAndMetadata(position.offset, "", position.leader_epoch)
    return OffsetAndMetadata(int(position.offset() or 0) + 1, "", position.leader_epoch())


def _key(partition: TopicPartition) -> Key:
    return partition.topic, partition.partition


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
