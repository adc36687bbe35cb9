"""One lab on its way from ZooKeeper to KRaft: what is read in each phase, and that both stores are compared rightly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl
import pytest
from confluent_kafka.admin import (
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from typer.testing import CliRunner, Result

from kit.cli.kraft import app
from kit.cluster import connect
from kit.errors import ConnectError, InputError, PartialRead, WrongCluster
from kit.kraft import KraftStatus, MetadataDiff, kraft_diff, kraft_status
from kit.lab import Lab, faults, topics
from kit.lab.entities import ACLS, TOPICS, alter_config, done, make_one_of_everything, set_quotas
from kit.lab.servers.migrating import connected
from kit.profile import load_profile
from kit.read.nodes import fetch_node_settings

SECRET = "hush-hush-hush"
NOBODY = "127.0.0.1:1"


@dataclass
class Walk:
    """What was seen on the way."""

    lab: Lab
    statuses: dict[str, KraftStatus] = field(default_factory=dict)
    diffs: dict[str, MetadataDiff] = field(default_factory=dict)
    refusals: dict[str, str] = field(default_factory=dict)
    settings: list = field(default_factory=list)
    printed: dict[str, Result] = field(default_factory=dict)

    def run(self, *arguments: str, called: str = "", **keys: str) -> None:
        """``offramp kraft …`` in this process; ``keys`` of the profile are others than the lab's."""
        text = self.profile.read_text()
        for key, value in keys.items():
            text = re.sub(f'^{key} = ".*"$', f'{key} = "{value}"', text, flags=re.MULTILINE)
        file = self.lab.folder / "asked.toml"
        file.write_text(text)
        self.printed[called or arguments[0]] = CliRunner().invoke(app, [*arguments, "--profile-file", str(file)])

    def status(self, phase: str) -> KraftStatus:
        with connect(load_profile(file=self.profile)) as cluster:
            self.statuses[phase] = kraft_status(cluster)
        return self.statuses[phase]

    def diff(self, moment: str, settle_s: float = 30.0) -> None:
        with connect(load_profile(file=self.profile)) as cluster:
            try:
                self.diffs[moment] = kraft_diff(cluster, settle_s)
            except InputError as error:
                self.refusals[moment] = str(error)

    @property
    def profile(self):
        file = self.lab.folder / "offramp.toml"
        file.write_text(self.lab.profile_toml())
        return file


@pytest.fixture(scope="module")
def walk() -> Iterator[Walk]:
    """ZooKeeper → controllers → dual write, with changes, faults and their healing → KRaft → finalised."""
    with Lab(brokers=1, controllers=1) as lab:
        seen, servers = Walk(lab), lab.migration
        make_one_of_everything(servers, SECRET)
        seen.status("zookeeper")
        servers.reach("controllers")
        seen.status("controllers")
        seen.diff("controllers")
        servers.reach("dual-write")
        seen.status("dual write")
        seen.run("status")
        away = {"bootstrap_servers": NOBODY}
        seen.run("status", "--json", called="brokers away", **away)
        seen.run("status", called="another cluster", cluster_id="another", **away)
        seen.run("status", called="dead", zookeeper_connect=NOBODY, controllers=NOBODY, **away)
        seen.diff("copied")
        change_everything(lab)
        seen.diff("changed")
        faults.cut_controllers_from_zookeeper(lab)
        # No broker in ZooKeeper mode serves it before ZooKeeper has it: the controller writes there first.
        admin = new_admin(lab)
        done(admin.create_topics([NewTopic("behind", 1, 1)]), "topic")
        done(admin.delete_topics(["shop.items"]), "topic")
        seen.diff("cut", settle_s=0.5)
        faults.mend_controllers_to_zookeeper(lab)
        seen.diff("mended")
        set_quotas(servers, {(("client-id", "app 1"),): {"consumer_byte_rate": None}})
        edit(lab, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "7"}})
        edit(lab, "/kafka-acl/Topic/orders", {"version": 1, "acls": [{"principal": "alice"}]})
        seen.diff("damaged")
        seen.run("diff", "--settle-s", "5")
        edit(lab, "/kafka-acl/Topic/orders", {"version": 1, "acls": []})
        servers.restart_controller(servers.controllers[0], has_flag=True)
        seen.diff("healed")
        set_credential(lab, "alice", ScramMechanism.SCRAM_SHA_256)
        servers.restart_controller(servers.controllers[0], has_flag=True)
        seen.diff("credential remembered")
        servers.reach("kraft")
        seen.status("kraft")
        seen.diff("kraft")
        servers.reach("finalised")
        seen.status("finalised")
        seen.diff("finalised")
        seen.settings = fetch_node_settings({}, servers.controller_addresses, 3000)
        yield seen


def new_admin(lab: Lab) -> AdminClient:
    """librdkafka's client gets no answer to CreateTopics after the broker it knew has changed its mode."""
    return AdminClient({**topics.QUIET, "bootstrap.servers": lab.bootstrap_servers})


