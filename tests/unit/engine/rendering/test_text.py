"""People see all of a plan and a run, aligned, and nothing of it can pose as markup or as a terminal's."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from kit.engine.model.observation import Observation
from kit.engine.model.performer import Checked
from kit.engine.model.plan import load_plan, save_plan
from kit.engine.model.step import Change, Step
from kit.engine.rendering.pages import plan_section, record_html
from kit.engine.rendering.text import event_text, observation_rows, plan_rows, plan_text, record_text
from tests.models.engine import ModelRun, make_plan

EVIL = '<script>alert("x")</script>\x1b[2J'


def rich_plan(**changed):
    step = Step(
        step_id="toggle",
        kind="znode",
        title="Set the toggle",
        precondition="every member is MEZKCC",
        verification="every member has joined the Kafka group",
        deadline_s=30,
        changes=(Change("mode", "zookeeper", "kafka"), Change("checkpoint of t-0", None, {"offset": 5})),
        undo="write the old value back",
    )
    last = Step(
        step_id="stop",
        kind="manual",
        title="Stop the old consumers",
        precondition="nothing is assigned to them",
        verification="they are gone",
        deadline_s=0.5,
        changes=(Change("host-1", "running", "stopped"),),
        cannot_be_undone="their hosts are gone",
        needs_person="stop offramp@host-1",
    )
    fields = {
        "steps": (step, last),
        "risks": ("a pause of ten seconds",),
        "overridden": {"stable": "It changed 2 s ago."},
        "parameters": {"share": 0.2},
        "observed": {"members": Observation(3), "lag": Observation(10, "within", 5)},
    }
    return make_plan(**{**fields, **changed})


class _Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.links, self.text = [], set(), [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "onload", "onclick")]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page(text):
    parsed = _Page(text)
    assert parsed.open == []
    assert parsed.links == []
    assert "script" not in parsed.tags
    assert "url(" not in text
    return parsed.text


SAID = [
    "Set the toggle",
    "checkpoint of t-0",
    "every member is MEZKCC",
    "every member has joined the Kafka group",
    "write the old value back",
    "their hosts are gone",
    "stop offramp@host-1",
    "a pause of ten seconds",
    "It changed 2 s ago.",
    "within 5",
    "0.2",
    "shop.orders",
    "Ann",
]


def test_text_and_page_report_everything_of_a_plan():
    plan = rich_plan()
    for text in (plan_text(plan), page(plan_section(plan))):
        for said in [*SAID, plan.digest]:
            assert said in text, said


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ("undone", "the run can be undone without a new approval until 24 h after its start"),
        ("undone stuck", "from step 2 on the run can't be undone; before that it can, without"),
        ("stuck undone", "the run can't be undone"),
        ("waits stuck waits", "the run can't be undone"),
        ("waits undone", "the run can be undone without"),
        ("waits undone waits stuck", "from step 4 on the run can't be undone; before that it can, without"),
    ],
)
def test_text_and_page_promise_no_undo_that_no_run_offers(steps, said):
    """A step that only waits, or reads, is nothing to undo."""
    kinds = {
        "undone": {"changes": (Change("mode", "old", "new"),), "undo": "write the old value back"},
        "stuck": {"changes": (Change("mode", "old", "new"),), "cannot_be_undone": "it is gone"},
        "waits": {"undo": "There is nothing to undo."},
    }
    made = [
        Step(f"s{number}", "toy", kind, "it is there", "it was done", 5, **kinds[kind])
        for number, kind in enumerate(steps.split())
    ]
    plan = make_plan(steps=made)
    (line,) = [each for each in plan_text(plan).splitlines() if each.startswith("undo:")]
    assert line.startswith(f"undo: {said}")
    assert f"Undo: {line.removeprefix('undo: ')}." in page(plan_section(plan))


def test_before_and_after_are_in_columns():
    lines = [line for line in plan_text(rich_plan()).splitlines() if "→" in line]
    assert lines == [
        "   mode               zookeeper → kafka",
        '   checkpoint of t-0          – → {"offset":5}',
        "   host-1  running → stopped",
    ]


def test_rows_of_a_plan():
    rows = plan_rows(make_plan((2, 0)))
    assert [(row["number"], row["item"], row["before"], row["after"]) for row in rows] == [
        (1, "i00", "old", "new"),
        (1, "i01", "old", "new"),
        (2, None, None, None),
    ]
    assert len({tuple(row) for row in rows}) == 1
    assert observation_rows(rich_plan()) == [
        {"name": "members", "value": 3, "tolerance": "exact"},
        {"name": "lag", "value": 10, "tolerance": "within 5"},
    ]


def test_many_groups_are_all_named():
    plan = rich_plan(targets=("a.one", "b.two"))
    for text in (plan_text(plan), page(plan_section(plan))):
        assert "2 groups" in text
        assert "a.one" in text
        assert "b.two" in text


@pytest.mark.parametrize("place", ["kind", "made_by", "cluster_id", "targets", "risks", "parameters", "overridden"])
def test_nothing_poses_as_markup_or_moves_the_cursor(place):
    evil = {"targets": (EVIL,), "risks": (EVIL,), "parameters": {EVIL: EVIL}, "overridden": {EVIL: EVIL}}
    plan = rich_plan(**{place: evil.get(place, EVIL)})
    assert '<script>alert("x")</script>\\x1b[2J' in page(plan_section(plan))
    assert "\x1b" not in plan_section(plan) + plan_text(plan)


def test_a_page_of_evidence_reports_what_was_done_and_how_it_ended(tmp_path):
    world = ModelRun(tmp_path, (2,), made_by="Ann <ann@example.org>")
    world.run.act()
    text = page((world.folder / "report.html").read_text())
    assert (world.folder / "report.html").read_text() == record_html(world.run.record)
    assert "prefers-color-scheme: dark" in record_html(world.run.record)
    for said in ("VERIFIED", "Every step was executed", "Bob", "i01", "CONFIRMED", "Ann <ann@example.org>"):
        assert said in text, said
    world.run.undo()
    text = page((world.folder / "report.html").read_text())
    assert "UNDONE" in text
    assert "undo of s0" in text


def test_a_failure_is_on_the_page_and_in_the_text(tmp_path):
    world = ModelRun(tmp_path)
    world.performer.check = lambda step: Checked(False, EVIL)
    world.run.act()
    text = page(record_html(world.run.record))
    assert "FAILED" in text
    assert '<script>alert("x")</script>\\x1b[2J' in text
    told = record_text(world.run.record)
    assert "\x1b" not in told
    assert told.startswith(f"{world.folder.name}: FAILED\nstep 's0': the precondition does not hold: <script>")


def test_an_event_is_one_line(tmp_path):
    world = ModelRun(tmp_path)
    world.run.act()
    lines = record_text(world.run.record).splitlines()
    assert len([line for line in lines if re.match("2026-11-21T12:00:0", line)]) == len(world.run.record.events)
    acted = next(event for event in world.run.record.events if event.event == "acted")
    assert event_text(acted).endswith('acted        CONFIRMED s0/i00 "old" → "new"')


def test_the_page_shows_what_was_saved(tmp_path):
    plan = rich_plan()
    save_plan(plan, tmp_path / "plan.json")
    loaded = load_plan(tmp_path / "plan.json")
    assert (plan_text(loaded), plan_section(loaded)) == (plan_text(plan), plan_section(plan))
