"""Runs: what may not begin doesn't, failures are reported by step and item, and a killed process loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from kit.engine.execution.dry_run import dry_run
from kit.engine.execution.run import Run, RunResult, start_run
from kit.engine.model import files, journal as journals
from kit.engine.model.approval import save_approval
from kit.engine.model.clock import Clock
from kit.engine.model.journal import request_stop
from kit.engine.model.performer import Checked, ItemOutcome, Outcome, Verified
from kit.engine.model.plan import save_plan
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.errors import (
    ApprovalError,
    ConnectError,
    EvidenceError,
    IllegalMove,
    ReadError,
    RunError,
    StalePlan,
    StepFailed,
    Stopped,
    TargetBusy,
    WrongCluster,
)
from kit.profile import ApprovalSettings
from tests.adversary import mistakes
from tests.adversary.mistakes import put_back
from tests.generators.names import SECRET_LIKE
from tests.models.engine import START, Killed, ModelRun, approve_plan, make_plan


@pytest.fixture
def world(tmp_path):
    return ModelRun(tmp_path)


SECOND = ApprovalSettings(require_second_person=True)


def answering(world, name, answer):
    """The performer, but for one method."""
    setattr(world.performer, name, answer)
    return world.run


def test_without_an_approval_that_holds_there_is_not_even_a_folder(tmp_path):
    plan, root = make_plan(), tmp_path / "runs"
    clock = ModelRun(tmp_path / "clock").time.clock
    for approval in (
        None,
        approve_plan(make_plan((1,))),
        approve_plan(plan, now=START - timedelta(minutes=1), valid_for=timedelta(seconds=1)),
    ):
        with pytest.raises(ApprovalError):
            start_run(plan, approval, root, clock=clock)
    with pytest.raises(ApprovalError, match="another person"):
        start_run(
            plan,
            approve_plan(plan, approver="ann"),
            root,
            clock=clock,
            rules=SECOND,
        )
    assert not root.exists()


def test_an_approval_that_ran_out_before_or_on_the_way(world):
    world.time.ahead = timedelta(hours=2)
    with pytest.raises(ApprovalError, match="expired"):
        world.run.act()
    assert world.run.record.state == RunState.APPROVED
    run = answering(world, "verify", lambda step: world.jump_clock("") or Verified(True, "late"))
    result = run.act(approve_plan(world.plan, now=world.time.clock.now()))
    assert (result.state, world.cluster.writes) == (RunState.STOPPED, [("i00", "old", "new"), ("i01", "old", "new")])
    assert "step 's1': the approval expired" in result.sentence
    with pytest.raises(ApprovalError, match="expired"):
        world.process().resume()
    result = world.process().resume(approve_plan(world.plan, now=world.time.clock.now(), approver="Dee"))
    assert result.state == RunState.VERIFIED
    record = load_run(world.folder)
    assert [approval.approved_by for approval in record.approvals] == ["Bob", "Bob", "Dee"]


def test_a_clock_set_back_revives_no_approval_of_a_run(world):
    result = answering(world, "verify", lambda step: world.jump_clock("") or Verified(True, "late")).act()
    assert "the approval expired" in result.sentence
    world.time.ahead = timedelta(0)
    with pytest.raises(ApprovalError, match="check whether it was set back"):
        world.process().resume()
    assert world.run.record.state == RunState.STOPPED


def test_a_second_person_is_needed_when_acting_too(world):
    run = Run(
        world.folder,
        world.performer,
        world.lock,
        clock=world.time.clock,
        rules=SECOND,
    )
    for approval in (approve_plan(world.plan, approver="Ann"), approve_plan(world.plan)):
        with pytest.raises(ApprovalError, match="another person"):
            run.act(approval)
    assert run.act(approve_plan(world.plan, approved_as="bob")).state == RunState.VERIFIED


def test_another_cluster_is_refused(world):
    world.performer.cluster_id = "other"
    for begin in (world.run.act, world.run.undo, lambda: dry_run(world.plan, world.performer)):
        with pytest.raises(WrongCluster, match="for cluster model, but other answers"):
            begin()
    assert world.cluster.writes == []


def test_changes_since_the_plan_are_reported_item_by_item_and_void_it(world):
    world.cluster.members, world.cluster.end_offset = 4, 99
    world.cluster.values["i10"] = "else"
    with pytest.raises(StalePlan) as raised:
        world.run.act()
    for said in (
        "members: expected 3 (exact), found 4",
        "end: expected 100 (may grow), found 99",
        'values/i10: expected "old" (exact), found "else"',
        "nothing was written",
    ):
        assert said in str(raised.value)
    record = load_run(world.folder)
    assert record.state == RunState.STALE
    assert record.sentence == str(raised.value)
    assert json.loads((world.folder / "verdict.json").read_text())["state"] == "STALE"
    assert next((e.item, e.before, e.after) for e in record.events if e.event == "differs") == ("members", "3", "4")
    assert world.cluster.writes == []
    for verb in ("act", "resume", "undo"):
        with pytest.raises(IllegalMove, match=f"is STALE; {verb} begins from: "):
            getattr(world.process(), verb)()


def test_offsets_that_grow_as_declared_are_no_change(world):
    world.cluster.end_offset = 5000
    assert world.run.act().state == RunState.VERIFIED


def test_a_change_in_the_midst_of_a_run_leaves_the_undo_open(world):
    world.hazard.arm(25, world.press_stop)
    assert world.run.act().state == RunState.STOPPED
    assert world.cluster.writes
    world.cluster.members = 4
    result = world.process().resume()
    assert result.state == RunState.FAILED
    assert "members: expected 3 (exact), found 4" in result.sentence
    assert world.process().undo().state == RunState.UNDONE
    assert world.is_all_back


def test_two_runs_on_one_group(world, tmp_path):
    world.lock.holder = "another run"
    with pytest.raises(TargetBusy, match=r"shop\.orders is worked on by another run"):
        world.run.act()
    assert world.cluster.writes == []
    world.lock.holder = None
    assert world.run.act().state == RunState.VERIFIED
    assert world.lock.holder is None


def test_a_run_begins_once(world):
    world.run.act()
    with pytest.raises(IllegalMove, match="is VERIFIED; act begins from: APPROVED"):
        world.run.act()
    with pytest.raises(IllegalMove, match="is VERIFIED; resume begins from"):
        world.run.resume()
    assert len(world.cluster.writes) == 4


def test_an_ending_reports_whether_it_is_the_wanted_one(world):
    world.run.request_stop("Cid")
    stopped = world.run.act()
    assert stopped.to_undo == ()
    with pytest.raises(Stopped, match="is STOPPED, not VERIFIED: before any step: Cid asked to stop"):
        stopped.raise_unless()
    done = world.process().resume()
    done.raise_unless()
    assert done.to_undo == ("Step 1", "Step 0")
    with pytest.raises(RunError, match="is VERIFIED, not UNDONE"):
        done.raise_unless(RunState.UNDONE)


def test_a_failed_precondition_writes_nothing(world):
    result = answering(world, "check", lambda step: Checked(False, "the group rebalances")).act()
    assert result.state == RunState.FAILED
    assert result.sentence == "step 's0': the precondition does not hold: the group rebalances"
    assert (result.to_undo, world.cluster.writes) == ((), [])


def test_the_conditions_of_the_plan_are_asked_again_until_something_was_written(world):
    world.cluster.forbids = "soak: a value diverged"
    for verb in (world.run.act, world.process().resume):
        result = verb()
        assert (result.state, world.cluster.writes) == (RunState.FAILED, [])
        assert result.sentence == "step 's0': the precondition does not hold: soak: a value diverged"
    assert dry_run(world.plan, world.performer).steps[0].sentence == "soak: a value diverged"
    world.cluster.forbids = None
    world.cluster.refuses = True
    assert world.process().resume().state == RunState.FAILED
    world.cluster.forbids = "too late: the first item is written"
    assert world.process().resume().state == RunState.VERIFIED


def test_a_failed_verification_halts_and_undoes_nothing_by_itself(world):
    result = answering(world, "verify", lambda step: Verified(False, "no offsets move")).act()
    assert result.state == RunState.FAILED
    assert result.sentence == "step 's0': not confirmed within 5 s: no offsets move"
    assert result.to_undo == ("Step 0",)
    assert [new for _, _, new in world.cluster.writes] == ["new", "new"]
    assert world.time.seconds >= 5
    assert world.process().undo().state == RunState.UNDONE


def test_a_plan_with_that_setting_undoes_itself_when_it_fails(tmp_path):
    world = ModelRun(tmp_path, on_failure="undo")
    world.hazard.arm(30, world.refuse)
    result = world.run.act()
    assert (result.state, world.is_all_back) == (RunState.UNDONE, True)
    assert [e.state for e in world.run.record.events if e.event == "ended"] == ["FAILED", "UNDONE"]
    stopped = ModelRun(tmp_path / "stopped", on_failure="undo")
    stopped.hazard.arm(30, stopped.press_stop)
    assert stopped.run.act().state == RunState.STOPPED
    assert not stopped.is_all_back


def test_items_that_were_not_done_are_named_and_the_rest_stay_known(world):
    def act(step, report):
        report([ItemOutcome("i00", Outcome.REFUSED, "old", None, "the group became active")])
        report.attempt(["i01"])
        world.cluster.values["i01"] = "new"
        return [ItemOutcome("i01", Outcome.CONFIRMED, "old", "new")]

    result = answering(world, "act", act).act()
    assert result.state == RunState.FAILED
    assert result.sentence == "step 's0': 1 of 2 items were not done: i00 REFUSED: the group became active"
    acted = world.run.record.acted(world.plan.steps[0])
    assert {it.item: str(it.outcome) for it in acted.outcomes} == {"i00": "REFUSED", "i01": "CONFIRMED"}


def test_an_item_no_one_speaks_of_was_not_attempted(world):
    result = answering(world, "act", lambda step, report: []).act()
    assert "2 of 2 items were not done: i00 NOT_ATTEMPTED" in result.sentence
    assert result.to_undo == ()


def test_an_undo_that_was_cut_off_is_still_offered(world):
    world.run.act()
    world.hazard.arm(12, world.press_stop)
    halted = world.process().undo()
    assert (halted.state, world.cluster.values["i11"]) == (RunState.UNDO_HALTED, "old")
    assert halted.to_undo == ("Step 1", "Step 0")
    assert world.process().resume().to_undo == ()


def test_an_item_outside_of_the_plan_fails_the_step(world):
    result = answering(world, "act", lambda step, report: report([ItemOutcome("owner", Outcome.CONFIRMED)])).act()
    assert result.state == RunState.FAILED
    assert "owner is not an item of the step that was approved" in result.sentence
    assert "owner" in [event.item for event in world.run.record.events]


def test_an_item_outside_of_the_plan_is_refused_before_it_is_written(world):
    def act(step, report):
        report.attempt(["owner"])
        world.cluster.write("i00", "old", "new")
        return []

    result = answering(world, "act", act).act()
    assert "owner is not an item of the step that was approved" in result.sentence
    assert world.cluster.writes == []


def test_a_write_without_asking_fails_the_step(world):
    result = answering(world, "act", lambda step, report: [ItemOutcome("i00", Outcome.CONFIRMED, "old", "new")]).act()
    assert (result.state, "i00 was written before the run allowed the write" in result.sentence) == (
        RunState.FAILED,
        True,
    )


@pytest.mark.parametrize("method", ["observe", "check", "act", "verify"])
def test_an_unforeseen_error_is_recorded_with_its_traceback(world, method):
    def broken(step, report=None):
        if report is not None:
            report.attempt(["i00"])
        raise ZeroDivisionError("a bug")

    with pytest.raises(StepFailed, match=f"{world.folder.name}: .*ZeroDivisionError: a bug") as raised:
        answering(world, method, broken).act()
    if method != "observe":
        assert "step 's0'" in str(raised.value)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)
    record = load_run(world.folder)
    assert record.state == RunState.FAILED
    failed = next(event for event in record.events if event.event == "failed")
    assert "in broken" in failed.error
    if method == "act":
        unknown = [(e.item, e.outcome, e.error) for e in record.events if e.event == "acted"]
        assert unknown == [
            ("i00", "UNKNOWN", "ZeroDivisionError: a bug"),
            ("i01", "NOT_ATTEMPTED", "ZeroDivisionError: a bug"),
        ]
        assert "step 's0', outcome unknown of item 'i00': ZeroDivisionError" in str(raised.value)


def test_an_error_of_the_project_is_reported_by_its_sentence(world):
    def refused(step):
        raise ReadError("shop.orders: the coordinator moved")

    result = answering(world, "check", refused).act()
    assert (result.state, result.sentence) == (RunState.FAILED, "step 's0': shop.orders: the coordinator moved")
    assert "Traceback" not in (world.folder / "events.jsonl").read_text()


def test_a_server_that_is_away_while_verifying_is_waited_for(world):
    answers = [ConnectError("no route"), ConnectError("no route"), Verified(True, "all there")]

    def verify(step):
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, ConnectError):
            raise answer
        return answer

    assert answering(world, "verify", verify).act().state == RunState.VERIFIED
    waiting = [event.sentence for event in world.run.record.events if event.event == "waiting"]
    assert waiting == ["the cluster does not answer: no route"]


def test_stop_is_pressed_in_another_thread_and_heard_at_the_end_of_the_item(world):
    def act(step, report):
        outcomes = []
        for change in step.changes:
            report.attempt([change.item])
            thread = threading.Thread(target=world.run.request_stop, args=("Cid",))
            thread.start()
            thread.join()
            world.cluster.values[change.item] = "new"
            outcomes.append(ItemOutcome(change.item, Outcome.CONFIRMED, "old", "new"))
            report(outcomes[-1:])
        return outcomes

    result = answering(world, "act", act).act()
    assert (result.state, result.sentence) == (RunState.STOPPED, "step 's0': Cid asked to stop")
    outcomes = world.run.record.acted(world.plan.steps[0]).outcomes
    assert [(it.item, str(it.outcome)) for it in outcomes] == [("i00", "CONFIRMED"), ("i01", "NOT_ATTEMPTED")]


def test_a_performer_that_swallows_the_stop_is_stopped_all_the_same(world):
    def act(step, report):
        done = []
        report.attempt([change.item for change in step.changes])
        world.run.request_stop("Cid")
        for change in step.changes:
            try:
                report([ItemOutcome(change.item, Outcome.CONFIRMED, "old", "new")])
            except Stopped:
                done.append(change.item)
        assert done == ["i00", "i01"]
        return []

    assert answering(world, "act", act).act().state == RunState.STOPPED


def test_a_lost_lock_stops_before_the_next_write(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i00.written"), world.lose_lock)
    result = world.run.act()
    assert (result.state, result.sentence) == (RunState.STOPPED, "step 's0': the session expired")
    assert world.cluster.writes == [("i00", "old", "new")]


def test_a_lock_lost_before_the_first_write_means_no_write(world):
    def tell(event):
        if event.state == RunState.ACTING:
            world.lose_lock("")

    result = Run(world.folder, world.performer, world.lock, clock=world.time.clock, tell=tell).act()
    assert (result.state, world.cluster.writes) == (RunState.STOPPED, [])
    outcomes = world.run.record.acted(world.plan.steps[0]).outcomes
    assert {str(it.outcome) for it in outcomes} == {"NOT_ATTEMPTED"}


def point(folder, name, **world):
    """Return the point of that name in a run that nothing hits."""
    other = ModelRun(folder, **world)
    other.run.act()
    return other.hazard.points.index(name)


def test_a_step_that_cannot_be_undone_is_reported_before_anything_is_undone(tmp_path):
    steps = make_plan().steps
    final = (replace(steps[0], undo=None, cannot_be_undone="the old offsets are gone"), steps[1])
    world = ModelRun(tmp_path, steps=final)
    result = world.run.act()
    assert result.to_undo == ()
    with pytest.raises(RunError, match="'s0' cannot be undone: the old offsets are gone; nothing was undone"):
        world.process().undo()
    assert world.is_all_done
    assert world.run.record.state == RunState.VERIFIED


@pytest.mark.parametrize("ends", ["VERIFIED", "FAILED"])
def test_the_undo_is_open_for_as_long_as_the_plan_allows(tmp_path, ends):
    """However the run ended; the approval itself has long run out by then."""
    late, world = (ModelRun(tmp_path / name, way_back_s=3 * 3600.0) for name in ("late", "in time"))
    for each in (late, world):
        if ends == "FAILED":
            answering(each, "verify", lambda step: Verified(False, "no"))
        assert each.run.act().state == ends
    late.time.ahead = timedelta(hours=3, minutes=1)
    with pytest.raises(
        ApprovalError,
        match=(
            r"run .* could be undone without a new approval until .*:"
            r" the approval expired"
        ),
    ):
        late.process().undo()
    assert late.run.record.state == ends
    written = len(world.cluster.writes)
    world.time.ahead = timedelta(hours=2, minutes=58)
    assert world.process().undo().state == RunState.UNDONE
    assert len(world.cluster.writes) == 2 * written


def test_an_expired_undo_takes_a_new_approval(world):
    world.run.act()
    world.time.ahead = timedelta(days=90)
    with pytest.raises(ApprovalError, match="could be undone without a new approval until"):
        world.process().undo()
    assert world.is_all_done
    assert world.process().undo(approve_plan(world.plan, now=world.time.clock.now())).state == RunState.UNDONE


def test_the_undo_ends_between_two_items(tmp_path):
    world = ModelRun(tmp_path, way_back_s=3600.0)
    world.run.act()
    world.time.ahead = timedelta(minutes=50)
    at = point_back(tmp_path / "other", "s1/i11.written")
    world.process()
    world.hazard.arm(at, world.jump_clock)
    result = world.run.undo()
    assert (result.state, [new for _, _, new in world.cluster.writes].count("old")) == (RunState.UNDO_HALTED, 1)
    assert "could be undone without a new approval until" in result.sentence


def point_back(folder, name):
    """Return the point of that name in an undo."""
    other = ModelRun(folder)
    other.run.act()
    other.process()
    other.hazard.points.clear()
    other.run.undo()
    return other.hazard.points.index(name)


def test_an_approval_that_runs_out_between_two_items_stops_the_run_there(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i00.reported"), world.jump_clock)
    result = world.run.act()
    assert (result.state, world.cluster.writes) == (RunState.STOPPED, [("i00", "old", "new")])
    assert "step 's0': the approval expired" in result.sentence
    outcomes = world.run.record.acted(world.plan.steps[0]).outcomes
    assert [(it.item, str(it.outcome)) for it in outcomes] == [("i00", "CONFIRMED"), ("i01", "NOT_ATTEMPTED")]


def test_a_clock_that_is_set_back_revives_no_approval(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i00.reported"), world.jump_clock)
    world.run.act()
    world.time.ahead = timedelta(0)
    with pytest.raises(ApprovalError, match="check whether it was set back"):
        world.process().resume()
    assert len(world.cluster.writes) == 1
    assert world.process().resume(approve_plan(world.plan, now=world.time.clock.now())).state == RunState.VERIFIED


def test_an_approval_that_resume_saw_expired_is_not_revived_by_a_clock_set_back(world, tmp_path):
    """Nothing of the refusal is in the journal; a new approval holds."""
    world.hazard.arm(point(tmp_path / "other", "s0/i00.reported"), world.press_stop)
    world.run.act()
    newer = approve_plan(world.plan, now=world.time.clock.now(), valid_for=timedelta(minutes=30))
    for given in (newer, None):
        world.time.ahead = timedelta(hours=2)
        with pytest.raises(ApprovalError, match="the approval expired"):
            world.process().resume(given)
        world.time.ahead = timedelta(0)
        with pytest.raises(ApprovalError, match="check whether it was set back"):
            world.process().resume(given)
    assert len(world.cluster.writes) == 1
    assert world.process().resume(approve_plan(world.plan, now=world.time.clock.now())).state == RunState.VERIFIED


def test_an_undo_that_was_seen_too_late_is_not_revived_by_a_clock_set_back(tmp_path):
    world = ModelRun(tmp_path, way_back_s=5400)
    world.run.act().raise_unless()
    world.time.ahead = timedelta(hours=2)
    with pytest.raises(ApprovalError, match="could be undone without a new approval"):
        world.process().undo()
    world.time.ahead = timedelta(hours=1, minutes=10)
    with pytest.raises(ApprovalError, match="could be undone without a new approval"):
        world.process().undo()
    assert world.is_all_done
    assert world.process().undo(approve_plan(world.plan, now=world.time.clock.now())).state == RunState.UNDONE


@pytest.mark.parametrize("verb", ["resume", "undo"])
def test_a_run_that_another_one_followed_touches_nothing_any_more(world, verb):
    answering(world, "verify", lambda step: Verified(False, "no")).act()
    world.lock.last = "20991231T000000Z-later"
    state, written = world.run.record.state, list(world.cluster.writes)
    with pytest.raises(RunError, match=r"run 20991231T000000Z-later changed group shop\.orders after run"):
        getattr(world.process(), verb)()
    assert (world.run.record.state, world.cluster.writes) == (state, written)


@pytest.mark.parametrize("verb", ["resume", "undo"])
def test_a_run_before_it_is_none_that_followed(tmp_path, verb):
    """It was cut off in a first step that writes nothing: the mark is still that of the run before."""
    world = ModelRun(tmp_path, shape=(0, 2))
    world.lock.last = "20000101T000000Z-earlier"
    world.hazard.arm(point(tmp_path / "other", "s0.verify", shape=(0, 2)), world.kill)
    with pytest.raises(Killed):
        world.run.act()
    ended = getattr(world.process(), verb)()
    assert ended.state == (RunState.VERIFIED if verb == "resume" else RunState.UNDONE)


def test_a_change_by_another_tool_since_is_reported_before_anything_is_undone(world):
    world.run.act()
    world.process()
    answering(world, "check_back", lambda step, acted: Checked(False, "another operator or tool set it"))
    with pytest.raises(RunError, match="'s1' can't be undone now: another operator or tool set it; nothing was undone"):
        world.run.undo()
    assert (world.run.record.state, world.is_all_done) == (RunState.VERIFIED, True)


def test_an_unknown_write_is_undone_by_its_actor_even_where_nothing_is_seen_of_it(world):
    """It may still come: only the actor can call it off."""

    def act(step, report):
        report.attempt(["i00"], {"stops": "a"})
        raise RunError("no new member was seen")

    answering(world, "act", act).act()
    asked = []
    world.process()
    answering(world, "undo", lambda step, acted, report: asked.append(acted) or [])
    assert world.run.undo().state == RunState.UNDONE
    (acted,) = asked
    assert [(it.item, it.is_open, it.details) for it in acted.attempts] == [("i00", True, {"stops": "a"})]


def test_an_item_that_a_run_found_done_already_is_not_undone(world):
    world.cluster.values["i00"] = "new"

    def observe(plan):
        return {name: it.value for name, it in plan.observed.items()}

    answering(world, "observe", observe).act()
    world.process()
    assert answering(world, "observe", observe).undo().state == RunState.UNDONE
    assert world.cluster.values == {"i00": "new", "i01": "old", "i10": "old", "i11": "old"}


def test_an_undo_that_does_not_come_back_is_halted_and_continues_only_backwards(world):
    world.run.act()
    answering(world, "undo", lambda step, acted, report: [])
    result = world.run.undo()
    assert result.state == RunState.UNDO_HALTED
    assert result.sentence == "step 's1': not confirmed within 5 s: The cluster has every change of the step."
    assert world.process().resume().state == RunState.UNDONE
    assert world.is_all_back


def unreadable(step, acted=None):
    raise ReadError("i00 is locked")


def test_a_step_of_unknown_state_is_not_repeated(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i00.written"), world.interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.run.act()
    world.process()
    for verb in ("resume", "undo"):
        n_ended = world.performer.n_ended
        result = getattr(answering(world, "state", unreadable), verb)()
        assert world.performer.n_ended == n_ended + 1
        assert (
            f"can't be read: i00 is locked. Repair the cause, then run: offramp {verb} {world.run.run_id}"
        ) in result.sentence
    assert world.cluster.writes == [("i00", "old", "new")]


@pytest.mark.parametrize("name", SECRET_LIKE)
def test_a_group_named_like_a_secret_runs_and_is_undone(tmp_path, name):
    world = ModelRun(tmp_path, targets=(name,))
    verified = Verified(True, f"{name} follows", {"groups": {name: "kafka"}, name: name})
    assert answering(world, "verify", lambda step: verified).act().state == RunState.VERIFIED
    assert world.run.undo(approve_plan(world.plan)).state == RunState.UNDONE
    events = world.run.record.events
    assert {event.withheld for event in events} == {None}
    assert any(name in (event.details or "") for event in events if event.event == "verified")


@pytest.mark.parametrize("name", SECRET_LIKE)
def test_a_failure_about_such_a_group_names_it(tmp_path, name):
    world = ModelRun(tmp_path, targets=(name,))

    def broken(*_):
        raise ReadError(f"{name}: it can't be read: ran x --password=hunter2")

    result = answering(world, "check", broken).act()
    assert f"{name}: it can't be read: ran x --password=***" in result.sentence


@pytest.mark.parametrize("error", [ReadError, ZeroDivisionError])
@pytest.mark.parametrize("method", ["observe", "check", "act", "verify"])
def test_a_secret_in_an_error_is_redacted_everywhere(world, method, error):
    def broken(*_):
        raise error("kubectl --password=hunter2 failed")

    with suppress(StepFailed):
        answering(world, method, broken).act()
    assert world.run.record.state == RunState.FAILED
    assert "kubectl --password=*** failed" in world.run.record.sentence
    assert not any("hunter2" in path.read_text() for path in world.folder.iterdir())


def test_an_item_that_was_stopped_before_and_cut_off_later_may_be_written(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i00.written"), world.press_stop)
    assert world.run.act().state == RunState.STOPPED
    world.process()

    def act(step, report):
        report.attempt(["i01"])
        world.cluster.write("i01", "old", "new")
        world.kill("")

    world.performer.act = act
    with pytest.raises(Killed):
        world.run.resume()
    world.process()
    acted = []
    world.performer.undo = lambda step, known, report: acted.append(known) or []
    world.run.undo()
    assert [(it.item, str(it.outcome)) for it in acted[0].outcomes] == [("i00", "CONFIRMED"), ("i01", "UNKNOWN")]


def test_a_write_stays_recorded_when_a_later_act_finds_it_unchanged(world, tmp_path):
    world.hazard.arm(point(tmp_path / "other", "s0/i01.before"), world.kill)
    with pytest.raises(Killed):
        world.run.act()
    assert world.process().resume().state == RunState.VERIFIED
    told = [(e.item, e.outcome) for e in world.run.record.events if e.event == "acted" and e.step_id == "s0"]
    assert told == [("i00", "CONFIRMED"), ("i00", "UNCHANGED"), ("i01", "CONFIRMED")]
    outcomes = world.run.record.acted(world.plan.steps[0]).outcomes
    assert [(it.item, str(it.outcome)) for it in outcomes] == [("i00", "CONFIRMED"), ("i01", "CONFIRMED")]


def test_stop_is_heard_while_a_verification_waits(world):
    def verify(step):
        if world.time.seconds > 2:
            world.run.request_stop("Cid")
        return Verified(False, "not yet")

    result = answering(world, "verify", verify).act()
    assert (result.state, result.sentence) == (RunState.STOPPED, "step 's0': Cid asked to stop")
    assert world.time.seconds < 4
    assert world.process().resume().state == RunState.VERIFIED
    assert len(world.cluster.writes) == 4


def test_a_stop_between_two_steps_begins_nothing(world):
    verify = world.performer.verify
    result = answering(world, "verify", lambda step: world.press_stop("") or verify(step)).act()
    assert (result.state, result.sentence) == (RunState.STOPPED, "step 's1': Cid asked to stop")
    assert world.run.record.begun == {"s0"}


def test_a_stop_that_came_too_late_does_not_stop_the_undo(tmp_path):
    world = ModelRun(tmp_path, (1,))
    verify = world.performer.verify
    assert (
        answering(world, "verify", lambda step: world.press_stop("") or verify(step)).act().state == RunState.VERIFIED
    )
    assert world.run.undo().state == RunState.UNDONE


def test_evidence_that_cannot_be_written_ends_the_run_at_once(world, monkeypatch):
    def full(file):
        if world.cluster.writes:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(journals.os, "fsync", full)
    with pytest.raises(EvidenceError, match="No space left"):
        world.run.act()
    monkeypatch.undo()
    assert world.cluster.writes == [("i00", "old", "new")]
    assert world.process().resume().state == RunState.VERIFIED
    assert len(world.cluster.writes) == 4


def exceed_quota(monkeypatch, lost: str) -> None:
    """No file of this name is written."""
    replace_file = files.os.replace

    def full(scratch, path):
        if path.name == lost:
            raise OSError(122, "Disk quota exceeded")
        replace_file(scratch, path)

    monkeypatch.setattr(files.os, "replace", full)


@pytest.mark.parametrize("lost", ["report.html", "verdict.json"])
def test_an_ending_whose_page_cannot_be_written_is_reported_with_the_state_that_was_reached(world, monkeypatch, lost):
    exceed_quota(monkeypatch, lost)
    told = rf"is VERIFIED: Every step was executed and verified. But .*{lost} was not written: Disk quota exceeded"
    with pytest.raises(EvidenceError, match=told):
        world.run.act()
    assert world.run.record.state == RunState.VERIFIED


def test_plans_approvals_and_stops_that_cannot_be_written_are_refused_by_the_name_of_the_file(tmp_path, monkeypatch):
    plan = make_plan((1,))
    approval = approve_plan(plan)

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files.tempfile, "mkstemp", forbidden)
    for write in (
        lambda: save_plan(plan, tmp_path / "a.json"),
        lambda: save_approval(approval, tmp_path / "b.json"),
        lambda: request_stop(tmp_path, "Ann", START),
        lambda: journals.create_run(plan, approval, tmp_path / "runs", Clock()),
    ):
        with pytest.raises(EvidenceError, match=r"/\S+ (was not written|can't be made).*: Permission denied$"):
            write()
    assert [each.name for each in tmp_path.rglob("*") if each.is_file()] == []


def test_a_display_that_breaks_does_not_break_the_run(world):
    def tell(event):
        raise RuntimeError("no widget")

    run = Run(world.folder, world.performer, world.lock, clock=world.time.clock, tell=tell)
    assert run.act().state == RunState.VERIFIED
    assert [e.error for e in run.record.events if e.event == "display_failed"] == ["RuntimeError: no widget"]


def test_a_dry_run_walks_the_same_steps_and_writes_nothing(world):
    before = sorted((path.name, path.read_bytes()) for path in world.folder.iterdir())
    world.cluster.members = 4
    world.hazard.points.clear()
    told = dry_run(world.plan, world.performer)
    assert [it.sentence for it in told.differences] == ["members: expected 3 (exact), found 4"]
    assert [(it.step, it.can_begin, it.sentence) for it in told.steps] == [(s, True, "ready") for s in world.plan.steps]
    assert world.hazard.points == ["observe", "refusal", "s0.check", "s1.check"]
    assert world.cluster.writes == []
    assert before == sorted((path.name, path.read_bytes()) for path in world.folder.iterdir())
    world.performer.check = lambda step: world.fail("")
    assert {it.sentence for it in dry_run(world.plan, world.performer).steps} == {
        "the precondition could not be checked: told"
    }


_PROCESS = """
import json, os, sys
from pathlib import Path
from kit.engine.execution.run import Run
from tests.adversary import mistakes
from tests.adversary.mistakes import put_back
from tests.generators.names import SECRET_LIKE
from tests.models.engine import Cluster, Hazard, ModelLock, ModelPerformer, START, Time
from kit.engine.model.record import load_run

