"""One lab on its way from ZooKeeper to KRaft: what is read in each phase, and that both stores are compared rightly."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka.admin import NewTopic, ScramMechanism
from kazoo.security import OPEN_ACL_UNSAFE, make_acl

from kit.clients.nodes import fetch_node_settings
from kit.errors import ConnectError, PartialRead, ReadError, StoresDiffer, WrongCluster
from kit.kraft.metadata_log import read_log
from kit.kraft.move.cluster_state import READS
from kit.kraft.read.metadata_partitions import fetch_replicas
from kit.kraft.status import KraftStatus, broker_addresses, read_facts
from kit.lab import Lab, faults
from kit.lab.entities import ACLS, TOPICS, done, make_one_of_everything, set_quotas
from kit.lab.servers.migrating import connected
from tests.servers.dumped_log import dumped, read_here
from tests.servers.kraft_kinds import KINDS, MANY_USERS, make_many, new_admin, set_credential, set_metrics
from tests.servers.kraft_walk import KraftWalk
from tests.servers.provoked import PREFLIGHT, STATUS, hold
from tests.servers.provoked_cases import cases_of
from tests.servers.seeded_differences import seed

pytestmark = pytest.mark.timeout(900)
SECRET = "hush-hush-hush"
NOBODY = "127.0.0.1:1"
STATUS_VERB, AWAY = ("kraft", "status"), {"bootstrap_servers": NOBODY}
DEAD = {"zookeeper_connect": NOBODY, "controllers": NOBODY, **AWAY}
"""A verb that finds nobody waits until nobody has answered in time."""
ALL_KINDS = {"topic", "partition", "config", "quota", "scram", "acl", "producer_ids", "token"}


@pytest.fixture(scope="module")
def walk(tmp_path_factory) -> Iterator[KraftWalk]:
    """ZooKeeper → controllers → dual write, with changes, faults and their healing → KRaft → finalised.

    ``noted``: ``seeded`` (differences in a copy), ``settings`` of the controller, and its ``log`` at the end.
    """
    with Lab(brokers=1, controllers=1) as lab:
        seen = KraftWalk(lab)
        with seen.meanwhile_printed(
            ("dead", STATUS_VERB, {"zookeeper_connect": NOBODY, "controllers": NOBODY, **AWAY})
        ):
            reach_dual_write(seen)
            with seen.meanwhile_printed(
                ("brokers away", (*STATUS_VERB, "--json"), AWAY),
                ("another cluster", STATUS_VERB, {"cluster_id": "another", **AWAY}),
            ):
                change_all_kinds(seen)
                seen.noted["seeded"] = seed(lab, tmp_path_factory.mktemp("seeded"))
            be_cut(seen)
            damage(seen)
            restart_the_controller(seen)
            reach_the_end(seen)
        (controller,) = lab.migration.controllers
        faults.kill(controller)  # No process writes the log while it is copied.
        folder = lab.folder / controller.name / "data" / "__cluster_metadata-0"
        seen.noted["log"] = Path(shutil.copytree(folder, tmp_path_factory.mktemp("log") / folder.name))
        yield seen


def reach_dual_write(seen: KraftWalk) -> None:
    servers = seen.lab.migration
    make_one_of_everything(servers, SECRET)
    seen.status("zookeeper")
    servers.reach("controllers")
    seen.await_status("controllers", leads_in("PRE_MIGRATION"), "a controller that leads")
    seen.refuse_diff("controllers")
    servers.reach("dual-write")
    seen.status("dual write")
    seen.run("status", *STATUS_VERB)
    with connected(seen.lab.zookeeper_connect) as client:
        client.set_acls("/admin/delete_topics", [make_acl("world", "anyone", write=True, create=True, admin=True)])
        seen.run("pending deletions hidden", "kraft", "diff")
        client.set_acls("/admin/delete_topics", OPEN_ACL_UNSAFE)


def change_all_kinds(seen: KraftWalk) -> None:
    seen.diff("copied")
    admin = new_admin(seen.lab)
    for kind, change in KINDS.items():
        change(seen.lab, admin)
        seen.diff(kind)
    make_many(seen.lab)
    seen.diff("many")


def reach_the_end(seen: KraftWalk) -> None:
    servers = seen.lab.migration
    servers.reach("kraft")
    seen.status("kraft")
    seen.diff("kraft")
    seen.preflight("kraft", seen.collect("kraft"))
    with connected(seen.lab.zookeeper_connect) as client:
        client.delete("/migration")
    seen.status("no checkpoint")
    servers.reach("finalised")
    seen.await_status("finalised", leads_in("POST_MIGRATION"), "the end of the migration")
    seen.refuse_diff("finalised")
    seen.noted["settings"] = fetch_node_settings({}, servers.controller_addresses, 3000)


def leads_in(state: str) -> Callable[[KraftStatus], bool]:
    """Return whether the migration is in this state, and a controller leads that has read the log."""

    def is_so(status: KraftStatus) -> bool:
        leader = status.read.leader
        return status.state.zk_state == state and leader is not None and leader.metadata_version is not None

    return is_so


def be_cut(seen: KraftWalk) -> None:
    """The controller loses ZooKeeper for a moment."""
    lab = seen.lab
    faults.cut_controllers_from_zookeeper(lab)
    # No broker in ZooKeeper mode serves it before ZooKeeper has it: the controller writes there first.
    admin = new_admin(lab)
    done(admin.create_topics([NewTopic("behind", 1, 1)]), "topic")
    done(admin.delete_topics(["shop.items"]), "topic")
    seen.diff("cut", settle_s=0.5)
    with seen.connected() as cluster:
        facts = read_facts(cluster, broker_addresses(cluster))
        seen.noted["topics of the log"] = {topic for topic, _ in READS.replicas(cluster, facts)}
        seen.noted["topics of ZooKeeper"] = {topic for topic, _ in fetch_replicas(cluster.zookeeper)}
    faults.mend_controllers_to_zookeeper(lab)
    seen.diff("mended")


def damage(seen: KraftWalk) -> None:
    """Kafka's own faults, edits manually, a partition without its state; an election heals."""
    lab, servers = seen.lab, seen.lab.migration
    set_metrics(lab, "1000")
    set_quotas(servers, {(("client-id", "app 1"),): {"consumer_byte_rate": None}})
    edit(lab, "/config/topics/orders", {"version": 1, "config": {"retention.ms": "7"}})
    edit(lab, "/kafka-acl/Topic/orders", {"version": 1, "acls": [{"principal": "alice"}]})
    with connected(lab.zookeeper_connect) as client:
        state = "/brokers/topics/new/partitions/1/state"
        held, _ = client.get(state)
        client.delete(state)
        seen.diff("damaged")
        seen.run("damaged", "kraft", "diff", "--settle-s", "60")
        seen.preflight("damaged")
        client.create(state, held)
    set_metrics(lab, None)
    edit(lab, "/kafka-acl/Topic/orders", {"version": 1, "acls": []})


