"""The effects of a member's protocol. Each reports what to do and, after an arrow, which answer comes back.

``coordination`` yields effects; ``driver`` executes them on real servers.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from kit.consumer.zookeeper.assignors import Assignment, Members, Partitions, TopicAndPartition

RESERVATION_SUFFIX = "-kc-0"
Offsets: TypeAlias = Mapping[TopicAndPartition, int]
Pairs: TypeAlias = frozenset[TopicAndPartition]


@dataclass(frozen=True, slots=True)
class GroupView:
    """The group as ZooKeeper has it, ``ids`` read before ``migration/ids`` (R7).

    ``is_registered``: this member's registration is there and of the current session. ``members`` is consumer id →
    topic → number of streams; ``unreadable`` consumer id → what is wrong with its registration. ``has_brokers`` is
    False while ``/brokers/ids`` is empty. ``epoch`` changes with everything that was read.
    """

    is_registered: bool
    members: Members
    migration_enabled: frozenset[str]
    toggle: str | None
    partitions: Partitions
    unreadable: Mapping[str, str] = field(default_factory=dict)
    has_brokers: bool = True
    epoch: Hashable = None


class Membership(Enum):
    """The embedded consumer's membership of the Kafka group."""

    OUT = "out"
    REBALANCING = "rebalancing"
    IN = "in"


@dataclass(frozen=True, slots=True)
class KafkaAssignment:
    """The embedded consumer's assignment; ``epoch`` counts its rebalances and losses."""

    membership: Membership
    epoch: int = 0
    partitions: Pairs = frozenset()


@dataclass(frozen=True, slots=True)
class KafkaGroup:
    """The Kafka group as its coordinator describes it.

    ``plain`` is member id → partitions of a plain consumer (KC); ``embedded`` is consumer id → partitions. Both are
    complete only when ``is_stable``. ``guessed``: member ids of which it is not known yet what they are.
    """

    plain: Mapping[str, Pairs] = field(default_factory=dict)
    embedded: Mapping[str, Pairs] = field(default_factory=dict)
    is_stable: bool = True
    guessed: frozenset[str] = frozenset()


class Effect:
    """The requests of ``coordination`` to its driver."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReadGroup(Effect):
    """→ GroupView; watches are set before anything is read (R8)."""


@dataclass(frozen=True, slots=True)
class ReadKafkaAssignment(Effect):
    """→ KafkaAssignment."""


@dataclass(frozen=True, slots=True)
class ReadKafkaGroup(Effect):
    """→ KafkaGroup, or None when the coordinator does not answer.

    ``consumer_ids`` are those that are registered. Without ``is_fresh`` an answer of this generation may be reused.
    ``is_fresh`` is needed because a plain consumer joins the group before the embedded one
    hears of the rebalance.
    """

    consumer_ids: frozenset[str]
    is_fresh: bool = True


@dataclass(frozen=True, slots=True)
class ReadIds(Effect):
    """→ the children of ``ids``. A change since ReadGroup still makes the round stale."""


@dataclass(frozen=True, slots=True)
class ReadReservations(Effect):
    """→ bool: whether some owner znode is a reservation."""


@dataclass(frozen=True, slots=True)
class ReadHeld(Effect):
    """→ Assignment: the owner znodes that were created in the current session."""


@dataclass(frozen=True, slots=True)
class ReadToggle(Effect):
    """→ the toggle's text, from ZooKeeper's leader; None: no such znode; ``kafka`` when ZooKeeper does not answer."""


@dataclass(frozen=True, slots=True)
class IsStale(Effect):
    """→ bool: whether a watch fired or the Kafka group rebalanced since ReadGroup."""


@dataclass(frozen=True, slots=True)
class BeforeReleasing(Effect):
    """Call the application's listener before these partitions are released."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class BeforeStarting(Effect):
    """Call the listener with the whole group's assignment. None: the Kafka group's, see :func:`whole_assignment`."""

    view: GroupView
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class Stop(Effect):
    """→ Offsets: nothing of ``partitions`` is delivered after this; next offsets of those it was consuming."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class StopKafkaAssigned(Effect):
    """→ Offsets: end the Kafka group's current assignment epoch; as Stop for every partition started in it."""


@dataclass(frozen=True, slots=True)
class StopAll(Effect):
    """→ Offsets: as Stop, for every partition. The round that is under way starts nothing more."""


@dataclass(frozen=True, slots=True)
class StopOthers(Effect):
    """Deliver nothing but ``partitions``. All other partitions belong to other members: their offsets are not
    committed.
    """

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class DiscardUnsaved(Effect):
    """The rebalance is about to be answered: an offset that Kafka lacks by now must not be committed later."""


@dataclass(frozen=True, slots=True)
class CommitZookeeper(Effect):
    """→ partitions whose offset ZooKeeper may lack, because it did not answer."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class CopyToZookeeper(Effect):
    """Write to ZooKeeper what plain consumers committed to Kafka, even with ``auto.commit.enable=false``.

    → partitions whose offset in ZooKeeper is lower.
    """

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class CommitKafka(Effect):
    """Commit those that Kafka lacks, within a short time: the owner znode must not wait for Kafka (R3).

    ``is_last``: the member leaves. No later commit includes these offsets, so this one may wait for the member to join.
    """

    offsets: Offsets
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class FetchKafka(Effect):
    """→ (topic, partition) → next offset in Kafka, 0 where there is none; partitions that failed are left out."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class Release(Effect):
    """Delete owner znodes, each only if it is of the current session (R15)."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class ClaimAll(Effect):
    """→ partitions that others hold. Create all owner znodes or, when one can't be created, none.

    A large claim takes several transactions, so others may see a part of it for a moment.
    """

    threads: Assignment


@dataclass(frozen=True, slots=True)
class ClaimEach(Effect):
    """→ partitions that others hold. Create every owner znode that can be created."""

    threads: Assignment


@dataclass(frozen=True, slots=True)
class Rename(Effect):
    """→ partitions that are not this member's any more. Write another thread of this member into owner znodes."""

    threads: Assignment


@dataclass(frozen=True, slots=True)
class FetchOffsets(Effect):
    """→ (topic, partition) → next offset; partitions that failed are left out."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class Keep(Effect):
    """→ partitions that are being consumed and continue under ``assignment_epoch`` (None: ZooKeeper's assignment)."""

    threads: Assignment
    assignment_epoch: int | None


@dataclass(frozen=True, slots=True)
class Start(Effect):
    """→ partitions started; those whose session or ``assignment_epoch`` has ended are not."""

    threads: Assignment
    offsets: Offsets
    assignment_epoch: int | None
