"""A consumer of a Kafka group, thin over confluent-kafka, with Java's rebalance listener and its view (KAFKA-20385).

It works with eager assignors, with cooperative-sticky and with ``group.protocol=consumer`` (KIP-848). Methods have
the names and meanings of Java's ``Consumer``. The docstring of a method and ``docs/rebalance-listener.md`` name each
difference.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, IllegalStateException, KafkaException, Message, TopicPartition

from kit.consumer.kafka.assignment import Assignment
from kit.consumer.kafka.commits import CommitCallback, Commits, Offsets
from kit.consumer.kafka.listener import SILENT, adapt
from kit.consumer.kafka.queries import TIMEOUT_S, Queries
from kit.consumer.kafka.rebalance import Rebalances
from kit.consumer.kafka.settings import KafkaSettings
from kit.consumer.kafka.undelivered import Undelivered
from kit.consumer.kafka.values import (
    ConsumerGroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    bare,
    error_text,
    from_library,
)
from kit.consumer.turns import Turns, in_turn
from kit.errors import InputError
from kit.text.naming import listed

SLICE_S = 0.1
"""The longest single wait inside librdkafka. Callbacks of commits and calls of other threads run after each."""


class KafkaConsumer:
    """One member of a Kafka group; a context manager. As in Java, one thread uses it.

    ``config`` holds librdkafka's keys, but not ``on_commit``, ``stats_cb`` and ``enable.auto.offset.store``. A method
    that asks a broker raises confluent-kafka's ``KafkaException`` if the broker refuses or does not answer in time.
    Every method raises ``IllegalStateException`` after ``close()``. Times are in seconds.

    Raises:
        InputError: a setting is missing, unknown, or does not fit the other settings.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._settings = KafkaSettings.of(config)
        self._turns = Turns()
        self._commits = Commits()
        self._statistics = ""
        callbacks = {"on_commit": self._commits.on_commit, "stats_cb": self._take_statistics}
        try:
            self._raw = Consumer({**self._settings.consumer, **callbacks})
        except (KafkaException, TypeError, ValueError) as error:
            raise InputError(f"librdkafka refuses the settings of this consumer: {error_text(error)}") from None
        self._queries = Queries(self._settings)
        self._assignment = Assignment(self._raw, self._settings, self._queries, self._commits)
        self._rebalances = Rebalances(self, self._assignment, self._commits)
        self._records = Undelivered()
        self._rebalances.taken = self._records.drop
        self._assignment.moved = lambda partition: self._records.drop([partition])
        self._topics: tuple[str, ...] = ()
        self._closed = False

    # --- membership ---

    def set_rebalance_listener(self, listener: object | None) -> None:
        """Call ``listener`` (see ``kit.consumer.kafka.listener``) at rebalances from the next ``poll`` on; None: none.

        Raises:
            InputError: it is not a listener.
        """
        self._open()
        self._rebalances.use(SILENT if listener is None else adapt(listener))

    def subscribe(self, topics: Sequence[str], listener: object | None = None) -> None:
        """Subscribe to ``topics`` (``^…`` is a regular expression) instead of the present ones.

        ``listener`` is the deprecated form of ``set_rebalance_listener``; without it the present listener stays. An
        empty list is the same as ``unsubscribe()``.

        Raises:
            InputError: ``topics`` is a string, holds something that is no name, or a wrong regular expression.
            IllegalStateException: in a rebalance callback.
        """
        self._outside_of_callbacks("subscribe")
        if isinstance(topics, str) or not all(isinstance(topic, str) and topic for topic in topics):
            raise InputError(f"subscribe takes a list of topic names, not {topics!r}")
        if listener is not None:
            self.set_rebalance_listener(listener)
        if topics:
            self._subscribe(list(topics))
        else:
            self.unsubscribe()

    @in_turn
    def _subscribe(self, topics: list[str]) -> None:
        on = self._rebalances
        try:
            self._raw.subscribe(topics, on_assign=on.assigned, on_revoke=on.revoked, on_lost=on.lost)
        except KafkaException as error:
            raise InputError(f"librdkafka refuses to subscribe to {listed(topics)}: {error_text(error)}") from None
        self._topics = tuple(topics)

    def unsubscribe(self) -> None:
        """Leave the group; partitions are revoked in the next ``poll``. Raises IllegalStateException in a callback."""
        self._outside_of_callbacks("unsubscribe")
        with self._turns:
            self._raw.unsubscribe()
        self._topics = ()

    @in_turn
    def subscription(self) -> set[str]:
        """The topics given to ``subscribe``."""
        self._open()
        return set(self._topics)

    def close(self, handed_over: bool = True) -> None:
        """Leave the group: revoke the partitions, make automatic commits, answer the commits under way.

        The records of the last ``poll`` or ``consume`` count as consumed, unless ``handed_over`` is false.

        Raises the error of a callback after the consumer is closed. A second call does nothing.
        """
        if self._closed:
            return
        self._outside_of_callbacks("close")
        self._rebalances.begin_poll()
        if not handed_over:
            self._assignment.take_back()
        self._assignment.store()
        self._commits.closing = True
        try:
            with self._turns:
                if self._settings.auto_commits:
                    self._commits.begin_last(self._raw, self._assignment.consumed())
                self._raw.close()
        finally:
            self._closed = True
            self._queries.close()
            self._commits.abandon()
        self._settle()

    def __enter__(self) -> KafkaConsumer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close. After an exception the records delivered last do not count as consumed."""
        self.close(handed_over=kind is None)

    # --- records ---

    def poll(self, timeout: float | None = None) -> Message | None:
        """One record (or a ``Message`` with an ``error()``), None after ``timeout`` seconds (None: wait for ever).

        Rebalance and commit callbacks run in this call. It raises the error of a callback; if it has a record to
        return, the next call raises the error.

        Raises:
            IllegalStateException: in a rebalance callback.
        """
        records = self._gather("poll", 1, timeout)
        return records[0] if records else None

    def consume(self, num_messages: int = 1, timeout: float | None = None) -> list[Message]:
        """Up to ``num_messages`` records, fewer after ``timeout`` seconds; otherwise as ``poll``.

        Records of a partition that is revoked meanwhile are left out: the next owner gets them.

        Raises:
            InputError: ``num_messages`` is not positive.
        """
        if num_messages < 1:
            raise InputError(f"consume: num_messages is {num_messages}, but must be at least 1")
        return self._gather("consume", num_messages, timeout)

    def _gather(self, name: str, wanted: int, timeout: float | None) -> list[Message]:
        self._outside_of_callbacks(name)
        self._rebalances.begin_poll()
        with self._turns:
            self._assignment.store()
        until = math.inf if timeout is None or timeout < 0 else time.monotonic() + timeout
        while True:
            self._settle_with_empty_hands()
            self._take(until)
            late = time.monotonic() >= until
            if len(self._records.in_hand) >= wanted or late or (self._records.in_hand and self._rebalances.failures):
                break
        self._settle_with_empty_hands()
        with self._turns:
            records = self._records.take(wanted)
            self._assignment.mark_handed_over(records)
        return records

    @in_turn
    def _take(self, until: float) -> None:
        self._open()
        message = self._raw.poll(min(SLICE_S, max(0.0, until - time.monotonic())))
        if message is not None:
            self._records.in_hand.append(message)

    def _settle_with_empty_hands(self) -> None:
        """Keep the records for the next call: an exception must not lose them."""
        if not self._records.in_hand:
            self._settle()

    def _settle(self) -> None:
        self._rebalances.raise_failure()
        self._commits.tell()

    # --- offsets ---

    @in_turn
    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        """Commit ``offsets`` (default: the positions of all partitions delivered or sought), and wait for the answer.

        Raises:
            InputError: a ``timeout`` was given.
            KafkaException: the commit, or that of one partition, was refused.
        """
        self._open()
        if timeout is not None:
            raise InputError("commit_sync: librdkafka has no time-out for a single commit; call it without timeout")
        self._commits.commit(self._raw, self._assignment.consumed() if offsets is None else offsets)

    @in_turn
    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Commit without waiting; ``callback(offsets, error)`` runs in a later ``poll``, ``consume`` or ``close``."""
        self._open()
        self._commits.begin(self._raw, self._assignment.consumed() if offsets is None else offsets, callback)

    @in_turn
    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's committed offsets; None for a partition without one.

        Raises:
            IllegalStateException: in the revocation of ``close()``, where librdkafka doesn't answer.
        """
        self._open()
        asked = [bare(each) for each in partitions]
        return from_library(self._commits.committed(self._raw, asked, _seconds(timeout)))

    @in_turn
    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """The offset of the next record to deliver.

        Before the first record librdkafka has no position. It is then the sought offset, else the committed one, else
        that of ``auto.offset.reset``; brokers may be asked.

        Raises:
            IllegalStateException: the partition is not assigned.
            KafkaException: nothing is committed and there is no reset policy.
        """
        self._open()
        return self._assignment.position(partition, _seconds(timeout))

    @in_turn
    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue at ``offset``; the metadata of an OffsetAndMetadata are ignored.

        Raises:
            IllegalStateException: the partition is not assigned.
            InputError: the offset is negative.
        """
        self._open()
        self._assignment.seek(partition, offset)

    @in_turn
    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue at the first record (default: of all assigned partitions). Raises IllegalStateException."""
        self._open()
        self._assignment.seek_to_beginning(partitions)

    @in_turn
    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Continue after the last record (default: of all assigned partitions). Raises IllegalStateException."""
        self._open()
        self._assignment.seek_to_end(partitions)

    # --- partitions ---

    @in_turn
    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions. In a callback: with those it announces as assigned, without those it calls lost."""
        self._open()
        return self._assignment.partitions()

    @in_turn
    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch no record of these partitions until ``resume`` or their revocation. Raises IllegalStateException."""
        self._open()
        chosen = list(partitions)
        self._assignment.pause(chosen)
        self._records.hold_back(chosen)

    @in_turn
    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch records of these partitions again. Raises IllegalStateException when one is not assigned."""
        self._open()
        chosen = list(partitions)
        self._assignment.resume(chosen)
        self._records.give_back(chosen)

    @in_turn
    def paused(self) -> set[TopicPartition]:
        """The paused partitions."""
        self._open()
        return self._assignment.paused()

    # --- questions ---

    def client_instance_id(self, timeout: float | None = None) -> str:
        """Not supported: always raises InputError."""
        self._open()
        raise InputError("client_instance_id: librdkafka does not publish the id of its telemetry (KIP-714)")

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition's log."""
        self._open()
        return self._queries.beginning_offsets(partitions, _seconds(timeout))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The end of each partition's log, by this consumer's ``isolation.level``."""
        self._open()
        return self._queries.end_offsets(partitions, _seconds(timeout))

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time; None: there is none. Raises InputError for a negative time."""
        self._open()
        return self._queries.offsets_for_times(timestamps_ms, _seconds(timeout))

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        """A topic's partitions; empty when there is no such topic."""
        self._open()
        return self._queries.partitions_for(topic, _seconds(timeout))

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """The partitions of every topic that this user may see, internal ones included."""
        self._open()
        return self._queries.list_topics(_seconds(timeout))

    @in_turn
    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records from the position to the end of the log as of the last fetch; None before. Asks no broker.

        Raises:
            IllegalStateException: the partition is not assigned.
        """
        self._open()
        return self._assignment.current_lag(partition)

    @in_turn
    def group_metadata(self) -> ConsumerGroupMetadata:
        """Group, member id and generation. Raises ReadError if this librdkafka writes them in another form."""
        self._open()
        return ConsumerGroupMetadata.of(self._raw.consumer_group_metadata())

    def metrics(self) -> dict[str, Any]:
        """librdkafka's statistics, at most ``statistics.interval.ms`` old while polled; empty before the first.

        Raises:
            InputError: the settings turn them off.
        """
        self._open()
        if not self._settings.reports_metrics:
            raise InputError("metrics: statistics.interval.ms is 0, so librdkafka reports none")
        statistics: dict[str, Any] = json.loads(self._statistics or "{}")
        return statistics

    def _take_statistics(self, text: str) -> None:
        self._statistics = text

    def _open(self) -> None:
        if self._closed:
            raise IllegalStateException("this consumer has been closed")

    def _outside_of_callbacks(self, name: str) -> None:
        self._open()
        if self._rebalances.under_way:
            raise IllegalStateException(f"{name}() can't be called in a rebalance callback")


def _seconds(timeout: float | None) -> float:
    return TIMEOUT_S if timeout is None else timeout