def restart_the_controller(seen: KraftWalk) -> None:
    """Killed, so that dual write is stalled; it forgets users; it remembers them by what docs/kraft.md says."""
    servers = seen.lab.migration
    faults.kill(servers.controllers[0])
    seen.status("controller dead")
    restart_and_sync(seen)
    seen.diff("forgotten")
    set_credential(new_admin(seen.lab), "alice", ScramMechanism.SCRAM_SHA_256)
    restart_and_sync(seen)
    seen.diff("healed")


def restart_and_sync(seen: KraftWalk) -> None:
    """Until the controller that leads now has written to ZooKeeper: before that, what differs is in flight."""
    servers = seen.lab.migration
    servers.restart_controller(servers.controllers[0], has_flag=True)
    seen.await_status("syncing", is_synced, "ZooKeeper is brought up to date after the election")


def is_synced(status: KraftStatus) -> bool:
    read = status.read
    return read.leader is not None and read.control.checkpoint_epoch == read.leader.leader_epoch


def edit(lab: Lab, path: str, held: object) -> None:
    """Edit a znode of a migration manually, which is dangerous."""
    with connected(lab.zookeeper_connect) as client:
        client.set(path, json.dumps(held).encode())


PHASES = ["zookeeper", "controllers", "dual write", "kraft", "finalised"]


@pytest.mark.parametrize("phase", PHASES)
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


def test_controllers_that_are_to_come_are_no_failure_of_a_status(walk):
    """Nobody listens at their address yet."""
    status = walk.statuses["zookeeper"]
    status.verify()
    assert [each.is_listening for each in status.read.controllers] == [False]
    assert status.describe()[-1].endswith("does not run: no server listens at the address. The move has not begun.")


def test_no_phase_of_a_sound_migration_has_an_alarm(walk):
    for phase in PHASES:
        found = walk.statuses[phase].findings
        assert [each for each in found if each.severity in ("alarm", "block")] == [], phase


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
def test_each_node_reports_its_mode_and_its_flag(walk, phase, broker, flag):
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


