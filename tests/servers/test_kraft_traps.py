"""Traps of a move to KRaft: what real servers of Kafka 3.9.1 do, and the sentence by which offramp catches each.

The first of them; ``make soak`` goes through all.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kit.errors import PartialRead
from tests.servers.provoked import PREFLIGHT, STATUS, Case, hold
from tests.servers.provoked_cases import TRAPS, cases_of
from tests.servers.trap_story import FIRST, NOBODY, WAITS, Traps, story
from tests.soak import IS_SOAK, report, soak_only

pytestmark = pytest.mark.timeout(600)


def of_the_form(cases: list[Case]) -> list[Case]:
    return [case for case in cases if IS_SOAK or case.moment == FIRST]


@pytest.fixture(scope="module")
def walk() -> Iterator[Traps]:
    with story() as seen:
        yield seen


@pytest.mark.parametrize("case", of_the_form(cases_of(TRAPS, PREFLIGHT)), ids=str)
def test_the_preflight_reports_what_is_wrong_and_what_to_do(walk, case):
    hold(case, walk.preflights[case.moment].rows)


@pytest.mark.parametrize("case", of_the_form(cases_of(TRAPS, STATUS)), ids=str)
def test_the_status_reports_what_is_wrong_and_what_to_do(walk, case):
    hold(case, walk.statuses[case.moment].findings)


def findings(walk: Traps, moment: str) -> list[tuple[str, str]]:
    return [(each.check_id, each.subject) for each in walk.statuses[moment].findings]


def test_a_migration_without_data_keeps_controllers_from_waiting_for_brokers_and_a_plan_repairs_it(walk):
    assert "WAIT_FOR_BROKERS" not in walk.logs["null checkpoint"]
    assert "offramp plan kraft --repair" in walk.refusals["null checkpoint"]
    steps = [each.kind for each in walk.plans["null checkpoint repaired"].steps]
    assert steps == ["stop controllers", "repair ZooKeeper", "wipe controllers"]
    assert walk.statuses["null checkpoint repaired"].state.phase == "zookeeper"
    assert findings(walk, "null checkpoint repaired") == []


@soak_only
def test_controllers_with_another_chroot_wait_there_for_ever_and_no_plan_continues_or_back(walk):
    assert "No brokers are registered in ZK" in walk.logs["another chroot"]
    for to in ("dual write", "zookeeper"):
        assert "another chroot than the brokers" in walk.refusals[f"another chroot, {to}"]


@soak_only
def test_controllers_wait_for_a_broker_that_has_not_moved_and_one_plan_takes_all_back(walk):
    assert f"{WAITS} [2] to register with KRaft" in walk.logs["half rolled"]
    steps = [(each.kind, list(each.parameters["nodes"])) for each in walk.plans["half rolled, back"].steps]
    assert steps == [
        ("stop controllers", [3000]),
        ("hand back", []),
        ("roll brokers", [1]),
        ("wipe controllers", [3000]),
    ]
    after = walk.statuses["half rolled, back"]
    assert (after.state.phase, {each.mode for each in after.read.brokers}) == ("zookeeper", {"zookeeper"})
    assert after.read.control.has_migration is False


@soak_only
def test_a_broker_of_another_version_appears_healthy_and_is_never_registered(walk):
    assert "UNSUPPORTED_VERSION" in walk.logs["another version"]
    status = walk.statuses["another version"]
    assert {each.node_id: (each.mode, each.error) for each in status.read.brokers} == {
        1: ("migration", None),
        2: ("migration", None),
    }
    assert [each.node_id for each in status.read.registered_brokers] == [1]
    refused = walk.refusals["another version"]
    assert "appear healthy, but never register" in refused
    assert "the copy begins as soon as the controllers find what they wait for" in refused


@soak_only
def test_controllers_wait_for_a_broker_id_that_no_one_has_but_not_for_that_of_a_topic_to_be_deleted(walk):
    assert f"{WAITS} [{NOBODY}] found in metadata" in walk.logs["zombie"]
    (named,) = [each for each in walk.preflights["zombie"].rows if each.check_id == "Z01"]
    assert "in the replica lists of 1 partition (zombie-0 is one)" in named.sentence
    assert "Z01 Broker 9" in walk.refusals["zombie"]


@soak_only
def test_a_pending_deletion_ends_with_the_copy_and_files_that_come_back_are_stray_for_the_next_controller(walk):
    assert "doomed" in walk.named["zombie"] - walk.named["copied"]
    assert walk.diffs["copied"].of("diverged", "in_flight", "unknown").is_empty()
    assert "{DeletePendingTopicDeletion=1, DeleteTopic=1}" in walk.logs["copied"]
    assert "doomed-0" in walk.left["brought back"]
    assert "doomed-0-stray" in walk.left["after the next controller"]


@soak_only
def test_a_topic_that_was_deleted_manually_is_diverged_and_stops_dual_write_at_the_next_election_until_one_more(walk):
    rows = walk.diffs["deleted manually"].of("diverged").select("kind", "entity", "item").rows()
    assert rows == [("partition", "orders", "0"), ("partition", "orders", "1"), ("topic", "orders", "id")]
    assert "ZooKeeper and KRaft hold different values" in walk.refusals["deleted manually"]
    assert "to DUAL_WRITE" not in walk.logs["made again"]
    assert walk.diffs["healed"].of("diverged", "in_flight", "unknown").is_empty()


@soak_only
def test_changes_while_zookeeper_is_down_arrive_when_it_is_back(walk, record_property):
    down = walk.printed["down"]
    assert down.exit_code == PartialRead.exit_code
    assert "ZooKeeper" in down.output
    assert walk.diffs["back"].of("diverged", "in_flight", "unknown").is_empty()
    report(record_property, f"all changes in ZooKeeper {walk.noted['arrived_s']:.1f} s after its return")


@soak_only
def test_a_broker_that_was_stopped_too_early_hangs_and_one_started_too_early_ends(walk):
    assert walk.noted["was_hung"]
    assert "NodeExists" in walk.logs["started too early"]
    assert walk.noted["exit_code"] == 1
    refused = walk.refusals["started too early"]
    assert "broker 2 does not answer: start it after its znode in /brokers/ids has disappeared" in refused
