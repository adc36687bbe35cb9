"""Approvals and rules: whoever may not act is reported why."""

from __future__ import annotations

import json
import os
import pwd
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Barrier

import pytest

from kit.engine.model.approval import load_approval, refuse_unless_valid, save_approval
from kit.engine.runs_folder import add_approval, load_approvals
from kit.errors import ApprovalError, InputError, UnsafePlan
from kit.operations.operations import operator
from kit.profile import ApprovalSettings
from kit.tables.conditions import NEVER, WARN, Rule, raise_if_unsafe, warnings
from kit.text.visible import visible
from tests.models.engine import START, approve_plan, make_plan

PLAN = make_plan()
HOUR = timedelta(hours=1)
SECOND = ApprovalSettings(require_second_person=True)
STABLE = Rule("stable", "The group has been stable for ten minutes.")
SHARE = Rule("canary-share", "The canary gets no more than a third.")
TOGETHER = Rule("one-cluster", "All groups are of one cluster.", overridden_by=NEVER)
LAG = Rule("lag", "Lag does not grow.", WARN)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"typed_subject": "shop.order"}, "for 'shop.orders', not for 'shop.order'"),
        ({"typed_subject": "SHOP.ORDERS"}, "not for 'SHOP.ORDERS'"),
        ({"typed_digest_prefix": PLAN.digest[:7]}, "at least 8 characters"),
        ({"typed_digest_prefix": ""}, "at least 8 characters"),
        ({"typed_digest_prefix": "0123456789"}, "does not begin with '0123456789'"),
        ({"typed_digest_prefix": PLAN.digest + "0"}, "does not begin with"),
        ({"approver": " "}, "who approves"),
        ({"valid_for": timedelta(0)}, "valid for more than 0 hours"),
        ({"approver": " aNN ", "rules": SECOND, "approved_as": "bob"}, "another person"),
        ({"rules": SECOND}, "under one login"),
        ({"valid_for": 25 * HOUR}, "longer than the 24 hours that the profile allows"),
        ({"now": START - HOUR}, "clock trouble: the plan is dated"),
    ],
)
def test_an_approval_that_is_refused(changed, said):
    with pytest.raises(ApprovalError, match=said):
        approve_plan(PLAN, **changed)


def test_the_allowed_texts_are_accepted():
    assert approve_plan(PLAN, typed_digest_prefix=f" {PLAN.digest.upper()} ", typed_subject=" shop.orders ")
    assert approve_plan(PLAN, approver="Ann").approved_by == "Ann"
    assert approve_plan(PLAN, rules=SECOND, approved_as="bob").expires_at == START + HOUR
    many = make_plan(targets=("a", "b"))
    assert approve_plan(many, typed_subject="2 groups").digest == many.digest
    with pytest.raises(InputError, match="without a time zone"):
        approve_plan(PLAN, now=datetime(2026, 1, 1))


@pytest.mark.parametrize(
    ("approval", "now", "said"),
    [
        (None, START, "was not approved"),
        (approve_plan(make_plan((1,))), START, "is of plan"),
        (approve_plan(PLAN), START + HOUR, "expired at"),
        (approve_plan(PLAN, now=START + HOUR), START, "clock trouble: the approval is dated"),
    ],
)
def test_an_approval_that_does_not_hold(approval, now, said):
    with pytest.raises(ApprovalError, match=said):
        refuse_unless_valid(approval, PLAN, now)


def test_a_small_skew_of_clocks_is_none_and_the_planner_is_refused_when_acting_too():
    refuse_unless_valid(approve_plan(PLAN, now=START + timedelta(minutes=1)), PLAN, START)
    with pytest.raises(ApprovalError, match="another person"):
        refuse_unless_valid(approve_plan(PLAN, approver="ANN"), PLAN, START, rules=SECOND)


