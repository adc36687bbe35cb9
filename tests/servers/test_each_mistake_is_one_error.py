"""Every mistake a user can make: one clear error, its own exit code, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab import Lab, faults
from kit.lab.ports import free_ports
from kit.lab.topics import QUIET
from tests.servers.awaiting import SECONDS, awaited
from tests.servers.coordinators import await_coordinator, commit


@pytest.fixture
def offramp(tmp_path, lab):
    """Runs the command on the lab's profile, changed."""

    def run(*arguments: str, change=lambda text: text):
        path = tmp_path / "offramp.toml"
        path.write_text(change(lab.profile_toml()))
        return CliRunner().invoke(app, [*arguments, "--profile-file", str(path)])

    return run


def refused(result, exit_code: int, *said: str) -> None:
    assert result.exit_code == exit_code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "Traceback" not in result.output
    for text in said:
        assert text in result.stderr.replace("\n", " ")


def test_a_profile_that_is_absent_or_no_toml_ends_with_3(offramp, lab):
    refused(offramp("groups", "--profile", "nosuch"), 3, "has no cluster 'nosuch'; name one of lab")
    refused(offramp("groups", change=lambda text: text + "["), 3, "is not TOML")


def test_a_server_that_does_not_answer_ends_with_4_unless_another_one_does(offramp, lab):
    (port,) = free_ports(1)
    result = offramp("groups", change=lambda text: text.replace(lab.zookeeper_connect, f"127.0.0.1:{port}"))
    refused(result, 4, f"ZooKeeper 127.0.0.1:{port}: no process listens there")
    result = offramp("groups", change=lambda text: text.replace(lab.bootstrap_servers, f"127.0.0.1:{port}"))
    refused(result, 4, f"brokers 127.0.0.1:{port}: no process listens there")
    one_of_two = lambda text: text.replace(lab.bootstrap_servers, f"127.0.0.1:{port},{lab.bootstrap_servers}")  # noqa: E731
    assert offramp("groups", change=one_of_two).exit_code in (0, 12)


def test_another_cluster_id_ends_with_6_and_a_missing_chroot_with_4(offramp, lab):
    result = offramp("groups", change=lambda text: text.replace(lab.cluster_id, "AnotherClusterId"))
    refused(result, 6, "expected cluster id AnotherClusterId", f"answers as {lab.cluster_id}", "nothing was read")
    result = offramp("groups", change=lambda text: text.replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/no"))
    refused(result, 4, "there is no chroot /no")


def test_a_missing_chroot_is_one_line(tmp_path, lab):
    """kazoo warns of it by lines of its own source."""
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml().replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/no"))
    words = [sys.executable, "-m", "kit", "groups", "--profile-file", str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert (ended.returncode, ended.stderr.count("\n")) == (4, 1), ended.stderr


def test_a_zookeeper_of_another_cluster_ends_with_6(offramp, lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(SECONDS)
    client.create("/elsewhere/cluster/id", b'{"version":"1","id":"other"}', makepath=True)
    result = offramp(
        "groups", change=lambda text: text.replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/elsewhere")
    )
    refused(result, 6, "two different clusters")
    client.delete("/elsewhere", recursive=True)
    client.stop()


def test_an_unknown_group_ends_with_8_and_a_bad_pattern_with_2(offramp):
    refused(offramp("lag", "--group", "nosuch"), 8, "no group 'nosuch'")
    refused(offramp("ownership", "--group", "nosuch"), 8)
    refused(offramp("readiness", "--group", "nosuch", "--json"), 8)
    refused(offramp("groups", "--groups", "("), 2, "is not a regular expression")
    refused(offramp("groups", "--nosuch"), 2)


def test_a_malformed_registration_is_printed_and_ends_with_12(offramp, lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(SECONDS)
    client.create("/consumers/bad-json/ids/bad-json_host-1", b"{", ephemeral=True, makepath=True)
    result = offramp("readiness", "--group", "bad-json", "--json")
    refused(result, 12, "lab/bad-json/bad-json_host-1", "not JSON", "unknown, not zero")
    (row,) = json.loads(result.stdout)
    assert row["group_id"] == "bad-json"
    assert row["blockers"]
    client.stop()
    client.close()


def test_a_dead_broker_makes_rows_unknown_not_zero(tmp_path):
    with Lab(brokers=2) as lab:
        lab.create_topic("split", 4, replication=1)
        lab.produce("split", 40)
        commit(lab, "split-group", *(TopicPartition("split", number, 10) for number in range(4)))
        path = tmp_path / "offramp.toml"
        path.write_text(lab.profile_toml())
        run = lambda *arguments: CliRunner().invoke(app, [*arguments, "--profile-file", str(path)])  # noqa: E731
        rows = json.loads(run("lag", "--group", "split-group", "--json").stdout)
        assert [row["lag"] for row in rows] == [0] * 4

        faults.stop(faults.broker(lab, 2))
        await_coordinator(lab, "split-group")
        awaited(lambda: leaders(lab, "split"), lambda found: sorted(found) == [-1, -1, 1, 1], "broker 2 leads nothing")
        result = run("lag", "--group", "split-group", "--json")
        refused(result, 12, "no leader", "unknown, not zero")
        rows = json.loads(result.stdout)
        assert len(rows) == 4
        unknown = [row for row in rows if row["lag"] is None]
        assert len(unknown) == 2
        assert all("no leader" in row["error"] and row["committed_offset"] == 10 for row in unknown)

        faults.kill(faults.broker(lab, 1))
        refused(run("groups"), 4, "no process listens there")


def leaders(lab: Lab, topic: str) -> list[int]:
    """By broker 1; -1: none."""
    admin = AdminClient({**QUIET, "bootstrap.servers": faults.broker(lab, 1).addresses["PLAINTEXT"]})
    return [each.leader for each in admin.list_topics(topic, timeout=SECONDS).topics[topic].partitions.values()]


def test_a_report_whose_folder_can_not_be_made_ends_with_2(offramp, tmp_path):
    refused(offramp("report", "--output", str(tmp_path / "offramp.toml" / "reports")), 2, "no folder can be made")
