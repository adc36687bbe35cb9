"""Lag in time on a real broker: the bracket holds the truth, which the records and the lab's own files tell."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import closing
from functools import partial

import polars as pl
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka.errors import UnknownBrokerIdError
from kafka.protocol.metadata import MetadataRequest
from typer.testing import CliRunner

from kit import analyze, connect, observe, of_group
from kit.cli.main import app
from kit.clients.broker_client import IN_FLIGHT
from kit.clients.cluster import librdkafka_settings
from kit.errors import ConnectError, InputError
from kit.groups import views
from kit.groups.snapshot import Snapshot
from kit.health.read.offset_times import fetch_record_times
from kit.health.read.record_timestamps import read_record_times
from kit.health.sources import METHODS, seen_at_ms, time_lag
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS
from tests.servers.coordinators import commit

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def cluster(lab):
    path = lab.folder / "time-lag.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as connected:
        yield connected


def produce_dated(lab, topic: str, times: dict[int, list[int]]) -> None:
    """Records whose timestamps are these, by partition."""
    producer = Producer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "linger.ms": 5})
    for partition, each in times.items():
        for at_ms in each:
            producer.produce(topic, b"x" * 100, partition=partition, timestamp=at_ms)
    assert producer.flush(SECONDS) == 0


def test_the_lag_in_time_of_dated_records_is_within_each_method_s_bracket(lab, cluster):
    """A steady log, a burst after hours of nothing, a lone old record, one that is read to its end."""
    lab.create_topic("dated", 4)
    start = time.time_ns() // 1_000_000 - 5 * HOUR_MS
    times = {
        0: [start + 1000 * number for number in range(2000)],
        1: [*(start + number for number in range(500)), *(start + 4 * HOUR_MS + number for number in range(500))],
        2: [start + 60_000],
        3: [start, start + 7],
    }
    produce_dated(lab, "dated", times)
    offsets = {"early": {0: 3, 1: 499, 2: 0, 3: 2}, "late": {0: 1500, 1: 500, 3: 1}}
    for group, positions in offsets.items():
        commit(lab, f"dated-{group}", *(TopicPartition("dated", *each) for each in positions.items()))

    snapshot = observe(cluster, "dated-.*")
    lag, at_ms = views.lag(snapshot), seen_at_ms(snapshot)
    truth = {
        (f"dated-{group}", partition): at_ms - times[partition][offset] if offset < len(times[partition]) else 0
        for group, positions in offsets.items()
        for partition, offset in positions.items()
    }
    for method in METHODS:
        rows = time_lag(cluster, lag, at_ms, method).to_dicts()
        found = {(row["group_id"], row["partition"]): row for row in rows}
        assert found.keys() == truth.keys()
        assert {row["method"] for row in rows} == {method}
        for key, waited_ms in truth.items():
            row = found[key]
            assert row["error"] is None
            assert row["lower_ms"] <= waited_ms <= row["upper_ms"], (method, key)
            assert row["lower_ms"] <= row["time_lag_ms"] <= row["upper_ms"]
            if method == "record":
                assert row["time_lag_ms"] == waited_ms
            if method == "bisection":
                assert abs(row["time_lag_ms"] - waited_ms) <= 1000
    with pytest.raises(InputError, match="there is no method 'guess'"):
        time_lag(cluster, lag, at_ms, "guess")


def test_records_that_were_deleted_unread_leave_the_age_of_the_oldest_that_is_kept(lab, cluster):
    lab.create_topic("cut", 1)
    start = time.time_ns() // 1_000_000 - HOUR_MS
    produce_dated(lab, "cut", {0: [start + 1000 * number for number in range(100)]})
    commit(lab, "cut-group", TopicPartition("cut", 0, 10))
    lab.admin.delete_records([TopicPartition("cut", 0, 40)])[TopicPartition("cut", 0)].result(SECONDS)
    snapshot = of_group(observe(cluster, "cut-group"), "cut-group")
    at_ms = seen_at_ms(snapshot)
    for method in METHODS:
        (row,) = time_lag(cluster, views.lag(snapshot), at_ms, method).to_dicts()
        assert row["is_truncated"], method
        assert row["lower_ms"] <= at_ms - (start + 40_000) <= row["upper_ms"], method


def test_on_a_log_that_retention_emptied_nothing_waits(lab, cluster):
    lab.create_topic("emptied", 1)
    produce_dated(lab, "emptied", {0: [time.time_ns() // 1_000_000 - HOUR_MS] * 100})
    commit(lab, "emptied-group", TopicPartition("emptied", 0, 10))
    lab.admin.delete_records([TopicPartition("emptied", 0, 100)])[TopicPartition("emptied", 0)].result(SECONDS)
    snapshot = of_group(observe(cluster, "emptied-group"), "emptied-group")
    for method in METHODS:
        (row,) = time_lag(cluster, views.lag(snapshot), seen_at_ms(snapshot), method).to_dicts()
        assert (row["lag"], row["time_lag_ms"], row["is_truncated"], row["error"]) == (90, 0, True, None), method
    (group,) = views.summary(snapshot).to_dicts()
    assert (group["lag"], group["lag_retained"], group["attention"]) == (90, 0, None)


@pytest.mark.parametrize("n_groups", [IN_FLIGHT, IN_FLIGHT + 1, 4 * IN_FLIGHT, 4 * IN_FLIGHT + 1, 200])
def test_any_number_of_groups_at_different_offsets_of_one_log_is_answered(lab, cluster, n_groups):
    """A request may name a log once, so each offset is a request of its own to the same broker at the same time."""
    topic, start = f"popular-{n_groups}", time.time_ns() // 1_000_000 - 5 * HOUR_MS
    lab.create_topic(topic, 1)
    produce_dated(lab, topic, {0: [start + 3000 * number for number in range(2 * n_groups)]})
    offsets = [2 * number for number in range(n_groups)]
    rows = fetch_record_times(cluster.broker_client, [(topic, 0, offset) for offset in offsets], start + 5 * HOUR_MS)
    assert [row.error for row in rows] == [None] * n_groups
    assert all(row.from_ms <= start + 3000 * row.offset <= row.until_ms for row in rows)
    assert [row.offset for row in rows] == offsets


def test_the_next_records_of_many_groups_on_one_log_are_all_read_before_the_deadline(lab, cluster):
    """librdkafka pauses for a second after each batch, unless ``fetch.queue.backoff.ms`` says otherwise."""
    n_groups, start = 60, time.time_ns() // 1_000_000 - HOUR_MS
    lab.create_topic("read-by-many", 2)
    produce_dated(lab, "read-by-many", {key: [start + 1000 * number for number in range(n_groups)] for key in (0, 1)})
    places = [("read-by-many", partition, number) for partition in (0, 1) for number in range(n_groups)]
    settings = librdkafka_settings(cluster.profile)
    rows = read_record_times(settings, places, {("read-by-many", 0): n_groups, ("read-by-many", 1): n_groups}, 0)
    assert {(row.error, row.appended_ms - start - 1000 * row.offset) for row in rows} == {(None, 0)}


@pytest.mark.parametrize("lab_name", ["lab", "kraft_lab"])
def test_lag_in_time_by_the_command_is_known_for_groups_below_and_above_the_limit_in_flight(
    lab_name, request, tmp_path
):
    """On Kafka 3.9.1 with ZooKeeper, and on 4.4.0."""
    running = request.getfixturevalue(lab_name)
    start, profile = time.time_ns() // 1_000_000 - HOUR_MS, tmp_path / "offramp.toml"
    profile.write_text(running.profile_toml())
    for n_groups in (IN_FLIGHT, IN_FLIGHT + 1, 4 * IN_FLIGHT + 1):
        name = f"crowded-{n_groups}"
        running.create_topic(name, 1)
        produce_dated(running, name, {0: [start + 20_000 * number for number in range(n_groups)]})
        for number in range(n_groups):
            commit(running, f"{name}-{number}", TopicPartition(name, 0, number))
        words = ["lag", "--time", "--json", "--groups", f"{name}-.*", "--profile-file", str(profile)]
        begun_ms = time.time_ns() // 1_000_000
        ended = CliRunner().invoke(app, words)
        assert ended.exit_code == 0, ended.output
        rows = {row["committed_offset"]: row for row in json.loads(ended.stdout)}
        assert set(rows) == set(range(n_groups))
        for number, row in rows.items():
            age_ms = begun_ms - (start + 20_000 * number)
            assert row["lag"] == n_groups - number
            assert row["error"] is None
            assert row["upper_ms"] >= age_ms
            assert abs(row["time_lag_ms"] - age_ms) < 20_000


def test_the_offsets_of_groups_on_many_logs_are_found_together(lab, cluster):
    n_logs, n_groups, start = 40, 12, time.time_ns() // 1_000_000 - 5 * HOUR_MS
    lab.create_topic("popular-logs", n_logs)
    produce_dated(
        lab, "popular-logs", {log: [start + 600_000 * n + 777 * log for n in range(24)] for log in range(n_logs)}
    )
    places = [("popular-logs", log, 2 * group) for log in range(n_logs) for group in range(n_groups)]
    rows = fetch_record_times(cluster.broker_client, places, start + 5 * HOUR_MS)
    assert {row.error for row in rows} == {None}
    assert all(row.from_ms <= start + 600_000 * row.offset + 777 * row.partition <= row.until_ms for row in rows)


@pytest.mark.parametrize("n_requests", [4 * IN_FLIGHT, 4 * IN_FLIGHT + 1, 500])
@pytest.mark.parametrize("broker_id", [None, 1])
def test_requests_that_are_sent_at_once_wait_for_their_turn_in_the_client(cluster, n_requests, broker_id):
    client = cluster.broker_client

    async def ask():
        request = partial(MetadataRequest, topics=[], allow_auto_topic_creation=False)
        futures = [client.send(request(), broker_id) for _ in range(n_requests)]
        return [await future for future in futures]

    assert {answer.cluster_id for answer in client.run(ask)} == {cluster.cluster_id}


def test_requests_that_are_sent_at_once_to_an_unknown_broker_all_fail(cluster):
    client = cluster.broker_client

    async def ask():
        return [await client.send(MetadataRequest(topics=[]), 4711) for _ in range(2)]

    async def ask_at_once():
        failures = 0
        for future in [client.send(MetadataRequest(topics=[]), 4711) for _ in range(2000)]:
            try:
                await future
            except UnknownBrokerIdError:
                failures += 1
        return failures

    assert client.run(ask_at_once) == 2000
    with pytest.raises(ConnectError):
        client.run(ask)


class Flow:
    """A topic that is written and read; the ends of its logs and what the group committed are polled."""

    def __init__(self, lab, cluster) -> None:
        self.cluster, self.polls = cluster, []
        self.producer = lab.start_producer("flowing", 100)
        self.reader = lab.start_new_consumer("flowing-group", "flowing")

    def poll(self) -> Snapshot:
        """Poll once more, 60 records later."""
        wanted = len(self.producer.acknowledged()) + 60
        wait_until(lambda: len(self.producer.acknowledged()) > wanted, "60 more records", SECONDS)
        before = time.time_ns() // 1_000_000
        snapshot = of_group(observe(self.cluster, "flowing-group"), "flowing-group")
        logs = snapshot.log_offsets.select("topic", "partition", "log_end_offset")
        self.polls.append(logs.with_columns(sampled_ms=pl.lit(before), sampled_until_ms=pl.lit(seen_at_ms(snapshot))))
        return snapshot

    def has_read_beyond_the_first_poll(self) -> bool:
        ends = dict(self.polls[0].select("partition", "log_end_offset").iter_rows())
        read = Counter[int]()
        for record in self.reader.records():
            read[record["partition"]] = max(read[record["partition"]], record["offset"] + 1)
        return all(read[partition] > end for partition, end in ends.items())


def made_ms(lab, partition: int, offset: int) -> int:
    """The timestamp of a record, by a plain consumer."""
    settings = {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": "flowing-check"}
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition("flowing", partition, offset)])
        message = consumer.poll(SECONDS)
        assert message is not None, f"no record {offset} of partition {partition}"
        assert (message.error(), message.offset()) == (None, offset)
        return message.timestamp()[1]


def test_the_age_of_what_a_stopped_reader_reads_next_is_within_each_bracket(lab, cluster):
    """By polls: the lab knows when each record was acknowledged, the record when it was made."""
    lab.create_topic("flowing", 2)
    flow = Flow(lab, cluster)
    for _ in range(2):
        flow.poll()
    wait_until(flow.has_read_beyond_the_first_poll, "records after the first poll delivered", SECONDS)
    flow.reader.stop()
    for _ in range(2):
        snapshot = flow.poll()
    flow.producer.stop()

    at_ms, lag = seen_at_ms(snapshot), views.lag(snapshot)
    assert lag["lag"].min() > 0
    acknowledged = {(each["partition"], each["offset"]): each["at_ms"] for each in flow.producer.acknowledged()}
    by_record = {row["partition"]: row["time_lag_ms"] for row in time_lag(cluster, lag, at_ms, "record").to_dicts()}
    places = dict(lag.select("partition", "committed_offset").iter_rows())
    made = {partition: at_ms - made_ms(lab, partition, offset) for partition, offset in places.items()}
    assert by_record == made
    for row in analyze.time_lag_by_polls(lag, pl.concat(flow.polls), at_ms).to_dicts():
        since_acknowledged = at_ms - acknowledged[row["partition"], row["committed_offset"]]
        assert since_acknowledged <= made[row["partition"]]
        assert row["lower_ms"] <= made[row["partition"]]
        assert since_acknowledged <= row["upper_ms"]
        assert not row["is_extrapolated"]
    for row in time_lag(cluster, lag, at_ms).to_dicts():
        assert row["lower_ms"] <= made[row["partition"]] <= row["upper_ms"]
