"""The state of one group on KIP-125's path: plans are made from it, and steps are judged by it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals as nw
import polars as pl

from kit.clients.cluster import Cluster
from kit.consumer.zookeeper.assignors import assign
from kit.consumer.zookeeper.config import HASH_0_8_2, HASH_1_0, RANGE, ROUNDROBIN
from kit.errors import ConnectError, NotFound
from kit.groups import analyses, views
from kit.groups.analyze.stages import group_stages
from kit.groups.read.coordinator import await_coordinator
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.snapshot import Snapshot, observe
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.naming import shortened
from kit.text.quantity import quantity

OZKCC, MEZKCC, KC, EKC = "OZKCC", "MEZKCC", "KC", "EKC"
FLAVOURS = (OZKCC, MEZKCC, KC)
CLASSIC, CONSUMER = PROTOCOLS = ("classic", "consumer")
"""Flavours of members of a group that Kafka alone coordinates: by the protocol that each speaks (KIP-848)."""
_NOUNS = {CLASSIC: "classic member", CONSUMER: "consumer-protocol member", "": "member"}
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class MemberState:
    """One process as a member: a MEZKCC's embedded consumer isn't counted beside it.

    ``client_id`` is a KC's own; a ZooKeeper member has its consumer id for both. ``partitions`` are those it consumes:
    by owner znode, of a Kafka member by assignment. ``since`` is when it registered in ZooKeeper; None for a Kafka
    member.
    """

    member_id: str
    client_id: str
    flavour: str
    host: str | None
    partitions: frozenset[Partition]
    since: datetime | None


@dataclass(frozen=True, slots=True)
class PartitionOffsets:
    """One partition: the next offset in each store and the log's end; None where there is none or it is unknown.

    ``kafka_leader_epoch`` is what newer consumers commit beside it; no old consumer does.
    """

    zookeeper: int | None
    zookeeper_version: int | None
    kafka: int | None
    log_start: int | None
    log_end: int | None
    kafka_leader_epoch: int | None = None

    @property
    def lag(self) -> int | None:
        """Records between the higher of the committed offsets and the end of the log."""
        known = [offset for offset in (self.zookeeper, self.kafka) if offset is not None]
        return None if self.log_end is None or not known else max(0, self.log_end - max(known))


@dataclass(frozen=True, slots=True)
class GroupState:
    """One group. ``mode`` None: there is no toggle znode.

    ``embedded`` is what Kafka's coordinator assigned to each MEZKCC (its EKC), by consumer id; ``owners`` the owner
    znodes' thread ids; ``threads`` the streams of each ZooKeeper member, by topic; ``blockers`` name → sentence (see
    ``kit.analyze.blockers``); ``zookeeper_at`` the newest time of ZooKeeper's clock that its znodes show.
    """

    group_id: str
    observed_at: datetime
    stage: str
    effective_mode: str | None
    mode: str | None
    mode_version: int | None
    members: tuple[MemberState, ...]
    embedded: Mapping[str, frozenset[Partition]]
    owners: Mapping[Partition, str]
    kafka_state: str | None
    coordinator: int | None
    offsets: Mapping[Partition, PartitionOffsets]
    threads: Mapping[str, Mapping[str, int]]
    subscribed: Mapping[str, int]
    blockers: Mapping[str, str]
    zookeeper_at: datetime | None = None

    def count(self, flavour: str) -> int:
        return sum(member.flavour == flavour for member in self.members)

    @property
    def counts(self) -> dict[str, int]:
        """Flavour → members, those of none left out."""
        return {flavour: self.count(flavour) for flavour in (*FLAVOURS, *PROTOCOLS) if self.count(flavour)}

    @property
    def partitions(self) -> frozenset[Partition]:
        """All partitions of the topics that the members subscribe to."""
        return frozenset((topic, number) for topic, count in self.subscribed.items() for number in range(count))

    @property
    def unconsumed(self) -> frozenset[Partition]:
        """Partitions that no member owns."""
        return self.partitions - {pair for member in self.members for pair in member.partitions}

    @property
    def youngest_at(self) -> datetime | None:
        """Return when the newest of its ZooKeeper members registered."""
        return max((member.since for member in self.members if member.since is not None), default=None)

    @property
    def assignor(self) -> str | None:
        """The ZooKeeper strategy whose assignment the owner znodes are; None: of none, or no partition has an owner."""
        topics = {topic: range(count) for topic, count in self.subscribed.items()}
        for strategy, form in ((RANGE, HASH_1_0), (ROUNDROBIN, HASH_1_0), (ROUNDROBIN, HASH_0_8_2)):
            if self.owners and assign(strategy, self.threads, topics, form) == dict(self.owners):
                return strategy if strategy == RANGE else f"{strategy} (roundrobin.hash={form})"
        return None

    @property
    def follows_kafka(self) -> bool:
        """Each embedded consumer's assignment is what its member owns: Kafka's assignment is in force."""
        owned = {member.member_id: member.partitions for member in self.members if member.flavour == MEZKCC}
        return bool(owned) and owned == {name: self.embedded.get(name) for name in owned}

    @property
    def unsettled(self) -> str:
        """Return why the group is not settled, in words."""
        return (
            f"no member owns {listed(self.unconsumed)}" if self.unconsumed else f"the Kafka group is {self.kafka_state}"
        )

    @property
    def is_settled(self) -> bool:
        """No rebalance is visible: Kafka's group is stable or empty, and each partition has an owner."""
        return bool(self.members) and self.kafka_state in (None, "Stable", "Empty", "Dead") and not self.unconsumed


