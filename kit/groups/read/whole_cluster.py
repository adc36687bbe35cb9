"""Read everything of a cluster once, in the right order: a set of columns per table of a snapshot.

The order is what makes the numbers right: partitions, then ZooKeeper, then the coordinators (who commits where),
and the ends of the logs last, so that a lag can be too high by what was produced meanwhile but never negative.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import starmap
from typing import Any

from kit.clients.brokers import ClusterMetadata, fetch_log_offsets, fetch_metadata
from kit.clients.cluster import Cluster
from kit.errors import InputError
from kit.groups.read.coordinator import CoordinatedGroups, fetch_groups
from kit.groups.read.other_trees import other_trees_sentence
from kit.groups.read.rights import DESCRIBE, fetch_group_rights, fetch_unseen_groups
from kit.groups.read.topics import fetch_undescribable
from kit.groups.read.zookeeper import BrokersTree, ConsumersTree, expand_subscriptions, fetch_brokers, fetch_consumers
from kit.profile import Profile
from kit.profile.release import version
from kit.tables import schema as tables
from kit.tables.groups import KAFKA, Broker, LogOffset, ReadError, ReadTiming, SnapshotInfo, TopicPartition

EVERY_GROUP = ".*"

_GONE = "no broker knows this topic: it was deleted, or never existed"
_HIDDEN_GROUP = "the login lacks DESCRIBE on the group: its state, members and offsets in Kafka are unknown"
_HIDDEN = "the login lacks DESCRIBE on the topic {}: its offsets, and whether it exists, are unknown"

_STATES = (tables.BROKERS, tables.TOPIC_PARTITIONS)
"""Tables whose errors are states of the cluster (a broker down, a partition offline), read well."""


def read_cluster(
    cluster: Cluster, groups: str | Collection[str]
) -> tuple[SnapshotInfo, dict[tables.Table, tables.Columns]]:
    """Read the chosen groups and what they refer to; → when and by whom it was read, and the columns of each table.

    Raises:
        ConnectError: ZooKeeper or all brokers stopped answering. A single failure is an ``error`` in its row.
        InputError: ``groups`` is not a regular expression.
    """
    accepts = chosen_groups(cluster.profile, groups)
    started_at = datetime.now(UTC)
    reading = _Reading()
    with reading.step("metadata") as done:
        metadata = fetch_metadata(cluster.broker_client)
        done(len(metadata.topic_partitions))
    consumers, registered = _fetch_zookeeper(cluster, accepts, reading)
    with reading.step("coordinators") as done:
        coordinated = fetch_groups(cluster.broker_client, accepts)
        done(len(coordinated.committed_offsets))
    partitions = _partitions(cluster, metadata, registered)
    rows = _assemble(metadata, partitions, registered, consumers, coordinated)
    with reading.step("log offsets") as done:
        rows[tables.LOG_OFFSETS] = _fetch_log_offsets(cluster, rows)
        done(len(rows[tables.LOG_OFFSETS]))
    names, unseen_groups = (cluster.name, cluster.cluster_id), fetch_unseen_groups(cluster.broker_client)
    hidden = _hidden_groups(cluster, consumers, coordinated) if unseen_groups is not None else []
    unlisted = [*coordinated.errors, *_strays(consumers, registered), *hidden]
    rows[tables.READ_ERRORS] = _errors(cluster.name, rows, unlisted, coordinated.unsupported)
    rows[tables.READ_TIMINGS] = tables.READ_TIMINGS.columns_of(reading.timings)
    unseen = ". ".join(filter(None, [unseen_groups, other_trees_sentence(consumers.other_trees if consumers else ())]))
    pattern = groups if isinstance(groups, str) else "|".join(map(re.escape, sorted(groups)))
    info = SnapshotInfo(*names, started_at, datetime.now(UTC), pattern, version(), unseen or None)
    rows[tables.SNAPSHOTS] = tables.SNAPSHOTS.columns_of([info])
    return info, rows


def _hidden_groups(
    cluster: Cluster, consumers: ConsumersTree | None, coordinated: CoordinatedGroups
) -> list[ReadError]:
    """Groups of ZooKeeper whose half in Kafka the login may not describe: to this login Kafka lists them nowhere."""
    if consumers is None:
        return []
    groups = set(consumers.groups["group_id"]) - set(coordinated.groups["group_id"])
    rights = fetch_group_rights(cluster.broker_client, groups)
    hidden = sorted(group for group, may in rights.items() if not isinstance(may, str) and DESCRIBE not in may)
    return [ReadError(KAFKA, group, None, group, _HIDDEN_GROUP) for group in hidden]


def chosen_groups(profile: Profile, groups: str | Collection[str]) -> Callable[[str], bool]:
    """Return a function that accepts the names of the groups to read.

    Args:
        groups: a regular expression that a whole name must match, or the names. The groups that the profile leaves out
            are accepted only if this argument asks for them.

    Raises:
        InputError: it is not a regular expression.
    """
    if not isinstance(groups, str):
        return frozenset(groups).__contains__
    accepts = _matcher(groups)
    if groups != EVERY_GROUP or not profile.leave_out_groups:
        return accepts
    is_left_out = [_matcher(pattern) for pattern in profile.leave_out_groups]
    return lambda group_id: not any(matches(group_id) for matches in is_left_out)


def _matcher(groups: str) -> Callable[[str], bool]:
    try:
        matches = re.compile(groups, re.DOTALL).fullmatch  # A line end is a character of a group id like any other.
    except re.error as error:
        raise InputError(f"the group pattern {groups!r} is not a regular expression: {error}") from None
    return lambda group_id: matches(group_id) is not None


@dataclass
class _Reading:
    """Times the steps."""

    timings: list[ReadTiming] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[int], None]]:
        started_at, started, n_rows = datetime.now(UTC), time.perf_counter(), list[int]()
        yield n_rows.append
        self.timings.append(ReadTiming(name, started_at, (time.perf_counter() - started) * 1000, sum(n_rows)))


def _fetch_zookeeper(
    cluster: Cluster, accepts: Callable[[str], bool], reading: _Reading
) -> tuple[ConsumersTree | None, BrokersTree | None]:
    if cluster.zookeeper is None:
        return None, None
    with reading.step("zookeeper") as done:
        registered = fetch_brokers(cluster.zookeeper)
        consumers = fetch_consumers(cluster.zookeeper, accepts)
        done(sum(map(len, (consumers.members, consumers.ownership, consumers.committed_offsets))))
    return consumers, registered


def _partitions(cluster: Cluster, metadata: ClusterMetadata, registered: BrokersTree | None) -> list[TopicPartition]:
    """Metadata's partitions; a topic that only ZooKeeper has is a row with an error."""
    rows = list(metadata.topic_partitions)
    unknown = sorted((registered.topics if registered else frozenset()) - {row.topic for row in rows})
    errors = dict.fromkeys(unknown, "registered in ZooKeeper, unknown to the brokers: being created or deleted")
    errors |= {each: _HIDDEN.format(each) for each in fetch_undescribable(cluster.broker_client, unknown)}
    return rows + [TopicPartition(topic, 0, False, None, None, (), (), error) for topic, error in errors.items()]


