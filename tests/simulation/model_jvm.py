"""The members of others: a model of the JVM's old consumer (OZKCC) and of a plain Kafka consumer (KC).

The old consumer (``docs/races.md``, its rules): all-or-nothing claims, blind deletes, no observation of its session,
four tries and then a zombie. What it does wrong after its own session's end is its own and not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition, assign_range
from kit.consumer.zookeeper.effects import Offsets, Pairs
from tests.simulation.model_kafka_group import GroupClient, Rejected, Unavailable
from tests.simulation.model_zookeeper import (
    CHILDREN,
    ConnectionLost,
    Create,
    Delete,
    Operation,
    Path,
    Set,
    ZookeeperClient,
)
from tests.simulation.steps import Steps, Thread

if TYPE_CHECKING:
    from tests.simulation.world import SimulatedGroup

TRIES, BACKOFF, COMMIT_EVERY = 4, 2.0, 2.0
Result = TypeVar("Result")


class OldConsumer:
    """``registry``: what it believes to own; ``fetching``: what it delivers, from where;
    ``began``: where it began."""

    def __init__(self, world: SimulatedGroup, name: str, n_streams: int = 2) -> None:
        self.world = world
        self.consumer_id = f"g_{name}"
        self.streams_by_topic = dict.fromkeys(world.topics, n_streams)
        self.is_paused = self.is_leaving = self.has_left = self.is_zombie = False
        self.n_tries = 0
        self.registry: Assignment = {}
        self.fetching: dict[TopicAndPartition, int] = {}
        self.began: dict[TopicAndPartition, int] = {}
        self.client = ZookeeperClient(world.zookeeper, self)
        self._checkpoints: dict[TopicAndPartition, int] = {}
        self._is_triggered = self._has_new_session = False
        self._seen_session = self.client.session
        self._last_handed: TopicAndPartition | None = None
        steps = {
            "rebalances": self._rebalances(),
            "callbacks": self.client.callbacks(),
            "connection": self.client.connection(),
            "commits": self._keep_committed(),
            "stream": self._hand_out(),
        }
        self.threads = {name: Thread(each) for name, each in steps.items()}

    @property
    def consuming(self) -> Pairs:
        return frozenset(self.fetching)

    def session_lost(self) -> None:
        """Known only with the new session."""

    def connection_changed(self) -> None:
        if self.client.current not in (None, self._seen_session):
            self._seen_session = self.client.session
            self.registry, self._has_new_session = {}, True

    def _noted(self, path: Path, kind: str) -> None:
        """A watch fired: it is set again, and the watcher thread has work."""
        if self.client.current is not None:
            self.client.set_watch(path, self._watch(path))
        self._is_triggered = True

    def _watch(self, path: Path) -> Callable[[str], None]:
        return _Noted(self, path)

    def _rebalances(self) -> Steps:
        yield from self._register()
        yield from self._rebalance()
        while True:
            yield lambda: self._is_triggered or self._has_new_session or self.is_leaving
            if self.is_leaving:
                break
            self._is_triggered = False
            if self._has_new_session:
                self._has_new_session = False
                yield from self._register()
            yield from self._rebalance()
        yield from self._stop()
        yield None
        self.client.close()
        self.has_left = True

    def _rebalance(self) -> Steps:
        for self.n_tries in range(1, TRIES + 1):
            if (yield from self._try()):
                self.is_zombie = False
                return
            yield from self._stop()
            until = self.world.now + BACKOFF
            yield lambda until=until: self.is_leaving or self.world.now >= until  # type: ignore[misc]
            if self.is_leaving:
                return
        self.is_zombie = True

    def _try(self) -> Steps:
        if (yield from self._ask(lambda: self.world.zookeeper.look(("ids", self.consumer_id)))) is None:
            return False
        yield from self._stop()
        for pair in sorted(self.registry):
            yield from self._change(Delete(("owners", pair)))
            self.registry.pop(pair, None)
        mine = yield from self._own_part()
        offsets = yield from self._ask(lambda: self._offsets(mine))
        if not (yield from self._claim(mine)):
            return False
        self.registry = mine
        yield None
        self.world.judge.starts_old(offsets)
        self.began, self.fetching, self._checkpoints = dict(offsets), dict(offsets), dict(offsets)
        return True

    def _own_part(self) -> Steps:
        server = self.world.zookeeper
        ids = yield from self._ask(lambda: self._children("ids"))
        members = yield from self._ask(lambda: self._data("ids", ids))
        counts = yield from self._ask(lambda: self._data("topics", self.world.topics, is_watched=True))
        assert server is self.client.server
        numbers: Mapping[str, range] = {topic: range(count) for topic, count in counts.items()}
        whole = assign_range(members, numbers)
        return {pair: thread for pair, thread in whole.items() if thread.rpartition("-")[0] == self.consumer_id}

    def _claim(self, mine: Assignment) -> Steps:
        """All, or none: those made are deleted again. Equal data counts as success, whoever's session it is."""
        made = []
        for pair, thread in sorted(mine.items()):
            problem = yield from self._change(Create(("owners", pair), thread, True))
            znode = self.world.zookeeper.znodes.get(("owners", pair))
            if problem is None or (znode is not None and znode.data == thread):
                made.append(pair)
        if len(made) == len(mine):
            return True
        for pair in made:
            yield from self._change(Delete(("owners", pair)))
        return False

    def _stop(self) -> Steps:
        yield None
        offsets, self.fetching = self.fetching, {}
        yield from self._commit(offsets)

    def _keep_committed(self) -> Steps:
        while True:
            due = self.world.now + COMMIT_EVERY
            yield lambda due=due: self.world.now >= due and not self.is_leaving  # type: ignore[misc]
            yield from self._commit(dict(self.fetching))

    def _commit(self, offsets: Offsets) -> Steps:
        for pair, offset in sorted(offsets.items()):
            if self._checkpoints.get(pair) != offset:
                path = ("offsets", pair)
                if (yield from self._change(Set(path, offset))) and (yield from self._change(Create(path, offset))):
                    yield from self._change(Set(path, offset))
                self._checkpoints[pair] = offset

    def _register(self) -> Steps:
        while True:
            creation = Create(("ids", self.consumer_id), self.streams_by_topic, True)
            if (yield from self._change(creation)) is None:
                return
            znode = self.world.zookeeper.znodes.get(("ids", self.consumer_id))
            if znode is not None and znode.session == self.client.session:
                return
            until = self.world.now + BACKOFF
            yield lambda until=until: self.world.now >= until  # type: ignore[misc]

    def _change(self, operation: Operation) -> Steps:
        return self._ask(lambda: self.world.zookeeper.transact(self.client.session, [operation]))

    def _ask(self, request: Callable[[], Result]) -> Steps:
        """zkclient asks again until it is connected, in whatever session it then has."""
        while True:
            yield lambda: self.client.current is not None
            try:
                return self.client.now(request)
            except ConnectionLost:
                continue

    def _children(self, kind: str) -> list[str]:
        self.client.set_watch((kind, CHILDREN), self._watch((kind, CHILDREN)))
        return self.world.zookeeper.children(kind)

    def _data(self, kind: str, names: Iterable[str], is_watched: bool = False) -> dict[str, object]:
        data = {}
        for name in names:
            if is_watched:
                self.client.set_watch((kind, name), self._watch((kind, name)))
            znode = self.world.zookeeper.znodes.get((kind, name))
            if znode is not None:
                data[name] = znode.data
        return data

    def _offsets(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        znodes = {pair: self.world.zookeeper.znodes.get(("offsets", pair)) for pair in pairs}
        return {pair: znode.data if znode is not None else 0 for pair, znode in znodes.items()}

    def _hand_out(self) -> Steps:
        while True:
            yield lambda: self._next() is not None
            pair = self._next()
            assert pair is not None
            self.world.judge.hands_out(self, pair, self.fetching[pair], None)
            self.fetching[pair] += 1
            self._last_handed = pair

    def _next(self) -> TopicAndPartition | None:
        return in_turn([pair for pair, at in self.fetching.items() if at < self.world.ends[pair]], self._last_handed)


class _Noted:
    """A watch of an old consumer; equal ones on one path are one."""

    def __init__(self, consumer: OldConsumer, path: Path) -> None:
        self._consumer, self._path = consumer, path

    def __call__(self, kind: str) -> None:
        self._consumer._noted(self._path, kind)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Noted) and (self._consumer, self._path) == (other._consumer, other._path)

    def __hash__(self) -> int:
        return hash(self._path)


