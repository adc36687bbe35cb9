"""``__consumer_offsets`` of real brokers: what was committed, who was in the group, and every record is counted."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import replace
from datetime import timedelta

import polars as pl
import pytest
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec
from kazoo.client import KazooClient

import kit
from kit.analyze import topic_rebalances
from kit.errors import NotFound, PartialRead
from kit.lab.ports import free_ports
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.rebalances.offsets_topic import OFFSETS_TOPIC, read_offsets_topic, verify_offsets_topic
from kit.rebalances.offsets_topic.fetching import Fetch, PartitionRange
from kit.tables import schema as tables
from tests import coordinator_records as written
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import commit

TOPIC, PARTITIONS = "topic-of-offsets", 4
SESSION_MS = 40_000
MEMBER = {**QUIET, "session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 200, "auto.offset.reset": "earliest"}


@pytest.fixture(scope="module")
def spark():
    session = kit.spark_session()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def profile(lab):
    lab.create_topic(TOPIC, PARTITIONS)
    lab.produce(TOPIC, 10 * PARTITIONS)
    return profile_of(lab)


def profile_of(lab):
    path = lab.folder / "offsets-topic.toml"
    path.write_text(lab.profile_toml())
    return load_profile(file=path)


def consumer(lab, group: str, **settings) -> Consumer:
    return Consumer({**MEMBER, "bootstrap.servers": lab.bootstrap_servers, "group.id": group, **settings})


def commit_rounds(lab, group: str, *rounds: dict[int, tuple[int, str]]) -> None:
    """Each round: partition → offset and metadata, committed without being a member."""
    for each in rounds:
        commit(lab, group, *(TopicPartition(TOPIC, partition, *stored) for partition, stored in each.items()))


def fetched(profile, pattern: str) -> dict[tuple[str, str, int], tuple[int, str | None]]:
    """Return the answer of OffsetFetch; confluent-kafka ends its metadata with a NUL, which another client shows."""
    with kit.connect(profile) as cluster:
        rows = kit.observe(cluster, pattern).committed_offsets.filter(pl.col("store") == "kafka")
    columns = ["group_id", "topic", "partition", "committed_offset", "metadata"]
    return {tuple(row[:3]): tuple(row[3:]) for row in rows.select(columns).rows()}


def newest(commits: pl.DataFrame) -> dict[tuple[str, str, int], tuple[int, str | None]]:
    """The last record of each key, unless it is a tombstone."""
    key = ["group_id", "topic", "topic_partition"]
    last = commits.sort("offset").group_by(key, maintain_order=True).last().filter(~pl.col("is_tombstone"))
    return {tuple(row[:3]): tuple(row[3:]) for row in last.select(*key, "committed_offset", "metadata").rows()}


def frame(spark_frame) -> pl.DataFrame:
    return pl.DataFrame(spark_frame.toArrow())


def test_the_newest_commits_are_what_offset_fetch_reports(lab, spark, profile):
    commit_rounds(lab, "topic-one", {0: (3, ""), 1: (4, "first")}, {0: (7, "sécond"), 2: (9, "")})
    commit_rounds(lab, "topic-two", {3: (1, "x" * 300)})
    wanted = [ConsumerGroupTopicPartitions("topic-two", [TopicPartition(TOPIC, 1, 5)])]
    for future in lab.admin.alter_consumer_group_offsets(wanted).values():
        assert [answer.error for answer in future.result(SECONDS).topic_partitions] == [None]
    topic = read_offsets_topic(spark, profile, "topic-(one|two)")
    commits = frame(topic.commits)
    assert newest(commits) == fetched(profile, "topic-(one|two)")
    assert len(newest(commits)) == 5
    assert commits.filter(pl.col("group_id") == "topic-one").height == 4
    assert set(commits["value_version"]) == {3}
    assert commits["error"].null_count() == commits.height
    assert ((commits["written_at"] - commits["committed_at"]).abs() < timedelta(minutes=1)).all()
    assert frame(topic.generations).is_empty()
    check_times(spark, profile, commits)
    check_account(lab, spark, profile)


def test_a_small_topic_is_read_without_spark_as_with_it(lab, spark, profile, monkeypatch):
    commit_rounds(lab, "topic-here", {0: (3, ""), 1: (4, "first")}, {0: (7, "sécond"), 2: (9, "")})

    def start():
        raise AssertionError("Spark was started")

    here, there = (read_offsets_topic(each, profile, "topic-.*") for each in (start, spark))
    for name in ("commits", "generations", "epochs", "partitions"):
        rows = getattr(here, name)
        assert isinstance(rows, pl.DataFrame)
        by_spark = getattr(there, name)
        by_spark = by_spark if isinstance(by_spark, pl.DataFrame) else frame(by_spark)
        order = [each for each in ("partition", "offset") if each in rows.columns]
        assert rows.sort(order).equals(by_spark.sort(order)), name
    assert here.commits.height >= 4
    monkeypatch.setattr("kit.rebalances.offsets_topic.topic.SMALL", 1)
    with pytest.raises(AssertionError, match="Spark was started"):
        read_offsets_topic(start, profile, "topic-.*")


def check_times(spark, profile, commits: pl.DataFrame) -> None:
    """From the last record's time on, and until before it."""
    at = commits["written_at"].max()
    since = frame(read_offsets_topic(spark, profile, "topic-(one|two)", since=at).commits)
    until = frame(read_offsets_topic(spark, profile, "topic-(one|two)", until=at).commits)
    assert since.height >= 1
    assert set(since["written_at"]) == {at}
    assert pl.concat([since, until]).sort("partition", "offset").equals(commits.sort("partition", "offset"))


