"""The model of a group's migration: what it refuses by itself, what it shows, what outlives the kernel."""

from __future__ import annotations

import json
import threading
import time

import pytest

from kit.engine.model.states import RunState
from kit.errors import (
    ApprovalError,
    IllegalMove,
    InputError,
    NotFound,
    PlanError,
    RunError,
    Stopped,
    TargetBusy,
    UnsafePlan,
)
from kit.moves.group.plan import PATH
from tests.limits import lower
from tests.models.operations import GROUP, KC, MEZKCC, OZKCC, ToyLock, open_toy
from tests.unit.widgets.shown import until
from widgets.run import run_model


def planned(model, to_stage="canary MEZKCC"):
    model.to_stage = to_stage
    model.make_plan()
    model.wait(20)
    return model.plan


def approved(model, to_stage="canary MEZKCC"):
    plan = planned(model, to_stage)
    model.typed_subject, model.typed_digest = GROUP, plan.digest[:8]
    model.approve()
    return plan


def done(model, to_stage="canary MEZKCC"):
    approved(model, to_stage)
    model.act()
    model.wait(20)


def test_a_group_has_to_be_named(toy, tmp_path):
    with pytest.raises(InputError, match="group_id is empty"):
        type(open_toy(toy, tmp_path))(None, toy.look, "")


def test_it_opens_at_the_groups_stage_and_requests_the_next_one(model):
    assert (model.group_state.stage, model.to_stage, model.stage_before) == ("OZKCC", "canary MEZKCC", "")
    assert "Replace one old consumer" in model.advice
    assert model.possible == {"plan"}
    assert [lag for _, lag in model.lags] == [60]


def test_growth_is_unknown_after_one_observation(model):
    assert {each.check_id for each in model.checks if each.is_met is None} == {"lag", "stable", "commits"}
    model.refresh()
    assert {each.check_id for each in model.checks if each.is_met is None} == set()


def test_a_plan_is_kept_and_rehearsed_and_nothing_is_written(model, toy):
    plan = planned(model)
    assert (model.operations.plan(plan.digest[:8]).digest, model.dry.steps[0].can_begin) == (plan.digest, True)
    assert model.possible == {"plan"}
    assert "nothing was changed" in model.verify(dry_run=True)
    assert plan.digest in model.how_to_approve()
    assert toy.writes == []


def test_without_approval_nothing_begins_whatever_the_button_shows(model, toy):
    for verb, error in (("act", IllegalMove), ("stop", IllegalMove), ("resume", IllegalMove), ("approve", IllegalMove)):
        with pytest.raises(error):
            getattr(model, verb)()
        assert model.error
    with pytest.raises(IllegalMove, match="no run of group shop to undo"):
        model.undo(GROUP)
    planned(model)
    with pytest.raises(ApprovalError, match="was not approved"):
        model.act()
    assert "was not approved" in model.error
    assert (toy.writes, list(model.runs.glob("2*"))) == ([], [])
    with pytest.raises(RunError, match="nothing was executed"):
        model.verify()


@pytest.mark.parametrize(
    ("subject", "digest"),
    [("", "{0:.8}"), ("shop2", "{0:.8}"), (GROUP, ""), (GROUP, "{0:.7}"), (GROUP, "00000000"), (GROUP, "{0}0")],
)
def test_the_typed_text_has_to_be_this_plans(model, toy, subject, digest):
    plan = planned(model)
    model.typed_subject, model.typed_digest = subject, digest.format(plan.digest)
    assert "approve" not in model.possible
    assert model.approval_mismatch
    with pytest.raises(ApprovalError):
        model.approve()
    with pytest.raises(ApprovalError):
        model.act()
    assert toy.writes == []


