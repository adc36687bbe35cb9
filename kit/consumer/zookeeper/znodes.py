"""A group's znodes as one member uses them: its registration, what a round reads, and offsets.

Owner znodes are those of :mod:`~kit.consumer.zookeeper.owner_znodes`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoAuthError, NodeExistsError, NoNodeError

from kit.clients.access import lacking
from kit.clients.multiread import Znode, fetch_data
from kit.clients.registration import Registration, parse_registration
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import GroupView
from kit.consumer.zookeeper.owner_znodes import OwnerZnodes
from kit.consumer.zookeeper.znode_requests import Changed
from kit.errors import AuthenticationFailed, ConnectError, NotFound, ReadError


class GroupZnodes(OwnerZnodes):
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
        super().__init__(client, group_id, consumer_id, changed, owner_gone, watch_lost, timeout_seconds)
        self._excludes_internal = excludes_internal
        self._is_migration_enabled = is_migration_enabled

    def offset_path(self, pair: TopicAndPartition) -> str:
        return f"{self._base}/offsets/{pair[0]}/{pair[1]}"

    # Registering

    def check_brokers(self) -> None:
        """Search for brokers: NotFound when none ever registered there, by a wrong chroot or in a KRaft cluster."""
        if self._read("/brokers/ids", self._client.exists_async("/brokers/ids")) is None:
            raise NotFound(
                f"ZooKeeper {self._hosts}{self._client.chroot} has no /brokers/ids. Check the chroot in "
                "zookeeper.connect. If the brokers run in KRaft mode, old consumers can't work"
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
        refused = [path for path, error in zip(reversed(paths), errors) if isinstance(error, NoAuthError)]
        if refused:
            raise AuthenticationFailed(lacking("CREATE", refused[0].rpartition("/")[0]))
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
                data, _ = self._read(f"/brokers/topics/{topic}", result)
            except NoNodeError:
                self._ask(self._client.exists_async(f"/brokers/topics/{topic}", watch=self._note("topics")))
                continue
            partitions[topic] = sorted(int(number) for number in json.loads(data)["partitions"])
        return partitions

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
            raise ConnectError(
                f"the ZooKeeper session of {self._consumer_id} has ended, so its offsets were not written"
            )
        for pair, result in zip(offsets, results[1:]):
            if isinstance(result, NoAuthError):
                path = self.offset_path(pair)
                above = path.rpartition("/")[0]
                needed = ("CREATE", above) if versions[pair] is None else ("WRITE", path)
                raise AuthenticationFailed(lacking(*needed))
        return not any(isinstance(result, Exception) for result in results)
