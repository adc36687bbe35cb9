"""The requests of ``kit.consumer.zookeeper.znodes`` and of the ZooKeeper offset store, one step each, on the model.

What is done in one request there (a transaction, reads that are all under way at once) is one step here; what the
code does between two requests comes in the same step as the first of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX, GroupView, Offsets, Pairs
from tests.simulation.model_zookeeper import (
    GONE,
    Callback,
    Check,
    ConnectionLost,
    Create,
    Delete,
    Operation,
    Refused,
    Set,
    Znode,
    ZookeeperClient,
)
from tests.simulation.steps import Steps


class ZnodeSteps:
    """Model ``znodes.GroupZnodes``; the last three are called by the callback thread, or at once."""

    def __init__(
        self,
        client: ZookeeperClient,
        consumer_id: str,
        is_migration_enabled: bool,
        changed: Callable[[], None],
        owner_gone: Callable[[TopicAndPartition], None],
        watch_lost: Callable[[], None],
    ) -> None:
        self.client = client
        self.consumer_id = consumer_id
        self.is_migration_enabled = is_migration_enabled
        self._changed = changed
        self._owner_gone = owner_gone
        self._watch_lost = watch_lost
        self._serial = itertools.count(1)
        self._watched: dict[TopicAndPartition, int] = {}

    def note(self, kind: str) -> None:
        """Any watch: something changed."""
        self._changed()

    def session(self) -> int:
        """Raises while there is no connection."""
        if self.client.current is None:
            raise ConnectionLost("no connection")
        return self.client.current

    def register(self, streams: Mapping[str, int]) -> Steps:
        session = self.session()
        kinds = ["ids"] + (["migration/ids"] if self.is_migration_enabled else [])
        creations = [Create((kind, self.consumer_id), streams, True) for kind in reversed(kinds)]
        if (yield from self.client.transact(*creations)) is None:
            return True
        znodes = yield from self._read_all([(kind, self.consumer_id) for kind in kinds], self.note)
        return all(znode is not None and znode.session == session for znode in znodes)

    def read_group(self) -> Steps:
        ids = yield from self.client.children("ids", self.note)
        migration_ids = yield from self.client.children("migration/ids", self.note)
        mode = yield from self.client.read(("mode", None), self.note)
        registered = yield from self._read_all([("ids", name) for name in ids])
        members = {name: znode.data for name, znode in zip(ids, registered) if znode is not None}
        own = dict(zip(ids, registered)).get(self.consumer_id)
        topics = sorted({topic for streams in members.values() for topic in streams})
        counts = yield from self._read_all([("topics", topic) for topic in topics], self.note)
        return GroupView(
            is_registered=own is not None
            and own.session == self.session()
            and (not self.is_migration_enabled or self.consumer_id in migration_ids),
            members=members,
            migration_enabled=frozenset(migration_ids),
            toggle=mode.data if mode is not None else None,
            partitions={topic: list(range(znode.data)) for topic, znode in zip(topics, counts) if znode is not None},
        )

    def read_toggle(self) -> Steps:
        mode = yield from self.client.read(("mode", None), self.note)
        return mode.data if mode is not None else None

    def has_reservations(self) -> Steps:
        owners = yield from self._read_owners()
        return any(znode.data.endswith(RESERVATION_SUFFIX) for znode in owners.values())

    def read_held(self) -> Steps:
        session = self.session()
        owners = yield from self._read_owners()
        held = {pair: znode.data for pair, znode in owners.items() if znode.session == session}
        gone = yield from self._watch(held)
        return {pair: thread for pair, thread in held.items() if pair not in gone}

    def claim_all(self, threads: Assignment) -> Steps:
        mine, blocked = yield from self._sorted_owners(threads)
        missing = {pair: thread for pair, thread in threads.items() if pair not in mine}
        if not blocked and not (yield from self._make_all(missing)):
            blocked = (yield from self._sorted_owners(missing))[1] or frozenset(missing)
        if blocked:
            yield from self._watch_foreign(blocked)
            return blocked
        return (yield from self._watch(threads))

    def _make_all(self, missing: Assignment) -> Steps:
        """Each partition is a transaction, as if each filled one."""
        made: list[TopicAndPartition] = []
        for pair in sorted(missing):
            if not (yield from self._make({pair: missing[pair]})):
                yield from self.release(made)
                return False
            made.append(pair)
        return True

    def claim_each(self, threads: Assignment) -> Steps:
        """One request for each partition."""
        mine, blocked = yield from self._sorted_owners(threads)
        for pair in sorted(threads.keys() - mine - blocked):
            if not (yield from self._make({pair: threads[pair]})):
                blocked |= {pair}
        yield from self._watch_foreign(blocked)
        gone = yield from self._watch([pair for pair in threads if pair not in blocked])
        return blocked | gone

    def rename(self, threads: Assignment) -> Steps:
        mine = yield from self._own_owners(threads)
        for pair, znode in mine.items():
            self._watched.pop(pair, None)
            yield from self._expect(Set(("owners", pair), threads[pair], znode.version))
        return (yield from self._watch(threads))

    def release(self, partitions: Iterable[TopicAndPartition]) -> Steps:
        mine = yield from self._own_owners(partitions)
        for pair in mine:
            self._watched.pop(pair, None)
        for pair, znode in mine.items():
            yield from self._expect(Delete(("owners", pair), znode.version))

    def read_offsets(self, partitions: Sequence[TopicAndPartition]) -> Steps:
        znodes = yield from self._read_all([("offsets", pair) for pair in partitions])
        return dict(zip(partitions, znodes))

    def write_offsets(self, offsets: Offsets, versions: Mapping[TopicAndPartition, int | None]) -> Steps:
        changes: list[Operation] = []
        for pair, offset in offsets.items():
            path = ("offsets", pair)
            changes.append(Create(path, offset) if versions[pair] is None else Set(path, offset, versions[pair]))

        def request() -> str | None:
            server = self.client.server
            if server.transact(self.client.session, [self.own_registration()]) is not None:
                raise Refused("the session has ended; its offsets were not written")
            return server.transact(self.client.session, changes)

        return (yield from self.client.ask(request)) is None

    def own_registration(self) -> Check:
        return Check(("ids", self.consumer_id), 0)

    def owner_changed(self, pair: TopicAndPartition, serial: int, kind: str) -> None:
        if self._watched.get(pair) != serial:
            return
        if kind == GONE:
            self._watch_lost()
        else:
            self._owner_gone(pair)
        self._changed()

    def _read_owners(self) -> Steps:
        def request() -> dict[TopicAndPartition, Znode]:
            server = self.client.server
            owners = {pair: server.look(("owners", pair)) for pair in server.children("owners")}
            return {pair: znode for pair, znode in owners.items() if znode is not None}

        return (yield from self.client.ask(request))

    def _read_all(self, paths: Sequence[Any], watch: Callback | None = None) -> Steps:
        def request() -> list[Znode | None]:
            for path in paths:
                self.client.set_watch(path, watch)
            return [self.client.server.look(path) for path in paths]

        return (yield from self.client.ask(request)) if paths else []

    def _own_owners(self, partitions: Iterable[TopicAndPartition]) -> Steps:
        session, pairs = self.session(), sorted(partitions)
        znodes = yield from self._read_all([("owners", pair) for pair in pairs])
        return {pair: znode for pair, znode in zip(pairs, znodes) if znode is not None and znode.session == session}

    def _sorted_owners(self, threads: Iterable[TopicAndPartition]) -> Steps:
        session = self.session()
        pairs = sorted(threads)
        znodes = yield from self._read_all([("owners", pair) for pair in pairs])
        owners = {pair: znode for pair, znode in zip(pairs, znodes) if znode is not None}
        mine = frozenset(pair for pair, znode in owners.items() if znode.session == session)
        return mine, frozenset(owners) - mine

    def _make(self, threads: Assignment) -> Steps:
        creations = [Create(("owners", pair), thread, True) for pair, thread in threads.items()]
        problem = yield from self.client.transact(self.own_registration(), *creations)
        if problem not in (None, "exists"):
            raise Refused(f"owner znodes can't be made: {problem}")
        return problem is None

    def _expect(self, *operations: Operation) -> Steps:
        problem = yield from self.client.transact(self.own_registration(), *operations)
        if problem is not None:
            raise Refused(f"refused: {problem}")

    def _watch_foreign(self, partitions: Pairs) -> Steps:
        znodes = yield from self._read_all([("owners", pair) for pair in sorted(partitions)], self.note)
        if None in znodes:
            self._changed()

    def _watch(self, owned: Iterable[TopicAndPartition]) -> Steps:
        session, pairs = self.session(), sorted(owned)

        def request() -> frozenset[TopicAndPartition]:
            znodes = self.client.server.znodes
            for pair in pairs:
                watch = partial(self.owner_changed, pair, self._watched[pair])
                self.client.set_watch(("owners", pair), watch)
            return frozenset(
                pair for pair in pairs if ("owners", pair) not in znodes or znodes["owners", pair].session != session
            )

        for pair in pairs:
            self._watched[pair] = next(self._serial)
        gone = (yield from self.client.ask(request)) if pairs else frozenset()
        for pair in gone:
            self._owner_gone(pair)
            self._changed()
        return gone


class ZookeeperOffsetSteps:
    """Model :class:`kit.consumer.zookeeper.offsets.ZookeeperOffsets`."""

    def __init__(self, znodes: ZnodeSteps) -> None:
        self._znodes = znodes
        self._known: dict[TopicAndPartition, tuple[int | None, int | None]] = {}
        self._is_locked = False

    def fetch(self, partitions: Iterable[TopicAndPartition]) -> Steps:
        pairs = sorted(partitions)
        yield from self._locked(self._look(pairs))
        return {pair: self._known[pair][0] for pair in pairs if self._known[pair][0] is not None}

    def commit(self, offsets: Offsets) -> Steps:
        """→ False: another operator or tool changed them meanwhile, twice. A lower offset is not written."""
        return (yield from self._locked(self._commit(offsets)))

    def _locked(self, steps: Steps) -> Steps:
        yield lambda: not self._is_locked
        self._is_locked = True
        try:
            return (yield from steps)
        finally:
            self._is_locked = False

    def _commit(self, offsets: Offsets) -> Steps:
        yield from self._look([pair for pair in offsets if pair not in self._known])
        if (yield from self._write(offsets)):
            return True
        yield from self._look(list(offsets))
        return (yield from self._write(offsets))

    def _look(self, pairs: Sequence[TopicAndPartition]) -> Steps:
        for pair, znode in (yield from self._znodes.read_offsets(pairs)).items():
            self._known[pair] = (znode.data, znode.version) if znode is not None else (None, None)

    def _write(self, offsets: Offsets) -> Steps:
        changes = {}
        for pair, offset in offsets.items():
            known = self._known[pair][0]
            if known is None or offset > known:
                changes[pair] = offset
        versions = {pair: self._known[pair][1] for pair in changes}
        if changes and not (yield from self._znodes.write_offsets(changes, versions)):
            return False
        for pair, offset in changes.items():
            version = versions[pair]
            self._known[pair] = (offset, 0 if version is None else version + 1)
        return True