folder, verb, dies_at = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
store = folder.parent.parent / "cluster.json"

class Stored(Cluster):
    def write(self, item, expected, new):
        super().write(item, expected, new)
        with store.with_name("writes.txt").open("a") as file:
            file.write(f"{item} {new}\\n")
        store.write_text(json.dumps(self.values))
        if item == dies_at:
            os._exit(9)

hazard = Hazard()
lock = ModelLock(hazard)
plan = load_run(folder).plan
performer = ModelPerformer(Stored(json.loads(store.read_text())), lock, hazard, plan)
ending = getattr(Run(folder, performer, lock, clock=Time().clock), verb)()
assert performer.cluster.wrongs == []
print(ending.state)
"""


@pytest.mark.parametrize(
    ("verb", "state", "written"),
    [
        ("resume", "VERIFIED", ["i00 new", "i01 new", "i10 new", "i11 new"]),
        ("undo", "UNDONE", ["i00 new", "i01 new", "i01 old", "i00 old"]),
    ],
)
def test_a_process_that_is_killed_in_the_midst_of_an_act(world, tmp_path, verb, state, written):
    (tmp_path / "runs").mkdir()
    folder = world.folder.rename(tmp_path / "runs" / world.folder.name)
    (tmp_path / "cluster.json").write_text(json.dumps(world.cluster.values))

    def process(*arguments):
        command = [sys.executable, "-c", _PROCESS, str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    killed = process("act", "i01")
    assert killed.returncode == 9, killed.stderr
    assert load_run(folder).state == RunState.ACTING
    ended = process(verb, "nowhere")
    assert ended.stdout.strip() == state, ended.stderr
    assert (tmp_path / "writes.txt").read_text().splitlines() == written
    outcomes = {it.item: str(it.outcome) for it in load_run(folder).acted(world.plan.steps[0]).outcomes}
    assert outcomes == {"i00": "CONFIRMED", "i01": "UNKNOWN"}


def test_a_refusal_during_the_undo_is_reported_at_once(world):
    """And not waited for until the step's deadline."""
    world.run.act()
    world.process()

    def undo(step, acted, report):
        return [ItemOutcome(it.item, Outcome.REFUSED, "new", "new", "it has KCs") for it in acted.written]

    before = world.time.seconds
    result = answering(world, "undo", undo).undo()
    assert (result.state, world.time.seconds - before < 1) == (RunState.UNDO_HALTED, True)
    assert result.sentence == "step 's1': 2 of 2 items were not undone: i10: it has KCs; i11: it has KCs"


