"""Fix the begin and the end of each partition's read, once for all tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kit.clients.brokers import fetch_log_offsets, fetch_metadata
from kit.clients.cluster import CONNECT_TIMEOUT_S, connect
from kit.errors import NotFound
from kit.profile import Profile
from kit.profile.security.clients import check_record_reading
from kit.rebalances.offsets_topic.fetching import PartitionRange, reader_settings


@dataclass(frozen=True)
class Bounds:
    """The parts to read, why some parts can't be read, and the names of all topics by their ids."""

    parts: tuple[PartitionRange, ...]
    errors: dict[int, str]
    topic_names: dict[bytes, str]


def fetch_bounds(profile: Profile, topic: str, since: datetime | None) -> Bounds:
    """From the log start, or the first record of ``since``, to the high watermark of this moment.

    Raises:
        ConnectError, AuthenticationFailed, WrongCluster: see ``kit.clients.cluster.connect``.
        NotFound: the cluster has no such topic.
        SetupError: the login is by Kerberos, and librdkafka is built without it.
    """
    check_record_reading(profile.security.kafka)
    with connect(replace(profile, zookeeper_connect=None)) as cluster:
        metadata = fetch_metadata(cluster.broker_client)
        rows = [row for row in metadata.topic_partitions if row.topic == topic]
        if not rows:
            raise NotFound(
                f"cluster {profile.name!r} has no topic {topic}: no group has joined or committed yet, or "
                "the login of security.kafka needs the right to describe that topic"
            )
        log_offsets = fetch_log_offsets(cluster.broker_client, rows)
    errors = {row.partition: row.error for row in log_offsets if row.error is not None}
    # A broker leaves out a partition that never had a leader.
    seen = {row.partition for row in rows}
    errors |= dict.fromkeys(set(range(max(seen))) - seen, "no broker names it")
    parts = [
        PartitionRange(row.partition, row.log_start_offset, row.log_end_offset)
        for row in log_offsets
        if row.log_start_offset is not None and row.log_end_offset is not None and row.error is None
    ]
    if since is not None:
        parts = _since(profile, topic, parts, since, errors)
    return Bounds(tuple(sorted(parts, key=lambda part: part.partition)), errors, metadata.topic_names)


def _since(
    profile: Profile, topic: str, parts: Iterable[PartitionRange], at: datetime, errors: dict[int, str]
) -> list[PartitionRange]:
    """The parts from their first record of that time on; of one that has none, nothing."""
    by_partition = {part.partition: part for part in parts}
    epoch_ms = round(at.timestamp() * 1000)
    consumer = Consumer(reader_settings(profile))
    try:
        asked = [TopicPartition(topic, partition, epoch_ms) for partition in by_partition]
        answers = consumer.offsets_for_times(asked, timeout=CONNECT_TIMEOUT_S)
    except KafkaException as failure:
        errors |= dict.fromkeys(
            by_partition, f"the partition's first record since {at} can't be found: {failure.args[0].str()}"
        )
        return []
    finally:
        consumer.close()
    errors |= {each.partition: each.error.str() for each in answers if each.error is not None}
    starts = {each.partition: each.offset for each in answers if each.error is None}
    ends = {partition: part.end for partition, part in by_partition.items()}
    return [PartitionRange(each, start if start >= 0 else ends[each], ends[each]) for each, start in starts.items()]
