"""Share groups (KIP-932) and streams groups (KIP-1071) as rows of their own kind, on Kafka 4.4."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import ShareConsumer
from typer.testing import CliRunner

from kit import connect, observe, views
from kit.cli.main import app
from kit.cluster import Cluster
from kit.lab import Lab
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.snapshot import verify_read
from tests.servers.awaiting import awaited
from tests.servers.streams_member import heartbeat

TOPIC = "other-kinds"


@pytest.fixture(scope="module")
def cluster(kraft_lab: Lab) -> Iterator[Cluster]:
    path = kraft_lab.folder / "other-kinds.toml"
    path.write_text(kraft_lab.profile_toml())
    kraft_lab.create_topic(TOPIC, 2)
    kraft_lab.produce(TOPIC, 10)
    with connect(load_profile(file=path)) as connected:
        yield connected


def row_of(cluster: Cluster, group: str) -> dict | None:
    snapshot = observe(cluster, group)
    verify_read(snapshot)
    rows = views.summary(snapshot).to_dicts()
    return rows[0] if rows else None


def test_a_share_group_is_a_row_of_its_kind_with_its_members(kraft_lab, cluster):
    config = {**QUIET, "bootstrap.servers": kraft_lab.servers.addresses(), "group.id": "sharing"}
    consumers = [ShareConsumer(config | {"client.id": f"client-{number}"}) for number in range(2)]
    for consumer in consumers:
        consumer.subscribe([TOPIC])

    def read() -> dict | None:
        for consumer in consumers:
            consumer.poll(0.1)
        return row_of(cluster, "sharing")

    row = awaited(read, lambda row: row is not None and row["n_members"] == 2, "both members")
    assert (row["group_type"], row["protocol_type"], row["error"]) == ("share", "share", None)
    assert (row["attention"], row["n_idle"], row["n_partitions"], row["lag"]) == (None, None, None, None)
    assert set(observe(cluster, "sharing").members["client_id"]) == {"client-0", "client-1"}
    for consumer in consumers:
        consumer.close()


def test_a_streams_group_is_a_row_of_its_kind_with_its_members(cluster):
    client = cluster.broker_client
    member_id = str(uuid.uuid4())
    answer = client.run(heartbeat, client, "streaming", TOPIC, member_id, 0)
    assert (answer.error_code, answer.member_epoch > 0) == (0, True), answer
    row = awaited(lambda: row_of(cluster, "streaming"), lambda row: row is not None and row["n_members"], "the member")
    assert (row["group_type"], row["n_members"], row["n_idle"], row["error"]) == ("streams", 1, None, None)
    assert observe(cluster, "streaming").members["member_id"].to_list() == [member_id]
    client.run(heartbeat, client, "streaming", TOPIC, member_id, -1)


def test_words_of_a_move_off_zookeeper_are_shown_only_where_there_is_one(kraft_lab, cluster):
    profile = str(kraft_lab.folder / "other-kinds.toml")
    listed = CliRunner().invoke(app, ["groups", "--profile-file", profile], env={"COLUMNS": "250"})
    assert listed.exit_code == 0, listed.output
    assert "group_type" in listed.output
    assert not {"stage", "zookeeper_lag", "n_blockers"} & set(listed.output.split())
    ready = CliRunner().invoke(app, ["readiness", "--profile-file", profile])
    assert "there is nothing to leave" in ready.output