ReadGroup = Callable[[Cluster, str], GroupState]
"""The type of :func:`read_group_state`."""


def read_group_state(cluster: Cluster, group_id: str) -> GroupState:
    """Read one group from the cluster.

    Raises:
        NotFound: neither ZooKeeper nor a coordinator knows the group.
        ConnectError: something could not be read, so the group's state is unknown.
    """
    try:
        return group_states(observe(cluster, [group_id]), [group_id])[0]
    except NotFound:  # No broker lists a group while its coordinator moves.
        await_coordinator(cluster.broker_client, group_id)
        return group_states(observe(cluster, [group_id]), [group_id])[0]


def group_states(snapshot: Snapshot[pl.DataFrame], groups: Iterable[str]) -> list[GroupState]:
    """Several groups of one snapshot, analysed once for all of them. Raises as :func:`read_group_state`."""
    seen = _Seen(snapshot)
    return [seen.group_state(group_id) for group_id in groups]


def readable_group_states(
    snapshot: Snapshot[pl.DataFrame], groups: Iterable[str]
) -> tuple[list[GroupState], dict[str, str]]:
    """The groups that can be read, and by group id why a group can't: one bad group fails no other."""
    seen, states, unread = _Seen(snapshot), list[GroupState](), dict[str, str]()
    for group_id in groups:
        try:
            states.append(seen.group_state(group_id))
        except (ConnectError, NotFound) as error:
            unread[group_id] = str(error)
    return states, unread


