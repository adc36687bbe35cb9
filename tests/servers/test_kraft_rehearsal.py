"""A cluster saved in a file, without its secrets; and its move to KRaft rehearsed, sound and poisoned."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path

import polars as pl
import pytest
from kazoo.client import KazooClient
from typer.testing import CliRunner, Result

from kit.cli.kraft import app
from kit.cluster import connect
from kit.lab import Lab
from kit.lab.entities import make_one_of_everything
from kit.lab.servers.migrating import connected
from kit.metadata_file import load_metadata
from kit.preflight import kraft_preflight, preflight_of
from kit.profile import load_profile
from kit.rehearsal import Rehearsal, rehearse
from tests.servers.saved_metadata import big_metadata
from tests.soak import IS_SOAK, soak_only

N_TOPICS = 20_000 if IS_SOAK else 100
SECRET = "hush-hush-hush"
SCENES = ("poisoned", "left", "waiting")
RULE = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}


class Scene:
    """The files of one lab in ZooKeeper mode, which is gone; what its preflights and its znodes said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.printed: dict[str, Result] = {}
        self.live: dict[str, list] = {}
        self.secrets: set[str] = set()

    def file(self, name: str) -> Path:
        return self.folder / f"{name}.save"

    def save(self, lab: Lab, name: str, chroot: str = "") -> None:
        profile = lab.folder / "offramp.toml"
        profile.write_text(
            lab.profile_toml().replace(f'"{lab.zookeeper_connect}"', f'"{lab.zookeeper_connect}{chroot}"')
        )
        arguments = ["save", str(self.file(name)), "--profile-file", str(profile)]
        self.printed[name] = CliRunner().invoke(app, arguments)
        with connect(load_profile(file=profile)) as cluster:
            self.live[name] = list(kraft_preflight(cluster).rows)


@pytest.fixture(scope="module")
def scene(tmp_path_factory) -> Scene:
    found = Scene(tmp_path_factory.mktemp("saved"))
    with Lab(brokers=1, controllers=1) as lab:
        make_one_of_everything(lab.migration, SECRET)
        with connected(lab.zookeeper_connect) as client:
            client.set("/config/brokers/1", as_json({"version": 1, "config": {"my.plugin.password": SECRET}}))
            held = json.loads(client.get("/config/users/alice")[0])["config"]
            parts = (part.partition("=") for key in held if "SCRAM" in key for part in held[key].split(","))
            found.secrets = {SECRET, *(value for name, _, value in parts if name != "iterations")}
            for name in SCENES:
                write_scene(client, name)
        found.save(lab, "sound")
        for name in SCENES:
            found.save(lab, name, f"/{name}")
    return found


def as_json(held: object) -> bytes:
    return held if isinstance(held, bytes) else json.dumps(held).encode()


