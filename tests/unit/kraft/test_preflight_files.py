"""The nodes' files in a folder, and the ready-made ones: what is read, what is refused, and that no secret is kept."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.errors import InputError, NothingToDo, PartialRead, UnsafePlan
from kit.kraft.analyze.node_settings import VERSION, VOTERS, NodeSettings
from kit.kraft.preflight import Preflight, _one_per_node, judge
from kit.kraft.settings_files import SettingsFolder, lint_settings_file, read_settings_folder
from kit.tables.conditions import Condition
from kit.tables.preflight import BrokerLogDir, NodeMeta
from kit.text.properties import parse_properties
from tests.generators import hostile
from tests.unit.kraft.analyze.preflight_facts import SOUND

SERVER = (
    "broker.id=1\nzookeeper.connect=zk:2181\ninter.broker.protocol.version=3.9\npassword.encoder.secret=hush-hush\n"
)


def put(folder, name: str, text: str | bytes):
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def row(check_id: str, severity: str, is_met: bool | None, phase: str = "controllers") -> Condition:
    return Condition(check_id, severity, phase, "cluster", is_met, "A sentence.", "", "ZooKeeper")


def test_each_file_reports_itself_whose_it_is(tmp_path):
    put(tmp_path, "a/server.properties", SERVER)
    put(tmp_path, "a/meta.properties", "version=0\nbroker.id=1\ncluster.id=abc\n")
    put(tmp_path, "b/controller.properties", "process.roles=controller\nnode.id=3000\n")
    put(tmp_path, "a/log4j.properties", "log4j.rootLogger=INFO\n")
    found = read_settings_folder(tmp_path)
    assert [(each.role, each.node_id) for each in found.settings] == [("broker", 1), ("controller", 3000)]
    assert found.metas == [NodeMeta("a/meta.properties", 1, 0, "abc")]
    assert "hush-hush" not in repr(found)


def test_the_checks_take_the_earliest_of_a_file_per_mode(tmp_path):
    put(tmp_path, "broker-1.kraft.properties", "process.roles=broker\nnode.id=1\n")
    put(tmp_path, "broker-1.migration.properties", SERVER + "zookeeper.metadata.migration.enable=true\n")
    put(tmp_path, "broker-1.zookeeper.properties", SERVER)
    put(tmp_path, "unknown.properties", "zookeeper.connect=zk:2181\n")
    put(tmp_path, "unknown-2.properties", "zookeeper.connect=zk:2181\n")
    found = _one_per_node(read_settings_folder(tmp_path).settings)
    assert sorted(each.source for each in found) == [
        "broker-1.zookeeper.properties",
        "unknown-2.properties",
        "unknown.properties",
    ]


def test_settings_that_a_file_leaves_out_are_as_the_node_itself_reported(tmp_path):
    """Several log.dirs need an inter.broker.protocol.version, whose default only the node shows."""
    put(tmp_path, "broker.properties", "broker.id=1\nzookeeper.connect=zk:2181\nlog.dirs=/a,/b\n")
    node = NodeSettings(
        1,
        "broker",
        "DescribeConfigs of broker 1",
        given={
            "broker.id": "1",
            "log.dirs": "/old",
            "zookeeper.metadata.migration.enable": "true",
            VOTERS: "3000@c:9093",
        },
        defaults={"inter.broker.protocol.version": "3.9-IV0"},
        secrets={"password.encoder.secret": ""},
    )
    folder = read_settings_folder(tmp_path)

    def found(*told: NodeSettings):
        facts = replace(SOUND, settings=told, log_dirs=[BrokerLogDir(1, "/a", None), BrokerLogDir(1, "/b", None)])
        return judge("production", facts, folder)

    assert "needs inter.broker.protocol.version 3.7-IV2 or later; its value is None" in str(found().rows)
    merged = found(node)
    assert "needs inter.broker.protocol.version" not in str(merged.rows)
    assert {each.is_met for each in merged.rows if each.check_id == "A03"} == {None}, "broker 2 is not there"
    assert merged.settings == list(folder.settings), "ready-made files are made of what is the operator's"
    (file,) = folder.settings
    over = file.over(node)
    assert (over.get("log.dirs"), over.mode, over.secrets, over.source) == ("/a,/b", "zookeeper", {}, file.source)
    assert over.get(VOTERS) is None, "a file without voters makes a dynamic quorum"


@pytest.mark.parametrize(
    ("runs_with", "problem"),
    [
        (
            {"given": {VERSION: "3.8"}},
            f"{VERSION} differs between the brokers: 3.8 of broker 1 as it runs; 3.9 of broker 1, broker 2.",
        ),
        ({"defaults": {VERSION: "3.9-IV0"}}, None),
        ({"given": {VERSION: "3.9"}}, None),
    ],
)
def test_a_version_is_that_of_the_file_and_that_of_the_running_broker(tmp_path, runs_with, problem):
    """Kafka writes 3.9 as 3.9-IV0 into its answers; both are one version."""
    put(tmp_path, "broker.properties", f"broker.id=1\nzookeeper.connect=zk:2181\n{VERSION}=3.9\n")
    node = NodeSettings(1, "broker", "DescribeConfigs of broker 1", **{"given": {"broker.id": "1"}, **runs_with})
    facts = replace(SOUND, settings=(node, *SOUND.settings[1:]))
    rows = [each for each in judge("production", facts, read_settings_folder(tmp_path)).rows if each.check_id == "A01"]
    assert [each.sentence for each in rows if each.subject == "brokers"] == ([] if problem is None else [problem])
    assert any(each.is_met for each in rows) is (problem is None)


@pytest.mark.parametrize("version", ["", "one", "-1", "99999999999999999999"])
def test_a_version_that_is_no_number_is_unknown(tmp_path, version):
    put(tmp_path, "meta.properties", f"version={version}\nnode.id=x\ncluster.id=abc\n")
    assert read_settings_folder(tmp_path).metas == [NodeMeta("meta.properties", None, None, "abc")]


def test_a_folder_without_settings_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere", put(tmp_path, "a.txt", "x")):
        with pytest.raises(InputError, match="is no folder with"):
            read_settings_folder(path)
    put(tmp_path, "log4j.properties", "log4j.rootLogger=INFO\n")
    with pytest.raises(InputError, match="has no settings of a node"):
        read_settings_folder(tmp_path)


@pytest.mark.parametrize(
    ("held", "told"), [(b"\xff\xfe", "has no settings of a node"), (b"x" * 1_000_001, "no node's settings")]
)
def test_a_file_that_is_no_text_is_refused(tmp_path, held, told):
    put(tmp_path, "server.properties", held)
    with pytest.raises(InputError, match=told):
        read_settings_folder(tmp_path)


def test_a_file_is_read_as_java_reads_it(tmp_path):
    put(
        tmp_path, "server.properties", "# caf\u00e9\n".encode("latin-1") + SERVER.encode() + b"broker.rack=M\xfcnchen\n"
    )
    (node,) = read_settings_folder(tmp_path).settings
    assert node.get("broker.rack") == "M\u00fcnchen"
    made = judge("c", SOUND, SettingsFolder([node])).files()["broker-1.kraft.properties"]
    assert "broker.rack=M\\u00fcnchen" in made
    assert parse_properties(made.encode().decode("latin-1"))["broker.rack"] == "M\u00fcnchen"


DYNAMIC = SERVER.replace("broker.id=1", "broker.id=${file:/etc/kafka/ids:id}")
PASSWORD = SERVER.replace("hush-hush", "${file:/etc/kafka/secrets:encoder}") + "num.partitions={{ n }}\n"


def test_a_value_that_is_filled_in_later_is_not_known(tmp_path):
    file = put(tmp_path, "server.properties", DYNAMIC)
    assert "broker.id is a placeholder" in str(lint_settings_file(file, "broker", 1, "zookeeper"))
    file = put(tmp_path, "server.properties", SERVER + "advertised.listeners=${env:LISTENERS}\n")
    told = str(lint_settings_file(file, "broker", 1, "zookeeper"))
    assert "advertised.listeners is redacted or a placeholder" in told


def test_values_that_no_rule_asks_for_may_be_filled_in_later(tmp_path):
    file = put(tmp_path, "server.properties", PASSWORD)
    assert lint_settings_file(file, "broker", 1, "zookeeper") is None
    (node,) = read_settings_folder(tmp_path).settings
    assert node.secrets == {"password.encoder.secret": ""}  # Equal templates need not become equal secrets.


def test_ready_made_files_report_what_they_lack(tmp_path):
    put(tmp_path, "server.properties", SERVER)
    made = Preflight("c", [], read_settings_folder(tmp_path).settings, "3000@c:9093")
    text = made.files()["controller.migration.properties"]
    assert "# before a start, N01: controller.migration.properties (controller mode): node.id is missing." in text
    assert "listeners is missing" in text
    assert {each.source for each in made.unfinished} >= {"controller.migration.properties"}
    assert "# before a start" not in made.files()["broker-1.migration.properties"]


def test_files_are_made_for_each_mode_and_never_over_others(tmp_path):
    put(tmp_path, "nodes/server.properties", SERVER)
    found = Preflight("lab", [], read_settings_folder(tmp_path / "nodes").settings, "3000@c:9093")
    written = found.write_files(tmp_path / "made")
    assert [file.name for file in written] == [
        "broker-1.migration.properties",
        "broker-1.kraft.properties",
        "broker-1.zookeeper.properties",
        "controller.migration.properties",
        "controller.finalised.properties",
    ]
    texts = [file.read_text() for file in written]
    assert "hush-hush" not in "".join(texts)
    assert parse_properties(texts[1])["node.id"] == "1"
    with pytest.raises(InputError, match="name a new folder"):
        found.write_files(tmp_path / "made")


@pytest.mark.parametrize("name", hostile.CONTROLS)
def test_a_hostile_name_makes_no_second_setting(tmp_path, name):
    put(tmp_path, "server.properties", SERVER + f"com.example={name}\n".replace("\r", "").replace("\\", ""))
    settings = read_settings_folder(tmp_path).settings
    made = Preflight("lab", [], settings).files()["broker-1.migration.properties"]
    assert parse_properties(made)["broker.id"] == "1"


def test_the_end_of_a_preflight():
    sound = [row("Z01", "block", True), row("Z16", "warn", False), row("R01", "block", False, "rollback")]
    Preflight("lab", sound, []).verify()
    dark = [*sound, row("Z02", "block", None)]
    with pytest.raises(PartialRead, match="are unknown: Z02"):
        Preflight("lab", dark, []).verify()
    with pytest.raises(UnsafePlan, match="not ready to move to KRaft: Z04; unknown: Z02"):
        Preflight("lab", [*dark, row("Z04", "block", False)], []).verify()
    ended = judge("lab", replace(SOUND, facts=replace(SOUND.facts, zk_state="POST_MIGRATION")))
    with pytest.raises(NothingToDo, match="there is no move to prepare"):
        ended.verify()
    assert not judge("lab", SOUND).is_final


def test_the_worst_comes_first():
    rows = [row("A", "warn", False), row("B", "block", None), row("C", "alarm", False), row("D", "info", True)]
    assert [each.check_id for each in Preflight("lab", rows, []).open_rows] == ["C", "A", "B"]
