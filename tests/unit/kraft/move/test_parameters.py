"""The parameters of each kind of step: typed in the code, and stored as before they were."""

from dataclasses import replace

import pytest

from kit.engine.model.step import Step
from kit.errors import PlanError
from kit.kraft.move.parameters import KraftParameters, OrderParameters, RollParameters
from kit.kraft.move.recipes import parameters_of
from tests.unit.kraft.move.move_plans import WORDS, plan_to

OLD = {
    "controllers": "ed0b52dbd5297550cfa4662a6cfbf87d1c17ae09677db92e9a14c032b439f2d9",
    "dual write": "e14af1c1318b897f3eb88abce9251dd0cb2777a5075bdd4db2c23732dbd2fb26",
    "kraft": "1766b0e115f716b236981d19fb21a9c1b5ad323a4730c38c8dba76a2cde3c129",
    "finalised": "c7c1822bf1190e43ba66504667e69adcec4b73b58c8323583a8bfaa3914c08af",
    "zookeeper": "b50ee304625efb443ba8ac0b299800c2705747ac2e3eca66983ad94cd9b53386",
    "fail over": "d14fa742d38103142814c7264c6229ad0f419672e2c5be59ccd3e65446aad75b",
    "repair /migration": "83e6d77ff33c8dd9992de1cc6831d17a4384a3cb12fd259de2b1b96baf8899f2",
    "repair /controller": "b31e00c899eb2e6ff08f951ca05ebf69ed050c010dfb5cf5fd1f5f1819956706",
    "repair /controller_epoch": "18bd85cb6090904775f89ef8210ae8c88f6e81047ee9ebf01938bddfb9b2a369",
    "unregister broker 9": "e56718e4bb8071a87068961c8e56020d51cb43a9cc0478023b8606097fadff32",
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
