"""The wizard of a move to KRaft: what it proposes, which plans it takes, what it shows of each node."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from bs4 import BeautifulSoup

from kit.engine.execution.dry_run import DryRun, DryStep
from kit.engine.model.event import Event
from kit.engine.model.states import RunState
from kit.engine.rendering.text import plan_text
from kit.errors import InputError, UnsafePlan
from kit.kraft.analyze.phase import NEXT_STEPS, PHASES, UNKNOWN
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.steps import start_step
from kit.kraft.status import _judged
from kit.operations.operations import Operations
from kit.profile import KraftSettings, Profile
from tests.kraft_records import SOUND, node
from tests.unit.kraft.move.move_plans import WORDS, in_phase, plan_to
from tests.unit.widgets.shown import button, field, text
from widgets.kraft.html import nodes, orders
from widgets.kraft.model import KraftMove
from widgets.kraft.view import KraftWizard
from widgets.run import html


class Toy(Operations):
    """Makes plans without a cluster; ``refusal`` is raised instead."""

    refusal: Exception | None = None

    def make_plan(self, request, overrides=(), made_by=None):
        self.asked = (request, overrides)
        if self.refusal is not None:
            raise self.refusal
        return self.save_plan(plan_to(request.to_phase, parameters={"to_phase": request.to_phase}))

    def dry_run(self, plan):
        return DryRun((), tuple(DryStep(step, True, "it may") for step in plan.steps))


@pytest.fixture
def phases():
    """Return what the next observation sees."""
    return ["dual write"]


@pytest.fixture
def move(tmp_path, phases):
    named = {"name": "production", "file": Path("/x/offramp.toml"), "bootstrap_servers": "h:1"}
    profile = Profile(**named, kraft=KraftSettings(controllers="3000@host:9093"))
    cluster = SimpleNamespace(
        name="production", cluster_id="abc", confirmed_id=lambda **_: "abc", profile=profile, zookeeper=True
    )
    made = KraftMove(
        lambda say, tell: Toy(cluster, tmp_path, say, tell),
        lambda: replace(_judged(in_phase(phases[-1]).facts), cluster_name="production"),
        "production",
    )
    yield made
    made.close()


@pytest.mark.parametrize(
    ("phase", "following"),
    [
        ("zookeeper", "controllers"),
        ("controllers", "dual write"),
        ("dual write", "kraft"),
        ("kraft", "finalised"),
        ("finalised", "finalised"),
    ],
)
def test_the_next_phase_is_proposed(move, phases, phase, following):
    phases.append(phase)
    move.refresh()
    assert (move.phase, move.next_phase) == (phase, following)


def test_a_request_becomes_a_plan_with_its_overrides(move):
    move.set_request("zookeeper", node_timeout_s=60.0, overrides="R03_known, other")
    move.prepare()
    request, overrides = move.operations.asked
    assert (request.to_phase, request.node_timeout_s, overrides) == ("zookeeper", 60.0, ["R03_known", "other"])
    assert move.plan.subject == "roll back production"
    digest = move.plan.digest
    with pytest.raises(InputError, match="leads to 'zookeeper', not to 'kraft'"):
        move.prepare(digest, "kraft")
    assert move.plan is None


def test_a_gate_that_is_not_met_is_shown_and_raised(move):
    move.operations.refusal = UnsafePlan("old_consumers: shop (1)")
    with pytest.raises(UnsafePlan, match=r"shop \(1\)"):
        move.prepare()
    assert move.error == "old_consumers: shop (1)"
    assert move.sentence == ""


def test_an_error_is_not_below_the_result_of_the_action_before(move):
    move.prepare()
    assert move.sentence == f"Plan {move.plan.digest[:8]} has 2 steps."
    move.operations.refusal = UnsafePlan("old_consumers: shop (1)")
    with pytest.raises(UnsafePlan):
        move.prepare()
    assert (move.sentence, move.error) == ("", "old_consumers: shop (1)")


@pytest.mark.parametrize(
    ("to_phase", "said"),
    [
        ("kraft", "The run can be undone without a new approval until 24 h after its start."),
        (
            "zookeeper",
            "From step 4 on the run can't be undone; before that it can, without a new approval until 24 h after its"
            " start.",
        ),
        ("finalised", "The run can't be undone."),
        ("fail over", "The run can't be undone."),
        ("repair /migration", "The run can't be undone."),
    ],
)
def test_a_plan_promises_no_undo_that_no_run_offers(to_phase, said):
    plan = plan_to(to_phase)
    assert said in html.plan(plan)
    assert f"undo: {said[0].lower()}{said[1:-1]}\n" in plan_text(plan)


def test_there_is_no_other_phase(move):
    with pytest.raises(InputError, match="there is no phase 'P4'; the phases are"):
        move.to_phase = "P4"


def test_the_view_reports_where_the_cluster_is_and_which_node_is_silent(move):
    wizard = KraftWizard(move)
    texts = " ".join(each.value for each in wizard.children if isinstance(getattr(each, "value", None), str))
    assert "<small>the cluster is here</small>" in texts
    assert "phase dual write" in texts
    assert "broker 1" in texts
    silent = _judged(replace(SOUND, nodes=(node("broker", error="no route <to> host"), node("controller"))))
    assert "no route &lt;to&gt; host" in nodes(silent)


def test_a_node_that_only_the_metadata_log_names_has_a_line_without_an_address():
    only_broker_restarts = _judged(replace(SOUND, nodes=(node("controller"),)))
    lines = BeautifulSoup(nodes(only_broker_restarts), "html.parser").find_all("tr")
    assert [cell.get_text() for cell in lines[1].find_all("td")[:3]] == ["broker 1", "–", "no broker names its address"]


def test_the_undo_is_offered_where_there_is_one_and_forgets_overrides(move, phases):
    move.set_request("kraft", overrides="preflight_known")
    for phase, is_offered in (("zookeeper", False), ("controllers", True), ("kraft", True), ("finalised", False)):
        phases.append(phase)
        move.refresh()
        assert ("rollback" in move.possible) is is_offered, phase
    move.plan_rollback()
    move.wait()
    request, overrides = move.operations.asked
    assert (request.to_phase, overrides, move.plan.subject) == ("zookeeper", [], "roll back production")


def test_an_override_is_forgotten_at_the_end_of_the_last_phase_too():
    reached = SimpleNamespace(to_phase="finalised", next_phase="finalised", overrides="soak", refresh=lambda: None)
    reached.record = SimpleNamespace(plan=SimpleNamespace(parameters={"to_phase": "finalised"}))
    KraftMove._reached(reached)
    assert (reached.to_phase, reached.overrides) == ("finalised", "")


def test_a_fail_over_and_a_repair_are_asked_for_as_phases_are(move):
    wizard = KraftWizard(move)
    assert field(wizard, "To phase").options[-2:] == ("fail over", "repair")
    for goal in ("fail over", "repair"):
        move.to_phase = goal
        assert "Gates that may be overridden: none." in text(wizard)


def test_the_registration_of_a_broker_that_is_gone_can_be_ended_and_no_other(move):
    wizard = KraftWizard(move)
    goals = field(wizard, "To phase")
    known = goals.options
    move.set_request("zookeeper", overrides="R03_known")
    broker_7 = replace(SOUND.registrations[0], node_id=7)
    facts = in_phase("dual write").facts
    seen = replace(facts, registrations=(*facts.registrations, replace(broker_7, is_fenced=True)))
    for is_fenced, offered in ((False, ()), (True, ("unregister broker 7",)), (False, ())):
        now = replace(seen, registrations=(*facts.registrations, replace(broker_7, is_fenced=is_fenced)))
        move.status = replace(_judged(now), cluster_name="production")
        assert goals.options == (*known, *offered)
        assert (goals.value, move.to_phase, move.overrides) == ("zookeeper", "zookeeper", "R03_known")
    move.set_request("unregister broker 7")
    move.prepare()
    assert (goals.value, move.operations.asked[0].to_phase) == ("unregister broker 7", "unregister broker 7")
    assert move.plan.subject == "unregister broker 7 production"
    goals.value = "kraft"
    assert (move.to_phase, goals.options) == ("kraft", known)
    with pytest.raises(InputError, match="there is no phase 'unregister broker x'; the phases are"):
        move.to_phase = "unregister broker x"


def test_every_phase_has_a_next_step(move, phases):
    for phase in (*PHASES, UNKNOWN):
        assert NEXT_STEPS[phase].endswith(".")
    wizard = KraftWizard(move)
    assert "Next: Check whether both stores hold the same values." in text(wizard)
    said = "old_consumers:GROUP: no group under /consumers has a live member (a second person must then approve)"
    assert f"Gates that may be overridden: {said}." in text(wizard)
    move.overrides = "old_consumers:shop"
    assert "The next plan overrides old_consumers:shop." in text(wizard)
    move.to_phase = "zookeeper"
    assert "R03_known: it is known that no broker was formatted" in text(wizard)
    assert "stopped:HOST:PORT: each controller answers, or its host refuses the connection" in text(wizard)
    move.overrides = "R03_known,x"
    assert "! The next plan overrides R03_known, x (unknown gate)." in text(wizard)


@pytest.mark.parametrize(
    ("state", "direction", "said"),
    [
        (RunState.FAILED, "", "Run r1 is FAILED: resume the run, or undo it if an undo is offered."),
        (RunState.ACTING, "forward", "Run r1 is ACTING: its progress is below."),
        (RunState.VERIFIED, "", NEXT_STEPS["kraft"]),
    ],
)
def test_a_run_that_is_not_over_comes_before_the_next_phase(state, direction, said):
    shown = SimpleNamespace(record=SimpleNamespace(run_id="r1", state=state), direction=direction, phase="kraft")
    assert KraftMove.advice.fget(shown) == said


def test_typed_text_enables_the_approval_while_the_cluster_is_watched(move):
    wizard = KraftWizard(move)
    button(wizard, "Make the plan").click()
    move.wait()
    field(wizard, "Type the plan's phrase").value = "move to kraft production"
    move.refresh()
    field(wizard, "Type the digest's first 8").value = move.plan.digest[:8]
    move.refresh()
    assert not button(wizard, "Approve this plan").disabled


def test_each_node_of_a_run_has_a_line():
    words = OrderParameters.made_from(WORDS, nodes=(3000, 3001), to_mode="migration")
    plan = plan_to("kraft", steps=(start_step("01-start", words),))
    line = Event("r", 1, "2026-11-23T12:00:01Z", 0, "attempted", "ACTING", "01-start", *[None] * 9, previous="")
    asked = replace(line, details='{"items":["controller 3000","controller 3001"]}')
    acted = replace(line, event="acted", item="controller 3000", outcome="CONFIRMED", at="2026-11-23T12:00:09Z")
    told = orders(SimpleNamespace(plan=plan, events=(asked, acted)))
    rows = [[cell.get_text() for cell in row.select("td")] for row in BeautifulSoup(told, "html.parser").select("tr")]
    ends = {row[1]: row[4:] for row in rows if row}
    assert ends["controller 3000"] == ["✓ done", "12:00:09"]
    assert ends["controller 3001"] == ["… ordered, not confirmed yet", "12:00:01"]
    assert ends["/migration"] == ["· not begun", "–"]
