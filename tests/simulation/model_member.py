"""A member in Python: the real protocol (``kit.consumer.coordination``) and the real gate, driven on the models.

Its threads are those of ``kit.consumer.connector``: the one of the rounds, kazoo's two, the lease's, the embedded
consumer's, the committing one and a stream. Each does one atomic step at a time, and any other step may come between.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kit.consumer import coordination as effects
from kit.consumer.assignors import Assignment, TopicAndPartition
from kit.consumer.coordination import Coordination, Effect, Ended, GroupView, Offsets, Outcome, Pairs, whole_assignment
from kit.consumer.gate import Gate
from kit.consumer.migration import Mode
from kit.consumer.registration import thread_ids
from kit.consumer.session import SAFE_PART
from tests.simulation.model_embedded import Embedded
from tests.simulation.model_zookeeper import SESSION_SECONDS, ConnectionLost, ZookeeperClient
from tests.simulation.model_znodes import ZnodeSteps, ZookeeperOffsetSteps
from tests.simulation.steps import Steps, Thread

if TYPE_CHECKING:
    from tests.simulation.world import World

BACKOFF, LOOK_EVERY, KAFKA_RETRY, COMMIT_EVERY, PROVE_EVERY = 2.0, 5.0, 0.2, 2.0, 1.0


class NotNow(Exception):
    """The listener can't be told yet; the round is tried again."""


