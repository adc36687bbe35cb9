"""Offsets that a transaction has sent for a partition for which the group has none: asked for by name alone they show.

A coordinator that is asked for all offsets of a group leaves such a partition out (kit.groups.read.offset_fetch). To
ask for every partition of the cluster is much, so it is done for those groups only whose partition of
``__consumer_offsets`` holds an open transaction, or may hold one: DescribeProducers (Kafka ≥ 2.8) needs READ on
``__consumer_offsets``.
"""

from __future__ import annotations

from collections.abc import Collection

from kit.clients.brokers import fetch_metadata
from kit.clients.cluster import Cluster
from kit.groups.read import offset_fetch
from kit.groups.read.transactions import fetch_open
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.selection import Place
from kit.text.java_hash import OFFSETS_TOPIC, offsets_partition

MOST_ASKED = 1_000_000
"""Partitions, counted once for each group, that are read by name: about 50 MB of answers."""


def fetch_unstable(cluster: Cluster, kafka: KafkaWriter, group_ids: Collection[str]) -> dict[str, str]:
    """Groups for which an open transaction has sent an offset, or of which that can't be read, with the reason.

    If :func:`fetch_untold` has a reason, only partitions for which a group has an offset are known, by any read.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    partitions = [(each.topic, each.partition) for each in fetch_metadata(cluster.broker_client).topic_partitions]
    is_open = _is_open(cluster, group_ids, partitions)
    untold = [each for each in group_ids if is_open[each] is None]
    if _why_untold(cluster, untold, partitions) is None:
        doubtful = [each for each in group_ids if is_open[each] is not False]
    else:
        doubtful = [each for each in group_ids if is_open[each]]
    reasons = {each: _unstable(kafka, each, partitions) for each in doubtful}
    return {each: why for each, why in reasons.items() if why is not None}


def fetch_untold(cluster: Cluster, group_ids: Collection[str]) -> str | None:
    """Return why it can't be known whether an open transaction has sent offsets for one of the groups; None: it can.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    partitions = [(each.topic, each.partition) for each in fetch_metadata(cluster.broker_client).topic_partitions]
    is_open = _is_open(cluster, group_ids, partitions)
    return _why_untold(cluster, [each for each in group_ids if is_open[each] is None], partitions)


def _is_open(cluster: Cluster, group_ids: Collection[str], partitions: Collection[Place]) -> dict[str, bool | None]:
    """Return whether a transaction is open in the group's partition of the offsets topic; None: that is not known."""
    homes = _homes(group_ids, sum(topic == OFFSETS_TOPIC for topic, _ in partitions))
    is_open = fetch_open(cluster.broker_client, set(homes.values()))
    return {each: is_open.get(homes[each]) if each in homes else None for each in group_ids}


def _why_untold(cluster: Cluster, untold: Collection[str], partitions: Collection[Place]) -> str | None:
    if not untold:
        return None
    if not offset_fetch.tells_unstable(cluster.broker_client):
        return "brokers before Kafka 2.5 do not report offsets of open transactions"
    if (n_asked := len(untold) * len(partitions)) > MOST_ASKED:
        return (
            f"{n_asked:,} partitions of groups would have to be read by name ({MOST_ASKED:,} at most). Select fewer"
            " groups, or grant READ: kafka-acls --add --allow-principal User:LOGIN --operation Read --topic"
            f" {OFFSETS_TOPIC}"
        )
    return None


def _homes(group_ids: Collection[str], n_partitions: int) -> dict[str, Place]:
    """The partition of the offsets topic by group; none without the topic."""
    if not n_partitions:
        return {}
    return {each: (OFFSETS_TOPIC, offsets_partition(each, n_partitions)) for each in group_ids}


def _unstable(kafka: KafkaWriter, group_id: str, partitions: Collection[Place]) -> str | None:
    found = kafka.read((group_id, *place) for place in partitions)
    return next((stored.error for stored in found.values() if stored.error is not None), None)
