"""Reads from the brokers: their ids, the partitions they lead, where each log starts and ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from kafka import errors as kafka_errors
from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kit.clients.broker_client import (
    DEADLINE_S,
    RETRIABLE_CODES,
    RETRIABLE_FAILURES,
    BrokerClient,
    Deadline,
    describe_code,
)
from kit.errors import ReadError
from kit.tables.groups import Broker, LogOffset, TopicPartition

_LATEST, _EARLIEST, NEWEST = -1, -2, -3
"""The times that ListOffsets takes; ``NEWEST``: the record with the newest timestamp (KIP-734)."""
NEWEST_VERSION = 7
_NO_SUCH_TOPIC = 3

Key: TypeAlias = tuple[str, int]
Listed: TypeAlias = tuple[int, int]
"""Offset and timestamp (epoch ms) of a record; -1 where there is none."""


@dataclass(frozen=True)
class ClusterMetadata:
    """One Metadata answer: the cluster's id, its brokers, every partition, topics by id (16 octets; brokers ≥ 2.8)."""

    cluster_id: str | None
    brokers: tuple[Broker, ...]
    topic_partitions: tuple[TopicPartition, ...]
    topic_names: dict[bytes, str]


def fetch_metadata(client: BrokerClient, deadline_s: float = DEADLINE_S) -> ClusterMetadata:
    """Brokers and partitions. A replica's broker that is not registered is a row with an error.

    Raises:
        ConnectError: no broker answered before the deadline.
    """
    request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
    return metadata_of(client.run(ask_metadata, client, request, Deadline(deadline_s)))


async def ask_metadata(client: BrokerClient, request: Any, deadline: Deadline) -> Any:
    """Send a Metadata request to any broker until one that knows the cluster has answered.

    With ZooKeeper, a broker that has just started serves before the controller has sent it the cluster. Its answer has
    no broker, and no topic exists for it.
    """
    attempt = 0
    while True:
        response = await client.ask(request, None, deadline)
        if response.brokers:
            return response
        if not deadline.allows(attempt):
            raise kafka_errors.KafkaTimeoutError(
                "a broker reports no broker at all, so it has no connection to a controller"
            )
        await client.pause(attempt)
        attempt += 1


def fetch_cluster_ids(client: BrokerClient, deadline_s: float = DEADLINE_S) -> frozenset[str | None]:
    """The cluster ids that brokers answer now: any one broker, and each to which a connection is open.

    None is the answer of a broker that reports no id. A broker that closes its connection meanwhile gives no answer.

    Raises:
        ConnectError: no broker answered before the deadline.
    """
    return client.run(_cluster_ids, client, Deadline(deadline_s))


async def _cluster_ids(client: BrokerClient, deadline: Deadline) -> frozenset[str | None]:
    request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    first = await ask_metadata(client, request, deadline)
    asked = [client.send(request, broker_id) for broker_id in client.connected_ids()]
    ids = {first.cluster_id}
    for answer in asked:
        with suppress(*RETRIABLE_FAILURES):
            ids.add((await answer).cluster_id)
    return frozenset(ids)


def metadata_of(response: Any) -> ClusterMetadata:
    """Return the content of a Metadata answer for all topics."""
    partitions = tuple(row for topic in response.topics for row in _partitions(topic))
    registered = tuple(
        Broker(each.node_id, each.host, each.port, each.rack, each.node_id == response.controller_id, None)
        for each in response.brokers
    )
    missing = {replica for row in partitions for replica in row.replicas} - {broker.broker_id for broker in registered}
    absent = tuple(
        Broker(broker_id, None, None, None, None, None, "not registered: the broker is down or was removed")
        for broker_id in sorted(missing)
    )
    names = {topic.topic_id.bytes: topic.name for topic in response.topics if topic.topic_id is not None}
    return ClusterMetadata(response.cluster_id, registered + absent, partitions, names)


def fetch_log_offsets(
    client: BrokerClient, partitions: Iterable[TopicPartition], deadline_s: float = DEADLINE_S
) -> tuple[LogOffset, ...]:
    """Log start and end (high watermark) of each partition: two ListOffsets per leader, retried after a leader move.

    Raises:
        ConnectError: no broker answered before the deadline.
    """
    leaders = {(each.topic, each.partition): each.leader for each in partitions}
    questions = dict.fromkeys(leaders, _EARLIEST), dict.fromkeys(leaders, _LATEST)
    (starts, ends), failed = client.run(list_offsets, client, leaders, questions, Deadline(deadline_s))
    unknown = (None, None)
    return tuple(
        LogOffset(*key, starts.get(key, unknown)[0], ends.get(key, unknown)[0], failed.get(key)) for key in leaders
    )


