"""The overrides of gates: which person, what that asks of the approval, and that gates are asked again before the
first order.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kit.engine.model.clock import Clock
from kit.engine.model.plan import Plan
from kit.errors import ApprovalError, EvidenceError, InputError, PlanError, UnsafePlan
from kit.kraft import rehearsal
from kit.kraft.analyze.phase import state
from kit.kraft.move import conditions, gates
from kit.kraft.move.cluster_state import MoveReads
from kit.kraft.move.gates import Gate, GroupsGate
from kit.kraft.move.overrides import OLD_CONSUMERS, REHEARSED, SOAK
from kit.kraft.move.performer import gates_refusal
from kit.kraft.move.plan import KraftPlanRequest, plan_kraft
from kit.kraft.move.recipes import parameters_of
from kit.kraft.move.rehearsals import OLDEST, RehearsalResult, keep, newest, sha256_of
from kit.kraft.status import KraftStatus
from kit.kraft.verbs.kraft import app
from kit.kraft.watch import KraftHistory, KraftObservation
from kit.operations.kinds import refuse_altered
from kit.profile import KraftSettings
from kit.tables.conditions import NEVER, OPERATOR, SECOND_PERSON, Rule, raise_if_unsafe, unmet
from kit.tables.preflight import RehearsalFinding
from tests.kraft_records import diff, difference
from tests.unit.kraft.move.move_plans import (
    DEPLOYER,
    PROFILE,
    WELL,
    approved,
    broker_client,
    cluster_with,
    in_phase,
    look_at,
    members,
    plan_to,
)
from tests.unit.saved_cluster import saved_cluster

NOW = datetime(2026, 11, 25, 9, tzinfo=UTC)
RESULT = RehearsalResult("abc", "production", "5a" * 32, NOW - timedelta(days=1), NOW, "ann", 3, {})


@pytest.fixture
def site(monkeypatch, tmp_path):
    """A cluster in dual write, of which the tables of gates say nothing but what a test lets them ask."""
    monkeypatch.setattr(gates, "GATES", {"kraft": (GroupsGate(OLD_CONSUMERS, conditions.old_members),)})
    return Site(tmp_path)


class Site:
    def __init__(self, runs: Path) -> None:
        self.runs, self.kraft = runs, KraftSettings(controllers="3000@host:9093")
        self.now, self.live = in_phase("dual write"), dict[str, list[str]]()

    @property
    def reads(self) -> MoveReads:
        return replace(WELL, facts=lambda cluster, brokers: self.now.facts)

    @property
    def cluster(self):
        connections = {"broker_client": broker_client(self.now.brokers), "zookeeper": members(**self.live)}
        return cluster_with(profile=replace(PROFILE, kraft=self.kraft), **connections)

    def plan(self, to_phase: str, *overrides: str) -> Plan:
        request = KraftPlanRequest(to_phase)
        return plan_kraft(self.cluster, DEPLOYER, request, "Ann", self.runs, overrides, self.reads)

    def refusal(self, plan: Plan) -> str | None:
        return gates_refusal(self.cluster, plan, self.runs, self.reads, Clock())


def test_a_rule_names_the_person_who_overrides_it():
    assert [Rule("x", "y", overridden_by=who).can_be_overridden for who in (OPERATOR, SECOND_PERSON, NEVER)] == [
        True,
        True,
        False,
    ]
    with pytest.raises(InputError, match="overridden_by can't be 'the cat'"):
        Rule("x", "y", overridden_by="the cat")
    never = Rule("x", "y", overridden_by=NEVER).found(False, "so it is")
    assert unmet([never], ["x"]) == ["x: so it is"]


def test_old_consumers_are_left_behind_group_by_group_and_a_second_person_answers_for_them(site):
    site.live = {"orders": ["a"], "shop": ["b", "c"]}
    with pytest.raises(UnsafePlan, match=r"2 groups have live members .*--override old_consumers:GROUP"):
        site.plan("kraft")
    with pytest.raises(UnsafePlan, match=r"the rule 'old_consumers' can't be overridden.*orders \(1\), shop \(2\)"):
        site.plan("kraft", "old_consumers")
    with pytest.raises(UnsafePlan, match=r"old_consumers: 1 group has live members under /consumers: orders \(1\)"):
        site.plan("kraft", "old_consumers:shop")
    plan = site.plan("kraft", "old_consumers:shop", "old_consumers:orders")
    assert plan.overridden["old_consumers:shop"] == (
        "group shop is left behind: its 2 live members will consume nothing"
    )
    assert plan.consent is not None
    assert (plan.consent.second_person, plan.consent.longest_hours) == (True, 1)
    assert "no group under /consumers except orders and shop has a live member" in plan.steps[0].precondition
    refuse_altered(plan)
    with pytest.raises(ApprovalError, match="Ann made this plan: another person has to approve it"):
        approved(plan, approver="Ann", login="ann")


def test_without_such_an_override_the_profile_decides_who_approves(site):
    consent = site.plan("kraft").consent
    assert consent is not None
    assert (consent.second_person, consent.longest_hours) == (False, None)


@pytest.mark.parametrize("overridden", [{}, {"old_consumers:shop": "it lives"}])
def test_groups_that_no_one_answered_for_are_not_left_behind(overridden):
    plan = plan_to("kraft", overridden=overridden)
    words = replace(parameters_of(plan.steps[0]), left_behind=("orders",))
    forged = plan_to("kraft", overridden=overridden, steps=(replace(plan.steps[0], parameters=words.to_json()),))
    with pytest.raises(PlanError, match=r"altered or forged|leaves other groups behind"):
        refuse_altered(forged)


@pytest.mark.parametrize("name", ["rehearsed", "soak", "old_consumers:shop"])
def test_a_plan_that_hides_what_its_overrides_ask_of_the_approval_is_forged(name):
    with pytest.raises(PlanError, match=r"altered or forged|leaves other groups behind"):
        refuse_altered(plan_to("kraft", overridden={name: "it is not so"}))


def test_a_group_that_came_alive_after_the_plan_is_refused_before_the_first_order(site):
    site.live = {"shop": ["b"]}
    plan = site.plan("kraft", "old_consumers:shop")
    assert site.refusal(plan) is None
    site.live = {"orders": ["a"], "shop": ["b"]}
    refusal = site.refusal(plan)
    assert refusal.startswith("the conditions of the plan no longer hold: old_consumers: 1 group has live members")
    assert "orders (1)" in refusal


def test_a_soak_that_broke_after_the_plan_is_refused_before_the_first_order(site, monkeypatch):
    """Nobody but this gate asks the history; the steps examine the cluster."""
    site.now = in_phase("kraft")
    monkeypatch.setattr(gates, "GATES", {"finalised": (Gate(SOAK, conditions.soaked),)})
    site.kraft = replace(site.kraft, history_dir=site.runs, soak_hours=0.01)
    watch(site, (120, 8, "equal"), (60, 9, "equal"), (1, 9, "equal"))
    plan = site.plan("finalised")
    assert site.refusal(plan) is None
    watch(site, (0, 9, "diverged"))
    assert "soak: KRaft mode was not watched: values diverged" in site.refusal(plan)
    overridden = site.plan("finalised", "soak")
    assert site.refusal(overridden) is None


def watch(site, *looks: tuple[int, int, str]) -> None:
    """Seconds ago, KRaft's epoch, the verdict of the only value."""
    for seconds, epoch, verdict in looks:
        facts = replace(site.now.facts, cluster_id="abc", at=datetime.now(UTC) - timedelta(seconds=seconds))
        status = KraftStatus("production", replace(state(facts), kraft_epoch=epoch), (), facts)
        KraftHistory(site.runs).append(KraftObservation(status, diff(difference("topic", verdict))))


