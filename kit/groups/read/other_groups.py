"""Share groups (KIP-932) and streams groups (KIP-1071): members, assignment and start offsets.

The pinned kafka-python knows the numbers of these requests but not their form. Their classes are made from the JSON
files beside this module: ShareGroupDescribe 1 (brokers >= 4.1), DescribeShareGroupOffsets 0 and 1 (>= 4.1 and 4.2),
StreamsGroupDescribe 0 (>= 4.1, stable since 4.2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from kafka import errors as kafka_errors

from kit.clients.broker_client import BrokerClient
from kit.clients.kafka_messages import messages_of
from kit.groups.read.kafka_member import kafka_member
from kit.tables.groups import CLASSIC, KAFKA, SHARE, STREAMS, Member, Ownership, Subscription

ShareGroupDescribeRequest, ShareGroupDescribeResponse = messages_of("ShareGroupDescribe", "kit.groups.read")
StreamsGroupDescribeRequest, StreamsGroupDescribeResponse = messages_of("StreamsGroupDescribe", "kit.groups.read")
DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse = messages_of(
    "DescribeShareGroupOffsets", "kit.groups.read"
)


_REQUESTS = {SHARE: (ShareGroupDescribeRequest, 1), STREAMS: (StreamsGroupDescribeRequest, 0)}


def can_describe(client: BrokerClient, group_type: str) -> bool:
    """Return whether the brokers have the request for groups of this type."""
    return _has(client, *_REQUESTS[group_type])


def can_fetch_start_offsets(client: BrokerClient) -> bool:
    """Return whether the brokers have DescribeShareGroupOffsets."""
    return _has(client, DescribeShareGroupOffsetsRequest, 0)


def _has(client: BrokerClient, request: Any, version: int) -> bool:
    try:
        return client.supports(request, version)
    except kafka_errors.IncompatibleBrokerVersion:
        return False


def describe_request(group_type: str, group_ids: Sequence[str]) -> Any:
    """One request for many groups of one type and one coordinator."""
    request, version = _REQUESTS[group_type]
    return request(
        group_ids=list(group_ids), include_authorized_operations=False, min_version=version, max_version=version
    )


def start_offsets_request(group_ids: Sequence[str]) -> Any:
    """One request for the start offsets of many share groups of one coordinator: of all initialised partitions."""
    of_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
    groups = [of_group(group_id=group_id, topics=None) for group_id in group_ids]
    return DescribeShareGroupOffsetsRequest(groups=groups, min_version=0, max_version=1)


def start_offsets(response: Any) -> Iterator[tuple[str, int, Any]]:
    """Group id, error code and topics of every group of an answer."""
    return ((each.group_id, each.error_code, each.topics) for each in response.groups)


def members(group_type: str, group: Any) -> list[Member]:
    if group_type == SHARE:
        return [kafka_member(group.group_id, each) for each in group.members]
    return [_streams_member(group.group_id, each) for each in group.members]


def subscriptions(group_type: str, group: Any) -> list[Subscription]:
    """A share member's topics; those that the topology of a streams group reads, for each of its members."""
    asked: list[tuple[str, str, str | None]]
    if group_type == SHARE:
        asked = [(each.member_id, topic, None) for each in group.members for topic in each.subscribed_topic_names]
    else:
        sources = [(topic, name) for name, topics in _sources(group).items() for topic in topics]
        asked = [(each.member_id, topic, name) for each in group.members for topic, name in sources]
    return [Subscription(group.group_id, KAFKA, member_id, topic, 1, name) for member_id, topic, name in asked]


def ownership(group_type: str, group: Any) -> list[Ownership]:
    """Return who reads each partition. A task reads the partition of its number of each source topic of its
    subtopology.

    A source topic may have fewer partitions than its subtopology has tasks, so some of these rows name partitions that
    do not exist. The caller knows which.
    """
    return list(_shared(group) if group_type == SHARE else _tasks(group))


def _shared(group: Any) -> Iterator[Ownership]:
    for member in group.members:
        for topic in member.assignment.topic_partitions:
            for partition in topic.partitions:
                yield _owned(group, topic.topic_name, partition, member, is_shared=True)


def _tasks(group: Any) -> Iterator[Ownership]:
    sources = _sources(group)
    for member in group.members:
        for task in member.assignment.active_tasks:
            for partition in task.partitions:
                for topic in sources.get(task.subtopology_id, ()):
                    yield _owned(group, topic, partition, member, task=f"{task.subtopology_id}_{partition}")


def _owned(group: Any, topic: str, partition: int, member: Any, **columns: Any) -> Ownership:
    return Ownership(group.group_id, KAFKA, topic, partition, member.member_id, None, None, None, **columns)


def _sources(group: Any) -> dict[str, list[str]]:
    """The topics that each subtopology reads; none while the group has no topology."""
    parts = (group.topology.subtopologies or ()) if group.topology is not None else ()
    return {
        part.subtopology_id: sorted({*part.source_topics, *(each.name for each in part.repartition_source_topics)})
        for part in parts
    }


def _streams_member(group_id: str, described: Any) -> Member:
    member = kafka_member(group_id, described, member_type=CLASSIC if described.is_classic else STREAMS)
    held = described.assignment
    return replace(member, standby_tasks=_names(held.standby_tasks), warmup_tasks=_names(held.warmup_tasks))


def _names(tasks: Any) -> tuple[str, ...]:
    return tuple(f"{each.subtopology_id}_{partition}" for each in tasks for partition in each.partitions)
