"""Checks of a move between protocols whose facts no lab of ours can give: releases, refusals, partial answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kit.errors import InputError, PartialRead, UnsafePlan
from kit.protocol.brokers import ASSIGNORS, POLICY, PROTOCOLS, RETENTION, SETTINGS, BrokerFacts, ClusterFacts
from kit.protocol.checks import CHECKS, check_group
from kit.protocol.commit_times import CommitTimes
from kit.protocol.facts import Answers, ProtocolFacts, Request
from kit.protocol.read import GroupProtocol, ProtocolMember
from kit.protocol.verdicts import verdict, verify_facts, verify_move

READY = Request(answers=Answers(True, True, ()))
BACK = Request(to="classic")
SERVER_TESTS = Path(__file__).parents[2] / "servers"
NOW, MINUTE = 1_800_000_000_000, 60_000
VALUES = {
    **dict.fromkeys(SETTINGS, "1000"),
    PROTOCOLS: "classic,consumer",
    POLICY: "bidirectional",
    ASSIGNORS: "uniform,range",
    RETENTION: "10",
}
BROKER = BrokerFacts(1, 1, 33, VALUES)
MEMBER = ProtocolMember("m", "c", "host", None, "classic", None, ("t",), None, (("t", 0),), (("t", 0),), 0)
GROUP = GroupProtocol("g", "classic", "consumer", "Stable", "range", 1, members=(MEMBER,))
TIMES = CommitTimes({"g": {("t", 0): NOW}}, {})


def facts(*brokers: BrokerFacts, group: GroupProtocol = GROUP, **more) -> ProtocolFacts:
    cluster = ClusterFacts(brokers or (BROKER,), 1)
    known = {"commits": TIMES, "hidden": frozenset(), **more}
    return ProtocolFacts(NOW, cluster, {"g": group}, {}, **known)


def answer(given: ProtocolFacts, check_id: str, request: Request = READY) -> list[bool | None]:
    return [each.is_met for each in check_group(given, given.groups["g"], request) if each.check_id == check_id]


def broker(**settings: str) -> BrokerFacts:
    names = {"policy": POLICY, "protocols": PROTOCOLS, "assignors": ASSIGNORS}
    return replace(BROKER, broker_id=2, settings={**VALUES, **{names[name]: each for name, each in settings.items()}})


@pytest.mark.parametrize(
    ("level", "is_met"), [(None, None), (25, None), (27, None), (29, False), (30, True), (33, True), (40, True)]
)
def test_the_release_follows_from_the_newest_metadata_version(level, is_met):
    assert answer(facts(replace(BROKER, level=level)), "k848_release") == [is_met]


def test_an_older_broker_among_newer_ones_blocks():
    assert answer(facts(BROKER, replace(BROKER, broker_id=2, heartbeat=0, level=21)), "k848_brokers") == [False]


def test_a_broker_without_an_answer_makes_its_checks_unknown():
    silent = BrokerFacts(2, error="no answer", unread="no answer")
    given = facts(BROKER, silent)
    for check_id in ("k848_brokers", "k848_protocols", "k848_policy", "k848_size", "old_commits"):
        assert None in answer(given, check_id), check_id
    row = verdict(given, GROUP, READY)
    assert (row.rolling, row.stopped, row.loses_offsets) == ("unknown", "unknown", None)


def test_brokers_that_differ_in_the_policy_block():
    differing = facts(BROKER, broker(policy="Upgrade"))
    assert answer(differing, "k848_policy") == [False]
    assert answer(differing, "k848_way_back") == [False]
    assert answer(facts(BROKER, broker(policy="BIDIRECTIONAL")), "k848_policy") == [True]
    assert False in answer(facts(broker(policy="upgrade")), "k848_policy", BACK)


def test_a_broker_of_5_0_has_no_switch_for_the_protocol_any_more():
    without = replace(BROKER, settings={name: value for name, value in VALUES.items() if name != PROTOCOLS})
    assert answer(facts(without), "k848_protocols") == [True]
    assert answer(facts(broker(protocols="classic")), "k848_protocols") == [False]


def test_assignors_by_class_names_are_known():
    by_class = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    assert broker(assignors=by_class).names(ASSIGNORS) == ("range",)


def test_an_unknown_feature_level_is_not_zero():
    given = facts()
    unknown = replace(given, cluster=replace(given.cluster, group_version=None))
    assert answer(unknown, "k848_feature") == [None]
    assert answer(replace(given, cluster=replace(given.cluster, group_version=0)), "k848_feature") == [False]


def test_a_hidden_topic_of_the_group_is_reported():
    assert answer(facts(hidden=frozenset({"t"})), "k848_rights") == [False]
    assert answer(facts(hidden=frozenset({"other"})), "k848_rights") == [True]


def test_offsets_older_than_the_retention_are_counted():
    for age, count in ((9, 0), (10, 1)):
        given = facts(commits=CommitTimes({"g": {("t", 0): NOW - age * MINUTE, ("t", 1): NOW}}, {}))
        assert verdict(given, GROUP, READY).loses_offsets == count
    for unknown in (None, CommitTimes({}, {}, ("a partition",)), CommitTimes({}, {}, (), {"g": "cut"})):
        given = facts(commits=unknown)
        assert answer(given, "old_commits") == [None]
        assert verdict(given, GROUP, READY).stopped == "unknown"


def test_a_group_that_could_not_be_described_meets_no_check_of_its_own():
    broken = replace(GROUP, members=(), error="refused")
    given = facts(group=broken)
    of_group = [each.rule.check_id for each in CHECKS if not each.of_cluster and "consumer" in each.to]
    assert {answer(given, check_id)[0] for check_id in of_group} == {None}
    row = verdict(given, broken, READY)
    assert (row.stage, row.rolling, row.n_members, row.error) == ("unknown", "unknown", None, "refused")
    with pytest.raises(PartialRead, match="refused"):
        verify_facts(given)


def test_a_group_that_has_the_protocol_is_done_whatever_the_brokers_report():
    member = replace(MEMBER, protocol="consumer", epoch=3, user_data=None)
    done = replace(GROUP, group_type="consumer", epoch=3, assignment_epoch=3, members=(member,))
    row = verdict(facts(broker(protocols="classic"), group=done), done, READY)
    assert (row.stage, row.rolling, row.stopped, row.blocked_by) == ("consumer", "done", "done", ())


def test_the_sizes_of_both_directions_are_two_settings():
    many = replace(GROUP, members=(MEMBER,) * 3)
    small = replace(BROKER, settings={**VALUES, "group.max.size": "2"})
    assert (answer(facts(small, group=many), "k848_size"), answer(facts(small, group=many), "k848_size", BACK)) == (
        [True],
        [False],
    )


def test_the_move_is_refused_by_what_is_not_met_and_by_what_is_unknown():
    given = facts()
    assert verify_move("g", check_group(given, GROUP, READY)).startswith("No check forbids")
    assert "k848_clients" in verify_move("g", check_group(given, GROUP, Request()))
    with pytest.raises(UnsafePlan, match="k848_protocols"):
        verify_move("g", check_group(facts(broker(protocols="classic")), GROUP, READY))
    unknown = replace(given, cluster=replace(given.cluster, group_version=None))
    with pytest.raises(PartialRead, match="k848_feature"):
        verify_move("g", check_group(unknown, GROUP, READY))


def test_answers_are_kept_in_a_plan_and_read_back():
    for answers in (Answers(), Answers(True, False, ("a", "b"), "range")):
        assert Answers.from_json(answers.to_json()) == answers
    with pytest.raises(InputError):
        Answers.from_json({"something": 1})
    with pytest.raises(InputError):
        Request(to="other")
    with pytest.raises(InputError):
        Request(how="quickly")


def test_each_check_is_provoked_on_a_real_broker():
    """The scene is held by those tests; this one finds a check that none of them names."""
    scenes = (SERVER_TESTS / "test_protocol_checks.py").read_text(encoding="utf-8")
    assert [each.rule.check_id for each in CHECKS if f'"{each.rule.check_id}"' not in scenes] == []