def test_a_button_is_possible_once_all_is_typed_in_any_order_on_any_thread(model):
    """JupyterLab delivers each field on a thread of its own: the last one to arrive enables the button."""
    plan = planned(model)
    fields = {"typed_subject": GROUP, "typed_digest": plan.digest[:8]}
    for _ in range(50):
        threads = [threading.Thread(target=setattr, args=(model, *each)) for each in fields.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert model.possible == {"plan", "approve"}
        model.typed_digest = plan.digest[:7]
        assert model.possible == {"plan"}
        model.typed_subject = ""


def test_a_second_person(toy, tmp_path, monkeypatch):
    model = open_toy(toy, tmp_path, needs_second=True)
    plan = planned(model)
    model.typed_subject, model.typed_digest, model.approver = GROUP, plan.digest[:8], "Ann"
    with pytest.raises(ApprovalError, match="another person"):
        model.approve()
    model.approver = "Bob"
    with pytest.raises(ApprovalError, match="under one login"):
        model.approve()
    monkeypatch.setattr("kit.engine.model.approval.system_user", lambda: "bob")
    model.approve()
    model.act()
    model.wait(20)
    assert model.record.state == RunState.VERIFIED


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        ("to_stage", "all MEZKCC"),
        ("canary", 2),
        ("soak_s", 1.0),
        ("min_stable_s", 1.0),
        ("lag_tolerance", 5),
        ("on_failure", "undo"),
        ("overrides", "lag"),
    ],
)
def test_any_change_of_the_request_voids_plan_and_approval(model, toy, trait, value):
    approved(model)
    model.set_trait(trait, value)
    assert (model.plan, model.dry, model.approval, model.typed_subject, model.typed_digest) == (
        None,
        None,
        None,
        "",
        "",
    )
    assert "void" in model.sentence
    assert model.possible == {"plan"}
    with pytest.raises(IllegalMove, match="no plan"):
        model.act()
    assert toy.writes == []


def test_a_request_that_changes_while_it_is_planned_gives_no_plan(model, toy):
    toy.gate.clear()
    model.make_plan()
    model.canary = 2
    toy.gate.set()
    with pytest.raises(IllegalMove, match="the request changed"):
        model.wait(20)
    assert model.plan is None
    assert "the request changed" in model.error


def test_one_thing_at_a_time(model, toy):
    toy.gate.clear()
    model.make_plan()
    assert (model.busy, model.possible) == ("planning the way to canary MEZKCC", frozenset())
    for verb in (model.make_plan, model.plan_rollback, model.approve, model.act, model.resume):
        with pytest.raises(IllegalMove, match="one thing at a time"):
            verb()
    assert not model.wait(0.01)
    toy.gate.set()
    assert model.wait(20)
    assert model.busy == ""


def test_an_error_in_the_worker_is_shown_and_raised(model, toy):
    toy.is_away = True
    model.make_plan()
    with pytest.raises(Exception, match="ZooKeeper does not answer"):
        model.wait(20)
    assert (model.error, model.busy) == ("ZooKeeper does not answer", "")
    model.operations.make_plan = lambda *_: 1 / 0
    model.make_plan()
    with pytest.raises(ZeroDivisionError):
        model.wait(20)
    assert model.error == "ZeroDivisionError: division by zero"


def test_invalid_requests(model):
    model.canary = 0
    with pytest.raises(InputError, match="a canary needs at least 1 member, not 0"):
        model.make_plan()
    assert "a canary needs at least 1 member, not 0" in model.error
    model.canary, model.to_stage = 2, "canary MEZKCC"
    model.make_plan()
    with pytest.raises(UnsafePlan, match="canary_size: The canary would be 2 of 3"):
        model.wait(20)
    model.overrides = "canary_size, "
    planned(model)
    assert model.plan.overridden == {"canary_size": "The canary would be 2 of 3 members."}
    model.to_stage = "OZKCC"
    model.make_plan()
    with pytest.raises(PlanError):
        model.wait(20)


