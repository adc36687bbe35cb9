"""Nodes are restarted: what a person is asked, what a command is given, and what never reaches one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import ProfileError, RunError
from kit.kraft.move.nodes import VARIABLE, CommandNodes, ManualNodes, NodeOrder, node_deployer
from kit.kraft.settings_files import lint_settings_file
from kit.profile import DeploySettings, GroupDeploySettings, KraftSettings, Profile

ORDER = NodeOrder(1, "broker", "restart", "zookeeper", "migration", "/nodes/broker-1.migration.properties", "fVyKg")
ECHO = f"import json,os,sys; print(json.dumps([sys.argv[1:], json.loads(os.environ[{VARIABLE!r}])]))"


def deployer(kind: str, *command: str, **settings):
    nodes = DeploySettings(kind=kind, command=command, **settings)
    profile = Profile(
        name="production",
        file=Path("/x/offramp.toml"),
        bootstrap_servers="h:1",
        deploy=GroupDeploySettings(nodes=nodes),
    )
    return node_deployer(profile)


def test_a_person_gets_the_node_the_mode_and_the_file():
    told = []
    manual = deployer("manual")
    assert isinstance(manual, ManualNodes)
    manual.order(ORDER, told.append)
    assert told == ["Now restart broker 1 in migration mode with /nodes/broker-1.migration.properties."]
    start = replace(ORDER, node_id=3000, role="controller", action="start")
    assert "formatted with cluster id fVyKg if its disk is empty" in manual.order(start, told.append)


def test_a_command_gets_each_value_as_an_argument_of_its_own():
    command = deployer("command", sys.executable, "-c", ECHO, "{action}", "{role}", "{node_id}", "{settings_file}")
    assert isinstance(command, CommandNodes)
    arguments, words = json.loads(command.order(ORDER, print))
    assert arguments == ["restart", "broker", "1", "/nodes/broker-1.migration.properties"]
    assert (words["from_mode"], words["to_mode"], words["cluster_id"]) == ("zookeeper", "migration", "fVyKg")


def test_a_value_that_would_be_read_as_an_option_is_not_passed():
    command = deployer("command", sys.executable, "-c", ECHO, "{cluster_id}")
    with pytest.raises(RunError, match="cluster_id is '-Kg'"):
        command.order(replace(ORDER, cluster_id="-Kg"), print)
    whole = deployer("command", sys.executable, "-c", ECHO, "--cluster-id={cluster_id}")
    assert json.loads(whole.order(replace(ORDER, cluster_id="-Kg"), print))[0] == ["--cluster-id=-Kg"]


def test_an_unknown_placeholder_is_refused_when_the_profile_is_read():
    with pytest.raises(ProfileError, match="unknown placeholders: host"):
        deployer("command", "/opt/node", "{host}")


def test_the_controllers_of_a_profile_have_ids_or_not():
    found = KraftSettings(controllers="3000@one:9093, two:9093")
    assert found.ids == {3000: "one:9093"}
    assert found.addresses == ("one:9093", "two:9093")


@pytest.mark.parametrize(
    ("controllers", "told"),
    [("a@one:9093", "'a' is no id"), ("1@one:9093,1@two:9093", "an id or an address occurs twice")],
)
def test_controllers_that_can_not_be_distinguished_are_refused(controllers, told):
    with pytest.raises(ValueError, match=told):
        KraftSettings(controllers=controllers)


def test_a_settings_file_of_another_node_or_mode_is_refused(tmp_path):
    file = tmp_path / "broker-1.migration.properties"
    assert "can't be read" in lint_settings_file(file, "broker", 1, "migration")
    file.write_text("broker.id=2\nzookeeper.connect=z:2181\n")
    told = lint_settings_file(file, "broker", 1, "migration")
    assert "starts broker 2 in zookeeper mode, not broker 1 in migration mode" in told
    file.write_text(
        "broker.id=1\nzookeeper.connect=z:2181\nzookeeper.metadata.migration.enable=true\n"
        "inter.broker.protocol.version=3.9\nlisteners=PLAINTEXT://h:9092\ncontroller.quorum.voters=3000@c:9093\n"
        "controller.listener.names=CONTROLLER\nlistener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
    )
    assert lint_settings_file(file, "broker", 1, "migration") is None