def test_a_broker_that_joined_after_the_plan_is_refused_before_the_first_order(site):
    plan = site.plan("kraft")
    site.now = replace(site.now, brokers={**site.now.brokers, 7: "new:9092"})
    assert "broker 7 has joined since" in site.refusal(plan)


# Rehearsals


def test_a_move_begins_only_after_a_rehearsal_of_this_cluster_that_went_well(tmp_path):
    now = datetime.now(UTC)
    look = replace(look_at(in_phase("zookeeper")), runs=tmp_path)
    gate = Gate(REHEARSED, conditions.rehearsed)

    def told() -> str | None:
        (found,) = gate.found(look)
        return None if found.is_met else found.sentence

    assert "holds no rehearsal of this cluster" in told()
    fresh = replace(RESULT, saved_at=now, rehearsed_at=now)
    keep(tmp_path, replace(fresh, cluster_id="other"))
    assert "holds no rehearsal of this cluster" in told()
    keep(tmp_path, replace(fresh, saved_at=now - OLDEST - timedelta(hours=1), save_sha256="01" * 32))
    assert "is older than 30 days" in told()
    keep(tmp_path, replace(fresh, saved_at=now - timedelta(hours=2), found={"aborts": 2, "unknown": 1}))
    assert "failed: 2 aborts, 1 unknown. Repair the causes, save the cluster again, and repeat the rehearsal" in told()
    keep(tmp_path, replace(fresh, save_sha256="77" * 32))
    assert told() is None


