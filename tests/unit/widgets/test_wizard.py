"""The wizard shows what the model knows, escaped and in words, and its buttons do no more than call the model."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import ipywidgets as ipw
import pytest
from bs4 import BeautifulSoup

import widgets
from kit.engine.model.performer import Waiting
from kit.engine.model.progress import step_progress
from kit.engine.model.states import RunState
from kit.lab.process import wait_until
from kit.tables.conditions import Rule
from tests.models.operations import GROUP, open_toy
from tests.unit.widgets.shown import below, button, field, text
from widgets import rollback_wizard, toggle_wizard, wizard
from widgets.run import html


@pytest.fixture
def view(model):
    model.start_watching(60)
    return wizard(model)


def planned(view, model):
    button(view, "Make the plan").click()
    model.wait(20)
    return model.plan


def test_importing_is_light():
    program = (
        "import sys, widgets; print(sorted({'ipywidgets', 'polars', 'pyspark', 'kazoo', 'altair'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout.strip() == "[]"


def test_every_input_and_button_has_a_name(view):
    inputs = [each for each in below(view) if isinstance(each, ipw.Text | ipw.IntText | ipw.FloatText | ipw.Dropdown)]
    assert len(inputs) == 11
    names = [each.description for each in [*inputs, *(it for it in below(view) if isinstance(it, ipw.Button))]]
    assert all(names)
    assert len(set(names)) == len(names)


def test_nothing_is_loaded_and_nothing_runs_in_the_page(view, model):
    for each in below(view):
        if isinstance(each, ipw.HTML):
            assert not re.search(r"https?://|<script|@import|url\(|\son\w+=", each.value), each.value[:200]


def test_names_are_escaped(view):
    assert "shop_<0>-OZKCC" in text(view)
    assert not any("<0>" in each.value or "host<1>" in each.value for each in below(view) if isinstance(each, ipw.HTML))


def test_the_stage_is_marked_in_words_and_for_screen_readers(model):
    found = BeautifulSoup(html.stages("canary MEZKCC", "all MEZKCC", model.advice), "html.parser")
    (here,) = found.select('[aria-current="step"]')
    assert here.get_text() == "2. canary MEZKCCthe group is here"
    assert [each.small.get_text() for each in found.select("li")] == [
        "earlier",
        "the group is here",
        "chosen",
        "later",
        "later",
        "later",
    ]
    off = BeautifulSoup(html.stages("unsafe mix", "all KC", "Stop <them>."), "html.parser")
    assert "not on this path. Its stage is unsafe mix" in off.get_text()
    assert [each.small.get_text() for each in off.select("li")] == ["", "", "", "", "", "chosen"]
    assert off.select("[aria-current]") == []


@pytest.mark.parametrize(
    ("is_met", "level", "word"),
    [
        (True, "block", "✓ met"),
        (False, "block", "✗ blocks"),
        (None, "block", "? unknown"),
        (False, "warn", "! warns"),
    ],
)
def test_checks_are_sentences_with_a_word(is_met, level, word):
    shown = BeautifulSoup(
        html.checks([Rule("lag", "the lag <b> grows", level).found(is_met, "By 3 & 4.")]), "html.parser"
    )
    assert shown.get_text() == f"{word}The lag <b> grows. By 3 & 4. (rule lag)"


def test_an_unknown_lag_is_no_zero(model):
    assert "not known" in html.lag_chart([(model.lags[0][0], None)])
    assert "Lag now 60 records" in html.lag_chart(model.lags)
    unknown = {pair: replace(found, log_end=None) for pair, found in model.group_state.offsets.items()}
    rows = BeautifulSoup(html.members(replace(model.group_state, offsets=unknown)), "html.parser").select("tbody tr")
    assert {row.select("td")[-1].get_text() for row in rows} == {"–"}


def test_a_toggle_without_a_znode_and_an_unknown_assignment_are_reported_in_words(model, toy):
    """A group without members follows nobody's assignment."""
    model._look = lambda group_id: replace(toy.look(group_id), effective_mode=None)
    model.refresh()
    assert model.watch_error == ""
    for view in (wizard(model), toggle_wizard(model)):
        assert "There is no toggle znode. It is not known whose assignment the group follows." in text(view)
        assert "None" not in text(view)


