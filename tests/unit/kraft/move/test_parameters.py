"""The parameters of each kind of step: typed in the code, and stored as before they were."""

from dataclasses import replace

import pytest

from kit.engine.model.step import Step
from kit.errors import PlanError
from kit.kraft.move.parameters import KraftParameters, OrderParameters, RollParameters
from kit.kraft.move.recipes import parameters_of
from tests.unit.kraft.move.move_plans import WORDS, plan_to

OLD = {
    "controllers": "d1afdf53ab9557ce79e5234a44fd41e040a543b524800ddc9e67ddd60fc8075f",
    "dual write": "ee1b805051e422709275a3a760d8f95b0b87ba5e27d0b23efcb0ef6ea61a3079",
    "kraft": "99a10179a4a8da63aaf988c05765d91ab4df4be574ca220dfdcd86f1b97dc90a",
    "finalised": "4eb96ca2032272b0ed6fb79430c526b1194fd950ddf98f63d312642cac6709f0",
    "zookeeper": "36a609800d788c9f26d49e7c536faca5fd685ae62cef56a699dc38b0c9221507",
    "fail over": "825e016f72ec9bf99d41fd6ff45e76ccf27e32d9f35aadf0f952101b6398d0d3",
    "repair /migration": "1d064c968e28f2e842edffd57e2ee72103bdca34f0a960b3361c7d3b55bf63c1",
    "repair /controller": "1408ee62e373fc2099880d0e3287f465ea1169696c13dd7b0960320870e3c28f",
    "repair /controller_epoch": "4ac89fdb62802efcec229f3c447ca6b94f3ec48fbdb0bc7bda90d7b429413c08",
    "unregister broker 9": "084e28adcacbd46c585a87caa71a0f989da72979c58027e8d94557f479fbdded",
}
"""To a phase → the digest of the plan as the version before typed parameters stored it."""
STORED = {*KraftParameters.UNUSED, *WORDS.to_json()}


@pytest.mark.parametrize("to_phase", OLD)
def test_a_plan_of_before_is_the_same_plan(to_phase):
    """Approvals and evidence name a plan by its digest, which is over all that is stored."""
    assert plan_to(to_phase).digest == OLD[to_phase]


@pytest.mark.parametrize("to_phase", OLD)
def test_each_step_stores_all_parameters_and_reads_its_own(to_phase):
    for step in plan_to(to_phase).steps:
        assert step.parameters.keys() == STORED
        assert parameters_of(step).to_json() == step.parameters


def changed(step: Step, **parameters: object) -> Step:
    return replace(step, parameters={**step.parameters, **parameters})


def test_a_parameter_of_another_kind_of_step_is_refused():
    roll, compare = plan_to("dual write").steps[0], plan_to("dual write").steps[-1]
    assert isinstance(parameters_of(roll), RollParameters)
    assert not isinstance(parameters_of(compare), OrderParameters)
    for step, name, value in ((roll, "has_claim", True), (compare, "nodes", (1,)), (compare, "more", 1)):
        with pytest.raises(PlanError, match=f"parameter '{name}' is missing or unknown"):
            parameters_of(changed(step, **{name: value}))
