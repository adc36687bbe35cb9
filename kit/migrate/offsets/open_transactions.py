"""Offsets that a transaction has sent for a partition for which the group has none: asked for by name alone they show.

A coordinator that is asked for all offsets of a group leaves such a partition out (kit.read.offset_fetch). To ask for
every partition of the cluster is much, so it is done for those groups only whose partition of ``__consumer_offsets``
holds an open transaction.
"""

from __future__ import annotations

from collections.abc import Collection

from kit.cluster import Cluster
from kit.migrate.offsets.kafka import KafkaWriter
from kit.migrate.offsets.selection import Place
from kit.read.brokers import fetch_metadata
from kit.read.transactions import fetch_open
from kit.text.java_hash import offsets_partition

_OFFSETS_TOPIC = "__consumer_offsets"


def fetch_unstable(cluster: Cluster, kafka: KafkaWriter, group_ids: Collection[str]) -> dict[str, str]:
    """Groups for which an open transaction has sent an offset, or of which that can't be read, with the reason.

    DescribeProducers (Kafka ≥ 2.8) needs READ on ``__consumer_offsets``. Without it, or on older brokers, only
    partitions for which a group has an offset are told, by any read of its offsets.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    partitions = [(each.topic, each.partition) for each in fetch_metadata(cluster.broker_client).topic_partitions]
    homes = _homes(group_ids, sum(topic == _OFFSETS_TOPIC for topic, _ in partitions))
    is_open = fetch_open(cluster.broker_client, set(homes.values()))
    doubtful = [group_id for group_id, home in homes.items() if is_open.get(home)]
    reasons = {each: _unstable(kafka, each, partitions) for each in doubtful}
    return {each: why for each, why in reasons.items() if why is not None}


def _homes(group_ids: Collection[str], n_partitions: int) -> dict[str, Place]:
    """The partition of the offsets topic by group; none without the topic."""
    if not n_partitions:
        return {}
    return {each: (_OFFSETS_TOPIC, offsets_partition(each, n_partitions)) for each in group_ids}


def _unstable(kafka: KafkaWriter, group_id: str, partitions: Collection[Place]) -> str | None:
    found = kafka.read((group_id, *place) for place in partitions)
    return next((stored.error for stored in found.values() if stored.error is not None), None)
