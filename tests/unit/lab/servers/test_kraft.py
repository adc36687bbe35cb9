"""A lab without ZooKeeper refuses what needs one."""

from __future__ import annotations

import pytest

from kit.errors import InputError
from kit.lab import Lab
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember
from kit.lab.servers.kraft import KRaftServers


@pytest.mark.parametrize("more", [{"brokers": 0}, {"racks": ["a"]}, {"chroot": "/kafka"}, {"secured": True}])
def test_it_has_plain_brokers(more):
    with pytest.raises(InputError, match="plain brokers"):
        Lab(kraft=True, **more)


@pytest.mark.parametrize(
    ("kraft", "message"),
    [(True, "without ZooKeeper runs Kafka 3.9.1, 4.1.1, 4.4.0, not '4.2'"), (False, "with ZooKeeper runs Kafka 3.9.1")],
)
def test_its_versions_are_those_whose_jars_are_known(kraft, message):
    with pytest.raises(InputError, match=message):
        Lab(kraft=kraft, kafka_version="4.2")


def test_each_node_knows_all_voters(tmp_path):
    class ProcessSupervisor:
        folder = tmp_path

    nodes = KRaftServers(ProcessSupervisor(), 3, "4.4.0").brokers
    (voters,) = {node.settings(tmp_path)["controller.quorum.voters"] for node in nodes}
    assert voters == ",".join(f"{node.broker_id}@{node.controller}" for node in nodes)
    assert len({node.cluster_id for node in nodes}) == 1


def test_there_is_no_zookeeper(tmp_path):
    class ProcessSupervisor:
        folder = tmp_path

    servers = KRaftServers(ProcessSupervisor(), 1, "4.1.1")
    with pytest.raises(InputError, match="no ZooKeeper"):
        _ = servers.zookeeper_connect
    assert not [key for key in servers.brokers[0].settings(tmp_path) if "zookeeper" in key or key == "broker.id"]


def test_sessions_have_kafkas_defaults_so_that_a_starved_machine_loses_no_member(tmp_path):
    """A member that gets no processor for more than its session is lost, and a run that replaces members stops."""

    class ProcessSupervisor:
        folder = tmp_path

    broker = KRaftServers(ProcessSupervisor(), 1, "4.4.0").brokers[0].settings(tmp_path)
    java = JavaMember("orders", ("orders",), "orders-0").properties("", tmp_path)
    other = NewMember("orders", ["orders"]).spec("", "orders-0", tmp_path)["settings"]
    assert "group.consumer.session.timeout.ms" not in broker
    assert not [each for each in (java, other) if "session.timeout.ms" in each]
