"""Every mistake a user can make: one clear error, its own exit code, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from kazoo.client import KazooClient
from typer.testing import CliRunner

from kit.cli.main import app
from kit.lab import Lab, faults
from kit.lab.ports import free_ports
from kit.lab.process import wait_until


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


def test_profiles(offramp, lab):
    refused(offramp("groups", "--profile", "nosuch"), 3, "has no cluster 'nosuch'; name one of lab")
    refused(offramp("groups", change=lambda text: text + "["), 3, "is not TOML")


def test_servers_that_are_not_there(offramp, lab):
    (port,) = free_ports(1)
    result = offramp("groups", change=lambda text: text.replace(lab.zookeeper_connect, f"127.0.0.1:{port}"))
    refused(result, 4, f"ZooKeeper 127.0.0.1:{port}: no server answered")
    result = offramp("groups", change=lambda text: text.replace(lab.bootstrap_servers, f"127.0.0.1:{port}"))
    refused(result, 4, f"brokers 127.0.0.1:{port}: none answered")
    one_of_two = lambda text: text.replace(lab.bootstrap_servers, f"127.0.0.1:{port},{lab.bootstrap_servers}")  # noqa: E731
    assert offramp("groups", change=one_of_two).exit_code in (0, 12)


def test_another_cluster(offramp, lab):
    result = offramp("groups", change=lambda text: text.replace(lab.cluster_id, "AnotherClusterId"))
    refused(result, 6, "expected cluster id AnotherClusterId", f"answers as {lab.cluster_id}", "nothing was read")
    result = offramp("groups", change=lambda text: text.replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/no"))
    refused(result, 4, "there is no chroot /no")


def test_a_missing_chroot_is_one_line(tmp_path, lab):
    """kazoo warns of it by lines of its own source."""
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml().replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/no"))
    words = [sys.executable, "-m", "kit", "groups", "--profile-file", str(path)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (4, 1), ended.stderr


def test_a_zookeeper_of_another_cluster(offramp, lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    client.create("/elsewhere/cluster/id", b'{"version":"1","id":"other"}', makepath=True)
    result = offramp(
        "groups", change=lambda text: text.replace(lab.zookeeper_connect, f"{lab.zookeeper_connect}/elsewhere")
    )
    refused(result, 6, "two different clusters")
    client.delete("/elsewhere", recursive=True)
    client.stop()


def test_groups_and_patterns(offramp):
    refused(offramp("lag", "--group", "nosuch"), 8, "no group 'nosuch'")
    refused(offramp("ownership", "--group", "nosuch"), 8)
    refused(offramp("readiness", "--group", "nosuch", "--json"), 8)
    refused(offramp("groups", "--groups", "("), 2, "is not a regular expression")
    refused(offramp("groups", "--nosuch"), 2)


def test_a_malformed_registration_is_printed_and_ends_with_12(offramp, lab):
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
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
        member = lab.start_new_consumer("split-group", "split")
        wait_until(lambda: len(member.records()) == 40, "all records handed out", 30)
        member.stop()
        path = tmp_path / "offramp.toml"
        path.write_text(lab.profile_toml())
        run = lambda *arguments: CliRunner().invoke(app, [*arguments, "--profile-file", str(path)])  # noqa: E731
        rows = json.loads(run("lag", "--group", "split-group", "--json").stdout)
        assert [row["lag"] for row in rows] == [0] * 4

        faults.stop(faults.broker(lab, 2))
        result = run("lag", "--group", "split-group", "--json")
        refused(result, 12, "no leader", "unknown, not zero")
        rows = json.loads(result.stdout)
        assert len(rows) == 4
        unknown = [row for row in rows if row["lag"] is None]
        assert len(unknown) == 2
        assert all("no leader" in row["error"] and row["committed_offset"] == 10 for row in unknown)

        faults.stop(faults.broker(lab, 1))
        refused(run("groups"), 4, "none answered")


def test_a_report_into_a_folder_that_can_not_be_made(offramp, tmp_path):
    refused(offramp("report", "--output", str(tmp_path / "offramp.toml" / "reports")), 2, "no folder can be made")
