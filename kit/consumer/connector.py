"""A member of an old ZooKeeper group in Python: the old consumer's API and protocol, and KIP-125's on top of it."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from kazoo.exceptions import KazooException

from kit.consumer.assignors import TopicAndPartition
from kit.consumer.brokers import GroupBrokers, connection_settings, plaintext_brokers
from kit.consumer.config import MIGRATION_PREFIX, ZOOKEEPER_STORE, ConsumerConfig
from kit.consumer.coordination import FENCE_SUFFIX, Coordination, Ended, GroupView, Membership, Outcome
from kit.consumer.driver import ConsumerRebalanceListener, Driver, Rebalancing, by_reason
from kit.consumer.embedded import NO_MEMBER, EmbeddedConsumer
from kit.consumer.gate import Gate
from kit.consumer.hash_forms import SILENCED_SECONDS, RoundrobinGuard
from kit.consumer.metrics import Metrics
from kit.consumer.migration import Mode
from kit.consumer.offsets import DualOffsets, KafkaOffsets, OffsetStore, ZookeeperOffsets
from kit.consumer.registration import (
    Subscription,
    consumer_id,
    static_subscription,
    thread_ids,
    wildcard_subscription,
)
from kit.consumer.session import Session
from kit.consumer.streams import Stream
from kit.consumer.znodes import GroupZnodes
from kit.errors import InputError, OfframpError

log = logging.getLogger("offramp.consumer")

LOOK_EVERY_SECONDS = 5.0
"""A missed watch must not leave a member behind for longer than this (R8)."""
KAFKA_RETRY_SECONDS = (0.05, 0.2)
FIRST_ROUND_SECONDS = 60.0
JOIN_SECONDS = 10.0
"""What a shutdown gives a round that waits for ZooKeeper; the session's end undoes whatever it holds."""
EXPLICIT_COMMIT_SECONDS = 30.0