def test_the_whole_path_and_back(model, toy):
    for stage in PATH[1:]:
        done(model, stage)
        assert model.verify() == f"Run {model.record.run_id} is VERIFIED: Every step was executed and verified."
        assert (model.plan, model.approval) == (None, None)
        assert model.group_state.stage == stage
        assert model.to_stage == (PATH[PATH.index(stage) + 1] if stage != PATH[-1] else stage)
        assert "rollback" in model.possible
    assert (toy.flavours, toy.mode) == ([KC] * 3, "kafka")
    for stage in reversed(PATH[:-1]):
        model.plan_rollback()
        model.wait(20)
        assert model.plan.parameters["to_stage"] == model.to_stage == stage
        model.typed_subject, model.typed_digest = GROUP, model.plan.digest[:10]
        model.approve()
        model.act()
        model.wait(20)
        model.refresh()
    assert (toy.flavours, toy.mode) == ([OZKCC] * 3, "zookeeper")
    with pytest.raises(IllegalMove, match="no stage before it"):
        model.plan_rollback()


def test_a_choice_made_during_a_run_stays(model, toy):
    approved(model)
    toy.gate.clear()
    model.act()
    until(lambda: model.instruction and toy.held.is_set())
    model.to_stage = "all KC"
    toy.gate.set()
    model.wait(20)
    assert (model.group_state.stage, model.to_stage) == ("canary MEZKCC", "all KC")


def test_a_rollback_leads_back(model):
    done(model, "all MEZKCC")
    model.refresh()
    for stage, said in (("Kafka coordination", "is not before"), ("all MEZKCC", "is not before"), ("x", "no stage")):
        with pytest.raises(InputError, match=said):
            model.plan_rollback(stage)
    model.prepare_back(to_stage="OZKCC")
    assert model.plan.parameters["to_stage"] == "OZKCC"
    digest = model.plan.digest
    model.prepare_back(digest[:8])
    assert model.plan.digest == digest
    forward = planned(model, "Kafka coordination").digest
    with pytest.raises(InputError, match="no rollback"):
        model.prepare_back(forward)
    assert model.plan is None


def test_stop_ends_it_between_two_items_and_resume_continues(model, toy):
    approved(model, "all MEZKCC")
    toy.gate.clear()
    model.act()
    until(lambda: model.instruction and toy.held.is_set())
    until(lambda: model.can_undo)
    assert "stop" in model.possible
    model.stop()
    assert "asked to stop" in model.sentence
    toy.gate.set()
    with pytest.raises(Stopped):
        model.wait(20)
    assert (model.record.state, len(toy.writes), model.instruction) == (RunState.STOPPED, 1, "")
    model.typed_undo = GROUP
    assert model.possible >= {"resume", "undo", "plan"}
    with pytest.raises(RunError, match="is STOPPED"):
        model.verify()
    model.resume()
    model.wait(20)
    assert model.verify().endswith("verified.")
    assert toy.flavours == [MEZKCC] * 3


def test_a_run_that_found_the_lock_taken_is_begun_by_resume(model, toy, monkeypatch):
    """Somebody works in a terminal meanwhile."""
    approved(model)
    with monkeypatch.context() as busy:
        busy.setattr(ToyLock, "acquire", taken)
        model.act()
        with pytest.raises(TargetBusy):
            model.wait(20)
    assert (model.record.state, toy.writes) == (RunState.APPROVED, [])
    assert not model.can_undo
    assert "resume" in model.possible
    model.resume()
    model.wait(20)
    assert model.record.state == RunState.VERIFIED


def taken(lock, targets, run_id) -> None:
    raise TargetBusy("shop is locked by a run")


def test_an_order_is_shown_while_nothing_more_comes(model, toy, monkeypatch):
    lower(monkeypatch, run_model, ITEMS_S=0.05)
    approved(model)
    toy.gate.clear()
    model._shown_at = time.monotonic() + 3600  # Each event of an item comes too soon to be shown at once.
    model.act()
    until(lambda: model.record is not None and model.record.events[-1].event == "attempted")
    toy.gate.set()
    model.wait(20)


