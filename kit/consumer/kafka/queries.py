"""Read-only requests of a consumer, sent by an admin client of its own.

librdkafka's consumer could send some of them. But ``list_topics`` on a consumer's handle inside a rebalance callback
ends the process with a failed assertion, and watermarks need two requests per partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from kit.consumer.kafka.log_offsets import list_offsets
from kit.consumer.kafka.settings import KafkaSettings
from kit.consumer.kafka.values import OffsetAndTimestamp, PartitionInfo, bare
from kit.errors import InputError

TIMEOUT_S = 60.0
"""Java's ``default.api.timeout.ms``."""
_EARLIEST, _LATEST = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]


class Queries:
    """Connects at the first request. Each raises KafkaException if a broker refuses or does not answer in time."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._connection = settings.connection
        self._isolation: IsolationLevel = settings.isolation

    @cached_property
    def _admin(self) -> AdminClient:
        return AdminClient(dict(self._connection))

    def close(self) -> None:
        """Close the connections, if there are any."""
        self.__dict__.pop("_admin", None)

    def beginning_offsets(self, partitions: Iterable[TopicPartition], timeout: float) -> dict[TopicPartition, int]:
        asked = self._list_offsets(dict.fromkeys(map(bare, partitions), _EARLIEST), timeout)
        return {partition: listed.offset for partition, listed in asked.items()}

    def end_offsets(self, partitions: Iterable[TopicPartition], timeout: float) -> dict[TopicPartition, int]:
        """The last stable offset with ``isolation.level=read_committed`` (librdkafka's default), else the log's end."""
        asked = self._list_offsets(dict.fromkeys(map(bare, partitions), _LATEST), timeout)
        return {partition: listed.offset for partition, listed in asked.items()}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout: float
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        negative = [f"{each.topic}-{each.partition}" for each, at_ms in timestamps_ms.items() if at_ms < 0]
        if negative:
            raise InputError(f"offsets_for_times: the time of {', '.join(negative)} is negative")
        specs = {bare(each): OffsetSpec.for_timestamp(at_ms) for each, at_ms in timestamps_ms.items()}
        return {partition: _timed(listed) for partition, listed in self._list_offsets(specs, timeout).items()}

    def partitions_for(self, topic: str, timeout: float) -> list[PartitionInfo]:
        """A topic's partitions; empty if it does not exist. Never creates it, as a request for its metadata could."""
        (future,) = self._admin.describe_topics(TopicCollection([topic]), request_timeout=timeout).values()
        try:
            described = future.result()
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return []
            raise
        return [_described(topic, each) for each in described.partitions]

    def list_topics(self, timeout: float) -> dict[str, list[PartitionInfo]]:
        topics = self._admin.list_topics(timeout=timeout).topics
        return {
            name: [_listed(name, each) for _, each in sorted(topic.partitions.items())]
            for name, topic in sorted(topics.items())
        }

    def _list_offsets(self, specs: dict[TopicPartition, OffsetSpec], timeout: float) -> dict[TopicPartition, Any]:
        if not specs:
            return {}
        futures = list_offsets(self._admin, specs, timeout, self._isolation)
        return {bare(partition): future.result() for partition, future in futures.items()}


def _timed(listed: Any) -> OffsetAndTimestamp | None:
    return OffsetAndTimestamp(listed.offset, listed.timestamp, listed.leader_epoch) if listed.offset >= 0 else None


def _described(topic: str, partition: Any) -> PartitionInfo:
    """From DescribeTopics: nodes."""
    leader = partition.leader.id if partition.leader else None
    replicas, in_sync = (tuple(node.id for node in nodes) for nodes in (partition.replicas, partition.isr))
    return PartitionInfo(topic, partition.id, leader, replicas, in_sync)


def _listed(topic: str, partition: Any) -> PartitionInfo:
    """From Metadata: broker ids."""
    leader = partition.leader if partition.leader >= 0 else None
    return PartitionInfo(topic, partition.id, leader, tuple(partition.replicas), tuple(partition.isrs))
