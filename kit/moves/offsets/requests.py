"""Requests and responses for a group's offsets, in kafka-python's codecs. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from kafka.protocol.admin.groups import DeleteGroupsRequest
from kafka.protocol.consumer import (
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kit.groups.read import offset_fetch
from kit.moves.offsets.moves import Stored
from kit.moves.offsets.selection import Place

_ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""Java's: a consumer that joins meanwhile shares one of them, or its join would be refused."""
_COMMIT_VERSION = 8
"""The newest version with the same answers for groups of both protocols (KIP-848 gave version 9 its own errors)."""

Asked: TypeAlias = Mapping[Place, Stored]
Codes: TypeAlias = Callable[[Any], Iterable[tuple[Place, int]]]
"""From the response to a write, each partition's error code."""


def parse_stored(each: Any) -> Stored:
    if each.error_code:
        return Stored(error=offset_fetch.describe(each.error_code))
    if each.committed_offset < 0:
        return Stored()
    epoch = each.committed_leader_epoch
    return Stored(each.committed_offset, each.metadata or None, None if epoch is None or epoch < 0 else epoch)


def commit_of(group_id: str, offsets: Asked, generation: int = -1, member_id: str = "") -> Any:
    """Return the commit of a member; without its generation and id a commit from outside, which a group with
    members refuses.
    """
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    by_topic: dict[str, list[Any]] = {}
    for (topic, partition), stored in offsets.items():
        by_topic.setdefault(topic, []).append(
            topic_type.OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=stored.offset,
                committed_leader_epoch=-1 if stored.leader_epoch is None else stored.leader_epoch,
                committed_metadata=stored.metadata or "",
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic_type(name=name, partitions=partitions) for name, partitions in by_topic.items()],
        max_version=_COMMIT_VERSION,
    )


def join(group_id: str, member_id: str, topics: Sequence[str], session_s: float) -> Any:
    """Join like a consumer that is subscribed to the topics."""
    metadata = ConsumerProtocolSubscription(topics=list(topics), user_data=b"", owned_partitions=[], version=1).encode()
    of_protocol = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=int(session_s * 1000),
        rebalance_timeout_ms=int(session_s * 1000),
        member_id=member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocols=[of_protocol(name=name, metadata=metadata) for name in _ASSIGNORS],
        max_version=5,
    )


def sync(group_id: str, generation: int, member_id: str) -> Any:
    """Sync like the leader and only member, with no partition assigned."""
    nothing = ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"", version=1).encode()
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=nothing)],
        max_version=3,
    )


def leave(group_id: str, member_id: str) -> Any:
    """The request that ends a membership: one's own, or another member's."""
    member = LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=None)
    return LeaveGroupRequest(group_id=group_id, members=[member], min_version=3, max_version=3)


def delete_of(group_id: str, offsets: Asked) -> Any:
    topic_type = OffsetDeleteRequest.OffsetDeleteRequestTopic
    by_topic: dict[str, list[Any]] = {}
    for topic, partition in offsets:
        by_topic.setdefault(topic, []).append(topic_type.OffsetDeleteRequestPartition(partition_index=partition))
    topics = [topic_type(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    return OffsetDeleteRequest(group_id=group_id, topics=topics)


def delete_groups_of(group_ids: Sequence[str]) -> Any:
    return DeleteGroupsRequest(groups_names=list(group_ids))


def commit_codes(asked: Asked) -> Codes:
    return lambda response: (
        ((topic.name, each.partition_index), each.error_code) for topic in response.topics for each in topic.partitions
    )


def delete_codes(asked: Asked) -> Codes:
    """An error of the whole request counts for each partition."""

    def codes(response: Any) -> Iterator[tuple[Place, int]]:
        if response.error_code:
            yield from ((place, response.error_code) for place in asked)
        else:
            yield from commit_codes(asked)(response)

    return codes
