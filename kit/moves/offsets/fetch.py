"""The reads of a plan for offsets: groups and their offsets in both stores, and the logs."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from kit.clients.broker_client import Deadline
from kit.clients.brokers import fetch_log_offsets, fetch_metadata
from kit.clients.cluster import Cluster
from kit.errors import InputError, ReadError
from kit.groups.read.coordinator import fetch_groups
from kit.groups.read.topics import fetch_listed, fetch_undescribable
from kit.groups.read.zookeeper import fetch_consumers
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.selection import Place
from kit.moves.offsets.topics import Present, Topic, contested_reason, hidden_reason, is_told_by_id
from kit.tables.groups import KAFKA, SHARE, ZOOKEEPER, LogOffset
from kit.tables.schema import Columns

STORES = (KAFKA, ZOOKEEPER)


@dataclass(frozen=True, slots=True)
class GroupInStore:
    """One group in one store. ``state`` is the coordinator's, None in ZooKeeper; ``members`` are member ids.

    ``strays`` are znodes among its offsets whose name is no partition, with the reason: they are not read.
    """

    state: str | None = None
    members: tuple[str, ...] = ()
    offsets: Mapping[Place, Stored] = field(default_factory=dict)
    error: str | None = None
    strays: tuple[str, ...] = ()
    group_type: str | None = None
    protocol_type: str | None = None


NOT_IN_KAFKA = GroupInStore("Dead")
"""DescribeGroups answers so for a group that does not exist."""
NOT_IN_ZOOKEEPER = GroupInStore()
NO_IDS: Mapping[str, str] = {}
_SHARE_GROUP = (
    "a share group has start offsets, which no commit changes. To reset them, stop the group's members and run:"
    " kafka-share-groups.sh --bootstrap-server ADDRESS --reset-offsets --group GROUP"
)


@dataclass(frozen=True, slots=True)
class Stores:
    """The groups of both stores by id; ``zookeeper`` is None if the profile has no ZooKeeper.

    ``topics`` are as the brokers described them before the offsets were read.
    """

    kafka: Mapping[str, GroupInStore]
    zookeeper: Mapping[str, GroupInStore] | None
    topics: Mapping[str, Topic] = field(default_factory=dict)

    @property
    def topic_ids(self) -> dict[str, str]:
        """The id by topic, where it is known."""
        return _ids(self.topics)

    def group(self, store: str, group_id: str) -> GroupInStore:
        if store == KAFKA:
            return self.kafka.get(group_id, NOT_IN_KAFKA)
        return (self.zookeeper or {}).get(group_id, NOT_IN_ZOOKEEPER)

    def groups(self, store: str) -> Mapping[str, GroupInStore]:
        return self.kafka if store == KAFKA else self.zookeeper or {}

    def known(self) -> set[str]:
        return {*self.kafka, *(self.zookeeper or {})}


def refuse_unless_connected(cluster: Cluster, *stores: str) -> None:
    """Check that the cluster has each of the stores.

    Raises:
        InputError: the store does not exist, or the cluster's profile has no ZooKeeper.
    """
    for store in stores:
        if store not in STORES:
            raise InputError(f"the store {store!r} is neither {KAFKA!r} nor {ZOOKEEPER!r}")
        if store == ZOOKEEPER and cluster.zookeeper is None:
            raise InputError(
                f"the profile of cluster {cluster.name!r} has no zookeeper_connect: set it to use offsets in ZooKeeper."
                " A cluster without ZooKeeper has offsets in Kafka alone: --store kafka"
            )


def chosen_store(cluster: Cluster, groups: Collection[str]) -> str:
    """The one store that the groups have offsets in; Kafka where there is no ZooKeeper, and for groups without offsets.

    Raises:
        InputError: they have offsets in both, or no group is named.
        ConnectError, ReadError: as for ``fetch_stores``.
    """
    if cluster.zookeeper is None:
        return KAFKA
    if not groups:
        raise InputError("name the store: --store kafka or --store zookeeper; without groups it can't be chosen")
    stores = fetch_stores(cluster, set(groups).__contains__, only_stable=False)
    used = [store for store in STORES if any(group.offsets for group in stores.groups(store).values())]
    if len(used) > 1:
        raise InputError(
            f"cluster {cluster.name!r}: the groups have offsets in ZooKeeper and in Kafka: name the store that is"
            " written: --store kafka or --store zookeeper"
        )
    return used[0] if used else KAFKA


def fetch_stores(cluster: Cluster, accepts: Callable[[str], bool], only_stable: bool = True) -> Stores:
    """The accepted groups in both stores, ZooKeeper first: an old consumer that leaves commits there last.

    ``only_stable``: a group for which a transaction that is still open has sent offsets has an error. A decision
    about a write needs that; a listing doesn't.

    The topics are read before the offsets. If a topic is created again in between, its offsets get the id of the topic
    that is gone, and are never written again.

    Raises:
        ConnectError: ZooKeeper or a broker does not answer.
        ReadError: a broker could not list its groups, so a group may be missing.
    """
    topics = fetch_topics(cluster)
    ids = _ids(topics)
    zookeeper = None if cluster.zookeeper is None else fetch_zookeeper(cluster, accepts, ids)
    return Stores(fetch_kafka(cluster, accepts, ids, only_stable), zookeeper, topics)


def fetch_kafka(
    cluster: Cluster,
    accepts: Callable[[str], bool],
    topic_ids: Mapping[str, str] = NO_IDS,
    only_stable: bool = True,
) -> dict[str, GroupInStore]:
    """The accepted groups that brokers list, with members and committed offsets. Raises as fetch_stores."""
    listed = fetch_groups(cluster.broker_client, accepts, only_stable=only_stable)
    if listed.errors:
        raise ReadError(f"cluster {cluster.name!r}: {listed.errors[0].subject}: {listed.errors[0].error}")
    return _assembled(listed.groups, listed.members, listed.committed_offsets, topic_ids)


def fetch_zookeeper(
    cluster: Cluster, accepts: Callable[[str], bool], topic_ids: Mapping[str, str] = NO_IDS
) -> dict[str, GroupInStore]:
    """The accepted groups under ``/consumers``, with registered members and offset znodes with their versions.

    Raises:
        InputError: the profile has no ZooKeeper.
        ConnectError: ZooKeeper does not answer.
    """
    refuse_unless_connected(cluster, ZOOKEEPER)
    consumers = fetch_consumers(cluster.zookeeper, accepts)
    groups = _assembled(consumers.groups, consumers.members, consumers.committed_offsets, topic_ids)
    for stray in consumers.strays:
        group = groups[stray.group_id or ""]
        problem = f"{stray.subject}: {stray.error}"
        if stray.topic is None:  # A topic's znodes could not be listed: any of its partitions may have an offset.
            group = replace(group, error=group.error or problem)
        groups[stray.group_id or ""] = replace(group, strays=(*group.strays, problem))
    return groups


def fetch_topics(cluster: Cluster) -> dict[str, Topic]:
    """All topics by name. Raises ConnectError as fetch_stores."""
    metadata = fetch_metadata(cluster.broker_client)
    ids = {name: urlsafe_b64encode(octets).decode().rstrip("=") for octets, name in metadata.topic_names.items()}
    epochs: dict[str, dict[int, int | None]] = {}
    for each in metadata.topic_partitions:
        epochs.setdefault(each.topic, {})[each.partition] = each.leader_epoch
    return {name: Topic(ids.get(name), of_topic) for name, of_topic in epochs.items()}


def fetch_present(cluster: Cluster, offsets: Iterable[tuple[Place, Stored]]) -> Present:
    """The topics now, and the logs for those ``offsets`` whose topic has no known id.

    While brokers disagree whether a topic exists, they are asked again until the deadline: one may have just started.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    offsets, client = list(offsets), cluster.broker_client
    named = {topic for (topic, _), _ in offsets}

    def read() -> Seen:
        topics = fetch_topics(cluster)
        return Seen(topics, *_unlisted(cluster, named - topics.keys()))

    topics, hidden, listed = agreed(read, partial(client.run, client.pause), Deadline())
    unsure = {
        place[0]
        for place, stored in offsets
        if stored.offset is not None and place[0] in topics and not is_told_by_id(topics, place[0], stored)
    }
    return Present(topics, fetch_logs(cluster, unsure) if unsure else {}, _reasons(hidden, listed))