class _Seen:
    """A snapshot's rows by group: of a thousand groups a filter per group and table would take minutes."""

    def __init__(self, snapshot: Snapshot[pl.DataFrame]) -> None:
        key = ["group_id", "source", "member_id"]
        flavours = analyses.member_flavours(snapshot.members).select(*key, "flavour")
        self._members = _by_group(snapshot.members.join(flavours, on=key, how="left"))
        self._groups, self._states = _by_group(snapshot.groups), _by_group(snapshot.migration_states)
        self._ownership, self._offsets = _by_group(snapshot.ownership), _by_group(snapshot.committed_offsets)
        self._subscriptions = _by_group(snapshot.subscriptions)
        self._blockers = _by_group(views.blockers(snapshot))
        known = (snapshot.groups, snapshot.members, snapshot.migration_states)
        self._stages = _by_group(nw.to_native(group_stages(*map(nw.from_native, known))))
        self._logs = {(row["topic"], row["partition"]): row for row in snapshot.log_offsets.rows(named=True)}
        self._counts = dict(snapshot.topic_partitions.group_by("topic").len().rows())
        self._errors: dict[tuple[str | None, str | None], str] = {}
        for row in snapshot.read_errors.rows(named=True):
            of = row["group_id"], row["topic"]
            # Only an error of a topic or partition names its place itself.
            self._errors.setdefault(of, row["error"] if row["topic"] else f"{row['subject']}: {row['error']}")

    def group_state(self, group_id: str) -> GroupState:
        groups = self._groups.get(group_id)
        is_in_kafka = any(row["source"] == KAFKA for row in groups or ())
        unlisted = [self._errors[None, each] for each in (None, OFFSETS_TOPIC) if (None, each) in self._errors]
        if unlisted and not is_in_kafka:  # Then a group of ZooKeeper can have members and offsets in Kafka as well.
            raise ConnectError(f"group {group_id} can't be read: {unlisted[0]}")
        if not groups:
            raise NotFound(
                f"there is no group {group_id!r}, neither in ZooKeeper nor in Kafka: see offramp groups{IF_HIDDEN}"
            )
        subscribed = sorted({row["topic"] for row in self._subscriptions[group_id]})
        self._refuse_unread(group_id, subscribed)
        at, states = self._stages[group_id][0], self._states[group_id]
        members, had = self._members[group_id], _by_member(self._ownership[group_id])
        kafka = [row for row in groups if row["source"] == KAFKA]
        return GroupState(
            group_id=group_id,
            observed_at=groups[0]["observed_at"],
            stage=at["stage"],
            effective_mode=at["effective_mode"],
            mode=states[0]["mode"] if states else None,
            mode_version=states[0]["mode_version"] if states else None,
            members=_members(members, had),
            embedded={
                row["client_id"]: had.get((KAFKA, row["member_id"]), frozenset())
                for row in members
                if row["flavour"] == EKC
            },
            owners=_owners(self._ownership[group_id]),
            kafka_state=kafka[0]["state"] if kafka else None,
            coordinator=kafka[0]["coordinator"] if kafka else None,
            offsets=_partition_offsets(self._offsets[group_id], self._logs),
            threads=_threads(self._subscriptions[group_id]),
            subscribed={topic: self._counts[topic] for topic in subscribed},
            blockers={row["blocker"]: row["sentence"] for row in self._blockers[group_id]},
            zookeeper_at=_newest(self._offsets[group_id], members),
        )

    def _refuse_unread(self, group_id: str, subscribed: Iterable[str]) -> None:
        rows = (*self._subscriptions[group_id], *self._ownership[group_id], *self._offsets[group_id])
        keys = [(None, None), *((group_id, topic) for topic in (None, *(row["topic"] for row in rows)))]
        pairs = {(row["topic"], row["partition"]) for row in rows if "partition" in row}
        pairs |= {(topic, number) for topic in subscribed for number in range(self._counts.get(topic, 0))}
        # An unknown partition concerns the members that refer to it, not every reader of its topic.
        errors = [self._errors[key] for key in keys if key in self._errors]
        errors += [self._logs[pair]["error"] for pair in sorted(pairs) if self._logs.get(pair, {}).get("error")]
        if errors:
            raise ConnectError(f"group {group_id} can't be read: {errors[0]}")
        strangers = set(subscribed) - self._counts.keys()
        if strangers:
            raise ConnectError(f"group {group_id}: the brokers don't know its topic {min(strangers)}")


Row = dict[str, Any]