def test_a_change_by_another_tool_since_is_left_alone_and_reported(world):
    world.run.act()
    world.process()
    real = world.performer.undo

    def undo(step, acted, report):
        if step.step_id != "s1":
            return real(step, acted, report)
        world.cluster.values |= {"i10": "theirs", "i11": "old"}
        return [ItemOutcome("i10", Outcome.REFUSED, "theirs", "theirs", "another operator or tool set it")]

    result = answering(world, "undo", undo).undo()
    assert result.state == RunState.UNDONE
    assert result.sentence == (
        "The writes of the run were undone, except items that another operator or tool changed since: i10: another"
        " operator or tool set it."
    )


def test_a_step_that_others_changed_whole_is_left_alone_and_reported(world):
    """Nothing is left to be undone of it, and this run took nothing back: that is said, once."""
    world.run.act()
    world.cluster.values |= {"i10": "theirs", "i11": "old"}
    result = world.process().undo()
    assert result.state == RunState.UNDONE
    assert result.sentence == (
        "The writes of the run were undone, except items that another operator or tool changed since: i10: another"
        " operator or tool changed this item after this run; i11: another operator or tool changed this item after "
        "this run."
    )
    assert world.cluster.values == {"i00": "old", "i01": "old", "i10": "theirs", "i11": "old"}


