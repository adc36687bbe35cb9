"""A group's znodes as one member uses them: register, read, claim, release. Each write is conditional on the session.

Such a write carries a check of this member's registration. When the session expires, ZooKeeper deletes the
registration, and the write fails.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError, RolledBackError, RuntimeInconsistency
from kazoo.protocol.states import EventType, KazooState, WatchedEvent
from kazoo.security import ACL

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import RESERVATION_SUFFIX, GroupView, Pairs
from kit.errors import ConnectError, NotFound, ReadError
from kit.read.access import inherited
from kit.read.multiread import Znode, fetch_children, fetch_data
from kit.read.paths import group_path
from kit.read.registration import Registration, parse_registration
from kit.text.numbers import partition_in

Changed = Callable[[str], None]
BYTES_PER_TRANSACTION = 200_000
"""ZooKeeper drops the connection of a client that sends more than ``jute.maxbuffer`` (1 MB), so a transaction stays
well below that: its operations are estimated, and the server adds to them in its log."""
BYTES_PER_OPERATION = 300
"""An operation's header, access list and numbers; its path and its data come on top."""


@dataclass(frozen=True, slots=True)
class _Note:
    """A watch; equal ones on one path are one."""

    changed: Changed
    word: str

    def __call__(self, event: WatchedEvent) -> None:
        self.changed(self.word)


@dataclass(frozen=True, slots=True)
class _OwnerWatch:
    """A watch on one owner znode of this member; ``serial`` is another one for each claim."""

    znodes: GroupZnodes
    pair: TopicAndPartition
    serial: int

    def __call__(self, event: WatchedEvent) -> None:
        self.znodes.owner_changed(self.pair, self.serial, event.type)


