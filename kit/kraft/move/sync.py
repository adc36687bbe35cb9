"""Check whether every partition has its leader and its full ISR, by each broker's own metadata.

A Metadata answer leaves out topics that the login may not DESCRIBE, without an error. So the answer has to hold every
partition that ZooKeeper or the metadata log holds. Every ``…_problem`` is a sentence, or None.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kit.clients.brokers import ClusterMetadata
from kit.clients.cluster import Cluster
from kit.errors import OfframpError, ReadError
from kit.kraft.analyze.phase import Facts
from kit.kraft.move.cluster_state import READS, SHOWN, UNREAD, MoveReads
from kit.kraft.read.metadata_partitions import Partition
from kit.tables.groups import TopicPartition
from kit.text.addresses import address_of
from kit.text.naming import named, shortened
from kit.text.quantity import quantity


def sync_problem(
    cluster: Cluster,
    facts: Facts,
    brokers: Mapping[int, str],
    down: int | None = None,
    reads: MoveReads = READS,
) -> str | None:
    """By the metadata of each of these brokers: all are at their places, every partition has a leader and a full ISR.

    ``facts``: of the same moment; they decide which store knows all partitions. ``down``: a broker that does not run,
    and is to be started: it is not asked, and nothing but it may be missing.
    """
    asked = {number: address for number, address in brokers.items() if number != down}
    return _first_problem(cluster, facts, asked, reads, lambda metadata: _metadata_problem(metadata, brokers, down))


def led_problem(cluster: Cluster, facts: Facts, brokers: Mapping[int, str], reads: MoveReads) -> str | None:
    """By each broker's metadata every partition has a leader, where a broker of its ISR is there."""
    return _first_problem(cluster, facts, brokers, reads, _unled)


def _first_problem(
    cluster: Cluster,
    facts: Facts,
    brokers: Mapping[int, str],
    reads: MoveReads,
    judge: Callable[[ClusterMetadata], str | None],
) -> str | None:
    try:
        known = set(reads.replicas(cluster, facts))
        for number, address in brokers.items():
            metadata = _metadata(cluster, number, address, reads)
            missing = known - _partitions(metadata)
            if missing:  # A topic may be deleted meanwhile, or so new that the broker does not know it yet.
                known &= set(reads.replicas(cluster, facts))
                metadata = _metadata(cluster, number, address, reads)
                missing = known - _partitions(metadata)
            if (problem := judge(metadata)) is not None:
                return f"broker {number} reports: {problem}"
            if missing:
                return f"broker {number} does not report {_describe_missing(missing)}"
    except OfframpError as error:
        return str(error)
    return None


def _metadata(cluster: Cluster, number: int, address: str, reads: MoveReads) -> ClusterMetadata:
    """Raises ReadError: the broker did not answer, or refused."""
    try:
        return reads.metadata(cluster, address)
    except UNREAD as error:
        raise ReadError(f"broker {number} at {address} did not report its metadata: {error}") from error


def _partitions(metadata: ClusterMetadata) -> set[Partition]:
    return {(row.topic, row.partition) for row in metadata.topic_partitions}


def _describe_missing(missing: Collection[Partition]) -> str:
    partitions = shortened((f"{topic}-{number}" for topic, number in sorted(missing)), SHOWN)
    topics = shortened(sorted({topic for topic, _ in missing}), SHOWN)
    return (
        f"{partitions}, so their leaders and ISRs are unknown. Offramp's login needs the right DESCRIBE on topic "
        f"{topics}. If it has this right, the broker does not know the topic yet"
    )


def _unled(metadata: ClusterMetadata) -> str | None:
    live = {each.broker_id for each in metadata.brokers if each.host is not None}
    rows = [row for row in metadata.topic_partitions if row.leader is None and live & set(row.isr)]
    if not rows:
        return None
    first = f"{rows[0].topic}-{rows[0].partition}"
    return f"{first} has no leader ({quantity(len(rows), 'partition')} in all)"


def _metadata_problem(metadata: ClusterMetadata, brokers: Mapping[int, str], down: int | None) -> str | None:
    places = {each.broker_id: address_of(each.host, each.port) for each in metadata.brokers if each.host is not None}
    if (problem := _swapped(places, brokers)) is not None:
        return problem
    missing = sorted(set(brokers) - set(places) - {down})
    if missing:
        return named(missing, "broker {} is missing in the metadata", "brokers {} are missing in the metadata")
    bad = [f"{row.topic}-{row.partition}" for row in metadata.topic_partitions if not _is_whole(row, down)]
    return f"these partitions have no leader or no full ISR: {shortened(bad, SHOWN)}" if bad else None


def _is_whole(row: TopicPartition, down: int | None) -> bool:
    """Return whether nothing is missing but the broker that is down; where no other replica is in sync, only it can
    lead.
    """
    if row.leader is None:
        return down in row.replicas and set(row.isr) <= {down}
    return set(row.replicas) - set(row.isr) <= {down}


def _swapped(places: Mapping[int, str], brokers: Mapping[int, str]) -> str | None:
    """Brokers where the plan knows another one: orders by its ids would reach the wrong host."""
    planned = {address: number for number, address in brokers.items()}
    there = [
        f"broker {number} answers at {at}, but in the plan broker {planned[at]} has this address"
        for number, at in sorted(places.items())
        if planned.get(at, number) != number
    ]
    return f"{'; '.join(there)}. Restore the addresses, or make a new plan" if there else None
