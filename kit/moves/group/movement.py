"""Compare two observations of a group: where its old members commit, and which members commit nothing.

An old consumer commits to ZooKeeper, to Kafka, or to both, one right after the other (``offsets.storage``,
``dual.commit.enabled``), by one setting for all its partitions. So an offset in Kafka that is stalled while
ZooKeeper's moves beside it is left over; it has to differ from ZooKeeper's in both observations, because one of them
may cut through a commit to both. OffsetFetch shows no times of commits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kit.moves.group.group_state import OZKCC, GroupState, MemberState, Partition, PartitionOffsets, listed
from kit.text.quantity import quantity

NOTHING = PartitionOffsets(None, None, None, None, None)
_Test = Callable[[PartitionOffsets, PartitionOffsets], bool]


@dataclass(frozen=True, slots=True)
class Storage:
    """``commits`` True: an old member commits to Kafka; False: none does; None: unknown. And why."""

    commits: bool | None
    sentence: str


def storage(before: GroupState, now: GroupState) -> Storage:
    """Return whether old members commit to Kafka, by the offsets of the partitions they own.

    A member that commits less often than the observations are apart (an old consumer's default is a minute) shows no
    movement: then an offset in Kafka behind ZooKeeper's counts as left over, and so does one with a leader epoch,
    which no old consumer writes. One that is equal, or ahead, is not distinguished from one that is committed.
    """
    apart = f"between two observations {seconds_between(before, now):.0f} s apart"
    old = [member for member in now.members if member.flavour == OZKCC]
    moved = {each.member_id: _where(before, now, each, _moved_in_kafka) for each in old}
    for member_id, pairs in moved.items():
        if pairs:
            return Storage(
                True,
                f"Kafka's offsets of {listed(pairs)} moved {apart} while {member_id} owned them. Set"
                " offsets.storage=zookeeper and dual.commit.enabled=false in all old consumers first.",
            )
    in_kafka = {each.member_id: _where(before, now, each, _is_in_kafka) for each in old}
    hidden = {each.member_id for each in old if in_kafka[each.member_id] and not _where(before, now, each, _left_over)}
    if hidden:
        pairs = frozenset(pair for member_id in hidden for pair in in_kafka[member_id])
        return Storage(
            None,
            f"Kafka holds offsets of {listed(pairs)}, not behind ZooKeeper's, and neither moved {apart}, so it is "
            f"unknown whether {min(hidden)} commits to Kafka. Observe longer than its auto.commit.interval.ms while "
            "it reads records. Or, if you are sure that no member commits to Kafka, delete these offsets: `offramp "
            "plan offsets delete`.",
        )
    n_left = sum(map(len, in_kafka.values()))
    if not n_left:
        return Storage(False, "Kafka holds no offset of the partitions that old members own.")
    return Storage(
        False,
        f"Kafka's offsets of {quantity(n_left, 'partition')} are left over from earlier: no offset moved {apart}.",
    )


def silent_members(before: GroupState, now: GroupState) -> Mapping[str, frozenset[Partition]]:
    """Members all of whose partitions with records left were stalled in both stores, with those partitions."""
    silent = {}
    for member in now.members:
        lagging = _where(before, now, member, lambda one, other: bool(one.lag) and bool(other.lag))
        if lagging and not any(_moved(before, now, pair) for pair in member.partitions):
            silent[member.member_id] = lagging
    return silent


def n_committed(before: GroupState, now: GroupState) -> tuple[int, int]:
    """Partitions of which an offset moved, and those that had records left at the first observation."""
    lagging = [pair for pair, offsets in before.offsets.items() if offsets.lag]
    return sum(_moved(before, now, pair) for pair in now.offsets), len(lagging)


def seconds_between(before: GroupState, now: GroupState) -> float:
    return (now.observed_at - before.observed_at).total_seconds()


def _where(before: GroupState, now: GroupState, member: MemberState, holds: _Test) -> frozenset[Partition]:
    """Return the partitions of the member for which the condition holds."""
    return frozenset(
        pair for pair in member.partitions if holds(before.offsets.get(pair, NOTHING), now.offsets.get(pair, NOTHING))
    )


def _moved(before: GroupState, now: GroupState, pair: Partition) -> bool:
    one, other = before.offsets.get(pair, NOTHING), now.offsets.get(pair, NOTHING)
    in_zookeeper = ((each.zookeeper, each.zookeeper_version) for each in (one, other))
    return _moved_in_kafka(one, other) or len(set(in_zookeeper)) > 1


def _is_in_kafka(before: PartitionOffsets, now: PartitionOffsets) -> bool:
    return now.kafka is not None


def _moved_in_kafka(before: PartitionOffsets, now: PartitionOffsets) -> bool:
    """One that has gone is no commit: it was deleted, or is out of its retention."""
    return now.kafka is not None and now.kafka != before.kafka


def _left_over(before: PartitionOffsets, now: PartitionOffsets) -> bool:
    """One such partition reports its member; so does one that moves in ZooKeeper and isn't in Kafka at all."""
    if before.zookeeper is None or now.zookeeper is None:
        return False
    differs = before.kafka != before.zookeeper and now.kafka != now.zookeeper
    is_behind = all(each.kafka is not None and each.kafka < (each.zookeeper or 0) for each in (before, now))
    return (differs and now.zookeeper != before.zookeeper) or is_behind or now.kafka_leader_epoch is not None
