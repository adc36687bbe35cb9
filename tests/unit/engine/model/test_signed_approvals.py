"""Approvals of an operator: signed by keys that the profile names, added and never replaced, verified offline."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest
from typer.testing import CliRunner

from kit.cli.main import app
from kit.engine.execution.run import Run
from kit.engine.model.approval import describe_signature, load_approval, refuse_unless_valid, save_approval
from kit.engine.model.clock import Clock
from kit.engine.model.journal import create_run
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import ApprovalError, EvidenceError, ProfileError
from kit.moves.group.plan import GroupPlanRequest
from kit.profile import ApprovalSettings, load_profile
from kit.profile.identity.ssh_signature import sign
from tests.models.engine import START, ModelRun, approve_plan, make_plan
from tests.models.operations import GROUP, ToyGroup, ToyOperations
from tests.unit.cli.opened import find_open
from tests.unit.profile.identity.ssh_keys import key_in

PLAN = make_plan()
HOUR = timedelta(hours=1)


@pytest.fixture
def keys(tmp_path):
    """Private key file and public line of each person."""
    return {name: key_in(tmp_path / "keys" / name) for name in ("bob", "eve")}


@pytest.fixture
def rules(keys):
    return ApprovalSettings(require_signature=True, signers={"Bob": [f"{keys['bob'][1]} bob@laptop"]})


def signed(keys, rules, by="Bob", key="bob", **changed):
    return approve_plan(PLAN, approver=by, rules=rules, sign_with=keys[key][0], **changed)


def test_a_signed_approval_holds_and_reports_by_whom(keys, rules, tmp_path):
    approval = signed(keys, rules)
    save_approval(approval, tmp_path / "approval.json")
    assert load_approval(tmp_path / "approval.json") == approval
    refuse_unless_valid(approval, PLAN, START, rules=rules)
    assert re.match(
        r"signed by Bob with the key SHA256:\S+, which the profile names", describe_signature(approval, rules.signers)
    )
    assert "no profile names" in describe_signature(approval, None)
    assert "does NOT name for Bob" in describe_signature(approval, {"Bob": (keys["eve"][1],)})
    assert describe_signature(approve_plan(PLAN), rules.signers) == "not signed"


def test_an_approval_without_the_required_signature_is_refused(keys, rules):
    with pytest.raises(ApprovalError, match="requires signed approvals"):
        approve_plan(PLAN, rules=rules)
    with pytest.raises(ApprovalError, match=r"does not name the key SHA256:\S+ for Bob; sign with the key SHA256:"):
        signed(keys, rules, key="eve")
    with pytest.raises(ApprovalError, match="names no key of Eve"):
        signed(keys, rules, by="Eve", key="eve")
    with pytest.raises(ApprovalError, match="names no key of Bob"):
        signed(keys, ApprovalSettings())


@pytest.mark.parametrize(
    "altered",
    [
        {"approved_by": "BOB"},
        {"approved_as": "an unknown person"},
        {"expires_at": START + 2 * HOUR},
        {"approved_at": START - HOUR},
    ],
)
def test_no_word_of_a_signed_approval_can_be_altered(keys, rules, altered):
    approval = replace(signed(keys, rules), **altered)
    for each in (rules, ApprovalSettings(signers=rules.signers)):
        with pytest.raises(ApprovalError, match="the signature does not belong to this approval"):
            refuse_unless_valid(approval, PLAN, START, rules=each)
    assert describe_signature(approval, rules.signers).startswith("BAD SIGNATURE")


def test_a_signature_is_of_one_plan(keys, rules):
    other = make_plan((1,))
    with pytest.raises(ApprovalError, match="does not belong to this approval"):
        refuse_unless_valid(replace(signed(keys, rules), digest=other.digest), other, START, rules=rules)


def test_signers_in_a_profile(tmp_path, keys):
    def load(lines: str) -> ApprovalSettings:
        text = f'[clusters.p]\nbootstrap_servers = "b:1"\n[clusters.p.approvals]\n{lines}\n'
        (tmp_path / "offramp.toml").write_text(text, encoding="utf-8")
        return load_profile(file=tmp_path / "offramp.toml").approvals

    line = keys["bob"][1]
    found = load(f'longest_hours = 2\nrequire_signature = true\nsigners = {{ ann = ["{line} x"] }}')
    assert found.signers == {"ann": (line,)}
    assert load("").longest_hours == 24
    for lines, wrong in (
        ("require_signature = true", "needs .*signers"),
        ('signers = { ann = ["ssh-ed25519 x"] }', "signers: it is no public SSH key"),
        (f'signers = {{ ann = ["{line}"], bob = ["{line} b"] }}', "one key is given for two names"),
        ("longest_hours = 0", "longest_hours"),
        ("longest_hours = inf", "longest_hours"),
    ):
        with pytest.raises(ProfileError, match=wrong):
            load(lines)


@pytest.fixture
def operations(tmp_path):
    return ToyOperations(ToyGroup(), tmp_path / "runs", lambda sentence: None, None)


def test_approving_twice_adds(operations):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    first = operations.approve(plan, GROUP, plan.digest[:8], "Bob", 3 * HOUR)
    second = operations.approve(plan, GROUP, plan.digest[:8], "Cid", HOUR)
    assert operations.approvals(plan) == (first, second)
    assert operations.approval(plan) == first  # It holds longer; a second one takes nothing away.
    assert [path.name for path in operations.plan_files()] == [f"{plan.digest[:12]}.json"]
    assert operations.plan(plan.digest[:8]) == plan


def test_an_approval_once_seen_expired_stays_so(operations):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    approval = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    operations._clock = Clock(now=lambda: approval.approved_at + 2 * HOUR)
    with pytest.raises(ApprovalError, match="expired"):
        operations.begin(plan)
    operations._clock = Clock(now=lambda: approval.approved_at + HOUR / 2)
    with pytest.raises(ApprovalError, match="check whether it was set back"):
        operations.begin(plan)
    operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    with pytest.raises(ApprovalError, match="make a new plan"):
        operations.begin(plan)
    operations._clock = Clock()
    assert not [path for path in operations.runs.iterdir() if path.name != "plans"]


AHEAD = timedelta(minutes=50)


def approved_ahead(operations):
    """A plan, and an approval for an hour by somebody whose clock is ahead; this machine's is right."""
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations._clock = Clock(now=lambda: plan.made_at + AHEAD)
    given = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    operations._clock = Clock()
    return plan, given


