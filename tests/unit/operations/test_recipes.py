"""The text that people read of a step is what its actor does: every edit of a plan that could part the two is
refused.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kit.engine.model.observation import Observation
from kit.engine.model.plan import STOP, Plan
from kit.engine.model.step import Change
from kit.errors import PlanError
from kit.moves.fleet.wave import WaveParameters, wave_step
from kit.moves.group.circuit_breaker import CircuitBreakerParameters, circuit_breaker_step
from kit.moves.group.replacement import ReplaceParameters, replace_step
from kit.moves.group.soak import SoakParameters, soak_step
from kit.moves.group.toggle import Toggle, ToggleParameters, toggle_step
from kit.operations.kinds import refuse_altered
from tests.models.engine import START, make_plan

STEPS = {
    "replace": replace_step(
        "01-replace", ReplaceParameters("orders", {"OZKCC": 2}, {"OZKCC": 1, "MEZKCC": 1}, "swap", True, ("a",))
    ),
    "toggle": toggle_step("02-toggle", ToggleParameters("orders", None, None, "kafka")),
    "soak": soak_step("03-soak", SoakParameters("orders", "MEZKCC", 60.0, 1000)),
    "wave": wave_step(
        WaveParameters.of_toggles(1, {"orders": Toggle("zookeeper", 3), "bills": Toggle(None, None)}, "kafka")
    ),
    "pause": circuit_breaker_step(CircuitBreakerParameters(1, ("orders",), 60.0, 10, 100.0)),
}
AFFECTED = {name for step in STEPS.values() for name in step.affects}


def plan_of(step, targets=("orders", "bills")) -> Plan:
    steps = (step, *(() if step.changes else (replace(STEPS["toggle"], step_id="99-toggle"),)))
    return Plan(
        kind="group migration",
        cluster_id="c",
        targets=targets,
        made_by="Ann",
        made_at=START,
        observed={name: Observation(1) for name in AFFECTED},
        steps=steps,
        on_failure=STOP,
    )


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_that_was_made_here_is_itself(step):
    refuse_altered(plan_of(step))


EDITS = {
    "title": lambda step: replace(step, title="Toggle dev-sandbox"),
    "precondition": lambda step: replace(step, precondition="nothing"),
    "verification": lambda step: replace(step, verification="somebody looked"),
    "deadline": lambda step: replace(step, deadline_s=step.deadline_s + 1),
    "undo": lambda step: replace(step, undo="It is put back by itself."),
    "affects": lambda step: replace(step, affects=()) if step.affects else replace(step, title="x"),
    "changes": lambda step: replace(step, changes=(*step.changes, Change("more", 1, 2))),
    "fewer changes": lambda step: replace(step, changes=()) if step.changes else replace(step, title="x"),
    "performed by": lambda step: replace(step, performed_by="nobody"),
    "needs person": lambda step: replace(step, needs_person="go home"),
    "a parameter more": lambda step: replace(step, parameters={**step.parameters, "also": "dev-sandbox"}),
    "a parameter less": lambda step: replace(step, parameters=dict(list(step.parameters.items())[1:])),
    "no parameters": lambda step: replace(step, parameters={}),
    "step id and kind": lambda step: replace(step, kind="unheard-of"),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_whatever_is_edited_is_refused(step, edit):
    with pytest.raises(PlanError, match=step.step_id):
        refuse_altered(plan_of(EDITS[edit](step)))


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("soak", "soak_s", "60.0"),
        ("soak", "soak_s", True),
        ("soak", "lag_tolerance", 1000.5),
        ("soak", "group", None),
        ("toggle", "version", "0"),
        ("toggle", "before", 1),
        ("replace", "by_person", 1),
        ("replace", "before", {"OZKCC": 2.0}),
        ("replace", "members", "a"),
        ("replace", "members", (1,)),
        ("wave", "versions", {"orders": "3", "bills": None}),
        ("pause", "groups", "orders"),
    ],
)
def test_a_parameter_of_another_type_is_refused(kind, name, value):
    step = replace(STEPS[kind], parameters={**STEPS[kind].parameters, name: value})
    with pytest.raises(PlanError, match=f"parameter '{name}' can't be "):
        refuse_altered(plan_of(step))


def test_typed_parameters_are_those_of_the_step():
    assert SoakParameters.of(STEPS["soak"]) == SoakParameters("orders", "MEZKCC", 60.0, 1000)
    assert WaveParameters.of(STEPS["wave"]).toggles == {"orders": Toggle("zookeeper", 3), "bills": Toggle(None, None)}
    assert ReplaceParameters.of(STEPS["replace"]).direction == ("OZKCC", "MEZKCC")


@pytest.mark.parametrize("step", [step for name, step in STEPS.items() if name != "wave"])
def test_a_group_in_the_parameters_that_no_one_sees(step):
    """Seen in a review: shown as another group's toggle, and it wrote this one's."""
    name = "groups" if "groups" in step.parameters else "group"
    other = ("bills",) if name == "groups" else "bills"
    with pytest.raises(PlanError):
        refuse_altered(plan_of(replace(step, parameters={**step.parameters, name: other}), targets=("orders",)))


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_no_step_reaches_beyond_the_targets(step):
    with pytest.raises(PlanError, match="which is no target of the plan"):
        refuse_altered(plan_of(step, targets=("somebody-elses",)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"KC": 3}, {"KC": 2, "OZKCC": 1}),
        ({"OZKCC": 2}, {"OZKCC": 1, "MEZKCC": 5}),
        ({"OZKCC": 2}, {"MEZKCC": 1}),
        ({"OZKCC": 2}, {"OZKCC": 3, "MEZKCC": -1}),
    ],
)
def test_members_that_read_twice_or_come_from_nowhere_are_no_step(before, after):
    with pytest.raises(PlanError):
        replace_step("x", ReplaceParameters("orders", before, after, "swap", False))


@pytest.mark.parametrize("times", [{"quiet_s": 0}, {"quiet_s": -1}, {"step_timeout_s": 1e18}])
def test_senseless_times_are_no_step(times):
    with pytest.raises(PlanError, match="at most one day"):
        replace_step("x", ReplaceParameters("orders", {"OZKCC": 1}, {"MEZKCC": 1}, "swap", False, **times))


def test_plans_of_an_older_format_are_shown_and_no_more():
    with pytest.raises(PlanError, match="made by an older version"):
        refuse_altered(make_plan(format=1))


@pytest.mark.parametrize("seconds", [0, -1, 1e300, float("inf"), float("nan")])
def test_an_undo_limit_that_no_clock_reaches_is_none(seconds):
    with pytest.raises(PlanError, match="the time limit of an undo is"):
        make_plan(way_back_s=seconds)
