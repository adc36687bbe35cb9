"""Partitions of the offsets topic: each holds the groups of one coordinator."""

from __future__ import annotations

from kafka.protocol.metadata import MetadataRequest

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.brokers import ask_metadata, metadata_of
from kit.tables.groups import KAFKA, ReadError, TopicPartition
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.naming import listed


async def partitions_without_leader(client: BrokerClient, deadline: Deadline) -> list[ReadError]:
    """Partitions of the offsets topic that no broker leads: no broker lists their groups. A login that may not DESCRIBE
    the topic gets none."""
    topic = MetadataRequest.MetadataRequestTopic(name=OFFSETS_TOPIC)
    request = MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
    found = metadata_of(await ask_metadata(client, request, deadline))
    return [
        ReadError(KAFKA, None, OFFSETS_TOPIC, f"{OFFSETS_TOPIC}-{each.partition}", _unled(each))
        for each in found.topic_partitions
        if each.leader is None
    ]


def _unled(partition: TopicPartition) -> str:
    replicas = listed([str(each) for each in partition.replicas])
    name = f"{partition.topic}-{partition.partition}"
    return f"partition {name} has no leader, so its groups are unknown: start a broker that has a replica ({replicas})"
