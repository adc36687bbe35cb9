"""Calls the application's listener from librdkafka's rebalance callbacks, in the order and state of Java's client."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition

from kit.consumer.kafka.assignment import Assignment
from kit.consumer.kafka.commits import Commits
from kit.consumer.kafka.listener import SILENT, Callback, RebalanceListener
from kit.consumer.kafka.rebalance_consumer import RebalanceConsumer, RebalanceMethods
from kit.consumer.kafka.values import bare


class Rebalances:
    """``assigned``, ``revoked`` and ``lost`` are registered with librdkafka once; the listener may change.

    ``failures`` keeps the errors of a listener. Raised inside librdkafka's call they would lose records that were about
    to be delivered.
    """

    def __init__(self, consumer: RebalanceMethods, assignment: Assignment, commits: Commits) -> None:
        self._consumer = consumer
        self._assignment = assignment
        self._commits = commits
        self._listener: RebalanceListener = SILENT
        self._in_force: RebalanceListener = SILENT
        self.failures: list[BaseException] = []
        self.under_way = False
        self.taken: Callable[[list[TopicPartition]], None] = lambda partitions: None

    def use(self, listener: RebalanceListener) -> None:
        """Use ``listener`` from the next poll on."""
        self._listener = listener

    def begin_poll(self) -> None:
        """A listener that is replaced meanwhile stays in force until the next poll."""
        self._in_force = self._listener

    def assigned(self, raw: Consumer, partitions: list[TopicPartition]) -> None:
        """Call the listener first, so that its seeks and pauses hold from the first fetch on."""

        def run() -> None:
            self._commits.lost.clear()
            self._assignment.begin_adding(partitions)
            try:
                self._tell(self._in_force.on_partitions_assigned, partitions)
            finally:
                self._assignment.finish_adding()

        self._guard(run)

    def revoked(self, raw: Consumer, partitions: list[TopicPartition]) -> None:
        """Call the listener first, so that it can commit the partitions that it still owns."""

        def run() -> None:
            try:
                self._tell(self._in_force.on_partitions_revoked, partitions)
            finally:
                self._give_up(partitions)

        self._guard(run)

    def lost(self, raw: Consumer, partitions: list[TopicPartition]) -> None:
        """Give the partitions up first: others may own them already."""

        def run() -> None:
            self._commits.lost.update(bare(each) for each in partitions)
            try:
                self._give_up(partitions)
            finally:
                self._tell(self._in_force.on_partitions_lost, partitions)

        self._guard(run)

    def raise_failure(self) -> None:
        """The first error of a listener since the last call; later ones are notes of it."""
        if not self.failures:
            return
        first, *others = self.failures
        self.failures = []
        for other in others:
            first.add_note(f"another rebalance callback of the same poll raised {other!r}")
        raise first

    def _give_up(self, partitions: list[TopicPartition]) -> None:
        self.taken(partitions)
        self._assignment.remove(partitions)

    def _tell(self, callback: Callback, partitions: list[TopicPartition]) -> None:
        self.under_way = True
        try:
            with RebalanceConsumer(self._consumer) as view:
                callback([bare(each) for each in partitions], view)
        finally:
            self.under_way = False

    def _guard(self, run: Callable[[], None]) -> None:
        try:
            run()
        except BaseException as error:  # noqa: BLE001  raised by the poll that called librdkafka, see raise_failure
            self.failures.append(error)
