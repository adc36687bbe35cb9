"""No advice destroys metadata, if the fact behind it is wrong or was not read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kit.kraft.analyze.contradictions import findings
from kit.kraft.analyze.node_lint import lint
from kit.kraft.analyze.node_settings import CONTROLLER, KRAFT, NodeSettings
from kit.kraft.analyze.preflight import CHECKS
from kit.kraft.analyze.preflight_checks import PreflightFacts
from kit.tables.conditions import Condition
from kit.tables.kraft import MetadataControl
from kit.tables.metadata import MetadataItem
from kit.tables.preflight import NodeMeta
from tests.kraft_records import broker as registration
from tests.unit.kraft.analyze.preflight_facts import (
    CONTROL,
    ITEMS,
    METAS,
    NODES,
    PARTITION,
    SETTINGS,
    SOUND,
    item,
    items,
    node,
    partitions,
    settings,
)


def of(check_id: str, facts: PreflightFacts) -> list[Condition]:
    return [row for check in CHECKS if check.rule.check_id == check_id for row in check.findings(facts)]


def facts(control: MetadataControl | None = None, rows: tuple[MetadataItem, ...] = (), **changed: Any):
    """``SOUND`` with another control, more of ZooKeeper's items, and other facts of the cluster."""
    inner = replace(SOUND.facts, control=control or CONTROL, **changed)
    return replace(SOUND, facts=inner, items=items(*ITEMS, *rows))


STATELESS = partitions(replace(PARTITION, leader=None))
WITHOUT_ID = item("topic", "new", "id")


@pytest.mark.parametrize("is_claimed", [True, False, None])
def test_the_claim_of_a_controller_is_not_deleted(is_claimed):
    """Beside a claim that is deleted brokers elect a controller of their own."""
    control = replace(CONTROL, is_controller_persistent=is_claimed, controller_id=3000, n_notifications=1)
    seen = replace(facts(control, (WITHOUT_ID,)), partitions=STATELESS)
    remedies = [each.remedy for name in ("Z04", "Z05", "Z18") for each in of(name, seen) if each.is_met is False]
    assert len(remedies) == 3
    assert {"delete /controller once" in each for each in remedies} == {is_claimed is False}, remedies


def test_a_copy_that_is_under_way_is_no_attempt_to_finish():
    """``/controller`` is claimed, and the log shows no completed copy, from the claim until the copy is committed."""
    (row,) = of("Z03", facts(replace(CONTROL, is_controller_persistent=True, controller_id=3000)))
    assert "While that KRaft controller runs, do not delete /controller" in row.remedy


def test_a_topic_that_cannot_be_decoded_is_not_deleted():
    (row,) = of("Z04", facts(rows=(item("topic", "x", error="/brokers/topics/x: the field partitions is empty"),)))
    assert row.is_met is False
    assert "Do not delete the znode" in row.remedy


def test_settings_of_topics_are_no_orphans_where_the_topics_cannot_be_listed():
    hidden = replace(item("topic", "", error="/brokers/topics can't be listed"), is_refused=True)
    orphan = item("config", "topics/gone", "retention.ms", "1")
    (seen,), unseen = of("Z11", facts(rows=(orphan,))), of("Z11", facts(rows=(orphan, hidden)))
    assert (seen.is_met, "delete the znode" in seen.remedy) == (False, True)
    assert [(each.is_met, each.remedy) for each in unseen] == [(None, "")]


@pytest.mark.parametrize("kind", ["acl", "scram", "quota", "config", "token"])
def test_controllers_with_any_content_are_not_wiped(kind):
    begun = facts(zk_state="NONE")
    rows = {content: of("L02", replace(begun, kraft_items=items(*content))) for content in ((), (item(kind, "x"),))}
    assert ["format them" in row.remedy for (row,) in rows.values()] == [True, False]


