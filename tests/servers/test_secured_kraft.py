"""Controllers behind TLS and SASL: read with the profile's login, and what is missing is said."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from kit.errors import AuthenticationFailed, NothingToDo, PartialRead, ReadError, UnsafePlan
from kit.lab import Lab, topics
from kit.lab.entities import done
from kit.lab.servers.migrating import connected
from kit.lab.servers.security import PASSWORD_VARIABLE, ZOOKEEPER_VARIABLE
from tests.servers.awaiting import awaited
from tests.servers.kraft_walk import KraftWalk
from tests.soak import soak_only

pytestmark = pytest.mark.timeout(900)

RIGHTS = (AclOperation.CLUSTER_ACTION, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
NEVER_KNOWN = {"Z14", "Z13", "R03"}
"""The checks with no known answer: whether controllers may use znodes that only nodes may write; and what only the
nodes' files have.
"""


def acls_of(lab: Lab) -> dict[str, list[tuple[str, str]]]:
    """Return whom each znode's access list names, of those that brokers made and those that controllers made."""
    paths = ("/controller", "/migration", "/config/users", "/brokers/topics/orders/partitions/0/state")
    with connected(lab.zookeeper_connect, lab.security) as client:
        return {path: [(each.id.scheme, each.id.id) for each in client.get_acls(path)[0]] for path in paths}


@pytest.fixture(scope="module")
def seen() -> Iterator[KraftWalk]:
    with Lab(brokers=1, controllers=1, secured=True) as lab:
        found, runs = KraftWalk(lab), ("--runs", str(lab.folder / "runs"))
        lab.create_topic("orders", 2)
        lab.migration.reach("dual-write")
        found.run("no rights", "kraft", "status")
        found.run("no rights for a diff", "kraft", "diff")
        found.run("no rights for a repair", "plan", "kraft", "--repair", *runs)
        found.run("no rights for the rollback", "plan", "kraft", "--to", "zookeeper", *runs)
        found.run("wrong password", "kraft", "status", secrets={PASSWORD_VARIABLE: "not-it"})
        found.run("wrong password of ZooKeeper", "kraft", "status", secrets={ZOOKEEPER_VARIABLE: "not-it"})
        found.noted["acls"] = acls_of(lab)
        give_rights(found)
        found.run("diff", "kraft", "diff")
        found.run("preflight with files", "kraft", "preflight", "--json", "--settings-dir", str(found.collect("nodes")))
        yield found


def give_rights(seen: KraftWalk) -> None:
    """Controllers learn of ACLs from their log, brokers from ZooKeeper: each in its time."""
    admin = AdminClient({**topics.QUIET, "bootstrap.servers": seen.lab.servers.addresses()})
    cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:alice", "*")
    done(admin.create_acls([AclBinding(*cluster, each, AclPermissionType.ALLOW) for each in RIGHTS]), "ACL")

    def not_read() -> tuple[str, object]:
        status, preflight = seen.run("status", "kraft", "status"), seen.run("preflight", "kraft", "preflight", "--json")
        told = status.output if status.exit_code else ""
        return told, unknown(seen, "preflight") if preflight.stdout else preflight.output

    awaited(not_read, lambda found: found == ("", NEVER_KNOWN), "every node knows the rights")


def findings(seen: KraftWalk, moment: str) -> list[dict]:
    return json.loads(seen.printed[moment].stdout)


def unknown(seen: KraftWalk, moment: str) -> set[str]:
    return {each["check_id"] for each in findings(seen, moment) if each["is_met"] is None}


def test_status_and_diff_read_it(seen):
    assert seen.printed["status"].exit_code == 0, seen.printed["status"].output
    assert "phase dual write" in seen.printed["status"].output
    assert "controller 3000 leads" in seen.printed["status"].output
    assert seen.printed["diff"].exit_code == 0, seen.printed["diff"].output


def test_every_check_that_needs_no_file_is_known(seen):
    rows = findings(seen, "preflight")
    assert unknown(seen, "preflight") == NEVER_KNOWN
    assert {each["subject"] for each in rows if each["check_id"] == "Z14"} >= {
        "/config/users",
        "/controller",
        "/migration",
    }
    assert all("sasl:kafka" in each["sentence"] for each in rows if each["check_id"] == "Z14")


def test_nothing_blocks_it_and_what_warns_is_what_the_lab_is(seen):
    rows = [each for each in findings(seen, "preflight") if each["is_met"] is False]
    assert {(each["check_id"], each["severity"]) for each in rows} <= {
        ("A04", "warn"),
        ("A07", "warn"),
        ("Z16", "warn"),
        ("deleted_user", "warn"),
    }, rows
    assert [each["subject"] for each in rows if each["check_id"] == "deleted_user"] == ["2 users with SCRAM-SHA-512"]
    assert [each["subject"] for each in rows if each["check_id"] == "A04"] == ["broker 1"]


