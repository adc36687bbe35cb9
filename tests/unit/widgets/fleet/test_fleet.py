"""The fleet's model and its wizard: who is ready, waves, all back at once; a thousand groups stay readable."""

from __future__ import annotations

import re

import ipywidgets as ipw
import pytest
from bs4 import BeautifulSoup

from kit.engine.model.states import RunState
from kit.errors import ApprovalError, IllegalMove, InputError, NotFound, RunError, UnsafePlan
from kit.operations import frames
from tests.limits import lower
from tests.models.fleet import KAFKA, ZOOKEEPER, ToyFleet, open_toy_fleet
from tests.unit.widgets.shown import below, button, field, text, until
from widgets import fleet_wizard
from widgets.fleet import html as fleet_html
from widgets.run import run_model

NAMES = ("<a>", "b", "c", "d", "e")


@pytest.fixture
def toy():
    found = ToyFleet(*NAMES)
    yield found
    found.gate.set()


@pytest.fixture
def model(toy, tmp_path):
    found = open_toy_fleet(toy, tmp_path / "runs")
    found.wave, found.step_timeout_s = 2, 0.05
    yield found
    toy.gate.set()
    found.close()


@pytest.fixture
def view(model):
    model.start_watching(60)
    return fleet_wizard(model)


def planned(model):
    model.make_plan()
    model.wait(20)
    return model.plan


def approved(model):
    plan = planned(model)
    model.typed_subject, model.typed_digest = plan.subject, plan.digest[:8]
    model.approve()
    return plan


def parsed(html):
    return BeautifulSoup(html, "html.parser")


def rows_of(html):
    return [[cell.get_text() for cell in row.select("td")] for row in parsed(html).select("tbody tr")]


def test_it_opens_with_every_group_its_stage_and_why_it_is_not_ready(model, toy):
    toy.old, toy.age_s["b"], toy.modes["c"] = {"<a>"}, 12.4, KAFKA
    model.refresh()
    assert dict(model.rows.select("group_id", "not_ready_reason").rows()) == {
        "<a>": "the group's stage is OZKCC",
        "b": "the newest member registered 12 s ago",
        "c": "the group's stage is Kafka coordination",
        "d": None,
        "e": None,
    }
    assert frames.stages(model.rows).rows() == [
        ("OZKCC", 1, 0, 0, 0),
        ("all MEZKCC", 3, 2, 0, 1),
        ("Kafka coordination", 1, 0, 0, 0),
    ]
    model.min_stable_s = 10.0
    assert model.rows.filter(group_id="b")["not_ready_reason"].to_list() == [None]
    model.to = ZOOKEEPER
    assert model.rows.filter(model.rows["not_ready_reason"].is_null())["group_id"].to_list() == ["c"]


def test_a_request_names_groups_and_a_bad_pattern_is_refused(model, view):
    model.set_request(pattern="[b-d]", groups="b, d e")
    assert model.requested_rows()["group_id"].to_list() == ["b", "d"]
    assert "Ready: 2 of 2 requested groups, toggled all at once; the rule all_at_once forbids that" in text(view)
    model.wave = 1
    assert "requested groups, toggled in 2 waves of at most 1, with 60 s between them" in text(view)
    model.set_request(pattern="(")
    assert "is not a regular expression" in text(view)
    model.set_request(KAFKA, pattern=".*", groups="b x")
    with pytest.raises(NotFound, match="no group 'x'"):
        model.prepare()


def test_waves_are_executed_and_undone(model, toy):
    plan = approved(model)
    assert (plan.subject, [step.kind for step in plan.steps]) == (
        "5 groups",
        ["wave", "circuit breaker", "wave", "circuit breaker", "wave"],
    )
    model.act()
    model.wait(20)
    assert (model.record.state, set(toy.modes.values())) == (RunState.VERIFIED, {KAFKA})
    assert set(model.rows["stage"]) == {"Kafka coordination"}
    assert model.to_undo == ("the toggles of 3 waves",)
    with pytest.raises(ApprovalError, match="type '5 groups'"):
        model.undo("5")
    model.undo("5 groups")
    model.wait(20)
    assert (model.record.state, set(toy.modes.values())) == (RunState.UNDONE, {None})
    assert len(toy.writes) == 10


def test_a_group_that_fails_stops_the_waves_and_is_named(model, toy, view):
    toy.deaf = {"c"}
    approved(model)
    model.act()
    with pytest.raises(RunError, match="don't follow"):
        model.wait(20)
    assert [mode for mode in toy.modes.values() if mode] == [KAFKA] * 4
    assert frames.failed_groups(model.record).rows() == [("wave-02", "c", "it is <deaf>")]
    (failed,) = parsed(fleet_html.progress(model.record)).select("details")
    assert failed.get_text() == "✗ cc: it is <deaf>"
    assert "4 of 5 groups toggled by this run." in text(view)
    assert rows_of(fleet_html.progress(model.record))[4][2] == "· not begun"


