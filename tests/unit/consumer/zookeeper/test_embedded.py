"""The embedded consumer commits after a partition's offset was out of range: a scripted librdkafka."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.consumer.zookeeper.effects import KafkaAssignment, Membership
from kit.consumer.zookeeper.embedded import EmbeddedConsumer
from kit.consumer.zookeeper.offsets import KafkaOffsets

PAIR, OTHER = ("orders", 0), ("orders", 1)
SECONDS = 10.0


class Librdkafka:
    """Takes every commit; ``there`` is what the coordinator has."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.there: dict[tuple[str, int], int] = {}
        self._answer = settings["on_commit"]

    def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> None:
        self.there |= {(each.topic, each.partition): each.offset for each in offsets}
        self._answer(None, offsets)

    def poll(self, seconds: float) -> None:
        pass

    def close(self) -> None:
        pass


@pytest.fixture
def embedded() -> Iterator[EmbeddedConsumer]:
    consumer = EmbeddedConsumer({}, 0.01, id, bool, bool, id, Librdkafka)  # type: ignore[arg-type]
    consumer.assignment = KafkaAssignment(Membership.IN, 1, frozenset({PAIR, OTHER}))
    yield consumer
    consumer.close()


def in_kafka(embedded: EmbeddedConsumer) -> dict[tuple[str, int], int]:
    return embedded._consumer.there  # type: ignore[attr-defined, no-any-return]


def test_an_offset_that_is_not_sent_is_an_error_of_its_partition(embedded: EmbeddedConsumer) -> None:
    store = KafkaOffsets(embedded.commit, embedded.commit, 0.01, SECONDS, 0)
    assert store.commit({PAIR: 1000, OTHER: 5}, SECONDS) == {}
    assert store.commit({PAIR: 300, OTHER: 6}, SECONDS).keys() == {PAIR}
    assert store.commit({PAIR: 300}, SECONDS).keys() == {PAIR}
    assert in_kafka(embedded) == {PAIR: 1000, OTHER: 6}


def test_an_offset_out_of_range_is_lowered_in_kafka(embedded: EmbeddedConsumer) -> None:
    member = ZookeeperConsumer({"group.id": "g", "zookeeper.connect": "localhost:1"})
    member._brokers = SimpleNamespace(log_offsets=lambda pairs, at, seconds: dict.fromkeys(pairs, 0))  # type: ignore[assignment]
    member._driver = SimpleNamespace(embedded=embedded)  # type: ignore[assignment]
    store = KafkaOffsets(embedded.commit, embedded.commit, 0.01, SECONDS, 0)
    assert store.commit({PAIR: 1000}, SECONDS) == {}
    assert member._out_of_range(PAIR, "the log ends at 300") == 0
    assert store.commit({PAIR: 300}, SECONDS) == {}
    assert in_kafka(embedded) == {PAIR: 300}
