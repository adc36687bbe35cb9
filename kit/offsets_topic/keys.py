"""Record keys: a type (int16) and what it is about. The type is the schema of key and value both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from kit.offsets_topic.octets import Ints, Mask, Octets

COMMITS = (0, 1)
GENERATION = 2
UNREADABLE = -1
_OTHERS = {
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
"""Key types of Kafka's group coordinator (KIP-848, KIP-932, KIP-1071) that are counted and not decoded."""


def name_of(kind: int) -> str:
    """A key type for people."""
    return f"{kind} {_OTHERS.get(kind, 'unknown')}"


@dataclass(frozen=True)
class Keys:
    """The keys of a batch. ``kind`` is the type, ``UNREADABLE`` where the key is cut or its texts are no UTF-8.

    ``commits`` and ``generations`` are row numbers; the texts have one value per row number of theirs.
    """

    kind: Ints
    commits: Ints
    commit_groups: pa.Array
    commit_topics: pa.Array
    commit_partitions: Ints
    generations: Ints
    generation_groups: pa.Array


def parse_keys(column: pa.Array) -> Keys:
    """A binary column of keys, decoded."""
    octets = Octets(column)
    kind = np.where(octets.end - octets.start >= 2, octets.integer(octets.start, ">i2"), UNREADABLE)
    kind = np.where(kind < 0, UNREADABLE, kind)
    group_at, group_length, after_group = _text(octets, octets.start + 2)
    topic_at, topic_length, after_topic = _text(octets, after_group)
    is_commit, is_generation = kind <= COMMITS[-1], kind == GENERATION
    is_commit &= kind != UNREADABLE
    is_whole = np.where(is_commit, after_topic + 4 <= octets.end, after_group <= octets.end)
    is_whole &= (group_length >= 0) & ((topic_length >= 0) | ~is_commit)
    # Another type's key is only counted, by its type, whatever stands in it.
    kind = np.where((is_commit | is_generation) & ~is_whole, UNREADABLE, kind)
    commits, generations = np.flatnonzero(is_commit & is_whole), np.flatnonzero(is_generation & is_whole)
    groups, bad_group = octets.texts(group_at[commits], group_length[commits])
    topics, bad_topic = octets.texts(topic_at[commits], topic_length[commits])
    other_groups, bad_other = octets.texts(group_at[generations], group_length[generations])
    is_bad = bad_group | bad_topic
    kind[commits[is_bad]] = kind[generations[bad_other]] = UNREADABLE
    partitions = octets.integer(after_topic, ">i4")[commits]
    if is_bad.any():
        commits, groups, topics, partitions = _without(is_bad, commits, groups, topics, partitions)
    if bad_other.any():
        generations, other_groups = _without(bad_other, generations, other_groups)
    return Keys(kind, commits, groups, topics, partitions, generations, other_groups)


def _text(octets: Octets, at: Ints) -> tuple[Ints, Ints, Ints]:
    """Where a string begins whose length stands at ``at``, that length, and what comes after."""
    length = octets.integer(at, ">i2")
    return at + 2, length, at + 2 + np.maximum(length, 0)


def _without(bad: Mask, *columns: Ints | pa.Array) -> list[Ints | pa.Array]:
    keep = pa.array(~bad)
    return [each[~bad] if isinstance(each, np.ndarray) else each.filter(keep) for each in columns]
