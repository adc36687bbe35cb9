"""A cluster saved in a file, without its secrets; and its move to KRaft rehearsed, sound and poisoned."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import nbformat
import polars as pl
import pytest
from kazoo.client import KazooClient
from typer.testing import CliRunner

from kit.kraft.metadata_file import load_metadata
from kit.kraft.move.rehearsals import newest
from kit.kraft.preflight import preflight_of
from kit.kraft.rehearsal import Rehearsal, rehearse
from kit.kraft.verbs.kraft import app
from kit.lab import Lab
from kit.lab.entities import make_one_of_everything
from kit.lab.servers.migrating import connected
from tests.notebooks import html_tables
from tests.notebooks.executed import NOTEBOOKS, execute
from tests.servers.kraft_walk import KraftWalk
from tests.servers.saved_metadata import big_metadata
from tests.soak import IS_SOAK, report, soak_only

pytestmark = pytest.mark.timeout(900)
N_TOPICS = 20_000 if IS_SOAK else 100
SECRET, BARE = "hush-hush-hush", "hunter-two-of-another-application"
STRANGERS = ("/config/application/db.password", "/config/application,prod/users/ann", "/admin/app/token")
"""Spring Cloud's root is /config by default."""
SCENES = ("poisoned", "waiting", *(("left",) if IS_SOAK else ()))
"""A left-over ``/migration`` resembles dual write that is stalled: each status watches it for 15 s."""
NOTEBOOK = NOTEBOOKS / "explore" / "kraft_rehearsal.ipynb"
KINDS = {"topic", "partition", "config", "quota", "scram", "acl", "token"}
RULE = {"principal": "User:a", "permissionType": "Allow", "operation": "Read", "host": "*"}


@pytest.fixture(scope="module")
def seen(tmp_path_factory) -> KraftWalk:
    """The files of one lab in ZooKeeper mode, which is gone, its preflights, and the secrets in its znodes."""
    with Lab(brokers=1, controllers=1) as lab:
        found, folder = KraftWalk(lab), tmp_path_factory.mktemp("saved")
        make_one_of_everything(lab.migration, SECRET)
        with connected(lab.zookeeper_connect) as client:
            client.set("/config/brokers/1", as_json({"version": 1, "config": {"my.plugin.password": SECRET}}))
            held = json.loads(client.get("/config/users/alice")[0])["config"]
            parts = (part.partition("=") for key in held if "SCRAM" in key for part in held[key].split(","))
            found.noted["secrets"] = {SECRET, *(value for name, _, value in parts if name != "iterations")}
            for path in STRANGERS:
                client.create(path, BARE.encode(), makepath=True)
            found.noted["secrets"] |= {BARE}
            for name in SCENES:
                write_scene(client, name)
            found.noted["held"] = dict(all_below(client, "/"))
        for name in ("sound", *SCENES):
            where = lab.zookeeper_connect + ("" if name == "sound" else f"/{name}")
            file = found.noted[name] = folder / f"{name}.save"
            found.run(name, "kraft", "save", str(file), zookeeper_connect=where)
            found.preflight(name, zookeeper_connect=where)
    return found


def all_below(client: KazooClient, path: str) -> Iterator[tuple[str, bytes]]:
    yield path, client.get(path)[0]
    for name in client.get_children(path):
        yield from all_below(client, f"{path.rstrip('/')}/{name}")


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


def test_a_saved_cluster_reports_what_it_holds(seen):
    assert seen.printed["sound"].exit_code == 0, seen.printed["sound"].output
    saved = load_metadata(seen.noted["sound"])
    assert saved.counts["partitions"] >= 5
    assert saved.brokers == (1,)
    assert "2 scram" in seen.printed["sound"].output.replace("\n", " ")


def test_kafka_s_own_znodes_are_saved_as_they_are(seen):
    """But for what may hold a secret, and what no Kafka wrote."""
    saved = dict(pl.DataFrame(load_metadata(seen.noted["sound"]).znodes).select("path", "data").rows())
    live = {path: held for path, held in seen.noted["held"].items() if path in saved}
    other = {path for path, held in live.items() if held and saved[path] != held}
    secretive = ("/config/brokers/", "/config/users/", "/delegation_token/")
    assert {path for path in other if not path.startswith(secretive)} == set(STRANGERS)
    assert {"/config/brokers/1", "/config/users/alice"} <= other
    assert len(live) > 60


@pytest.mark.parametrize("name", ["sound", *SCENES])
def test_no_secret_is_in_the_octets_of_a_file_nor_in_its_tables(seen, name):
    wanted = [each.encode() for each in seen.noted["secrets"]]
    assert len(wanted) >= 7
    with zipfile.ZipFile(seen.noted[name]) as file:
        contents = [file.read(each) for each in file.namelist()]
        tables = [pl.read_parquet(io.BytesIO(file.read(each))) for each in file.namelist() if each.endswith("parquet")]
    plain = [str(table.rows()).encode() for table in tables] + [
        bytes(b"".join(table["data"].drop_nulls())) for table in tables if "data" in table.columns
    ]
    for octets in [seen.noted[name].read_bytes(), *contents, *plain]:
        assert [each for each in wanted if each in octets] == []


@pytest.mark.parametrize("name", ["sound", *SCENES])
def test_the_preflight_of_a_file_reports_what_it_reported_live(seen, name):
    found = preflight_of(load_metadata(seen.noted[name]))
    told = [(each.check_id, each.is_met, each.subject, each.remedy) for each in found.rows]
    assert told == [(each.check_id, each.is_met, each.subject, each.remedy) for each in seen.preflights[name].rows]
    assert SECRET not in str(found.findings.to_dicts())


