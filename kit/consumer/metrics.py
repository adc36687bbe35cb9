"""A member's metrics under the names of the old consumer and KIP-125, as a dict and for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "kafka_consumer"
TYPE = "ZookeeperConsumerConnector"


@dataclass
class Metrics:
    """Metrics of one member; ``live`` returns the gauges."""

    group_id: str
    client_id: str
    live: Callable[[], dict[str, float]] = dict
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _counts: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, amount: float = 1) -> None:
        with self._lock:
            self._counts[name] = self._counts.get(name, 0) + amount

    def committed(self, store: str, n_good: int, n_failed: int) -> None:
        """``store`` is ``zookeeper``, ``kafka`` or ``both``."""
        names = {"zookeeper": ("ZooKeeperCommits",), "kafka": ("KafkaCommits",)}
        for name in names.get(store, ("ZooKeeperCommits", "KafkaCommits")) if n_good else ():
            self.add(name)
        if n_failed:
            self.add("FailedOffsetCommits", n_failed)

    def rebalanced(self, seconds: float) -> None:
        self.add("Rebalances")
        self.add("RebalanceSeconds", seconds)

    def listener_failed(self) -> None:
        self.add("ListenerFailures")

    def snapshot(self) -> dict[str, float]:
        """Every count and every gauge by name; counts are since the start."""
        with self._lock:
            counts = {name: self._counts.get(name, 0.0) for name in COUNTERS}
        return {**counts, **self.live()}


COUNTERS = {
    "ZooKeeperCommits": "Commits to ZooKeeper (KafkaConsumer metric ZooKeeperCommitsPerSec).",
    "KafkaCommits": "Commits to Kafka (KafkaCommitsPerSec).",
    "FailedOffsetCommits": "Partitions whose offset could not be committed.",
    "Rebalances": "Rebalance rounds that changed the partitions of this member (RebalanceRateAndTime).",
    "RebalanceSeconds": "Duration of the rebalance rounds that changed the partitions of this member.",
    "RebalanceRetries": "Rebalance rounds that were retried.",
    "RebalanceFailures": "Times that rebalance.max.retries was reached; the member continues.",
    "SessionExpirations": "ZooKeeper sessions lost.",
    "OffsetResets": "Partitions restarted by auto.offset.reset: the committed offset was out of range.",
    "ListenerFailures": "Exceptions of the rebalance listener.",
}
GAUGES = {
    "ActiveKafkaCoordinationCount": "1 while Kafka's assignment is in force, else 0 (KIP-125).",
    "KafkaOwnedPartitionsCount": "Partitions that Kafka's coordinator assigns to this member (KIP-125).",
    "OwnedPartitionsCount": "Partitions that this member owns in ZooKeeper.",
    "ConsumedPartitionsCount": "Partitions whose records are being delivered.",
    "DeferredToggleCount": "1 while the toggle asks for ZooKeeper but plain Kafka consumers are members.",
    "FencedPartitionsCount": "Partitions of plain Kafka consumers that this member reserves against old consumers.",
    "BlockedPartitionsCount": "Partitions assigned to this member that another member still holds.",
    "SecondsInDoubt": "Seconds for which no record could be delivered because a session is in doubt.",
    "Messages": "Records delivered.",
    "MaxLag": "The largest lag of a partition, by the log end offset of its last fetch.",
}


class PrometheusCollector(Collector):
    """A member's numbers with the old MBeans' words as labels: type, name, clientId, groupId."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        values = self._metrics.snapshot()
        labels = ["type", "name", "clientId", "groupId"]
        for name, text in COUNTERS.items():
            family = CounterMetricFamily(f"{PREFIX}_{_snake(name)}", text, labels=labels)
            yield self._with_value(family, name, values)
        for name, text in GAUGES.items():
            if name in values:
                gauge = GaugeMetricFamily(f"{PREFIX}_{_snake(name)}", text, labels=labels)
                yield self._with_value(gauge, name, values)

    def _with_value(self, family: Any, name: str, values: dict[str, float]) -> Metric:
        family.add_metric([TYPE, name, self._metrics.client_id, self._metrics.group_id], values[name])
        metric: Metric = family
        return metric


def _snake(name: str) -> str:
    text = name.replace("ZooKeeper", "Zookeeper")
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in text).lstrip("_")
