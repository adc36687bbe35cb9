"""Which logs hold transactions: their markers and aborted records have offsets and times, and nobody reads them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest

from kit.read.broker_client import DEADLINE_S, RETRIABLE_FAILURES, BrokerClient, Deadline
from kit.read.brokers import Key, fetch_leaders


def fetch_transactional(client: BrokerClient, keys: Collection[Key], deadline_s: float = DEADLINE_S) -> set[Key]:
    """The partitions in which a producer that the broker remembers (for a day by default) began or ended a transaction.

    DescribeProducers (KIP-664, Kafka ≥ 2.8) needs READ on the topic. Where it isn't granted, isn't known or isn't
    answered, no transactions are found.

    Raises:
        ConnectError: no broker answered.
    """
    if not client.supports(DescribeProducersRequest, 0):
        return set()
    return client.run(_fetch, client, set(keys), Deadline(deadline_s))


async def _fetch(client: BrokerClient, keys: set[Key], deadline: Deadline) -> set[Key]:
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for key, leader in (await fetch_leaders(client, keys, deadline)).items():
        if leader is not None:
            by_leader[leader].append(key)
    transactional = set[Key]()
    await client.gather([partial(_ask, client, leader, led, transactional) for leader, led in by_leader.items()])
    return transactional


async def _ask(client: BrokerClient, leader: int, led: Collection[Key], transactional: set[Key]) -> None:
    try:
        response = await client.send(_request(led), leader)
    except RETRIABLE_FAILURES:
        return
    for topic in response.topics:
        for each in topic.partitions:
            if any(_has_transactions(producer) for producer in each.active_producers):
                transactional.add((topic.name, each.partition_index))


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
