"""Files of settings as people have them, linted without a cluster."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from kit.errors import InputError, PartialRead, UnsafePlan
from kit.kraft.read.node_variables import nodes_in
from kit.kraft.settings_files import lint_files, lint_settings_file, read_settings_folder

BROKER = "broker.id=1\nzookeeper.connect=zk:2181\n"
COMPOSE = """
services:
  zookeeper:
    image: zookeeper:3.8
    environment: {ZOO_MY_ID: 1}
  kafka-1:
    image: confluentinc/cp-kafka:7.9.0
    environment:
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
      KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://kafka-1:9092
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: false
      KAFKA_HEAP_OPTS: -Xmx1g
  kafka-2:
    image: bitnami/kafka:3.9
    environment:
      - KAFKA_CFG_NODE_ID=2
      - KAFKA_CFG_PROCESS_ROLES=broker
      - KAFKA_CFG_ADVERTISED_LISTENERS
      - KAFKA_HEAP_OPTS=-Xmx1g
"""
STRIMZI = "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata: {name: c}\n"
ANSIBLE = "all:\n  vars:\n    kafka_broker_custom_properties:\n      num.partitions: 3\n"


def test_services_of_a_compose_file_are_nodes():
    assert nodes_in("compose.yml", COMPOSE) == {
        "compose.yml: kafka-1": {
            "broker.id": "1",
            "zookeeper.connect": "zookeeper:2181",
            "advertised.listeners": "PLAINTEXT://kafka-1:9092",
            "listeners": "PLAINTEXT://0.0.0.0:9092",
            "auto.create.topics.enable": "false",
        },
        "compose.yml: kafka-2": {
            "node.id": "2",
            "process.roles": "broker",
            "advertised.listeners": "${KAFKA_CFG_ADVERTISED_LISTENERS}",
        },
    }


def test_an_env_file_is_a_node():
    text = "# a broker\nexport KAFKA_BROKER_ID=1\nKAFKA_LOG_DIRS='/a,/b'\nKAFKA_OPTS=-Dx=y\nPATH=/bin\n"
    assert nodes_in("broker.env", text) == {"broker.env": {"broker.id": "1", "log.dirs": "/a,/b"}}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (STRIMZI, "kubectl exec POD"),
        (ANSIBLE, "lint the file that the role wrote"),
        ("a: [", "is no YAML"),
        ("services: {web: {image: nginx}}", "has no settings of a node"),
    ],
)
def test_files_of_other_tools_are_refused_with_what_to_do(tmp_path, text, told):
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=told):
        lint_files([file])


def test_yaml_of_aliases_ends(tmp_path):
    levels = [f"l{n}: &l{n} {{a: *l{n - 1}, b: *l{n - 1}, c: *l{n - 1}}}" for n in range(1, 40)]
    file = tmp_path / "bomb.yml"
    file.write_text("l0: &l0 {a: 1}\n" + "\n".join(levels))
    with pytest.raises(InputError, match="has no settings of a node"):
        lint_files([file])


def test_a_folder_may_hold_other_yaml(tmp_path):
    (tmp_path / "values.yaml").write_text("{{ helm }}")
    (tmp_path / "compose.yml").write_text(COMPOSE)
    (tmp_path / "server.properties").write_text(BROKER)
    found = {each.source: each.node_id for each in read_settings_folder(tmp_path).settings}
    assert found == {"compose.yml: kafka-1": 1, "compose.yml: kafka-2": 2, "server.properties": 1}


def test_the_end_of_a_lint(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(BROKER)
    assert lint_files([file], "zookeeper").verify() == "Kafka 3.9.1 accepts the settings of 1 node."
    with pytest.raises(UnsafePlan, match=r"server\.properties can't be used"):
        lint_files([file], "kraft").verify()
    file.write_text(BROKER + "listeners=${env:LISTENERS}\n")
    with pytest.raises(PartialRead, match="can't be read on this machine"):
        lint_files([file]).verify()
    file.write_text(BROKER + "listeners=${env:LISTENERS}\nnum.partitions=none\n")
    with pytest.raises(UnsafePlan):
        lint_files([file]).verify()


def test_a_controller_may_be_before_or_after_the_end_of_the_move(tmp_path):
    file = tmp_path / "controller.properties"
    file.write_text(
        "process.roles=controller\nnode.id=3000\nlisteners=CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        "controller.quorum.voters=3000@c:9093\n"
        "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n"
    )
    lint_files([file], "controller").verify()


@pytest.mark.parametrize(
    ("line", "is_refused"), [("log.dirs=C:\\users", True), ("# C:\\users", False), ("log.dirs=C:\\\\users", False)]
)
def test_a_file_that_java_refuses_is_refused(tmp_path, line, is_refused):
    """``Properties.load``: a path of Windows is no Unicode escape."""
    file = tmp_path / "server.properties"
    file.write_text(f"broker.id=1\nzookeeper.connect=zk:2181\n{line}\n", encoding="latin-1")
    wrong = [each for each in lint_files([file]).rows if each.is_met is False]
    assert [each.check_id for each in wrong] == ["N12"] * is_refused
    problem = lint_settings_file(file, "broker", 1, "zookeeper")
    assert (problem is not None) is is_refused
    with pytest.raises(InputError, match="Java refuses") if is_refused else nullcontext():
        read_settings_folder(tmp_path)
