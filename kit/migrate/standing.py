"""Where one group stands on KIP-125's path: what plans are made of, and what steps are judged by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import polars as pl

from kit import analyze, views
from kit.cluster import Cluster
from kit.consumer.assignors import assign
from kit.consumer.config import HASH_0_8_2, HASH_1_0, RANGE, ROUNDROBIN
from kit.errors import ConnectError
from kit.model import KAFKA, ZOOKEEPER
from kit.snapshot import Snapshot, observe, of_group

OZKCC, MEZKCC, KC, EKC = "OZKCC", "MEZKCC", "KC", "EKC"
FLAVOURS = (OZKCC, MEZKCC, KC)
Partition = tuple[str, int]


@dataclass(frozen=True, slots=True)
class MemberStanding:
    """One process as a member: a MEZKCC's embedded consumer isn't counted beside it.

    ``client_id`` is a KC's own; a ZooKeeper member has its consumer id for both. ``partitions`` are those it consumes:
    by owner znode, of a KC by assignment. ``since`` is when it registered in ZooKeeper; None for a KC.
    """

    member_id: str
    client_id: str
    flavour: str
    host: str | None
    partitions: frozenset[Partition]
    since: datetime | None


@dataclass(frozen=True, slots=True)
class Position:
    """One partition: the next offset in each store and the log's end; None where there is none or it is unknown."""

    zookeeper: int | None
    zookeeper_version: int | None
    kafka: int | None
    log_start: int | None
    log_end: int | None

    @property
    def lag(self) -> int | None:
        """Records between the higher of the committed offsets and the end of the log."""
        known = [offset for offset in (self.zookeeper, self.kafka) if offset is not None]
        return None if self.log_end is None or not known else max(0, self.log_end - max(known))


@dataclass(frozen=True, slots=True)
class Standing:
    """One group. ``mode`` None: there is no toggle znode.

    ``embedded`` is what Kafka's coordinator assigned to each MEZKCC (its EKC), by consumer id; ``owners`` the owner
    znodes' thread ids; ``threads`` the streams of each ZooKeeper member, by topic; ``blockers`` name → sentence (see
    ``kit.analyze.blockers``).
    """

    group_id: str
    observed_at: datetime
    stage: str
    effective_mode: str | None
    mode: str | None
    mode_version: int | None
    members: tuple[MemberStanding, ...]
    embedded: Mapping[str, frozenset[Partition]]
    owners: Mapping[Partition, str]
    kafka_state: str | None
    coordinator: int | None
    positions: Mapping[Partition, Position]
    threads: Mapping[str, Mapping[str, int]]
    subscribed: Mapping[str, int]
    blockers: Mapping[str, str]

    def count(self, flavour: str) -> int:
        return sum(member.flavour == flavour for member in self.members)

    @property
    def counts(self) -> dict[str, int]:
        """Flavour → members, those of none left out."""
        return {flavour: self.count(flavour) for flavour in FLAVOURS if self.count(flavour)}

    @property
    def partitions(self) -> frozenset[Partition]:
        """All partitions of the topics that the members subscribe to."""
        return frozenset((topic, number) for topic, count in self.subscribed.items() for number in range(count))

    @property
    def unconsumed(self) -> frozenset[Partition]:
        """Partitions that no member has."""
        return self.partitions - {pair for member in self.members for pair in member.partitions}

    @property
    def youngest_at(self) -> datetime | None:
        """When the newest of its ZooKeeper members registered."""
        return max((member.since for member in self.members if member.since is not None), default=None)

    @property
    def assignor(self) -> str | None:
        """The ZooKeeper strategy whose assignment the owner znodes are; None: of none, or nobody owns anything."""
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
        """Why it isn't settled, in words."""
        return f"nobody has {told(self.unconsumed)}" if self.unconsumed else f"the Kafka group is {self.kafka_state}"

    @property
    def is_settled(self) -> bool:
        """No rebalance goes on as far as can be seen: Kafka's group is stable or empty, and each partition is had."""
        return bool(self.members) and self.kafka_state in (None, "Stable", "Empty", "Dead") and not self.unconsumed


def look(cluster: Cluster, group_id: str) -> Standing:
    """Read one group from the cluster.

    Raises:
        NotFound: neither ZooKeeper nor a coordinator knows the group.
        ConnectError: something could not be read, so its standing can't be told.
    """
    return standing(observe(cluster, re.escape(group_id)), group_id)