def test_stop_then_all_back_at_once_is_a_plan_to_be_approved(model, toy, view):
    toy.gate.clear()
    approved(model)
    button(view, "Execute the plan").click()
    assert toy.is_writing.wait(20)
    with pytest.raises(IllegalMove, match="one thing at a time"):
        model.plan_all_back()
    button(view, "Stop").click()
    toy.gate.set()
    until(lambda: not model.busy)
    assert model.record.state == RunState.STOPPED
    in_kafka = [name for name, mode in toy.modes.items() if mode == KAFKA]
    assert in_kafka == ["<a>"]
    toy.age_s = dict.fromkeys(NAMES, 1.0)
    model.on_failure, model.overrides, model.groups = "undo", "wave_size", "b"
    button(view, "All back at once").click()
    model.wait(20)
    assert (model.plan.targets, model.plan.on_failure, len(model.plan.steps)) == (tuple(in_kafka), "stop", 1)
    written = len(toy.writes)
    button(view, "Execute the plan").click()
    assert "was not approved: nothing was done" in text(view)
    assert len(toy.writes) == written
    model.typed_subject, model.typed_digest = model.plan.subject, model.plan.digest[:8]
    model.approve()
    model.act()
    model.wait(20)
    assert KAFKA not in toy.modes.values()
    model.refresh()
    assert f"Run {model.record.run_id} is VERIFIED" in model.verify()


def test_to_kafka_all_at_once_is_refused(model):
    model.wave = 0
    model.make_plan()
    with pytest.raises(UnsafePlan, match="all_at_once"):
        model.wait(20)


def test_an_invalid_request_is_refused(model, toy):
    with pytest.raises(InputError, match="not to 'nowhere'"):
        model.set_request("nowhere")
    model.wave = -1
    with pytest.raises(InputError, match="must be 0 or more"):
        model.make_plan()
    assert (model.to, model.plan, toy.writes) == (KAFKA, None, [])


def test_only_the_direction_that_was_asked_for_is_taken_up(model):
    digest = planned(model).digest
    with pytest.raises(InputError, match="leads to 'kafka', not to 'zookeeper'"):
        model.prepare(digest, ZOOKEEPER)
    assert model.plan is None
    model.prepare(digest)
    assert model.plan.digest == digest


def test_scans_are_farther_apart_the_longer_one_takes_and_failures_are_reported(model, toy, view):
    model._reading_s = 0.1
    assert model._pace_s(2.0) == 2.0
    model._reading_s = 3.0
    assert model._pace_s(2.0) == 15.0
    toy.is_away = True
    model.refresh()
    assert "ZooKeeper does not answer" in text(view)
    toy.is_away = False
    model.refresh()
    assert "ZooKeeper does not answer" not in text(view)
    model.stop_watching()
    assert "Not refreshed since " in text(view)


def test_every_input_has_a_name_nothing_is_loaded_and_names_are_escaped(view, model):
    kinds = ipw.Text | ipw.IntText | ipw.FloatText | ipw.Dropdown | ipw.Checkbox | ipw.ToggleButtons | ipw.Button
    names = [each.description for each in below(view) if isinstance(each, kinds)]
    assert all(names)
    assert len(set(names)) == len(names)
    planned(model)
    for each in below(view):
        if isinstance(each, ipw.HTML):
            assert not re.search(r"https?://|<script|@import|url\(|\son\w+=|<a>|<deaf>", each.value), each.value[:200]
    assert "<a>" in text(view)


def test_the_table_is_narrowed_by_stage_by_name_and_to_those_not_ready(view, model, toy):
    toy.old = {"d"}
    model.refresh()
    field(view, "Show stage").value = "OZKCC"
    assert "1 group." in text(view)
    field(view, "Show stage").value = ""
    field(view, "Show only groups that are not ready").value = True
    assert "· the group's stage is OZKCC" in text(view)
    assert "✓ ready" not in text(view)
    field(view, "Show groups").value = "("
    assert "the group_id pattern '(' is not a regular expression" in text(view)
    assert "5 groups; ready for Kafka's assignment: 4" in text(view)


@pytest.fixture
def many(tmp_path, request):
    """A model of so many groups."""
    toy = ToyFleet(*(f"g-{number:04d}" for number in range(request.param)))
    model = open_toy_fleet(toy, tmp_path / "runs")
    model.start_watching(600)
    yield model
    model.close()


@pytest.mark.parametrize("many", [1000], indirect=True)
def test_a_thousand_groups_stay_readable(many):
    view = fleet_wizard(many)
    many.wave = 50
    plan = planned(many)
    shown = view.changes(plan)
    assert len(rows_of(shown)) == len(plan.steps) == 39
    assert len(parsed(shown).select("details")) == 20
    assert rows_of(shown)[0][2].startswith("50 groups, g-0000 to g-0049")
    assert "The first 200 of 1,000 groups" in text(view)
    assert sum(len(each.value) for each in below(view) if isinstance(each, ipw.HTML)) < 100_000


@pytest.mark.parametrize("many", [60], indirect=True)
def test_not_each_item_of_a_run_is_a_picture_of_its_own(many, monkeypatch):
    lower(monkeypatch, run_model, ITEMS_S=3600.0)
    view, pictures = fleet_wizard(many), []
    many.wave = 20
    approved(many)
    many.observe(pictures.append, "record")
    many.act()
    many.wait(60)
    assert "60 of 60 groups toggled by this run." in text(view)
    assert many.record.state == RunState.VERIFIED
    assert len([event for event in many.record.events if event.event == "acted"]) == 60
    assert len(pictures) < 40
    many.plan_all_back()
    many.wait(20)
    ((number, what, groups, *_),) = rows_of(view.changes(many.plan))
    assert (number, what) == ("1", "Toggle 60 groups to ZooKeeper's assignment")
    assert groups.startswith("60 groups, g-0000 to g-0059")
