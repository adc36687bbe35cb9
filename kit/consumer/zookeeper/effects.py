"""What a member's protocol asks to be done: each effect says what, and, after an arrow, what it is answered with.

``coordination`` yields effects, ``driver`` carries them out on real servers.
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
    """What ZooKeeper said about the group, ``ids`` read before ``migration/ids`` (R7).

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
    """The embedded consumer's, in the Kafka group."""

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
    """The Kafka group as its coordinator describes it: what plain members (KC), by member id, and embedded ones, by
    consumer id, have. Unless it ``is_stable`` that is nothing yet."""

    plain: Mapping[str, Pairs] = field(default_factory=dict)
    embedded: Mapping[str, Pairs] = field(default_factory=dict)
    is_stable: bool = True


@dataclass(frozen=True, slots=True)
class ReadGroup:
    """→ GroupView; watches are set before anything is read (R8)."""


@dataclass(frozen=True, slots=True)
class ReadKafkaAssignment:
    """→ KafkaAssignment."""


@dataclass(frozen=True, slots=True)
class ReadKafkaGroup:
    """→ KafkaGroup, or None when nobody says; ``consumer_ids`` tell embedded members from plain ones.

    Unless ``is_fresh`` what was said in this generation will do; a plain consumer that joins is in the group before the
    embedded one hears of the rebalance.
    """

    consumer_ids: frozenset[str]
    is_fresh: bool = True


@dataclass(frozen=True, slots=True)
class ReadIds:
    """→ the children of ``ids``. Unlike ReadGroup it is no new beginning: what came since is still news."""


@dataclass(frozen=True, slots=True)
class ReadReservations:
    """→ bool: whether some owner znode is a reservation."""


@dataclass(frozen=True, slots=True)
class ReadHeld:
    """→ Assignment: the owner znodes that are of the current session."""


@dataclass(frozen=True, slots=True)
class ReadToggle:
    """→ the toggle's text, read anew; None: no such znode. Raises when ZooKeeper can't be asked."""


@dataclass(frozen=True, slots=True)
class IsStale:
    """→ bool: whether a watch or a rebalance came since ReadGroup."""


@dataclass(frozen=True, slots=True)
class BeforeReleasing:
    """Tell the listener."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class BeforeStarting:
    """Tell the listener the whole group's assignment; None: it is the Kafka group's, see :func:`whole_assignment`."""

    view: GroupView
    assignment: Assignment | None


@dataclass(frozen=True, slots=True)
class Stop:
    """→ Offsets: nothing of ``partitions`` is handed out after this; next offsets of those it was consuming."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class StopKafkaAssigned:
    """→ Offsets: end the Kafka group's current assignment epoch; as Stop for every partition started in it."""


@dataclass(frozen=True, slots=True)
class StopAll:
    """→ Offsets: as Stop, for everything; and the round that is under way starts nothing any more."""


@dataclass(frozen=True, slots=True)
class StopOthers:
    """Nothing but ``partitions`` is handed out, and nothing of the rest committed: it is not this member's."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class DiscardUnsaved:
    """The rebalance is about to be answered: what was stopped and is not in Kafka by now must not come there later."""


@dataclass(frozen=True, slots=True)
class CommitZookeeper:
    """→ partitions whose offset ZooKeeper may not have, since it could not be asked."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class CopyToZookeeper:
    """What plain consumers committed to Kafka, also by a member that commits nothing of its own → partitions of which
    ZooKeeper has less."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class CommitKafka:
    """Of these what is not in Kafka yet; within a short time, as it must not keep an owner znode (R3)."""

    offsets: Offsets


@dataclass(frozen=True, slots=True)
class FetchKafka:
    """→ (topic, partition) → next offset, as the group has it in Kafka; what could not be fetched is left out."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class Release:
    """Delete owner znodes, each only if it is of the current session (R15)."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class ClaimAll:
    """→ partitions others hold. Make all owner znodes or, when one can't be made, none."""

    threads: Assignment


@dataclass(frozen=True, slots=True)
class ClaimEach:
    """→ partitions others hold. Make every owner znode that can be made."""

    threads: Assignment


@dataclass(frozen=True, slots=True)
class Rename:
    """Write another thread of this member into owner znodes it holds."""

    threads: Assignment


@dataclass(frozen=True, slots=True)
class FetchOffsets:
    """→ (topic, partition) → next offset; what could not be fetched is left out."""

    partitions: Pairs


@dataclass(frozen=True, slots=True)
class Keep:
    """→ partitions that are being consumed and go on under ``assignment_epoch`` (None: ZooKeeper's assignment)."""

    threads: Assignment
    assignment_epoch: int | None


@dataclass(frozen=True, slots=True)
class Start:
    """→ partitions started; those whose session or ``assignment_epoch`` is over are not."""

    threads: Assignment
    offsets: Offsets
    assignment_epoch: int | None


Effect: TypeAlias = (
    ReadGroup
    | ReadKafkaAssignment
    | ReadKafkaGroup
    | ReadIds
    | ReadReservations
    | ReadHeld
    | ReadToggle
    | IsStale
    | BeforeReleasing
    | BeforeStarting
    | Stop
    | StopKafkaAssigned
    | StopAll
    | StopOthers
    | DiscardUnsaved
    | CommitZookeeper
    | CopyToZookeeper
    | CommitKafka
    | Release
    | ClaimAll
    | ClaimEach
    | Rename
    | FetchOffsets
    | FetchKafka
    | Keep
    | Start
)
