"""A lab without ZooKeeper refuses what needs one."""

from __future__ import annotations

import pytest

from kit.errors import InputError
from kit.lab import Lab
from kit.lab.servers.kraft import KRaftServers


@pytest.mark.parametrize("more", [{"brokers": 2}, {"racks": ["a"]}, {"chroot": "/kafka"}, {"secured": True}])
def test_it_is_one_plain_broker(more):
    with pytest.raises(InputError, match="one plain broker"):
        Lab(kraft=True, **more)


def test_there_is_no_zookeeper(tmp_path):
    class ProcessSupervisor:
        folder = tmp_path

    servers = KRaftServers(ProcessSupervisor())
    with pytest.raises(InputError, match="no ZooKeeper"):
        _ = servers.zookeeper_connect
    assert not [key for key in servers.brokers[0].settings(tmp_path) if "zookeeper" in key or key == "broker.id"]
