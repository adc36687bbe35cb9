"""A member in Python: the real protocol (``zookeeper.coordination``) and the real gate, driven on the models.

Its threads are those of ``zookeeper.connector``: the one of the rounds, kazoo's two, the lease's, the embedded
consumer's, the committing one and a stream. Each does one atomic step at a time, and any other step may come between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kit.consumer.zookeeper import effects
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.coordination import Coordination, RoundResult, RoundStatus
from kit.consumer.zookeeper.effects import Effect, Pairs
from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.kafka_members import KafkaMembers
from kit.consumer.zookeeper.migration import Mode
from kit.consumer.zookeeper.registration import thread_ids
from kit.consumer.zookeeper.session import SAFE_PART
from tests.simulation.model_effects import EffectSteps, NotNow
from tests.simulation.model_embedded import Embedded
from tests.simulation.model_znodes import ZnodeSteps, ZookeeperOffsetSteps
from tests.simulation.model_zookeeper import SESSION_SECONDS, ConnectionLost, ZookeeperClient
from tests.simulation.steps import Steps, Thread

if TYPE_CHECKING:
    from tests.simulation.world import SimulatedGroup

BACKOFF, LOOK_EVERY, KAFKA_RETRY, COMMIT_EVERY, PROVE_EVERY = 2.0, 5.0, 0.2, 2.0, 1.0


class ModelStream:
    """The part of a stream that the gate asks for: each partition's offset and assignment epoch, and the record in
    hand.
    """

    def __init__(self) -> None:
        self.places: dict[TopicAndPartition, tuple[int, int | None]] = {}
        self.in_hand: dict[TopicAndPartition, int] = {}

    def add(self, pair: TopicAndPartition, offset: int, assignment_epoch: int | None) -> None:
        self.places[pair] = (offset, assignment_epoch)

    def remove(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        removed = {pair: self.places.pop(pair)[0] for pair in pairs if pair in self.places}
        return {pair: self.in_hand.get(pair, offset) for pair, offset in removed.items()}

    def await_finished(self, pairs: Collection[TopicAndPartition], deadline: float) -> dict[TopicAndPartition, int]:
        """A record is delivered and done with in one step, or never."""
        return {}

    def assignment_epoch(self, pair: TopicAndPartition) -> int | None:
        return self.places[pair][1]

    def set_assignment_epoch(self, pair: TopicAndPartition, assignment_epoch: int | None) -> None:
        self.places[pair] = (self.places[pair][0], assignment_epoch)

    def position(self, pair: TopicAndPartition) -> int:
        return self.in_hand.get(pair, self.places[pair][0])


class PythonMember(EffectSteps):
    """One process. What a mistake or a repair changes is a method or one of the four classes below."""

    coordination_class: type[Coordination] = Coordination
    gate_class: type[Gate] = Gate
    znodes_class: type[ZnodeSteps] = ZnodeSteps
    embedded_class: type[Embedded] = Embedded

    def __init__(self, world: SimulatedGroup, name: str, is_migration_enabled: bool, n_streams: int = 2) -> None:
        self.world = world
        self.consumer_id = f"g_{name}"
        self.is_migration_enabled = is_migration_enabled
        self.streams_by_topic = dict.fromkeys(world.topics, n_streams)
        self.is_paused = False
        self.is_leaving = False
        # Its reader takes nothing any more: a closed pipe, a full disk.
        self.is_refused = False
        self.has_left = False
        self.changed = False
        self.about_to: dict[str, Effect | None] = {}
        self.result: RoundResult | None = None
        self.announced: Assignment = {}
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
        self.kafka_members = KafkaMembers()
        self.has_looked = False
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

    # Other threads

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
            result = yield from self.drive("rounds", self.coordination.reconcile())
            self.world.judge.thefts_noticed(self._looked)
            return (yield from self._after(result))
        except (ConnectionLost, NotNow):
            yield None
            return BACKOFF

    def _has_session(self) -> Steps:
        session = self.client.current
        if session is None:
            is_over = self.gate.lease.seconds_without_session >= SESSION_SECONDS * (1 - SAFE_PART)
            if is_over and self.embedded is not None:
                self.embedded.subscribe([])
            return False
        yield None
        if session != self._session:
            self.coordination.session_lost()
            self.gate.session_began(session)
            yield from self._prove_once()
            self._session = session
        return True

    def _after(self, result: RoundResult) -> Steps:
        self.result = result
        if result.status is RoundStatus.SETTLED:
            return LOOK_EVERY
        if result.status is RoundStatus.STALE:
            return 0.0
        if result.status is RoundStatus.WAITING:
            return KAFKA_RETRY
        if result.status is RoundStatus.UNREGISTERED:
            return 0.0 if (yield from self.znodes.register(self.streams_by_topic)) else BACKOFF
        if result.status is RoundStatus.BLOCKED and self.mode is Mode.KAFKA:
            return KAFKA_RETRY
        return BACKOFF

    def _leave(self) -> Steps:
        """Leave like ``shutdown``, on the thread that calls it."""
        yield lambda: not self._is_committing
        with suppress(ConnectionLost):
            yield from self.drive("rounds", self.coordination.leave())
        self.world.judge.leaves(self)
        if self.embedded is not None:
            self.embedded.is_stopping = True
            yield lambda: self.threads["embedded"].is_over
        yield None
        self.client.close()
        self.has_left = True

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
            session, offsets = self.gate.consumed()
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
            offset, assignment_epoch = stream.places[pair]
            if self.is_refused:
                stream.places[pair], stream.in_hand[pair] = (offset + 1, assignment_epoch), offset
                yield lambda: False
            self.world.judge.hands_out(self, pair, offset, assignment_epoch)
            stream.places[pair] = (offset + 1, assignment_epoch)
            self._last_handed = pair

    def _next_place(self) -> tuple[ModelStream, TopicAndPartition] | None:
        if self.world.now >= self.gate.lease.until:
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
