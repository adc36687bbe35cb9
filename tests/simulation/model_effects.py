"""Model a Python member's reaction to each effect, as ``kit.consumer.zookeeper.driver``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.coordination import whole_assignment
from kit.consumer.zookeeper.driver import LAST_COMMIT_SECONDS
from kit.consumer.zookeeper.effects import Effect, GroupView, Offsets, Pairs
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.kafka_members import KafkaMembers
from kit.consumer.zookeeper.migration import Mode
from tests.simulation.model_embedded import Embedded
from tests.simulation.model_znodes import ZnodeSteps, ZookeeperOffsetSteps
from tests.simulation.model_zookeeper import ConnectionLost, ZookeeperClient
from tests.simulation.steps import Steps

if TYPE_CHECKING:
    from tests.simulation.world import SimulatedGroup


class NotNow(Exception):
    """The listener can't be reported yet; the round is tried again."""


class EffectSteps:
    """One method for each effect, named for it. The attributes are the member's."""

    world: SimulatedGroup
    consumer_id: str
    client: ZookeeperClient
    gate: Gate
    znodes: ZnodeSteps
    offsets: ZookeeperOffsetSteps
    embedded: Embedded | None
    about_to: dict[str, Effect | None]
    changed: bool
    has_failed_to_commit: bool
    announced: Assignment
    n_starts: int
    _looked: set[tuple[str, TopicAndPartition]]
    _kafka_known: dict[TopicAndPartition, int]
    _described: tuple[object, effects.KafkaGroup] | None
    kafka_members: KafkaMembers
    has_looked: bool

    def drive(self, thread: str, steps: Generator[Effect, Any, Any]) -> Steps:
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                return end.value
            self.about_to[thread] = effect
            self.world.judge.is_about_to(self, effect)
            yield None
            answer = yield from self.perform(thread, effect)
            self.about_to[thread] = None

    def perform(self, thread: str, effect: Effect) -> Steps:
        method: Callable[[Any], Any] = getattr(self, "do_" + type(effect).__name__)
        if isinstance(effect, effects.CommitKafka):
            if effect.is_last:
                yield from self._await_joined(effect.offsets)
            return (yield from self._commit_kafka(effect.offsets, thread == "embedded"))
        answer = method(effect)
        return (yield from answer) if isinstance(answer, Generator) else answer

    def do_ReadGroup(self, effect: effects.ReadGroup) -> Steps:
        self.gate.begin_round()
        yield None
        self.changed = False
        view: GroupView = yield from self.znodes.read_group()
        if self.embedded is not None:
            if not self.has_looked and self.embedded.client.is_reachable:
                self.described(frozenset(view.members))
            self.has_looked = True
            topics = view.members.get(self.consumer_id, {}) if view.is_registered else {}
            self.embedded.subscribe([topic for topic in topics if topic in view.partitions])
        return view

    def do_ReadKafkaAssignment(self, effect: effects.ReadKafkaAssignment) -> effects.KafkaAssignment:
        assert self.embedded is not None
        return self.embedded.assignment

    def do_ReadKafkaGroup(self, effect: effects.ReadKafkaGroup) -> effects.KafkaGroup | None:
        self.world.judge.looks_at_kafka(self)
        return self.kafka_group(effect.consumer_ids, effect.is_fresh)

    def kafka_group(self, consumer_ids: frozenset[str], is_fresh: bool) -> effects.KafkaGroup | None:
        """Asked once per generation, unless it must be fresh; None when the coordinator doesn't answer."""
        assert self.embedded is not None
        assignment = self.embedded.assignment
        asked = (assignment.epoch, consumer_ids)
        is_in = assignment.membership is effects.Membership.IN
        if not is_fresh and is_in and self._described is not None and self._described[0] == asked:
            return self._described[1]
        is_reachable = self.embedded.client.is_reachable
        group = self.described(consumer_ids) if is_reachable else None
        self._described = (asked, group) if group is not None and group.is_stable else None
        return group

    def do_ReadIds(self, effect: effects.ReadIds) -> Steps:
        return frozenset((yield from self.client.children("ids", self.znodes.note)))

    def described(self, consumer_ids: frozenset[str]) -> effects.KafkaGroup:
        server = self.world.group
        return self.kafka_members.group(server.describe(), not server.is_rebalancing, consumer_ids)

    def do_ReadReservations(self, effect: effects.ReadReservations) -> Steps:
        return self.znodes.has_reservations()

    def do_ReadHeld(self, effect: effects.ReadHeld) -> Steps:
        self._looked = self.world.judge.thefts(self)
        return self.znodes.read_held()

    def do_ReadToggle(self, effect: effects.ReadToggle) -> Steps:
        try:
            return (yield from self.znodes.read_toggle())
        except ConnectionLost:
            return Mode.KAFKA.value

    def do_IsStale(self, effect: effects.IsStale) -> bool:
        return self.changed

    def do_BeforeReleasing(self, effect: effects.BeforeReleasing) -> None:
        """The application's own."""

    def do_BeforeStarting(self, effect: effects.BeforeStarting) -> None:
        whole = effect.assignment
        if whole is None:
            group = self.kafka_group(frozenset(effect.view.members), is_fresh=False)
            if group is None or not group.is_stable:
                raise NotNow
            whole = whole_assignment(effect.view, group)
        self.announced = whole
        if effect.assignment is None:
            self.world.judge.announced(self, effect.view, whole)

    def do_Stop(self, effect: effects.Stop) -> Offsets:
        return self.gate.stop(effect.partitions)

    def do_StopKafkaAssigned(self, effect: effects.StopKafkaAssigned) -> Offsets:
        return self.gate.end_assignment_epoch()

    def do_StopAll(self, effect: effects.StopAll) -> Offsets:
        return self.gate.stop_all()

    def do_StopOthers(self, effect: effects.StopOthers) -> None:
        self.gate.stop_others(effect.partitions)

    def do_DiscardUnsaved(self, effect: effects.DiscardUnsaved) -> None:
        self.gate.uncommitted.discard_unsaved()

    def do_CommitZookeeper(self, effect: effects.CommitZookeeper) -> Steps:
        """→ what ZooKeeper could not be asked to write."""
        try:
            self.has_failed_to_commit |= not (yield from self.offsets.commit(effect.offsets))
        except ConnectionLost:
            self.has_failed_to_commit = True
            self.gate.uncommitted.mark_uncertain(effect.offsets)
            yield from self._drop_what_kafka_has(effect.offsets)
            return frozenset(effect.offsets)
        return frozenset()

    def do_CopyToZookeeper(self, effect: effects.CopyToZookeeper) -> Steps:
        """→ what ZooKeeper could not be asked to write."""
        try:
            yield from self.offsets.commit(effect.offsets)
        except ConnectionLost:
            return frozenset(effect.offsets)
        return frozenset()

    def _drop_what_kafka_has(self, offsets: Offsets) -> Steps:
        unsaved = self.gate.uncommitted.of(offsets)
        yield None
        if self.embedded is None or not self.embedded.client.is_reachable:
            self.world.judge.kafka_refused(unsaved)
            self.gate.uncommitted.mark_committed(unsaved)
            return
        known = self.world.group.offsets
        self.gate.uncommitted.mark_committed(
            {pair: offset for pair, offset in unsaved.items() if known.get(pair, 0) >= offset}
        )

    def _await_joined(self, offsets: Offsets) -> Steps:
        """Before the last commit to Kafka. A session that is in doubt by then may be over."""
        embedded = self.embedded
        if embedded is None or not self.gate.uncommitted.of(offsets):
            return
        until = self.world.now + LAST_COMMIT_SECONDS
        yield lambda: embedded.assignment.membership is effects.Membership.IN or self.world.now >= until
        if self.gate.lease.seconds_without_session > 0:
            yield from self._drop_what_kafka_has(offsets)

    def _commit_kafka(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """Commit what is not in Kafka yet, best effort."""
        unsaved = self.gate.uncommitted.of(offsets)
        failed = yield from self.commit_kafka(unsaved, is_own_thread)
        self.gate.uncommitted.mark_committed({pair: offset for pair, offset in unsaved.items() if pair not in failed})

    def commit_kafka(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """Commit like :class:`kit.consumer.zookeeper.offsets.KafkaOffsets`: what is known to be there is not sent
        again.
        """
        if self.embedded is None:
            return frozenset()
        changed = {pair: offset for pair, offset in offsets.items() if self._kafka_known.get(pair) != offset}
        failed = (yield from self.embedded.commit(changed, is_own_thread)) if changed else frozenset()
        self._kafka_known |= {pair: offset for pair, offset in changed.items() if pair not in failed}
        return failed

    def do_CommitKafka(self, effect: effects.CommitKafka) -> None:
        raise AssertionError("see perform")

    def do_FetchKafka(self, effect: effects.FetchKafka) -> Offsets:
        assert self.embedded is not None
        if not self.embedded.client.is_reachable:
            return {}
        for pair in effect.partitions:
            self._kafka_known.pop(pair, None)
        return {pair: self.world.group.offsets.get(pair, 0) for pair in effect.partitions}

    def do_Release(self, effect: effects.Release) -> Steps:
        self.gate.uncommitted.forget(effect.partitions)
        self.world.judge.releases(self, effect.partitions)
        return self.znodes.release(effect.partitions)

    def do_ClaimAll(self, effect: effects.ClaimAll) -> Steps:
        return self.znodes.claim_all(effect.threads)

    def do_ClaimEach(self, effect: effects.ClaimEach) -> Steps:
        return self.znodes.claim_each(effect.threads)

    def do_Rename(self, effect: effects.Rename) -> Steps:
        return self.znodes.rename(effect.threads)

    def do_FetchOffsets(self, effect: effects.FetchOffsets) -> Steps:
        """The higher of both stores' offsets; the log's start where there is none."""
        offsets = dict.fromkeys(effect.partitions, 0)
        offsets |= yield from self.offsets.fetch(effect.partitions)
        if self.embedded is None:
            return offsets
        self.embedded.forget(effect.partitions)
        for pair in effect.partitions:
            self._kafka_known.pop(pair, None)
        yield None
        if not self.embedded.client.is_reachable:
            return {}
        kafka = self.world.group.offsets
        return {pair: max(offset, kafka.get(pair, 0)) for pair, offset in offsets.items()}

    def do_Keep(self, effect: effects.Keep) -> Pairs:
        kept = self.gate.keep(effect.threads, effect.assignment_epoch)
        self.world.judge.kept(self, kept, effect.assignment_epoch)
        return kept

    def do_Start(self, effect: effects.Start) -> Pairs:
        started = self.gate.start(effect.threads, effect.offsets, effect.assignment_epoch)
        self.n_starts += len(started)
        self.world.judge.started(self, {pair: effect.offsets[pair] for pair in started})
        return started
