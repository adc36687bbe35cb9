"""A cluster on its way from ZooKeeper to KRaft (KIP-866): its phase.

    with connect("production") as cluster:
        print(kraft_status(cluster).state)

Whether both stores hold the same: ``kit.kraft.both_stores``. Nothing is written to the cluster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import polars as pl

from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster, ZookeeperConnection, connect_zookeeper, kafka_settings
from kit.clients.nodes import fetch_node_facts
from kit.errors import AuthenticationFailed, ConnectError, OfframpError, PartialRead
from kit.kraft.analyze.contradictions import SILENT, findings, is_dual_writing
from kit.kraft.analyze.node_places import node_places
from kit.kraft.analyze.phase import DUAL_WRITE, KRAFT, UNKNOWN, ZOOKEEPER, Facts, fact_rows, state
from kit.kraft.metadata_log import Controllers, MetadataLog, read_log
from kit.kraft.metadata_log.rows import node_rows
from kit.kraft.read.control_znodes import fetch_control
from kit.kraft.read.metadata_znodes import with_max_state_epoch
from kit.profile import Profile
from kit.tables import schema as tables
from kit.tables.conditions import Condition
from kit.tables.kraft import KraftState, MetadataControl, NodeFact
from kit.text.addresses import address_of
from kit.text.naming import named
from kit.text.visible import visible

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Readers:
    """The functions that ask the nodes and read the metadata log."""

    nodes: Callable[[dict[str, Any], Sequence[tuple[str, int | None]], Sequence[str]], list[NodeFact]]
    log: Callable[[Controllers], MetadataLog]


_READERS = Readers(fetch_node_facts, read_log)


@dataclass(frozen=True)
class KraftStatus:
    """``state``: one row; ``findings``: what contradicts it; ``facts``, ``nodes``: behind it, with source and time."""

    cluster_name: str
    state: KraftState
    findings: Sequence[Condition]
    read: Facts

    @cached_property
    def facts(self) -> pl.DataFrame:
        """``tables.KRAFT_FACTS``."""
        return pl.DataFrame(tables.KRAFT_FACTS.from_rows(fact_rows(self.read)))

    @property
    def aged_facts(self) -> pl.DataFrame:
        """``facts`` with ``age_s``: seconds from when it was read until all was."""
        age = (pl.lit(self.state.at) - pl.col("read_at")).dt.total_microseconds() / 1e6
        return self.facts.with_columns(age_s=age)

    @cached_property
    def places(self) -> pl.DataFrame:
        """``tables.KRAFT_NODES``: each node, and its phase."""
        return pl.DataFrame(tables.KRAFT_NODES.from_rows(node_places(self.read)))

    @cached_property
    def nodes(self) -> pl.DataFrame:
        """``tables.NODE_FACTS``."""
        return pl.DataFrame(tables.NODE_FACTS.from_rows(self.read.nodes))

    def describe(self) -> list[str]:
        """The phase and what was counted, in sentences; how far ZooKeeper is behind only where it can be."""
        state = self.state
        counts = {
            "Brokers in /brokers/ids": state.n_zookeeper,
            "registered in ZooKeeper mode": state.n_migrating,
            "in KRaft mode": state.n_kraft,
        }
        if state.phase in (DUAL_WRITE, KRAFT, UNKNOWN):
            counts["records behind in ZooKeeper"] = state.lag
        figures = [f"{name}: {'unknown' if number is None else f'{number:,}'}" for name, number in counts.items()]
        none_runs = named(self.not_started, "Controller {} does not run", "Controllers {} do not run")
        not_started = (
            [f"{none_runs}: no server listens at the address. The move has not begun."] if self.not_started else []
        )
        return [f"Cluster {self.cluster_name}: phase {state.phase}.", f"{'; '.join(figures)}.", *not_started]

    told = describe  # its name before 1.0

    @cached_property
    def not_started(self) -> tuple[str, ...]:
        """Addresses of the controllers, where none of them runs yet: ZooKeeper alone shows the phase then."""
        controllers = self.read.controllers
        if self.state.phase != ZOOKEEPER or not all(each.is_stopped for each in controllers):
            return ()
        return tuple(each.address for each in controllers)

    @property
    def unread(self) -> list[str]:
        """Return why facts could not be read, each reason once. Controllers that are not started yet hold no facts."""
        errors: list[str] = self.facts["error"].drop_nulls().unique(maintain_order=True).to_list()
        expected = {each.error for each in self.read.controllers} if self.not_started else set()
        return [each for each in errors if each not in expected and not (expected and each == self.read.log_error)]

    @property
    def is_anything_read(self) -> bool:
        """Return whether ZooKeeper, a node, or the metadata log reported anything."""
        return self.read.control is not None or self.read.has_log or any(each.mode for each in self.read.nodes)

    def verify(self) -> None:
        """Refuse a status with gaps: PartialRead where a fact could not be read, with which and why."""
        if self.unread:
            raise PartialRead("\n".join(f"not read: {visible(each)}" for each in self.unread))


def kraft_status(cluster: Cluster) -> KraftStatus:
    """Read every source once: control znodes, each node by itself, the metadata log.

    An unreadable value is a fact with an error; the phase is ``unknown`` when nothing else shows it.
    """
    facts = _read(cluster, broker_addresses(cluster), _control)
    return _judged(watched(cluster.zookeeper, facts))


def read_facts(cluster: Cluster, brokers: Mapping[int, str], readers: Readers = _READERS) -> Facts:
    """Every source once, of these brokers (id → address), to be read repeatedly: no partition's state is read."""
    return _read(cluster, brokers, fetch_control, readers)