def check_account(lab, spark, profile) -> None:
    """Check of all groups that every record that a plain consumer gets is in one count, and in the tables."""
    topic = read_offsets_topic(spark, profile)
    rows = topic.partitions
    assert rows.schema == pl.DataFrame(tables.OFFSETS_PARTITIONS.schema.empty_table()).schema
    assert rows.filter(pl.col("error").is_null()).height == 3
    counted = dict(rows.select("partition", "n_records").rows())
    assert counted == plainly_counted(lab, dict(rows.select("partition", "end_offset").rows()))
    parts = ("n_commits", "n_generations", "n_epochs", "n_unsupported", "n_filtered", "n_unreadable")
    assert rows["n_records"].sum() == sum(rows[name].sum() for name in parts)
    assert topic.commits.count() == rows["n_commits"].sum()
    assert verify_offsets_topic(topic).startswith("3 of 3 partitions")


def plainly_counted(lab, ends: dict[int, int]) -> dict[int, int]:
    client = consumer(lab, "topic-count", **{"enable.partition.eof": True, "enable.auto.commit": False})
    client.assign([TopicPartition(OFFSETS_TOPIC, partition, 0) for partition in ends])
    found, going = dict.fromkeys(ends, 0), set(ends)
    deadline = time.monotonic() + SECONDS
    while going:
        at = {each.partition: each.offset for each in client.position(client.assignment())}
        assert time.monotonic() < deadline, f"partitions {going} did not end: at {at}, ends {ends}"
        going -= {partition for partition, offset in at.items() if offset >= ends[partition]}
        for message in client.consume(1000, 1.0):
            if message.error() is None:
                found[message.partition()] += message.offset() < ends[message.partition()]
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF
                going.discard(message.partition())
    client.close()
    return found


class Members:
    """Members of one group in threads of this process, by client id."""

    def __init__(self, lab, group: str):
        self.lab, self.group = lab, group
        self.running: dict[str, tuple[threading.Thread, threading.Event]] = {}

    def join(self, name: str) -> None:
        stop = threading.Event()
        thread = threading.Thread(target=self._run, args=(name, stop))
        self.running[name] = thread, stop
        thread.start()

    def _run(self, name: str, stop: threading.Event) -> None:
        member = consumer(self.lab, self.group, **{"client.id": name, "enable.auto.commit": False})
        member.subscribe([TOPIC])
        while not stop.is_set():
            member.poll(0.1)
        member.close()

    def leave(self, *names: str) -> None:
        for name in names:
            self.running[name][1].set()
        for name in names:
            thread, _ = self.running.pop(name)
            thread.join(SECONDS)
            assert not thread.is_alive(), name

    def described(self) -> dict[str, tuple[str, list[str]]] | None:
        """Member id → client id and what it is assigned, when the group is stable with all that run."""
        group = self.lab.admin.describe_consumer_groups([self.group])[self.group].result(SECONDS)
        held = {
            each.member_id: (
                each.client_id,
                sorted(f"{p.topic}-{p.partition}" for p in each.assignment.topic_partitions),
            )
            for each in group.members
        }
        is_whole = sum(len(partitions) for _, partitions in held.values()) == PARTITIONS
        state = group.state == (ConsumerGroupState.STABLE if self.running else ConsumerGroupState.EMPTY)
        return held if state and len(held) == len(self.running) and (is_whole or not held) else None

    def settled(self) -> dict[str, tuple[str, list[str]]]:
        what = f"{self.group} settled with {len(self.running)}"
        held = awaited(self.described, lambda held: held is not None, what)
        assert held is not None
        return held