def change_everything(lab: Lab) -> None:
    """A change of each kind while both stores are written."""
    admin = new_admin(lab)
    topics.create(admin, {"new": 2, "gone": 1}, 1)
    topics.grow(admin, "orders", 4, 1)
    alter_config(admin, ConfigResource.Type.TOPIC, "orders", {"retention.ms": None, "cleanup.policy": "delete"})
    alter_config(admin, ConfigResource.Type.BROKER, "1", {"log.cleaner.threads": None})
    done(admin.delete_topics(["gone"]), "topic")
    set_credential(lab, "bob", ScramMechanism.SCRAM_SHA_512)
    set_credential(lab, "erin", ScramMechanism.SCRAM_SHA_256)
    removed = UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256)
    done(admin.alter_user_scram_credentials([removed]), "user")
    anything = AclBindingFilter(
        ResourceType.GROUP, "*", ResourcePatternType.LITERAL, None, None, AclOperation.ANY, AclPermissionType.ANY
    )
    done(admin.delete_acls([anything]), "ACL")
    set_quotas(
        lab.migration,
        {
            (("user", "alice"),): {"producer_byte_rate": None},
            (("user", "carol/é"),): {"consumer_byte_rate": 10.0},
        },
    )


def set_credential(lab: Lab, user: str, mechanism: ScramMechanism) -> None:
    wanted = UserScramCredentialUpsertion(user, ScramCredentialInfo(mechanism, 5000), SECRET.encode())
    admin = new_admin(lab)
    done(admin.alter_user_scram_credentials([wanted]), "user")


def edit(lab: Lab, path: str, held: object) -> None:
    """What nobody should do: write into a znode of a migration by hand."""
    with connected(lab.zookeeper_connect) as client:
        client.set(path, json.dumps(held).encode())


@pytest.mark.parametrize("phase", ["zookeeper", "controllers", "dual write", "kraft", "finalised"])
def test_the_phase_is_the_one_the_lab_is_in(walk, phase):
    state = walk.statuses[phase].state
    assert state.phase == phase
    in_zookeeper = phase in ("zookeeper", "controllers", "dual write")
    assert state.n_zookeeper == int(in_zookeeper)
    if phase != "zookeeper":
        expected = {"controllers": "PRE_MIGRATION", "finalised": "POST_MIGRATION"}.get(phase, "MIGRATION")
        assert state.zk_state == expected
        assert state.kraft_epoch >= 1
    assert (state.lag is not None) == (phase in ("dual write", "kraft"))
    if phase == "dual write":
        assert (state.n_migrating, state.n_kraft) == (1, 0)
    if phase == "kraft":
        assert (state.n_migrating, state.n_kraft) == (0, 1)


def test_no_phase_of_a_sound_migration_has_an_alarm(walk):
    for phase, status in walk.statuses.items():
        assert [each for each in status.findings if each.severity in ("alarm", "block")] == [], phase


@pytest.mark.parametrize(
    ("phase", "broker", "flag"),
    [
        ("zookeeper", "zookeeper", None),
        ("controllers", "zookeeper", True),
        ("dual write", "migration", True),
        ("kraft", "kraft", True),
        ("finalised", "kraft", False),
    ],
)
def test_each_node_says_its_mode_and_its_flag(walk, phase, broker, flag):
    nodes = {each.role: each for each in walk.statuses[phase].read.nodes}
    assert nodes["broker"].mode == broker
    assert nodes["broker"].error is None
    assert nodes["controller"].has_flag is flag
    if flag is None:
        assert "does not answer" in nodes["controller"].error
    else:
        assert nodes["controller"].is_leader
        assert nodes["controller"].voters == (3000,)
        assert nodes["controller"].metadata_version == 21


def test_every_fact_has_its_source_and_time(walk):
    facts = walk.statuses["dual write"].facts
    assert facts["source"].null_count() == facts["read_at"].null_count() == facts["error"].drop_nulls().len() == 0
    assert {"/controller", "/migration", "quorum", "migration state"} <= set(facts["fact"])


def test_a_controller_tells_its_settings_without_secrets(walk):
    settings = {each.name: each for each in walk.settings}
    assert settings["process.roles"].value == "controller"
    assert settings["delegation.token.secret.key"].is_sensitive
    assert settings["delegation.token.secret.key"].value is None


@pytest.mark.parametrize("moment", ["controllers", "finalised"])
def test_without_dual_write_there_is_nothing_to_compare(walk, moment):
    assert "is not in dual write" in walk.refusals[moment]


