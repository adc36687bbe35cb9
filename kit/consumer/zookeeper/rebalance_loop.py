"""The thread that keeps a member's partitions as they should be: one round of the protocol after the other."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Mapping

from kit.consumer.metrics import Metrics
from kit.consumer.once_logger import OnceLogger
from kit.consumer.zookeeper.config import ConsumerConfig
from kit.consumer.zookeeper.coordination import Coordination, RoundResult, RoundStatus
from kit.consumer.zookeeper.driver import Driver, Rebalancing
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.migration import Mode
from kit.consumer.zookeeper.registration import Subscription
from kit.consumer.zookeeper.roundrobin_hash import SILENCED_SECONDS, RoundrobinGuard
from kit.consumer.zookeeper.session import Session
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.errors import InputError
from kit.text.quantity import quantity

log = logging.getLogger("offramp.consumer")

RECHECK_SECONDS = 5.0
"""A missed watch must not leave a member behind for longer than this (R8)."""
KAFKA_RETRY_SECONDS = (0.05, 0.2)


class RebalanceLoop:
    """``result`` is the last round's; ``has_tried`` is set once a round was executed or failed."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: Subscription,
        *,
        consumer_id: str,
        session: Session,
        gate: Gate,
        znodes: GroupZnodes,
        coordination: Coordination,
        driver: Driver,
        metrics: Metrics,
        logger: OnceLogger,
    ) -> None:
        self.result: RoundResult | None = None
        self.has_tried = threading.Event()
        self._config = config
        self._subscription = subscription
        self._consumer_id = consumer_id
        self._session = session
        self._gate = gate
        self._znodes = znodes
        self._coordination = coordination
        self._driver = driver
        self._metrics = metrics
        self._logger = logger
        self._guard = RoundrobinGuard(config, consumer_id, znodes)
        self._backoff = config.seconds("rebalance.backoff.ms")
        self._session_id: int | None = None
        self._has_looked = False
        self._n_blocked = 0
        self._idle: dict[str, int] = {}

    def run(self, stopping: threading.Event) -> None:
        """Run rounds until ``stopping``. Raises InputError for what only the operator can repair."""
        while not stopping.is_set():
            pause = self._reconcile()
            if pause > 0:
                self.has_tried.set()
                self._driver.changed.wait(pause)

    def _reconcile(self) -> float:
        """One round; → how long to wait for a change before the next one, in seconds."""
        try:
            if not self._has_session():
                self._driver.changed.clear()
                return self._backoff
            began = time.monotonic()
            before = self._coordination.held
            result = self._driver.drive(self._coordination.reconcile())
            if self._coordination.held != before:
                self._metrics.rebalanced(time.monotonic() - began)
            return self._after(result)
        except Rebalancing:
            return KAFKA_RETRY_SECONDS[1]
        except InputError:
            raise
        except Exception as error:  # noqa: BLE001
            # A member that stops trying stays registered and reads nothing: that is worse than any failure here.
            self._logger.warn(f"the rebalance failed and is tried again: {error!r}", error)
            self._metrics.add("RebalanceRetries")
            return self._backoff

    def _has_session(self) -> bool:
        """A new session begins with nothing held. When it has ended, this member leaves the Kafka group too (R12)."""
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

    def _after(self, result: RoundResult) -> float:
        self.result = result
        if result.decision is not None and result.decision.alarm:
            self._logger.warn(result.decision.alarm)
        match result.status:
            case RoundStatus.SETTLED:
                return self._after_settled(result)
            case RoundStatus.STALE:
                return 0.0
            case RoundStatus.WAITING:
                return KAFKA_RETRY_SECONDS[1]
            case RoundStatus.UNREGISTERED:
                return self._register()
        self._metrics.add("RebalanceRetries")
        for name, problem in result.unreadable.items():
            self._logger.warn(
                f"no partition can be claimed, because the registration of member {name} is invalid: {problem}. Stop "
                "that member"
            )
        return self._after_blocked(result) if result.status is RoundStatus.BLOCKED else self._backoff

    def _after_settled(self, result: RoundResult) -> float:
        self._n_blocked = 0
        self._logger.reset()
        self._log_idle_threads(result)
        if not self._guard.is_watching:
            return RECHECK_SECONDS
        self._guard.look()
        return SILENCED_SECONDS / 4

    def _register(self) -> float:
        if not self._has_looked:
            self._guard.look()
            self._has_looked = True
        if self._znodes.register(self._subscription.payload(time.time_ns() // 1_000_000)):
            return 0.0
        self._logger.warn(
            "this consumer.id is registered in another ZooKeeper session, so the member waits until that session "
            "ends. It may be the member's own earlier session. If another member has the same consumer.id, stop one "
            "of the two"
        )
        return self._backoff

    def _after_blocked(self, result: RoundResult) -> float:
        """ZooKeeper's mode: after the old consumer's backoff, without end. Kafka's mode: after a short random wait."""
        if self._coordination.mode is Mode.KAFKA:
            return random.uniform(*KAFKA_RETRY_SECONDS)
        self._n_blocked += 1
        if self._n_blocked >= 2:
            self._guard.look()
        if self._n_blocked == self._config["rebalance.max.retries"]:
            self._metrics.add("RebalanceFailures")
            topic, partition = min(result.blocked)
            self._logger.warn(
                f"the rebalance was blocked {quantity(self._n_blocked, 'time')}: "
                f"other members hold {quantity(len(result.blocked), 'partition')}, "
                f"{topic}-{partition} among them. The rebalance is tried again. Check that the members that own "
                "these partitions run"
            )
        return self._backoff

    def _log_idle_threads(self, result: RoundResult) -> None:
        """Spare threads are no error; the log gives the reason they get nothing."""
        busy: dict[str, set[str]] = {}
        for (topic, _), thread in result.mine.items():
            busy.setdefault(topic, set()).add(thread)
        counts = self._counts()
        idle = {topic: count - len(busy.get(topic, ())) for topic, count in counts.items()}
        for topic, n_idle in idle.items() if idle != self._idle else ():
            if n_idle:
                log.warning(
                    "%s: %d of its %d threads get no partition of %s; they are spare until another member stops",
                    self._consumer_id,
                    n_idle,
                    counts[topic],
                    topic,
                )
        self._idle = idle

    def _counts(self) -> Mapping[str, int]:
        """Streams by topic; none for a wildcard, whose streams are shared by all topics."""
        return {} if self._subscription.is_wildcard else self._subscription.streams
