"""Settings of nodes: ready-made files for each mode, the operator's own files, and no secret in any of it."""

from __future__ import annotations

import pytest

from kit.kraft.analyze.node_files import changed_lines, render, settings_change
from kit.kraft.analyze.node_lint import RULES, lint
from kit.kraft.analyze.node_settings import (
    CONTROLLER,
    FINAL_CONTROLLER,
    KRAFT,
    MIGRATION,
    PROTOCOLS,
    STANDARD_AUTHORIZER,
    ZOOKEEPER,
    NodeSettings,
    of_described,
    of_file,
)
from kit.tables.kraft import NodeSetting
from kit.text.properties import parse_properties

KEY = b"key of one observation"
SECRET = "hush-hush"
VOTERS = "3000@c1:9093,3001@c2:9093"
PLAIN = {
    "broker.id": "1",
    "listeners": "PLAINTEXT://b1:9092",
    "log.dirs": "/data",
    "zookeeper.connect": "zk:2181/kafka",
    "zookeeper.ssl.keystore.password": SECRET,
    "inter.broker.protocol.version": "3.9",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "log.message.format.version": "2.8",
    "num.partitions": "3",
    "password.encoder.secret": SECRET,
    "com.example.hook": f"https://me:{SECRET}@example.com/",
}


def of(settings: dict[str, str]) -> NodeSettings:
    return of_file(settings, "b1.properties", KEY)


def made(mode: str, present: dict[str, str], voters: str | None = VOTERS) -> dict[str, str]:
    node = of(present)
    return parse_properties(render(settings_change(mode, node, voters), node))


def test_a_broker_goes_to_migration_mode_to_kraft_mode_and_back_again():
    plain = {name: value for name, value in PLAIN.items() if SECRET not in value}
    migration = made(MIGRATION, plain)
    assert migration == {
        **{name: value for name, value in plain.items() if name != "log.message.format.version"},
        "zookeeper.metadata.migration.enable": "true",
        "controller.quorum.voters": VOTERS,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,"
        "CONTROLLER:PLAINTEXT",
    }
    kraft = made(KRAFT, migration)
    assert kraft == {
        "process.roles": "broker",
        "node.id": "1",
        "listeners": "PLAINTEXT://b1:9092",
        "log.dirs": "/data",
        "num.partitions": "3",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        **{name: migration[name] for name in migration if name.startswith(("controller.", "listener.security."))},
    }
    back = made(ZOOKEEPER, migration)
    own_map = back.pop("listener.security.protocol.map")
    assert "CONTROLLER" not in own_map
    assert back == {name: value for name, value in plain.items() if name != "log.message.format.version"}


def test_values_that_a_kraft_broker_no_longer_knows_are_left_to_the_operator():
    node = of({"process.roles": "broker", "node.id": "1"})
    change = settings_change(MIGRATION, node, None)
    assert any("zookeeper.connect" in each for each in change.by_hand)
    assert any("controller.quorum.voters" in each for each in change.by_hand)
    assert change.values["broker.id"] == "1"


def test_a_high_id_turns_generation_off():
    assert made(MIGRATION, PLAIN | {"broker.id": "1001"})["broker.id.generation.enable"] == "false"


def test_a_controller_is_made_of_a_broker_and_loses_zookeeper_at_the_end():
    present = PLAIN | {"inter.broker.listener.name": "INNER", "listener.security.protocol.map": "INNER:SSL"}
    first = made(CONTROLLER, present)
    assert first["zookeeper.connect"] == "zk:2181/kafka"
    assert first["zookeeper.metadata.migration.enable"] == "true"
    assert first["inter.broker.listener.name"] == "INNER"
    assert first["listener.security.protocol.map"] == "INNER:SSL,CONTROLLER:SSL"
    assert first["num.partitions"] == "3"
    assert first["authorizer.class.name"].endswith("StandardAuthorizer")
    assert not {"log.dirs", "listeners", "broker.id", "inter.broker.protocol.version"} & set(first)
    last = made(FINAL_CONTROLLER, first | {"node.id": "3000"})
    assert not [name for name in last if name.startswith("zookeeper.")]
    assert last["node.id"] == "3000"


SASL = PLAIN | {
    "listeners": "SASL_PLAINTEXT://b1:9092",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "early.start.listeners": "SASL_PLAINTEXT",
}


