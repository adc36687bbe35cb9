"""A broker really deletes unread records, by time and by size, and the bracket holds the time."""

from __future__ import annotations

import json
import time

import polars as pl
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    OffsetSpec,
)
from confluent_kafka.cimpl import NewTopic
from typer.testing import CliRunner

from kit import connect, observe, of_group
from kit.cli.main import app
from kit.groups import views
from kit.health.read.retention import fetch_retention
from kit.health.sources import outlook, seen_at_ms, verify_outlook
from kit.lab import topics
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import commit
from tests.servers.tuned_lab import TunedLab

GROUP = "left-behind"
RECORD = b"x" * 1000
LOOKS_OFTEN = {"log.retention.check.interval.ms": "300", "log.initial.task.delay.ms": "300"}
"""The broker searches for what it can delete."""
SPACING_MS, AHEAD_MS = 1000, 15_000
"""Between two records; from the retention's setting to the deletion."""
STEP_MS, WRITTEN, READ = 500, 10, 4
"""The length of a step by the test's clock; the records of a step."""


@pytest.fixture(scope="module")
def lab():
    with TunedLab(LOOKS_OFTEN) as started:
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


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def create_topic(lab, topic: str, partitions: int = 1, **settings: object) -> None:
    """The settings hold from the first record on: a broker hears of later ones after a while."""
    config = {name.replace("_", "."): str(value) for name, value in settings.items()}
    lab.admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(SECONDS)
    wait_until(lambda: topics.is_whole(lab.admin, topic, partitions, 1), f"topic {topic}", SECONDS)


def set_topic(lab, topic: str, **settings: object) -> None:
    entries = [
        ConfigEntry(name.replace("_", "."), str(value), incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
    (future,) = lab.admin.incremental_alter_configs([resource]).values()
    future.result(SECONDS)


def produce(lab, topic: str, *times: int) -> None:
    """One record in each batch, so that all are of one length; ``times`` are their timestamps, 0: now."""
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "batch.num.messages": 1})
    for at_ms in times:
        producer.produce(topic, RECORD, partition=0, timestamp=at_ms)
    assert producer.flush(SECONDS) == 0


def commit_one(lab, topic: str, offset: int) -> None:
    commit(lab, f"{GROUP}-{topic}", TopicPartition(topic, 0, offset))


def bound(lab, topic: str, of: OffsetSpec) -> int:
    place = TopicPartition(topic, 0)
    return lab.admin.list_offsets({place: of})[place].result(SECONDS).offset


def log_start(lab, topic: str) -> int:
    return bound(lab, topic, OffsetSpec.earliest())


def looked_at(cluster, topic: str, at_ms: int | None = None) -> pl.DataFrame:
    snapshot = of_group(observe(cluster, f"{GROUP}-{topic}"), f"{GROUP}-{topic}")
    at_ms = seen_at_ms(snapshot) if at_ms is None else at_ms
    return views.lag(snapshot).with_columns(at_ms=pl.lit(at_ms, pl.Int64))


def deletion_of(lab, topic: str, offset: int, there_ms: int) -> tuple[int, int]:
    """Return when the record was there for the last time, and when it was gone for the first time (epoch)."""
    asked = [there_ms]

    def is_gone() -> bool:
        asked.append(now_ms())
        return log_start(lab, topic) > offset

    wait_until(is_gone, f"record {offset} of {topic} deleted", SECONDS)
    return asked[-2], now_ms()


