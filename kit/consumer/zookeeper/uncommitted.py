"""Keep the positions of partitions that a member stopped, until it is known that the commits are done."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import Offsets


class UncommittedOffsets:
    """Next offsets of partitions that this member stopped. May be used by any thread.

    Two facts are kept of each partition:

    - the offset it was stopped at, until it is started again or released. A commit may be under way when the offset is
      fetched again, so the fetched one may be less;
    - whether Kafka may lack that offset. Such an offset is committed before a rebalance is answered, and never after.
    """

    def __init__(self) -> None:
        self._stopped_at: dict[TopicAndPartition, int] = {}
        self._not_in_kafka: dict[TopicAndPartition, int] = {}
        self._kafka_assigned: frozenset[TopicAndPartition] = frozenset()
        self._lock = threading.Lock()

    def add(self, offsets: Offsets, kafka_assigned: Collection[TopicAndPartition]) -> None:
        """These were stopped; ``kafka_assigned``: those of them that Kafka's assignment had started."""
        with self._lock:
            self._stopped_at |= offsets
            self._not_in_kafka |= offsets
            self._kafka_assigned = (self._kafka_assigned - offsets.keys()) | frozenset(kafka_assigned)

    def advance(self, before: Offsets, after: Offsets) -> None:
        """The application finished a record of these. One whose offset is not as ``before`` was started meanwhile."""
        with self._lock:
            for noted in (self._stopped_at, self._not_in_kafka):
                noted |= {pair: offset for pair, offset in after.items() if noted.get(pair) == before[pair]}

    def stopped_at(self, partitions: Iterable[TopicAndPartition]) -> Offsets:
        """The offsets of those of ``partitions`` that are stopped."""
        with self._lock:
            return {pair: self._stopped_at[pair] for pair in partitions if pair in self._stopped_at}

    def stopped(self) -> frozenset[TopicAndPartition]:
        with self._lock:
            return frozenset(self._stopped_at)

    def not_in_kafka(self) -> Offsets:
        """All offsets that Kafka may lack."""
        with self._lock:
            return dict(self._not_in_kafka)

    def of(self, offsets: Offsets) -> Offsets:
        """Return the partitions of ``offsets`` whose offset Kafka may lack."""
        with self._lock:
            return {pair: offset for pair, offset in offsets.items() if pair in self._not_in_kafka}

    def restart(self, pair: TopicAndPartition) -> int:
        """The offset it was stopped at, 0 when it was not; it begins again, and a commit may still be under way."""
        with self._lock:
            return self._stopped_at.pop(pair, 0)

    def resume(self, pair: TopicAndPartition) -> int | None:
        """Resume a partition like :meth:`restart`, from where it was stopped, so that no commit of it is due. None:
        it was not stopped.
        """
        with self._lock:
            if pair in self._stopped_at:
                self._not_in_kafka.pop(pair, None)
            return self._stopped_at.pop(pair, None)

    def mark_committed(self, offsets: Offsets) -> None:
        """Kafka has these offsets, or must not get them."""
        with self._lock:
            kept = {pair: offset for pair, offset in self._not_in_kafka.items() if offset != offsets.get(pair)}
            self._not_in_kafka = kept

    def mark_uncertain(self, partitions: Iterable[TopicAndPartition]) -> None:
        """ZooKeeper may lack the offsets of these: it could not be asked.

        A partition that ZooKeeper's assignment had started may be another member's by now, and that member may be
        further. So Kafka must not get this member's offset either.
        """
        with self._lock:
            for pair in partitions:
                if pair not in self._kafka_assigned:
                    self._not_in_kafka.pop(pair, None)

    def discard_unsaved(self) -> None:
        """Others may commit to Kafka from now on: this member must not commit anything older later."""
        with self._lock:
            self._not_in_kafka = {}

    def forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Others may commit these from now on: this member must not commit anything older later."""
        with self._lock:
            for pair in partitions:
                self._stopped_at.pop(pair, None)
                self._not_in_kafka.pop(pair, None)

    def clear(self) -> None:
        with self._lock:
            self._stopped_at, self._not_in_kafka = {}, {}
