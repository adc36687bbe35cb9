"""``offramp watch`` on a live cluster: who reads, who stands still, and what a look costs the brokers."""

from __future__ import annotations

import re

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab.process import wait_until

COST = re.compile(r"; \d+\.\d s and (\d+) requests to brokers for a look")


def test_who_stands_still_comes_before_who_reads(lab):
    lab.create_topic("watched", 2)
    producer = lab.start_producer("watched", 50)
    reader = lab.start_new_consumer("watched-reader", "watched")
    wait_until(lambda: len(reader.records()) > 20, "records handed out", 30)
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
    assert all(cost and 0 < int(cost[1]) < 50 for cost in costs)
    assert "2 unknown" in looks[0] or "caught up" in looks[0]
    rows = [line.split() for line in looks[-1].splitlines() if line.startswith("watched-")]
    assert [row[0] for row in rows] == ["watched-left", "watched-reader"]
    assert "standing" in rows[0]