@pytest.mark.parametrize("mode", [MIGRATION, KRAFT, CONTROLLER, FINAL_CONTROLLER])
def test_a_node_logs_in_to_controllers_as_to_brokers(mode):
    text = made(mode, SASL)
    assert text["sasl.mechanism.controller.protocol"] == "SCRAM-SHA-256"
    assert "sasl.mechanism.controller.protocol" not in made(mode, PLAIN)
    assert (
        made(mode, SASL | {"sasl.mechanism.controller.protocol": "PLAIN"})["sasl.mechanism.controller.protocol"]
        == "PLAIN"
    )


def test_a_new_controller_names_its_brokers_listener_once():
    text = made(CONTROLLER, SASL)
    assert text["inter.broker.listener.name"] == "SASL_PLAINTEXT"
    assert not {"security.inter.broker.protocol", "early.start.listeners"} & set(text)


PRESENT = {
    "plain": PLAIN,
    "with SASL": SASL,
    "with a high id": PLAIN | {"broker.id": "1001"},
    "with spaces": PLAIN | {"broker.id": " 7 ", "reserved.broker.max.id": " 5 "},
    "with names in small letters": PLAIN
    | {
        "listeners": "inner://b1:1",
        "listener.security.protocol.map": "inner:SSL",
        "inter.broker.listener.name": "inner",
    },
}


@pytest.mark.parametrize("mode", [MIGRATION, KRAFT, ZOOKEEPER, CONTROLLER, FINAL_CONTROLLER])
@pytest.mark.parametrize("present", PRESENT.values(), ids=PRESENT)
def test_made_files_are_what_kafka_takes(mode, present):
    """But for what a person has to write into a new controller's file."""
    by_hand = {"node.id": "3000", "listeners": "CONTROLLER://c1:9093"} if mode.endswith(CONTROLLER) else {}
    node = of_file(made(mode, present) | by_hand, "made", KEY)
    assert [each.sentence for each in lint([node]) if each.severity == "block" and not each.is_met] == []


@pytest.mark.parametrize("mode", [MIGRATION, KRAFT, ZOOKEEPER, CONTROLLER, FINAL_CONTROLLER])
def test_no_secret_is_in_a_file_that_is_made(mode):
    node = of(PLAIN)
    text = render(settings_change(mode, node, VOTERS), node)
    assert SECRET not in text + repr(node)
    assert "# password.encoder.secret: set;" in text


def test_a_name_of_a_stranger_stays_in_its_comment():
    node = of(PLAIN | {"evil\nprocess.roles.password": "x"})
    assert "process.roles" not in parse_properties(render(settings_change(MIGRATION, node, VOTERS), node))


def test_equal_secrets_have_equal_fingerprints_within_one_observation():
    one, other = of(PLAIN).secrets, of(PLAIN | {"password.encoder.secret": "another"}).secrets
    assert one["password.encoder.secret"] == of(PLAIN).secrets["password.encoder.secret"]
    assert one["password.encoder.secret"] != other["password.encoder.secret"]
    assert one["password.encoder.secret"] != of_file(PLAIN, "x", b"other look").secrets["password.encoder.secret"]


def test_a_nodes_answer_keeps_defaults_and_hidden_values_apart():
    rows = [
        NodeSetting(3000, "process.roles", "controller", "file", False),
        NodeSetting(3000, "num.partitions", "1", "default", False),
        NodeSetting(3000, "password.encoder.secret", None, "file", True),
        NodeSetting(3000, "ssl.key.password", None, "default", True),
    ]
    node = of_described(3000, rows)
    assert (node.role, node.get("num.partitions"), "num.partitions" in node.given) == ("controller", "1", False)
    assert node.secrets == {"password.encoder.secret": ""}


QUORUM = {
    "controller.quorum.voters": VOTERS,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
}
FLAG = {"zookeeper.metadata.migration.enable": "true"}
ZK = {"zookeeper.connect": "zk:2181"}
SOUND = {
    ZOOKEEPER: {"broker.id": "1", **ZK},
    MIGRATION: {"broker.id": "1", "inter.broker.protocol.version": "3.9", **ZK, **FLAG, **QUORUM},
    KRAFT: {"process.roles": "broker", "node.id": "1", **QUORUM},
    CONTROLLER: {"process.roles": "controller", "node.id": "3000", "listeners": "CONTROLLER://c1:9093", **ZK, **FLAG}
    | QUORUM,
    FINAL_CONTROLLER: {"process.roles": "controller", "node.id": "3000", "listeners": "CONTROLLER://c1:9093"} | QUORUM,
}