@pytest.mark.parametrize("asked", ["whole", b"garbage", b"{}"])
def test_another_process_asks_for_a_stop_and_is_heard_once(world, asked):
    """Whatever it wrote: a request that can't be read must not bar the way for ever."""

    def verify(step):
        if asked == "whole":
            request_stop(world.folder, "Cid", START)
        else:
            (world.folder / "stop.json").write_bytes(asked)
        return Verified(False, "not yet")

    result = answering(world, "verify", verify).act()
    assert result.state == RunState.STOPPED
    assert ("Cid" if asked == "whole" else "an unknown person") in result.sentence
    assert not (world.folder / "stop.json").exists()
    assert world.process().resume().state == RunState.VERIFIED


def test_an_unheard_stop_is_not_meant_for_a_later_process(world):
    world.run.act()
    request_stop(world.folder, "Cid", START)
    assert world.process().undo().state == RunState.UNDONE


def test_a_run_that_wrote_nothing_reports_it(world):
    world.press_stop("")
    assert world.run.act().state == RunState.STOPPED
    assert not world.run.record.has_written
    world.process().resume()
    assert world.run.record.has_written


def test_a_run_that_found_the_lock_taken_is_begun_by_resume(world):
    world.lock.holder = "an unknown person"
    with pytest.raises(TargetBusy):
        world.run.act()
    assert world.run.record.sentence == f"The run has not begun: offramp resume {world.folder.name} begins it."
    assert world.process().resume().state == RunState.VERIFIED
    assert world.is_all_done


