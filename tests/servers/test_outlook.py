"""When unread records are deleted: a broker really deletes them, by time and by size, and the bracket holds it."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from functools import partial

import polars as pl
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)
from typer.testing import CliRunner

from kit import connect, observe, of_group, views
from kit.cli.main import app
from kit.health import outlook, seen_at_ms, verify_outlook
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.servers.kafka import Broker
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.read.retention import fetch_retention

CHECK_MS = 300
GROUP = "left-behind"
RECORD = b"x" * 1000


@pytest.fixture(scope="module")
def lab():
    """A broker that looks every 300 ms for what it can delete, from its start on."""
    kept = Broker.settings

    def settings(self, folder):
        looks = {"log.retention.check.interval.ms": str(CHECK_MS), "log.initial.task.delay.ms": "300"}
        return kept(self, folder) | looks

    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:  # of this lab alone: others are started meanwhile
            patch.setattr(Broker, "settings", settings)
            started = stack.enter_context(Lab(brokers=1))
        yield started


@pytest.fixture(scope="module")
def profile_file(lab):
    path = lab.folder / "outlook.toml"
    path.write_text(lab.profile_toml())
    return path


@pytest.fixture(scope="module")
def cluster(profile_file):
    with connect(load_profile(file=profile_file)) as connected:
        yield connected


def set_topic(lab, topic: str, **settings: object) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    (future,) = lab.admin.incremental_alter_configs([resource]).values()
    future.result(30)


def commit(lab, topic: str, offset: int) -> None:
    wanted = ConsumerGroupTopicPartitions(f"{GROUP}-{topic}", [TopicPartition(topic, 0, offset)])
    (future,) = lab.admin.alter_consumer_group_offsets([wanted]).values()
    future.result(30)


def log_start(lab, topic: str) -> int:
    place = TopicPartition(topic, 0)
    return lab.admin.list_offsets({place: OffsetSpec.earliest()})[place].result(30).offset


def looked_at(cluster, topic: str) -> pl.DataFrame:
    snapshot = of_group(observe(cluster, f"{GROUP}-{topic}"), f"{GROUP}-{topic}")
    return views.lag(snapshot).with_columns(at_ms=pl.lit(seen_at_ms(snapshot), pl.Int64))


def is_past(lab, topic: str, offset: int) -> bool:
    return log_start(lab, topic) > offset


def deleted_ms(lab, topic: str, offset: int) -> int:
    """When the record was no longer there, epoch."""
    wait_until(partial(is_past, lab, topic, offset), f"record {offset} of {topic} deleted", 60)
    return time.time_ns() // 1_000_000


def test_by_time_the_next_record_goes_within_the_bracket(lab, cluster):
    """Records of the last 40 s in segments of ten; what is older than 45 s goes, and the reader stands."""
    lab.create_topic("by-time", 1)
    set_topic(lab, "by-time", segment_bytes=11_000, retention_ms=3_600_000)
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "batch.num.messages": 1})
    now = time.time_ns() // 1_000_000
    for number in range(80):
        producer.produce("by-time", RECORD, partition=0, timestamp=now - 40_000 + 500 * number)
        producer.flush(30)
    commit(lab, "by-time", 10)
    looks = [looked_at(cluster, "by-time")]
    set_topic(lab, "by-time", retention_ms=45_000)
    looks.append(looked_at(cluster, "by-time"))
    (row,) = outlook(cluster, pl.concat(looks)).to_dicts()
    at_ms = looks[-1]["at_ms"][0]
    assert (row["lag"], row["trend"], row["deletion_by"], row["error"]) == (70, "standing", "time", None)
    assert row["pause_ms"] == row["deletion_lower_ms"] > 0
    # Ten records, and how often the broker looks.
    assert row["deletion_upper_ms"] - row["deletion_lower_ms"] < 10_000

    gone_ms = deleted_ms(lab, "by-time", 10) - at_ms
    assert row["deletion_lower_ms"] <= gone_ms
    assert gone_ms <= row["deletion_upper_ms"] + 1000  # how long it took to be told


def test_by_size_a_reader_that_is_too_slow_is_overtaken_within_the_bracket(lab, cluster):
    """Each step 10 records are written and 4 read; 100 kB stay. The reader does not lose before the bracket says."""
    lab.create_topic("by-size", 1)
    set_topic(lab, "by-size", segment_bytes=10_000, retention_bytes=100_000, retention_ms=-1)
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "batch.num.messages": 1})
    position, begun = 0, time.monotonic()

    def step() -> None:
        nonlocal position, steps
        steps += 1
        for _ in range(10):
            producer.produce("by-size", RECORD, partition=0)
            producer.flush(30)
        position += 4
        commit(lab, "by-size", position)
        time.sleep(max(0.0, begun + 0.5 * steps - time.monotonic()))  # the pace is what is looked at

    steps, looks = 0, []
    for number in range(7):
        step()
        if number % 2 == 0:
            looks.append(looked_at(cluster, "by-size"))
    (row,) = outlook(cluster, pl.concat(looks)).to_dicts()
    at_ms = looks[-1]["at_ms"][0]
    assert (row["trend"], row["is_never_closed"], row["deletion_by"]) == ("growing", True, "size")
    assert row["is_never_deleted"] is False
    while log_start(lab, "by-size") <= position:
        step()
        assert steps < 80
    gone_ms = time.time_ns() // 1_000_000 - at_ms
    assert row["deletion_lower_ms"] <= gone_ms
    assert gone_ms <= row["deletion_upper_ms"] + 1000
    assert looked_at(cluster, "by-size")["expired_unread"][0] > 0


def test_a_topic_that_keeps_everything_and_one_that_is_compacted_delete_nothing(lab, cluster, profile_file):
    for topic, settings in (("kept", {"retention_ms": -1}), ("compacted", {"cleanup_policy": "compact"})):
        lab.create_topic(topic, 1)
        lab.produce(topic, 20)
        set_topic(lab, topic, **settings)  # a compacted topic takes no record without a key
        commit(lab, topic, 5)
    words = ["lag", "--outlook", "--over-s", "1", "--groups", f"{GROUP}-(kept|compacted)", "--profile-file"]
    ended = CliRunner().invoke(app, [*words, str(profile_file), "--json"])
    assert ended.exit_code == 0, ended.output
    rows = json.loads(ended.stdout)
    assert {(row["topic"], row["lag"], row["is_never_deleted"], row["pause_ms"]) for row in rows} == {
        ("kept", 15, True, None),
        ("compacted", 15, True, None),
    }
    assert verify_outlook(pl.DataFrame(rows)) == "Outlook: 2 partitions, all known."
    ended = CliRunner().invoke(app, [*words, str(profile_file)], env={"COLUMNS": "160"})
    assert "never at this rate" in ended.stdout


def test_a_broker_of_kafka_4_tells_the_same(kraft_lab):
    """The oldest versions of the requests are gone there."""
    kraft_lab.create_topic("kept-by-4", 2)
    set_topic(kraft_lab, "kept-by-4", retention_ms=123_000, segment_bytes=2_000_000)
    kraft_lab.produce("kept-by-4", 100)
    path = kraft_lab.folder / "outlook.toml"
    path.write_text(kraft_lab.profile_toml())
    with connect(load_profile(file=path)) as connected:
        rows = fetch_retention(connected.broker_client, {("kept-by-4", 0), ("kept-by-4", 1), ("no-such", 0)})
    *kept, absent = rows
    for row in kept:
        assert (row.cleanup_policy, row.retention_ms, row.retention_bytes) == ("delete", 123_000, -1)
        assert (row.segment_bytes, row.is_tiered, row.check_ms, row.error) == (2_000_000, False, 300_000, None)
        assert row.size_bytes > 0
    assert absent.error is not None
    assert absent.retention_ms is None