def write_scene(client: KazooClient, name: str) -> None:
    """A small cluster below a chroot, with what nobody should write."""

    def write(path: str, held: object) -> None:
        client.create(f"/{name}{path}", as_json(held), makepath=True)

    def topic(topic_name: str, topic_id: str | None, replicas: list[int]) -> None:
        held = {"version": 3, "partitions": {"0": replicas}, "adding_replicas": {}, "removing_replicas": {}}
        write(f"/brokers/topics/{topic_name}", held | ({"topic_id": topic_id} if topic_id else {}))
        state = {"version": 1, "leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1]}
        write(f"/brokers/topics/{topic_name}/partitions/0/state", state)

    for path in (
        "/cluster/id",
        "/brokers/ids/1",
        "/config/changes",
        "/kafka-acl-changes",
        "/kafka-acl-extended-changes",
    ):
        write(path, client.get(path)[0])
    write("/controller_epoch", b"3")
    topic("kept", "AAAAAAAAAAAAAAAAAAAABQ", [1])
    write("/kafka-acl/Topic/kept", {"version": 1, "acls": [RULE]})
    if name == "poisoned":
        topic("idless", None, [1])
        write("/kafka-acl/Topic/orders", {"version": 1, "acls": [RULE | {"principal": "alice"}]})
        write("/kafka-acl/Group/a/b", {"version": 1, "acls": [RULE]})
        if IS_SOAK:
            write("/brokers/topics/null-id", {"version": 3, "topic_id": None, "partitions": {"0": [1]}})
            write("/config/clients/fast", {"version": 1, "config": {"producer_byte_rate": "fast"}})
            write("/config/users/ann", {"version": 1, "config": {"SCRAM-SHA-256": f"salt=!,stored_key={SECRET}"}})
            write("/config/brokers/one", {"version": 1, "config": {"log.cleaner.threads": "2"}})
        write("/config/brokers/1", b'{"version":1,"config":{"ssl.key.password":"' + SECRET.encode())
    elif name == "left":
        claim = {"kraft_controller_id": 3000, "kraft_controller_epoch": 1, "kraft_metadata_epoch": 1}
        write("/migration", {"version": 0, "kraft_metadata_offset": 1_000_000} | claim)
    else:
        topic("zombie", "AAAAAAAAAAAAAAAAAAAABg", [1, 9])


def test_a_saved_cluster_says_what_it_holds(scene):
    assert scene.printed["sound"].exit_code == 0, scene.printed["sound"].output
    saved = load_metadata(scene.file("sound"))
    assert saved.counts["partitions"] >= 5
    assert saved.brokers == (1,)
    assert "2 scram" in scene.printed["sound"].output.replace("\n", " ")


@pytest.mark.parametrize("name", ["sound", *SCENES])
def test_no_secret_is_in_the_octets_of_a_file_nor_in_its_tables(scene, name):
    wanted = [each.encode() for each in scene.secrets]
    assert len(wanted) >= 7
    with zipfile.ZipFile(scene.file(name)) as file:
        contents = [file.read(each) for each in file.namelist()]
        tables = [pl.read_parquet(io.BytesIO(file.read(each))) for each in file.namelist() if each.endswith("parquet")]
    plain = [str(table.rows()).encode() for table in tables] + [
        bytes(b"".join(table["data"].drop_nulls())) for table in tables if "data" in table.columns
    ]
    for octets in [scene.file(name).read_bytes(), *contents, *plain]:
        assert [each for each in wanted if each in octets] == []


@pytest.mark.parametrize("name", ["sound", *SCENES])
def test_the_preflight_of_a_file_says_what_it_said_live(scene, name):
    found = preflight_of(load_metadata(scene.file(name)))
    told = [(each.check_id, each.is_met, each.subject, each.remedy) for each in found.rows]
    assert told == [(each.check_id, each.is_met, each.subject, each.remedy) for each in scene.live[name]]
    assert SECRET not in str(found.findings.to_dicts())


def test_a_sound_cluster_is_copied_whole_and_survives_a_fail_over(scene):
    found = rehearse(load_metadata(scene.file("sound")), controllers=3)
    found.verify()
    assert found.rows == []
    assert set(found.diffs) == {"after the copy", "after the fail-over"}
    for diff in found.diffs.values():
        assert diff.is_clean
        assert {"topic", "partition", "config", "quota", "scram", "acl", "token"} <= set(diff.of("equal")["kind"])
        assert diff.differences.filter(pl.col("rule") == "iterations_only").is_empty()
    steps = {each.step: each.seconds for each in found.steps}
    assert 0 < steps["copied"] <= steps["copy"]
    assert steps["fail-over"] > 0


@pytest.fixture(scope="module")
def poisoned(scene) -> Rehearsal:
    return rehearse(load_metadata(scene.file("poisoned")), controllers=1)


def test_each_abort_is_named_by_its_znode_and_its_check(poisoned):
    aborts = {each.znode: each.check_id for each in poisoned.rows if each.kind == "aborts"}
    more = {"/config/brokers/one": "Z07", "/config/clients/fast": "Z08", "/config/users/ann": "Z09"}
    assert aborts == {"/kafka-acl/Topic/orders": "Z10"} | (more if IS_SOAK else {})
    words = " ".join(each.sentence for each in poisoned.rows)
    assert "expected a string in format principalType:principalName but got alice" in words


def test_what_keeps_controllers_waiting_is_named_too(poisoned):
    """They fail and try again: before the copy on a topic's id, after it on an ACL below another."""
    waits = {each.znode: each.check_id for each in poisoned.rows if each.kind == "waits"}
    more = {"/brokers/topics/null-id": "Z04"} if IS_SOAK else {}
    assert waits == {"/brokers/topics/idless": "Z04", "/kafka-acl/Group/a/b": "Z10"} | more


def test_what_vanishes_without_a_word_is_told(poisoned):
    assert {each.znode for each in poisoned.rows if each.kind == "vanishes"} == {"/kafka-acl/Group/a/b"}


@soak_only
def test_migration_that_is_left_over_deletes_what_controllers_do_not_know(scene):
    found = rehearse(load_metadata(scene.file("left")), controllers=1)
    assert {each.check_id for each in found.rows} == {"Z02"}
    assert {each.znode for each in found.rows if each.kind == "vanishes"} >= {"/brokers/topics/kept"}


@soak_only
def test_a_broker_that_nobody_has_is_waited_for_and_the_command_ends_by_it(scene):
    ended = CliRunner().invoke(app, ["rehearse", str(scene.file("waiting")), "--controllers", "1"])
    assert ended.exit_code == 15
    assert "waits Z01: The controllers wait for ever: Still waiting for ZK brokers [9]" in ended.output
    assert "A rehearsal does not show: start-up of brokers" in ended.output
    assert "did not go well: 1 waits" in ended.output


@soak_only
def test_many_partitions_are_rehearsed(tmp_path):
    file = tmp_path / "big.save"
    big_metadata(N_TOPICS, n_partitions=5).write(file)
    found = rehearse(load_metadata(file), controllers=1, progress=print)
    found.verify()
    counted = dict(found.diffs["after the copy"].summary.select("kind", "n_equal").iter_rows())
    wanted = {"partition": 5 * N_TOPICS, "topic": N_TOPICS, "config": N_TOPICS // 10, "acl": N_TOPICS // 10}
    assert {kind: counted[kind] for kind in wanted} == wanted
    print(found.times)