def test_with_the_nodes_files_only_the_access_lists_are_not_known(seen):
    """The file of the broker is of migration mode: the one that it had before was not saved."""
    rows = findings(seen, "preflight with files")
    assert unknown(seen, "preflight with files") == {"Z14"}
    (kept,) = [each for each in rows if each["check_id"] == "R03" and each["is_met"] is False]
    assert kept["subject"] == "broker 1"
    assert "No file starts broker 1 in ZooKeeper mode" in kept["sentence"]
    of_files = [each for each in rows if each["phase"] == "settings"]
    assert {each["subject"] for each in of_files} == {"broker 1", "controller 3000"}
    assert [each for each in of_files if not each["is_met"]] == []


def test_its_settings_are_read_without_secrets(seen):
    sources = {each["check_id"]: each["is_met"] for each in findings(seen, "preflight")}
    assert {sources[check_id] for check_id in ("A01", "A02", "A03", "A05", "Z15", "L01")} == {True}
    for secret in seen.lab.secrets.values():
        assert all(secret not in printed.output for printed in seen.printed.values())


def test_the_missing_right_is_named(seen):
    status, diff = seen.printed["no rights"], seen.printed["no rights for a diff"]
    assert status.exit_code == PartialRead.exit_code
    assert "the login lacks DESCRIBE on the cluster" in " ".join(status.output.split())
    assert diff.exit_code == ReadError.exit_code
    assert "it needs the right ClusterAction (DescribeQuorum: Describe) on the cluster" in diff.output


def test_a_controller_that_refuses_is_not_taken_for_one_that_has_stopped(seen):
    """Nothing is repaired, and nothing handed back, behind the back of a controller that runs."""
    repair, back = seen.printed["no rights for a repair"], seen.printed["no rights for the rollback"]
    assert repair.exit_code in (NothingToDo.exit_code, UnsafePlan.exit_code), repair.output
    assert "no controller answers" not in repair.output
    assert back.exit_code == UnsafePlan.exit_code, back.output
    assert "does not answer: DescribeQuorum: CLUSTER_AUTHORIZATION_FAILED" in back.output


def test_a_wrong_password_is_refused(seen):
    assert seen.printed["wrong password"].exit_code == AuthenticationFailed.exit_code
    assert "not-it" not in seen.printed["wrong password"].output


def test_a_wrong_password_of_zookeeper_is_refused(seen):
    assert seen.printed["wrong password of ZooKeeper"].exit_code == AuthenticationFailed.exit_code
    assert "SASL login was refused" in seen.printed["wrong password of ZooKeeper"].output


def test_zookeeper_keeps_what_nodes_wrote_to_them(seen):
    """``zookeeper.set.acl``: theirs to write; what holds secrets is theirs to read."""
    nodes, world = ("sasl", "kafka"), ("world", "anyone")
    acls = dict(seen.noted["acls"])
    assert acls.pop("/config/users") == [nodes]
    assert set(map(tuple, acls.values())) == {(nodes, world)}


def test_nodes_talk_to_each_other_over_tls_and_sasl(seen):
    settings = {
        each.name: (seen.lab.folder / each.name / "server.properties").read_text() for each in nodes_of(seen.lab)
    }
    assert all("inter.broker.listener.name=SASL_SSL" in text for text in settings.values())
    assert all("CONTROLLER:SASL_SSL" in text for text in settings.values())


def nodes_of(lab: Lab):
    return [*lab.migration.migrating, *lab.migration.controllers]


WITHOUT = {
    AclOperation.CLUSTER_ACTION: dict.fromkeys(
        ("status", "diff", "preflight", "plan"), "needs the right ClusterAction"
    ),
    AclOperation.DESCRIBE: {
        **dict.fromkeys(("status", "preflight", "plan"), "the login lacks DESCRIBE on the cluster"),
        "diff": "DescribeQuorum: Describe) on the cluster",
    },
    AclOperation.DESCRIBE_CONFIGS: {"preflight": "the right DESCRIBE_CONFIGS on the cluster"},
}
"""Right on the cluster → command → what its output has without this right alone."""


@soak_only
@pytest.mark.parametrize("right", WITHOUT, ids=lambda each: each.name)
def test_without_any_one_right_each_command_names_it(seen, right):
    admin = AdminClient({**topics.QUIET, "bootstrap.servers": seen.lab.servers.addresses()})
    cluster = (ResourceType.BROKER, "kafka-cluster", ResourcePatternType.LITERAL, "User:alice", "*")
    plan = ("plan", "kraft", "--to", "zookeeper", "--runs", str(seen.lab.folder / "runs"))
    commands = {"status": ("kraft", "status"), "diff": ("kraft", "diff"), "preflight": ("kraft", "preflight", "--json")}
    allowed = AclPermissionType.ALLOW
    done(admin.delete_acls([AclBindingFilter(*cluster, right, allowed)]), "ACL")
    try:
        for command, sentence in WITHOUT[right].items():
            words = {**commands, "plan": plan}[command]
            awaited(
                lambda words=words: " ".join(seen.run("without a right", *words).output.split()),
                lambda output, sentence=sentence: sentence in output,
                f"{command} names the right",
            )
    finally:
        done(admin.create_acls([AclBinding(*cluster, right, allowed)]), "ACL")