class ZookeeperConsumer:
    """One member. Streams are made once; each is to be iterated by a thread of its own.

    ``config`` has the old consumer's keys (see :data:`kit.consumer.config.KEYS`). With
    ``coordination.migration.enabled`` it takes part in Kafka's coordination too and follows ``migration/mode``.
    ``zookeeper_settings`` go to kazoo (digest, TLS). What is guaranteed, and what isn't: ``docs/consumers.md``.

    A record counts as consumed when the next one is asked for; a rebalance and :meth:`commit_offsets` also count the
    one that was handed out last.

    Raises:
        InputError: a key or a value can't be used; nothing was registered.
    """

    def __init__(self, config: Mapping[str, Any], zookeeper_settings: Mapping[str, Any] | None = None) -> None:
        self.config = ConsumerConfig.parse(config)
        self.consumer_id = consumer_id(self.config.group_id, self.config["consumer.id"])
        self.metrics = Metrics(self.config.group_id, self.config["client.id"], self._live)
        self._gate = Gate()
        self._session = Session(
            self.config["zookeeper.connect"],
            self.config.seconds("zookeeper.session.timeout.ms"),
            self._gate,
            self._session_lost,
            self._note,
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
            lambda word: self._note(),
            self._owner_gone,
            lambda: self._coordination.doubt(),
            self.config["exclude.internal.topics"],
            self.config.is_migration_enabled,
            self.config.seconds("zookeeper.session.timeout.ms"),
        )
        self._guard = RoundrobinGuard(self.config, self.consumer_id, self._znodes)
        self._listener: ConsumerRebalanceListener | None = None
        self._subscription: Subscription | None = None
        self._streams: dict[tuple[str, str], Stream] = {}
        self._outcome: Outcome | None = None
        self._first_round = threading.Event()
        self._failure: OfframpError | None = None
        self._is_known = False
        self._idle: dict[str, int] = {}
        self._stopping = threading.Event()
        self._tries = 0
        self._said: set[str] = set()
        self._threads: list[threading.Thread] = []

    def set_consumer_rebalance_listener(self, listener: ConsumerRebalanceListener) -> None:
        """Raises InputError once streams were made."""
        if self._subscription is not None:
            raise InputError("the rebalance listener must be set before streams are made")
        self._listener = listener

    def create_message_streams(self, topics: Mapping[str, int]) -> dict[str, list[Stream]]:
        """Register for ``{topic: number of streams}`` and consume; returns when the first rebalance was tried.

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
        """As :meth:`create_message_streams`, for all topics whose whole name matches ``allow``, or not ``deny``.

        The streams are shared by all these topics, also by those created later.
        """
        subscription = wildcard_subscription(allow, deny, streams)
        threads = thread_ids(self.consumer_id, streams)
        self._start(subscription, {("", thread) for thread in threads})
        return [self._streams["", thread] for thread in threads]

    def commit_offsets(self) -> dict[TopicAndPartition, str]:
        """Commit what was handed out; the partitions that could not be committed, with the reason.

        Raises:
            InputError: the consumer is shut down, or has no streams yet.
        """
        if self._subscription is None or self._stopping.is_set():
            raise InputError(
                f"{self.consumer_id} can't commit: " + ("it is shut down" if self._subscription else "no streams")
            )
        return self._commit(is_handed_out_enough=True)

    def shutdown(self) -> None:
        """Stop, commit, leave both coordinations, end the streams. Can be called twice."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._note()
        for thread in self._threads:
            thread.join(JOIN_SECONDS)
        if self._subscription is None:
            self._session.client.close()
            return
        try:
            self._driver.drive(self._coordination.leave())
        except (OfframpError, KazooException) as error:
            log.warning("%s: it leaves without a last commit: %s", self.consumer_id, error)
        if self._driver.embedded is not None:
            self._driver.embedded.close()
        self._session.close()
        self._close_streams(None)
        self._brokers.close()

    def __enter__(self) -> ZookeeperConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shutdown()

    @property
    def mode(self) -> Mode | None:
        """Whose assignment is in force for this member; None before the first rebalance."""
        return self._coordination.mode

    # Starting

    def _start(self, subscription: Subscription, places: set[tuple[str, str]]) -> None:
        if self._subscription is not None:
            raise InputError(f"{self.consumer_id} has streams already; they can be made once")
        self._session.start(self.config.seconds("zookeeper.connection.timeout.ms"))
        try:
            self._znodes.check_brokers()
            self._connect(subscription)
        except BaseException:
            self._session.close()
            raise
        self._subscription = subscription
        seconds = self.config.seconds("consumer.timeout.ms") if self.config["consumer.timeout.ms"] >= 0 else None
        for topic, thread in places:
            self._streams[topic, thread] = Stream(
                thread, self._gate, self._brokers.connect, self._out_of_range, seconds
            )
        self._gate.open(self._streams)
        self._run("rebalances", self._keep_reconciled)
        if self.config["auto.commit.enable"]:
            self._run("auto commit", self._keep_committed)
        self._first_round.wait(FIRST_ROUND_SECONDS)
        if self._failure is not None:
            raise self._failure

    def _connect(self, subscription: Subscription) -> None:
        servers = self.config.kafka.get("bootstrap.servers") or plaintext_brokers(self._session.client)
        self._brokers = GroupBrokers(self.config, servers)
        zookeeper, kafka, store = self._stores()
        self._zookeeper_offsets, self._store = zookeeper, store
        self._driver = Driver(
            self.consumer_id,
            self._znodes,
            self._gate,
            self._brokers,
            zookeeper,
            kafka,
            store,
            self.metrics,
            self.config["auto.offset.reset"],
            self.config["auto.commit.enable"],
            self._viewed,
        )
        self._driver.listener = self._listener
        if self.config.is_migration_enabled:
            self._driver.embedded = self._embedded(servers)

    def _stores(self) -> tuple[ZookeeperOffsets | None, KafkaOffsets | None, OffsetStore]:
        """As offsets.storage and dual.commit.enabled say."""
        zookeeper = ZookeeperOffsets(self._znodes)
        if self.config["offsets.storage"] == ZOOKEEPER_STORE:
            return zookeeper, None, zookeeper
        commit = self._commit_as_member if self.config.is_migration_enabled else self._brokers.commit
        backoff, timeout = (
            self.config.seconds("offsets.channel.backoff.ms"),
            self.config.seconds("offsets.channel.socket.timeout.ms"),
        )
        kafka = KafkaOffsets(commit, self._brokers.committed, backoff, timeout)
        if not self.config["dual.commit.enabled"]:
            return None, kafka, kafka
        return zookeeper, kafka, DualOffsets(zookeeper, kafka)

    def _embedded(self, servers: str) -> EmbeddedConsumer:
        settings = {
            **connection_settings(self.config, servers),
            **self.config.kafka,
            "group.id": self.config.group_id,
            "client.id": self.consumer_id,
        }
        poll_seconds = self.config.seconds(MIGRATION_PREFIX + "poll.interval.ms")
        return EmbeddedConsumer(
            settings, poll_seconds, self._kafka_assigned, self._kafka_revoked, self._kafka_lost, self._kafka_polled
        )

    def _run(self, name: str, target: Any) -> None:
        thread = threading.Thread(target=target, name=f"{self.consumer_id} {name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    # The reconciling thread

    def _note(self) -> None:
        driver = getattr(self, "_driver", None)
        if driver is not None:
            driver.changed.set()

    def _keep_reconciled(self) -> None:
        while not self._stopping.is_set():
            pause = self._reconcile()
            if pause > 0:
                self._first_round.set()
            if pause > 0:
                self._driver.changed.wait(pause)

    def _reconcile(self) -> float:
        """One round; how long to wait for a change before the next one, in seconds."""
        backoff = self.config.seconds("rebalance.backoff.ms")
        try:
            if not self._has_session():
                self._driver.changed.clear()
                return backoff
            began = time.monotonic()
            before = self._coordination.held
            outcome = self._driver.drive(self._coordination.reconcile())
            if self._coordination.held != before:
                self.metrics.rebalanced(time.monotonic() - began)
            return self._after(outcome)
        except Rebalancing:
            return KAFKA_RETRY_SECONDS[1]
        except InputError as error:
            self._give_up(error)
            return LOOK_EVERY_SECONDS
        except Exception as error:  # noqa: BLE001
            # Whatever went wrong, a member that stops trying is worse: registered, and reading nothing.
            self._tell(f"a rebalance failed and is tried again: {error!r}", error)
            self.metrics.add("RebalanceRetries")
            return backoff

    def _has_session(self) -> bool:
        """A new one begins with nothing held; while it is over, the Kafka group goes on without this member (R12)."""
        session = self._session.current
        if session is None:
            if self._session.is_over and self._driver.embedded is not None:
                self._driver.embedded.subscribe([])
            return False
        if session != self._session_id:
            self._coordination.session_lost()
            self._gate.session_began(session)
            self._session.prove_now()
            self._session_id = session
        return True

    _session_id: int | None = None

    def _after(self, outcome: Outcome) -> float:
        self._outcome = outcome
        backoff = self.config.seconds("rebalance.backoff.ms")
        if outcome.decision is not None and outcome.decision.alarm:
            self._tell(outcome.decision.alarm)
        if outcome.ended is Ended.SETTLED:
            self._tries = 0
            self._said.clear()
            self._tell_idle_threads(outcome)
            if self._guard.is_watching:
                self._guard.look()
                return SILENCED_SECONDS / 4
            return LOOK_EVERY_SECONDS
        if outcome.ended is Ended.STALE:
            return 0.0
        if outcome.ended is Ended.WAITING:
            return KAFKA_RETRY_SECONDS[1]
        if outcome.ended is Ended.UNREGISTERED:
            assert self._subscription is not None
            if not self._is_known:
                self._guard.look()
                self._is_known = True
            is_registered = self._znodes.register(self._subscription.payload(time.time_ns() // 1_000_000))
            if not is_registered:
                self._tell(
                    "its id is registered by another session, a member's or its own last one: it waits for the end"
                )
            return 0.0 if is_registered else backoff
        self.metrics.add("RebalanceRetries")
        if outcome.ended is Ended.UNREADABLE:
            for name, problem in outcome.unreadable.items():
                self._tell(f"nothing can be claimed while member {name} is registered like this: {problem}")
            return backoff
        if outcome.ended is Ended.INCOMPLETE:
            return backoff
        return self._after_blocked(outcome, backoff)

    def _after_blocked(self, outcome: Outcome, backoff: float) -> float:
        """In ZooKeeper's mode as the old consumer, but it never gives up; in Kafka's soon again, at odd times."""
        if self._coordination.mode is Mode.KAFKA:
            return random.uniform(*KAFKA_RETRY_SECONDS)
        self._tries += 1
        if self._tries >= 2:
            self._guard.look()
        if self._tries == self.config["rebalance.max.retries"]:
            self.metrics.add("RebalanceFailures")
            topic, partition = min(outcome.blocked)
            self._tell(
                f"can't rebalance after {self._tries} tries: {len(outcome.blocked)} partitions, {topic}-{partition} "
                "among them, are held by others. It goes on trying; look whether their owners are alive"
            )
        return backoff

    def _give_up(self, error: InputError) -> None:
        """What the operator must mend: leave the group, and tell it on every stream."""
        log.error("%s: %s", self.consumer_id, error)
        self._failure = error
        self._stopping.set()
        self._session.close()
        self._close_streams(error)

    def _close_streams(self, error: OfframpError | None) -> None:
        for stream in self._streams.values():
            stream.close(error)

    def _viewed(self, view: GroupView) -> None:
        """The embedded consumer is a member for the topics this one is registered for, as long as it is registered."""
        if self._driver.embedded is not None:
            topics = view.members.get(self.consumer_id, {}) if view.is_registered else {}
            self._driver.embedded.subscribe([topic for topic in topics if topic in view.partitions])

    def _tell_idle_threads(self, outcome: Outcome) -> None:
        """Spare threads are no error, but people ask."""
        busy: dict[str, set[str]] = {}
        for (topic, _), thread in outcome.mine.items():
            busy.setdefault(topic, set()).add(thread)
        idle = {topic: count - len(busy.get(topic, ())) for topic, count in self._counts().items()}
        for topic, count in idle.items() if idle != self._idle else ():
            if count:
                total = self._counts()[topic]
                log.warning(
                    "%s: %d of its %d threads get no partition of %s; spare ones take over when another member stops",
                    self.consumer_id,
                    count,
                    total,
                    topic,
                )
        self._idle = idle

    def _counts(self) -> Mapping[str, int]:
        """Streams by topic; of a wildcard nothing, its streams are shared by all topics."""
        subscription = self._subscription
        return subscription.streams if subscription is not None and not subscription.is_wildcard else {}

    def _tell(self, text: str, error: Exception | None = None) -> None:
        """Once until things are settled again."""
        if text not in self._said:
            self._said.add(text)
            is_known = error is None or isinstance(error, (OfframpError, KazooException, KafkaException))
            log.warning("%s: %s", self.consumer_id, text, exc_info=None if is_known else error)

    # What kazoo's and the embedded consumer's threads say

    def _session_lost(self) -> None:
        if self._stopping.is_set():
            return
        self.metrics.add("SessionExpirations")
        driver = getattr(self, "_driver", None)
        if driver is not None and driver.embedded is not None:
            driver.embedded.subscribe([])

    def _owner_gone(self, pair: TopicAndPartition) -> None:
        """Somebody deleted an owner znode that this member held (R15): stop at once, then see what is true."""
        self._coordination.doubt()
        self._gate.drop([pair])
        log.warning("%s: somebody deleted the owner znode of %s-%d", self.consumer_id, *pair)

    def _kafka_assigned(self, licence: int) -> None:
        self._gate.begin_licence(licence)
        self._note()

    def _kafka_revoked(self) -> None:
        self._driver.drive(self._coordination.revoked())
        self._note()

    def _kafka_lost(self) -> None:
        self._driver.drive(self._coordination.lost())
        self._note()

    def _kafka_polled(self, seconds: float) -> None:
        """A thread that stood still for long may have been put out of the Kafka group, and a plain Kafka consumer may
        read its partitions (R13, R14). A commit as a member proves that it was not."""
        embedded = self._driver.embedded if hasattr(self, "_driver") else None
        if embedded is None:
            return
        stood_still = seconds > embedded.session_seconds / 2 and embedded.assignment.membership is Membership.IN
        if stood_still and not self._is_kafka_member(embedded):
            embedded.rejoin()
            self._kafka_lost()
        self._gate.extend_kafka(self._gate.clock() + embedded.session_seconds / 2)

    def _is_kafka_member(self, embedded: EmbeddedConsumer) -> bool:
        """False if it can't be told: the proof could lower what another member committed while ZooKeeper's session is
        in doubt (R12)."""
        if self._gate.seconds_without_lease > 0:
            return False
        try:
            answers = embedded.commit(self._gate.licensed(), 0)
        except KafkaException:
            return False
        return bool(answers) and not any(isinstance(each, KafkaError) for each in answers.values())

    # Commits

    def _keep_committed(self) -> None:
        while not self._stopping.wait(self.config.seconds("auto.commit.interval.ms")):
            self._commit(is_handed_out_enough=False)

    def _commit(self, is_handed_out_enough: bool) -> dict[TopicAndPartition, str]:
        session, offsets = self._gate.consumed(is_handed_out_enough)
        if session is None or session != self._session.current:
            return dict.fromkeys(offsets, "the ZooKeeper session is over")
        try:
            errors = self._store.commit(offsets, EXPLICIT_COMMIT_SECONDS)
        except (OfframpError, KazooException, KafkaException) as error:
            errors = dict.fromkeys(offsets, str(error) or type(error).__name__)
        still = self._gate.consuming()
        errors = {pair: reason for pair, reason in errors.items() if pair in still}
        self.metrics.committed(self._store.name, len(offsets) - len(errors), len(errors))
        for reason, pairs in by_reason(errors).items():
            if NO_MEMBER not in reason:
                self._tell(f"not committed: {pairs}: {reason}")
        return errors

    def _commit_as_member(
        self, wanted: Mapping[TopicAndPartition, int], seconds: float
    ) -> Mapping[TopicAndPartition, Any]:
        assert self._driver.embedded is not None
        return self._driver.embedded.commit(wanted, seconds)

    def _out_of_range(self, pair: TopicAndPartition, reason: str) -> int:
        """The log doesn't reach to the offset any more: ``auto.offset.reset`` says where to go on."""
        reset = self.config["auto.offset.reset"]
        found = self._brokers.log_offsets([pair], reset, EXPLICIT_COMMIT_SECONDS)
        if pair not in found:
            raise OfframpError(f"{pair[0]}-{pair[1]}: offset out of range ({reason}), and its log can't be asked")
        log.warning("%s: %s-%d goes on at %d (%s): %s", self.consumer_id, *pair, found[pair], reset, reason)
        self.metrics.add("OffsetResets")
        if self._zookeeper_offsets is not None:
            self._zookeeper_offsets.allow_lower(pair)
        return found[pair]

    def _live(self) -> dict[str, float]:
        held = dict(self._coordination.held)
        outcome = self._outcome
        decision = outcome.decision if outcome is not None else None
        embedded = self._driver.embedded if hasattr(self, "_driver") else None
        in_kafka = embedded is not None and embedded.assignment.membership is Membership.IN
        n_fences = sum(thread.endswith(FENCE_SUFFIX) for thread in held.values())
        lags = [lag for stream in self._streams.values() if (lag := stream.max_lag) is not None]
        known = {"MaxLag": float(max(lags))} if lags else {}
        return known | {
            "ActiveKafkaCoordinationCount": float(self._coordination.mode is Mode.KAFKA),
            "KafkaOwnedPartitionsCount": float(len(embedded.assignment.partitions)) if embedded and in_kafka else 0.0,
            "OwnedPartitionsCount": float(len(held) - n_fences),
            "ConsumedPartitionsCount": float(len(self._gate.consuming())),
            "DeferredToggleCount": float(decision is not None and decision.is_deferred),
            "FencedPartitionsCount": float(n_fences),
            "BlockedPartitionsCount": float(len(outcome.blocked)) if outcome is not None else 0.0,
            "SecondsInDoubt": self._gate.seconds_in_doubt,
            "Messages": float(sum(stream.n_records for stream in self._streams.values())),
        }