def _assemble(
    metadata: ClusterMetadata,
    partitions: Sequence[TopicPartition],
    registered: BrokersTree | None,
    consumers: ConsumersTree | None,
    coordinated: CoordinatedGroups,
) -> dict[tables.Table, tables.Columns]:
    """Every table that does not wait for the ends of the logs."""
    registrations = consumers.registrations if consumers else ()
    expanded = expand_subscriptions(registrations, {row.topic for row in partitions})
    sources: list[ConsumersTree | CoordinatedGroups] = [consumers, coordinated] if consumers else [coordinated]
    return {
        tables.BROKERS: tables.BROKERS.columns_of(_with_endpoints(broker, registered) for broker in metadata.brokers),
        tables.TOPIC_PARTITIONS: tables.TOPIC_PARTITIONS.columns_of(partitions),
        tables.GROUPS: tables.Columns.concat([source.groups for source in sources]),
        tables.MEMBERS: tables.Columns.concat([source.members for source in sources]),
        tables.SUBSCRIPTIONS: tables.Columns.concat(
            [tables.SUBSCRIPTIONS.columns_of(expanded), coordinated.subscriptions]
        ),
        tables.OWNERSHIP: _of_tasks_that_exist(
            tables.Columns.concat([source.ownership for source in sources]), partitions
        ),
        tables.COMMITTED_OFFSETS: tables.Columns.concat([source.committed_offsets for source in sources]),
        tables.MIGRATION_STATES: (consumers.migration_states if consumers else tables.MIGRATION_STATES.columns({})),
    }


