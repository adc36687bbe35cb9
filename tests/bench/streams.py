"""One stream of a ZooKeeper member beside a bare ``consume()`` loop: the same records, every value examined."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from kit.consumer.zookeeper.brokers import fetch_settings
from kit.consumer.zookeeper.config import ConsumerConfig
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.lab.topics import QUIET
from tests.bench.clock import compare, expect, say
from tests.bench.rows import Row
from tests.bench.site import Site

PARTITIONS = 4
CHUNK, POLL_SECONDS = 500, 0.1
GOAL, ROUNDS = 0.8, 9


def compared(site: Site) -> Iterator[Row]:
    for count, size in ((1_000_000, 100), (300_000, 1_000)):
        topic = f"stream-{size}"
        say(f"writing {count:,} records of {size} bytes")
        _fill(site, topic, count, size)
        ours, bare = partial(_through_a_stream, site, topic, count), partial(_bare, site, topic, count)
        tuned = fetch_settings(ConsumerConfig.parse(_config(site, "tuned")), site.lab.bootstrap_servers)
        name = f"one stream, {count:,} × {size} B"
        yield compare(f"{name} vs a bare consume() loop", ours, partial(bare, {}), GOAL, ROUNDS)
        yield compare(f"{name} vs one with the stream's settings", ours, partial(bare, tuned), None, ROUNDS)


def _fill(site: Site, topic: str, count: int, size: int) -> None:
    site.lab.create_topic(topic, PARTITIONS)
    settings = {"linger.ms": 50, "batch.num.messages": 10_000, "queue.buffering.max.messages": count}
    producer = Producer(
        {**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, **settings, "queue.buffering.max.kbytes": 2**20}
    )
    for number in range(count):
        producer.produce(topic, b"x" * size, partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def _config(site: Site, group: str) -> dict[str, Any]:
    return {
        "group.id": group,
        "zookeeper.connect": site.lab.zookeeper_connect,
        "auto.offset.reset": "smallest",
        "auto.commit.interval.ms": 1000,
    }


def _through_a_stream(site: Site, topic: str, count: int) -> float:
    """Seconds from the first record to the last, commits included."""
    found = octets = 0
    started = 0.0
    with ZookeeperConsumer(_config(site, f"{topic}-{time.time_ns()}")) as consumer:
        (stream,) = consumer.create_message_streams({topic: 1})[topic]
        for message in stream:
            if not found:
                started = time.perf_counter()
            octets += len(message.value() or b"")
            found += 1
            if found == count:
                break
        seconds = time.perf_counter() - started
    expect("octets", octets, count * int(topic.rpartition("-")[2]))
    return seconds


def _bare(site: Site, topic: str, count: int, settings: dict[str, Any]) -> float:
    found = octets = 0
    started = 0.0
    base = {**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, "group.id": "bare", "enable.auto.commit": False}
    consumer = Consumer({**base, **settings})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    while found < count:
        for message in consumer.consume(CHUNK, POLL_SECONDS):
            if not found:
                started = time.perf_counter()
            octets += len(message.value() or b"")
            found += 1
    seconds = time.perf_counter() - started
    consumer.close()
    expect("octets", octets, count * int(topic.rpartition("-")[2]))
    return seconds
