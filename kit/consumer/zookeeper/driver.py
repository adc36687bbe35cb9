"""Executes the protocol's effects on real servers."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaException
from kazoo.exceptions import KazooException

from kit.consumer.metrics import Metrics
from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.brokers import GroupBrokers
from kit.consumer.zookeeper.coordination import whole_assignment
from kit.consumer.zookeeper.effects import Effect, GroupView, KafkaAssignment, KafkaGroup, Membership, Offsets
from kit.consumer.zookeeper.embedded import EmbeddedConsumer
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.migration import Mode
from kit.consumer.zookeeper.offsets import OffsetStore, ZookeeperOffsets
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.errors import OfframpError
from kit.text.naming import shortened

log = logging.getLogger("offramp.consumer")

RELEASE_COMMIT_SECONDS = 0.3
"""The time for which a release waits for the commit to Kafka; then it deletes the owner znodes without it (R3)."""
LAST_COMMIT_SECONDS = 4.0
"""The time for which a member that leaves waits until it has joined the Kafka group, to commit its last offsets
there. More than a broker's default ``group.initial.rebalance.delay.ms`` (3 s), less than the four tries of an old
consumer (6 s, R3).
"""
STABLE_SECONDS = 5.0
"""The time for which the listener waits for the whole group's assignment while the Kafka group rebalances."""

Result = TypeVar("Result")


class ConsumerRebalanceListener(Protocol):
    """The old consumer's listener, called on the member's own thread; the rebalance waits for it.

    An exception of ``before_starting_fetchers`` keeps the partitions from being started; the rebalance is tried again.
    """

    def before_releasing_partitions(self, partitions: Mapping[str, set[int]]) -> None:
        """Before these partitions, by topic, are given up."""
        ...

    def before_starting_fetchers(self, consumer_id: str, assignment: Mapping[str, Mapping[int, str]]) -> None:
        """Before partitions are consumed: the whole group's assignment, topic → partition → thread id."""
        ...


class Rebalancing(Exception):
    """The Kafka group rebalances: what needs its whole assignment must wait for the next round."""


