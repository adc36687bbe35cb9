"""``__consumer_offsets`` into Arrow by Spark's tasks, beside a bare ``consume()`` loop that decodes nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from kit.lab.topics import QUIET
from kit.profile import Profile, SparkSettings, load_profile
from kit.rebalances.offsets_topic import OffsetsTopic, read_offsets_topic
from kit.rebalances.offsets_topic.commits import commit_rows
from kit.rebalances.offsets_topic.fetching import BATCH, WAIT_S, Fetch, PartitionRange, reader_settings
from kit.rebalances.offsets_topic.keys import parse_keys
from kit.spark.session import spark_session
from tests.bench.clock import expect, in_turn, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, Site
from tests.coordinator_records import commit_key

TOPIC = "laid-out-like-offsets"
RECORDS, PARTITIONS, GROUPS, TOPIC_PARTITIONS = 1_000_000, 10, 5_000, 20
RECORDS_PER_SECOND = 300_000
GOAL = 0.7
_ROUNDS = 5


def compared(site: Site) -> Iterator[Row]:
    say(f"writing {RECORDS:,} offset commits")
    _fill(site)
    profile = load_profile(BROKERS_ONLY, site.profiles)
    spark = spark_session(replace(profile, spark=SparkSettings(master="local[2]")))
    try:
        topic = read_offsets_topic(spark, profile, _topic=TOPIC)
        yield from _compared(profile, topic)
    finally:
        spark.stop()


def _compared(profile: Profile, topic: OffsetsTopic) -> Iterator[Row]:
    ways = {
        "ours": timed(lambda: topic.commits.toArrow(), lambda found: expect("rows", len(found), RECORDS)),
        "into Spark": timed(lambda: topic.commits.write.format("noop").mode("overwrite").save()),
        "one task alone": timed(lambda: _one_task(profile), lambda found: expect("rows", found, RECORDS)),
        "peer": timed(lambda: _bare(profile), lambda found: expect("records", found, RECORDS)),
    }
    for way in ways.values():
        way()
    name = f"offsets topic, {RECORDS:,} commits"
    ours, into_spark, alone, peer = in_turn(name, ways, _ROUNDS)
    yield Row(f"{name} vs a bare consume() loop", ours, peer, "s", GOAL)
    yield Row(f"{name} vs {RECORDS_PER_SECOND:,} a second", ours, RECORDS / RECORDS_PER_SECOND, "s", 1)
    yield Row(f"{name}, as Spark's rows only, vs that loop", into_spark, peer, "s", None)
    yield Row(f"{name}, one task without Spark vs that loop", alone, peer, "s", None)


def _fill(site: Site) -> None:
    """Records as Kafka 2.1 to 4.0 writes them, every group in one partition."""
    site.lab.create_topic(TOPIC, PARTITIONS)
    settings = {"linger.ms": 50, "batch.num.messages": 10_000, "queue.buffering.max.messages": RECORDS}
    producer = Producer(
        {**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, **settings, "queue.buffering.max.kbytes": 2**20}
    )
    for number in range(RECORDS):
        group = number // TOPIC_PARTITIONS % GROUPS
        key = commit_key(f"bench-group-{group:05d}", "orders", number % TOPIC_PARTITIONS)
        value = struct.pack(">hqihq", 3, number, -1, 0, 1_700_000_000_000 + number)
        producer.produce(TOPIC, value, key, partition=group % PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    producer.flush()


def _one_task(profile: Profile) -> int:
    """Do a task's work for all partitions, in this process."""
    parts = [PartitionRange(number, 0, RECORDS // PARTITIONS) for number in range(PARTITIONS)]
    return sum(len(commit_rows(each, parse_keys(each.keys))) for each in Fetch(profile, TOPIC, parts))


def _bare(profile: Profile) -> int:
    """With our settings: librdkafka's own make this loop rest for seconds."""
    consumer = Consumer(_without_notices(reader_settings(profile)))
    consumer.assign([TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found = 0
    while found < RECORDS:
        found += len(consumer.consume(BATCH, WAIT_S))
    consumer.close()
    return found


def _without_notices(settings: dict[str, Any]) -> dict[str, Any]:
    return {**settings, "enable.partition.eof": False}
