"""Requests of a lease, in kafka-python's codecs: of a classic group's only member. No I/O."""

from __future__ import annotations

from typing import Any

from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

from kit.moves.offsets.requests import leave as leave


def join(group_id: str, member_id: str, protocol_type: str, metadata: bytes, session_ms: int) -> Any:
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=session_ms,
        member_id=member_id,
        group_instance_id=None,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="lease", metadata=metadata)],
        max_version=5,
    )


def sync(group_id: str, generation: int, member_id: str) -> Any:
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=generation,
        member_id=member_id,
        group_instance_id=None,
        assignments=[SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=b"")],
        max_version=3,
    )


def heartbeat(group_id: str, generation: int, member_id: str) -> Any:
    return HeartbeatRequest(
        group_id=group_id, generation_id=generation, member_id=member_id, group_instance_id=None, max_version=3
    )


def commit(group_id: str, generation: int, member_id: str, topic: str, metadata: str) -> Any:
    """The offset 0 of the topic's partition 0."""
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    place = topic_type.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=0, committed_leader_epoch=-1, committed_metadata=metadata
    )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic_type(name=topic, partitions=[place])],
        max_version=7,
    )


def fetch(group_id: str, topic: str) -> Any:
    """Return the mark that ``commit`` left. Brokers below 3.0 have no newer version than 7."""
    topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    return OffsetFetchRequest(group_id=group_id, topics=topics, min_version=2, max_version=7)