def test_an_approval_by_a_clock_that_was_ahead_does_not_hold_when_its_time_has_come(operations):
    """It would hold until 1 h 50 min after it was given."""
    plan, given = approved_ahead(operations)
    with pytest.raises(ApprovalError, match=r"clock trouble: the approval is dated .*, but here it is"):
        operations.begin(plan)
    operations._clock = Clock(now=lambda: given.approved_at + timedelta(minutes=5))
    with pytest.raises(ApprovalError, match=r"clock trouble: the approval is dated .*, but this machine read it at"):
        operations.begin(plan)
    again = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR / 2)
    assert operations.approval(plan) == again
    assert operations.begin(plan).record.approvals == (again,)


def test_an_observation_is_enough_to_know_that_a_clock_was_ahead(operations):
    plan, given = approved_ahead(operations)
    assert operations.approval(plan) == given
    operations._clock = Clock(now=lambda: given.approved_at)
    with pytest.raises(ApprovalError, match="this machine read it at"):
        operations.begin(plan)


def test_an_approval_by_a_clock_that_was_ahead_resumes_no_run(operations):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR / 2)
    run_id = operations.begin(plan).run_id
    operations._clock = Clock(now=lambda: plan.made_at + AHEAD)
    given = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    operations._clock = Clock()
    assert operations.newer_approval(operations.run(run_id).record) is None  # The first one holds still.
    operations._clock = Clock(now=lambda: given.approved_at + HOUR / 4)
    run = operations.run(run_id)
    newer = operations.newer_approval(run.record)
    assert newer == given
    with pytest.raises(ApprovalError, match="this machine read it at"):
        run.resume(newer)


def test_an_invalid_approval_does_not_prevent_an_undo_that_needs_none(operations):
    """Given after the run's, which has expired: by a clock that was ahead."""
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR / 2)
    run = operations.begin(plan)
    run.act()
    operations._clock = Clock(now=lambda: plan.made_at + 3 * HOUR)
    given = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    operations._clock = Clock(now=lambda: plan.made_at + HOUR)
    again = operations.run(run.run_id)
    newer = operations.newer_approval(again.record)
    assert newer == given
    assert again.undo(newer).state == RunState.UNDONE
    assert given not in again.record.approvals