def after(tmp_path, other: ModelRun) -> ModelRun:
    """Another run on the same target; its plan observes what is there now."""
    world = ModelRun(tmp_path / "next")
    world.lock.last, world.lock.is_at_rest = other.lock.last, other.lock.is_at_rest
    return world


def killed_at(world: ModelRun, point: str, verb: Callable[[Run], RunResult] = Run.act) -> None:
    def strike(name: str) -> None:
        if name != point:
            world.hazard.arm(0, strike)
            return
        world.kill(name)

    world.hazard.arm(0, strike)
    with pytest.raises(Killed):
        verb(world.run)


def test_the_rest_of_a_killed_run_is_waited_for_once_before_the_next_one_writes(tmp_path):
    first = ModelRun(tmp_path / "first")
    killed_at(first, f"{first.plan.steps[0].step_id}/i00.attempted")
    following = after(tmp_path, first)
    following.run.act().raise_unless()
    assert following.performer.settled == [first.folder.name]
    points = following.hazard.points
    assert points.index("settle") < points.index("refusal")
    assert following.lock.is_at_rest
    last = after(tmp_path / "last", following)
    last.run.act().raise_unless()
    assert last.performer.settled == []


@pytest.mark.parametrize("ends", ["act", "undo", "stop", "refused"])
def test_a_run_that_came_to_rest_is_not_waited_for(tmp_path, ends):
    first = ModelRun(tmp_path / "first")
    if ends == "stop":
        first.hazard.arm(12, first.press_stop)
    first.cluster.refuses = ends == "refused"
    first.run.act()
    if ends == "undo":
        first.process().undo()
    following = after(tmp_path, first)
    following.run.act().raise_unless()
    assert following.performer.settled == []


