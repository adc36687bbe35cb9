"""``offramp watch`` on a live cluster: who reads, who is stalled, and what an observation costs the brokers."""

from __future__ import annotations

import json
import re
from collections import Counter

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from kazoo.client import KazooClient
from typer.testing import CliRunner

from kit.cli.main import app
from kit.clients.cluster import connect
from kit.health.live import Polls
from kit.lab import Lab
from kit.lab.process import wait_until
from kit.profile import load_profile

COST = re.compile(r"; \d+\.\d s, (\d+) requests to brokers and (\d+) to ZooKeeper")


def test_stalled_groups_come_before_groups_that_read(lab):
    lab.create_topic("watched", 2)
    producer = lab.start_producer("watched", 50)
    reader = lab.start_new_consumer("watched-reader", "watched")
    wait_until(lambda: len(reader.records()) > 20, "records delivered", 90)
    left = ConsumerGroupTopicPartitions("watched-left", [TopicPartition("watched", 0, 0)])
    lab.admin.alter_consumer_group_offsets([left])["watched-left"].result(30)
    path = lab.folder / "watch.toml"
    path.write_text(lab.profile_toml())
    words = ["watch", "--every", "2", "--count", "3", "--groups", "watched-.*", "--profile-file", str(path)]
    ended = CliRunner().invoke(app, words, env={"COLUMNS": "150"})
    producer.process.stop()
    reader.stop()
    assert ended.exit_code == 0, ended.output
    looks = ended.stdout.split("lab at ")[1:]
    assert len(looks) == 3
    costs = [COST.search(each) for each in looks]
    assert all(cost and 0 < int(cost[1]) < 50 and 0 < int(cost[2]) < 50 for cost in costs)
    assert "2 unknown" in looks[0] or "caught up" in looks[0]
    rows = [line.split() for line in looks[-1].splitlines() if line.startswith("watched-")]
    assert [row[0] for row in rows] == ["watched-left", "watched-reader"]
    assert "standing" in rows[0]


def test_a_commit_beyond_the_end_is_named_by_every_verb(lab):
    lab.create_topic("shrunk", 1)
    lab.produce("shrunk", 100)
    lost = ConsumerGroupTopicPartitions("shrunk-lost", [TopicPartition("shrunk", 0, 5000)])
    lab.admin.alter_consumer_group_offsets([lost])["shrunk-lost"].result(30)
    path = lab.folder / "shrunk.toml"
    path.write_text(lab.profile_toml())

    def said(*words: str) -> str:
        chosen = ["--groups", "shrunk-.*", "--profile-file", str(path)]
        ended = CliRunner().invoke(app, [*words, *chosen], env={"COLUMNS": "250"})
        assert ended.exit_code == 0, ended.output
        return ended.stdout

    (group,) = json.loads(said("groups", "--json"))
    assert (group["attention"], group["n_beyond_end"], group["lag"]) == ("commit beyond the end", 1, 0)
    (late,) = json.loads(said("lag", "--time", "--json"))
    assert (late["beyond_end"], late["time_lag_ms"]) == (4900, None)
    assert "auto.offset.reset" in late["error"]
    (forecast,) = json.loads(said("lag", "--outlook", "--over-s", "1", "--json"))
    assert (forecast["trend"], forecast["close_ms"], forecast["is_never_deleted"]) == ("beyond the end", None, None)
    assert "1 beyond the end" in said("watch", "--count", "1")
    page = said("export", "--once")
    assert re.search(r"^offramp_consumer_group_topic_partition_beyond_end\{.*\} 4900\.0$", page, re.MULTILINE)
    assert "offramp_look_times_missing 0.0" in page


def test_an_observation_asks_no_more_often_for_sixty_groups_than_for_one(lab):
    """``docs/health.md`` says what is asked. ZooKeeper counts as many requests."""
    lab.create_topic("budget", 2)
    path = lab.folder / "budget.toml"
    path.write_text(lab.profile_toml())
    with connect(load_profile(file=path)) as cluster:
        looks = Polls(cluster, "budget-.*")
        for n_groups in (1, 60):
            for number in range(n_groups):
                commit_in_both_stores(lab, cluster.zookeeper, f"budget-{number:02}")
            before = n_received(lab, cluster.zookeeper)
            look = looks.take()
            assert Counter(look.partitions["store"]) == {"kafka": n_groups, "zookeeper": n_groups}
            assert (look.n_requests, look.n_zookeeper_requests) == (8, 9)
            assert n_received(lab, cluster.zookeeper) - before >= 9  # Pings are among them.


def commit_in_both_stores(lab: Lab, zookeeper: KazooClient, group_id: str) -> None:
    committed = ConsumerGroupTopicPartitions(group_id, [TopicPartition("budget", 0, 0)])
    lab.admin.alter_consumer_group_offsets([committed])[group_id].result(30)
    offset = f"/consumers/{group_id}/offsets/budget/0"
    zookeeper.ensure_path(offset)
    zookeeper.set(offset, b"0")


def n_received(lab: Lab, zookeeper: KazooClient) -> int:
    """Return what the server counts for this connection."""
    session_id, _ = zookeeper.client_id
    (told,) = [line for line in lab.servers.zookeeper.command("cons").splitlines() if f"sid=0x{session_id:x}," in line]
    return int(re.search(r"recved=(\d+)", told)[1])
