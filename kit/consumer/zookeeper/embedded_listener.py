"""Handle rebalances of the Kafka group on the embedded consumer's thread: assignment epochs begin and end there."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException

from kit.consumer.zookeeper.coordination import Coordination
from kit.consumer.zookeeper.driver import Driver
from kit.consumer.zookeeper.effects import Membership
from kit.consumer.zookeeper.embedded import OUTDATED, EmbeddedConsumer
from kit.consumer.zookeeper.gate import Gate


class EmbeddedRebalanceListener:
    """The embedded consumer's callbacks.

    An assignment epoch is one assignment of the Kafka group to this member: from ``assigned`` to ``revoked`` or
    ``lost``. The assigned partitions are delivered in that time only (I2).
    """

    def __init__(self, coordination: Coordination, gate: Gate, driver: Driver) -> None:
        self._coordination = coordination
        self._gate = gate
        self._driver = driver

    def assigned(self, assignment_epoch: int) -> None:
        self._gate.begin_assignment_epoch(assignment_epoch)
        self._driver.changed.set()

    def revoked(self) -> None:
        self._driver.drive(self._coordination.revoked())
        self._driver.changed.set()

    def lost(self) -> None:
        self._driver.drive(self._coordination.lost())
        self._driver.changed.set()

    def polled(self, seconds: float) -> None:
        """Prove the membership after a long pause between polls, by a commit as a member (R13, R14).

        The coordinator may have removed this member meanwhile, and a plain Kafka consumer may read its partitions.
        """
        embedded = self._driver.embedded
        if embedded is None:
            return
        stood_still = seconds > embedded.session_seconds / 2 and embedded.assignment.membership is Membership.IN
        if stood_still and not self._is_member(embedded):
            embedded.rejoin()
            self.lost()
        self._gate.lease.extend_membership(self._gate.clock() + embedded.session_seconds / 2)

    def _is_member(self, embedded: EmbeddedConsumer) -> bool:
        """False also when the proof is not safe: while the ZooKeeper session is in doubt, the commit could lower an
        offset that another member committed (R12).
        """
        if self._gate.lease.seconds_without_session > 0:
            return False
        try:
            answers = embedded.commit(self._gate.kafka_assigned(), 0)
        except KafkaException:
            return False
        asked = [each for each in answers.values() if each is not OUTDATED]
        return bool(asked) and not any(isinstance(each, KafkaError) for each in asked)
