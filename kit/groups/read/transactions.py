"""Transactions in logs: their markers and aborted records have offsets and times, and consumers never get them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest

from kit.clients.broker_client import RETRIABLE_FAILURES, BrokerClient, Deadline
from kit.clients.brokers import Key, fetch_leaders


def fetch_transactional(client: BrokerClient, keys: Collection[Key]) -> set[Key]:
    """The partitions in which a producer that the broker remembers (for a day by default) began or ended a transaction.

    DescribeProducers (KIP-664, Kafka ≥ 2.8) needs READ on the topic. If it isn't granted, isn't known or isn't
    answered, no transactions are found.

    Raises:
        ConnectError: no broker answered.
    """
    producers = _fetch_producers(client, keys)
    return {key for key, found in producers.items() if any(map(_has_transactions, found))}


def fetch_open(client: BrokerClient, keys: Collection[Key]) -> dict[Key, bool]:
    """Return whether a transaction is open in each partition; those of which that is not known are missing.

    Raises:
        ConnectError: no broker answered.
    """
    producers = _fetch_producers(client, keys)
    return {key: any(each.current_txn_start_offset >= 0 for each in found) for key, found in producers.items()}


def _fetch_producers(client: BrokerClient, keys: Collection[Key]) -> dict[Key, Sequence[Any]]:
    """The producers by partition, as far as the leaders answer and the login may know."""
    if not client.supports(DescribeProducersRequest, 0):
        return {}
    return client.run(_fetch, client, set(keys), Deadline())


async def _fetch(client: BrokerClient, keys: set[Key], deadline: Deadline) -> dict[Key, Sequence[Any]]:
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for key, leader in (await fetch_leaders(client, keys, deadline)).items():
        if leader is not None:
            by_leader[leader].append(key)
    answers = await client.gather([partial(_ask, client, leader, led) for leader, led in by_leader.items()])
    return {key: producers for answer in answers for key, producers in answer}


async def _ask(client: BrokerClient, leader: int, led: Collection[Key]) -> list[tuple[Key, Sequence[Any]]]:
    try:
        response = await client.send(_request(led), leader)
    except RETRIABLE_FAILURES:
        return []
    return list(_answered(response))


def _answered(response: Any) -> Iterator[tuple[Key, Sequence[Any]]]:
    for topic in response.topics:
        for each in topic.partitions:
            if not each.error_code:
                yield (topic.name, each.partition_index), each.active_producers


def _has_transactions(producer: Any) -> bool:
    """A coordinator has written a marker of it, or it has begun what one will end."""
    return bool(producer.coordinator_epoch >= 0 or producer.current_txn_start_offset >= 0)


def _request(keys: Collection[Key]) -> Any:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, partition in keys:
        by_topic[topic].append(partition)
    topic_type = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[topic_type(name=name, partition_indexes=numbers) for name, numbers in by_topic.items()]
    )
