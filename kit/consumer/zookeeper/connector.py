"""A member of an old ZooKeeper group in Python: the old consumer's API and protocol, and KIP-125's on top of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError
from kazoo.exceptions import KazooException

from kit.consumer.metrics import Metrics
from kit.consumer.once_logger import OnceLogger
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.brokers import (
    GroupBrokers,
    check_migration_settings,
    connection_settings,
    plaintext_brokers,
)
from kit.consumer.zookeeper.commits import COMMIT_SECONDS, Commits, offset_stores
from kit.consumer.zookeeper.config import MIGRATION_PREFIX, ConsumerConfig
from kit.consumer.zookeeper.coordination import Coordination
from kit.consumer.zookeeper.driver import ConsumerRebalanceListener, Driver
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX, GroupView, Membership, Offsets
from kit.consumer.zookeeper.embedded import EmbeddedConsumer
from kit.consumer.zookeeper.embedded_listener import EmbeddedRebalanceListener
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.migration import Mode
from kit.consumer.zookeeper.offsets import ZookeeperOffsets
from kit.consumer.zookeeper.rebalance_loop import RebalanceLoop
from kit.consumer.zookeeper.registration import (
    Subscription,
    consumer_id,
    static_subscription,
    thread_ids,
    wildcard_subscription,
)
from kit.consumer.zookeeper.session import Session
from kit.consumer.zookeeper.streams import Stream
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.errors import InputError, OfframpError

log = logging.getLogger("offramp.consumer")

FIRST_ROUND_SECONDS = 60.0
JOIN_SECONDS = 10.0
"""The time for which a shutdown waits for a round that waits for ZooKeeper. The session's end removes all znodes
anyway.
"""


class ZookeeperConsumer:
    """One member. Its streams are created once; each needs a thread of its own that iterates it.

    ``config`` has the old consumer's keys (see :data:`kit.consumer.zookeeper.config.KEYS`). With
    ``coordination.migration.enabled`` it takes part in Kafka's coordination too and follows ``migration/mode``.
    ``zookeeper_settings`` go to kazoo (digest, TLS). What is guaranteed, and what isn't: ``docs/consumers.md``.

    A record counts as consumed when the next one is asked for, or after ``stream.taken()``: until then
    neither a commit nor a rebalance nor :meth:`shutdown` counts it, and its partition's next owner gets it again.

    Raises:
        InputError: a key or a value can't be used; nothing was registered.
    """

    def __init__(self, config: Mapping[str, Any], zookeeper_settings: Mapping[str, Any] | None = None) -> None:
        self.config = ConsumerConfig.parse(config)
        check_migration_settings(self.config.kafka)
        self.consumer_id = consumer_id(self.config.group_id, self.config["consumer.id"])
        self.metrics = Metrics(self.config.group_id, self.config["client.id"], self._live)
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._logger = OnceLogger(self.consumer_id)
        self._gate = Gate()
        self._session = Session(
            self.config["zookeeper.connect"],
            self.config.seconds("zookeeper.session.timeout.ms"),
            self._gate,
            self._session_lost,
            self._changed.set,
            dict(zookeeper_settings or {}),
        )
        self._coordination = Coordination(
            self.consumer_id,
            self.config["partition.assignment.strategy"],
            self.config["roundrobin.hash"],
            self.config.is_migration_enabled,
        )
        self._znodes = GroupZnodes(
            self._session.client,
            self.config.group_id,
            self.consumer_id,
            changed=lambda word: self._changed.set(),
            owner_gone=self._owner_gone,
            watch_lost=lambda: self._coordination.doubt(),
            excludes_internal=self.config["exclude.internal.topics"],
            is_migration_enabled=self.config.is_migration_enabled,
            timeout_seconds=self.config.seconds("zookeeper.session.timeout.ms"),
        )
        self._listener: ConsumerRebalanceListener | None = None
        self._streams: dict[tuple[str, str], Stream] = {}
        self._brokers: GroupBrokers | None = None
        self._zookeeper_offsets: ZookeeperOffsets | None = None
        self._driver: Driver | None = None
        self._loop: RebalanceLoop | None = None
        self._commits: Commits | None = None
        self._failure: OfframpError | None = None
        self._threads: list[threading.Thread] = []

    def set_consumer_rebalance_listener(self, listener: ConsumerRebalanceListener) -> None:
        """Call ``listener`` at every rebalance. Raises InputError when streams exist already."""
        if self._loop is not None:
            raise InputError("the rebalance listener must be set before streams are created")
        self._listener = listener

    def create_message_streams(self, topics: Mapping[str, int]) -> dict[str, list[Stream]]:
        """Register for ``{topic: number of streams}`` and consume. Returns when the first rebalance was tried.

        Raises:
            InputError: a topic or a number can't be used, or streams were made before.
            ConnectError, AuthenticationFailed: no ZooKeeper server or no suitable broker.
            NotFound: there are no brokers under this chroot.
        """
        subscription = static_subscription(topics)
        places = {(topic, thread) for topic, count in topics.items() for thread in thread_ids(self.consumer_id, count)}
        self._start(subscription, places)
        return {
            topic: [self._streams[topic, thread] for thread in thread_ids(self.consumer_id, count)]
            for topic, count in topics.items()
        }

    def create_message_streams_by_filter(
        self, allow: str | None = None, deny: str | None = None, streams: int = 1
    ) -> list[Stream]:
        """Create streams like :meth:`create_message_streams`, for all topics whose whole name matches ``allow``, or not
        ``deny``.

        The streams are shared by all these topics, also by those created later.
        """
        subscription = wildcard_subscription(allow, deny, streams)
        threads = thread_ids(self.consumer_id, streams)
        self._start(subscription, {("", thread) for thread in threads})
        return [self._streams["", thread] for thread in threads]

    def commit_offsets(self) -> dict[TopicAndPartition, str]:
        """Commit every record that counts as consumed; → the partitions that could not be committed, with the reason.

        This counts the record that the calling thread has in hand as consumed; another thread's does not count.

        Raises:
            InputError: the consumer is shut down, or has no streams yet.
        """
        if self._commits is None or self._stopping.is_set():
            raise InputError(
                f"{self.consumer_id} can't commit: " + ("the consumer is shut down" if self._commits else "no streams")
            )
        for stream in self._streams.values():
            stream.taken_by_caller()
        return self._commits.commit()

    def shutdown(self) -> None:
        """Stop, commit, leave both coordinations, end the streams. Can be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._changed.set()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        if self._driver is not None:
            self._leave(self._driver)
        self._session.close()
        self._close_streams(None)
        if self._brokers is not None:
            self._brokers.close()

    def __enter__(self) -> ZookeeperConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @property
    def mode(self) -> Mode | None:
        """Return whose assignment is in force for this member; None before the first rebalance."""
        return self._coordination.mode

    # Starting

    def _start(self, subscription: Subscription, places: set[tuple[str, str]]) -> None:
        if self._loop is not None:
            raise InputError(
                f"{self.consumer_id} has created its streams already. Create another consumer for other topics"
            )
        self._session.start(self.config.seconds("zookeeper.connection.timeout.ms"))
        try:
            self._znodes.check_brokers()
            driver, brokers, loop, commits = self._connect(subscription)
        except BaseException:
            self._session.close()
            raise
        self._driver, self._brokers, self._loop, self._commits = driver, brokers, loop, commits
        seconds = self.config.seconds("consumer.timeout.ms") if self.config["consumer.timeout.ms"] >= 0 else None
        for topic, thread in places:
            self._streams[topic, thread] = Stream(thread, self._gate, brokers.connect, self._out_of_range, seconds)
        self._gate.open(self._streams)
        self._run("rebalances", self._keep_reconciled, loop)
        if self.config["auto.commit.enable"]:
            self._run("auto commit", commits.run, self._stopping, self.config.seconds("auto.commit.interval.ms"))
        loop.has_tried.wait(FIRST_ROUND_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _connect(self, subscription: Subscription) -> tuple[Driver, GroupBrokers, RebalanceLoop, Commits]:
        servers = self.config.kafka.get("bootstrap.servers") or plaintext_brokers(self._session.client)
        brokers = GroupBrokers(self.config, servers)
        zookeeper, kafka, store = offset_stores(self.config, self._znodes, brokers, self._commit_as_member)
        self._zookeeper_offsets = zookeeper
        driver = Driver(
            self.consumer_id,
            znodes=self._znodes,
            gate=self._gate,
            brokers=brokers,
            zookeeper_offsets=zookeeper,
            kafka_offsets=kafka,
            store=store,
            metrics=self.metrics,
            reset=self.config["auto.offset.reset"],
            commits=self.config["auto.commit.enable"],
            viewed=self._viewed,
            changed=self._changed,
            listener=self._listener,
        )
        if self.config.is_migration_enabled:
            driver.embedded = self._embedded(servers, EmbeddedRebalanceListener(self._coordination, self._gate, driver))
        loop = RebalanceLoop(
            self.config,
            subscription,
            consumer_id=self.consumer_id,
            session=self._session,
            gate=self._gate,
            znodes=self._znodes,
            coordination=self._coordination,
            driver=driver,
            metrics=self.metrics,
            logger=self._logger,
        )
        return driver, brokers, loop, Commits(self._gate, self._session, store, self.metrics, self._logger)

    def _embedded(self, servers: str, listener: EmbeddedRebalanceListener) -> EmbeddedConsumer:
        settings = {
            **connection_settings(self.config, servers),
            **self.config.kafka,
            "group.id": self.config.group_id,
            "client.id": self.consumer_id,
        }
        poll_seconds = self.config.seconds(MIGRATION_PREFIX + "poll.interval.ms")
        return EmbeddedConsumer(
            settings, poll_seconds, listener.assigned, listener.revoked, listener.lost, listener.polled
        )

    def _run(self, name: str, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, name=f"{self.consumer_id} {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def _keep_reconciled(self, loop: RebalanceLoop) -> None:
        try:
            loop.run(self._stopping)
        except InputError as error:
            self._give_up(error)
        finally:
            loop.has_tried.set()

    # Ending

    def _leave(self, driver: Driver) -> None:
        try:
            driver.drive(self._coordination.leave())
        except (OfframpError, KazooException) as error:
            log.warning(
                "%s: the member leaves without a last commit; its uncommitted records are read again: %s",
                self.consumer_id,
                error,
            )
        if driver.embedded is not None:
            driver.embedded.close()

    def _give_up(self, error: InputError) -> None:
        """Only the operator can repair this: leave the group, and raise ``error`` on every stream."""
        log.error("%s: %s", self.consumer_id, error)
        self._failure = error
        self._stopping.set()
        if (embedded := self._embedded_consumer) is not None:
            embedded.close()
        self._session.close()
        self._close_streams(error)

    def _close_streams(self, error: OfframpError | None) -> None:
        for stream in self._streams.values():
            stream.close(error)

    # Called by other threads

    def _viewed(self, view: GroupView) -> None:
        """Keep the embedded consumer subscribed to this member's topics while this member is registered."""
        if (embedded := self._embedded_consumer) is not None:
            topics = view.members.get(self.consumer_id, {}) if view.is_registered else {}
            embedded.subscribe([topic for topic in topics if topic in view.partitions])

    def _session_lost(self) -> None:
        if self._stopping.is_set():
            return
        self.metrics.add("SessionExpirations")
        if (embedded := self._embedded_consumer) is not None:
            embedded.subscribe([])

    def _owner_gone(self, pair: TopicAndPartition) -> None:
        """Another client deleted an owner znode of this member (R15): stop at once, and read again what is held."""
        self._coordination.doubt()
        self._gate.drop([pair])
        log.warning(
            "%s: another client deleted the owner znode of %s-%d; the partition stops until it is claimed again",
            self.consumer_id,
            *pair,
        )

    def _commit_as_member(self, wanted: Offsets, seconds: float) -> Mapping[TopicAndPartition, int | KafkaError]:
        assert self._embedded_consumer is not None
        return self._embedded_consumer.commit(wanted, seconds)

    def _out_of_range(self, pair: TopicAndPartition, reason: str) -> int:
        """The offset is outside of the log: continue at the offset of ``auto.offset.reset``."""
        assert self._brokers is not None
        reset = self.config["auto.offset.reset"]
        offsets = self._brokers.log_offsets([pair], reset, COMMIT_SECONDS)
        if pair not in offsets:
            raise OfframpError(
                f"{pair[0]}-{pair[1]}: the offset is out of range ({reason}), and the partition's leader did not answer"
            )
        log.warning(
            "%s: the offset of %s-%d is out of range: it continues at %d (auto.offset.reset=%s): %s",
            self.consumer_id,
            *pair,
            offsets[pair],
            reset,
            reason,
        )
        self.metrics.add("OffsetResets")
        if self._zookeeper_offsets is not None:
            self._zookeeper_offsets.allow_lower(pair)
        if (embedded := self._embedded_consumer) is not None:
            embedded.forget([pair])  # Else Kafka's offset would stay high, and the next owner takes the higher one.
        return offsets[pair]

    @property
    def _embedded_consumer(self) -> EmbeddedConsumer | None:
        return self._driver.embedded if self._driver is not None else None

    def _live(self) -> dict[str, float]:
        held = dict(self._coordination.held)
        result = self._loop.result if self._loop is not None else None
        decision = result.decision if result is not None else None
        embedded = self._embedded_consumer
        in_kafka = embedded is not None and embedded.assignment.membership is Membership.IN
        n_reservations = sum(thread.endswith(RESERVATION_SUFFIX) for thread in held.values())
        lags = [lag for stream in self._streams.values() if (lag := stream.max_lag) is not None]
        known = {"MaxLag": float(max(lags))} if lags else {}
        return known | {
            "ActiveKafkaCoordinationCount": float(self._coordination.mode is Mode.KAFKA),
            "KafkaOwnedPartitionsCount": float(len(embedded.assignment.partitions)) if embedded and in_kafka else 0.0,
            "OwnedPartitionsCount": float(len(held) - n_reservations),
            "ConsumedPartitionsCount": float(len(self._gate.consuming())),
            "DeferredToggleCount": float(decision is not None and decision.is_deferred),
            "FencedPartitionsCount": float(n_reservations),
            "BlockedPartitionsCount": float(len(result.blocked)) if result is not None else 0.0,
            "SecondsInDoubt": self._gate.seconds_in_doubt,
            "Messages": float(sum(stream.n_records for stream in self._streams.values())),
        }