@pytest.fixture(scope="module")
def rehearsed(seen, tmp_path_factory) -> tuple[nbformat.NotebookNode, Rehearsal]:
    """The sound cluster by the notebook, and beside it the poisoned one: each waits most of the time."""
    folder = tmp_path_factory.mktemp("rehearsed")
    seen.noted["runs"] = folder / "runs"
    given = {"file": str(seen.noted["sound"]), "controllers": 3, "runs": str(seen.noted["runs"])}
    with ThreadPoolExecutor(1) as pool:
        poisoned = pool.submit(rehearse, load_metadata(seen.noted["poisoned"]), controllers=1)
        notebook = execute(NOTEBOOK, folder / "sound.ipynb", **given)
        return notebook, poisoned.result()


@pytest.fixture(scope="module")
def poisoned(rehearsed) -> Rehearsal:
    return rehearsed[1]


def test_a_sound_cluster_is_copied_whole_and_survives_a_fail_over(seen, rehearsed):
    """Its last cell raises unless it does."""
    tables = html_tables.of_notebook(rehearsed[0])
    after_the_copy, after_the_fail_over = [each for each in tables if each and "n_diverged" in each[0]]
    for rows in (after_the_copy, after_the_fail_over):
        assert {row["kind"] for row in rows if row["n_equal"]} >= KINDS
        assert [row for row in rows if row["n_diverged"] or row["n_in_flight"] or row["n_unknown"]] == []
    steps = {row["step"]: row["seconds"] for row in html_tables.with_columns(tables, "step", "seconds")}
    assert 0 < steps["copied"] <= steps["copy"]
    assert steps["fail-over"] > 0


def test_the_result_of_a_rehearsal_is_kept_for_the_plan_that_asks_for_it(seen, rehearsed):
    saved = load_metadata(seen.noted["sound"])
    kept = newest(seen.noted["runs"], saved.cluster_id)
    assert kept is not None
    assert (kept.found, kept.controllers, kept.saved_at) == ({}, 3, saved.taken_at)


@soak_only
def test_no_credential_of_a_sound_cluster_is_compared_by_its_iterations_alone(seen):
    found = rehearse(load_metadata(seen.noted["sound"]), controllers=3)
    found.verify()
    assert found.rows == []
    assert set(found.diffs) == {"after the copy", "after the fail-over"}
    for diff in found.diffs.values():
        assert diff.is_clean
        assert set(diff.of("equal")["kind"]) >= KINDS
        assert diff.differences.filter(pl.col("rule") == "iterations_only").is_empty()


def test_each_abort_is_named_by_its_znode_and_its_check(poisoned):
    aborts = {each.znode: each.check_id for each in poisoned.rows if each.kind == "aborts"}
    more = {"/config/brokers/one": "Z07", "/config/clients/fast": "Z08", "/config/users/ann": "Z09"}
    assert aborts == {"/kafka-acl/Topic/orders": "Z10"} | (more if IS_SOAK else {})
    words = " ".join(each.sentence for each in poisoned.rows)
    assert "expected a string in format principalType:principalName but got alice" in words


def test_the_reason_why_controllers_wait_is_named_too(poisoned):
    """They fail and try again: before the copy on a topic's id, after it on an ACL below another."""
    waits = {each.znode: each.check_id for each in poisoned.rows if each.kind == "waits"}
    more = {"/brokers/topics/null-id": "Z04"} if IS_SOAK else {}
    assert waits == {"/brokers/topics/idless": "Z04", "/kafka-acl/Group/a/b": "Z10"} | more


def test_a_value_that_vanishes_silently_is_reported(poisoned):
    assert {each.znode for each in poisoned.rows if each.kind == "vanishes"} == {"/kafka-acl/Group/a/b"}


@soak_only
def test_migration_that_is_left_over_deletes_what_controllers_do_not_know(seen):
    found = rehearse(load_metadata(seen.noted["left"]), controllers=1)
    assert {each.check_id for each in found.rows} == {"Z02"}
    assert {each.znode for each in found.rows if each.kind == "vanishes"} >= {"/brokers/topics/kept"}


@soak_only
def test_a_broker_that_no_one_has_is_waited_for_and_the_command_ends_by_it(seen):
    ended = CliRunner().invoke(app, ["rehearse", str(seen.noted["waiting"]), "--controllers", "1"])
    assert ended.exit_code == 15
    assert "waits Z01: The controllers would wait forever: Still waiting for ZK brokers [9]" in ended.output
    assert "A rehearsal does not show: the start of brokers" in ended.output
    assert "failed: 1 waits" in ended.output


@soak_only
def test_many_partitions_are_rehearsed(tmp_path, record_property):
    file = tmp_path / "big.save"
    big_metadata(N_TOPICS, n_partitions=5).write(file)
    found = rehearse(load_metadata(file), controllers=1, progress=print)
    found.verify()
    counted = dict(found.diffs["after the copy"].summary.select("kind", "n_equal").iter_rows())
    wanted = {"partition": 5 * N_TOPICS, "topic": N_TOPICS, "config": N_TOPICS // 10, "acl": N_TOPICS // 10}
    assert {kind: counted[kind] for kind in wanted} == wanted
    report(record_property, f"{N_TOPICS:,} topics, {5 * N_TOPICS:,} partitions", details=str(found.times))