@pytest.mark.parametrize("ahead", [("saved_at",), ("rehearsed_at",), ("saved_at", "rehearsed_at")])
def test_a_rehearsal_by_a_clock_that_was_ahead_never_vouches_not_even_when_its_time_has_come(tmp_path, ahead):
    now = datetime.now(UTC)
    look = replace(look_at(in_phase("zookeeper")), runs=tmp_path)
    sound = replace(RESULT, saved_at=now, rehearsed_at=now)
    keep(tmp_path, replace(sound, **dict.fromkeys(ahead, now + timedelta(days=2))))
    assert "clock trouble: the save of 20" in conditions.rehearsed(look)
    later = replace(look, clock=Clock(now=lambda: now + timedelta(days=2, hours=1)))
    assert "holds no rehearsal of this cluster" in conditions.rehearsed(later)
    keep(tmp_path, replace(sound, save_sha256="66" * 32, saved_at=now - timedelta(hours=1)))
    assert conditions.rehearsed(look) is None


@pytest.mark.parametrize("name", [None, "copied.json"])
def test_an_older_rehearsal_does_not_vouch_for_what_one_that_is_ahead_has_found(tmp_path, name):
    """Also where its file was copied from another machine under another name."""
    now = datetime.now(UTC)
    look = replace(look_at(in_phase("zookeeper")), runs=tmp_path)
    well = replace(RESULT, saved_at=now - timedelta(days=3), rehearsed_at=now - timedelta(days=3))
    keep(tmp_path, well)
    other = keep(tmp_path, replace(well, cluster_id="other"))
    ahead = replace(RESULT, save_sha256="55" * 32, saved_at=now, rehearsed_at=now + timedelta(hours=1))
    path = keep(tmp_path, replace(ahead, found={"aborts": 1}))
    if name is not None:
        path.rename(path.with_name(name))
    assert "failed: 1 aborts" in conditions.rehearsed(look)
    assert "holds no rehearsal of this cluster" in conditions.rehearsed(look)
    assert other.exists()


def test_a_save_that_is_later_than_its_rehearsal_never_vouches(tmp_path):
    """Nobody asked before its time had come; the rehearsal shows that a clock was wrong."""
    now = datetime.now(UTC)
    ahead = replace(RESULT, saved_at=now, rehearsed_at=now - timedelta(hours=2))
    assert "is dated later than its rehearsal" in ahead.problem(now + timedelta(days=1))
    assert replace(ahead, rehearsed_at=now - timedelta(minutes=1)).problem(now + timedelta(days=1)) is None


def test_a_result_that_was_edited_is_refused(tmp_path):
    path = keep(tmp_path, replace(RESULT, found={"aborts": 1}))
    path.write_text(path.read_text().replace('"aborts": 1', '"aborts": 0'))
    with pytest.raises(EvidenceError, match="is no result of a rehearsal: the file was edited"):
        newest(tmp_path, "abc")
    path.write_text("{")
    with pytest.raises(EvidenceError, match="is no result of a rehearsal"):
        newest(tmp_path, "abc")


@pytest.mark.parametrize(("kinds", "exit_code"), [((), 0), (("aborts", "waits", "aborts"), 15)])
def test_the_verb_keeps_how_a_rehearsal_ended(tmp_path, monkeypatch, kinds, exit_code):
    file, runs = tmp_path / "production.save", tmp_path / "runs"
    saved_cluster().write(file)
    rows = [RehearsalFinding(kind, None, None, "so it was.") for kind in kinds]
    monkeypatch.setattr(rehearsal, "rehearse", lambda of, *given: rehearsal.Rehearsal(of, rows, [], None, {}))
    ended = CliRunner().invoke(app, ["rehearse", str(file), "--runs", str(runs)])
    assert ended.exit_code == exit_code, ended.output
    kept = newest(runs, "cid")
    assert kept is not None
    assert (kept.save_sha256, kept.saved_at, kept.found) == (
        sha256_of(file),
        saved_cluster().taken_at,
        {"aborts": 2, "waits": 1} if kinds else {},
    )
    assert str(runs / "rehearsals") in ended.stderr


def test_overriding_the_rehearsal_makes_a_second_person_approve():
    found = [REHEARSED.found(False, "none is kept")]
    assert raise_if_unsafe(found, ["rehearsed"]) == {"rehearsed": "none is kept"}
    assert [each.rule for each in gates.GATES["controllers"]][-1] is REHEARSED