class ModelStream:
    """What the gate asks of a stream: places, with their offsets and licences."""

    def __init__(self) -> None:
        self.places: dict[TopicAndPartition, tuple[int, int | None]] = {}

    def add(self, pair: TopicAndPartition, offset: int, licence: int | None) -> None:
        self.places[pair] = (offset, licence)

    def remove(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        return {pair: self.places.pop(pair)[0] for pair in pairs if pair in self.places}

    def await_finished(self, pairs: Collection[TopicAndPartition], deadline: float) -> None:
        """A record is handed out and done with in one step."""

    def licence(self, pair: TopicAndPartition) -> int | None:
        return self.places[pair][1]

    def set_licence(self, pair: TopicAndPartition, licence: int | None) -> None:
        self.places[pair] = (self.places[pair][0], licence)

    def position(self, pair: TopicAndPartition, is_handed_out_enough: bool) -> int:
        return self.places[pair][0]


class PythonMember:
    """One process. What a mistake or a repair changes is a method or one of the four classes below."""

    coordination_class: type[Coordination] = Coordination
    gate_class: type[Gate] = Gate
    znodes_class: type[ZnodeSteps] = ZnodeSteps
    embedded_class: type[Embedded] = Embedded

    def __init__(self, world: World, name: str, is_migration_enabled: bool, n_streams: int = 2) -> None:
        self.world = world
        self.consumer_id = f"g_{name}"
        self.is_migration_enabled = is_migration_enabled
        self.streams_by_topic = dict.fromkeys(world.topics, n_streams)
        self.is_paused = False
        self.is_leaving = False
        self.has_left = False
        self.changed = False
        self.about_to: dict[str, Effect | None] = {}
        self.outcome: Outcome | None = None
        self.told: Assignment = {}
        self.n_starts = 0
        self.client = ZookeeperClient(world.zookeeper, self)
        self.gate = self.gate_class(lambda: world.now)
        self.coordination = self.coordination_class(self.consumer_id, is_migration_enabled=is_migration_enabled)
        self.znodes = self.znodes_class(
            self.client, self.consumer_id, is_migration_enabled, self.note, self.owner_gone, self.watch_lost
        )
        self.offsets = ZookeeperOffsetSteps(self.znodes)
        self.streams = {
            (topic, thread): ModelStream()
            for topic in world.topics
            for thread in thread_ids(self.consumer_id, n_streams)
        }
        self.gate.open(self.streams)  # type: ignore[arg-type]
        self.embedded = self.embedded_class(self) if is_migration_enabled else None
        self.threads = {name: Thread(steps) for name, steps in self._threads().items()}
        self._session: int | None = None
        self._kafka_known: dict[TopicAndPartition, int] = {}
        self._last_handed: TopicAndPartition | None = None
        self._described: tuple[object, effects.KafkaGroup] | None = None
        self._seen: frozenset[str] = frozenset()
        self._looked: set[tuple[str, TopicAndPartition]] = set()
        self._is_committing = self.has_failed_to_commit = False

    def _threads(self) -> dict[str, Steps]:
        threads = {
            "rounds": self._rounds(),
            "callbacks": self.client.callbacks(),
            "connection": self.client.connection(),
            "lease": self._prove(),
            "commits": self._keep_committed(),
            "stream": self._hand_out(),
        }
        if self.embedded is not None:
            threads["embedded"] = self.embedded.run()
            threads["heartbeat"] = self._hear()
        return threads

    @property
    def mode(self) -> Mode | None:
        return self.coordination.mode

    @property
    def consuming(self) -> Pairs:
        return self.gate.consuming()

    # What other threads say

    def note(self) -> None:
        self.changed = True

    def connection_changed(self) -> None:
        self.note()

    def session_lost(self) -> None:
        self.gate.session_ended()
        if self.embedded is not None and not self.is_leaving:
            self.embedded.subscribe([])
        self.note()

    def owner_gone(self, pair: TopicAndPartition) -> None:
        self.coordination.doubt()
        self.gate.drop([pair])
        self.world.judge.theft_noticed(self, pair)

    def watch_lost(self) -> None:
        self.coordination.doubt()

    def revoked(self) -> Steps:
        """On the embedded consumer's thread."""
        yield from self.drive("embedded", self.coordination.revoked())
        self.note()

    def lost(self) -> Steps:
        self.world.judge.put_out(self)
        yield from self.drive("embedded", self.coordination.lost())
        self.world.judge.put_out(self)
        self.note()

    # The thread of the rounds

    def _rounds(self) -> Steps:
        while not self.is_leaving:
            pause = yield from self._reconcile()
            until = self.world.now + pause
            if pause > 0:
                yield lambda until=until: self.changed or self.is_leaving or self.world.now >= until  # type: ignore[misc]
        yield from self._leave()

    def _reconcile(self) -> Steps:
        try:
            if not (yield from self._has_session()):
                self.changed = False
                return BACKOFF
            self._looked = set()
            outcome = yield from self.drive("rounds", self.coordination.reconcile())
            self.world.judge.thefts_noticed(self._looked)
            return (yield from self._after(outcome))
        except (ConnectionLost, NotNow):
            yield None
            return BACKOFF

    def _has_session(self) -> Steps:
        session = self.client.current
        if session is None:
            return False
        yield None
        if session != self._session:
            self.coordination.session_lost()
            self.gate.session_began(session)
            yield from self._prove_once()
            self._session = session
        return True

    def _after(self, outcome: Outcome) -> Steps:
        self.outcome = outcome
        if outcome.ended is Ended.SETTLED:
            return LOOK_EVERY
        if outcome.ended is Ended.STALE:
            return 0.0
        if outcome.ended is Ended.WAITING:
            return KAFKA_RETRY
        if outcome.ended is Ended.UNREGISTERED:
            return 0.0 if (yield from self.znodes.register(self.streams_by_topic)) else BACKOFF
        if outcome.ended is Ended.BLOCKED and self.mode is Mode.KAFKA:
            return KAFKA_RETRY
        return BACKOFF

    def _leave(self) -> Steps:
        """As ``shutdown``, on the thread that calls it."""
        yield lambda: not self._is_committing
        try:
            yield from self.drive("rounds", self.coordination.leave())
        except ConnectionLost:
            pass
        self.world.judge.leaves(self)
        if self.embedded is not None:
            self.embedded.is_stopping = True
            yield lambda: self.threads["embedded"].is_over
        yield None
        self.client.close()
        self.has_left = True

    # Effects

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
            return (yield from self._commit_kafka(effect.offsets, thread == "embedded"))
        answer = method(effect)
        return (yield from answer) if isinstance(answer, Generator) else answer

    def do_ReadGroup(self, effect: effects.ReadGroup) -> Steps:
        self.gate.begin_round()
        yield None
        self.changed = False
        view: GroupView = yield from self.znodes.read_group()
        if self.embedded is not None:
            topics = view.members.get(self.consumer_id, {}) if view.is_registered else {}
            self.embedded.subscribe([topic for topic in topics if topic in view.partitions])
        return view

    def do_ReadKafkaAssignment(self, effect: effects.ReadKafkaAssignment) -> effects.KafkaAssignment:
        assert self.embedded is not None
        return self.embedded.assignment

    def do_ReadKafkaGroup(self, effect: effects.ReadKafkaGroup) -> effects.KafkaGroup | None:
        self.world.judge.looks_at_kafka(self)
        return self.kafka_group(effect.consumer_ids)

    def kafka_group(self, consumer_ids: frozenset[str]) -> effects.KafkaGroup | None:
        """Asked once per generation; None when the coordinator doesn't answer."""
        assert self.embedded is not None
        self._seen |= consumer_ids
        assignment = self.embedded.assignment
        asked = (assignment.epoch, self._seen)
        is_in = assignment.membership is effects.Membership.IN
        if self._described is not None and self._described[0] == asked and is_in:
            return self._described[1]
        is_reachable = self.embedded.client.is_reachable
        group = self.world.group.describe(self._is_embedded) if is_reachable else None
        self._described = (asked, group) if group is not None and group.is_stable else None
        return group

    def _is_embedded(self, client_id: str) -> bool:
        return client_id in self._seen or (self.world.has_generated_ids and self.world.is_embedded(client_id))

    def do_ReadFence(self, effect: effects.ReadFence) -> Steps:
        return self.znodes.is_fenced()

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
            group = self.kafka_group(frozenset(effect.view.members))
            if group is None or not group.is_stable:
                raise NotNow
            whole = whole_assignment(effect.view, group)
        self.told = whole
        if effect.assignment is None:
            self.world.judge.told(self, effect.view, whole)

    def do_Stop(self, effect: effects.Stop) -> Offsets:
        return self.gate.stop(effect.partitions)

    def do_StopLicensed(self, effect: effects.StopLicensed) -> Offsets:
        return self.gate.end_licence()

    def do_StopAll(self, effect: effects.StopAll) -> Offsets:
        return self.gate.stop_all()

    def do_Confine(self, effect: effects.Confine) -> None:
        self.gate.confine(effect.partitions)

    def do_Forget(self, effect: effects.Forget) -> None:
        self.gate.forget_unsaved()

    def do_CommitZookeeper(self, effect: effects.CommitZookeeper) -> Steps:
        """→ what ZooKeeper could not be asked to write."""
        try:
            self.has_failed_to_commit |= not (yield from self.offsets.commit(effect.offsets))
        except ConnectionLost:
            self.has_failed_to_commit = True
            return frozenset(effect.offsets)
        return frozenset()

    def _commit_kafka(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """What is not in Kafka yet, best effort."""
        unsaved = self.gate.unsaved(offsets)
        failed = yield from self.commit_kafka(unsaved, is_own_thread)
        self.gate.saved({pair: offset for pair, offset in unsaved.items() if pair not in failed})

    def commit_kafka(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """As :class:`kit.consumer.offsets.KafkaOffsets`: what is known to be there is not sent again."""
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
        self.gate.released(effect.partitions)
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
        kept = self.gate.keep(effect.threads, effect.licence)
        self.world.judge.kept(self, kept, effect.licence)
        return kept

    def do_Start(self, effect: effects.Start) -> Pairs:
        started = self.gate.start(effect.threads, effect.offsets, effect.licence)
        self.n_starts += len(started)
        self.world.judge.started(self, {pair: effect.offsets[pair] for pair in started})
        return started

    # The other threads

    def _hear(self) -> Steps:
        """librdkafka's heartbeats come by themselves once a tick; one that has something to tell may come sooner."""
        assert self.embedded is not None
        while True:
            yield lambda: self.embedded.client.could_hear  # type: ignore[union-attr]
            self.embedded.client.heartbeat()

    def _prove(self) -> Steps:
        due = self.world.now
        while True:
            due = max(due, self.world.now) + PROVE_EVERY
            yield lambda due=due: self.world.now >= due and self.client.current is not None  # type: ignore[misc]
            try:
                yield from self._prove_once()
            except ConnectionLost:
                continue

    def _prove_once(self) -> Steps:
        session, sent = self.client.current, self.world.now
        yield from self.client.ask(lambda: None)
        yield None
        if session is not None and session == self.client.current:
            self.gate.extend(session, sent + SESSION_SECONDS * SAFE_PART)

    def _keep_committed(self) -> Steps:
        while True:
            due = self.world.now + COMMIT_EVERY
            yield lambda due=due: self.world.now >= due and not self.is_leaving  # type: ignore[misc]
            session, offsets = self.gate.consumed(is_handed_out_enough=False)
            if session is None or session != self.client.current or not offsets:
                continue
            self._is_committing = True
            try:
                yield from self.offsets.commit(offsets)
                yield from self.commit_kafka(offsets, is_own_thread=False)
            except ConnectionLost:
                pass
            self._is_committing = False

    def _hand_out(self) -> Steps:
        """One record a step, the partitions in turn."""
        while True:
            yield lambda: self._next_place() is not None
            place = self._next_place()
            assert place is not None
            stream, pair = place
            offset, licence = stream.places[pair]
            self.world.judge.hands_out(self, pair, offset, licence)
            stream.places[pair] = (offset + 1, licence)
            self._last_handed = pair

    def _next_place(self) -> tuple[ModelStream, TopicAndPartition] | None:
        if self.world.now >= self.gate.until:
            return None
        waiting = [
            (pair, stream)
            for stream in self.streams.values()
            for pair, (offset, _) in stream.places.items()
            if offset < self.world.ends[pair]
        ]
        if not waiting:
            return None
        after = [each for each in waiting if self._last_handed is not None and each[0] > self._last_handed]
        pair, stream = min(after or waiting, key=lambda each: each[0])
        return stream, pair