@pytest.mark.parametrize("mode", SOUND)
def test_a_sound_file_of_each_mode_has_no_finding(mode):
    node = of(SOUND[mode])
    assert node.mode == mode
    (row,) = lint([node])
    assert row.is_met is True


SCRAM = {"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256", "sasl.enabled.mechanisms": "SCRAM-SHA-256"}
SPELLED = (
    ({"zookeeper.metadata.migration.enable": " True "}, MIGRATION, 1),
    ({"zookeeper.metadata.migration.enable": "TRUE", "broker.id": " +1"}, MIGRATION, 1),
    ({"process.roles": "  "}, ZOOKEEPER, 1),
    ({"process.roles": " broker ", "node.id": "1\t"}, KRAFT, 1),
    ({"broker.id": "one"}, ZOOKEEPER, None),
    ({"broker.id": "9" * 5000}, ZOOKEEPER, None),
)


@pytest.mark.parametrize(("changed", "mode", "number"), SPELLED)
def test_a_mode_and_an_id_are_read_as_kafka_does(changed, mode, number):
    node = of(SOUND[ZOOKEEPER] | changed)
    assert (node.mode, node.node_id) == (mode, number)
    assert (number is None) == any(each.check_id == "N12" for each in lint([node]))


LONG = "9" * 5000


@pytest.mark.parametrize(
    "changed",
    [
        {"listeners": f"PLAINTEXT://:{LONG}"},
        {"controller.quorum.voters": f"{LONG}@c1:9093"},
        {"controller.quorum.voters": f"3000@c1:{LONG}"},
        {"max.connections.per.ip.overrides": f"a:{LONG}"},
        {"log.retention.ms": LONG},
    ],
)
def test_a_number_of_any_length_is_judged(changed):
    assert [each for each in lint([of(SOUND[KRAFT] | changed)]) if each.is_met is False]


def test_a_byte_order_mark_hides_the_first_key():
    rows = lint([of({"\u00ef\u00bb\u00bfbroker.id": "1", **ZK})])
    assert any("broker.id is unknown to Kafka" in each.sentence for each in rows if each.check_id == "N14")


BROKEN = (
    ("N01", MIGRATION, {"broker.id": None}, "broker.id is missing"),
    ("N01", MIGRATION, {"broker.id": "-1"}, "broker.id is missing"),
    ("N01", KRAFT, {"node.id": None}, "node.id is missing"),
    ("N02", MIGRATION, {"controller.quorum.voters": None}, "controller.quorum.voters is missing"),
    ("N02", ZOOKEEPER, {"controller.listener.names": "CONTROLLER"}, "is set without zookeeper.metadata"),
    ("N02", KRAFT, {"controller.quorum.voters": None, "controller.quorum.bootstrap.servers": "c:1"}, "dynamic quorum"),
    ("N01", ZOOKEEPER, {"broker.id": "1001"}, "broker.id 1001 is above reserved.broker.max.id 1000"),
    ("N03", MIGRATION, {"controller.listener.names": ""}, "missing or empty"),
    ("N03", CONTROLLER, {"listeners": "CONTROLLER://:1,PLAINTEXT://:2"}, "and PLAINTEXT are not"),
    ("N03", KRAFT, {"listeners": "PLAINTEXT://:1,CONTROLLER://:2"}, "does not listen on CONTROLLER"),
    ("N04", CONTROLLER, {"zookeeper.connect": None}, "without zookeeper.connect"),
    ("N04", KRAFT, FLAG, "in KRaft mode has"),
    ("N05", MIGRATION, {"inter.broker.protocol.version": "3.3"}, "needs 3.4"),
    ("N05", MIGRATION, {"inter.broker.protocol.version": "3.6", "log.dirs": "/a,/b"}, "3.7-IV2"),
    ("N06", CONTROLLER, {"node.id": "3005"}, "id 3005 is not in"),
    ("N06", MIGRATION, {"broker.id": "3001"}, "the node is no controller"),
    ("N06", KRAFT, {"controller.quorum.voters": "c1:9093"}, "no list of id@host:port"),
    ("N07", KRAFT, {"authorizer.class.name": PLAIN["authorizer.class.name"]}, "AclAuthorizer needs ZooKeeper"),
    (
        "N07",
        MIGRATION,
        {"authorizer.class.name": STANDARD_AUTHORIZER},
        "KRaft",
    ),
    ("N14", KRAFT, ZK, "zookeeper.connect has no meaning in KRaft mode"),
    ("N08", KRAFT, {"control.plane.listener.name": "C"}, "control.plane.listener.name is not allowed"),
    ("N14", FINAL_CONTROLLER, ZK, "is left without"),
    ("N09", MIGRATION, {"listeners": "INNER://:1"}, "lacks INNER"),
    ("N10", CONTROLLER, {"process.roles": "broker,controller"}, "in one process"),
    ("N12", KRAFT, {"num.partitions": "0"}, "num.partitions is 0, and must be [1,...]"),
    ("N12", MIGRATION, {"broker.id": "1 # the first"}, "broker.id is '1 # the first', and must be a whole number"),
    ("N13", ZOOKEEPER, {"replica.lag.time.max.ms": "400"}, "replica.fetch.wait.max.ms is above replica.lag.time.max"),
    ("N14", ZOOKEEPER, {"Listeners": "PLAINTEXT://:9092"}, "Listeners is unknown to Kafka, which ignores it"),
    ("N14", ZOOKEEPER, {"log.dirs": "/data # the disk"}, "the value of log.dirs contains a comment"),
    ("N15", CONTROLLER, {PROTOCOLS: "CONTROLLER:SASL_PLAINTEXT", **SCRAM}, "is GSSAPI, which the controllers do not"),
    ("N15", KRAFT, {PROTOCOLS: "PLAINTEXT:PLAINTEXT,CONTROLLER:SASL_SSL", **SCRAM}, "is GSSAPI, which the controllers"),
)