def test_items_undone_before_a_kill_are_no_other_tools_work(world):
    step = world.plan.steps[-1].step_id
    world.run.act().raise_unless()
    item = world.plan.steps[-1].changes[0].item
    killed_at(world, f"{step}/{item}.written", Run.undo)
    world.cluster.values = dict.fromkeys(world.cluster.values, "old")  # Another operator or tool wrote the rest.
    result = world.process().undo()
    others = [change.item for change in world.plan.steps[0].changes]
    assert item not in result.sentence
    assert all(other in result.sentence for other in others)


@pytest.mark.parametrize("verb", [Run.act, Run.undo])
def test_a_verdict_that_found_no_room_is_written_by_resume(world, monkeypatch, verb):
    if verb is Run.undo:
        world.run.act().raise_unless()
    with monkeypatch.context() as full:
        exceed_quota(full, "report.html")
        told = f"Disk quota exceeded. Make room; then: offramp resume {world.folder.name}"
        with pytest.raises(EvidenceError, match=told):
            verb(world.process())
    state = world.run.record.state
    assert world.run.record.notes
    assert world.process().resume().state == state
    assert world.run.record.notes == ()
    with pytest.raises(IllegalMove):
        world.process().resume()


TWO = {"targets": ("shop.a", "shop.b")}
LATER = "20991231T000000Z-later"
LEFT_ALONE = f"run {LATER} changed this item after this run"