class Seen(NamedTuple):
    """The topics that a broker listed, and of those that it did not, the ones that are hidden or that another lists."""

    topics: dict[str, Topic]
    hidden: set[str]
    listed: set[str]


def agreed(read: Callable[[], Seen], pause: Callable[[int], object], deadline: Deadline) -> Seen:
    """Read until no other broker lists a topic that the one does not; what was read last, at the deadline."""
    seen, attempt = read(), 0
    while seen.listed and deadline.allows(attempt):
        pause(attempt)
        seen, attempt = read(), attempt + 1
    return seen


def fetch_unsure(cluster: Cluster, topics: Collection[str]) -> dict[str, str]:
    """Return the topics of ``topics``, which a broker did not list, that may exist all the same, with the reason.

    Raises:
        ConnectError, ReadError: the brokers or ZooKeeper did not answer, or refused.
    """
    return _reasons(*_unlisted(cluster, topics))


def _unlisted(cluster: Cluster, topics: Collection[str]) -> tuple[set[str], set[str]]:
    """Return the topics that a broker did not list and that the login may not describe, and the topics that another
    broker lists.
    """
    hidden = fetch_undescribable(cluster.broker_client, topics)
    return hidden, fetch_listed(cluster.broker_client, cluster.zookeeper, set(topics) - hidden)