def standing(snapshot: Snapshot[pl.DataFrame], group_id: str) -> Standing:
    """The same from a snapshot that was read before. Raises as :func:`look`."""
    mine = of_group(snapshot, group_id)
    problems = mine.read_errors["error"].to_list()
    if problems:
        raise ConnectError(f"group {group_id}: its standing can't be told: {problems[0]}")
    strangers = set(mine.subscriptions["topic"].to_list()) - set(mine.topic_partitions["topic"].to_list())
    if strangers:
        raise ConnectError(f"group {group_id}: the brokers don't know its topic {min(strangers)}")
    ready = views.readiness(mine).row(0, named=True)
    states = mine.migration_states.rows(named=True)
    kafka = mine.groups.filter(source=KAFKA).rows(named=True)
    members = _members(mine)
    return Standing(
        group_id=group_id,
        observed_at=mine.groups["observed_at"][0],
        stage=ready["stage"],
        effective_mode=ready["effective_mode"],
        mode=states[0]["mode"] if states else None,
        mode_version=states[0]["mode_version"] if states else None,
        members=members,
        embedded=_embedded(mine),
        owners=_owners(mine),
        kafka_state=kafka[0]["state"] if kafka else None,
        coordinator=kafka[0]["coordinator"] if kafka else None,
        positions=_positions(mine),
        threads=_threads(mine),
        subscribed=_subscribed(mine),
        blockers={row["blocker"]: row["sentence"] for row in views.blockers(mine).rows(named=True)},
    )


def _members(snapshot: Snapshot[pl.DataFrame]) -> tuple[MemberStanding, ...]:
    flavoured = analyze.member_flavours(snapshot.members).select("source", "member_id", "flavour")
    rows = snapshot.members.join(flavoured, on=["source", "member_id"]).filter(pl.col("flavour") != EKC)
    had = _by_member(snapshot)
    found = [
        MemberStanding(
            row["member_id"],
            row["client_id"] or row["member_id"],
            row["flavour"],
            row["client_host"],
            had.get((row["source"], row["member_id"]), frozenset()),
            row["registered_at"],
        )
        for row in rows.rows(named=True)
    ]
    return tuple(sorted(found, key=lambda member: member.member_id))


def _by_member(snapshot: Snapshot[pl.DataFrame]) -> dict[tuple[str, str], frozenset[Partition]]:
    found: dict[tuple[str, str], set[Partition]] = {}
    for row in snapshot.ownership.filter(pl.col("member_id").is_not_null()).rows(named=True):
        found.setdefault((row["source"], row["member_id"]), set()).add((row["topic"], row["partition"]))
    return {member: frozenset(pairs) for member, pairs in found.items()}


def _embedded(snapshot: Snapshot[pl.DataFrame]) -> dict[str, frozenset[Partition]]:
    flavours = analyze.member_flavours(snapshot.members).filter(flavour=EKC)
    had = _by_member(snapshot)
    return {row["client_id"]: had.get((KAFKA, row["member_id"]), frozenset()) for row in flavours.rows(named=True)}


def _owners(snapshot: Snapshot[pl.DataFrame]) -> dict[Partition, str]:
    rows = snapshot.ownership.filter((pl.col("source") == ZOOKEEPER) & pl.col("thread_id").is_not_null())
    return {(row["topic"], row["partition"]): row["thread_id"] for row in rows.rows(named=True)}


def _positions(snapshot: Snapshot[pl.DataFrame]) -> dict[Partition, Position]:
    logs = {(row["topic"], row["partition"]): row for row in snapshot.log_offsets.rows(named=True)}
    stores: dict[str, dict[Partition, dict[str, object]]] = {ZOOKEEPER: {}, KAFKA: {}}
    for row in snapshot.committed_offsets.rows(named=True):
        stores[row["store"]][row["topic"], row["partition"]] = row
    found = {}
    for pair in sorted({*stores[ZOOKEEPER], *stores[KAFKA]}):
        old, new, log = stores[ZOOKEEPER].get(pair, {}), stores[KAFKA].get(pair, {}), logs.get(pair, {})
        found[pair] = Position(
            old.get("committed_offset"),  # type: ignore[arg-type]
            old.get("version"),  # type: ignore[arg-type]
            new.get("committed_offset"),  # type: ignore[arg-type]
            log.get("log_start_offset"),
            log.get("log_end_offset"),
        )
    return found


def _threads(snapshot: Snapshot[pl.DataFrame]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in snapshot.subscriptions.filter(source=ZOOKEEPER).rows(named=True):
        found.setdefault(row["member_id"], {})[row["topic"]] = row["n_threads"]
    return found


def _subscribed(snapshot: Snapshot[pl.DataFrame]) -> dict[str, int]:
    topics = snapshot.subscriptions["topic"].unique().to_list()
    counts = snapshot.topic_partitions.filter(pl.col("topic").is_in(topics)).group_by("topic").len()
    return {row["topic"]: row["len"] for row in counts.sort("topic").rows(named=True)}


def counted(counts: Mapping[str, int]) -> str:
    """Members by flavour, in words."""
    return ", ".join(f"{count} {flavour}" for flavour, count in sorted(counts.items()) if count) or "no member"


def named(pair: Partition) -> str:
    """``topic-partition``."""
    return f"{pair[0]}-{pair[1]}"


def told(pairs: frozenset[Partition], at_most: int = 3) -> str:
    """The first few by name, the rest counted."""
    names = [named(pair) for pair in sorted(pairs)]
    return ", ".join(names[:at_most]) + (f" and {len(names) - at_most} more" if len(names) > at_most else "")