@pytest.mark.parametrize("moment", ["copied", "changed", "mended", "credential remembered", "kraft"])
def test_both_stores_hold_the_same_after_each_change(walk, moment):
    found = walk.diffs[moment]
    assert found.of("diverged", "in_flight", "unknown").to_dicts() == []
    kinds = set(found.of("equal")["kind"])
    assert kinds == {"topic", "partition", "config", "quota", "scram", "acl", "producer_ids", "token"}


def test_every_value_that_was_made_is_compared(walk):
    found = walk.diffs["copied"].of("equal")
    of_topics = found.filter(pl.col("kind") == "partition", pl.col("entity").is_in(list(TOPICS)))
    assert len(of_topics) == sum(TOPICS.values())
    assert len(found.filter(pl.col("kind") == "acl")) == len(ACLS)
    assert set(found.filter(pl.col("kind") == "quota")["entity"]) == {
        "users/alice",
        "users/<default>",
        "users/al%2Ace%2Fx/clients/<default>",
        "clients/app%201",
        "ips/127.0.0.1",
    }
    assert set(found.filter(pl.col("kind") == "config")["entity"]) == {
        "topics/orders",
        "brokers/1",
        "brokers/<default>",
    }


def test_what_zookeeper_cannot_have_yet_is_in_flight_and_never_diverged(walk):
    found = walk.diffs["cut"]
    assert found.of("diverged", "unknown").is_empty()
    assert set(found.of("in_flight")["entity"]) >= {"behind", "shop.items"}


def test_the_last_quota_that_kafka_forgets_in_zookeeper_is_named(walk):
    rows = walk.diffs["damaged"].of("diverged").select("kind", "entity", "item", "cause", "kraft_value").rows()
    assert ("quota", "clients/app%201", "consumer_byte_rate", "last_quota", None) in rows


def test_what_was_edited_by_hand_is_diverged_and_what_cannot_be_read_unknown(walk):
    found = walk.diffs["damaged"]
    edited = found.of("diverged").filter(pl.col("kind") == "config")
    assert set(edited.select("entity", "item").rows()) == {
        ("topics/orders", "retention.ms"),
        ("topics/orders", "cleanup.policy"),
    }
    unread = found.of("unknown")
    assert set(unread["entity"]) == {"TOPIC:LITERAL:orders"}
    assert "/kafka-acl/Topic/orders" in unread["error"][0]
    assert len(found.of("diverged")) == 3


def test_an_election_heals_what_it_can(walk):
    assert walk.diffs["healed"].of("diverged", "in_flight").filter(pl.col("kind") != "scram").to_dicts() == []


def test_a_credential_that_a_restarted_controller_forgot_is_named(walk):
    """``ScramDelta`` of 3.9.1 and 4.1.1: alice's was removed, and a controller that reads the log anew loses erin's."""
    assert walk.diffs["changed"].of("equal").filter(pl.col("entity") == "erin").height == 1
    rows = walk.diffs["healed"].of("diverged").select("kind", "entity", "item", "zookeeper_value", "cause").rows()
    assert rows == [("scram", "erin", "SCRAM-SHA-256", None, "deleted_user")]


def test_where_no_broker_answers_zookeeper_and_the_controllers_are_asked(walk):
    found = walk.printed["brokers away"]
    assert found.exit_code == PartialRead.exit_code
    told = json.loads(found.stdout)
    assert told["state"][0]["phase"] == "dual write"
    facts = {each["fact"]: each["value"] for each in told["facts"]}
    assert facts["/brokers/ids"] == "1"
    assert facts[f"broker {NOBODY}"] is None


def test_the_highest_epoch_of_a_partition_is_read(walk):
    facts = dict(walk.statuses["dual write"].facts.select("fact", "value").iter_rows())
    assert int(facts["highest epoch of a partition"]) >= 1


def test_where_nothing_answers_or_another_cluster_the_status_ends_by_it(walk):
    assert walk.printed["dead"].exit_code == ConnectError.exit_code
    assert walk.printed["another cluster"].exit_code == WrongCluster.exit_code
    assert "expected cluster id another, but ZooKeeper" in walk.printed["another cluster"].output


def test_the_commands_say_what_was_found(walk):
    status, diff = walk.printed["status"], walk.printed["diff"]
    assert status.exit_code == 0
    assert "Cluster lab: phase dual write." in status.output
    assert "1 brokers in /brokers/ids, 1 registered in ZooKeeper mode, 0 in KRaft mode" in status.output
    assert diff.exit_code == PartialRead.exit_code
    assert "do not hold the same: 3 diverged, 2 unknown" in diff.output
    assert "last_quota" in diff.output
    assert "/kafka-acl/Topic/orders: one of its acls lacks a principal" in diff.output


def test_no_secret_is_in_any_table(walk):
    for status in walk.statuses.values():
        assert SECRET not in str(status.facts.to_dicts()) + str(status.nodes.to_dicts())
    for found in walk.diffs.values():
        assert "salt" not in str(found.differences.to_dicts())
        assert "stored_key" not in str(found.differences.to_dicts())
