"""One group as the model's truth has it: who is a member, who therefore reads what, and how that looks from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kit.consumer.zookeeper.assignors import assign
from kit.consumer.zookeeper.config import HASH_1_0, RANGE
from kit.errors import NotFound
from kit.moves.group.group_state import (
    EKC,
    FLAVOURS,
    KC,
    MEZKCC,
    OZKCC,
    GroupState,
    MemberState,
    Partition,
    PartitionOffsets,
)
from kit.moves.group.toggle import mode_path
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary.znodes import Tree

TOPIC, N_PARTITIONS = "orders", 6
PARTITIONS = tuple((TOPIC, number) for number in range(N_PARTITIONS))
SETTLES_S = 4.0
"""The time for which a group rebalances after a member came or went, or the toggle was set."""
LAG = 3


@dataclass(frozen=True)
class Start:
    """By an order of which run's step, there or back, somebody was started."""

    run_id: str
    step_id: str | None
    is_back: bool


@dataclass(frozen=True)
class One:
    """One process; ``started_for`` None: no run asked for it."""

    member_id: str
    flavour: str
    host: str
    since: datetime
    started_for: Start | None = None


@dataclass(frozen=True)
class Mix:
    """The facts that an observation shows a careful operator: the members, and the toggle."""

    counts: Counter[str]
    mode: str | None
    flavours: Mapping[str, str] = field(default_factory=dict)
    """Member → flavour."""

    def changed(self, lost: str | None = None, won: str | None = None) -> Mix:
        counts = Counter(self.counts)
        counts.subtract([each for each in (lost,) if each])
        counts.update([each for each in (won,) if each])
        return Mix(+counts, self.mode, self.flavours)

    def toggled(self, mode: str | None) -> Mix:
        return Mix(self.counts, mode, self.flavours)

    @property
    def effective(self) -> str | None:
        """KIP-125: Kafka's assignment is in force if the znode says so and no member is an old one."""
        if self.counts[OZKCC] or (self.counts[MEZKCC] and self.mode != KAFKA):
            return ZOOKEEPER
        return KAFKA if self.counts[MEZKCC] or self.counts[KC] else None

    @property
    def reads_twice(self) -> bool:
        """A KC takes what Kafka's coordinator gives it; while ZooKeeper's assignment is in force others have it too."""
        return bool(self.counts[KC]) and self.effective == ZOOKEEPER