def fetch_offsets_at(client: BrokerClient, partitions: Iterable[Key], timestamp_ms: int) -> dict[Key, int | None]:
    """The first offset whose record is not older than ``timestamp_ms`` (since the epoch); None: there is none.

    One ListOffsets per leader, retried after a leader move.

    Raises:
        ConnectError: no broker answered before the deadline.
        ReadError: a leader refused, or did not answer; the first such partition is named.
    """
    listed, failed = client.run(_fetch_offsets_at, client, set(partitions), timestamp_ms, Deadline())
    if failed:
        (topic, partition), error = min(failed.items())
        raise ReadError(f"the offset of {topic}-{partition} at that time can't be read: {error}")
    return {key: None if offset < 0 else offset for key, (offset, _) in listed.items()}


def _partitions(topic: Any) -> Iterable[TopicPartition]:
    for each in sorted(topic.partitions, key=lambda partition: partition.partition_index):
        yield TopicPartition(
            topic=topic.name,
            partition=each.partition_index,
            is_internal=topic.is_internal,
            leader=None if each.leader_id < 0 else each.leader_id,
            leader_epoch=None if each.leader_epoch < 0 else each.leader_epoch,
            replicas=tuple(each.replica_nodes),
            isr=tuple(each.isr_nodes),
            error="no leader: the partition is offline" if each.leader_id < 0 else None,
        )


async def _fetch_offsets_at(
    client: BrokerClient, keys: set[Key], timestamp_ms: int, deadline: Deadline
) -> tuple[dict[Key, Listed], dict[Key, str]]:
    times = dict.fromkeys(keys, timestamp_ms)
    (listed,), failed = await list_offsets(client, await fetch_leaders(client, keys, deadline), (times,), deadline)
    return listed, failed


async def list_offsets(
    client: BrokerClient,
    leaders: dict[Key, int | None],
    questions: Sequence[Mapping[Key, int]],
    deadline: Deadline,
) -> tuple[list[dict[Key, Listed]], dict[Key, str]]:
    """Return the answer of ListOffsets to each question (a time per partition); by partition why one has no answer.

    Args:
        leaders: of each partition that is asked for. Moved partitions are corrected in it, so that a repeated request
        has to search for none.
    """
    listed: list[dict[Key, Listed]] = [{} for _ in questions]
    failed, attempt = dict[Key, str](), 0
    waiting = {key for times in questions for key in times}
    while True:
        failed |= dict.fromkeys((key for key in waiting if leaders[key] is None), "no leader")
        again: dict[Key, str] = {}
        await client.gather(
            [
                partial(_ask_leader, client, leader, asked, times, into, again, failed)
                for times, into in zip(questions, listed, strict=True)
                for leader, asked in _by_leader(leaders, (key for key in times if key in waiting)).items()
            ]
        )
        if len(again) < len(waiting):
            deadline.renew()
        if not again or not deadline.allows(attempt):
            return listed, failed | again
        await client.pause(attempt)
        attempt += 1
        waiting = set(again)
        leaders |= await fetch_leaders(client, waiting, deadline)


def _by_leader(leaders: Mapping[Key, int | None], keys: Iterable[Key]) -> dict[int, list[Key]]:
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for key in keys:
        leader = leaders[key]
        if leader is not None:
            by_leader[leader].append(key)
    return by_leader


async def _ask_leader(
    client: BrokerClient,
    leader: int,
    asked: Sequence[Key],
    times: Mapping[Key, int],
    into: dict[Key, Listed],
    again: dict[Key, str],
    failed: dict[Key, str],
) -> None:
    try:
        response = await client.send(_request(asked, times), leader)
    except RETRIABLE_FAILURES as error:
        again.update(dict.fromkeys(asked, f"broker {leader} does not answer: {error}"))
        return
    for topic in response.topics:
        for each in topic.partitions:
            key = (topic.name, each.partition_index)
            if each.error_code == 0:
                into[key] = (each.offset, each.timestamp)
            elif each.error_code == _NO_SUCH_TOPIC:
                failed[key] = "the topic or partition was deleted while it was read"
            else:
                (again if each.error_code in RETRIABLE_CODES else failed)[key] = describe_code(each.error_code)


def _request(asked: Sequence[Key], times: Mapping[Key, int]) -> Any:
    topic_type = ListOffsetsRequest.ListOffsetsTopic
    by_topic: dict[str, list[Any]] = defaultdict(list)
    for key in asked:
        each = topic_type.ListOffsetsPartition(partition_index=key[1], timestamp=times[key])
        by_topic[key[0]].append(each)
    topics = [topic_type(name=name, partitions=partitions) for name, partitions in by_topic.items()]
    version = NEWEST_VERSION if NEWEST in times.values() else 1
    return ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics, min_version=version)


async def fetch_leaders(client: BrokerClient, keys: set[Key], deadline: Deadline) -> dict[Key, int | None]:
    """The present leaders; a deleted partition has none."""
    await client.refresh_metadata()
    response = await ask_metadata(client, MetadataRequest(topics=None, allow_auto_topic_creation=False), deadline)
    rows = (row for topic in response.topics for row in _partitions(topic))
    leaders = {(row.topic, row.partition): row.leader for row in rows}
    return {key: leaders.get(key) for key in keys}