def test_a_run_that_was_begun_by_a_clock_ahead_is_not_gone_on_with_when_its_time_has_come(operations):
    """Approved and begun on the machine that is ahead; tried on another one, twice."""
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations._clock = Clock(now=lambda: plan.made_at + AHEAD)
    given = operations.approve(plan, GROUP, plan.digest[:8], "Bob", HOUR)
    run_id = operations.begin(plan).run_id
    operations._clock = Clock()
    with pytest.raises(ApprovalError, match="but here it is"):
        operations.run(run_id).act()
    operations._clock = Clock(now=lambda: given.approved_at + HOUR / 4)
    with pytest.raises(ApprovalError, match="this machine read it at"):
        operations.run(run_id).act()


def test_no_other_user_reads_plans_and_runs(operations):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations.approve(plan, GROUP, plan.digest[:8], "Bob")
    run = operations.begin(plan)
    run.act()
    found = [operations.runs, *operations.runs.rglob("*")]
    assert {path.name for path in found} >= {
        "plan.json",
        "events.jsonl",
        "report.html",
        "verdict.json",
        "approval.json",
    }
    for path in found:
        assert path.stat().st_mode & 0o777 == (0o700 if path.is_dir() else 0o600), path
        assert not path.name.startswith(".")


@pytest.fixture
def terminal(operations, monkeypatch, tmp_path):
    find_open(monkeypatch, operations)
    text = '[clusters.p]\nbootstrap_servers = "b:1"\n'
    (tmp_path / "offramp.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("OFFRAMP_PROFILE_FILE", str(tmp_path / "offramp.toml"))
    return CliRunner()


def test_approve_shows_the_plan_before_it_asks(operations, terminal):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    result = terminal.invoke(app, ["approve", plan.digest[:8]], input=f"{GROUP}\n{plan.digest[:8]}\n")
    assert result.exit_code == 0, result.output
    assert 0 <= result.output.index(f"digest: {plan.digest}") < result.output.index("Type the group's name")
    again = terminal.invoke(
        app, ["approve", plan.digest[:8], "--by", "Cid", "--subject", GROUP, "--digest", plan.digest]
    )
    assert re.search(r"approved this plan already, until .*; your approval is added", again.output)
    assert len(operations.approvals(plan)) == 2
    assert (
        terminal.invoke(app, ["approve", plan.digest[:8], "--hours", "25"], input=f"{GROUP}\n{plan.digest}\n").exit_code
        == 16
    )


def test_verify_reports_who_signed(operations, terminal, keys, tmp_path):
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations._rules = ApprovalSettings(require_signature=True, signers={"Bob": [keys["bob"][1]]})
    arguments = ["approve", plan.digest[:8], "--by", "Bob", "--subject", GROUP, "--digest", plan.digest]
    refused = terminal.invoke(app, arguments)
    assert refused.exit_code == 16
    assert "--sign-with" in refused.output
    locked, _ = key_in(tmp_path / "locked", passphrase="open sesame")
    wrong = terminal.invoke(app, [*arguments, "--sign-with", str(locked)], input="sesame\n")
    assert (wrong.exit_code, "not its passphrase" in wrong.output) == (2, True)
    assert terminal.invoke(app, [*arguments, "--sign-with", str(keys["bob"][0])]).exit_code == 0
    run = operations.begin(plan)
    run.act()
    assert run.record.state == RunState.VERIFIED
    verify = ["verify", run.run_id, "--runs", str(operations.runs)]
    unnamed = terminal.invoke(app, verify)
    assert (unnamed.exit_code, "does NOT name for Bob" in unnamed.output) == (0, True)
    with (tmp_path / "offramp.toml").open("a", encoding="utf-8") as file:
        file.write(f'[clusters.p.approvals.signers]\nBob = ["{keys["bob"][1]}"]\n')
    named = terminal.invoke(app, verify)
    assert (named.exit_code, "signed by Bob with the key SHA256:" in named.output) == (0, True)


def test_an_altered_approval_in_the_evidence_is_found_by_its_signature(operations, terminal, keys):
    """A person who can write the folder can make a new chain, but not Bob's signature."""
    plan = operations.make_plan(GroupPlanRequest(GROUP, "all MEZKCC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    operations._rules = ApprovalSettings(signers={"Bob": [keys["bob"][1]]})
    approval = operations.approve(plan, GROUP, plan.digest, "Bob", sign_with=keys["bob"][0])
    forged = replace(approval, approved_by="Ann")
    folder = create_run(plan, forged, operations.runs, Clock())
    result = terminal.invoke(app, ["verify", folder.name, "--runs", str(operations.runs)])
    assert load_run(folder).approvals == (forged,)
    assert (result.exit_code, "BAD SIGNATURE" in result.output) == (EvidenceError.exit_code, True)


def test_the_undo_of_a_forged_run_is_not_open(rules, tmp_path):
    """A person who can write the folder can make a chain of events, but no signature."""
    world = ModelRun(tmp_path)
    world.run.act()
    run = Run(world.folder, world.performer, world.lock, clock=world.time.clock, rules=rules)
    with pytest.raises(ApprovalError, match="the profile requires signed approvals"):
        run.undo()
    assert world.is_all_done


@pytest.fixture
def two(keys):
    """Both rules, and two signers."""
    signers = {"Bob": [keys["bob"][1]], "Eve": [keys["eve"][1]]}
    return ApprovalSettings(require_signature=True, require_second_person=True, signers=signers)


def test_two_signers_approve_where_both_rules_are_on(keys, two, tmp_path):
    """The maker's name is a text: who edits it is one person with one key all the same."""
    plan = replace(PLAN, made_by="Ann", made_as="ann")
    eve = approve_plan(plan, approver="Eve", rules=two, sign_with=keys["eve"][0])
    with pytest.raises(ApprovalError, match=r"only Eve has signed\. Another signer must approve the plan, too"):
        refuse_unless_valid(eve, plan, START, rules=two)
    bob = approve_plan(plan, approver="Bob", rules=two, sign_with=keys["bob"][0], given=[eve])
    refuse_unless_valid(bob, plan, START, rules=two)
    save_approval(bob, tmp_path / "approval.json")
    assert load_approval(tmp_path / "approval.json") == bob
    assert bob.first == eve


@pytest.mark.parametrize("by", ["Eve", " EVE "])
def test_one_key_is_one_signer_however_the_name_is_typed(keys, two, by):
    plan = replace(PLAN, made_by="Ann", made_as="ann")
    eve = approve_plan(plan, approver="Eve", rules=two, sign_with=keys["eve"][0])
    again = approve_plan(plan, approver=by, rules=two, sign_with=keys["eve"][0], given=[eve])
    assert again.first is None
    forged = replace(again, first=eve, signature=None)
    forged = replace(forged, signature=sign(forged.signed_content, keys["eve"][0]))
    with pytest.raises(ApprovalError, match="two people must sign the plan"):
        refuse_unless_valid(forged, plan, START, rules=two)


def test_the_maker_may_sign_first_and_not_last(keys, two):
    plan = replace(PLAN, made_by="Eve", made_as="eve")
    eve = approve_plan(plan, approver="Eve", rules=two, sign_with=keys["eve"][0])
    bob = approve_plan(plan, approver="Bob", rules=two, sign_with=keys["bob"][0], given=[eve])
    refuse_unless_valid(bob, plan, START, rules=two)
    with pytest.raises(ApprovalError, match="Eve made this plan"):
        approve_plan(plan, approver="Eve", rules=two, sign_with=keys["eve"][0], given=[bob])
    late = START + HOUR
    with pytest.raises(ApprovalError, match="two people must sign the plan"):
        refuse_unless_valid(replace_first(bob, eve, keys, expires_at=START), plan, late - HOUR / 2, rules=two)


def replace_first(approval, first, keys, **changed):
    """The approval with another first one; both are signed again by their own keys."""
    first = replace(first, signature=None, **changed)
    first = replace(first, signature=sign(first.signed_content, keys["eve"][0]))
    approval = replace(approval, first=first, signature=None)
    return replace(approval, signature=sign(approval.signed_content, keys["bob"][0]))
