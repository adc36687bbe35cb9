"""Connections end with what they were opened for: a ZooKeeper server allows 60 per address, all programs together."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit import connect
from kit.clients import cluster as connecting
from kit.errors import ConnectError
from kit.lab.ports import free_ports
from kit.moves.group.plan import performer
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.toggle import ToggleParameters, toggle_step
from kit.profile import load_profile
from tests.reporting import Permissive
from tests.servers.awaiting import awaited

FAILED_TOGGLES = 70


@pytest.fixture
def profile(lab, tmp_path):
    path = tmp_path / "offramp.toml"
    path.write_text(lab.profile_toml())
    return load_profile(file=path)


def n_connections(client) -> int:
    """As the server counts them, this one included."""
    lines = client.command(b"srvr").splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("Connections:"))


def test_toggles_that_were_never_verified_leave_no_connection(profile):
    with connect(profile) as cluster:
        before = n_connections(cluster.zookeeper)
        actors = performer(cluster, ReplaceActor(cluster, None))
        for number in range(FAILED_TOGGLES):
            step = toggle_step(f"toggle-{number}", ToggleParameters(f"leak-{number}", None, None, "kafka"))
            actors.act(step, Permissive())
        assert n_connections(cluster.zookeeper) <= before + 1
        actors.end()
        awaited(lambda: n_connections(cluster.zookeeper), lambda count: count == before, "as many as before")


def test_a_port_where_nothing_listens_and_a_controllers_port_are_named(kraft_lab, profile):
    """A controller's port is named before the time-out, which is longer than this test may take."""
    (free,) = free_ports(1)
    wrong = {free: "no process listens there", kraft_lab.servers.brokers[0].controller.rpartition(":")[2]: "controller"}
    for port, reason in wrong.items():
        given = replace(profile, bootstrap_servers=f"127.0.0.1:{port}", zookeeper_connect=None)
        with pytest.raises(ConnectError, match=reason):
            connect(given, timeout_s=2.0 if port == free else 3600.0)
    both = f"127.0.0.1:{free},{kraft_lab.bootstrap_servers}"
    with connect(replace(profile, bootstrap_servers=both, cluster_id=None, zookeeper_connect=None)) as cluster:
        assert cluster.cluster_id == kraft_lab.cluster_id


def test_a_connect_that_is_interrupted_leaves_no_connection(profile, monkeypatch):
    def interrupted(self, path):
        raise KeyboardInterrupt

    with connect(profile) as cluster:
        before = n_connections(cluster.zookeeper)
        monkeypatch.setattr(connecting.ZookeeperClient, "exists", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connect(profile)
        awaited(lambda: n_connections(cluster.zookeeper), lambda count: count == before, "as many as before")
