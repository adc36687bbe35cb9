"""Offsets of a consumer-protocol group that may expire, and how their commit times are renewed."""

from __future__ import annotations

import subprocess

from confluent_kafka import Consumer, TopicPartition

from kit import connect, observe
from kit.clients.cluster import Cluster
from kit.groups import views
from kit.lab import Lab
from kit.lab.java import jars, jvm
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.protocol.commit_times import read_commit_times
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import commit

PARTITIONS = 2
COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def test_kafkas_own_reset_to_current_commits_every_offset_again(kraft_lab: Lab, tmp_path):
    """The remedy of ``old_commits``: the offsets stay the same, and their commit times are new."""
    path, group = tmp_path / "offramp.toml", "committed-again"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic("committed-again", PARTITIONS)
    kraft_lab.produce("committed-again", 10)
    commit(kraft_lab, group, *(TopicPartition("committed-again", partition, 3) for partition in range(PARTITIONS)))
    profile = load_profile(file=path)
    before = read_commit_times(profile).times[group]
    arguments = ["--bootstrap-server", kraft_lab.servers.addresses(), "--reset-offsets", "--to-current", "--all-topics"]
    arguments += ["--execute", "--group", group, "--timeout", "60000"]
    command = jvm.java(jars.class_path(jars.NEWEST_SERVERS), COMMAND, arguments, 128, kraft_lab.folder)
    subprocess.run(command, capture_output=True, text=True, timeout=2 * SECONDS, check=True)
    after = read_commit_times(profile).times[group]
    assert set(after) == set(before)
    assert len(after) == PARTITIONS
    assert all(after[key] > before[key] for key in after)
    with connect(profile) as cluster:
        assert committed(cluster, group) == {0: 3, 1: 3}


def committed(cluster: Cluster, group: str) -> dict[int, int]:
    rows = observe(cluster, group).committed_offsets.drop_nulls("committed_offset")
    return dict(rows.select("partition", "committed_offset").iter_rows())


def test_groups_reports_that_offsets_of_a_consumer_protocol_group_without_members_may_expire(kraft_lab, tmp_path):
    path, group = tmp_path / "offramp.toml", "may-expire"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic("may-expire", 1)
    config = {
        **QUIET,
        "bootstrap.servers": kraft_lab.bootstrap_servers,
        "group.id": group,
        "group.protocol": "consumer",
    }
    consumer = Consumer(config)
    consumer.subscribe(["may-expire"])
    awaited(lambda: (consumer.poll(0.1), consumer.assignment())[1], bool, "an assignment")
    consumer.commit(offsets=[TopicPartition("may-expire", 0, 0)], asynchronous=False)
    with connect(load_profile(file=path)) as cluster:
        (row,) = views.summary(observe(cluster, group)).to_dicts()
        assert (row["protocol_stage"], row["attention"]) == ("consumer", None)
        consumer.close()
        read = lambda: views.summary(observe(cluster, group)).to_dicts()[0]["attention"]  # noqa: E731
        awaited(read, lambda attention: attention == "offsets may expire", "the empty group to need attention")