def _reasons(hidden: Collection[str], listed: Collection[str]) -> dict[str, str]:
    return {each: hidden_reason(each) for each in sorted(hidden)} | {each: contested_reason(each) for each in listed}


def fetch_logs(cluster: Cluster, topics: Collection[str]) -> dict[Place, LogOffset]:
    """Start and end (high watermark) of every partition of ``topics``; unknown partitions are left out."""
    known = [each for each in fetch_metadata(cluster.broker_client).topic_partitions if each.topic in topics]
    led = [each for each in known if each.leader is not None]
    logs = {(each.topic, each.partition): each for each in fetch_log_offsets(cluster.broker_client, led)}
    for each in known:
        logs.setdefault(
            (each.topic, each.partition), LogOffset(each.topic, each.partition, None, None, each.error or "no leader")
        )
    return logs


def partitions_by_topic(logs: Iterable[Place]) -> dict[str, list[int]]:
    partitions: dict[str, list[int]] = {}
    for topic, partition in logs:
        partitions.setdefault(topic, []).append(partition)
    return partitions


def _ids(topics: Mapping[str, Topic]) -> dict[str, str]:
    return {name: topic.topic_id for name, topic in topics.items() if topic.topic_id is not None}


def _assembled(
    groups: Columns, members: Columns, committed: Columns, topic_ids: Mapping[str, str]
) -> dict[str, GroupInStore]:
    ids: dict[str, list[str]] = {}
    for group_id, member_id in members.rows("group_id", "member_id"):
        ids.setdefault(group_id, []).append(member_id)
    offsets: dict[str, dict[Place, Stored]] = {}
    columns = ("group_id", "topic", "partition", "committed_offset", "metadata", "leader_epoch", "version", "error")
    for group_id, topic, partition, *stored in committed.rows(*columns):
        if stored[0] is not None or stored[-1] is not None:
            offsets.setdefault(group_id, {})[topic, partition] = Stored(*stored, topic_id=topic_ids.get(topic))  # type: ignore[misc]  # of five columns
    return {
        group_id: GroupInStore(
            state,
            tuple(sorted(ids.get(group_id, ()))),
            offsets.get(group_id, {}),
            error or (_SHARE_GROUP if group_type == SHARE else None),
            group_type=group_type,
            protocol_type=protocol_type,
        )
        for group_id, state, error, group_type, protocol_type in groups.rows(
            "group_id", "state", "error", "group_type", "protocol_type"
        )
    }
