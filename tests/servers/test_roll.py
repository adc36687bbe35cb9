"""A broker that dies or restarts while the cluster is read: what it coordinated and led is asked of the others."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, TopicPartition
from kafka.protocol.metadata import MetadataRequest

from kit import connect, observe
from kit.groups import views
from kit.groups.snapshot import verify_read
from kit.lab import Lab, faults
from kit.profile import load_profile
from tests.servers.awaiting import SECONDS

GROUPS = [f"roll-{number}" for number in range(12)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Three brokers, twelve groups that committed and left, spread over the coordinators."""
    with Lab(brokers=3) as lab:
        lab.create_topic("rolled", 6, replication=3)
        lab.produce("rolled", 60)
        for group in GROUPS:
            committer = Consumer({"bootstrap.servers": lab.bootstrap_servers, "group.id": group})
            offsets = [TopicPartition("rolled", partition, 4) for partition in range(6)]
            committer.commit(offsets=offsets, asynchronous=False)
            committer.close()
        path = tmp_path_factory.mktemp("roll") / "offramp.toml"
        path.write_text(lab.profile_toml())
        with connect(load_profile(file=path)) as connected:
            yield lab, connected


def coordinators(snapshot) -> dict[str, int]:
    return dict(zip(snapshot.groups["group_id"], snapshot.groups["coordinator"]))


def lags(snapshot) -> dict[tuple[str, int], int]:
    rows = views.lag(snapshot)
    return {(row["group_id"], row["partition"]): row["lag"] for row in rows.to_dicts()}


def test_a_dead_coordinator_and_leader_is_followed(cluster):
    lab, connected = cluster
    before = observe(connected, "roll-.*")
    expected = {(group, partition): 6 for group in GROUPS for partition in range(6)}
    assert lags(before) == expected
    victim = coordinators(before)[GROUPS[0]]
    others = set(coordinators(before).values()) - {victim}
    assert others

    faults.kill(faults.broker(lab, victim))
    during = observe(connected, "roll-.*")
    assert lags(during) == expected
    assert set(coordinators(during)) == set(GROUPS)
    assert victim not in set(coordinators(during).values())
    verify_read(during)

    client = connected.broker_client
    client.run(client.refresh_metadata)
    assert victim not in client.broker_ids()
    faults.restart_broker(lab, victim)
    nothing = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    assert client.run(client.send_within, nothing, victim, SECONDS).brokers
    after = observe(connected, "roll-.*")
    assert lags(after) == expected
    verify_read(after)
