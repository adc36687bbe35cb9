"""What plans for offsets rest on: groups and their offsets in both stores, and the logs. Reads only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kit.cluster import Cluster
from kit.errors import InputError, ReadError
from kit.migrate.offsets.moves import Stored
from kit.migrate.offsets.selection import Place
from kit.read.brokers import fetch_log_offsets, fetch_metadata
from kit.read.coordinator import fetch_groups
from kit.read.zookeeper import fetch_consumers
from kit.tables.groups import KAFKA, ZOOKEEPER, LogOffset

STORES = (KAFKA, ZOOKEEPER)


@dataclass(frozen=True, slots=True)
class GroupInStore:
    """One group as one store has it. ``state`` is the coordinator's, None in ZooKeeper; ``members`` are their ids."""

    state: str | None = None
    members: tuple[str, ...] = ()
    offsets: Mapping[Place, Stored] = field(default_factory=dict)
    error: str | None = None


NOT_IN_KAFKA = GroupInStore("Dead")
"""What DescribeGroups says of a group that is nowhere."""
NOT_IN_ZOOKEEPER = GroupInStore()


@dataclass(frozen=True, slots=True)
class Stores:
    """The groups of both stores by id; ``zookeeper`` None: this cluster is connected without it."""

    kafka: Mapping[str, GroupInStore]
    zookeeper: Mapping[str, GroupInStore] | None

    def group(self, store: str, group_id: str) -> GroupInStore:
        if store == KAFKA:
            return self.kafka.get(group_id, NOT_IN_KAFKA)
        return (self.zookeeper or {}).get(group_id, NOT_IN_ZOOKEEPER)

    def groups(self, store: str) -> Mapping[str, GroupInStore]:
        return self.kafka if store == KAFKA else self.zookeeper or {}

    def known(self) -> set[str]:
        return {*self.kafka, *(self.zookeeper or {})}


def refuse_unless_connected(cluster: Cluster, *stores: str) -> None:
    """Raises:
    InputError: there is no such store, or this cluster's profile has none.
    """
    for store in stores:
        if store not in STORES:
            raise InputError(f"the store {store!r} is neither {KAFKA!r} nor {ZOOKEEPER!r}")
        if store == ZOOKEEPER and cluster.zookeeper is None:
            raise InputError(f"cluster {cluster.name!r} has no zookeeper_connect in its profile: no offsets are there")


def fetch_stores(cluster: Cluster, accepts: Callable[[str], bool]) -> Stores:
    """The accepted groups in both stores, ZooKeeper first: an old consumer that is leaving commits there last.

    Raises:
        ConnectError: one of them stopped answering.
        ReadError: a broker couldn't list its groups, so that one may be missing.
    """
    zookeeper = None if cluster.zookeeper is None else fetch_zookeeper(cluster, accepts)
    return Stores(fetch_kafka(cluster, accepts), zookeeper)


def fetch_kafka(cluster: Cluster, accepts: Callable[[str], bool]) -> dict[str, GroupInStore]:
    """The accepted groups that coordinators list, with members and committed offsets. Raises as fetch_stores."""
    found = fetch_groups(cluster.broker_client, accepts)
    if found.errors:
        raise ReadError(f"cluster {cluster.name!r}: {found.errors[0].subject}: {found.errors[0].error}")
    return _assembled(found.groups, found.members, found.committed_offsets)


def fetch_zookeeper(cluster: Cluster, accepts: Callable[[str], bool]) -> dict[str, GroupInStore]:
    """The accepted groups under ``/consumers``, with who is registered and the offset znodes with their versions.

    Raises:
        InputError: this cluster is connected without ZooKeeper.
        ConnectError: it stopped answering.
    """
    refuse_unless_connected(cluster, ZOOKEEPER)
    found = fetch_consumers(cluster.zookeeper, accepts)
    return _assembled(found.groups, found.members, found.committed_offsets)


def fetch_logs(cluster: Cluster, topics: Collection[str]) -> dict[Place, LogOffset]:
    """Start and end (high watermark) of every partition of those topics; what no broker knows is left out."""
    known = [each for each in fetch_metadata(cluster.broker_client).topic_partitions if each.topic in topics]
    led = [each for each in known if each.leader is not None]
    logs = {(each.topic, each.partition): each for each in fetch_log_offsets(cluster.broker_client, led)}
    for each in known:
        logs.setdefault(
            (each.topic, each.partition), LogOffset(each.topic, each.partition, None, None, each.error or "no leader")
        )
    return logs


def partitions_by_topic(logs: Iterable[Place]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in logs:
        found.setdefault(topic, []).append(partition)
    return found


def _assembled(groups: pa.Table, members: pa.Table, committed: pa.Table) -> dict[str, GroupInStore]:
    ids: dict[str, list[str]] = {}
    for group_id, member_id in _rows(members, "group_id", "member_id"):
        ids.setdefault(group_id, []).append(member_id)
    offsets: dict[str, dict[Place, Stored]] = {}
    columns = ("group_id", "topic", "partition", "committed_offset", "metadata", "leader_epoch", "version", "error")
    for group_id, topic, partition, *stored in _rows(committed, *columns):
        if stored[0] is not None or stored[-1] is not None:
            offsets.setdefault(group_id, {})[topic, partition] = Stored(*stored)
    return {
        group_id: GroupInStore(state, tuple(sorted(ids.get(group_id, ()))), offsets.get(group_id, {}), error)
        for group_id, state, error in _rows(groups, "group_id", "state", "error")
    }


def _rows(table: pa.Table, *columns: str) -> Iterable[tuple[Any, ...]]:
    return zip(*(table[name].to_pylist() for name in columns))