class GroupZnodes:
    """The znodes of ``group_id`` for the member ``consumer_id``.

    ``changed`` is called with a word for what changed, ``owner_gone`` with the (topic, partition) of an owner znode
    that another client deleted, ``watch_lost`` when the connection ended and the watch of an owner znode with it. All
    are called on kazoo's callback thread and must not block.
    """

    def __init__(
        self,
        client: KazooClient,
        group_id: str,
        consumer_id: str,
        changed: Changed,
        owner_gone: Callable[[TopicAndPartition], None],
        watch_lost: Callable[[], None],
        excludes_internal: bool,
        is_migration_enabled: bool,
        timeout_seconds: float,
    ) -> None:
        self._client = client
        self._base = group_path(group_id)
        self._consumer_id = consumer_id
        self._changed = changed
        self._owner_gone = owner_gone
        self._watch_lost = watch_lost
        self._excludes_internal = excludes_internal
        self._is_migration_enabled = is_migration_enabled
        self._timeout = timeout_seconds
        self._serial = itertools.count(1)
        self._watched: dict[TopicAndPartition, int] = {}
        self._parents: set[str] = set()
        self._access: dict[str, list[ACL]] = {}

    # Paths

    def own_path(self) -> str:
        return f"{self._base}/ids/{self._consumer_id}"

    def owner_path(self, pair: TopicAndPartition) -> str:
        return f"{self._base}/owners/{pair[0]}/{pair[1]}"

    def offset_path(self, pair: TopicAndPartition) -> str:
        return f"{self._base}/offsets/{pair[0]}/{pair[1]}"

    @property
    def session(self) -> int:
        """The current session's id. Raises ConnectError while there is no connection: what is held is unknown then."""
        client_id = self._client.client_id
        if not client_id or self._client.state != KazooState.CONNECTED:
            raise ConnectError(f"ZooKeeper {self._hosts}: no connection")
        return int(client_id[0])

    # Registering

    def check_brokers(self) -> None:
        """Look for brokers: NotFound when none ever registered there, by a wrong chroot or in a KRaft cluster."""
        if self._ask(self._client.exists_async("/brokers/ids")) is None:
            raise NotFound(
                f"ZooKeeper {self._hosts}{self._client.chroot} has no /brokers/ids: check the chroot in "
                "zookeeper.connect; where brokers don't use ZooKeeper (KRaft), old consumers can't work"
            )

    def register(self, payload: bytes) -> bool:
        """Register in this session, in ``ids`` and ``migration/ids`` in one transaction (R7).

        False: this id is registered in another session. The end of that registration comes as a change.
        """
        parents = ["ids", "owners", "offsets"] + (["migration/ids"] if self._is_migration_enabled else [])
        for parent in parents:
            self._make_path(f"{self._base}/{parent}")
        paths = [f"{self._base}/{parent}/{self._consumer_id}" for parent in parents if parent.endswith("ids")]
        session = self.session
        transaction = self._client.transaction()
        for path in reversed(paths):
            transaction.create(path, payload, acl=self._access_of(path), ephemeral=True)
        errors = [result for result in self._commit(transaction) if isinstance(result, Exception)]
        if not errors:
            return True
        if any(isinstance(error, NodeExistsError) for error in errors):
            stats = [self._ask(self._client.exists_async(path, watch=self._note("ids"))) for path in paths]
            return all(stat is not None and stat.ephemeralOwner == session for stat in stats)
        raise errors[-1]

    # Reading

    def read_group(self) -> GroupView:
        """Everything a round needs; watches are set before anything is read (R8, ``docs/races.md``)."""
        ids = self._children(f"{self._base}/ids", "ids")
        migration_ids = self._children(f"{self._base}/migration/ids", "migration/ids")
        toggle = self._data(f"{self._base}/migration/mode", "mode")
        registered = dict(zip(ids, fetch_data(self._client, [f"{self._base}/ids/{each}" for each in ids])))
        znodes = {name: znode for name, znode in registered.items() if isinstance(znode, Znode)}
        registrations = {name: parse_registration(znode.data) for name, znode in znodes.items()}
        own = znodes.get(self._consumer_id)
        members = self._expand(registrations)
        partitions = self._partitions({topic for streams in members.values() for topic in streams})
        return GroupView(
            is_registered=own is not None
            and own.ephemeral_owner == self.session
            and (not self._is_migration_enabled or self._consumer_id in migration_ids),
            members=members,
            migration_enabled=frozenset(migration_ids),
            toggle=toggle,
            partitions=partitions,
            unreadable={name: str(each.problem) for name, each in registrations.items() if not each.is_usable},
            has_brokers=bool(self._children("/brokers/ids", "brokers")),
        )

    def read_ids(self) -> frozenset[str]:
        """The consumer ids that are registered now."""
        return frozenset(self._children(f"{self._base}/ids", "ids"))

    def read_toggle(self) -> str | None:
        """The text of ``migration/mode``, as the leader has it."""
        self._ask(self._client.sync_async(f"{self._base}/migration"))
        return self._data(f"{self._base}/migration/mode", "mode")

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

    # Claiming and releasing

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
        """Delete owner znodes of this session. Those of other sessions stay, also this member's own (R15)."""
        mine = self._own_owners(partitions)
        for pair in mine:
            self._watched.pop(pair, None)
        for part in self._parts(dict.fromkeys(mine, "")):
            transaction = self._transaction()
            for pair in part:
                transaction.delete(self.owner_path(pair), mine[pair].version)
            self._expect(transaction)

    # Offsets

    def read_offsets(self, partitions: Sequence[TopicAndPartition]) -> dict[TopicAndPartition, Znode | None]:
        znodes = fetch_data(self._client, [self.offset_path(pair) for pair in partitions])
        by_partition: dict[TopicAndPartition, Znode | None] = {}
        for pair, znode in zip(partitions, znodes):
            if isinstance(znode, KazooException):
                raise ReadError(f"{self.offset_path(pair)} can't be read: ZooKeeper refused: {znode!r}")
            by_partition[pair] = znode
        return by_partition

    def write_offsets(
        self, offsets: Mapping[TopicAndPartition, int], versions: Mapping[TopicAndPartition, int | None]
    ) -> bool:
        """Set each offset if its version is as known (None: create it). False: one was not, and none was written."""
        for topic in {topic for topic, _ in offsets}:
            if any(versions[pair] is None for pair in offsets if pair[0] == topic):
                self._make_path(f"{self._base}/offsets/{topic}")
        transaction = self._transaction()
        for pair, offset in offsets.items():
            version = versions[pair]
            if version is None:
                path = self.offset_path(pair)
                transaction.create(path, str(offset).encode(), acl=self._access_of(path))
            else:
                transaction.set_data(self.offset_path(pair), str(offset).encode(), version)
        results = self._commit(transaction)
        if isinstance(results[0], Exception) and isinstance(results[0], NoNodeError):
            raise ConnectError(f"the session of {self._consumer_id} is over; its offsets were not written")
        return not any(isinstance(result, Exception) for result in results)

    # Requests

    @property
    def _hosts(self) -> str:
        return ",".join(f"{host}:{port}" for host, port in self._client.hosts)

    def _ask(self, result: Any) -> Any:
        try:
            return result.get(timeout=self._timeout)
        except self._client.handler.timeout_exception:
            raise ConnectError(f"ZooKeeper {self._hosts} did not answer within {self._timeout:g} s") from None

    def _commit(self, transaction: Any) -> list[Any]:
        results: list[Any] = self._ask(transaction.commit_async())
        return results

    def _transaction(self) -> Any:
        """A transaction that fails in any other session."""
        transaction = self._client.transaction()
        transaction.check(self.own_path(), 0)
        return transaction

    def _expect(self, transaction: Any) -> None:
        for result in self._commit(transaction):
            if isinstance(result, Exception):
                raise result

    def _note(self, word: str) -> _Note:
        return _Note(self._changed, word)

    def _children(self, path: str, word: str) -> list[str]:
        try:
            names: list[str] = self._ask(self._client.get_children_async(path, watch=self._note(word)))
        except NoNodeError:
            self._ask(self._client.exists_async(path, watch=self._note(word)))
            return []
        return names

    def _data(self, path: str, word: str) -> str | None:
        try:
            data, _ = self._ask(self._client.get_async(path, watch=self._note(word)))
        except NoNodeError:
            self._ask(self._client.exists_async(path, watch=self._note(word)))
            return None
        return (data or b"").decode("utf-8", "replace")

    def _expand(self, registrations: Mapping[str, Registration]) -> dict[str, dict[str, int]]:
        has_wildcard = any(each.is_wildcard for each in registrations.values())
        existing = sorted(self._children("/brokers/topics", "topics")) if has_wildcard else []
        return {name: each.topics(existing, self._excludes_internal) for name, each in registrations.items()}

    def _partitions(self, topics: Iterable[str]) -> dict[str, list[int]]:
        under_way = [
            (topic, self._client.get_async(f"/brokers/topics/{topic}", watch=self._note("topics")))
            for topic in sorted(topics)
        ]
        partitions = {}
        for topic, result in under_way:
            try:
                data, _ = self._ask(result)
            except NoNodeError:
                self._ask(self._client.exists_async(f"/brokers/topics/{topic}", watch=self._note("topics")))
                continue
            partitions[topic] = sorted(int(number) for number in json.loads(data)["partitions"])
        return partitions

    def _owners_of(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Znode]:
        pairs = list(partitions)
        znodes = fetch_data(self._client, [self.owner_path(pair) for pair in pairs])
        return {pair: znode for pair, znode in zip(pairs, znodes) if isinstance(znode, Znode)}

    def _own_owners(self, partitions: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, Znode]:
        """Of these: the owner znodes of this session."""
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
        """Of these: those whose owner znode is of this session, and those that another session holds."""
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
                raise error
        return not errors

    def _make_path(self, path: str) -> None:
        """Create each missing level, with the access list of the nearest znode above it."""
        self._client.ensure_path(path, acl=inherited(self._client, f"{path}/any", self._timeout))

    def _access_of(self, path: str) -> list[ACL]:
        """The access list of the znode above, read once: a claim of many partitions needs one answer, not many."""
        above = path.rpartition("/")[0]
        if above not in self._access:
            self._access[above] = inherited(self._client, path, self._timeout)
        return self._access[above]

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