def test_a_controller_reports_its_settings_without_secrets(walk):
    settings = {each.name: each for each in walk.noted["settings"]}
    assert settings["process.roles"].value == "controller"
    assert settings["delegation.token.secret.key"].is_sensitive
    assert settings["delegation.token.secret.key"].value is None


@pytest.mark.parametrize("moment", ["controllers", "finalised"])
def test_without_dual_write_there_is_nothing_to_compare(walk, moment):
    assert "is not in dual write" in walk.refusals[moment]


@pytest.mark.parametrize("moment", ["copied", *KINDS, "many", "mended", "healed", "kraft"])
def test_both_stores_hold_the_same_after_each_change(walk, moment):
    found = walk.diffs[moment]
    assert found.of("diverged", "in_flight", "unknown").to_dicts() == []
    kinds = set(found.of("equal")["kind"])
    assert kinds == ALL_KINDS


def test_in_dual_write_the_log_knows_all_partitions_also_while_zookeeper_lacks_a_topic(walk):
    log, zookeeper = walk.noted["topics of the log"], walk.noted["topics of ZooKeeper"]
    assert (log - zookeeper, zookeeper - log) == ({"behind"}, {"shop.items"})


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_in_both_stores_after_the_next_checkpoint(walk, kind):
    """A second read, behind a checkpoint that has passed all of the first one, finds nothing that differs."""
    assert walk.diffs[kind].n_reads <= 2


def test_each_seeded_difference_is_found_and_no_other(walk):
    before, found = walk.noted["seeded"].before, walk.noted["seeded"].found
    assert before.is_clean
    told = {tuple(key) for key in found.of("diverged", "in_flight", "unknown").select("kind", "entity", "item").rows()}
    assert (told - walk.noted["seeded"].expected, walk.noted["seeded"].expected - told) == (set(), set())
    assert len(told) >= 1000
    assert {kind for kind, _, _ in told} == ALL_KINDS
    assert set(found.of("diverged")["kind"]) == ALL_KINDS
    assert len(found.of("equal")) > 50


def test_seeded_differences_have_their_causes(walk):
    rows = walk.noted["seeded"].found.of("diverged").select("kind", "entity", "item", "zookeeper_value", "cause").rows()
    causes = {(kind, entity, item): cause for kind, entity, item, _, cause in rows}
    assert causes["config", "topics/orders", "cleanup.policy"] == "failed_write"
    assert causes["config", "topics/never", "retention.ms"] == "not_copied"
    assert causes["config", "topics/brief", "retention.ms"] == "deleted_topic"
    # Another user's credential of this mechanism was removed before; of the other one none was.
    removed = {item: cause for kind, _, item, value, cause in rows if kind == "scram" and value is None}
    assert removed == {"SCRAM-SHA-256": "deleted_user", "SCRAM-SHA-512": None}
    counted = Counter(causes.values())
    assert counted["no_state"] == sum(1 for *_, value, _ in rows if value and " leader none epoch none " in value) > 50
    assert counted["hand_edit"] > 300


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


def test_values_that_zookeeper_cannot_have_yet_are_in_flight_and_never_diverged(walk):
    found = walk.diffs["cut"]
    assert found.of("diverged", "unknown").is_empty()
    assert set(found.of("in_flight")["entity"]) >= {"behind", "shop.items"}


def test_the_last_quota_that_kafka_forgets_in_zookeeper_is_named(walk):
    rows = walk.diffs["damaged"].of("diverged").select("kind", "entity", "item", "cause", "kraft_value").rows()
    assert ("quota", "clients/app%201", "consumer_byte_rate", "last_quota", None) in rows


def test_a_manual_edit_is_diverged_and_an_unreadable_value_unknown(walk):
    found = walk.diffs["damaged"]
    edited = found.of("diverged").filter(pl.col("kind") == "config")
    assert set(edited.select("entity", "item").rows()) == {
        ("topics/orders", "retention.ms"),
        ("topics/orders", "cleanup.policy"),
    }
    stateless = found.of("diverged").filter(pl.col("kind") == "partition")
    assert stateless.select("entity", "item", "cause").rows() == [("new", "1", "no_state")]
    unread = found.of("unknown")
    assert set(unread["entity"]) == {"TOPIC:LITERAL:orders"}
    assert "/kafka-acl/Topic/orders" in unread["error"][0]
    assert len(found.of("diverged")) == 4