def test_generations_are_what_describe_groups_reported(lab, spark, profile):
    members, seen = Members(lab, "topic-members"), []
    try:
        for change in (["a"], ["b", "c"], []):
            for name in change:
                members.join(name)
            if not change:
                members.leave("b")
            seen.append(members.settled())
    finally:
        members.leave(*members.running)
    seen.append(members.settled())
    for future in lab.admin.delete_consumer_groups(["topic-members"]).values():
        future.result(SECONDS)
    generations = frame(read_offsets_topic(spark, profile, "topic-members").generations).sort("offset")
    stored = held_by_generation(generations)
    at = [stored.index(each) for each in seen]
    assert at == sorted(at)
    assert [len(each) for each in seen] == [1, 3, 2, 0]
    check_members(generations)
    check_rebalances(generations, stored)
    assert generations.row(-1, named=True)["is_tombstone"] is True


def held_by_generation(generations: pl.DataFrame) -> list[dict[str, tuple[str, list[str]]]]:
    """Return the state by each record that isn't a tombstone."""
    found: dict[int, dict[str, tuple[str, list[str]]]] = {}
    for row in generations.filter(~pl.col("is_tombstone")).iter_rows(named=True):
        held = found.setdefault(row["offset"], {})
        if row["member_id"] is not None:
            held[row["member_id"]] = (row["client_id"], row["assigned"])
    return list(found.values())


def check_members(generations: pl.DataFrame) -> None:
    rows = generations.filter(pl.col("member_id").is_not_null())
    assert rows["subscribed"].to_list() == [[TOPIC]] * rows.height
    assert set(rows["session_timeout_ms"]) == {SESSION_MS}
    assert set(rows["client_host"]) == {"127.0.0.1"}
    assert (rows["leader_id"] != "").all()
    assert (rows["state_at"] <= rows["written_at"]).all()
    assert rows["error"].null_count() == rows.height


def check_rebalances(generations: pl.DataFrame, stored: list[dict[str, tuple[str, list[str]]]]) -> None:
    found = topic_rebalances(generations)
    assert found["members"].to_list()[-1] == []
    assert found["generation"].to_list() == list(range(1, found.height + 1))
    for before, row in zip([None, *found.iter_rows(named=True)], found.iter_rows(named=True)):
        if before is not None:
            assert set(row["joined"]) == set(row["members"]) - set(before["members"])
            assert set(row["left"]) == set(before["members"]) - set(row["members"])
    assert {tuple(row) for row in found["members"].to_list()} == {tuple(sorted(each)) for each in stored}


def test_a_deleted_group_is_a_tombstone_and_only_ended_transactions_count(lab, spark, profile):
    commit_rounds(lab, "topic-gone", {0: (3, "")})
    for future in lab.admin.delete_consumer_groups(["topic-gone"]).values():
        future.result(SECONDS)
    in_transaction(lab, "topic-paid", 11, "commit_transaction")
    in_transaction(lab, "topic-paid", 12, "abort_transaction")
    await_markers(lab)
    commits = frame(read_offsets_topic(spark, profile, "topic-(gone|paid)").commits)
    assert [
        row["is_tombstone"] for row in commits.filter(pl.col("group_id") == "topic-gone").iter_rows(named=True)
    ] == [
        False,
        True,
    ]
    told = awaited(lambda: fetched(profile, "topic-(gone|paid)"), bool, "the coordinator has heard of the commit")
    assert newest(commits) == told
    assert [row[0] for row in newest(commits).values()] == [11]
    assert 12 not in set(commits["committed_offset"])
    open_one = in_transaction(lab, "topic-paid", 13, None)
    behind = read_offsets_topic(spark, profile, "topic-paid")
    open_one.abort_transaction(SECONDS)
    account = verify_offsets_topic(behind)
    (row,) = behind.partitions.filter(pl.col("read_until") < pl.col("end_offset")).iter_rows(named=True)
    assert (
        f"Partition {row['partition']} was read to offset {row['read_until']} of {row['end_offset']}: a transaction"
        in account
    )
    assert newest(frame(behind.commits)) == fetched(profile, "topic-paid")


def await_markers(lab) -> None:
    """Return when no transaction is open in the topic: a coordinator writes the markers after it has answered."""
    latest = {TopicPartition(OFFSETS_TOPIC, number): OffsetSpec.latest() for number in range(3)}

    def ends(level: IsolationLevel) -> dict[int, int]:
        listed = lab.admin.list_offsets(latest, isolation_level=level)
        return {place.partition: future.result(SECONDS).offset for place, future in listed.items()}

    def both() -> tuple[dict[int, int], dict[int, int]]:
        return ends(IsolationLevel.READ_UNCOMMITTED), ends(IsolationLevel.READ_COMMITTED)

    awaited(both, lambda found: all(found[1][at] >= end for at, end in found[0].items()), "the end of all transactions")