def test_from_the_plan_to_the_proof_by_buttons(view, model, toy):
    plan = planned(view, model)
    assert plan.digest in text(view)
    assert "✓ The plan can begin now" in text(view)
    approve = button(view, "Approve this plan")
    assert approve.disabled
    assert f"is disabled: type {GROUP} and the first 8 characters of the digest" in text(view)
    field(view, "Type the group's name").value = GROUP
    assert approve.disabled
    assert "is disabled: type at least 8 characters of the plan's digest" in text(view)
    field(view, "Type the digest's first 8").value = plan.digest[:8]
    assert not approve.disabled
    assert "is disabled" not in text(view)
    approve.click()
    assert "✓ Approved by" in text(view)
    button(view, "Execute the plan").click()
    model.wait(20)
    assert "✓ VERIFIED Every step was executed and verified." in text(view)
    assert f"{model.record.run_id}/report.html" in text(view)
    assert toy.writes == ["OZKCC → MEZKCC"]


def test_the_plan_stays_in_view_while_it_runs_and_afterwards(view, model, toy):
    assert "No plan yet" in text(view)
    plan = planned(view, model)
    field(view, "Type the group's name").value, field(view, "Type the digest's first 8").value = GROUP, plan.digest[:8]
    button(view, "Approve this plan").click()
    toy.gate.clear()
    button(view, "Execute the plan").click()
    deadline = time.monotonic() + 20
    while not model.direction:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for is_over in (False, True):
        assert "This is the plan of the run below" in text(view)
        assert plan.digest in text(view)
        if not is_over:
            toy.gate.set()
            model.wait(20)
    assert "There is no plan to approve" in text(view)


def test_names_of_stages_are_spelled_out_at_their_first_use(view):
    shown = text(view)
    assert shown.index("OZKCC: old ZooKeeper consumer") < shown.index("Next:")
    assert "MEZKCC: migration-enabled ZooKeeper consumer" in shown
    assert "KC: plain Kafka consumer" in shown


def test_a_disabled_button_that_is_pressed_all_the_same_does_nothing(view, model, toy):
    for label in ("Execute the plan", "Approve this plan", "Resume this run", "Stop", "Undo this run"):
        assert button(view, label).disabled
        button(view, label).click()
        assert model.error in text(view)
        assert model.error
    planned(view, model)
    button(view, "Execute the plan").click()
    assert "was not approved: nothing was done" in text(view)
    assert toy.writes == []


def test_a_changed_field_voids_the_plan(view, model):
    planned(view, model)
    field(view, "Canary members").value = 2
    assert model.plan is None
    assert "void" in text(view)
    assert button(view, "Approve this plan").disabled


def test_numbers_that_are_not_refreshed_any_more_are_marked(view, model):
    assert "Not refreshed since" not in text(view)
    model.stop_watching()
    assert "Not refreshed since " in text(view)


def test_a_persons_task_is_shown_while_it_is_to_be_done(view, model, toy):
    plan = planned(view, model)
    model.typed_subject, model.typed_digest = GROUP, plan.digest[:8]
    model.approve()
    toy.gate.clear()
    model.act()
    while not model.instruction:
        time.sleep(0.01)
    assert "Do this now, manually: Now replace one OZKCC by one MEZKCC." in text(view)
    assert "This notebook executes the run." in text(view)
    assert not button(view, "Stop").disabled
    assert button(view, "Undo this run").disabled
    field(view, "To undo, type the group's name").value = GROUP
    wait_until(lambda: not button(view, "Undo this run").disabled, "an undo, once a write was begun", 20)
    toy.gate.set()
    model.wait(20)
    assert "Do this now" not in text(view)


def test_a_part_that_cannot_be_drawn_is_reported_and_ends_no_run(view, model, monkeypatch):
    plan = planned(view, model)
    model.typed_subject, model.typed_digest = GROUP, plan.digest[:8]
    model.approve()

    def broken(record):
        raise KeyError("partition")

    monkeypatch.setattr(html, "progress", broken)
    model.act()
    model.wait(20)
    assert (model.record.state, model.error) == (RunState.VERIFIED, "")
    assert "✗ offramp can't draw this part because of an error in offramp: KeyError: 'partition'" in text(view)


