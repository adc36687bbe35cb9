"""In which phase each node stands: made from the facts of a sound migration by changing one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.kraft.analyze.node_places import node_places
from kit.kraft.analyze.phase import Facts
from tests.kraft_records import AT, broker, control, hides, node, plain


def places(facts: Facts) -> dict[tuple[str, int | None], str]:
    return {(each.role, each.node_id): each.stands_at for each in node_places(facts)}


def facts(zk_state: str | None, *nodes, held=None, registrations=()) -> Facts:
    return Facts(AT, held or control(), nodes, registrations, zk_state, log_read_at=AT if zk_state else None)


def test_if_no_zookeeper_is_each_node_is_there():
    born = Facts(AT, None, (node("broker", mode="kraft"), node("controller", has_flag=False)), log_read_at=AT)
    assert set(places(born).values()) == {"no ZooKeeper"}


def test_a_brokers_place_in_zookeeper_is_unknown_where_the_list_is_hidden():
    hidden = control(brokers=(), **hides("/brokers/ids"))
    (row,) = node_places(facts("MIGRATION", node("broker"), held=hidden))
    assert row.in_zookeeper is None


@pytest.mark.parametrize(
    ("zk_state", "held", "mode", "place"),
    [
        (None, plain(), "zookeeper", "zookeeper"),
        ("PRE_MIGRATION", plain(), "zookeeper", "controllers"),
        ("PRE_MIGRATION", plain(), "migration", "dual write"),
        ("MIGRATION", control(), "migration", "dual write"),
        ("MIGRATION", control(), "kraft", "kraft"),
        ("POST_MIGRATION", control(brokers=()), "kraft", "finalised"),
        ("POST_MIGRATION", control(), "migration", "dual write"),
    ],
)
def test_a_broker_is_where_its_mode_belongs(zk_state, held, mode, place):
    assert places(facts(zk_state, node("broker", mode=mode), held=held)) == {("broker", 1): place}


@pytest.mark.parametrize(
    ("zk_state", "flag", "place"),
    [
        ("PRE_MIGRATION", True, "controllers"),
        ("PRE_MIGRATION", False, "zookeeper"),
        ("MIGRATION", True, "dual write"),
        ("MIGRATION", False, "finalised"),
        ("POST_MIGRATION", False, "finalised"),
    ],
)
def test_a_controller_without_the_flag_is_not_ready_or_would_finalise(zk_state, flag, place):
    held = plain() if zk_state == "PRE_MIGRATION" else control()
    assert places(facts(zk_state, node("controller", has_flag=flag), held=held))["controller", 3000] == place


def test_a_node_that_does_not_answer_is_unknown_with_the_reason():
    silent = replace(node("broker"), mode=None, has_flag=None, error="it is down")
    (row,) = node_places(facts("MIGRATION", silent))
    assert (row.stands_at, row.error, row.in_zookeeper) == ("unknown", "it is down", True)


def test_a_controller_that_follows_gets_its_id_by_its_registered_address():
    follower = replace(node("controller"), node_id=None, is_leader=False, address="two:9093")
    known = broker(role="controller", node_id=3001, listeners=("CONTROLLER://two:9093",), is_migration_ready=True)
    (row,) = node_places(facts("MIGRATION", follower, held=control(brokers=()), registrations=[known]))
    assert (row.node_id, row.registered_as) == (3001, "ready to migrate")


def test_nodes_that_no_one_asked_are_rows_too():
    held, known = control(brokers=(1, 7)), broker(role="controller", node_id=3002)
    rows = {(row.role, row.node_id): row for row in node_places(facts("MIGRATION", held=held, registrations=[known]))}
    assert set(rows) == {("broker", 1), ("broker", 7), ("controller", 3002)}
    assert rows["broker", 7].in_zookeeper
    assert rows["controller", 3002].error == "the profile doesn't name it"


def test_without_zookeeper_nothing_is_reported_of_it():
    (row,) = node_places(Facts(AT, None, [node("broker")]))
    assert row.in_zookeeper is None
