"""Every check of the preflight: a sound cluster meets it, one change breaks it, and what was not read is never met."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from kit.kraft.analyze.node_settings import NodeSettings
from kit.kraft.analyze.phase import Facts
from kit.kraft.analyze.preflight import CHECKS, blocking, preflight, unknown
from kit.kraft.analyze.preflight_checks import AT_MOST, PreflightFacts
from kit.tables.conditions import Condition
from kit.tables.kraft import NodeFact
from kit.tables.metadata import MetadataItem
from kit.tables.preflight import BrokerLogDir, NodeMeta
from tests.kraft_records import broker as registration, hides, holds
from tests.unit.kraft.analyze.preflight_facts import (
    AT,
    CONTROL,
    ITEMS,
    LOG_DIRS,
    METAS,
    NO_DIFFERENCE,
    NODES,
    PARTITION,
    SETTINGS,
    SOUND,
    ZNODES,
    item,
    items,
    node,
    partitions,
    settings,
)


def control(**changed: Any) -> PreflightFacts:
    return replace(SOUND, facts=replace(SOUND.facts, control=replace(CONTROL, **changed)))


def nodes(*rows: NodeFact, **changed: Any) -> PreflightFacts:
    return replace(SOUND, facts=replace(SOUND.facts, nodes=rows, **changed))


def with_item(*rows: MetadataItem) -> PreflightFacts:
    return replace(SOUND, items=items(*ITEMS, *rows))


def with_partition(**changed: Any) -> PreflightFacts:
    return replace(SOUND, partitions=partitions(PARTITION, replace(PARTITION, partition=1, **changed)))


def with_settings(*rows: NodeSettings) -> PreflightFacts:
    own = {each.node_id for each in rows}
    return replace(SOUND, settings=[*rows, *(each for each in SETTINGS if each.node_id not in own)])


def with_broker(**changed: str | None) -> PreflightFacts:
    return with_settings(settings(1, **changed))


def with_controller(secrets: dict[str, str] | None = None, **changed: str | None) -> PreflightFacts:
    return with_settings(settings(3000, "controller", secrets, **changed))


def encrypted(*rows: NodeSettings) -> PreflightFacts:
    secret = MetadataItem("zookeeper", "config", "brokers/1", "ssl.key.password", None, True, 1, None, None)
    return replace(with_settings(*rows), items=items(*ITEMS, secret))


def differing(verdict: str) -> PreflightFacts:
    row = dict.fromkeys(NO_DIFFERENCE.columns) | {"kind": "acl", "entity": "x", "item": "y", "verdict": verdict}
    return replace(SOUND, differences=pl.DataFrame([row], schema=NO_DIFFERENCE.schema))


def _two_listeners(node: NodeSettings, name: str) -> NodeSettings:
    more = {"inter.broker.listener.name": name, "listeners": f"{name}://:1,PLAINTEXT://:2"}
    return replace(node, given={**node.given, **more})


def _controller_on(name: str) -> NodeSettings:
    return settings(3000, "controller", inter__broker__listener__name=name, num__partitions=None)


def of(check_id: str, facts: PreflightFacts) -> list[Condition]:
    """The rows of one check."""
    return [row for check in CHECKS if check.rule.check_id == check_id for row in check.findings(facts)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.rule.check_id)
def test_a_sound_cluster_meets_every_check(check):
    (row,) = of(check.rule.check_id, SOUND)
    assert row.is_met is True, row.sentence
    assert row.remedy == ""


SOUND_TOO = (
    ("A02", with_broker(broker__id=None, node__id="1")),
    ("A02", with_broker(broker__id=" +1 ")),
    ("A05", with_controller(inter__broker__listener__name=None)),
    ("A05", with_controller(inter__broker__listener__name=" plaintext")),
    ("A05", with_settings(*(_two_listeners(each, "INNER") for each in SETTINGS[:2]), _controller_on("INNER"))),
    ("A07", with_settings(settings(1, num__partitions=" 3"), settings(2, num__partitions="+3"))),
    ("A07", with_settings(*(settings(each, num__partitions="1") for each in (1, 2)), _controller_on("PLAINTEXT"))),
)
"""The settings that Kafka reads alike: by synonyms, defaults, without spaces, in another case."""


@pytest.mark.parametrize(("check_id", "facts"), SOUND_TOO, ids=lambda each: each if isinstance(each, str) else "")
def test_values_that_kafka_reads_alike_are_met(check_id, facts):
    (row,) = of(check_id, facts)
    assert row.is_met is True, row.sentence


def test_a_sound_cluster_is_not_held_back():
    rows = preflight(SOUND)
    assert blocking(rows) == unknown(rows) == []


SECRET = "password.encoder.secret"
TWICE = item("topic", "copy", "id", "id-of-orders")
BROKEN: tuple[tuple[str, PreflightFacts, str], ...] = (
    ("Z01", with_partition(replicas=(1, 7)), "Broker 7 is in the replica lists of 1 partition (for example orders-1)"),
    ("Z01", with_partition(adding=(8,)), "Broker 8"),
    ("Z02", control(checkpoint=142, checkpoint_epoch=1), "/migration is at offset 142"),
    ("Z02", control(**holds("/migration", "the value is empty")), "KAFKA-19480"),
    ("Z03", control(controller_id=None), "No broker is the controller"),
    (
        "Z03",
        control(is_controller_persistent=True, controller_id=3000),
        "KRaft controller 3000, but no metadata log shows a completed copy",
    ),
    ("Z03", control(controller_epoch=None), "ZooKeeper has no /controller_epoch"),
    ("Z03", control(controller_epoch=None, **holds("/controller_epoch", "it is no number")), "is no number"),
    ("Z04", with_item(item("topic", "new", "id")), "/brokers/topics/new has no topic_id"),
    (
        "Z04",
        with_item(item("topic", "x", error="/brokers/topics/x: the field partitions is empty")),
        "partitions is empty",
    ),
    ("Z04", with_item(TWICE), "The topics copy, orders have the same id"),
    ("Z05", with_partition(error="…/state: it is missing", leader=None, isr=()), "without a readable state"),
    ("Z05", with_partition(leader=None), "without a leader: 1"),
    ("Z05", with_partition(isr=()), "with an empty ISR: 1"),
    ("Z05", with_partition(isr=(3,)), "names a broker without a replica"),
    ("Z05", with_partition(recovery=1), "the recovery from an unclean election"),
    ("Z06", control(pending_deletions=("old",)), "The deletion of topic old is pending"),
    ("Z06", control(n_reassignments=1), "A reassignment or an election"),
    ("Z06", with_partition(removing=(2,)), "are being moved: partitions 1"),
    (
        "Z07",
        with_item(item("config", "brokers/1", error="/config/brokers/1: the value is empty")),
        ("the value is empty"),
    ),
    ("Z08", with_item(item("quota", "clients/c", "bytes", "1")), "the quota bytes, which Kafka 3.9 does not know"),
    ("Z08", with_item(item("quota", "clients/c", "x", error="/config/clients/c: 'fast' is no number")), "'fast'"),
    ("Z09", with_item(item("scram", "b", "SCRAM-SHA-256", error="/config/users/b: is no base64")), "no base64"),
    ("Z09", with_item(item("scram", "b", "SCRAM-SHA-256", "iterations=100")), "has 100 iterations"),
    ("Z10", with_item(item("acl", "TOPIC:LITERAL:x", error="/kafka-acl/Topic/x: the principal 'al'")), "'al'"),
    ("Z10", with_item(item("acl", "Robot:LITERAL:x", '["User:a","*","READ","ALLOW"]')), "Robot"),
    ("Z10", with_item(item("acl", "TOPIC:PREFIXED:*", '["User:a","*","READ","ALLOW"]')), "wildcard * as a prefix"),
    ("Z10", with_item(item("acl", "TOPIC:LITERAL:x", '["User:a","*","FLY","ALLOW"]')), "has ALLOW FLY"),
    (
        "Z10",
        replace(SOUND, znodes=replace(ZNODES, nested_acls=("/kafka-acl/Topic/a/b",))),
        "The copy loses this ACL, and dual write never begins",
    ),
    ("Z11", with_item(item("config", "topics/orders", "retention", "1")), "knows no such setting"),
    ("Z11", with_item(item("config", "topics/orders", "segment.ms", "0")), "segment.ms=0: Kafka 3.9 takes 1 to"),
    ("Z11", with_item(item("config", "topics/gone", "segment.ms", "0")), "a broker that starts"),
    ("Z11", with_item(item("config", "topics/gone", "retention.ms", "1")), "the topic does not"),
    ("Z12", encrypted(), "controller 3000 has no password.encoder.secret"),
    (
        "Z12",
        encrypted(settings(1, secrets={SECRET: "a"}), settings(3000, "controller", {SECRET: "b"})),
        "has another password.encoder.secret",
    ),
    ("Z13", replace(SOUND, metas=(*METAS[:2], NodeMeta("3000", 3000, 1, "xyz"))), "is of cluster xyz, but ZooKeeper"),
    ("Z15", with_controller(zookeeper__connect="zk:2181/kafak"), "has the chroot /kafak, but the brokers have /kafka"),
    ("Z16", control(controller_epoch=0), "/controller_epoch is 0, but KRaft has reached epoch 1"),
    ("Z16", replace(nodes(*NODES[:2]), facts=replace(control(controller_epoch=3).facts, nodes=NODES[:2])), "only 3"),
    ("Z17", replace(SOUND, znodes=replace(ZNODES, seqid_version=2)), "generated 2 broker ids"),
    ("Z17", control(brokers=(1, 2, 1001)), "1001 are above 1000"),
    ("Z18", control(n_notifications=4), "4 notifications"),
    (
        "Z18",
        replace(SOUND, znodes=replace(ZNODES, n_config_changes=1200, config_changes_s=1260.0)),
        "/config/changes holds 1,200 notifications, the oldest 21 minutes older",
    ),
    ("Z19", with_item(item("topic", "__cluster_metadata", "id", "x")), "'__cluster_metadata'"),
    ("Z19", with_item(item("topic", "or ders", "id", "x")), "'or ders'"),
    ("Z19", with_item(item("producer_ids", "", error="/latest_producer_id_block: no numbers")), "no numbers"),
    (
        "A01",
        with_broker(inter__broker__protocol__version="3.8"),
        "differs between the brokers: 3.8 of broker 1; 3.9 of broker 2",
    ),
    ("A01", with_broker(inter__broker__protocol__version="3.5"), "a migration needs 3.6-IV1"),
    ("A01", nodes(*NODES[:2], node("controller", 3000, metadata_version=20)), "has metadata.version 20"),
    ("A02", with_broker(broker__id=None), "has no broker.id in its file"),
    ("A02", with_controller(controller__quorum__voters="1@host:9093"), "A broker and a controller have the same id: 1"),
    ("A03", with_broker(log__dirs="/a,/b", inter__broker__protocol__version="3.6"), "2 log.dirs, which needs"),
    (
        "A03",
        replace(SOUND, log_dirs=(*LOG_DIRS, BrokerLogDir(1, "/b", "KAFKA_STORAGE_ERROR"))),
        "The log dir /b of broker 1 has failed: KAFKA_STORAGE_ERROR",
    ),
    ("A04", with_broker(control__plane__listener__name="C"), "KAFKA-17790"),
    ("A04", with_broker(log__message__format__version="2.8"), "log.message.format.version=2.8"),
    ("A04", with_broker(authorizer__class__name="kafka.security.authorizer.AclAuthorizer"), "uses AclAuthorizer"),
    ("A04", with_broker(authorizer__class__name="com.example.Mine"), "uses the authorizer com.example.Mine"),
    ("A04", with_broker(create__topic__policy__class__name="com.example.P"), "KIP-1252"),
    ("A05", with_controller(inter__broker__listener__name="INTERNAL"), "KAFKA-15670"),
    ("A05", with_broker(inter__broker__listener__name="INTERNAL"), "different inter-broker listeners"),
    ("A06", with_partition(leader=None), "offline partitions: 1"),
    ("A06", with_partition(isr=(1,)), "under-replicated partitions: 1"),
    (
        "A06",
        replace(with_item(item("config", "topics/orders", "min.insync.replicas", "3"))),
        "fewer replicas in sync than min.insync.replicas: 0",
    ),
    ("A07", with_controller(num__partitions="1"), "Brokers set num.partitions=3, and controller 3000 sets 1"),
    ("L01", nodes(*NODES[:2], node("controller", 3000, has_flag=False)), "runs without zookeeper.metadata"),
    ("L01", with_broker(controller__quorum__voters="9@x:1"), "controller.quorum.voters differs"),
    (
        "L01",
        nodes(node("broker", 1, mode="migration"), NODES[1], node("controller", 3000, observers=(2,))),
        "The broker at host:1 runs in migration mode, but is not registered and does not fetch the metadata log from",
    ),
    ("L01", replace(SOUND, kraft_items=items(ITEMS[0])), "holds 1 topic before the copy"),
    ("L01", nodes(*NODES, zk_state="NONE"), "log is NONE, not PRE_MIGRATION"),
    ("L02", nodes(*NODES, zk_state="POST_MIGRATION"), "log is POST_MIGRATION"),
    ("L03", nodes(*NODES[:2], node("controller", 3000, leader_epoch=21)), "KRaft is at epoch 21"),
    ("R01", control(max_state_epoch=25), "/controller_epoch is 20, but epoch 25 was used"),
    ("R02", differing("diverged"), "1 value with a difference"),
    ("R02", differing("in_flight"), "1 value on the way"),
    ("R03", replace(SOUND, metas=(NodeMeta("1", 1, 1, "abc"), *METAS[1:])), "1 of broker 1 has version 1"),
    (
        "R03",
        replace(
            nodes(node("broker", 1, mode="kraft"), *NODES[1:]),
            settings=(settings(1, process__roles="broker"), *SETTINGS[1:]),
        ),
        "No file starts broker 1 in ZooKeeper mode: file starts it in kraft mode",
    ),
    ("R04", nodes(node("broker", 1, mode="kraft"), *NODES[1:]), "runs in KRaft mode"),
    ("P01", nodes(*NODES, zk_state="POST_MIGRATION"), "finalised (state 3), but brokers"),
    ("last_quota", with_item(item("quota", "clients/app", "consumer_byte_rate", "1")), "for example clients/app"),
    (
        "deleted_user",
        with_item(item("scram", "b", "SCRAM-SHA-256", "iterations=4096")),
        "2 users have SCRAM-SHA-256 credentials",
    ),
    (
        "client_metrics",
        replace(SOUND, kraft_items=items(item("config", "client-metrics/m", "a", "b"))),
        "Dual write stalls",
    ),
    (
        "no_state",
        replace(
            with_partition(leader=None, leader_epoch=None, isr=()),
            facts=replace(SOUND.facts, zk_state="MIGRATION"),
        ),
        "orders has partitions without a state znode: 1.",
    ),
    ("KAFKA-16431", with_broker(log__dirs="/a,/b"), "stops when one of them fails"),
    ("KAFKA-19026", with_broker(alter__config__policy__class__name="com.example.P"), "com.example.P"),
    (
        "dynamic_quorum",
        with_controller(controller__quorum__voters=None, controller__quorum__bootstrap__servers="h:1"),
        "dynamic quorum",
    ),
)


@pytest.mark.parametrize(("check_id", "facts", "told"), BROKEN, ids=lambda each: each if isinstance(each, str) else "")
def test_one_change_breaks_it(check_id, facts, told):
    rows = [each for each in of(check_id, facts) if each.is_met is False]
    assert any(told in each.sentence for each in rows), [each.sentence for each in of(check_id, facts)]
    assert all(each.remedy for each in rows)


@pytest.mark.parametrize(
    ("facts", "mode", "topics", "is_wiped"),
    [
        (control(checkpoint=None), "zookeeper", (), True),
        (control(checkpoint=None), "zookeeper", (ITEMS[0],), False),
        (control(checkpoint=None), "kraft", (), False),
        (control(checkpoint=None), None, (), False),
        (control(checkpoint=142), "zookeeper", (), False),
        (nodes(*NODES, zk_state="MIGRATION"), "zookeeper", (), False),
        (nodes(*NODES, zk_state="POST_MIGRATION"), "zookeeper", (), False),
    ],
)
def test_controllers_are_wiped_only_if_nothing_is_lost(facts, mode, topics, is_wiped):
    """Fresh controllers beside a ``/migration`` of an earlier copy delete every topic from ZooKeeper."""
    seen = (*(replace(each, mode=mode) for each in NODES[:2]), node("controller", 3000, leader_epoch=41))
    facts = replace(facts, facts=replace(facts.facts, nodes=seen), kraft_items=items(*topics))
    remedies = [each.remedy for name in ("L01", "L02", "L03") for each in of(name, facts) if each.is_met is False]
    assert remedies
    assert {"format them" in each for each in remedies} == {is_wiped}, remedies


def test_every_check_that_can_fail_was_broken():
    counts_only = {"Z20", "Z14"}
    """The right to write a znode is never known from outside."""
    assert {each.rule.check_id for each in CHECKS} - counts_only == {check_id for check_id, _, _ in BROKEN}


RIGHT = "can't be {}: NoAuthError (the login needs the right READ there)"
REFUSED = f"/brokers/topics/x: it {RIGHT.format('read')}"


def hidden(path: str, **unknown: object) -> PreflightFacts:
    """Return a control znode that the login may not read."""
    return control(**hides(path), **unknown)


def refused(kind: str, entity: str, error: str) -> MetadataItem:
    return replace(item(kind, entity, error=error), is_refused=True)


DARK: tuple[tuple[str, PreflightFacts], ...] = (
    ("Z01", hidden("/brokers/ids")),
    ("Z01", with_item(refused("partition", "x", REFUSED))),
    ("Z02", hidden("/migration", has_migration=None)),
    ("Z03", hidden("/controller_epoch", controller_epoch=None)),
    ("Z03", hidden("/controller", controller_id=None, is_controller_persistent=None)),
    ("Z04", with_item(refused("topic", "x", REFUSED))),
    ("Z04", with_item(refused("topic", "", "/brokers/topics can't be listed: NoAuthError"))),
    ("Z05", with_partition(error=REFUSED, is_refused=True, leader=None, isr=())),
    ("Z06", hidden("/admin/delete_topics")),
    ("Z06", hidden("/admin/reassign_partitions")),
    ("Z07", with_item(refused("config", "", "/config/brokers can't be listed: NoAuthError"))),
    ("Z08", with_item(refused("quota", "", "/config/clients can't be listed: NoAuthError"))),
    ("Z09", with_item(refused("scram", "b", "/config/users/b: it can't be read: NoAuthError"))),
    ("Z10", replace(SOUND, znodes=None)),
    ("Z10", replace(SOUND, znodes=replace(ZNODES, **hides("/kafka-acl/Topic/a")))),
    ("Z11", with_item(refused("config", "", "/config/topics can't be listed: NoAuthError"))),
    ("Z12", encrypted(settings(1, secrets={SECRET: ""}), settings(3000, "controller", {SECRET: ""}))),
    ("Z13", replace(SOUND, metas=METAS[:2])),
    ("Z13", hidden("/cluster/id", cluster_id=None)),
    ("Z14", replace(SOUND, znodes=replace(ZNODES, restricted=("/config: sasl:kafka:rwcda",)))),
    ("Z14", replace(SOUND, znodes=replace(ZNODES, **hides("/config")))),
    ("Z15", with_controller(zookeeper__connect=None)),
    ("Z16", control(controller_epoch=None)),
    ("Z17", replace(SOUND, znodes=replace(ZNODES, seqid_version=None))),
    ("Z17", hidden("/brokers/ids", brokers=())),
    ("Z18", hidden("/isr_change_notification")),
    ("Z18", replace(SOUND, znodes=replace(ZNODES, **hides("/config/changes")))),
    ("Z19", with_item(refused("producer_ids", "", REFUSED))),
    ("Z20", with_item(refused("topic", "x", REFUSED))),
    ("A01", with_broker(inter__broker__protocol__version="4.7")),
    ("A01", with_broker(inter__broker__protocol__version="{{ version }}")),
    ("A02", with_controller(controller__quorum__voters="${env:VOTERS}")),
    ("A05", with_broker(listeners="${file:/etc/kafka/listeners:all}")),
    ("A07", with_controller(num__partitions="$PARTITIONS")),
    ("Z15", with_controller(zookeeper__connect="@ZOOKEEPER@")),
    ("A02", nodes(node("broker", 1), node("broker", 2), node("broker", 5))),
    ("A03", with_broker(log__dirs=None)),
    ("A03", replace(SOUND, log_dirs=(LOG_DIRS[0], BrokerLogDir(2, None, "CLUSTER_AUTHORIZATION_FAILED")))),
    ("A03", replace(SOUND, log_dirs=LOG_DIRS[:1])),
    ("A05", replace(SOUND, settings=SETTINGS[:2])),
    ("A06", with_partition(error=REFUSED, is_refused=True, leader=None, isr=())),
    ("L01", nodes(*NODES[:2], node("controller", 3000, has_flag=None, error="no answer"))),
    ("L01", nodes(*NODES[:2], node("controller", 3000, voters=(3000, 3001)))),
    ("L02", nodes(*NODES, zk_state=None)),
    ("L03", nodes(*NODES[:2])),
    ("R01", control(max_state_epoch=None)),
    ("R01", hidden("/brokers/topics")),
    ("R02", differing("unknown")),
    ("R03", replace(SOUND, metas=(NodeMeta("1", 1, None, "abc"), *METAS[1:]))),
    (
        "R03",
        replace(
            nodes(node("broker", 1, mode="migration"), *NODES[1:]),
            settings=(replace(SETTINGS[0], source="DescribeConfigs of broker 1"), *SETTINGS[1:]),
        ),
    ),
    ("R04", nodes(node("broker", 1, mode=None, error="no answer"), *NODES[1:])),
    ("P01", nodes(*NODES, zk_state="NONE")),
)


def test_controllers_that_the_profile_names_are_to_be_started_and_not_to_be_named():
    silent = nodes(*NODES[:2], node("controller", None, has_flag=None, is_leader=None, error="no answer"))
    (named,), (unnamed,) = of("L03", silent), of("L03", nodes(*NODES[:2]))
    assert named.remedy.startswith("Start all controllers")
    assert unnamed.remedy.startswith("Name them in the profile")
    assert any("Name the controllers" in each.remedy for each in of("A01", nodes(*NODES[:2])) if each.is_met is None)


@pytest.mark.parametrize(
    ("check_id", "kind", "entity"),
    [
        ("Z04", "topic", "x"),
        ("Z07", "config", "brokers/1"),
        ("Z08", "quota", "users/a"),
        ("Z10", "acl", "TOPIC:LITERAL:x"),
    ],
)
def test_content_that_imitates_a_refusal_is_none(check_id, kind, entity):
    """Whoever writes a znode could turn what blocks into what is not known."""
    facts = with_item(item(kind, entity, error=f"{entity}: its version is x. it {RIGHT.format('read')}"))
    assert [each.is_met for each in of(check_id, facts)] == [False]


@pytest.mark.parametrize(("check_id", "facts"), DARK, ids=lambda each: each if isinstance(each, str) else "")
def test_an_unread_check_is_never_met(check_id, facts):
    rows = of(check_id, facts)
    assert [each for each in rows if each.is_met is None], [each.sentence for each in rows]
    assert not any(each.is_met for each in rows)
    assert all("may read this znode" in each.remedy for each in rows if "right READ" in each.sentence)


def test_only_a_refusal_of_zookeeper_gives_the_advice_of_a_refusal():
    """A node's answer, and the name of a file, may hold any words."""
    silent = nodes(*NODES[:2], node("controller", 3000, has_flag=None, error=f"it {RIGHT.format('read')}"))
    (unread,) = (each for each in of("L01", silent) if each.subject.startswith("controller "))
    assert "right READ" in unread.sentence
    assert unread.remedy == ""
    (refused_,) = of("Z04", with_item(refused("topic", "x", "/brokers/topics/x: no")))
    assert "may read this znode" in refused_.remedy