def test_a_client_metrics_setting_is_named(walk):
    rows = walk.diffs["damaged"].differences.filter(pl.col("cause") == "client_metrics")
    assert rows.select("entity", "verdict").rows() == [("client-metrics/watchers", "expected")]


def test_if_it_is_hidden_what_shall_be_deleted_nothing_is_called_diverged(walk):
    found = walk.printed["pending deletions hidden"]
    assert found.exit_code == ReadError.exit_code
    assert "/admin/delete_topics can't be listed: NoAuthError (the login needs the right READ there)" in found.output


@pytest.mark.parametrize("case", cases_of("test_kraft.py", PREFLIGHT), ids=str)
def test_the_preflight_reports_what_is_wrong_and_what_to_do(walk, case):
    hold(case, walk.preflights[case.moment].rows)


@pytest.mark.parametrize("case", cases_of("test_kraft.py", STATUS), ids=str)
def test_the_status_reports_what_is_wrong_and_what_to_do(walk, case):
    hold(case, walk.statuses[case.moment].findings)


def test_an_election_heals_what_was_damaged_and_forgets_users_of_a_mechanism_of_which_one_was_removed(walk):
    """All of it that a restarted controller has read with the removal: it takes them out of ZooKeeper."""
    columns = ["kind", "entity", "item", "verdict", "cause"]
    rows = walk.diffs["forgotten"].of("diverged", "in_flight", "unknown").select(columns).rows()
    told = ("SCRAM-SHA-256", "diverged", "deleted_user")
    assert sorted(rows) == sorted(("scram", f"u{n}", *told) for n in range(MANY_USERS))


def test_an_election_heals_what_it_can(walk):
    assert walk.diffs["healed"].of("diverged", "in_flight").to_dicts() == []


def test_if_no_broker_answers_zookeeper_and_the_controllers_are_asked(walk):
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


def test_if_nothing_answers_or_another_cluster_the_status_ends_by_it(walk):
    assert walk.printed["dead"].exit_code == ConnectError.exit_code
    assert walk.printed["another cluster"].exit_code == WrongCluster.exit_code
    assert "expected cluster id another, but ZooKeeper" in walk.printed["another cluster"].output


def test_the_commands_report_what_was_found(walk):
    status, diff = walk.printed["status"], walk.printed["damaged"]
    assert status.exit_code == 0
    assert "Cluster lab: phase dual write." in status.output
    assert "Brokers in /brokers/ids: 1; registered in ZooKeeper mode: 1; in KRaft mode: 0;" in status.output
    assert diff.exit_code == StoresDiffer.exit_code
    assert "hold different values: 4 diverged, 3 unknown" in diff.output
    assert "last_quota" in diff.output
    assert "/kafka-acl/Topic/orders: an entry of the field acls lacks a principal" in diff.output


def test_no_secret_is_in_any_table(walk):
    for status in walk.statuses.values():
        assert SECRET not in str(status.facts.to_dicts()) + str(status.nodes.to_dicts())
    for found in walk.diffs.values():
        told = str(found.differences.to_dicts())
        assert SECRET not in told
        assert re.findall(r"(?:salt|stored_key|server_key)=(?!hmac:)", told) == []
        assert "stored_key=hmac:" in told


def test_the_log_of_the_whole_way_is_what_kafka_s_own_tool_prints(walk):
    """The copy's transaction and each state of the migration are in it."""
    (segment,) = walk.noted["log"].glob("*.log")
    mine = [each for each in read_here(read_log(segment).records) if each[2] != "LeaderChange"]
    assert mine == [each for each in dumped(segment, walk.lab.folder) if each[2] != "LeaderChange"]
    states = [fields["zkMigrationState"] for _, _, name, _, fields in mine if name == "ZkMigrationState"]
    assert states == [2, 1, 3]
    names = [name for _, _, name, *_ in mine]
    begun = next(at for at, (*_, fields) in enumerate(mine) if fields.get("name") == "ZK Migration")
    ended = names.index("EndTransaction", begun)
    assert names[begun] == "BeginTransaction"
    copied = {"Topic", "Partition", "Config", "ClientQuota", "UserScramCredential", "AccessControlEntry"}
    assert {*copied, "DelegationToken", "ProducerIds"} <= set(names[begun:ended])
    assert not copied & set(names[:begun])
    assert {"RegisterBroker", "RegisterController"} <= set(names)
