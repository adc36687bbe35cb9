"""Real plans of groups whose names resemble secrets: made, approved, executed, undone, verified."""

from __future__ import annotations

import json

import pytest

from kit.clients.paths import is_znode_name
from kit.engine.model.observation import Observation
from kit.engine.model.plan import parse_plan
from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.engine.model.values import readable
from kit.moves.fleet.wave import WaveParameters, wave_step
from kit.moves.group.plan import GroupPlanRequest
from kit.moves.group.toggle import Toggle
from tests.generators.names import SECRET_LIKE
from tests.models.engine import make_plan
from tests.models.offsets import ToyOffsets, open_toy
from tests.models.operations import ToyGroup, ToyOperations


@pytest.mark.parametrize("name", [name for name in SECRET_LIKE if is_znode_name(name)])
def test_replaced_toggled_and_undone(tmp_path, name):
    operations = ToyOperations(ToyGroup(), tmp_path / "runs", lambda sentence: None, None)
    plan = operations.make_plan(GroupPlanRequest(name, "all KC", soak_s=0.1, min_stable_s=0.0, observe_s=0.0))
    assert {step.kind for step in plan.steps} >= {"replace", "toggle"}
    assert operations.plan(plan.digest[:8]) == plan
    operations.approve(plan, name, plan.digest[:8], "Bob")
    run = operations.begin(plan)
    run.act().raise_unless()
    run.undo().raise_unless(RunState.UNDONE)
    record = load_run(run.folder)
    assert record.plan.targets == (name,)
    assert {event.withheld for event in record.events} == {None}


def test_a_wave_of_all_back_at_once():
    """Its parameters map each group's name to what its toggle holds, a text."""
    groups = tuple(filter(is_znode_name, SECRET_LIKE))
    step = wave_step(WaveParameters.of_toggles(1, dict.fromkeys(groups, Toggle("kafka", 1)), "zookeeper"))
    assert set(step.parameters["before"]) == set(groups)
    plan = make_plan(targets=groups, steps=(step,), observed={"wave 1 toggles": Observation({})})
    assert parse_plan(json.loads(readable(plan.to_json())), "here") == plan


@pytest.mark.parametrize("name", ["reset-password", "auth.secret", "rotate-credentials", "user_api-key"])
def test_offsets_moved_and_back(monkeypatch, tmp_path, name):
    toy = ToyOffsets()
    toy.install(monkeypatch)
    toy.logs |= {(name, 0): (10, 100)}
    toy.zookeeper |= {(name, name, 0): 60}
    model = open_toy(toy, tmp_path / "runs")
    try:
        model.set_request(groups=name)
        model.make_plan()
        model.wait(20)
        model.typed_subject, model.typed_digest = name, model.plan.digest[:8]
        model.approve()
        model.act()
        model.wait(20)
        assert model.record.state == RunState.VERIFIED
        assert toy.kafka == {(name, name, 0): 60}
        model.typed_undo = name
        model.undo()
        model.wait(20)
        assert model.record.state == RunState.UNDONE
        assert {event.withheld for event in model.record.events} == {None}
    finally:
        model.close()