@pytest.mark.parametrize(("is_migrating", "is_wiped"), [(True, True), (False, False)])
def test_controllers_with_a_broker_that_is_registered_in_kraft_mode_are_not_wiped(is_migrating, is_wiped):
    """The broker is not among those that were asked: brokers in ZooKeeper mode do not name it."""
    registered = replace(registration(), node_id=7, is_migrating=is_migrating)
    (row,) = of("L02", facts(zk_state="NONE", registrations=(registered,)))
    assert ("format them" in row.remedy) is is_wiped


def test_no_controller_is_formatted_for_a_version_or_an_id():
    """Its disk may be another cluster's, or hold the only copy of this cluster's metadata."""
    odd = replace(SOUND, metas=(*METAS[:2], NodeMeta("3000", 3000, 1, "xyz")))
    old = facts(nodes=(*NODES[:2], node("controller", 3000, metadata_version=20)))
    remedies = [each.remedy for each in (*of("Z13", odd), *of("A01", old)) if each.is_met is False]
    assert len(remedies) == 2
    assert not any("Format" in each for each in remedies)
    assert "Do not format this disk" in remedies[0]


@pytest.mark.parametrize(
    ("zk_state", "advice"),
    [
        ("PRE_MIGRATION", "Set the migration flag on these controllers"),
        ("POST_MIGRATION", "remove the flag from the other controllers"),
        (None, "Restart no controller before the phase is known"),
        ("NONE", "Restart no controller before the phase is known"),
    ],
)
def test_the_flag_is_taken_from_no_controller_before_the_move_is_final(zk_state, advice):
    controllers = (node("controller", 3000), node("controller", 3001, has_flag=False, is_leader=False, voters=()))
    found = findings(replace(SOUND.facts, nodes=(*NODES[:2], *controllers), zk_state=zk_state))
    (row,) = (each for each in found if each.check_id == "L01")
    assert advice in row.remedy


@pytest.mark.parametrize(("mode", "keeps"), [(CONTROLLER, True), (KRAFT, False)])
def test_the_flag_is_not_removed_from_a_controller_that_lacks_zookeeper(mode, keeps):
    """Without the flag a controller that is elected ends the migration for good."""
    role = "controller" if mode == CONTROLLER else "broker"
    flag = {"zookeeper.metadata.migration.enable": "true", "zookeeper.connect": None}
    given = settings(3000, role, process__roles=role, node__id="3000", broker__id=None, **flag).given
    rows = lint([NodeSettings(3000, role, "file", dict(given), {}, {})])
    remedies = [each.remedy for each in rows if "without zookeeper.connect" in each.sentence]
    assert [("Do not remove the migration flag" in each) for each in remedies] == [keeps]


UNSEEN = (
    ("R04", facts(registrations=(replace(registration(), node_id=7, is_migrating=False),))),
    ("L01", facts(nodes=(*NODES[:2], node("controller", 3000, is_leader=False, voters=())))),
    ("P01", facts(log_read_at=None, zk_state=None, log_error="not authorized")),
    (
        "R03",
        replace(
            facts(nodes=(node("broker", 1, mode=None, error="no answer"), *NODES[1:])),
            settings=(replace(SETTINGS[0], source="DescribeConfigs of broker 1"), *SETTINGS[1:]),
        ),
    ),
)
"""A broker that was not asked; voters that nobody reported; a log that was not read; a broker that did not answer."""


@pytest.mark.parametrize(("check_id", "seen"), UNSEEN, ids=lambda each: each if isinstance(each, str) else "")
def test_a_check_is_not_met_because_it_could_not_see(check_id, seen):
    assert None in [each.is_met for each in of(check_id, seen)]
    assert True not in [each.is_met for each in of(check_id, seen)]


def test_controllers_that_refuse_the_connection_have_no_log_to_read():
    stopped = node("controller", None, error="nobody listens", is_listening=False, is_leader=None, voters=())
    control = replace(CONTROL, has_migration=False)
    seen = facts(control, nodes=(*NODES[:2], stopped), log_read_at=None, zk_state=None)
    assert [each.is_met for each in of("P01", seen)] == [True]