NOTHING: Callable[[], PreflightFacts] = lambda: PreflightFacts(Facts(AT, None, ()))  # noqa: E731


def test_an_observation_that_read_nothing_meets_nothing():
    rows = preflight(NOTHING())
    assert {each.check_id for each in rows if each.is_met} == set()
    assert {each.check_id for each in rows} == {each.rule.check_id for each in CHECKS}


def test_a_broker_that_went_to_kraft_mode_is_no_missing_one():
    facts = replace(SOUND, facts=replace(control(brokers=()).facts, zk_state="MIGRATION"))
    assert [each.is_met for each in of("Z01", facts)] == [True]
    assert [each.is_met for each in of("Z01", control(brokers=()))] == [False, False]


def test_brokers_in_kraft_mode_need_no_zookeeper_for_their_controllers_to_find():
    in_kraft = [settings(each, process__roles="broker", zookeeper__connect=None) for each in (1, 2)]
    assert [each.is_met for each in of("Z15", with_settings(*in_kraft))] == [True]
    not_read = [settings(1, zookeeper__connect=None), in_kraft[1]]
    assert [each.is_met for each in of("Z15", with_settings(*not_read))] == [None]


def test_a_topic_that_waits_for_its_deletion_is_not_copied_and_needs_no_replicas():
    """Else nobody could begin: what it has on a broker that was taken away never comes back."""
    facts = with_partition(topic="old", replicas=(1, 7), isr=(1,))
    pending = replace(facts, facts=control(pending_deletions=("old",)).facts)
    for check_id in ("Z01", "A06"):
        assert [each.is_met for each in of(check_id, facts)] == [False]
        assert [each.is_met for each in of(check_id, pending)] == [True]
    (told,) = of("Z06", pending)
    assert "old-….-stray" in told.remedy


