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
    "dual write": "ef2fdd9b5917c9ee3ea780ff41442aedefb33d1a54f1b391a18ba46df41888d0",
    "kraft": "8d2f3b1431eb6ff79f3b87861095f8ebbd394886cca71b4e3551a939f43eca17",
    "finalised": "2fa4f813a3f0c04d93e282bf1e115c20f76a265e8cdb90379d75f82003e0493f",
    "zookeeper": "318f1c29a61ae3cc32b31cab80bc7b3361bd2c15e2077e6bd2ba162de5cd7e76",
    "fail over": "1d3911a5849aad0ad1714b9a3750feab3a0f09d6df37c7c1484f76e526e4eee6",
    "repair /migration": "885c8c82a06f7584826b0d184453ec49920ca545ee757b3b0bc1125208559153",
    "repair /controller": "094884dfcbbd927d7010a4bf2add5254437a4691a11e152a25dbb26eb0d17678",
    "repair /controller_epoch": "cef4f162e4042e60365f1665cac0d75c5ba2be5bf3fffd1865e6916a57715981",
    "unregister broker 9": "91b33f5db699693d13ea343d82284946a4c6126eaffc941aadb51ecf43ff3137",
}
"""To a phase → the digest of the plan. It changes with the text of a step: then plans have to be made again."""
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
