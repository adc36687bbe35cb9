"""Frozen arguments and results of the Kafka consumer and its rebalance view, named as in Java's client."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException, TopicPartition

from kit.errors import ReadError

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("=i")


@dataclass(frozen=True, slots=True)
class OffsetAndMetadata:
    """A committed offset: the next record to read, metadata of at most 4096 bytes, the leader epoch it was read in."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class OffsetAndTimestamp:
    """The first record at or after the requested time; ``timestamp_ms`` is the record's own."""

    offset: int
    timestamp_ms: int
    leader_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition by Metadata, with broker ids; ``leader`` is None while it has none."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """The member as its group knows it; ``generation_id`` (KIP-848: member epoch) is None before the first join.

    ``native`` is the argument for ``Producer.send_offsets_to_transaction`` of confluent-kafka.
    """

    group_id: str
    generation_id: int | None
    member_id: str | None
    group_instance_id: str | None
    native: bytes

    @classmethod
    def of(cls, native: bytes) -> ConsumerGroupMetadata:
        """From librdkafka's serialised form, the only place where Python can learn the generation.

        That form is private to librdkafka: magic ``CGMDv2:``, the generation as a native 32-bit number, group and
        member id ended by NUL, a byte that is 1 without an instance id, the instance id ended by NUL.

        Raises:
            ReadError: another librdkafka writes it in another way.
        """
        try:
            return _decode(native)
        except (ValueError, struct.error) as error:
            raise ReadError(f"the group metadata of this librdkafka have an unknown form: {error}") from None


def _decode(native: bytes) -> ConsumerGroupMetadata:
    if not native.startswith(_MAGIC):
        raise ValueError(f"the value begins with {native[: len(_MAGIC)]!r}, not {_MAGIC!r}")
    (generation,) = _GENERATION.unpack_from(native, len(_MAGIC))
    group_id, member_id, rest = native[len(_MAGIC) + _GENERATION.size :].split(b"\0", 2)
    instance_id = None if rest[:1] == b"\1" else rest[1:].rstrip(b"\0").decode()
    return ConsumerGroupMetadata(
        group_id.decode(), None if generation < 0 else generation, member_id.decode() or None, instance_id, native
    )


def to_library(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> list[TopicPartition]:
    """Offsets as confluent-kafka takes them."""
    return [library_partition(each, value) for each, value in offsets.items()]


def library_partition(partition: TopicPartition, value: OffsetAndMetadata) -> TopicPartition:
    """A partition that carries an offset."""
    epoch = -1 if value.leader_epoch is None else value.leader_epoch
    return TopicPartition(partition.topic, partition.partition, value.offset, value.metadata, epoch)


def from_library(partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Offsets as confluent-kafka gives them; a partition without one has None."""
    return {bare(each): _offset(each) for each in partitions}


def checked(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """The same list, checked: librdkafka puts an error of one partition into the partition, Java raises it.

    Raises:
        KafkaException: one of them carries an error.
    """
    answered = list(partitions)
    for each in answered:
        if each.error is not None:
            raise KafkaException(each.error)
    return answered


def bare(partition: TopicPartition) -> TopicPartition:
    """A partition without its offset and error, for sets and keys."""
    return TopicPartition(partition.topic, partition.partition)


def _offset(partition: TopicPartition) -> OffsetAndMetadata | None:
    if partition.offset < 0:
        return None
    return OffsetAndMetadata(partition.offset, partition.metadata or "", partition.leader_epoch)


def error_text(error: Exception) -> str:
    """Return librdkafka's text of an error."""
    cause = error.args[0] if error.args else error
    return cause.str() if hasattr(cause, "str") else str(cause)
