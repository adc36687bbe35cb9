"""The Kafka consumer inside a migration-enabled member (KIP-125's EKC): in the Kafka group, but fetching nothing.

A thread of its own polls, however long a round takes (R10). Rebalance callbacks, commits, joining and leaving all
happen on that thread.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kit.clients.consumer_protocol import EMBEDDED_RACK
from kit.consumer.kafka.commits import content_of
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import KafkaAssignment, Membership, Offsets
from kit.consumer.zookeeper.lease import seconds_since_boot

log = logging.getLogger("offramp.consumer")

POLL_SECONDS = 0.05
JOINING = KafkaError(KafkaError._STATE, "the embedded consumer is joining the Kafka group")
"""The answer to each commit until it is a member. It is known by its identity."""
OUTDATED = KafkaError(KafkaError._OUTDATED, "a newer offset was sent, or the partition started again")
DEFAULTS = {
    # The value of an old consumer's ZooKeeper session, so that a dead member is noticed by both at about the same time.
    "session.timeout.ms": 6000,
    # The other members are stalled until this one hears of a rebalance.
    "heartbeat.interval.ms": 500,
    "topic.metadata.refresh.interval.ms": 10_000,
    "socket.timeout.ms": 10_000,
}


class EmbeddedConsumer:
    """All callbacks run on its thread and should return soon: ``assigned`` with the epoch of a new assignment,
    ``revoked`` before a rebalance is answered, ``lost`` when the group continued without it, ``polled`` with the
    seconds since the poll before."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        poll_seconds: float,
        assigned: Callable[[int], None],
        revoked: Callable[[], None],
        lost: Callable[[], None],
        polled: Callable[[float], None],
        connect: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        forced = {
            "enable.auto.commit": False,
            "on_commit": self._on_commit,
            "auto.offset.reset": "error",
            "client.rack": EMBEDDED_RACK,
        }
        effective = {**DEFAULTS, **settings, **forced}
        self._consumer = connect(effective)
        self.session_seconds = float(effective["session.timeout.ms"]) / 1000
        self._timeout = min(POLL_SECONDS, poll_seconds)
        self._assigned, self._revoked, self._lost, self._polled = assigned, revoked, lost, polled
        self._work: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self._commits: dict[frozenset[tuple[str, int, int]], Future[Mapping[TopicAndPartition, int | KafkaError]]] = {}
        self._sent: dict[TopicAndPartition, int] = {}
        self._turns: dict[TopicAndPartition, int] = {}
        self._topics: tuple[str, ...] = ()
        self._is_stopping = False
        self._joined = threading.Event()
        self.assignment = KafkaAssignment(Membership.OUT)
        self._thread = threading.Thread(target=self._run, name="embedded consumer", daemon=True)
        self._thread.start()

    def subscribe(self, topics: Sequence[str]) -> None:
        """Be a member of the Kafka group for ``topics``. Without topics it leaves the group."""
        self._work.put(lambda: self._subscribe(tuple(sorted(topics))))

    def commit(self, offsets: Offsets, seconds: float) -> Mapping[TopicAndPartition, int | KafkaError]:
        """Commit as a member; → each partition's answer.

        An offset lower than one sent since :meth:`forget` is not sent. Its answer is ``OUTDATED``.

        Raises:
            KafkaException: the commit failed as a whole, or did not end in time; at once while it is no member.
        """
        if threading.current_thread() is self._thread:
            partitions = self._newest(offsets)
            answers = (
                _answers(self._consumer.commit(offsets=partitions, asynchronous=False) or []) if partitions else {}
            )
            return {**dict.fromkeys(offsets, OUTDATED), **answers}
        if self.assignment.membership is not Membership.IN:
            raise KafkaException(JOINING)
        future: Future[Mapping[TopicAndPartition, int | KafkaError]] = Future()
        stamp = self.assignment.epoch, {pair: self._turns.get(pair, 0) for pair in offsets}
        self._work.put(lambda: self._commit_later(offsets, stamp, future))
        try:
            return {**dict.fromkeys(offsets, OUTDATED), **future.result(seconds)}
        except TimeoutError:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None

    def forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        """These partitions start again, at any offset: their commits that still wait are out of date."""
        for pair in partitions:
            self._turns[pair] = self._turns.get(pair, 0) + 1
            self._sent.pop(pair, None)

    def await_joined(self, seconds: float) -> None:
        """Return when this member is in the group, or when ``seconds`` have ended."""
        self._joined.wait(seconds)

    def close(self) -> None:
        """Leave the group; ``revoked`` is called once more. Waits for the thread."""
        self._is_stopping = True
        self._thread.join()

    def _run(self) -> None:
        polled_at = seconds_since_boot()
        while not self._is_stopping:
            try:
                self._do_work()
                message = self._consumer.poll(self._timeout)
            except Exception:
                # Without this thread the member would keep its partitions and deliver nothing.
                log.exception("embedded consumer: a poll failed; it polls again")
                time.sleep(self._timeout)
                continue
            if message is not None and (error := message.error()) is not None:
                log.warning("embedded consumer: %s", error.str())
            before, polled_at = polled_at, seconds_since_boot()
            self._polled(polled_at - before)
        self._do_work()
        self._consumer.close()
        self._set(Membership.OUT)

    def rejoin(self) -> None:
        """Leave and join again, on its thread: the group may have gone on without it, so its assignment is void."""
        topics = self._topics
        self._set(Membership.OUT)
        self._subscribe(())
        self._subscribe(topics)

    def _do_work(self) -> None:
        while True:
            try:
                work = self._work.get_nowait()
            except queue.Empty:
                return
            work()

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        if topics == self._topics:
            return
        self._topics = topics
        if not topics:
            self._consumer.unsubscribe()
            return
        self._consumer.subscribe(
            list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Pause before ``assign``, and assign at a plain offset: in any other order librdkafka fetches (R24)."""
        consumer.position(partitions)
        consumer.pause(partitions)
        consumer.assign([TopicPartition(each.topic, each.partition, 0) for each in partitions])
        self._set(Membership.IN, partitions)
        self._assigned(self.assignment.epoch)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._set(Membership.OUT if not self._topics or self._is_stopping else Membership.REBALANCING)
        self._revoked()
        consumer.unassign()

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._set(Membership.OUT)
        self._lost()
        consumer.unassign()

    def _set(self, membership: Membership, partitions: Sequence[TopicPartition] = ()) -> None:
        pairs = frozenset((each.topic, each.partition) for each in partitions)
        self.assignment = KafkaAssignment(membership, self.assignment.epoch + 1, pairs)
        if membership is Membership.IN:
            self._joined.set()
        else:
            self._joined.clear()

    def _commit_later(
        self,
        offsets: Offsets,
        stamp: tuple[int, dict[TopicAndPartition, int]],
        future: Future[Mapping[TopicAndPartition, int | KafkaError]],
    ) -> None:
        """Leave out partitions that started again since, and everything of another generation: it is out of date."""
        epoch, turns = stamp
        current = {pair: offset for pair, offset in offsets.items() if self._turns.get(pair, 0) == turns[pair]}
        if epoch != self.assignment.epoch:
            future.set_exception(KafkaException(JOINING))
            return
        partitions = self._newest(current)
        if not partitions:
            future.set_result({})
            return
        self._commits[content_of(partitions)] = future
        try:
            self._consumer.commit(offsets=partitions, asynchronous=True)
        except KafkaException as error:
            self._commits.pop(content_of(partitions), None)
            future.set_exception(error)

    def _newest(self, offsets: Offsets) -> list[TopicPartition]:
        newest = {pair: offset for pair, offset in offsets.items() if offset >= max(0, self._sent.get(pair, 0))}
        self._sent |= newest
        return [TopicPartition(*pair, offset) for pair, offset in newest.items()]

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        future = self._commits.pop(content_of(partitions), None)
        if future is None:
            return
        if error is not None and all(each.error is None for each in partitions):
            future.set_exception(KafkaException(error))
        else:
            future.set_result(_answers(partitions))


def _answers(partitions: Sequence[TopicPartition]) -> dict[TopicAndPartition, int | KafkaError]:
    return {(each.topic, each.partition): each.error if each.error is not None else each.offset for each in partitions}
