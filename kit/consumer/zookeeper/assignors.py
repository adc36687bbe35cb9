"""Assign partitions: the old consumer's two assignors and KIP-125's split over threads, equal to the last one.

``members`` is consumer id → topic → number of streams; ``partitions`` is topic → partition numbers. Thread ids compare
as text: ``…-10`` is before ``…-2``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from kit.consumer.zookeeper.config import HASH_0_8_2, RANGE
from kit.consumer.zookeeper.registration import thread_ids
from kit.errors import InputError
from kit.text.java_hash import java_hash

TopicAndPartition: TypeAlias = tuple[str, int]
Members: TypeAlias = Mapping[str, Mapping[str, int]]
Partitions: TypeAlias = Mapping[str, Sequence[int]]
Assignment: TypeAlias = dict[TopicAndPartition, str]
"""(topic, partition) → thread id."""


def assign(strategy: str, members: Members, partitions: Partitions, hash_form: str) -> Assignment:
    """The whole group's assignment by ``range`` or ``roundrobin``; partitions that no member may have are left out.

    Raises:
        InputError: roundrobin can't order two partitions, see :func:`assign_roundrobin`.
    """
    if strategy == RANGE:
        return assign_range(members, partitions)
    return assign_roundrobin(members, partitions, hash_form)


def assign_range(members: Members, partitions: Partitions) -> Assignment:
    """Per topic: the sorted threads get consecutive partitions, the first ones one more (0.8.0 … 1.1.1 alike)."""
    assignment: Assignment = {}
    for topic, threads in _threads_by_topic(members).items():
        numbers = sorted(partitions.get(topic, ()))
        share, extra = divmod(len(numbers), len(threads))
        for index, thread in enumerate(threads):
            start = share * index + min(index, extra)
            for number in numbers[start : start + share + (index < extra)]:
                assignment[topic, number] = thread
    return assignment


def assign_roundrobin(members: Members, partitions: Partitions, hash_form: str) -> Assignment:
    """All partitions, ordered by a Java hash, dealt out in turn to the sorted threads that want the topic.

    ``hash_form`` is ``0.8.2`` (the text ``[topic,partition]``) or ``1.0`` (``topic-partition``, KAFKA-5822).

    Raises:
        InputError: two partitions have the same hash: members then order them as it happens, and disagree.
    """
    by_topic = _threads_by_topic(members)
    ordered = _hash_order([(topic, number) for topic in by_topic for number in partitions.get(topic, ())], hash_form)
    wanted = {topic: set(threads) for topic, threads in by_topic.items()}
    return _deal(ordered, sorted({thread for threads in by_topic.values() for thread in threads}), wanted)


def split_over_threads(
    consumer_id: str, streams: Mapping[str, int], assigned: Iterable[TopicAndPartition]
) -> Assignment:
    """One member's Kafka assignment over its threads, as KIP-125 says: the clients' round robin over thread ids.

    The partitions of each topic, sorted, are what the KIP calls relative partitions; topics go by name.
    """
    wanted = {topic: set(thread_ids(consumer_id, count)) for topic, count in streams.items()}
    threads = sorted(set().union(*wanted.values()))
    return _deal(sorted(pair for pair in assigned if pair[0] in wanted), threads, wanted)


def partition_hash(topic: str, partition: int, hash_form: str) -> int:
    """The hash that ``roundrobin`` orders partitions by."""
    return java_hash(f"[{topic},{partition}]" if hash_form == HASH_0_8_2 else f"{topic}-{partition}")


def _hash_order(pairs: list[TopicAndPartition], hash_form: str) -> list[TopicAndPartition]:
    by_hash: dict[int, TopicAndPartition] = {}
    for pair in pairs:
        other = by_hash.setdefault(partition_hash(*pair, hash_form), pair)
        if other != pair:
            raise InputError(
                f"roundrobin can't be used: {other[0]}-{other[1]} and {pair[0]}-{pair[1]} have the same Java hash, "
                "so members would order them differently. Use range in the whole group"
            )
    return [by_hash[key] for key in sorted(by_hash)]


def _deal(ordered: Iterable[TopicAndPartition], threads: Sequence[str], wanted: Mapping[str, set[str]]) -> Assignment:
    """Threads that don't want a topic lose their turn; the next one that does gets the partition."""
    assignment: Assignment = {}
    turn = 0
    for topic, number in ordered:
        while threads[turn % len(threads)] not in wanted[topic]:
            turn += 1
        assignment[topic, number] = threads[turn % len(threads)]
        turn += 1
    return assignment


def _threads_by_topic(members: Members) -> dict[str, list[str]]:
    threads: dict[str, list[str]] = {}
    for member, streams in members.items():
        for topic, count in streams.items():
            threads.setdefault(topic, []).extend(thread_ids(member, count))
    return {topic: sorted(ids) for topic, ids in sorted(threads.items())}