def test_undo_asks_for_the_group_and_takes_all_back(model, toy):
    done(model, "Kafka coordination")
    for typed in ("", "shop2", model.record.plan.digest[:7]):
        with pytest.raises(ApprovalError, match="type 'shop'"):
            model.undo(typed)
    assert model.to_undo[0] == "Toggle shop to Kafka's assignment"
    model.typed_undo = GROUP
    model.undo()
    model.wait(20)
    assert (toy.flavours, toy.mode, model.record.state) == ([OZKCC] * 3, None, RunState.UNDONE)
    assert "UNDONE" in model.verify()
    assert model.typed_undo == ""
    with pytest.raises(IllegalMove, match="nothing to undo"):
        model.undo(GROUP)


def test_undo_of_a_run_that_continues_stops_it_first(model, toy):
    approved(model, "all MEZKCC")
    toy.gate.clear()
    model.act()
    until(lambda: model.instruction and toy.held.is_set())
    model.undo(GROUP)
    toy.gate.set()
    model.wait(20)
    assert (toy.flavours, model.record.state) == ([OZKCC] * 3, RunState.UNDONE)


def test_a_reopened_notebook_finds_the_run_that_is_not_over(model, toy, tmp_path):
    done(model, "canary MEZKCC")
    model.refresh()
    approved(model, "all MEZKCC")
    toy.gate.clear()
    model.act()
    until(lambda: model.instruction and toy.held.is_set())
    model.stop()
    toy.gate.set()
    assert "asked to stop" in model.finish()
    again = open_toy(toy, tmp_path / "runs")
    assert again.record.run_id == model.record.run_id
    assert (again.record.state, "resume" in again.possible) == (RunState.STOPPED, True)
    assert again.ways_back().count("offramp undo") == 1
    again.undo(again.record.plan.digest[:8])
    again.wait(20)
    assert sorted(toy.flavours) == [MEZKCC, OZKCC, OZKCC]
    model.refresh()
    assert model.record.state == RunState.UNDONE, "what another process did is seen"


def test_an_approval_given_elsewhere_is_seen(model, toy, tmp_path):
    plan = planned(model)
    other = open_toy(toy, tmp_path / "runs")
    other.load_plan(plan.digest[:12])
    other.wait(20)
    other.typed_subject, other.typed_digest, other.approver = GROUP, plan.digest[:8], "Bob"
    other.approve()
    assert model.approval is None
    model.refresh()
    assert (model.approval.approved_by, "act" in model.possible) == ("Bob", True)


def test_a_plan_is_taken_up_by_its_digest_alone(model, toy, tmp_path):
    digest = planned(model).digest
    again = open_toy(toy, tmp_path / "runs")
    again.prepare(digest[:8])
    assert (again.plan.digest, again.dry.differences) == (digest, ())
    for wrong, error in (
        ("", InputError),
        (digest[:7], InputError),
        (digest[:12] + "zz", NotFound),
        ("0" * 8, NotFound),
    ):
        with pytest.raises(error):
            again.load_plan(wrong)
    with pytest.raises(InputError, match="leads to 'canary MEZKCC', not to 'all KC'"):
        again.prepare(digest[:8], "all KC")
    path = next((tmp_path / "runs" / "plans").glob("*.json"))
    path.write_text(path.read_text().replace("canary", "Canary"))
    with pytest.raises(PlanError, match="edited"):
        again.load_plan(digest[:8])


def test_another_groups_plan_and_run_are_refused(model, toy, tmp_path):
    done(model)
    other = type(model)(lambda say, tell: open_toy(toy, tmp_path / "runs").operations, toy.look, "other")
    assert other.record is None
    with pytest.raises(InputError, match="of shop, not"):
        other.load_plan(model.record.plan.digest)
    with pytest.raises(InputError, match="is a group migration of shop"):
        other.show_run(model.record.run_id)
    with pytest.raises(NotFound):
        model.show_run("20260101T000000Z-none")


