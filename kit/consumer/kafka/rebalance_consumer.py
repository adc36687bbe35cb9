"""The restricted view of the consumer that a rebalance callback receives (KAFKA-20385)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from confluent_kafka import IllegalStateException, TopicPartition

from kit.consumer.kafka.commits import CommitCallback, Offsets
from kit.consumer.kafka.values import ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo


class RebalanceMethods(Protocol):
    """The methods of a consumer that a rebalance callback may call (KAFKA-20385)."""

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None: ...

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None: ...

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int: ...

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None: ...

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None: ...

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None: ...

    def assignment(self) -> set[TopicPartition]: ...

    def pause(self, partitions: Iterable[TopicPartition]) -> None: ...

    def resume(self, partitions: Iterable[TopicPartition]) -> None: ...

    def paused(self) -> set[TopicPartition]: ...

    def client_instance_id(self, timeout: float | None = None) -> str: ...

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]: ...

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]: ...

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]: ...

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]: ...

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]: ...

    def current_lag(self, partition: TopicPartition) -> int | None: ...

    def group_metadata(self) -> ConsumerGroupMetadata: ...

    def metrics(self) -> dict[str, Any]: ...


class RebalanceConsumer:
    """The methods that KAFKA-20385 lists, usable during one callback.

    There is no ``poll``, ``consume``, ``close``, ``subscribe``, ``unsubscribe`` or ``set_rebalance_listener``. After
    the callback, and in any other thread, every method raises IllegalStateException. Each method is documented at the
    method of the same name of ``KafkaConsumer``.
    """

    __slots__ = ("__consumer", "__thread")

    def __init__(self, consumer: RebalanceMethods) -> None:
        self.__consumer: RebalanceMethods | None = consumer
        self.__thread = threading.get_ident()

    def __enter__(self) -> RebalanceConsumer:
        return self

    def __exit__(self, *_: object) -> None:
        self.__consumer = None

    def __open(self) -> RebalanceMethods:
        if self.__consumer is None:
            raise IllegalStateException(
                "this view of the consumer was valid until its rebalance callback returned; use the KafkaConsumer"
            )
        if threading.get_ident() != self.__thread:
            raise IllegalStateException("this view of the consumer is valid only in its rebalance callback's thread")
        return self.__consumer

    # --- offsets ---

    def commit_sync(self, offsets: Offsets | None = None, timeout: float | None = None) -> None:
        self.__open().commit_sync(offsets, timeout)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        self.__open().commit_async(offsets, callback)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self.__open().committed(partitions, timeout)

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        return self.__open().position(partition, timeout)

    # --- seek ---

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self.__open().seek(partition, offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        self.__open().seek_to_beginning(partitions)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        self.__open().seek_to_end(partitions)

    # --- partitions ---

    def assignment(self) -> set[TopicPartition]:
        return self.__open().assignment()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        self.__open().pause(partitions)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        self.__open().resume(partitions)

    def paused(self) -> set[TopicPartition]:
        return self.__open().paused()

    # --- questions ---

    def client_instance_id(self, timeout: float | None = None) -> str:
        return self.__open().client_instance_id(timeout)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return self.__open().beginning_offsets(partitions, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        return self.__open().end_offsets(partitions, timeout)

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self.__open().offsets_for_times(timestamps_ms, timeout)

    def partitions_for(self, topic: str, timeout: float | None = None) -> list[PartitionInfo]:
        return self.__open().partitions_for(topic, timeout)

    def list_topics(self, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        return self.__open().list_topics(timeout)

    def current_lag(self, partition: TopicPartition) -> int | None:
        return self.__open().current_lag(partition)

    def group_metadata(self) -> ConsumerGroupMetadata:
        return self.__open().group_metadata()

    def metrics(self) -> dict[str, Any]:
        return self.__open().metrics()
