"""The settings of each mode are those that Kafka 3.9 accepts, and none of another mode."""

from __future__ import annotations

import pytest

from kit.errors import InputError
from kit.lab import Lab
from kit.lab.servers.migrating import KRAFT, MIGRATION, MODES, ZOOKEEPER, Controller, MigratingBroker, Quorum, is_mode


class Supervisor:
    folder = None


QUORUM = Quorum(2, "zk:2181", "cable:2181")
FLAG = "zookeeper.metadata.migration.enable"


@pytest.mark.parametrize(
    ("mode", "has", "lacks"),
    [
        (
            ZOOKEEPER,
            ("broker.id", "zookeeper.connect", "inter.broker.protocol.version"),
            ("process.roles", "controller.quorum.voters", "controller.listener.names", FLAG),
        ),
        (MIGRATION, ("broker.id", "zookeeper.connect", FLAG, "controller.quorum.voters"), ("process.roles", "node.id")),
        (
            KRAFT,
            ("process.roles", "node.id", "controller.quorum.voters"),
            ("broker.id", "zookeeper.connect", FLAG, "inter.broker.protocol.version"),
        ),
    ],
)
def test_a_broker_has_the_settings_of_its_mode(tmp_path, mode, has, lacks):
    broker = MigratingBroker(Supervisor(), 1, QUORUM, 1, None)
    broker.mode = mode
    settings = broker.settings(tmp_path)
    assert set(has) <= set(settings)
    assert not set(lacks) & set(settings)
    assert ("StandardAuthorizer" in settings["authorizer.class.name"]) == (mode == KRAFT)


def test_a_controller_reaches_zookeeper_by_the_cable_until_it_has_no_flag(tmp_path):
    controller = Controller(Supervisor(), 3001, QUORUM)
    assert controller.settings(tmp_path)["zookeeper.connect"] == "cable:2181"
    assert controller.settings(tmp_path)["controller.quorum.voters"].startswith("3000@127.0.0.1:")
    controller.has_flag = False
    assert not {"zookeeper.connect", FLAG} & set(controller.settings(tmp_path))


@pytest.mark.parametrize("other", [{"kraft": True}, {"brokers": 0}])
def test_a_lab_that_moves_has_zookeeper_and_brokers(other):
    with pytest.raises(InputError, match="moves to KRaft"):
        Lab(controllers=1, **other)


def test_there_is_no_fourth_mode():
    assert [is_mode(each) for each in MODES] == list(MODES)
    with pytest.raises(InputError, match="no mode 'dual'"):
        is_mode("dual")
