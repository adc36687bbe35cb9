"""Every partition with a leader and its full ISR: what brokers report, and what a login does not see."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.errors import ReadError
from kit.kraft.move.cluster_state import READS, MoveReads
from kit.kraft.move.rights import hidden_problem
from kit.kraft.move.sync import led_problem, sync_problem
from kit.kraft.read.control_znodes import fetch_control
from tests.kraft_records import SOUND, WAITING, control, plain
from tests.unit.kraft.move.move_plans import CLUSTER, WELL, cluster_with, metadata, partition
from tests.unit.zookeeper_in_memory import ZookeeperInMemory

TOPIC = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAg","partitions":{"0":[1,2],"1":[2,3]}}'
PLACES = {1: "a:9092", 2: "b:9092", 3: "c:9092"}


@pytest.mark.parametrize(
    ("isr", "leader", "replicas", "told"),
    [
        ((1, 3), 1, (1, 2, 3), None),
        ((1, 2, 3), 1, (1, 2, 3), None),
        ((2,), None, (2,), None),
        ((2,), None, (1, 2), None),
        ((1,), 1, (1, 2, 3), "these partitions have no leader or no full ISR: orders-0"),
        ((1, 3), None, (1, 2, 3), "these partitions have no leader or no full ISR: orders-0"),
        ((1,), None, (1, 3), "these partitions have no leader or no full ISR: orders-0"),
    ],
)
def test_nothing_but_the_broker_that_is_down_may_be_missing(isr, leader, replicas, told):
    asked, answer = [], metadata({1: "a:9092", 3: "c:9092"}, partition(isr, leader, replicas))
    reads = replace(WELL, metadata=lambda cluster, address: asked.append(address) or answer)
    problem = sync_problem(CLUSTER, SOUND, PLACES, 2, reads)
    assert problem == (told and f"broker 1 reports: {told}")
    assert PLACES[2] not in asked
    assert "broker 2 is missing in the metadata" in sync_problem(CLUSTER, SOUND, PLACES, reads=reads)


def test_brokers_that_changed_places_are_named():
    def problem(places: dict[int, str]) -> str | None:
        answer = metadata(places, partition((1, 2, 3)))
        return sync_problem(CLUSTER, SOUND, PLACES, reads=replace(WELL, metadata=lambda cluster, address: answer))

    swapped = problem({1: "b:9092", 2: "a:9092", 3: "c:9092"})
    assert (
        "broker 1 answers at b:9092, but in the plan broker 2 has this address; broker 2 answers at a:9092, but in "
        "the plan" in swapped
    )
    assert problem({**PLACES, 1: "another-name:9092"}) is None


def test_a_leader_is_asked_for_only_where_a_broker_of_the_isr_is_there():
    there, rows = {1: "a:9092"}, [partition([3], leader=None)]
    reads = replace(WELL, metadata=lambda cluster, address: metadata(there, *rows))
    assert led_problem(CLUSTER, SOUND, there, reads) is None
    rows.append(partition([1, 3], leader=None, number=1))
    assert led_problem(CLUSTER, SOUND, there, reads) == "broker 1 reports: orders-1 has no leader (1 partition in all)"


def listing(*lists: tuple[tuple[str, int], ...]) -> MoveReads:
    """The store lists these partitions, one list after the other. Brokers report ``orders-0`` alone."""
    left = list(lists)
    return replace(WELL, replicas=lambda cluster, facts: dict.fromkeys(left.pop(0), (1,)))


ORDERS, NEW, HIDDEN = ("orders", 0), ("new", 0), ("secret", 7)
NOT_SEEN = "broker 1 does not report secret-7, .*Offramp's login needs the right DESCRIBE on topic secret"


@pytest.mark.parametrize("problem", [sync_problem, led_problem])
def test_a_partition_that_the_answer_lacks_is_a_problem_that_names_the_right(problem):
    def found(*lists):
        return problem(CLUSTER, SOUND, {1: "host:9092"}, reads=listing(*lists))

    assert found((ORDERS,)) is None
    assert found((ORDERS, NEW), (ORDERS,)) is None, "deleted meanwhile"
    with pytest.raises(AssertionError, match=NOT_SEEN):
        raise AssertionError(found((ORDERS, HIDDEN, NEW), (ORDERS, HIDDEN)))


def test_a_partition_that_the_broker_did_not_know_yet_is_asked_for_again():
    answers = [metadata({1: "host:9092"}, partition()), metadata({1: "host:9092"}, partition(), partition(number=1))]
    reads = replace(listing(*[(ORDERS, ("orders", 1))] * 2), metadata=lambda cluster, address: answers.pop(0))
    assert sync_problem(CLUSTER, SOUND, {1: "host:9092"}, reads=reads) is None
    assert answers == []


def test_a_store_that_cannot_be_read_is_a_problem():
    def refuse(cluster, facts):
        raise ReadError("the partitions are not all known: refused")

    found = sync_problem(CLUSTER, SOUND, {1: "host:9092"}, reads=replace(WELL, replicas=refuse))
    assert found == "the partitions are not all known: refused"


@pytest.mark.parametrize(
    "facts", [WAITING, replace(WAITING, zk_state=None), replace(WAITING, control=control(checkpoint=None))]
)
def test_before_the_copy_is_completed_zookeeper_knows_all_partitions(facts):
    """The partitions of topics that wait for their deletion are no longer reported."""
    held = {"/brokers/topics/orders": TOPIC, "/brokers/topics/old": TOPIC, "/admin/delete_topics/old": b""}
    cluster = cluster_with(zookeeper=ZookeeperInMemory(held))
    assert READS.replicas(cluster, facts) == {("orders", 0): (1, 2), ("orders", 1): (2, 3)}


@pytest.mark.parametrize(
    ("path", "hidden"),
    [("/brokers/topics", "is_closed"), ("/brokers/topics/orders", "is_hidden"), ("/admin/delete_topics", "is_closed")],
)
def test_znodes_that_are_hidden_leave_the_partitions_unknown(path, hidden):
    zookeeper = ZookeeperInMemory({"/brokers/topics/orders": TOPIC, "/admin/delete_topics/old": b""})
    setattr(zookeeper.root.at(path), hidden, True)
    with pytest.raises(ReadError, match=rf"not all known: {path}.*the right READ"):
        READS.replicas(cluster_with(zookeeper=zookeeper), replace(WAITING, control=plain()))


def test_after_the_copy_the_log_alone_knows_all_partitions():
    """ZooKeeper may lack what a failed dual write did not bring."""
    silent = replace(SOUND, zk_state=None, log_error="no controller answers")
    with pytest.raises(ReadError, match="the metadata log can't be read: no controller answers"):
        READS.replicas(cluster_with(zookeeper=ZookeeperInMemory({"/brokers/topics/orders": TOPIC})), silent)


IMITATED = b"x can't be read: NoAuthError (the login needs the right READ there)"


def test_names_and_content_that_imitate_a_refusal_hide_nothing():
    held = dict.fromkeys(("/brokers/topics/NoAuthError", "/migration", "/kafka-acl/Topic/NoAuth"), IMITATED)
    zookeeper = ZookeeperInMemory(held)
    assert hidden_problem(cluster_with(zookeeper=zookeeper)) is None
    seen = fetch_control(zookeeper)
    assert (seen.refused("/migration"), seen.undecodable("/migration") is None) == (None, False)
    zookeeper.root.at("/kafka-acl/Topic").is_closed = True
    zookeeper.root.at("/migration").is_hidden = True
    assert "offramp's ZooKeeper login may not read: /kafka-acl/Topic can't be listed" in hidden_problem(
        cluster_with(zookeeper=zookeeper)
    )
    assert fetch_control(zookeeper).refused("/migration") is not None