def test_undo_leaves_the_targets_alone_that_a_later_run_changed(tmp_path):
    """Also where the later runs brought back the very value that this run had left (ABA)."""
    world = ModelRun(tmp_path, **TWO)
    world.run.act().raise_unless()
    world.lock.later = {"shop.b": LATER}
    world.lock.marked.clear()
    result = world.process().undo()
    assert result.state == RunState.UNDONE
    assert result.sentence.endswith(f"changed since: i11: {LEFT_ALONE}; i01: {LEFT_ALONE}.")
    assert world.cluster.values == {"i00": "old", "i01": "new", "i10": "old", "i11": "new"}
    assert set(world.lock.marked) == {("shop.a",)}, "the later run's mark stays"


def test_resume_refuses_the_targets_that_a_later_run_changed(tmp_path):
    world = ModelRun(tmp_path, **TWO)
    world.hazard.arm(point(tmp_path / "other", "s0/i00.reported"), world.press_stop)
    world.run.act()
    world.lock.later = {"shop.b": LATER}
    for _ in range(2):  # Its own writes don't hide the later run from it.
        result = world.process().resume()
        assert (result.state, result.sentence) == (
            RunState.FAILED,
            f"step 's0': 1 of 2 items were not done: i01 REFUSED: {LEFT_ALONE}",
        )
    assert world.cluster.values == {"i00": "new", "i01": "old", "i10": "old", "i11": "old"}
    assert world.process().undo().state == RunState.UNDONE
    assert world.is_all_back


