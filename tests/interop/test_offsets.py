"""Offsets are written and read: ZooKeeper, Kafka, both – against real stores, and beside real JVM members."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient

from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.consumer.zookeeper.streams import ConsumerTimeout
from kit.errors import InputError
from kit.lab import Lab
from kit.lab.process import wait_until

SECONDS = 90
QUICK = {"auto.offset.reset": "smallest", "rebalance.backoff.ms": 300, "consumer.timeout.ms": SECONDS * 1000}
IMPATIENT = {**QUICK, "consumer.timeout.ms": 1500}
"""The settings of members that have nothing to deliver."""
BY_HAND = {**QUICK, "auto.commit.enable": False}
Make = Callable[..., ZookeeperConsumer]


@pytest.fixture
def zookeeper(lab: Lab) -> Iterator[KazooClient]:
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def consumer(lab: Lab) -> Iterator[Make]:
    """Makes consumers in this process; they are shut down after the test."""
    made: list[ZookeeperConsumer] = []

    def make(group: str, settings: dict[str, Any], migrating: bool = False) -> ZookeeperConsumer:
        migration = {
            "offsets.storage": "kafka",
            "coordination.migration.enabled": True,
            "coordination.migration.bootstrap.servers": lab.bootstrap_servers,
        }
        config = {"group.id": group, "zookeeper.connect": lab.zookeeper_connect}
        made.append(ZookeeperConsumer({**config, **(migration if migrating else {}), **settings}))
        return made[-1]

    yield make
    for each in made:
        each.shutdown()


def topic_of(lab: Lab, name: str, records: int = 20) -> str:
    """A topic of one partition with so many records."""
    lab.create_topic(name, 1)
    lab.produce(name, records)
    return name


def first(consumer: ZookeeperConsumer, topic: str) -> int:
    """The offset its stream begins at."""
    (stream,) = consumer.create_message_streams({topic: 1})[topic]
    return int(next(iter(stream)).offset() or 0)


def in_zookeeper(client: KazooClient, group: str, topic: str) -> int | None:
    path = f"/consumers/{group}/offsets/{topic}/0"
    return int(client.get(path)[0]) if client.exists(path) else None


def put_in_zookeeper(client: KazooClient, group: str, topic: str, offset: int) -> None:
    client.create(f"/consumers/{group}/offsets/{topic}/0", str(offset).encode(), makepath=True)


def as_nobody(lab: Lab, group: str) -> Consumer:
    return Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": group, "enable.auto.commit": False})


def in_kafka(lab: Lab, group: str, topic: str) -> int:
    client = as_nobody(lab, group)
    try:
        return int(client.committed([TopicPartition(topic, 0)], timeout=SECONDS)[0].offset)
    finally:
        client.close()


def put_in_kafka(lab: Lab, group: str, topic: str, offset: int) -> None:
    client = as_nobody(lab, group)
    try:
        client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        client.close()


@pytest.mark.parametrize(
    ("storage", "zookeeper_has", "kafka_has", "begins_at"),
    [
        ({"offsets.storage": "zookeeper"}, 7, 12, 7),
        ({"offsets.storage": "kafka", "dual.commit.enabled": False}, 15, 12, 12),
        ({"offsets.storage": "kafka"}, 7, 12, 12),
        ({"offsets.storage": "kafka"}, 15, 12, 15),
        ({"offsets.storage": "kafka"}, None, 12, 12),
        ({"offsets.storage": "zookeeper"}, None, 12, 0),
    ],
)
def test_a_member_begins_at_its_committed_offset(
    lab: Lab,
    zookeeper: KazooClient,
    consumer: Make,
    request: pytest.FixtureRequest,
    storage: dict[str, Any],
    zookeeper_has: int | None,
    kafka_has: int,
    begins_at: int,
) -> None:
    """A member begins like the old consumer: by its storage, and with both at the higher offset."""
    topic = topic_of(lab, f"begin-{request.node.callspec.indices['begins_at']}")
    group = f"{topic}-g"
    put_in_kafka(lab, group, topic, kafka_has)
    if zookeeper_has is not None:
        put_in_zookeeper(zookeeper, group, topic, zookeeper_has)
    assert first(consumer(group, {**BY_HAND, **storage}), topic) == begins_at


def test_an_idle_partition_taken_from_kafka_is_written_to_zookeeper_too(
    lab: Lab, zookeeper: KazooClient, consumer: Make
) -> None:
    """The poisoned checkpoint: a JVM member leaves ZooKeeper's 5 there, and the next one reads 15 records again."""
    topic, group = topic_of(lab, "poisoned"), "poisoned-g"
    put_in_kafka(lab, group, topic, 20)
    put_in_zookeeper(zookeeper, group, topic, 5)
    member = consumer(group, {**IMPATIENT, "offsets.storage": "kafka"})
    (stream,) = member.create_message_streams({topic: 1})[topic]
    wait_until(lambda: member.metrics.snapshot()["ConsumedPartitionsCount"] == 1, "it consumes the partition", SECONDS)
    with pytest.raises(ConsumerTimeout):
        next(iter(stream))
    member.shutdown()
    assert in_zookeeper(zookeeper, group, topic) == 20


