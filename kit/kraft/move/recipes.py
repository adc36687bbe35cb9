"""How each step of a move is made again from its parameters, what it reaches, what it asks of its plan's approval."""

from __future__ import annotations

from kit.engine.model.plan import Consent, Plan
from kit.engine.model.recipes import Recipe, Recipes
from kit.engine.model.step import Step
from kit.errors import PlanError
from kit.kraft.analyze.phase import FINALISED
from kit.kraft.move import end_steps, steps
from kit.kraft.move.overrides import left_behind, reported_stopped, reports_voters
from kit.kraft.move.steps import KraftParameters, consent_of

_MAKERS = {
    steps.ROLL: steps.roll_step,
    steps.START: steps.start_step,
    steps.STOP: steps.stop_step,
    steps.HAND_BACK: steps.hand_back_step,
    steps.WIPE: steps.wipe_step,
    steps.COMPARE: steps.compare_step,
    steps.FINALISE: end_steps.finalise_step,
    steps.MEND: steps.mend_step,
    steps.FAIL_OVER_STEP: steps.fail_over_step,
    steps.FLAG_STEP: end_steps.return_flag_step,
    steps.ARCHIVE: end_steps.archive_step,
    steps.LIST: end_steps.list_step,
    steps.UNREGISTER_STEP: steps.unregister_step,
}


def _remake(step: Step) -> Step:
    return _MAKERS[step.kind](step.step_id, KraftParameters.of(step))


def _consent(plan: Plan, step: Step) -> Consent:
    words = KraftParameters.of(step)
    if words.left_behind != left_behind(plan.overridden):
        raise PlanError(f"step {step.step_id!r} leaves other groups behind than the plan's overridden rules name")
    if words.reported_stopped != reported_stopped(plan.overridden):
        raise PlanError(f"step {step.step_id!r} reports other controllers as stopped than the plan overrides")
    if words.reports_voters != reports_voters(plan.overridden):
        raise PlanError(f"step {step.step_id!r} takes voters for known that the plan's overridden rules do not name")
    is_final = step.kind == steps.FINALISE
    if is_final != (words.to_phase == FINALISED) and is_final:
        raise PlanError(f"step {step.step_id!r} finalises a plan to {words.to_phase!r}")
    return consent_of(words.to_phase, words.cluster_name, plan.overridden)


def _target(step: Step) -> frozenset[str]:
    return frozenset({KraftParameters.of(step).target})


RECIPES: Recipes = {kind: Recipe(_remake, _target, _consent) for kind in steps.KINDS}
