"""The owner znodes of a group, as one member uses them: read, claim, rename, release and watch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, RolledBackError, RuntimeInconsistency
from kazoo.protocol.states import EventType, WatchedEvent

from kit.clients.access import lacking
from kit.clients.multiread import Znode, fetch_children, fetch_data
from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX, Pairs
from kit.consumer.zookeeper.znode_requests import Changed, ZnodeRequests
from kit.errors import AuthenticationFailed
from kit.text.numbers import partition_in

BYTES_PER_TRANSACTION = 200_000
"""ZooKeeper drops the connection of a client that sends more than ``jute.maxbuffer`` (1 MB), so a transaction stays
well below that: its operations are estimated, and the server adds to them in its log.
"""
BYTES_PER_OPERATION = 300
"""An operation's header, access list and numbers; its path and its data come on top."""


@dataclass(frozen=True, slots=True)
class _OwnerWatch:
    """A watch on one owner znode of this member; ``serial`` is another one for each claim."""

    znodes: OwnerZnodes
    pair: TopicAndPartition
    serial: int

    def __call__(self, event: WatchedEvent) -> None:
        self.znodes.owner_changed(self.pair, self.serial, event.type)


class OwnerZnodes(ZnodeRequests):
    """``owner_gone`` is called with the (topic, partition) of an owner znode that another client deleted.

    ``watch_lost`` is called when the connection ended and the watch of an owner znode with it.
    """

    def __init__(
        self,
        client: KazooClient,
        group_id: str,
        consumer_id: str,
        changed: Changed,
        owner_gone: Callable[[TopicAndPartition], None],
        watch_lost: Callable[[], None],
        timeout_seconds: float,
    ) -> None:
        super().__init__(client, group_id, consumer_id, changed, timeout_seconds)
        self._owner_gone = owner_gone
        self._watch_lost = watch_lost
        self._serial = itertools.count(1)
        self._watched: dict[TopicAndPartition, int] = {}
        self._parents: set[str] = set()

    def owner_path(self, pair: TopicAndPartition) -> str:
        return f"{self._base}/owners/{pair[0]}/{pair[1]}"

    def read_owners(self) -> dict[TopicAndPartition, Znode]:
        """Every owner znode of the group."""
        base = f"{self._base}/owners"
        (topics,) = fetch_children(self._client, [base])
        names = topics if isinstance(topics, list) else []
        children = fetch_children(self._client, [f"{base}/{topic}" for topic in names])
        pairs = [
            (topic, partition)
            for topic, names_below in zip(names, children)
            for partition in map(partition_in, names_below if isinstance(names_below, list) else ())
            if partition is not None
        ]
        znodes = fetch_data(self._client, [self.owner_path(pair) for pair in pairs])
        return {pair: znode for pair, znode in zip(pairs, znodes) if isinstance(znode, Znode)}

    def read_held(self) -> Assignment:
        """The owner znodes that were created in this session; each is watched from now on."""
        session = self.session
        held = {
            pair: znode.data.decode(errors="replace")
            for pair, znode in self.read_owners().items()
            if znode.ephemeral_owner == session
        }
        gone = self._watch(held)
        return {pair: thread for pair, thread in held.items() if pair not in gone}

    def has_reservations(self) -> bool:
        return any(znode.data.endswith(RESERVATION_SUFFIX.encode()) for znode in self.read_owners().values())

    def claim_all(self, threads: Assignment) -> Pairs:
        """Claim all or none; → what others hold. Owner znodes of this session count as claimed.

        A large claim is several transactions. If a later one is blocked, the earlier ones are released.
        """
        mine, blocked = self._sorted_owners(threads)
        missing = {pair: thread for pair, thread in threads.items() if pair not in mine}
        if not blocked and not self._make_all(missing):
            # Another member was faster: at least one of them is that member's.
            blocked = self._sorted_owners(missing)[1] or frozenset(missing)
        if blocked:
            self._watch_foreign(blocked)
            return blocked
        return self._watch(threads)

    def _make_all(self, missing: Assignment) -> bool:
        """False: one exists already, and none was left."""
        made: list[TopicAndPartition] = []
        for part in self._parts(missing):
            if not self._were_made(self._creation(part)):
                self.release(made)
                return False
            made += part
        return True

    def claim_each(self, threads: Assignment) -> Pairs:
        """Claim as many as possible; → what others hold."""
        mine, blocked = self._sorted_owners(threads)
        free = {pair: thread for pair, thread in threads.items() if pair not in mine | blocked}
        under_way = {pair: self._creation({pair: thread}) for pair, thread in free.items()}
        blocked |= {pair for pair, result in under_way.items() if not self._were_made(result)}
        self._watch_foreign(blocked)
        return blocked | self._watch(pair for pair in threads if pair not in blocked)

    def rename(self, threads: Assignment) -> Pairs:
        """Write another thread into owner znodes of this session; → those that are not of this session any more."""
        mine = self._own_owners(threads)
        for part in self._parts({pair: threads[pair] for pair in mine}):
            transaction = self._transaction()
            for pair, thread in part.items():
                transaction.set_data(self.owner_path(pair), thread.encode(), mine[pair].version)
                self._watched.pop(pair, None)
            self._expect(transaction)
        return self._watch(threads)

    def release(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Delete owner znodes of this session. Znodes of other sessions stay, also this member's own (R15)."""
        mine = self._own_owners(partitions)
        for pair in mine:
            self._watched.pop(pair, None)
        for part in self._parts(dict.fromkeys(mine, "")):
            transaction = self._transaction()
            for pair in part:
                transaction.delete(self.owner_path(pair), mine[pair].version)
            self._expect(transaction)

    def _owners_of(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Znode]:
        pairs = list(partitions)
        znodes = fetch_data(self._client, [self.owner_path(pair) for pair in pairs])
        return {pair: znode for pair, znode in zip(pairs, znodes) if isinstance(znode, Znode)}

    def _own_owners(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Znode]:
        """Return the owner znodes of this session among these."""
        session = self.session
        owners = self._owners_of(partitions)
        return {pair: znode for pair, znode in owners.items() if znode.ephemeral_owner == session}

    def _parts(self, threads: Assignment) -> Iterator[Assignment]:
        """Cut into what one transaction holds."""
        part: Assignment = {}
        size = 0
        for pair, thread in threads.items():
            added = BYTES_PER_OPERATION + len(self.owner_path(pair).encode()) + len(thread.encode())
            if part and size + added > BYTES_PER_TRANSACTION:
                yield part
                part, size = {}, 0
            part[pair] = thread
            size += added
        if part:
            yield part

    def _sorted_owners(self, threads: Iterable[TopicAndPartition]) -> tuple[Pairs, Pairs]:
        """Return the partitions whose owner znode is of this session, and the partitions that another session holds."""
        session = self.session
        owners = self._owners_of(threads)
        mine = frozenset(pair for pair, znode in owners.items() if znode.ephemeral_owner == session)
        return mine, frozenset(owners) - mine

    def _creation(self, threads: Assignment) -> Any:
        """A transaction of owner znodes, under way."""
        for topic in {topic for topic, _ in threads} - self._parents:
            self._make_path(f"{self._base}/owners/{topic}")
            self._parents.add(topic)
        transaction = self._transaction()
        for pair, thread in threads.items():
            path = self.owner_path(pair)
            transaction.create(path, thread.encode(), acl=self._access_of(path), ephemeral=True)
        return transaction.commit_async()

    def _were_made(self, creation: Any) -> bool:
        """False: one exists already. Raises any other error."""
        errors = [result for result in self._ask(creation) if isinstance(result, KazooException)]
        for error in errors:
            if not isinstance(error, (NodeExistsError, RolledBackError, RuntimeInconsistency)):
                self._parents.clear()
                self._access.clear()
                if isinstance(error, NoAuthError):
                    raise AuthenticationFailed(lacking("CREATE", f"each topic's znode below {self._base}/owners"))
                raise error
        return not errors

    def _watch_foreign(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Watch owner znodes of others: a deletion comes as a change, so the next try needs no polling."""
        asked = [self._client.exists_async(self.owner_path(pair), watch=self._note("owners")) for pair in partitions]
        for result in asked:
            if self._ask(result) is None:
                self._changed("owners")

    def _watch(self, owned: Iterable[TopicAndPartition]) -> Pairs:
        """Watch owner znodes of this member; → those that are not of this session any more."""
        session, asked = self.session, {}
        for pair in owned:
            self._watched[pair] = next(self._serial)
            watch = _OwnerWatch(self, pair, self._watched[pair])
            asked[pair] = self._client.exists_async(self.owner_path(pair), watch=watch)
        stats = {pair: self._ask(result) for pair, result in asked.items()}
        gone = frozenset(pair for pair, stat in stats.items() if stat is None or stat.ephemeralOwner != session)
        for pair in gone:
            self._owner_gone(pair)
            self._changed("owners")
        return gone

    def owner_changed(self, pair: TopicAndPartition, serial: int, kind: str) -> None:
        """A watch fired. Events of an earlier claim, or of this member's own deletion, are ignored."""
        if self._watched.get(pair) != serial:
            return
        if kind == EventType.NONE:
            self._watch_lost()
        else:
            self._owner_gone(pair)
        self._changed("owners")
