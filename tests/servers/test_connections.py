"""Connections end with what they were opened for: a ZooKeeper server allows 60 per address, all programs together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit import connect
from kit.clients import cluster as connecting
from kit.engine.model.clock import Clock
from kit.engine.plan_kind import PlanContext
from kit.errors import ConnectError
from kit.lab.ports import free_ports
from kit.moves.group.plan import performer_of
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
    """Return the number of connections that the server counts, this one included."""
    lines = client.command(b"srvr").splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("Connections:"))


def test_toggles_that_were_never_verified_leave_no_connection(profile):
    with connect(profile) as cluster:
        before = n_connections(cluster.zookeeper)
        actors = performer_of(PlanContext(cluster, print, Clock(), Path("runs")))
        for number in range(FAILED_TOGGLES):
            step = toggle_step(f"toggle-{number}", ToggleParameters(f"leak-{number}", None, None, "kafka"))
            actors.act(step, Permissive())
        assert n_connections(cluster.zookeeper) <= before + 1
        actors.end()
        awaited(lambda: n_connections(cluster.zookeeper), lambda count: count == before, "as many as before")


def test_a_port_where_nothing_listens_and_a_controllers_port_are_named(kraft_lab, profile):
    """Before the time-out, which is longer than this test may take; a patient caller waits for a wrong port until then,
    because a server that restarts refuses connections too."""
    (free,) = free_ports(1)
    controller = kraft_lab.servers.brokers[0].controller.rpartition(":")[2]
    nobody = "no process listens there"
    for port, is_patient, timeout_s, reason in (
        (free, False, 3600.0, nobody),
        (free, True, 1.0, nobody),
        (controller, True, 3600.0, "controller"),
        (controller, False, 3600.0, "controller"),
    ):
        given = replace(profile, bootstrap_servers=f"127.0.0.1:{port}", zookeeper_connect=None)
        with pytest.raises(ConnectError, match=reason):
            connect(given, timeout_s, is_patient)
    for address in (f"127.0.0.1:{free}", f"127.0.0.1:{free}/chroot"):
        with pytest.raises(ConnectError, match=f"ZooKeeper {address}: {nobody}"):
            connect(replace(profile, zookeeper_connect=address), 3600.0, is_patient=False)
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