def in_transaction(lab, group: str, offset: int, end: str | None) -> Producer:
    producer = Producer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "transactional.id": f"{group}-{offset}"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    member = consumer(lab, group)
    offsets = [TopicPartition(TOPIC, 0, offset)]
    producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), SECONDS)
    member.close()
    if end is not None:
        getattr(producer, end)(SECONDS)
    return producer


def test_a_partition_that_no_broker_has_is_named_and_the_rest_are_read(lab, spark, profile):
    """A topic laid out like it, one partition of which is on a broker that never was."""
    zookeeper = KazooClient(lab.zookeeper_connect)
    zookeeper.start()
    layout = {
        "version": 2,
        "partitions": {"0": [1], "1": [9], "2": [1]},
        "adding_replicas": {},
        "removing_replicas": {},
    }
    zookeeper.create("/brokers/topics/half-led", json.dumps(layout).encode())
    zookeeper.stop()
    zookeeper.close()
    producer = Producer({**QUIET, "bootstrap.servers": lab.bootstrap_servers})
    good = written.commit_value(3, 5)
    for key, value in (("known", good), ("unknown", b"\0\x63" + good)):
        producer.produce("half-led", value, written.commit_key(key, "t", 0), partition=0)
    assert producer.flush(SECONDS) == 0
    topic = read_offsets_topic(spark, profile, _topic="half-led")
    first, second, third = topic.partitions.iter_rows(named=True)
    assert (first["error"], first["n_commits"], first["n_errors"]) == (None, 2, 1)
    assert (second["error"], second["n_records"], second["others"]) == ("no broker names it", None, [])
    assert (third["error"], third["n_records"]) == (None, 0)
    assert newest(frame(topic.commits)) == {("known", "t", 0): (5, None), ("unknown", "t", 0): (None, None)}
    with pytest.raises(PartialRead, match=r"2 of 3 partitions.*Partition 1: no broker names it.*value of version 99"):
        verify_offsets_topic(topic)


def test_a_topic_that_is_not_there_is_not_found(spark, profile):
    with pytest.raises(NotFound, match="cluster 'lab' has no topic no-such-topic"):
        read_offsets_topic(spark, profile, _topic="no-such-topic")


def test_a_broker_that_does_not_answer_is_an_error_of_its_partitions(profile):
    silent = replace(profile, bootstrap_servers=f"127.0.0.1:{free_ports(1)[0]}")
    fetch = Fetch(silent, OFFSETS_TOPIC, [PartitionRange(0, 0, 10), PartitionRange(1, 4, 4)], stall_s=1)
    started = time.monotonic()
    assert list(fetch) == []
    assert time.monotonic() - started < SECONDS
    assert fetch.errors.keys() == {0}
    assert "nothing came for 1 s: " in fetch.errors[0]
    assert fetch.read_until == {1: 4}


def test_newer_versions_and_the_records_of_kip_848_are_read(kraft_lab, spark):
    kraft_lab.create_topic(TOPIC, PARTITIONS)
    commit_rounds(kraft_lab, "topic-one", {0: (3, ""), 1: (4, "x" * 200)})
    member = Consumer(
        {
            **QUIET,
            "bootstrap.servers": kraft_lab.bootstrap_servers,
            "group.id": "topic-848",
            "group.protocol": "consumer",
        }
    )
    member.subscribe([TOPIC])
    wait_until(lambda: member.poll(0.1) is None and bool(member.assignment()), "a member of topic-848", SECONDS)
    member.close()
    newer = profile_of(kraft_lab)
    topic = read_offsets_topic(spark, newer)
    commits = frame(topic.commits).filter(pl.col("group_id").str.starts_with("topic-"))
    assert newest(commits) == fetched(newer, "topic-.*")
    assert set(commits.filter(pl.col("group_id") == "topic-one")["value_version"]) == {4}
    kinds = {"group_epoch", "member", "target_epoch", "target_assignment", "current_assignment"}
    epochs = frame(topic.epochs)
    assert set(epochs.filter(pl.col("group_id") == "topic-848")["kind"]) == kinds
    assert epochs["error"].null_count() == epochs.height == topic.partitions["n_epochs"].sum()
    assert "unknown" not in " ".join(each for row in topic.partitions["others"] for each in row)
    verify_offsets_topic(topic)