class ModelGroup:
    """``touched`` counts what anybody did to it; ``now`` is the model's clock; ``flavours``: those of its members."""

    flavours: tuple[str, ...] = FLAVOURS

    def __init__(self, name: str, tree: Tree, flavours: tuple[str, ...], now: datetime) -> None:
        self.name, self._tree = name, tree
        self.members: list[One] = []
        self.everybody: dict[str, One] = {}
        """Also those who are gone."""
        self._numbers = 0
        self.settled_at = now
        self.touched = 0
        self.progress = 100
        self.kafka: int | None = None
        tree.create(f"/consumers/{name}/ids", b"", makepath=True)
        for flavour in flavours:
            self.start(flavour, f"host{self._numbers}", now - timedelta(hours=1))
        self.settled_at = now
        self.hand_out(now)

    @property
    def mode(self) -> str | None:
        return self._tree.text(mode_path(self.name))

    @property
    def mix(self) -> Mix:
        counts = Counter(each.flavour for each in self.members)
        return Mix(counts, self.mode, {each.member_id: each.flavour for each in self.members})

    def start(self, flavour: str, host: str, now: datetime, by: Start | None = None) -> One:
        self._numbers += 1
        one = One(f"{self.name}_{host}-{flavour.lower()}-{self._numbers}", flavour, host, now, by)
        self.members.append(one)
        self.everybody[one.member_id] = one
        self.disturb(now)
        return one

    def stop(self, member_id: str, now: datetime) -> One | None:
        found = next((each for each in self.members if each.member_id == member_id), None)
        if found is not None:
            self.members.remove(found)
            self.disturb(now)
        return found

    def disturb(self, now: datetime) -> None:
        self.touched += 1
        self.settled_at = now + timedelta(seconds=SETTLES_S)

    def is_settled(self, now: datetime) -> bool:
        # A clock that was set back doesn't make a group rebalance for ever.
        return not now < self.settled_at <= now + timedelta(seconds=SETTLES_S)

    def hand_out(self, now: datetime) -> None:
        """Whoever is there commits where its flavour commits."""
        if not self.members or not self.is_settled(now):
            return
        self.progress += 1
        counts = self.mix.counts
        if counts[OZKCC] or counts[MEZKCC]:
            for topic, number in PARTITIONS:
                self._commit(f"/consumers/{self.name}/offsets/{topic}/{number}")
        if counts[KC] or counts[MEZKCC]:
            self.kafka = self.progress

    def _commit(self, path: str) -> None:
        if path in self._tree.nodes:
            self._tree.set(path, str(self.progress).encode())
        else:
            self._tree.create(path, str(self.progress).encode(), makepath=True)

    def group_state(self, now: datetime) -> GroupState:
        """Return the state that ``group_state.observe`` would find; ``test_adversary_model.py`` compares both."""
        if not self.members and self._tree.text(f"/consumers/{self.name}/ids") is None:
            raise NotFound(f"there is no group {self.name!r}, neither in ZooKeeper nor in Kafka")
        mix, settled = self.mix, self.is_settled(now)
        old, kafka = self._owned(), self._assigned()
        shown = {each.member_id: self._had(each, mix, old, kafka) for each in self.members}
        if not settled:
            shown = {name: frozenset[Partition]() for name in shown}
        members = sorted(self.members, key=lambda each: each.member_id)
        mode = mode_path(self.name)
        return GroupState(
            group_id=self.name,
            observed_at=now,
            stage=stage_of(mix),
            effective_mode=mix.effective,
            mode=mix.mode,
            mode_version=self._tree.nodes[mode].version if mode in self._tree.nodes else None,
            members=tuple(
                MemberState(
                    each.member_id,
                    each.member_id,
                    each.flavour,
                    each.host,
                    shown[each.member_id],
                    None if each.flavour == KC else each.since,
                )
                for each in members
            ),
            embedded={each.member_id: kafka[each.member_id] for each in members if each.flavour == MEZKCC},
            owners=self.owners(now),
            kafka_state=self.kafka_state(now),
            coordinator=0 if self.kafka_state(now) else None,
            offsets={pair: self._position(pair) for pair in PARTITIONS if self._has_position(pair)},
            threads={each.member_id: {TOPIC: 1} for each in self.members if each.flavour != KC},
            subscribed={TOPIC: N_PARTITIONS} if self.members else {},
            blockers={"unsafe_mix": "KCs beside ZooKeeper's assignment"} if mix.reads_twice else {},
        )

    def kafka_state(self, now: datetime) -> str | None:
        if any(each.flavour != OZKCC for each in self.members):
            return "Stable" if self.is_settled(now) else "PreparingRebalance"
        return "Empty" if self.kafka is not None else None

    def owners(self, now: datetime) -> dict[Partition, str]:
        """Owner znodes: MEZKCCs write them for what they consume in either mode."""
        if not self.is_settled(now):
            return {}
        if self.mix.effective == ZOOKEEPER:
            return self._threads()
        kafka = self._assigned()
        enabled = [each.member_id for each in self.members if each.flavour == MEZKCC]
        return {pair: f"{member}-0" for member in enabled for pair in kafka[member]}

    def _had(self, one: One, mix: Mix, old: dict[str, frozenset[Partition]], kafka: dict[str, frozenset[Partition]]):
        by_kafka = one.flavour == KC or (one.flavour == MEZKCC and mix.effective == KAFKA)
        return (kafka if by_kafka else old).get(one.member_id, frozenset())

    def _threads(self) -> dict[Partition, str]:
        threads = {each.member_id: {TOPIC: 1} for each in self.members if each.flavour != KC}
        return assign(RANGE, threads, {TOPIC: range(N_PARTITIONS)}, HASH_1_0) if threads else {}

    def _owned(self) -> dict[str, frozenset[Partition]]:
        found: dict[str, set[Partition]] = {}
        for pair, thread in self._threads().items():
            found.setdefault(thread.rpartition("-")[0], set()).add(pair)
        return {member: frozenset(pairs) for member, pairs in found.items()}

    def _assigned(self) -> dict[str, frozenset[Partition]]:
        """Kafka's coordinator counts embedded consumers and KCs."""
        names = sorted(each.member_id for each in self.members if each.flavour != OZKCC)
        return {name: frozenset(PARTITIONS[index :: len(names)]) for index, name in enumerate(names)}

    def _has_position(self, pair: Partition) -> bool:
        return self.kafka is not None or self.offset_path(pair) in self._tree.nodes

    def offset_path(self, pair: Partition) -> str:
        return f"/consumers/{self.name}/offsets/{pair[0]}/{pair[1]}"

    def _position(self, pair: Partition) -> PartitionOffsets:
        node = self._tree.nodes.get(self.offset_path(pair))
        old = None if node is None else int(node.data)
        return PartitionOffsets(old, None if node is None else node.version, self.kafka, 0, self.log_end)

    @property
    def log_end(self) -> int:
        return self.progress + LAG


def stage_of(mix: Mix) -> str:
    """Return the group's stage on KIP-125's path, by the model's own rules."""
    has = [bool(mix.counts[flavour]) for flavour in FLAVOURS]
    if mix.reads_twice:
        return "unsafe mix"
    match has:
        case [True, False, False]:
            return "OZKCC"
        case [True, True, False]:
            return "canary MEZKCC"
        case [False, True, False]:
            return "Kafka coordination" if mix.effective == KAFKA else "all MEZKCC"
        case [False, True, True]:
            return "canary KC"
        case [False, False, True]:
            return "all KC"
    return "empty"


__all__ = ["EKC", "KC", "MEZKCC", "OZKCC", "PARTITIONS", "TOPIC", "Mix", "ModelGroup", "One", "stage_of"]