def test_a_performer_cannot_write_what_a_later_run_changed(tmp_path):
    world = ModelRun(tmp_path, **TWO)
    world.hazard.arm(point(tmp_path / "other", "s0/i00.reported"), world.press_stop)
    world.run.act()
    world.lock.later = {"shop.b": LATER}
    world.process()
    result = answering(world, "act", lambda step, report: report.attempt(["i01"]) or []).resume()
    assert result.state == RunState.FAILED
    assert "i01 is not an item of the step that was approved" in result.sentence


def test_a_second_undo_leaves_alone_what_the_first_one_undid(world, tmp_path):
    """Another operator or tool may have set the same value since: the item is theirs now."""
    world.run.act().raise_unless()
    world.hazard.arm(point_back(tmp_path / "other", "s1/i11.reported"), world.press_stop)
    assert world.process().undo().state == RunState.UNDO_HALTED
    assert (world.cluster.values["i11"], world.cluster.values["i10"]) == ("old", "new")
    world.cluster.values["i11"] = "new"
    result = world.process().undo()
    assert (result.state, world.cluster.wrongs) == (RunState.UNDONE, [])
    assert world.cluster.values == {"i00": "old", "i01": "old", "i10": "old", "i11": "new"}


def test_a_second_undo_of_a_step_that_is_undone_reads_it_back(world, tmp_path):
    """The first one halted between its last item and reading the step back."""
    world.run.act().raise_unless()
    world.process()
    world.hazard.arm(point_back(tmp_path / "other", "s1/i10.reported"), world.kill)
    with pytest.raises(Killed):
        world.run.undo()
    world.process()
    asked = []
    real = world.performer.state

    def state(step, acted=None):
        asked.append(step.step_id)
        return real(step, acted)

    assert answering(world, "state", state).undo().state == RunState.UNDONE
    assert asked[0] == "s1"
    assert world.is_all_back


@pytest.mark.parametrize(
    ("mistake", "race"),
    [
        (mistakes.LATER_RUNS, test_undo_leaves_the_targets_alone_that_a_later_run_changed),
        (mistakes.REVIVED, test_an_undo_that_was_seen_too_late_is_not_revived_by_a_clock_set_back),
    ],
    ids=["later runs", "revived"],
)
def test_the_mistake_is_found(tmp_path, mistake, race):
    with put_back(mistake), pytest.raises((AssertionError, pytest.fail.Exception)):
        race(tmp_path)