def test_few_iterations_warn_and_do_not_block():
    facts = with_item(item("scram", "b", "SCRAM-SHA-256", "iterations=100"))
    assert blocking(preflight(facts)) == []
    assert [each.severity for each in of("Z09", facts)] == ["warn"]


def test_the_quota_of_a_host_name_warns_and_an_address_does_not():
    """Each broker resolves the name itself, which can't be seen from here, and such a quota is no mistake."""
    (row,) = of("Z08", with_item(item("quota", "ips/db", "connection_creation_rate", "1")))
    assert (row.is_met, row.severity) == (None, "warn")
    assert "A broker that starts and can't resolve the name ends" in row.sentence
    for name in ("10.0.0.1", "fe80::1", "<default>"):
        (row,) = of("Z08", with_item(item("quota", f"ips/{name}", "connection_creation_rate", "1")))
        assert row.is_met is True


@pytest.mark.parametrize(("key", "severity"), [("retention.ms", "block"), ("no.such", "warn")])
def test_a_value_that_ends_brokers_blocks_and_a_setting_that_they_ignore_does_not(key, severity):
    (row,) = of("Z11", with_item(item("config", "topics/orders", key, "abc")))
    assert (row.is_met, row.severity) == (False, severity)


def test_checks_of_the_rollback_do_not_block_the_move():
    assert blocking(preflight(differing("diverged"))) == []


def test_the_count_reports_about_how_long_the_copy_takes():
    (row,) = of("Z20", replace(SOUND, partitions=partitions(*[PARTITION] * 6_994)))
    assert "The copy takes about 10 s, at 700 values per second" in row.sentence


@pytest.mark.parametrize(("is_fenced", "is_met"), [(True, False), (False, True)])
def test_a_registered_broker_reaches_a_controller_that_has_just_been_elected(is_fenced, is_met):
    facts = nodes(node("broker", 1, mode="migration"), NODES[1], node("controller", 3000, observers=()))
    registered = replace(registration(), is_fenced=is_fenced)
    found = replace(facts, facts=replace(facts.facts, registrations=(registered,)))
    assert [each.is_met for each in of("L01", found)] == [is_met]


def test_many_problems_of_one_kind_are_counted():
    many = [item("quota", f"clients/{number}", "bytes", "1") for number in range(AT_MOST + 7)]
    rows = of("Z08", with_item(*many))
    assert len(rows) == AT_MOST + 1
    assert rows[-1].sentence == "7 more problems of this kind are not listed."
    assert rows[-1].is_met is False
