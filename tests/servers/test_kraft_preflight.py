"""The preflight on real servers: a sound cluster, controllers begun wrongly, bad and hidden znodes, edited copies."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
from confluent_kafka.admin import ConfigResource

from kit.kraft.analyze import topic_settings
from kit.kraft.analyze.node_files import render, settings_change
from kit.kraft.analyze.node_settings import MIGRATION
from kit.kraft.preflight import Preflight
from kit.lab.servers.migrating import MigratingBroker
from kit.text.properties import parse_properties
from tests.servers.awaiting import SECONDS
from tests.servers.kraft_walk import KraftWalk
from tests.servers.preflight_story import REPLICAS, edited, story
from tests.servers.provoked import EDITED, PREFLIGHT, STATUS, hold
from tests.servers.provoked_cases import cases_of

pytestmark = pytest.mark.timeout(900)
HERE = "test_kraft_preflight.py"


@pytest.fixture(scope="module")
def seen() -> Iterator[KraftWalk]:
    with story() as found:
        yield found


def ids(found: Preflight, is_met: bool | None) -> set[str]:
    return {each.check_id for each in found.rows if each.is_met is is_met}


def test_a_sound_cluster_is_ready_except_for_what_only_controllers_can_report(seen):
    rows = [each for each in seen.preflights["before"].rows if each.is_met is False]
    # The lab is young, uses AclAuthorizer and has quotas of clients: all of that is reported, and blocks nothing.
    assert {each.check_id for each in rows} == {"Z16", "A04", "last_quota"}
    assert {each.severity for each in rows} == {"warn"}
    of_controllers = {"A01", "A02", "A05", "A07", "L01", "L02", "L03", "Z13", "Z15", "R02", "R03", "client_metrics"}
    assert ids(seen.preflights["before"], None) == of_controllers


def test_with_controllers_and_the_nodes_files_everything_is_known(seen):
    ready = seen.preflights["ready"]
    open_rows = {each.check_id: each.sentence for each in ready.rows if not each.is_met}
    # The lab's controllers have no settings for topics, and no diff is made before dual write.
    assert set(open_rows) == {"A04", "A07", "R02", "last_quota"}, open_rows
    ready.verify()


@pytest.mark.parametrize("case", cases_of(HERE, PREFLIGHT), ids=str)
def test_the_preflight_reports_what_is_wrong_and_what_to_do(seen, case):
    hold(case, seen.preflights[case.moment].rows)


@pytest.mark.parametrize("case", cases_of(HERE, STATUS), ids=str)
def test_the_status_reports_what_is_wrong_and_what_to_do(seen, case):
    hold(case, seen.statuses[case.moment].findings)


@pytest.mark.parametrize("case", cases_of(HERE, EDITED), ids=str)
def test_an_edited_copy_of_the_lab_shows_it(seen, case, tmp_path):
    rows = edited(seen, case, tmp_path)
    hold(case, rows)
    as_it_was = seen.preflights["ready"].rows
    assert case.check_id == "A04" or not [
        each for each in as_it_was if each.check_id == case.check_id and not each.is_met
    ]


def test_no_secret_of_a_bad_znode_is_reported(seen):
    assert "hush-hush" not in str(seen.preflights["bad"].findings.to_dicts())


HIDDEN = {
    "/migration": "Z02",
    "/controller": "Z03",
    "/controller_epoch": "Z03",
    "/brokers/topics": "Z04",
    "/admin/reassign_partitions": "Z06",
    "/admin/delete_topics": "Z06",
    "/config/brokers": "Z07",
    "/config/users": "Z08",
    "/kafka-acl": "Z10",
    "/config/topics": "Z11",
    "/brokers/ids": "Z17",
    "/brokers/seqid": "Z17",
    "/isr_change_notification": "Z18",
    "/config/changes": "Z18",
    "/latest_producer_id_block": "Z19",
}


@pytest.mark.parametrize(("path", "check_id"), HIDDEN.items())
def test_values_hidden_from_the_login_are_unknown_and_the_missing_right_is_reported(seen, path, check_id):
    rows = [each for each in seen.preflights["closed"].rows if each.check_id == check_id]
    assert [each.sentence for each in rows if each.is_met is not None] == []
    told = [each for each in rows if f"{path}:" in each.sentence or f"{path} can't" in each.sentence]
    assert told, rows
    assert all("the login needs the right READ there" in each.sentence for each in told)
    assert all("Use a login that may read this znode" in each.remedy for each in told)


def test_nothing_is_held_against_a_cluster_because_it_is_hidden(seen):
    """Least of all a /migration, with the advice to delete it."""
    closed = seen.statuses["closed"]
    assert closed.findings == []
    assert closed.state.n_zookeeper is None
    assert "/migration: it can't be read: NoAuthError (the login needs the right READ there)" in closed.unread
    blocks = {
        each.check_id for each in seen.preflights["closed"].rows if each.is_met is False and each.severity == "block"
    }
    assert blocks == set()


@pytest.mark.parametrize("moment", REPLICAS)
def test_both_stores_hold_the_same_replicas_after_the_next_checkpoint(seen, moment):
    """A second read, behind a checkpoint that has passed all of the first one, finds nothing that differs."""
    found = seen.diffs[moment]
    assert found.of("diverged", "in_flight", "unknown").to_dicts() == []
    assert found.n_reads <= 2


@pytest.mark.parametrize(
    ("moment", "partition", "part"),
    [
        ("reassigned", "0", "2,1 isr 1,2 "),
        ("reassigned", "1", "2 isr 2 "),
        ("broker stopped", "0", "2,1 isr 1 leader 1 "),
        ("broker stopped", "1", "2 isr 2 leader none "),
        ("broker back", "0", "2,1 isr 1,2 leader 1 "),
        ("broker back", "1", "2 isr 2 leader 2 "),
        ("leaders elected", "0", "2,1 isr 1,2 leader 2 "),
    ],
)
def test_replicas_are_compared_as_they_change(seen, moment, partition, part):
    rows = seen.diffs[moment].of("equal").filter(pl.col("kind") == "partition", pl.col("entity") == "orders")
    (value,) = rows.filter(pl.col("item") == partition)["kraft_value"]
    assert value.startswith(part)


def test_a_broker_that_is_stopped_right_behind_the_hand_back_asks_controllers_that_are_gone(seen):
    status = seen.statuses["stopped too early"]
    assert seen.noted["is_hung"]
    assert not status.read.control.is_controller_persistent, "a broker holds /controller again"
    assert [each.is_listening for each in status.read.controllers] == [False, False]


def test_the_settings_of_topics_are_those_that_a_real_broker_has(seen):
    resource = ConfigResource(ConfigResource.Type.TOPIC, "orders")
    (future,) = seen.lab.admin.describe_configs([resource]).values()
    told = {name: entry.value for name, entry in future.result(SECONDS).items()}
    assert set(told) == topic_settings.KNOWN
    wrong = {name: value for name, value in told.items() if topic_settings.wrong(name, value)}
    assert wrong == {}


def test_the_log_dirs_are_those_of_the_brokers(seen):
    told = {each.node_id: (each.path, each.error) for each in seen.noted["facts"].log_dirs}
    assert told == {number: (str(seen.lab.folder / f"broker-{number}" / "data"), None) for number in (1, 2)}


def test_the_settings_made_for_a_broker_are_those_with_which_the_lab_migrates(seen):
    broker = seen.lab.migration.migrating[0]
    told = next(each for each in seen.preflights["before"].settings if each.node_id == 1)
    assert told.source == "DescribeConfigs of broker 1"
    voters = seen.preflights["ready"].voters
    made = parse_properties(render(settings_change(MIGRATION, told, voters), told))
    wanted = migration_settings(broker, seen.lab.folder)
    secret = {"delegation.token.secret.key", "listener.name.sasl_plaintext.plain.sasl.jaas.config"}
    patience = {name for name in wanted if name.startswith("controller.quorum.") and name.endswith("timeout.ms")}
    protocols = "listener.security.protocol.map"
    missing = {name for name in wanted if made.get(name) != wanted[name]} - secret - patience - {protocols}
    # Kafka does not report settings of an authorizer; a comment names this.
    assert missing == {"super.users"}
    assert set(wanted[protocols].split(",")) <= set(made[protocols].split(","))
    assert broker.quorum.password not in str(made)


def migration_settings(broker: MigratingBroker, folder: Path) -> dict[str, str]:
    mode, broker.mode = broker.mode, MIGRATION
    try:
        return broker.settings(folder / broker.name)
    finally:
        broker.mode = mode


def test_the_command_reports_what_hinders_and_ends_by_it(seen):
    ready, bad = seen.printed["ready"], seen.printed["bad"]
    assert ready.exit_code == 0
    assert "A04 warn: broker 1 uses AclAuthorizer" in ready.stdout
    made = {each.name: each.read_text() for each in (seen.lab.folder / "made").iterdir()}
    assert set(made) >= {"broker-1.kraft.properties", "controller-3000.finalised.properties"}
    assert seen.lab.migration.quorum.password not in ready.output + "".join(made.values())
    assert bad.exit_code == 15
    assert {each["check_id"] for each in json.loads(bad.stdout) if each["is_met"] is False} >= {"Z01", "R01"}
    assert "is not ready to move to KRaft" in bad.stderr