def _read(
    cluster: Cluster,
    brokers: Mapping[int, str],
    read_control: Callable[[ZookeeperConnection], MetadataControl],
    readers: Readers = _READERS,
) -> Facts:
    control, control_error = None, None
    if cluster.zookeeper is not None:
        try:
            control = read_control(cluster.zookeeper)
        except OfframpError as error:
            control_error = str(error)
    addresses = [(address, number) for number, address in brokers.items()]
    return _facts(cluster.profile, cluster.cluster_id, addresses, control, control_error, cluster.zookeeper, readers)


def broker_addresses(cluster: Cluster) -> dict[int, str]:
    """Id → ``host:port`` of every broker that the cluster's metadata names. Raises ConnectError."""
    brokers = fetch_metadata(cluster.broker_client).brokers
    return {each.broker_id: address_of(each.host, each.port) for each in brokers if each.host is not None}


def metadata_controllers(profile: Profile, cluster_id: str | None) -> Controllers:
    """Return where the metadata log is read; of another cluster than this it is refused."""
    return Controllers(",".join(profile.kraft.addresses), profile.security.kafka, cluster_id=cluster_id)


def status_without(profile: Profile) -> KraftStatus:
    """Return the status of a cluster where no broker, or no ZooKeeper, answers: by the other servers of the profile,
    each alone.

    Raises:
        AuthenticationFailed, WrongCluster: ZooKeeper refused the login, or is another cluster's.
    """
    brokers = [(each.strip(), None) for each in profile.bootstrap_servers.split(",") if each.strip()]
    control_error = None
    if profile.zookeeper_connect:
        try:
            with connect_zookeeper(profile) as zookeeper:
                control = _control(zookeeper)
                facts = _facts(profile, control.cluster_id, brokers, control, None, zookeeper)
                return _judged(watched(zookeeper, facts))
        except AuthenticationFailed:
            raise
        except ConnectError as error:
            control_error = str(error)
    return _judged(_facts(profile, None, brokers, None, control_error))


def watched(
    zookeeper: ZookeeperConnection | None,
    facts: Facts,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Facts:
    """``facts`` with ``stood_still_s``: in dual write ``/migration`` is read until its offset moves, for ``SILENT``.

    It moves within half a second in a sound cluster that has written a record since. Not watched: a cluster that has
    not, and one that the log shows to is stalled.
    If ZooKeeper stops answering meanwhile, its facts are an error.
    """
    control, has_stalled = facts.control, facts.behind is not None and facts.behind > SILENT
    is_watched = is_dual_writing(facts) and facts.has_moved_on is not False and not has_stalled
    if zookeeper is None or control is None or not is_watched:
        return facts
    began, stood_s = monotonic(), 0.0
    try:
        while stood_s <= SILENT.total_seconds() and fetch_control(zookeeper).checkpoint == control.checkpoint:
            sleep(_POLL_S)
            stood_s = monotonic() - began
    except ConnectError as error:
        return replace(facts, control=None, control_error=str(error))
    return replace(facts, stood_still_s=stood_s)


def _control(zookeeper: ZookeeperConnection) -> MetadataControl:
    return with_max_state_epoch(zookeeper, fetch_control(zookeeper))


def _judged(facts: Facts) -> KraftStatus:
    return KraftStatus(facts.cluster, state(facts), findings(facts), facts)


def _facts(
    profile: Profile,
    cluster_id: str | None,
    brokers: Sequence[tuple[str, int | None]],
    control: MetadataControl | None,
    control_error: str | None,
    zookeeper: ZookeeperConnection | None = None,
    readers: Readers = _READERS,
) -> Facts:
    nodes = readers.nodes(kafka_settings(profile), brokers, profile.kraft.addresses)
    log, log_error = _log(profile, nodes, cluster_id, readers)
    log_read_at = datetime.now(UTC) if log else None
    return Facts(
        cluster=profile.name,
        cluster_id=cluster_id,
        at=datetime.now(UTC),
        control=control,
        nodes=nodes,
        registrations=list(node_rows(log.image)) if log else (),
        zk_state=zk_state_of(log),
        log_read_at=log_read_at,
        log_source=f"the metadata log of {', '.join(profile.kraft.addresses) or 'the controllers'}",
        log_error=log_error,
        **(_behind(log, control, zookeeper) if log and control else {}),
        control_error=control_error,
        n_aborted=log.types.get("AbortTransaction", 0) if log else 0,
    )


def _log(
    profile: Profile, nodes: Sequence[NodeFact], cluster_id: str | None, readers: Readers
) -> tuple[MetadataLog | None, str | None]:
    """The log as the controllers have it, or why it is not there."""
    controllers = [each for each in nodes if each.role == "controller"]
    if not controllers:
        return None, None
    if all(each.error is not None for each in controllers):
        return None, f"no controller answers: {controllers[0].error}"
    try:
        return readers.log(metadata_controllers(profile, cluster_id)), None
    except OfframpError as error:
        return None, str(error)


def _behind(log: MetadataLog, control: MetadataControl, zookeeper: ZookeeperConnection | None) -> dict[str, Any]:
    """Two of ``Facts``. Nodes that are silent and a big log take long: a ``/migration`` that is late is read again."""
    checkpoint = control.checkpoint
    if checkpoint is not None and log.behind(checkpoint) > SILENT and zookeeper is not None:
        with suppress(ConnectError):
            checkpoint = fetch_control(zookeeper).checkpoint or checkpoint
    if checkpoint is None:
        return {}
    return {"behind": log.behind(checkpoint), "has_moved_on": log.has_moved_on(checkpoint)}


def zk_state_of(log: MetadataLog | None) -> str | None:
    """Return the last ZkMigrationState of the log, by Kafka's name; None: it has none."""
    if log is None or log.image.migration_state is None:
        return None
    rows = log.items.filter(pl.col("kind") == "migration")
    return str(rows["value"][0])