def test_the_need_of_a_second_person_is_reported_before_typing(toy, tmp_path):
    model = open_toy(toy, tmp_path / "runs", needs_second=True)
    view = wizard(model)
    planned(view, model)
    assert "Not approved yet. Another person than ann has to approve the plan, logged in as themselves" in text(view)
    model.close()


def test_a_runs_wait_hides_nothing_that_a_person_has_to_do(view, model):
    model._say("Now start controller 3000.")
    model._say("Now start controller 3001.")
    model._say(Waiting("waiting for up to 300 s: no controller leads"))
    assert "manually: Now start controller 3000.Now start controller 3001." in text(view)
    assert "… waiting for up to 300 s: no controller leads" in text(view)
    model._say(Waiting("waiting for up to 299 s: one is behind"))
    assert "no controller leads" not in text(view)


def test_progress_reports_every_step_also_of_the_undo(model, toy):
    model.to_stage = "Kafka coordination"
    model.make_plan()
    model.wait(20)
    model.typed_subject, model.typed_digest = GROUP, model.plan.digest[:8]
    model.approve()
    model.act()
    model.wait(20)
    assert [(it.phase, it.n_done, it.n_items) for it in step_progress(model.record)] == [
        ("done", 1, 1),
        ("done", 2, 2),
        ("done", 1, 1),
    ]
    told = "3 partitions got another owner znode; the longest time that a partition was seen without an owner is 7 ms"
    assert (
        f"{told}, from the notice of a deletion to the next creation (ZooKeeper reported each change)."
        in html.verdict(model.record)
    )
    model.undo(GROUP)
    model.wait(20)
    assert model.record.state == RunState.UNDONE
    assert [(it.phase, it.n_done) for it in step_progress(model.record)] == [("undone", 0)] * 3


def test_the_toggle_alone_in_both_directions(model, toy):
    toy.flavours = ["MEZKCC"] * 3
    model.refresh()
    view = toggle_wizard(model)
    assert model.to_stage == "Kafka coordination"
    assert "There is no toggle znode. The group follows ZooKeeper's assignment." in text(view)
    for mode in ("kafka", "zookeeper"):
        plan = planned(view, model)
        assert [step.kind for step in plan.steps] == ["toggle"]
        model.typed_subject, model.typed_digest = GROUP, plan.digest[:8]
        button(view, "Approve this plan").click()
        button(view, "Execute the plan").click()
        model.wait(20)
        assert (model.error, toy.mode) == ("", mode)
        field(view, "Coordination").value = "all MEZKCC"
    assert "The toggle znode holds 'zookeeper'. The group follows ZooKeeper's assignment." in text(view)


def test_the_rollbacks_alone(model, toy):
    toy.flavours = ["MEZKCC"] * 3
    model.refresh()
    for number in (1, 2):
        model.set_request(["Kafka coordination", "all MEZKCC"][number - 1])
        model.make_plan()
        model.wait(20)
        model.typed_subject, model.typed_digest = GROUP, model.plan.digest[:8]
        model.approve()
        model.act()
        model.wait(20)
    newest = model.record.run_id
    view = rollback_wizard(model)
    assert [name for name, _ in field(view, "To stage").options] == ["OZKCC", "canary MEZKCC"]
    assert model.to_stage == "canary MEZKCC"
    earlier = field(view, "Run to undo").options[2]
    assert earlier[0].endswith("· VERIFIED")
    field(view, "Run to undo").value = earlier[1]
    assert model.record.run_id == earlier[1] != newest
    field(view, "To undo, type the group's name").value = GROUP
    button(view, "Undo this run").click()
    model.wait(20)
    assert (model.error, model.record.run_id, model.record.state) == ("", earlier[1], RunState.UNDONE)
    assert toy.mode is None


def test_no_module_takes_the_place_of_a_function():
    """Python puts a module that is imported into its package, under the module's name."""
    modules = {path.stem for path in Path(widgets.__file__).parent.glob("*.py")}
    assert modules.isdisjoint(widgets.__all__)
    assert all(callable(getattr(widgets, name)) for name in widgets.__all__)
