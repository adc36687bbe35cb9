"""Define how each step of a move is made again from its parameters, what it reaches, what it asks of its plan's
approval.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kit.engine.model.plan import Consent, Plan
from kit.engine.model.recipes import Recipe, Recipes
from kit.engine.model.step import Step
from kit.errors import PlanError
from kit.kraft.analyze.phase import FINALISED
from kit.kraft.move import end_steps, steps
from kit.kraft.move.overrides import left_behind, reported_stopped, reports_voters
from kit.kraft.move.parameters import (
    HandBackParameters,
    KraftParameters,
    OrderParameters,
    RollParameters,
    StopParameters,
    UnregisterParameters,
)
from kit.kraft.move.steps import consent_of

_MAKERS: Mapping[str, tuple[type[KraftParameters], Callable[[str, Any], Step]]] = {
    steps.ROLL: (RollParameters, steps.roll_step),
    steps.START: (OrderParameters, steps.start_step),
    steps.STOP: (StopParameters, steps.stop_step),
    steps.HAND_BACK: (HandBackParameters, steps.hand_back_step),
    steps.WIPE: (OrderParameters, steps.wipe_step),
    steps.COMPARE: (KraftParameters, steps.compare_step),
    steps.FINALISE: (OrderParameters, end_steps.finalise_step),
    steps.MEND: (HandBackParameters, steps.repair_step),
    steps.FAIL_OVER_STEP: (OrderParameters, steps.fail_over_step),
    steps.FLAG_STEP: (OrderParameters, end_steps.return_flag_step),
    steps.ARCHIVE: (KraftParameters, end_steps.archive_step),
    steps.LIST: (KraftParameters, end_steps.list_step),
    steps.UNREGISTER_STEP: (UnregisterParameters, steps.unregister_step),
}


def parameters_of(step: Step) -> KraftParameters:
    """Return the parameters of any step of a move, in the class of its kind.

    Raises:
        PlanError: a parameter is missing, unknown or of another type.
    """
    return _MAKERS[step.kind][0].of(step)


def _remake(step: Step) -> Step:
    return _MAKERS[step.kind][1](step.step_id, parameters_of(step))


def _consent(plan: Plan, step: Step) -> Consent:
    parameters = parameters_of(step)
    if parameters.left_behind != left_behind(plan.overridden):
        raise PlanError(
            f"step {step.step_id!r} leaves other groups behind than those that the plan's overridden rules name"
        )
    if parameters.reported_stopped != reported_stopped(plan.overridden):
        raise PlanError(f"step {step.step_id!r} calls other controllers stopped than the plan's overridden rules name")
    if parameters.reports_voters != reports_voters(plan.overridden):
        raise PlanError(f"step {step.step_id!r} takes voters for known that the plan's overridden rules do not name")
    is_final = step.kind == steps.FINALISE
    if is_final != (parameters.to_phase == FINALISED) and is_final:
        raise PlanError(f"step {step.step_id!r} finalises a plan to {parameters.to_phase!r}")
    return consent_of(parameters.to_phase, parameters.cluster_name, plan.overridden)


def _target(step: Step) -> frozenset[str]:
    return frozenset({parameters_of(step).target})


RECIPES: Recipes = {kind: Recipe(_remake, _target, _consent) for kind in steps.KINDS}