def _by_group(frame: pl.DataFrame) -> defaultdict[str, list[Row]]:
    rows: defaultdict[str, list[Row]] = defaultdict(list)
    for row in frame.iter_rows(named=True):
        rows[row["group_id"]].append(row)
    return rows


def _members(rows: Iterable[Row], had: Mapping[tuple[str, str], frozenset[Partition]]) -> tuple[MemberState, ...]:
    members = [
        MemberState(
            row["member_id"],
            row["client_id"] or row["member_id"],
            row["flavour"],
            row["client_host"],
            had.get((row["source"], row["member_id"]), frozenset()),
            row["registered_at"],
        )
        for row in rows
        if row["flavour"] not in (None, EKC)
    ]
    return tuple(sorted(members, key=lambda member: member.member_id))


def _by_member(ownership: Iterable[Row]) -> dict[tuple[str, str], frozenset[Partition]]:
    partitions: dict[tuple[str, str], set[Partition]] = {}
    for row in ownership:
        if row["member_id"] is not None:
            partitions.setdefault((row["source"], row["member_id"]), set()).add((row["topic"], row["partition"]))
    return {member: frozenset(pairs) for member, pairs in partitions.items()}


def _owners(ownership: Iterable[Row]) -> dict[Partition, str]:
    rows = (row for row in ownership if row["source"] == ZOOKEEPER and row["thread_id"] is not None)
    return {(row["topic"], row["partition"]): row["thread_id"] for row in rows}


def _partition_offsets(offsets: Iterable[Row], logs: Mapping[Partition, Row]) -> dict[Partition, PartitionOffsets]:
    stores: dict[str, dict[Partition, Row]] = {ZOOKEEPER: {}, KAFKA: {}}
    for row in offsets:
        stores[row["store"]][row["topic"], row["partition"]] = row
    by_partition = {}
    for pair in sorted({*stores[ZOOKEEPER], *stores[KAFKA]}):
        old, new, log = stores[ZOOKEEPER].get(pair, {}), stores[KAFKA].get(pair, {}), logs.get(pair, {})
        by_partition[pair] = PartitionOffsets(
            old.get("committed_offset"),
            old.get("version"),
            new.get("committed_offset"),
            log.get("log_start_offset"),
            log.get("log_end_offset"),
            new.get("leader_epoch"),
        )
    return by_partition


def _newest(offsets: Iterable[Row], members: Iterable[Row]) -> datetime | None:
    """A znode's times are its server's: that much later it is there at least."""
    times = [row["committed_at"] for row in offsets if row["store"] == ZOOKEEPER]
    return max((at for at in (*times, *(row["registered_at"] for row in members)) if at is not None), default=None)


def _threads(subscriptions: Iterable[Row]) -> dict[str, dict[str, int]]:
    threads: dict[str, dict[str, int]] = {}
    for row in subscriptions:
        if row["source"] == ZOOKEEPER:
            threads.setdefault(row["member_id"], {})[row["topic"]] = row["n_threads"]
    return threads


def describe_toggle(mode: str | None) -> str:
    """Return what ``migration/mode`` holds, as a clause; None: the znode does not exist."""
    return "there is no toggle" if mode is None else f"the toggle holds {mode!r}"


def counted(counts: Mapping[str, int]) -> str:
    """Members by flavour, in words."""
    words = (
        quantity(count, _NOUNS[flavour]) if flavour in _NOUNS else f"{count} {flavour}"
        for flavour, count in sorted(counts.items())
        if count
    )
    return ", ".join(words) or "no member"


def noun(flavour: str) -> str:
    """One member of a flavour, as sentences name it; an empty flavour: of any."""
    return _NOUNS.get(flavour, flavour)


def named(pair: Partition) -> str:
    """``topic-partition``."""
    return f"{pair[0]}-{pair[1]}"


def listed(pairs: frozenset[Partition], at_most: int = 3) -> str:
    """The first few by name, the rest counted."""
    return shortened(map(named, sorted(pairs)), at_most)