class PlainConsumer:
    """A KC: consumes what it is assigned, commits to Kafka only. Its client id may be a member's consumer id."""

    def __init__(self, world: SimulatedGroup, name: str, client_id: str | None = None) -> None:
        self.world = world
        self.consumer_id = name
        self.is_paused = self.is_leaving = self.has_left = False
        self.positions: dict[TopicAndPartition, int] = {}
        self.kafka = GroupClient(
            world.group, client_id or name, lambda: world.judge.kc_joins(self.kafka), is_embedded=False
        )
        self.kafka.subscribe(tuple(sorted(world.topics)))
        self._last_handed: TopicAndPartition | None = None
        steps = {"poll": self._polls(), "heartbeat": self._hear(), "stream": self._hand_out()}
        self.threads = {name: Thread(each) for name, each in steps.items()}

    @property
    def consuming(self) -> Pairs:
        return frozenset(self.positions)

    def _polls(self) -> Steps:
        due = 0.0
        while not self.is_leaving:
            yield lambda due=due: self.kafka.has_news or self.is_leaving or self.world.now >= due  # type: ignore[misc]
            if self.kafka.has_news:
                yield from self.kafka.poll(self._assigned, self._revoked, self._lost)
            else:
                self._commit(self.positions)
                due = self.world.now + COMMIT_EVERY
        self.kafka.subscribe(())
        while self.kafka.has_news:
            yield from self.kafka.poll(self._assigned, self._revoked, self._lost)
            yield None
        self.has_left = True

    def _assigned(self, pairs: Pairs) -> Steps:
        yield lambda: self.kafka.is_reachable or self.kafka.is_lost
        if self.kafka.is_reachable and not self.kafka.is_lost:
            self.positions = {pair: self.world.group.offsets.get(pair, 0) for pair in pairs}

    def _revoked(self) -> Steps:
        yield None
        offsets, self.positions = self.positions, {}
        yield None
        self._commit(offsets)

    def _lost(self) -> Steps:
        self.world.judge.put_out(self)
        self.positions = {}
        yield None

    def _commit(self, offsets: Offsets) -> None:
        try:
            self.world.commit_to_kafka(self, self.kafka, offsets)
        except (Unavailable, Rejected):
            self.world.judge.tail_is_lost(self, offsets)

    def _hear(self) -> Steps:
        while True:
            yield lambda: self.kafka.could_hear
            self.kafka.heartbeat()

    def _hand_out(self) -> Steps:
        while True:
            yield lambda: self._next() is not None
            pair = self._next()
            assert pair is not None
            self.world.judge.hands_out(self, pair, self.positions[pair], None)
            self.positions[pair] += 1
            self._last_handed = pair

    def _next(self) -> TopicAndPartition | None:
        if self.kafka.has_expired or self.kafka.is_lost:
            return None
        return in_turn([pair for pair, at in self.positions.items() if at < self.world.ends[pair]], self._last_handed)


def in_turn(waiting: list[TopicAndPartition], last: TopicAndPartition | None) -> TopicAndPartition | None:
    """The next of the partitions that have a record, the one after the last first."""
    after = [pair for pair in waiting if last is not None and pair > last]
    return min(after or waiting, default=None)
