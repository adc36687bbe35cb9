"""Brokers delete offsets by the age of each commit, or in a classic group by the time without members."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, TopicPartition

from kit import connect, observe
from kit.clients.cluster import Cluster
from kit.lab import Lab
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.protocol.facts import Request
from kit.protocol.verdicts import read_facts, verdict
from tests.servers.awaiting import awaited
from tests.servers.tuned_lab import TunedLab
from tests.soak import soak_only

TOPIC, PARTITIONS = "expiring", 2
SETTINGS = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500"}


def committed(cluster: Cluster, group: str) -> dict[int, int]:
    rows = observe(cluster, group).committed_offsets.drop_nulls("committed_offset")
    return dict(rows.select("partition", "committed_offset").iter_rows())


@pytest.fixture
def expiring() -> Iterator[tuple[Lab, Cluster]]:
    """A broker that keeps offsets for one minute, and looks twice a second which are older."""
    with TunedLab(SETTINGS, kraft=True) as lab:
        path = lab.folder / "offramp.toml"
        path.write_text(lab.profile_toml())
        lab.create_topic(TOPIC, PARTITIONS)
        lab.produce(TOPIC, 10)
        with connect(load_profile(file=path)) as cluster:
            yield lab, cluster


@soak_only
def test_a_consumer_protocol_group_that_stops_loses_old_offsets_at_once(expiring):
    """Both groups stop at the same time with commits older than the retention; only one has its offsets then."""
    lab, cluster = expiring
    groups = {"by-commit": {"group.protocol": "consumer"}, "by-emptiness": {}}
    with ExitStack() as stack:
        consumers = {}
        for group, settings in groups.items():
            config = {**QUIET, "bootstrap.servers": lab.bootstrap_servers, "group.id": group, **settings}
            consumers[group] = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False})
            stack.callback(consumers[group].close)
            consumers[group].subscribe([TOPIC])

        def poll() -> bool:
            for consumer in consumers.values():
                consumer.poll(0.1)
            return all(len(consumer.assignment()) == PARTITIONS for consumer in consumers.values())

        awaited(poll, bool, "both groups to be assigned")
        for consumer in consumers.values():
            consumer.commit(offsets=[TopicPartition(TOPIC, each, 1) for each in range(PARTITIONS)], asynchronous=False)

        def losses() -> dict[str, int | None]:
            poll()
            facts = read_facts(cluster, groups.__contains__, offsets_topic=True)
            return {name: verdict(facts, group, Request()).loses_offsets for name, group in facts.groups.items()}

        awaited(losses, lambda found: set(found.values()) == {PARTITIONS}, "commits older than the retention")
        assert {group: len(committed(cluster, group)) for group in groups} == dict.fromkeys(groups, PARTITIONS)
    awaited(lambda: committed(cluster, "by-commit"), lambda left: not left, "the offsets to be deleted")
    assert len(committed(cluster, "by-emptiness")) == PARTITIONS
