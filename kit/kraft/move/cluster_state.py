"""The state of a cluster on its way to KRaft: what its nodes, ZooKeeper and the metadata log say."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka.errors import KafkaError
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from kit.clients.brokers import ClusterMetadata
from kit.clients.cluster import Cluster, kafka_settings
from kit.clients.multiread import catch_up, fetch_children, refusal
from kit.clients.nodes import fetch_node_metadata, fetch_voter_ends
from kit.clients.paths import CONSUMERS
from kit.errors import ConnectError, OfframpError, ReadError
from kit.kraft.analyze.contradictions import findings
from kit.kraft.analyze.phase import MIGRATION as STATE_MIGRATION, POST_MIGRATION, Facts, phase
from kit.kraft.both_stores import MetadataDiff, kraft_diff
from kit.kraft.metadata_log import MetadataLog, read_log
from kit.kraft.read.metadata_partitions import Partition, fetch_replicas
from kit.kraft.status import broker_addresses, metadata_controllers, read_facts, watched
from kit.tables.conditions import ALARM, BLOCK, Condition
from kit.tables.kraft import MetadataControl, NodeFact
from kit.tables.metadata import MetadataNode

SHOWN = 5
UNREAD = (OfframpError, KafkaError, OSError, ValueError)
"""The errors that a read of a failing node raises."""


@dataclass(frozen=True)
class ClusterState:
    """``brokers``: those that were asked, id → ``host:port``; ``ignored``: which of them does not follow ZooKeeper's
    controller, where that was asked. ``reported_stopped``: addresses of unreachable controllers that a person reports
    as stopped."""

    facts: Facts
    brokers: Mapping[int, str]
    ignored: str | None = None
    reported_stopped: Collection[str] = ()

    @property
    def phase(self) -> str:
        return phase(self.facts)

    @property
    def control(self) -> MetadataControl:
        """Raises ConnectError where ZooKeeper was not read."""
        if self.facts.control is None:
            raise ConnectError(f"ZooKeeper's control znodes could not be read: {self.facts.control_error}")
        return self.facts.control

    @property
    def modes(self) -> dict[int, str | None]:
        """Return the mode of each broker; None: it does not answer."""
        by_id = {each.node_id: each.mode for each in self.facts.brokers}
        return {number: by_id.get(number) for number in self.brokers}

    @property
    def answering_controllers(self) -> list[NodeFact]:
        return [each for each in self.facts.controllers if each.error is None]

    @property
    def live_controllers(self) -> list[NodeFact]:
        """The controllers that run or may run. A refused connection proves that a controller is stopped. For one that
        can't be reached, a person's report counts."""
        unreachable = {each.address for each in self.unreachable_controllers}
        return [
            each
            for each in self.facts.controllers
            if not each.is_stopped and (each.address not in unreachable or each.address not in self.reported_stopped)
        ]

    @property
    def unreachable_controllers(self) -> list[NodeFact]:
        """Controllers with an unknown state: a time-out, no route, or a host name without an address."""
        return [each for each in self.facts.controllers if each.error is not None and each.is_listening is None]

    def controller_at(self, address: str) -> NodeFact | None:
        return next((each for each in self.answering_controllers if each.address == address), None)

    def registration(self, broker_id: int) -> MetadataNode | None:
        return next((each for each in self.facts.registered_brokers if each.node_id == broker_id), None)


def _node_metadata(cluster: Cluster, address: str) -> ClusterMetadata:
    return fetch_node_metadata(kafka_settings(cluster.profile), address)


def _voter_ends(cluster: Cluster, address: str) -> dict[int, int]:
    return fetch_voter_ends(kafka_settings(cluster.profile), address)


def _replicas(cluster: Cluster, facts: Facts) -> Mapping[Partition, Sequence[int]]:
    """By the metadata log once the copy is completed: ZooKeeper may lack a change then. Before it by ZooKeeper."""
    if facts.zk_state in (STATE_MIGRATION, POST_MIGRATION):
        return _replicas_in_log(read_log(metadata_controllers(cluster.profile, cluster.cluster_id)))
    control = facts.control
    if control is not None and control.is_controller_persistent and not facts.is_copying:
        raise ReadError(f"the partitions are not known: the metadata log can't be read: {facts.log_error}")
    return fetch_replicas(zookeeper_of(cluster))


def _replicas_in_log(log: MetadataLog) -> Mapping[Partition, Sequence[int]]:
    if log.image.stopped:
        raise ReadError(f"the partitions are not known: the metadata log can't be read {log.image.stopped}")
    rows = log.partitions.select("topic", "partition", "replicas").iter_rows()
    return {(topic, number): replicas or () for topic, number, replicas in rows}


@dataclass(frozen=True, slots=True)
class MoveReads:
    """The functions by which a move reads the nodes, the metadata log and both stores.

    A function of one node takes its ``host:port``. The cluster's own connection reads ZooKeeper. ``replicas``: the
    broker ids of every partition by the store that is right at this moment; topics that wait for their deletion are
    left out. No function takes what a login may not see for what is not there: ``replicas`` raises.
    """

    facts: Callable[[Cluster, Mapping[int, str]], Facts] = read_facts
    metadata: Callable[[Cluster, str], ClusterMetadata] = _node_metadata
    voter_ends: Callable[[Cluster, str], Mapping[int, int]] = _voter_ends
    replicas: Callable[[Cluster, Facts], Mapping[Partition, Sequence[int]]] = _replicas
    diff: Callable[[Cluster], MetadataDiff] = kraft_diff


READS = MoveReads()


def read_cluster_state(
    cluster: Cluster,
    brokers: Mapping[int, str] | None,
    reads: MoveReads,
    reported_stopped: Collection[str] = (),
) -> ClusterState:
    """``brokers``: whom to ask; None: all that the cluster's metadata names. ``reported_stopped``: see
    ``ClusterState``.

    Raises:
        ConnectError: ZooKeeper, or without ``brokers`` every broker, does not answer.
    """
    asked = broker_addresses(cluster) if brokers is None else dict(brokers)
    state = ClusterState(reads.facts(cluster, asked), asked, reported_stopped=reported_stopped)
    _ = state.control
    return state


def contradictions(
    cluster: Cluster,
    state: ClusterState,
    watch: Callable[[KazooClient | None, Facts], Facts] = watched,
) -> list[Condition]:
    """Return the contradictions with which no plan continues; in dual write ``/migration`` is watched for it.

    Raises:
        ConnectError: ZooKeeper stopped answering meanwhile; where a fact is missing, nothing would be found.
    """
    seen = replace(state, facts=watch(cluster.zookeeper, state.facts))
    facts = replace(seen.facts, control=seen.control)
    return [each for each in findings(facts) if each.severity in (ALARM, BLOCK)]


def zookeeper_of(cluster: Cluster) -> KazooClient:
    """Raises ConnectError where the profile names none."""
    if cluster.zookeeper is None:
        raise ConnectError(f"cluster {cluster.name!r} has no zookeeper_connect: a move to KRaft needs it until its end")
    return cluster.zookeeper


def live_old_members(client: KazooClient) -> dict[str, list[str]]:
    """Group → members registered under ``/consumers``. Raises ConnectError, ReadError."""
    catch_up(client)
    (groups,) = fetch_children(client, [CONSUMERS])
    if isinstance(groups, KazooException):
        raise ReadError(f"{CONSUMERS} {refusal(groups, 'listed')}")
    names = sorted(groups or ())
    by_group = {}
    for name, members in zip(names, fetch_children(client, [f"{CONSUMERS}/{name}/ids" for name in names])):
        if isinstance(members, KazooException):
            raise ReadError(f"{CONSUMERS}/{name}/ids {refusal(members, 'listed')}")
        if members:
            by_group[name] = sorted(members)
    return by_group