@pytest.mark.parametrize(("check_id", "mode", "changed", "told"), BROKEN)
def test_one_wrong_line_is_found(check_id, mode, changed, told):
    held = {name: value for name, value in (SOUND[mode] | changed).items() if value is not None}
    rows = [each for each in lint([of(held)]) if each.check_id == check_id]
    assert any(told in each.sentence for each in rows), rows
    assert all(each.remedy and each.is_met is False for each in rows)


def test_every_rule_was_broken():
    of_one_file = {each.check_id for each in RULES} - {"N00", "N11"}
    assert of_one_file == {check_id for check_id, *_ in BROKEN}


def test_files_are_held_against_each_other():
    other = of_file(SOUND[MIGRATION] | {"controller.quorum.voters": "3000@c1:9093"}, "b2.properties", KEY)
    rows = [each for each in lint([of(SOUND[MIGRATION]), other]) if each.check_id == "N11"]
    assert [each.sentence for each in rows] == [
        "Id 1 is in b1.properties and in b2.properties.",
        "controller.quorum.voters differs between files.",
    ]


def test_a_node_may_have_a_file_for_each_mode():
    files = [of_file(SOUND[mode], f"b1.{mode}.properties", KEY) for mode in (MIGRATION, KRAFT)]
    assert [each for each in lint(files) if each.check_id == "N11"] == []
    twice = [*files, of_file(SOUND[KRAFT], "again.properties", KEY)]
    assert [each.check_id for each in lint(twice) if each.is_met is False] == ["N11"]
    broker_too = of_file(SOUND[CONTROLLER] | {"node.id": "1"}, "c1.properties", KEY)
    assert "Id 1 is in" in next(each for each in lint([files[0], broker_too]) if each.check_id == "N11").sentence


def test_the_lines_that_change_are_those_of_the_file():
    present = of_file(PLAIN, "b1", KEY)
    lines = changed_lines(settings_change(KRAFT, present, VOTERS), present)
    by = {action: {name: value for each, name, value in lines if each == action} for action, _, _ in lines}
    assert by["set"].items() >= {("process.roles", "broker"), ("node.id", "1"), ("controller.quorum.voters", VOTERS)}
    assert "listeners" not in by["set"]
    assert {"broker.id", "zookeeper.connect", "zookeeper.ssl.keystore.password"} <= by["remove"].keys()
    assert by["manually"]["password.encoder.secret"] == "set; copy its value from the node's own file"
    assert SECRET not in str(lines)


def test_a_setting_that_a_node_has_already_is_no_change():
    present = of_file(PLAIN | {"zookeeper.metadata.migration.enable": "true"}, "b1", KEY)
    names = [name for action, name, _ in changed_lines(settings_change(MIGRATION, present, VOTERS), present)]
    assert "zookeeper.metadata.migration.enable" not in names
    assert "broker.id" not in names


def test_a_controller_made_from_a_broker_has_all_settings_and_nothing_removed():
    present = of_file(PLAIN, "b1", KEY)
    actions = {action for action, _, _ in changed_lines(settings_change(CONTROLLER, present, VOTERS), present)}
    assert actions == {"set", "manually"}