def test_the_login_is_the_operating_systems(monkeypatch):
    """$LOGNAME is anybody's to set."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    login = pwd.getpwuid(os.getuid()).pw_name
    assert (operator(), approve_plan(PLAN).approved_as, make_plan().made_as) == (login, login, login)
    with pytest.raises(ApprovalError, match="under one login"):
        approve_plan(PLAN, rules=SECOND)


def test_without_a_recorded_login_there_is_no_second_person():
    old = replace(approve_plan(PLAN), approved_as=None)
    refuse_unless_valid(old, PLAN, START)
    with pytest.raises(ApprovalError, match="the login of its author was not recorded"):
        refuse_unless_valid(old, PLAN, START, rules=SECOND)


def test_a_clock_set_back_revives_no_approval():
    approval = approve_plan(PLAN)
    refuse_unless_valid(approval, PLAN, START, latest=START + HOUR / 2)
    with pytest.raises(ApprovalError, match="check whether it was set back"):
        refuse_unless_valid(approval, PLAN, START, latest=START + HOUR)


def test_an_approval_file(tmp_path):
    path = tmp_path / "approval.json"
    approval = approve_plan(PLAN)
    save_approval(approval, path)
    assert load_approval(path) == approval
    data = json.loads(path.read_text())
    for name in data:
        path.write_text(json.dumps({**data, name: "2099-01-01T00:00:00+00:00"}))
        with pytest.raises(ApprovalError, match="was edited"):
            load_approval(path)
    for text in ("", "[]", "{}"):
        path.write_text(text)
        with pytest.raises(ApprovalError, match="not an approval"):
            load_approval(path)
    with pytest.raises(ApprovalError, match="can't be read"):
        load_approval(tmp_path / "none.json")


def test_approvals_of_one_plan_that_are_given_at_once_are_all_kept(tmp_path):
    file, together = tmp_path / "plan.json", Barrier(8)
    given = [approve_plan(PLAN, approver=f"person {number}") for number in range(8)]

    def give(approval):
        together.wait(10)
        add_approval(file, approval)

    with ThreadPoolExecutor(8) as people:
        list(people.map(give, given))
    assert {each.approved_by for each in load_approvals(file)} == {each.approved_by for each in given}
    assert len(list(tmp_path.iterdir())) == 8


def test_all_rules_that_block_are_reported_at_once():
    findings = [STABLE.found(False, "It changed 2 s ago."), SHARE.found(None, "Nobody knows."), LAG.found(False, "x")]
    with pytest.raises(UnsafePlan) as raised:
        raise_if_unsafe(findings)
    assert str(raised.value) == "stable: It changed 2 s ago.; canary-share (unknown): Nobody knows."


def test_a_rule_is_overridden_by_its_name_and_that_is_kept():
    findings = [
        STABLE.found(False, "It changed 2 s ago."),
        SHARE.found(True, "A fifth."),
        LAG.found(False, "Up."),
    ]
    assert raise_if_unsafe(findings, ["stable", "canary-share"]) == {"stable": "It changed 2 s ago."}
    assert warnings(findings) == ("lag: Up.",)
    assert make_plan(overridden=raise_if_unsafe(findings, ["stable"])).digest != PLAN.digest


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["stabel"], "no rule 'stabel' to override; there are stable"),
        (["stable", "lag"], "'lag' only warns"),
        (["stable", "one-cluster"], "'one-cluster' can't be overridden"),
        (["one-cluster"], "stable: It changed"),
    ],
)
def test_an_override_that_is_refused(overrides, said):
    findings = [STABLE.found(False, "It changed."), TOGETHER.found(False, "There are two."), LAG.found(False, "Up.")]
    with pytest.raises(UnsafePlan, match=said):
        raise_if_unsafe(findings, overrides)


def test_a_rule_needs_a_known_level():
    with pytest.raises(InputError):
        Rule("x", "y", "shouts")


def test_a_name_that_cannot_be_typed_is_approved_as_it_is_shown():
    """Control characters can't be typed; what the plan's page shows of them can."""
    plan = make_plan(targets=("a\x1b[2J\u202eb",))
    shown = visible(plan.subject)
    assert shown != plan.subject
    assert approve_plan(plan, typed_subject=shown).digest == plan.digest
    with pytest.raises(ApprovalError, match="this plan is for"):
        approve_plan(plan, typed_subject="ab")
