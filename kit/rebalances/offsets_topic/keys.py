"""Record keys: a type (int16) and what it is about. The type is the schema of key and value both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kit.rebalances.offsets_topic.binary_column import BinaryColumn, Ints, Mask

COMMITS = (0, 1)
GENERATION = 2
GROUP_EPOCH, MEMBER, TARGET_EPOCH, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT = EPOCHS = (3, 5, 6, 7, 8)
_OF_MEMBERS = (MEMBER, TARGET_ASSIGNMENT, CURRENT_ASSIGNMENT)
UNREADABLE = -1
_NAMES = {
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    9: "ShareGroupPartitionMetadata",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    18: "StreamsGroupPartitionMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
    24: "StreamsGroupTargetAssignmentResolvedTopicIds",
}
"""Key types of Kafka's group coordinator (KIP-848, KIP-932, KIP-1071); all but ``EPOCHS`` are only counted."""


def name_of(kind: int) -> str:
    """A key type for people."""
    return f"{kind} {_NAMES.get(kind, 'unknown')}"


@dataclass(frozen=True)
class Keys:
    """The keys of a batch. ``kind`` is the type, ``UNREADABLE`` where the key is cut or its texts are no UTF-8.

    ``commits``, ``generations`` and ``epochs`` are row numbers; the texts have one value per row number of theirs,
    ``epoch_members`` null where the key is a group's alone.
    """

    kind: Ints
    commits: Ints
    commit_groups: pa.Array
    commit_topics: pa.Array
    commit_partitions: Ints
    generations: Ints
    generation_groups: pa.Array
    epochs: Ints
    epoch_groups: pa.Array
    epoch_members: pa.Array


def parse_keys(column: pa.Array) -> Keys:
    """A binary column of keys, decoded."""
    octets = BinaryColumn(column)
    kind = np.where(octets.end - octets.start >= 2, octets.integer(octets.start, ">i2"), UNREADABLE)
    kind = np.where(kind < 0, UNREADABLE, kind)
    group_at, group_length, after_group = _text(octets, octets.start + 2)
    second_at, second_length, after_second = _text(octets, after_group)
    is_commit, is_generation, is_epoch = kind <= COMMITS[-1], kind == GENERATION, np.isin(kind, EPOCHS)
    is_commit &= kind != UNREADABLE
    has_second = is_commit | np.isin(kind, _OF_MEMBERS)
    is_whole = np.where(has_second, after_second + 4 * is_commit, after_group) <= octets.end
    is_whole &= (group_length >= 0) & ((second_length >= 0) | ~has_second)
    # Another type's key is only counted, by its type, whatever is in it.
    kind = np.where((is_commit | is_generation | is_epoch) & ~is_whole, UNREADABLE, kind)
    commits, generations, epochs = (np.flatnonzero(each & is_whole) for each in (is_commit, is_generation, is_epoch))
    groups, bad_group = octets.texts(group_at[commits], group_length[commits])
    topics, bad_topic = octets.texts(second_at[commits], second_length[commits])
    other_groups, bad_other = octets.texts(group_at[generations], group_length[generations])
    epoch_groups, bad_epoch_group = octets.texts(group_at[epochs], group_length[epochs])
    of_member = has_second[epochs]
    members, bad_member = octets.texts(second_at[epochs], np.where(of_member, second_length[epochs], 0))
    members = pc.if_else(pa.array(of_member), members, pa.scalar(None, pa.string()))
    is_bad, is_bad_epoch = bad_group | bad_topic, bad_epoch_group | bad_member
    kind[commits[is_bad]] = kind[generations[bad_other]] = kind[epochs[is_bad_epoch]] = UNREADABLE
    partitions = octets.integer(after_second, ">i4")[commits]
    if is_bad.any():
        commits, groups, topics, partitions = _without(is_bad, commits, groups, topics, partitions)
    if bad_other.any():
        generations, other_groups = _without(bad_other, generations, other_groups)
    if is_bad_epoch.any():
        epochs, epoch_groups, members = _without(is_bad_epoch, epochs, epoch_groups, members)
    return Keys(kind, commits, groups, topics, partitions, generations, other_groups, epochs, epoch_groups, members)


def _text(octets: BinaryColumn, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Return where a string begins whose length is at ``at``, that length, and what comes after."""
    length = octets.integer(at, ">i2")
    return at + 2, length, at + 2 + np.maximum(length, 0)


def _without(bad: Mask, *columns: Ints | pa.Array) -> list[Ints | pa.Array]:
    keep = pa.array(~bad)
    return [each[~bad] if isinstance(each, np.ndarray) else each.filter(keep) for each in columns]
