"""Share groups (KIP-932) and streams groups (KIP-1071) as rows of their own kind, on Kafka 4.4."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import ShareConsumer
from typer.testing import CliRunner

from kit import connect, observe
from kit.cli.main import app
from kit.clients.broker_client import BrokerClient
from kit.clients.cluster import Cluster
from kit.groups import views
from kit.groups.read.other_groups import DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest
from kit.groups.snapshot import verify_read
from kit.lab import Lab
from kit.lab.members.new_consumers import NewMember
from kit.lab.topics import QUIET
from kit.profile import load_profile
from kit.rebalances.sources import read_rebalances
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
    consumers = [ShareConsumer(config | {"client.id": f"client-{number}"}) for number in range(3)]
    for consumer in consumers:
        consumer.subscribe([TOPIC])

    def read() -> dict | None:
        for consumer in consumers:
            consumer.poll(0.1)
        return row_of(cluster, "sharing")

    def has_partitions(row: dict | None) -> bool:
        return row is not None and (row["n_members"], row["n_idle"]) == (3, 0)

    row = awaited(read, has_partitions, "three members with partitions")
    assert (row["group_type"], row["protocol_type"], row["error"]) == ("share", "share", None)
    assert (row["attention"], row["n_partitions"], row["n_unowned"]) == (None, 2, 0)
    assert (row["lag"], row["n_unknown"]) == (None, 2)  # Brokers have no start offset before the first delivery.
    snapshot = observe(cluster, "sharing")
    assert set(snapshot.members["client_id"]) == {"client-0", "client-1", "client-2"}
    assert snapshot.groups["group_epoch"].to_list() == snapshot.groups["assignment_epoch"].to_list()
    shared = views.owners(snapshot)
    assert shared["is_shared"].all()
    assert shared["n_owners"].max() == 2  # Several owners are right.
    assert "owned_twice" not in set(views.findings(snapshot)["finding"])

    kraft_lab.produce(TOPIC, 30)
    awaited(read, lambda row: (row["lag"], row["n_unknown"]) == (0, 0), "all records to be accepted")
    kraft_lab.produce(TOPIC, 30)
    lag = views.lag(observe(cluster, "sharing"))
    assert (lag["lag"].sum(), lag["is_upper_bound"].any()) == (30, False)  # No member has polled since.
    for consumer in consumers:
        consumer.close()
    awaited(lambda: row_of(cluster, "sharing"), lambda row: row["n_members"] == 0, "all members to leave")
    arguments = ["plan", "offsets", "reset", "-g", "sharing", "--to-earliest"]
    file = str(kraft_lab.folder / "other-kinds.toml")
    refused = CliRunner().invoke(app, [*arguments, "--profile-file", file, "--runs", str(kraft_lab.folder / "runs")])
    assert refused.exit_code != 0, refused.output
    assert "a share group has start offsets" in " ".join(refused.output.split())


@pytest.mark.parametrize("missing", [ShareGroupDescribeRequest, DescribeShareGroupOffsetsRequest])
def test_a_type_of_group_that_is_not_supported_is_a_note_and_no_failure(kraft_lab, cluster, missing, monkeypatch):
    """Kafka 4.0 has share groups without these requests; a later one will have types that are not known yet."""
    config = {**QUIET, "bootstrap.servers": kraft_lab.servers.addresses(), "group.id": "sharing-unread"}
    with closing(ShareConsumer(config)) as consumer:
        consumer.subscribe([TOPIC])

        def read() -> dict | None:
            consumer.poll(0.1)
            return row_of(cluster, "sharing-unread")

        awaited(read, lambda row: row is not None, "the share group")
        supports = BrokerClient.supports
        monkeypatch.setattr(BrokerClient, "supports", lambda *asked: asked[1] is not missing and supports(*asked))
        file = str(kraft_lab.folder / "other-kinds.toml")
        for words in (
            ["groups"],
            ["lag"],
            ["lag", "-g"],
            ["lag", "--time"],
            ["ownership", "-g"],
            ["watch", "--count", "1"],
        ):
            chosen = ["sharing-unread"] if "-g" in words else ["--groups", "sharing-unread"]
            ended = CliRunner().invoke(app, [*words, *chosen, "--profile-file", file])
            assert ended.exit_code == 0, ended.output
            assert ("lag are unknown: sharing-unread" in ended.stderr) or words[0] == "watch", ended.stderr
        taken = observe(cluster, "sharing-unread")
        assert "sharing-unread" in verify_read(taken)
        (row,) = views.summary(taken).to_dicts()
        assert (row["attention"], row["lag"]) == ("could not be read", None)
        (error,) = taken.read_errors.to_dicts()  # Plans refuse by it.
        assert (error["group_id"], error["is_unsupported"]) == ("sharing-unread", True)


def test_members_of_a_mixed_group_have_the_protocol_that_they_joined_by(kraft_lab, cluster):
    newer = {"group.protocol": "consumer"}
    first = kraft_lab.start_new_consumers([NewMember("mixing", [TOPIC], "older")])
    awaited(lambda: row_of(cluster, "mixing"), lambda row: row is not None and row["n_members"] == 1, "one member")
    second = kraft_lab.start_new_consumers([NewMember("mixing", [TOPIC], "newer", "", settings=newer)])

    def read() -> dict[str, str | None]:
        return dict(observe(cluster, "mixing").members.select("client_id", "member_type").iter_rows())

    awaited(read, {"older": "classic", "newer": "consumer"}.__eq__, "a member by each protocol")
    row = awaited(lambda: row_of(cluster, "mixing"), lambda row: row["n_idle"] == 0, "a partition for each")
    assert (row["group_type"], row["protocol"], row["attention"]) == ("consumer", "uniform", None)
    for member in (*first, *second):
        member.stop()


def test_a_streams_group_is_a_row_of_its_kind_with_its_members(cluster):
    client = cluster.broker_client
    member_id = str(uuid.uuid4())
    answer = client.run(heartbeat, client, "streaming", TOPIC, member_id, 0)
    assert (answer.error_code, answer.member_epoch > 0) == (0, True), answer

    def read() -> dict | None:
        nonlocal answer
        answer = client.run(heartbeat, client, "streaming", TOPIC, member_id, answer.member_epoch)
        return row_of(cluster, "streaming")

    row = awaited(read, lambda row: row is not None and row["n_idle"] == 0, "the member with its tasks")
    assert (row["group_type"], row["n_members"], row["n_partitions"], row["error"]) == ("streams", 1, 2, None)
    snapshot = observe(cluster, "streaming")
    (member,) = snapshot.members.to_dicts()
    assert (member["member_id"], member["member_type"]) == (member_id, "streams")
    assert (member["standby_tasks"], member["warmup_tasks"]) == ([], [])
    owned = snapshot.ownership.sort("partition").select("topic", "partition", "member_id", "task").rows()
    assert owned == [(TOPIC, 0, member_id, "0_0"), (TOPIC, 1, member_id, "0_1")]
    assert snapshot.subscriptions.select("topic", "subtopology").rows() == [(TOPIC, "0")]
    client.run(heartbeat, client, "streaming", TOPIC, member_id, -1)


def test_words_of_a_move_off_zookeeper_are_shown_only_where_there_is_one(kraft_lab, cluster):
    profile = str(kraft_lab.folder / "other-kinds.toml")
    listed = CliRunner().invoke(app, ["groups", "--profile-file", profile], env={"COLUMNS": "250"})
    assert listed.exit_code == 0, listed.output
    assert "group_type" in listed.output
    assert not {"stage", "zookeeper_lag", "n_blockers"} & set(listed.output.split())
    ready = CliRunner().invoke(app, ["readiness", "--profile-file", profile])
    assert "there is nothing to leave" in ready.output


def test_the_coordinators_log_reports_who_was_in_which_epoch_of_a_streams_group(kraft_lab, cluster):
    """The first target assignment is computed after 3 s. A member that leaves raises the epoch without a line."""
    client, first, second = cluster.broker_client, str(uuid.uuid4()), str(uuid.uuid4())
    for member, epoch in ((first, 0), (second, 0), (first, -1)):
        answer = client.run(heartbeat, client, "streaming-log", TOPIC, member, epoch)
        assert answer.error_code == 0, answer

    def read() -> list[dict[str, Any]]:
        log = str(kraft_lab.servers.brokers[0].process.log)
        return read_rebalances(None, log).generations.filter(group_id="streaming-log").to_dicts()

    *_, joined, both, left = awaited(read, lambda rows: any(row["left"] for row in rows), "the log to have who left")
    assert (joined["members"], both["members"], left["members"]) == ([first], sorted([first, second]), [second])
    assert (joined["joined"], both["joined"], left["left"]) == ([first], [second], [first])
    assert all(row["is_epoch"] for row in (joined, both, left))
    assert left["assignor"] == "sticky"
    assert observe(cluster, "streaming-log").groups["group_epoch"].to_list() == [left["generation"]]
