"""Groups that are not in use, on real servers: their last commits, by the coordinators' topic and by ZooKeeper."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from confluent_kafka import Consumer, ConsumerGroupState, TopicPartition
from typer.testing import CliRunner

import kit
from kit import health
from kit.cli.main import app
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from kit.tables import schema as tables
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import commit
from tests.soak import soak_only

TOPIC = "idle-topic"


@pytest.fixture(scope="module")
def profile_file(lab):
    lab.create_topic(TOPIC, 2)
    lab.produce(TOPIC, 20)
    path = lab.folder / "idle.toml"
    path.write_text(lab.profile_toml())
    return path


def commit_both(lab, group: str, offset: int) -> None:
    commit(lab, group, *(TopicPartition(TOPIC, number, offset) for number in (0, 1)))


def state_of(lab, group: str) -> ConsumerGroupState:
    return lab.admin.describe_consumer_groups([group])[group].result(SECONDS).state


def minutes_ago(evidence: str) -> int:
    said = re.fullmatch(
        r"The group has no member; no offset is committed; the last member was seen (\d+) minutes? ago\.", evidence
    )
    assert said, evidence
    return int(said[1])


def rows_of(*arguments: object, exit_code: int = 0, store: str = "store") -> dict[tuple[str, str], dict[str, Any]]:
    ran = CliRunner().invoke(app, [*map(str, arguments), "--json"], catch_exceptions=False)
    assert ran.exit_code == exit_code, ran.output
    return {(row["group_id"], row[store]): row for row in json.loads(ran.stdout)}


def test_the_class_of_a_group_follows_from_its_members_commits_and_name(lab, profile_file):
    """One with a member, one that committed a moment ago, one whose name a tool made, and what only the topic knows."""
    before = datetime.now(UTC) - timedelta(seconds=1)
    for group in ("idle-quiet", "console-consumer-77"):
        commit_both(lab, group, 4)
    consumer = Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": "idle-busy"})
    consumer.subscribe([TOPIC])
    wait_until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()), "the member has partitions", SECONDS)
    asked = ("groups", "--idle", "--groups", "idle-(quiet|busy)|console-consumer-77", "--profile-file", profile_file)
    try:
        blind, seen = rows_of(*asked), rows_of(*asked, "--offsets-topic")
        left = datetime.now(UTC)
    finally:
        consumer.close()
    classes = {name: row["class"] for (name, _), row in seen.items()}
    assert classes == {"idle-quiet": "idle", "idle-busy": "active", "console-consumer-77": "random name"}
    assert seen["idle-quiet", "kafka"]["lag"] == 2 * 10 - 2 * 4
    for name in ("idle-quiet", "console-consumer-77"):
        at = datetime.fromtimestamp(seen[name, "kafka"]["last_commit_ms"] / 1000, UTC)
        assert before <= at <= datetime.now(UTC)
    assert blind["idle-quiet", "kafka"]["class"] is None
    assert blind["idle-quiet", "kafka"]["last_commit_ms"] is None
    # It has left, and never committed: the coordinator wrote down when.
    awaited(lambda: state_of(lab, "idle-busy"), lambda state: state == ConsumerGroupState.EMPTY, "idle-busy is empty")
    gone = rows_of(*asked, "--offsets-topic")["idle-busy", "kafka"]
    assert (gone["class"], gone["last_commit_ms"]) == ("idle", None)
    assert minutes_ago(gone["evidence"]) <= (datetime.now(UTC) - left) / timedelta(minutes=1)
    assert rows_of(*asked, "--offsets-topic", "--dead-after", 0)["idle-quiet", "kafka"]["class"] == "dead"


@soak_only
def test_both_engines_and_a_history_agree(lab, profile_file, tmp_path):
    commit_both(lab, "idle-kept", 5)
    chosen = kit.load_profile(file=profile_file)
    spark = kit.spark_session(chosen)
    history = kit.History(spark, str(tmp_path / "history"))
    with kit.connect(chosen) as cluster:
        taken = kit.take_snapshot(spark, cluster, "idle-kept")
    history.append(taken)
    activity = health.activity_of_history(history.load(tables.COMMITTED_OFFSETS), history.load(tables.MEMBERS))
    local = kit.in_polars(taken)
    of_spark = health.idle_groups(taken, kit.views.lag(taken), activity)
    of_polars = health.idle_groups(local, kit.views.lag(local), activity)
    (row,) = of_polars.to_dicts()
    assert pl.DataFrame(of_spark.toArrow()).to_dicts() == [row]
    assert (row["class"], row["commit_age_ms"]) == ("idle", 0)


def test_a_group_of_zookeeper_is_as_old_as_its_znodes(lab, profile_file):
    began = datetime.now(UTC)
    with kit.connect(kit.load_profile(file=profile_file)) as cluster:
        client = cluster.zookeeper
        client.create(f"/consumers/idle-old/offsets/{TOPIC}/0", b"3", makepath=True)
        client.create("/consumers/idle-old/offsets/no-such-topic/0", b"3", makepath=True)
        client.create("/consumers/idle-orphan/offsets/no-such-topic/0", b"3", makepath=True)
    # A topic that is gone is what is searched for, and no failure here; elsewhere it is (exit code 12).
    asked = ("--groups", "idle-o.*", "--profile-file", profile_file)
    rows = rows_of("groups", "--idle", *asked)
    rows_of("groups", *asked, exit_code=12, store="store_in_use")
    old, orphan = rows["idle-old", "zookeeper"], rows["idle-orphan", "zookeeper"]
    assert (old["class"], old["n_topics"], old["n_gone"]) == ("idle", 2, 1)
    assert timedelta(milliseconds=old["commit_age_ms"]) <= datetime.now(UTC) - began
    assert (orphan["class"], orphan["evidence"].endswith("no topic of its offsets exists any more.")) == ("dead", True)