class Driver:
    """Executes effects for one member. Created once; the rebalance loop's thread and the embedded consumer's use it.

    ``store`` is where offsets are fetched from; ``zookeeper_offsets`` and ``kafka_offsets`` are the stores it commits
    to, None for one that the configuration does not use. ``reset`` is ``auto.offset.reset``, ``commits`` is
    ``auto.commit.enable``. ``viewed`` is called with each view of the group; ``changed`` is set by every watch.
    """

    def __init__(
        self,
        consumer_id: str,
        *,
        znodes: GroupZnodes,
        gate: Gate,
        brokers: GroupBrokers,
        zookeeper_offsets: ZookeeperOffsets | None,
        kafka_offsets: OffsetStore | None,
        store: OffsetStore,
        metrics: Metrics,
        reset: str,
        commits: bool,
        viewed: Callable[[GroupView], None],
        changed: threading.Event,
        listener: ConsumerRebalanceListener | None,
    ) -> None:
        self.changed = changed
        self.embedded: EmbeddedConsumer | None = None
        self._listener = listener
        self._consumer_id = consumer_id
        self._znodes = znodes
        self._gate = gate
        self._brokers = brokers
        self._zookeeper_offsets = zookeeper_offsets
        self._kafka_offsets = kafka_offsets
        self._store = store
        self._metrics = metrics
        self._reset = reset
        self._commits = commits
        self._viewed = viewed
        self._described: tuple[tuple[int, frozenset[str]], KafkaGroup] | None = None
        self._has_looked = False

    def drive(self, steps: Generator[Effect, Any, Result]) -> Result:
        """Execute the effects one by one; → what the protocol returns. An effect that raises ends it."""
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                result: Result = end.value
                return result
            answer = self._perform(effect)

    def _perform(self, effect: Effect) -> Any:
        match effect:
            case effects.ReadGroup():
                return self._read_group()
            case effects.ReadKafkaAssignment():
                return self.embedded.assignment if self.embedded else KafkaAssignment(Membership.OUT)
            case effects.ReadKafkaGroup(consumer_ids, is_fresh):
                return self._kafka_group(consumer_ids, is_fresh)
            case effects.ReadIds():
                return self._znodes.read_ids()
            case effects.ReadReservations():
                return self._znodes.has_reservations()
            case effects.ReadHeld():
                return self._znodes.read_held()
            case effects.ReadToggle():
                return self._read_toggle()
            case effects.IsStale():
                return self.changed.is_set()
            case effects.BeforeReleasing(partitions):
                return self._before_releasing(partitions)
            case effects.BeforeStarting(view, assignment):
                return self._before_starting(view, assignment)
            case effects.Stop(partitions):
                return self._gate.stop(partitions)
            case effects.StopKafkaAssigned():
                return self._gate.end_assignment_epoch()
            case effects.StopAll():
                return self._gate.stop_all()
            case effects.StopOthers(partitions):
                return self._gate.stop_others(partitions)
            case effects.DiscardUnsaved():
                return self._gate.uncommitted.discard_unsaved()
            case effects.CommitZookeeper(offsets):
                return self._commit_zookeeper(offsets)
            case effects.CopyToZookeeper(offsets):
                return self._copy_to_zookeeper(offsets)
            case effects.CommitKafka(offsets, is_last):
                return self._commit_last(offsets) if is_last else self._commit_kafka(offsets, RELEASE_COMMIT_SECONDS)
            case effects.Release(partitions):
                self._gate.uncommitted.forget(partitions)
                return self._znodes.release(partitions)
            case effects.ClaimAll(threads):
                return self._znodes.claim_all(threads)
            case effects.ClaimEach(threads):
                return self._znodes.claim_each(threads)
            case effects.Rename(threads):
                return self._znodes.rename(threads)
            case effects.FetchOffsets(partitions):
                return self.fetch_offsets(partitions)
            case effects.FetchKafka(partitions):
                return self._fetch_kafka(partitions)
            case effects.Keep(threads, assignment_epoch):
                return self._gate.keep(threads, assignment_epoch)
            case effects.Start(threads, offsets, assignment_epoch):
                return self._gate.start(threads, offsets, assignment_epoch)

    def fetch_offsets(self, partitions: effects.Pairs) -> Offsets:
        """Committed offsets; without one, the log's start or end by ``auto.offset.reset``.

        Partitions that failed are logged and left out.
        """
        if self.embedded is not None:
            self.embedded.forget(partitions)
        fetched = self._store.fetch(sorted(partitions))
        for reason, pairs in by_reason(fetched.errors).items():
            log.warning("%s: offsets can't be fetched and are tried again: %s: %s", self._consumer_id, pairs, reason)
        fresh = [pair for pair in partitions if pair not in fetched.offsets and pair not in fetched.errors]
        started = self._brokers.log_offsets(fresh, self._reset, STABLE_SECONDS) if fresh else {}
        for pair in set(fresh) - started.keys():
            log.warning(
                "%s: %s-%d has no committed offset, and its leader did not answer; tried again",
                self._consumer_id,
                *pair,
            )
        return {**fetched.offsets, **started}

    def _kafka_group(self, consumer_ids: frozenset[str], is_fresh: bool) -> KafkaGroup | None:
        """Asked once per generation, unless it must be fresh."""
        assignment = self.embedded.assignment if self.embedded else KafkaAssignment(Membership.OUT)
        asked = (assignment.epoch, consumer_ids)
        is_known = self._described is not None and self._described[0] == asked
        if is_fresh or not is_known or self._described is None or assignment.membership is not Membership.IN:
            group = self._brokers.describe(consumer_ids)
            if assignment.membership is Membership.IN and group is not None and not (group.plain or group.embedded):
                return None  # This member is in the group: an answer without any member is not the coordinator's.
            self._described = (asked, group) if group is not None and group.is_stable else None
            return group
        return self._described[1]

    def _read_toggle(self) -> str | None:
        """``kafka`` when it can't be read, so that everything is stopped."""
        try:
            return self._znodes.read_toggle()
        except (OfframpError, KazooException) as error:
            log.warning(
                "%s: all partitions are stopped, because the toggle can't be read while the Kafka group rebalances: %s",
                self._consumer_id,
                error,
            )
            return Mode.KAFKA.value

    def _fetch_kafka(self, partitions: effects.Pairs) -> Offsets:
        if self._kafka_offsets is None:
            return {}
        fetched = self._kafka_offsets.fetch(sorted(partitions))
        return {pair: fetched.offsets.get(pair, 0) for pair in partitions if pair not in fetched.errors}

    def _read_group(self) -> GroupView:
        """A change before this read is in the view, so ``changed`` is cleared first; a later one sets it again.

        The members of the Kafka group are asked for once before this one joins: while the group rebalances, its
        coordinator does not report it.
        """
        self._gate.begin_round()
        self.changed.clear()
        view = self._znodes.read_group()
        if self.embedded is not None and not self._has_looked:
            self._brokers.describe(frozenset(view.members))
            self._has_looked = True
        self._viewed(view)
        return view

    def _commit_zookeeper(self, offsets: Offsets) -> effects.Pairs:
        """A refused commit does not delay the release; an unreachable ZooKeeper does. Both are logged and counted."""
        store = self._zookeeper_offsets
        if store is None or not self._commits:
            return frozenset()
        try:
            self._note_commit(store.name, offsets, store.commit(offsets, RELEASE_COMMIT_SECONDS))
        except (OfframpError, KazooException) as error:
            self._note_commit(store.name, offsets, dict.fromkeys(offsets, str(error) or type(error).__name__))
            self._gate.uncommitted.mark_uncertain(offsets)
            self._drop_what_kafka_has(offsets)
            return frozenset(offsets)
        return frozenset()

    def _copy_to_zookeeper(self, offsets: Offsets) -> effects.Pairs:
        """The offsets of reserved partitions, read back: the next owner may read ZooKeeper alone.

        Plain Kafka consumers committed them, so this member's ``auto.commit.enable`` does not matter.
        """
        store = self._zookeeper_offsets
        if store is None:
            return frozenset(offsets)
        errors: Mapping[TopicAndPartition, str] = {}
        there: Offsets = {}
        try:
            errors = store.commit(offsets, RELEASE_COMMIT_SECONDS)
            there = store.fetch(sorted(offsets)).offsets
        except (OfframpError, KazooException) as error:
            errors = dict.fromkeys(offsets, str(error) or type(error).__name__)
        missing = {
            pair: errors.get(pair, "ZooKeeper has a lower offset")
            for pair in offsets
            if there.get(pair, -1) < offsets[pair]
        }
        self._metrics.committed(store.name, len(offsets) - len(missing), len(missing))
        for reason, pairs in by_reason(missing).items():
            log.warning(
                "%s: the reservation of %s remains until its offset is in ZooKeeper: %s",
                self._consumer_id,
                pairs,
                reason,
            )
        return frozenset(missing)

    def _drop_what_kafka_has(self, offsets: Offsets) -> None:
        """Keep from Kafka what could lower its offset (R12).

        Without ZooKeeper's answer this member may have lost a partition to one that is further by now. So an offset is
        committed only when Kafka's own is known, and lower.
        """
        unsaved = self._gate.uncommitted.of(offsets)
        if not unsaved:
            return
        try:
            known = self._brokers.committed(unsaved, RELEASE_COMMIT_SECONDS)
        except KafkaException:
            known = {}
        lower = {pair for pair, in_kafka in known.items() if isinstance(in_kafka, int) and in_kafka < unsaved[pair]}
        self._gate.uncommitted.mark_committed({pair: offset for pair, offset in unsaved.items() if pair not in lower})

    def _commit_kafka(self, offsets: Offsets, seconds: float) -> None:
        """Commit those of ``offsets`` that Kafka lacks. A failure is logged and counted, and ends nothing."""
        store = self._kafka_offsets
        unsaved = self._gate.uncommitted.of(offsets)
        if store is None or not self._commits or not unsaved:
            return
        errors = store.commit(unsaved, seconds)
        self._gate.uncommitted.mark_committed({pair: offset for pair, offset in unsaved.items() if pair not in errors})
        self._note_commit(store.name, unsaved, errors)

    def _commit_last(self, offsets: Offsets) -> None:
        """Commit as a member of the Kafka group: wait until it has joined, and keep the owner znodes meanwhile.

        A commit without a member could overtake the commits of a member that comes. A session that is in doubt after
        the wait may be over, and another member further (R12).
        """
        if self.embedded is not None and self._commits and self._gate.uncommitted.of(offsets):
            self.embedded.await_joined(LAST_COMMIT_SECONDS)
            if self._gate.lease.seconds_without_session > 0:
                self._drop_what_kafka_has(offsets)
        self._commit_kafka(offsets, LAST_COMMIT_SECONDS)

    def _note_commit(self, name: str, offsets: Offsets, errors: Mapping[TopicAndPartition, str]) -> None:
        self._metrics.committed(name, len(offsets) - len(errors), len(errors))
        for reason, pairs in by_reason(errors).items():
            log.warning("%s: stopped without a commit to %s: %s: %s", self._consumer_id, name, pairs, reason)

    def _before_releasing(self, partitions: effects.Pairs) -> None:
        if self._listener is None:
            return
        by_topic: dict[str, set[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, set()).add(partition)
        try:
            self._listener.before_releasing_partitions(by_topic)
        except Exception:
            log.exception("%s: before_releasing_partitions failed; the partitions are released", self._consumer_id)
            self._metrics.listener_failed()

    def _before_starting(self, view: GroupView, assignment: Assignment | None) -> None:
        if self._listener is None:
            return
        whole = assignment if assignment is not None else self._stable_assignment(view)
        by_topic: dict[str, dict[int, str]] = {}
        for (topic, partition), thread in sorted(whole.items()):
            by_topic.setdefault(topic, {})[partition] = thread
        self._listener.before_starting_fetchers(self._consumer_id, by_topic)

    def _stable_assignment(self, view: GroupView) -> Assignment:
        """Never an incomplete one: raises while the Kafka group rebalances, and the round is tried again."""
        group = self._kafka_group(frozenset(view.members), is_fresh=False)
        if group is None or not group.is_stable:
            raise Rebalancing("the Kafka group rebalances, so its whole assignment is not known yet")
        return whole_assignment(view, group)


def by_reason(errors: Mapping[TopicAndPartition, str]) -> dict[str, str]:
    """Reason → the partitions it holds for, as text."""
    reasons: dict[str, list[TopicAndPartition]] = {}
    for pair, reason in sorted(errors.items()):
        reasons.setdefault(reason, []).append(pair)
    return {reason: _named(pairs) for reason, pairs in reasons.items()}


def _named(pairs: list[TopicAndPartition]) -> str:
    return shortened(f"{topic}-{partition}" for topic, partition in pairs)
