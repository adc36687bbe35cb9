"""Commits of what continues being consumed: every now and then, and when the application asks."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException

from kit.consumer.metrics import Metrics
from kit.consumer.once_logger import OnceLogger
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.brokers import GroupBrokers
from kit.consumer.zookeeper.config import ZOOKEEPER_STORE, ConsumerConfig
from kit.consumer.zookeeper.driver import by_reason
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.offsets import Ask, DualOffsets, KafkaOffsets, OffsetStore, Passing, ZookeeperOffsets
from kit.consumer.zookeeper.session import Session
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.errors import OfframpError

COMMIT_SECONDS = 30.0


class Commits:
    """Commits are made for the session that they were taken in, and for no other."""

    def __init__(self, gate: Gate, session: Session, store: OffsetStore, metrics: Metrics, logger: OnceLogger) -> None:
        self._gate = gate
        self._session = session
        self._store = store
        self._metrics = metrics
        self._logger = logger

    def run(self, stopping: threading.Event, interval_seconds: float) -> None:
        """Commit every ``interval_seconds`` until ``stopping``. A failure is logged; the next commit includes it."""
        while not stopping.wait(interval_seconds):
            try:
                self.commit()
            except Exception as error:  # noqa: BLE001
                # Without this thread the member would read on and commit nothing: all of it would be read again.
                self._logger.warn(f"the commit failed and is tried again: {error!r}", error)

    def commit(self) -> dict[TopicAndPartition, str]:
        """The partitions that could not be committed and are still this member's, with the reason."""
        session, offsets = self._gate.consumed()
        if session is None or session != self._session.current:
            return dict.fromkeys(offsets, "the ZooKeeper session has expired")
        try:
            errors: Mapping[TopicAndPartition, str] = self._store.commit(offsets, COMMIT_SECONDS)
        except (OfframpError, KazooException, KafkaException) as error:
            errors = dict.fromkeys(offsets, str(error) or type(error).__name__)
        still = self._gate.consuming()
        errors = {pair: reason for pair, reason in errors.items() if pair in still}
        self._metrics.committed(self._store.name, len(offsets) - len(errors), len(errors))
        for reason, pairs in by_reason(errors).items():
            if not isinstance(reason, Passing):
                self._logger.warn(f"not committed: {pairs}: {reason}")
        return errors


def offset_stores(
    config: ConsumerConfig, znodes: GroupZnodes, brokers: GroupBrokers, commit_as_member: Ask
) -> tuple[ZookeeperOffsets | None, KafkaOffsets | None, OffsetStore]:
    """The two stores, as far as ``offsets.storage`` and ``dual.commit.enabled`` ask for them, and the one to use."""
    zookeeper = ZookeeperOffsets(znodes)
    if config["offsets.storage"] == ZOOKEEPER_STORE:
        return zookeeper, None, zookeeper
    kafka = KafkaOffsets(
        commit_as_member if config.is_migration_enabled else brokers.commit,
        brokers.committed,
        config.seconds("offsets.channel.backoff.ms"),
        config.seconds("offsets.channel.socket.timeout.ms"),
        config["offsets.commit.max.retries"],
    )
    if not config["dual.commit.enabled"]:
        return None, kafka, kafka
    return zookeeper, kafka, DualOffsets(zookeeper, kafka)
