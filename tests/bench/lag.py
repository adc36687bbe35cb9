"""The lag of every partition: in records, polars beside Spark; in time, beside a straight bisection by AdminClient."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import functions as F

from kit.analyze import partition_lag
from kit.clients.cluster import Cluster, librdkafka_settings
from kit.groups.snapshot import observe
from kit.health.read.next_records import find_record_times
from kit.health.read.offset_times import RESOLUTION_MS, Position
from kit.lab.topics import QUIET
from kit.spark.session import spark_session
from kit.tables.groups import RecordTime
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, Site

LATE_PARTITIONS, LATE_GROUPS, LATE_RECORDS = 2_000, 5, 60
DAY_MS = 86_400_000
TIME_GOAL = 3
_INPUTS = ("committed_offsets", "log_offsets", "ownership", "subscriptions", "topic_partitions", "groups")


def compared(site: Site) -> Iterator[Row]:
    """For information. Spark's job computes every row and hands none back, which is kind to it."""
    with site.connect(BROKERS_ONLY) as cluster:
        snapshot = observe(cluster)
    frames = {name: getattr(snapshot, name) for name in _INPUTS}
    say("lag: starting Spark")
    spark = spark_session(app_name="bench")
    try:
        in_spark = {name: spark.createDataFrame(frame.to_arrow()) for name, frame in frames.items()}
        by_polars, by_spark = partition_lag(**frames), partition_lag(**in_spark)
        (summed,) = by_spark.agg(F.count("*"), F.sum("lag")).collect()
        expect("rows and lag by Spark", tuple(summed), (by_polars.height, by_polars["lag"].sum()))
        expect("rows of lag", by_polars.height, site.sizes.committed)
        name = f"partition_lag of {site.sizes.committed:,} rows: polars vs Spark"
        job = timed(lambda: partition_lag(**in_spark).write.format("noop").mode("overwrite").save())
        yield compare(name, timed(lambda: partition_lag(**frames)), job, None)
    finally:
        spark.stop()


def compared_in_time(site: Site) -> Iterator[Row]:
    """Lag in time of 10,000 partitions that lag by up to a day: five groups on each of 2,000 logs, each elsewhere."""
    now_ms = time.time_ns() // 1_000_000
    times = _produce_late(site, now_ms)
    chance = Random(20)
    places = {
        (*key, offset): each[offset]
        for key, each in times.items()
        for offset in sorted(chance.sample(range(LATE_RECORDS), LATE_GROUPS))
    }
    admin = AdminClient({**QUIET, "bootstrap.servers": site.lab.bootstrap_servers})
    with site.connect(BROKERS_ONLY) as cluster:
        ours = timed(lambda: _found(cluster, places, now_ms), lambda rows: _expect_held(rows, places))
        halved = timed(lambda: _halved(admin, places, now_ms), lambda ages: _expect_near(ages, places))
        sent = cluster.broker_client.n_sent
        seconds = ours()
        say(f"  {len(places):,} in {seconds:.2f} s by {cluster.broker_client.n_sent - sent} requests")
        name = f"lag in time, {len(places):,} partitions vs AdminClient, halving"
        yield compare(name, ours, halved, TIME_GOAL, 3)


def _produce_late(site: Site, now_ms: int) -> dict[tuple[str, int], list[int]]:
    """Records of a day, in bursts; → the times of each log."""
    say(f"lag in time: making {LATE_PARTITIONS:,} partitions with {LATE_RECORDS} records each")
    new = NewTopic("late", LATE_PARTITIONS, 1, config={"segment.index.bytes": "4096"})
    site.lab.admin.create_topics([new], request_timeout=120, operation_timeout=100)["late"].result(130)
    settings = {"linger.ms": 200, "queue.buffering.max.messages": 1_000_000}
    producer, chance = Producer({**QUIET, "bootstrap.servers": site.lab.bootstrap_servers, **settings}), Random(7)
    times = dict[tuple[str, int], list[int]]()
    for partition in range(LATE_PARTITIONS):
        bursts = [now_ms - chance.randrange(1000, DAY_MS) for _ in range(6)]
        each = sorted(burst + chance.randrange(900) for burst in bursts for _ in range(LATE_RECORDS // 6))
        times["late", partition] = each
        for at_ms in each:
            producer.produce("late", b"x", partition=partition, timestamp=at_ms)
    expect("records that were not written", producer.flush(120), 0)
    return times


def _found(cluster: Cluster, places: Mapping[Position, int], now_ms: int) -> list[RecordTime]:
    ends = {(topic, partition): LATE_RECORDS for topic, partition, _ in places}
    return find_record_times(cluster.broker_client, librdkafka_settings(cluster.profile), places, ends, now_ms)


def _expect_held(rows: list[RecordTime], places: Mapping[Position, int]) -> None:
    missed = [row for row in rows if not _holds(row, places[row.topic, row.partition, row.offset])]
    expect("brackets without the truth", missed[:5], [])
    expect("rows", len(rows), len(places))


def _holds(row: RecordTime, truth: int) -> bool:
    return row.from_ms is not None and row.until_ms is not None and row.from_ms <= truth <= row.until_ms


def _expect_near(found: Mapping[Position, int], places: Mapping[Position, int]) -> None:
    expect("times that are off", [place for place in places if abs(found[place] - places[place]) > RESOLUTION_MS], [])


def _halved(admin: AdminClient, places: Mapping[Position, int], now_ms: int) -> dict[Position, int]:
    """Read as a person would: a day is halved to a second, all side by side; a call may name a partition once."""
    brackets = dict.fromkeys(places, (now_ms - DAY_MS - RESOLUTION_MS, now_ms))
    by_turn: list[dict[TopicPartition, Position]] = [{} for _ in range(LATE_GROUPS)]
    for number, place in enumerate(places):
        by_turn[number % LATE_GROUPS][TopicPartition(*place[:2])] = place
    while max(high - low for low, high in brackets.values()) > RESOLUTION_MS:
        middles = {place: (low + high) // 2 for place, (low, high) in brackets.items()}
        for listed in [_asked(admin, middles, each) for each in by_turn]:  # all under way at once
            for place, future in listed.items():
                low, high = brackets[place]
                offset = future.result(60).offset
                is_later = offset < 0 or offset > place[2]
                brackets[place] = (low, middles[place]) if is_later else (middles[place], high)
    return {place: (low + high) // 2 for place, (low, high) in brackets.items()}


def _asked(
    admin: AdminClient, middles: Mapping[Position, int], each: Mapping[TopicPartition, Position]
) -> dict[Position, Any]:
    wanted = {key: OffsetSpec.for_timestamp(middles[place]) for key, place in each.items()}
    return {each[key]: future for key, future in admin.list_offsets(wanted, request_timeout=60).items()}
