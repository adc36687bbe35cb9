"""Consumers: a member of an old ZooKeeper group, a migration-enabled one (KIP-125), a Kafka consumer (KAFKA-20385).

What is guaranteed, and what isn't: ``docs/consumers.md`` and ``docs/rebalance-listener.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.consumer.connector import ZookeeperConsumer
    from kit.consumer.driver import ConsumerRebalanceListener as ZookeeperRebalanceListener
    from kit.consumer.kafka_consumer import KafkaConsumer
    from kit.consumer.kafka_values import (
        ConsumerGroupMetadata,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        PartitionInfo,
    )
    from kit.consumer.listener import ConsumerRebalanceListener, RebalanceListener
    from kit.consumer.metrics import PrometheusCollector
    from kit.consumer.migration import Mode
    from kit.consumer.streams import ConsumerTimeout, Stream
    from kit.consumer.view import RebalanceConsumer

_HOMES = {
    "ConsumerGroupMetadata": ("kafka_values", "ConsumerGroupMetadata"),
    "ConsumerRebalanceListener": ("listener", "ConsumerRebalanceListener"),
    "ConsumerTimeout": ("streams", "ConsumerTimeout"),
    "KafkaConsumer": ("kafka_consumer", "KafkaConsumer"),
    "Mode": ("migration", "Mode"),
    "OffsetAndMetadata": ("kafka_values", "OffsetAndMetadata"),
    "OffsetAndTimestamp": ("kafka_values", "OffsetAndTimestamp"),
    "PartitionInfo": ("kafka_values", "PartitionInfo"),
    "PrometheusCollector": ("metrics", "PrometheusCollector"),
    "RebalanceConsumer": ("view", "RebalanceConsumer"),
    "RebalanceListener": ("listener", "RebalanceListener"),
    "Stream": ("streams", "Stream"),
    "ZookeeperConsumer": ("connector", "ZookeeperConsumer"),
    "ZookeeperRebalanceListener": ("driver", "ConsumerRebalanceListener"),
}

__all__ = [
    "ConsumerGroupMetadata",
    "ConsumerRebalanceListener",
    "ConsumerTimeout",
    "KafkaConsumer",
    "Mode",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "PartitionInfo",
    "PrometheusCollector",
    "RebalanceConsumer",
    "RebalanceListener",
    "Stream",
    "ZookeeperConsumer",
    "ZookeeperRebalanceListener",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'kit.consumer' has no attribute {name!r}")
    home, inner = _HOMES[name]
    return getattr(import_module(f"kit.consumer.{home}"), inner)
