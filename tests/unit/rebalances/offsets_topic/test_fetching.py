"""Errors of librdkafka that are about no partition."""

from __future__ import annotations

from types import SimpleNamespace

from confluent_kafka import KafkaError

from kit.rebalances.offsets_topic.bounds import PartitionRange
from kit.rebalances.offsets_topic.fetching import Fetch


def message(topic: str | None, partition: int) -> SimpleNamespace:
    return SimpleNamespace(topic=lambda: topic, partition=lambda: partition, offset=lambda: 0)


def test_a_refused_coordinator_is_no_failure_of_partition_0():
    """It comes at any time of a read, from the group that librdkafka must be given and that nobody joins."""
    fetch = Fetch(None, "__consumer_offsets", [PartitionRange(0, 0, 5), PartitionRange(1, 0, 5)])
    fetch._open = {0, 1}
    fetch._hear(message(None, 0), KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    assert (fetch.errors, fetch._open) == ({}, {0, 1})
    fetch._hear(message("__consumer_offsets", 1), KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert fetch._open == {0}
    assert "the login lacks READ on the topic" in fetch.errors[1]
