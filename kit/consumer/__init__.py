"""Consumers: a member of an old ZooKeeper group, a migration-enabled one (KIP-125), a Kafka consumer (KAFKA-20385).

What is guaranteed, and what isn't: ``docs/consumers.md`` and ``docs/rebalance-listener.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.consumer.kafka.consumer import KafkaConsumer
    from kit.consumer.kafka.listener import ConsumerRebalanceListener, RebalanceListener
    from kit.consumer.kafka.rebalance_consumer import RebalanceConsumer
    from kit.consumer.kafka.values import ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, PartitionInfo
    from kit.consumer.metrics import PrometheusCollector
    from kit.consumer.zookeeper.connector import ZookeeperConsumer
    from kit.consumer.zookeeper.driver import ConsumerRebalanceListener as ZookeeperRebalanceListener
    from kit.consumer.zookeeper.migration import Mode
    from kit.consumer.zookeeper.streams import ConsumerTimeout, Stream

_HOMES = {
    "ConsumerGroupMetadata": ("kafka.values", "ConsumerGroupMetadata"),
    "ConsumerRebalanceListener": ("kafka.listener", "ConsumerRebalanceListener"),
    "ConsumerTimeout": ("zookeeper.streams", "ConsumerTimeout"),
    "KafkaConsumer": ("kafka.consumer", "KafkaConsumer"),
    "Mode": ("zookeeper.migration", "Mode"),
    "OffsetAndMetadata": ("kafka.values", "OffsetAndMetadata"),
    "OffsetAndTimestamp": ("kafka.values", "OffsetAndTimestamp"),
    "PartitionInfo": ("kafka.values", "PartitionInfo"),
    "PrometheusCollector": ("metrics", "PrometheusCollector"),
    "RebalanceConsumer": ("kafka.rebalance_consumer", "RebalanceConsumer"),
    "RebalanceListener": ("kafka.listener", "RebalanceListener"),
    "Stream": ("zookeeper.streams", "Stream"),
    "ZookeeperConsumer": ("zookeeper.connector", "ZookeeperConsumer"),
    "ZookeeperRebalanceListener": ("zookeeper.driver", "ConsumerRebalanceListener"),
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