def test_commits_that_kafka_refuses_are_reported_and_do_not_keep_zookeeper_back(
    lab: Lab, zookeeper: KazooClient, consumer: Make
) -> None:
    """The frozen commits: with a Kafka member in the group a JVM member commits nowhere, and says nothing."""
    topic, group = topic_of(lab, "frozen"), "frozen-g"
    topic_of(lab, "frozen-other", 1)
    plain = lab.start_new_consumer(group, "frozen-other")
    member = consumer(group, {**BY_HAND, "offsets.storage": "kafka"})
    (stream,) = member.create_message_streams({topic: 1})[topic]
    for _, _ in zip(range(6), stream):
        pass
    errors = member.commit_offsets()
    assert set(errors) == {(topic, 0)}
    assert "kafka: UNKNOWN_MEMBER_ID" in errors[topic, 0]
    assert in_zookeeper(zookeeper, group, topic) == 6
    assert member.metrics.snapshot()["FailedOffsetCommits"] == 1
    plain.stop()


def test_a_migration_enabled_member_commits_to_both_as_a_member(
    lab: Lab, zookeeper: KazooClient, consumer: Make
) -> None:
    topic, group = topic_of(lab, "dual"), "dual-g"
    member = consumer(group, BY_HAND, migrating=True)
    (stream,) = member.create_message_streams({topic: 1})[topic]
    list(itertools.islice(stream, 8))
    wait_until(lambda: member.metrics.snapshot()["KafkaOwnedPartitionsCount"] == 1, "it is in the Kafka group", SECONDS)
    assert member.commit_offsets() == {}
    assert in_zookeeper(zookeeper, group, topic) == in_kafka(lab, group, topic) == 8


def test_an_offset_that_another_client_raised_is_not_lowered(lab: Lab, zookeeper: KazooClient, consumer: Make) -> None:
    topic, group = topic_of(lab, "raised"), "raised-g"
    member = consumer(group, BY_HAND)
    (stream,) = member.create_message_streams({topic: 1})[topic]
    list(itertools.islice(stream, 4))
    assert member.commit_offsets() == {}
    zookeeper.set(f"/consumers/{group}/offsets/{topic}/0", b"15")
    list(itertools.islice(stream, 2))
    assert "ZooKeeper already has the higher offset 15, so 6 was not written" in member.commit_offsets()[topic, 0]
    assert in_zookeeper(zookeeper, group, topic) == 15


@pytest.mark.parametrize("reset", ["smallest", "largest"])
def test_an_offset_out_of_range_is_reset_and_may_then_be_lower(
    lab: Lab, zookeeper: KazooClient, consumer: Make, reset: str
) -> None:
    topic, group = topic_of(lab, f"range-{reset}"), f"range-{reset}-g"
    put_in_zookeeper(zookeeper, group, topic, 500)
    member = consumer(group, {**BY_HAND, "auto.offset.reset": reset})
    (stream,) = member.create_message_streams({topic: 1})[topic]
    with ThreadPoolExecutor(1) as pool:
        record = pool.submit(next, iter(stream))
        wait_until(lambda: member.metrics.snapshot()["OffsetResets"] == 1, "the reset", SECONDS)
        lab.produce(topic, 1)
        assert record.result(SECONDS).offset() == (0 if reset == "smallest" else 20)
    stream.taken()  # It was read by another thread, for which this one can't speak otherwise.
    assert member.commit_offsets() == {}
    assert in_zookeeper(zookeeper, group, topic) == (1 if reset == "smallest" else 21)


def test_an_offset_that_is_no_number_is_named_and_kept(lab: Lab, zookeeper: KazooClient, consumer: Make) -> None:
    topic, group = topic_of(lab, "garbled"), "garbled-g"
    zookeeper.create(f"/consumers/{group}/offsets/{topic}/0", b"twelve", makepath=True)
    member = consumer(group, IMPATIENT)
    (stream,) = member.create_message_streams({topic: 1})[topic]
    with pytest.raises(ConsumerTimeout):
        next(iter(stream))
    zookeeper.set(f"/consumers/{group}/offsets/{topic}/0", b"12")
    offsets: list[int | None] = []

    def has_record() -> bool:
        with suppress(ConsumerTimeout):
            offsets.append(next(iter(stream)).offset())
        return bool(offsets)

    wait_until(has_record, "the first record", SECONDS)
    assert offsets == [12]


def test_streams_are_made_once_and_nothing_is_committed_after_the_end(lab: Lab, consumer: Make) -> None:
    topic = topic_of(lab, "once", 3)
    member = consumer("once-g", QUICK)
    with pytest.raises(InputError, match="no streams"):
        member.commit_offsets()
    (stream,) = member.create_message_streams({topic: 1})[topic]
    with pytest.raises(InputError, match="has created its streams already"):
        member.create_message_streams_by_filter(allow="x")
    with pytest.raises(InputError, match="before streams are created"):
        member.set_consumer_rebalance_listener(object())  # type: ignore[arg-type]
    member.shutdown()
    assert list(stream) == []
    with pytest.raises(InputError, match="the consumer is shut down"):
        member.commit_offsets()
