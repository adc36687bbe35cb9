"""Consumers: a member of an old ZooKeeper group, a migration-enabled one (KIP-125), a Kafka consumer (KAFKA-20385).

What is guaranteed, and what isn't: ``docs/consumers.md`` and ``docs/rebalance-listener.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

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
_, __getattr__ = lazy_names(__name__)