def test_by_time_the_next_record_goes_within_the_bracket(lab, cluster):
    """The group reads nothing. Its segment of ten records is deleted 15 s after the retention is set."""
    create_topic(lab, "by-time", segment_bytes=11_000, retention_ms=3_600_000)
    first_ms = now_ms() - 80 * SPACING_MS
    produce(lab, "by-time", *(first_ms + SPACING_MS * number for number in range(80)))
    commit_one(lab, "by-time", 0)
    looks = [looked_at(cluster, "by-time") for _ in range(2)]
    set_topic(lab, "by-time", retention_ms=now_ms() + AHEAD_MS - (first_ms + SPACING_MS * 9))
    (row,) = outlook(cluster, pl.concat(looks)).to_dicts()
    at_ms = looks[-1]["at_ms"][0]
    assert log_start(lab, "by-time") == 0, "the machine is slower than AHEAD_MS allows"
    assert (row["lag"], row["trend"], row["deletion_by"], row["error"]) == (80, "standing", "time", None)
    assert row["pause_ms"] == row["deletion_lower_ms"] > 0
    # Ten records, and how often the broker looks.
    assert row["deletion_upper_ms"] - row["deletion_lower_ms"] < 12 * SPACING_MS

    there_ms, gone_ms = deletion_of(lab, "by-time", 0, at_ms)
    assert row["deletion_lower_ms"] <= gone_ms - at_ms, row
    assert there_ms - at_ms <= row["deletion_upper_ms"], row


def test_by_size_a_reader_that_is_too_slow_is_overtaken_within_the_bracket(lab, cluster):
    """Each step 10 records are written and 4 read; 100 kB stay. The reader does not lose before the bracket says.

    By the clock of the steps: a size does not depend on how fast this machine takes them.
    """
    create_topic(lab, "by-size", segment_bytes=10_000, retention_bytes=100_000, retention_ms=-1)
    begun_ms, steps, looks = now_ms(), 0, []
    history = []

    def step() -> None:
        nonlocal steps
        steps += 1
        produce(lab, "by-size", *[0] * WRITTEN)
        commit_one(lab, "by-size", READ * steps)
        history.append((steps, READ * steps, start_when_deleted(lab, cluster, "by-size", WRITTEN * steps)))

    for number in range(7):
        step()
        if number % 2 == 0:
            looks.append(looked_at(cluster, "by-size", begun_ms + STEP_MS * steps))
    (row,) = outlook(cluster, pl.concat(looks)).to_dicts()
    assert (row["trend"], row["is_never_closed"], row["deletion_by"]) == ("growing", True, "size")
    assert row["is_never_deleted"] is False
    while history[-1][2] <= READ * steps:
        step()
        assert steps < 80, history
    gone_ms = STEP_MS * (steps - 7)
    assert row["deletion_lower_ms"] <= gone_ms, (row, history)
    assert gone_ms <= row["deletion_upper_ms"] + STEP_MS, (row, history)
    assert looked_at(cluster, "by-size")["expired_unread"][0] > 0


def start_when_deleted(lab, cluster, topic: str, end: int) -> int:
    """Return where the log starts once the broker has deleted each segment without which it is as long as the limit."""

    def state() -> tuple[int, int, int]:
        (row,) = fetch_retention(cluster.broker_client, {(topic, 0)})
        start = log_start(lab, topic)
        record = row.size_bytes // (end - start)
        return start, row.size_bytes - row.segment_bytes // record * record, row.retention_bytes

    return awaited(state, lambda read: read[1] < read[2], "the deletion of what is beyond the size")[0]


def test_a_topic_that_keeps_everything_and_one_that_is_compacted_delete_nothing(lab, cluster, profile_file):
    for topic, settings in (("kept", {"retention_ms": -1}), ("compacted", {"cleanup_policy": "compact"})):
        lab.create_topic(topic, 1)
        lab.produce(topic, 20)
        set_topic(lab, topic, **settings)  # a compacted topic takes no record without a key
        commit_one(lab, topic, 5)
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


def test_a_broker_of_kafka_4_reports_the_same(kraft_lab):
    """The oldest versions of the requests are gone there."""
    create_topic(kraft_lab, "kept-by-4", 2, retention_ms=123_000, segment_bytes=2_000_000)
    topics.produce(kraft_lab.servers.addresses(), "kept-by-4", 2, 0, 100)
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