def _of_tasks_that_exist(ownership: tables.Columns, partitions: Iterable[TopicPartition]) -> tables.Columns:
    """A streams task reads the partition of its number of those source topics only that have so many."""
    if not any(ownership["task"]):
        return ownership
    known = {(row.topic, row.partition) for row in partitions}
    places = ownership.rows("task", "topic", "partition")
    kept = [at for at, (task, *place) in enumerate(places) if task is None or tuple(place) in known]
    return tables.OWNERSHIP.columns({name: [values[at] for at in kept] for name, values in ownership.values.items()})


def _fetch_log_offsets(cluster: Cluster, rows: dict[tables.Table, tables.Columns]) -> tables.Columns:
    """Fetch the log offsets of every topic that a group subscribes to, owns or has committed; partitions no broker
    knows are errors.
    """
    referring = [rows[tables.SUBSCRIPTIONS], rows[tables.OWNERSHIP], rows[tables.COMMITTED_OFFSETS]]
    topics = {topic for table in referring for topic in table["topic"]}
    known = rows[tables.TOPIC_PARTITIONS]
    wanted = [row for row in starmap(TopicPartition, known.rows(*known.values)) if row.topic in topics]
    led = [row for row in wanted if row.leader is not None]
    leaderless = [LogOffset(row.topic, row.partition, None, None, row.error) for row in wanted if row.leader is None]
    vanished = _vanished(cluster, {(row.topic, row.partition) for row in wanted}, *referring[1:])
    return tables.LOG_OFFSETS.columns_of([*fetch_log_offsets(cluster.broker_client, led), *leaderless, *vanished])


def _with_endpoints(broker: Broker, registered: BrokersTree | None) -> Broker:
    """Metadata names a random broker as controller while KRaft takes over; ZooKeeper's word comes first."""
    if registered is None:
        return broker
    return Broker(
        broker_id=broker.broker_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        is_controller=broker.is_controller
        if registered.controller is None
        else broker.broker_id == registered.controller,
        endpoints=registered.endpoints.get(broker.broker_id),
        error=broker.error,
    )


def _vanished(cluster: Cluster, known: set[tuple[str, int]], *referring: tables.Columns) -> list[LogOffset]:
    """Partitions that are committed or owned and that no broker lists: nor does it list what the login can't see."""
    vanished = sorted({pair for table in referring for pair in table.rows("topic", "partition")} - known)
    existing = {topic for topic, _ in known}
    absent = sorted({topic for topic, _ in vanished} - existing)
    errors = dict.fromkeys(existing, "the topic exists, but has no such partition") | dict.fromkeys(absent, _GONE)
    errors |= {each: _HIDDEN.format(each) for each in fetch_undescribable(cluster.broker_client, absent)}
    return [LogOffset(topic, partition, None, None, errors[topic]) for topic, partition in vanished]


def _errors(
    cluster: str,
    rows: dict[tables.Table, tables.Columns],
    unlisted: Iterable[ReadError],
    unsupported: frozenset[str],
) -> tables.Columns:
    """Return what could not be read: every ``error`` of every table, and brokers that could not even list their
    groups.
    """
    errors = [replace(each, subject=f"{cluster}/{each.subject}") for each in unlisted]
    for table, read in rows.items():
        if "error" in read.values and table not in _STATES:
            broken = [at for at, error in enumerate(read["error"]) if error is not None]
            found = [_error(cluster, {name: values[at] for name, values in read.values.items()}) for at in broken]
            is_of_groups = table is tables.GROUPS
            errors += [
                replace(each, is_unsupported=is_of_groups and each.source == KAFKA and each.group_id in unsupported)
                for each in found
            ]
    return tables.READ_ERRORS.columns_of(errors)


def _strays(*trees: ConsumersTree | BrokersTree | None) -> Iterator[ReadError]:
    return (stray for tree in trees if tree is not None for stray in tree.strays)


def _error(cluster: str, row: dict[str, Any]) -> ReadError:
    names = [cluster, *(row[key] for key in ("group_id", "member_id") if row.get(key))]
    if "topic" in row:
        names.append(f"{row['topic']}-{row['partition']}")
    source = row.get("source") or row.get("store") or KAFKA
    return ReadError(source, row.get("group_id"), row.get("topic"), "/".join(names), row["error"])