def test_a_chosen_run_stays_in_view_and_another_run_needs_a_new_confirmation(model, toy, tmp_path):
    """A newer run of the same group replaced the chosen one; what was typed for the one undid the other."""
    done(model)
    chosen = model.record.run_id
    other = open_toy(toy, tmp_path / "runs")
    other.show_run(chosen)
    other.typed_undo = "shop"
    assert "undo" in other.possible
    done(model, "all MEZKCC")
    newer = model.record.run_id
    assert newer != chosen
    other.refresh()
    assert (other.record.run_id, other.typed_undo) == (chosen, "shop")
    other.show_run(newer)
    assert (other.record.run_id, other.typed_undo) == (newer, "")
    assert "undo" not in other.possible


def test_a_plan_that_does_not_hold_any_more_is_void(model, toy):
    approved(model)
    toy.mode = "kafka"
    model.act()
    said = model.finish()
    assert "what the plan observed has changed" in said
    assert (model.record.state, toy.writes) == (RunState.STALE, [])
    with pytest.raises(RunError, match="is STALE"):
        model.verify()


def test_a_dry_run_that_could_not_begin_is_reported(model, toy):
    digest = planned(model).digest
    toy.mode = "kafka"
    model.prepare(digest)
    assert [each.item for each in model.dry.differences]
    with pytest.raises(RunError, match="is out of date"):
        model.verify(dry_run=True)


def test_the_dry_run_of_an_undo_reports_what_it_would_undo(model, toy):
    done(model)
    model.prepare_back(run_id=model.record.run_id)
    model._goal = None  # as in a notebook that was opened later
    assert "would undo: Replace 1 OZKCC" in model.verify(dry_run=True)
    assert len(toy.writes) == 1


def test_edited_evidence_is_reported_and_not_shown_as_true(model, toy, tmp_path):
    done(model)
    events = model.record.folder / "events.jsonl"
    lines = events.read_text().splitlines()
    lines[2] = json.dumps({**json.loads(lines[2]), "sentence": "nothing"}, separators=(",", ":"))
    events.write_text("\n".join(lines) + "\n")
    model.refresh()
    assert "does not follow" in model.watch_error
    assert (again := open_toy(toy, tmp_path / "runs")).record is None
    assert "A run's evidence in this folder was edited or can't be read: " in again.untrusted


def test_a_run_in_the_making_by_another_process_is_read_once_it_is_there(model, toy, tmp_path):
    done(model)
    folder = model.record.folder
    (folder / "events.jsonl").rename(tmp_path / "events.jsonl")
    other = open_toy(toy, tmp_path / "runs")
    assert (other.record, bool(other.untrusted)) == (None, True)
    (tmp_path / "events.jsonl").rename(folder / "events.jsonl")
    other.refresh()
    assert (other.record.state, other.untrusted) == (RunState.VERIFIED, "")


def test_the_watch_continues_over_an_outage_and_stops_when_asked(model, toy):
    model.start_watching(0.01)
    until(lambda: len(model.lags) > 3)
    toy.is_away = True
    until(lambda: model.watch_error)
    seen = len(model.lags)
    toy.is_away = False
    until(lambda: not model.watch_error and len(model.lags) > seen)
    model.stop_watching()
    seen = len(model.lags)
    time.sleep(0.1)
    assert (len(model.lags), model.is_watching) == (seen, False)


def test_closing_stops_a_run_after_what_is_being_written(toy, tmp_path):
    closed = []
    model = open_toy(toy, tmp_path / "runs")
    model._close_all = lambda: closed.append(True)
    model.soak_s = 0.0
    approved(model, "all MEZKCC")
    toy.gate.clear()
    model.act()
    until(lambda: model.instruction and toy.held.is_set())
    model._run.request_stop("ann")
    toy.gate.set()
    model.close()
    assert (model.record.state, len(toy.writes), closed) == (RunState.STOPPED, 1, [True])
