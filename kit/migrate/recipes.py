"""What a step says and what it does are one: each is held against what its own factory makes of its parameters.

Actors act on a step's parameters, people read its title, changes and way back. A plan in which the two differ, or that
reaches beyond its targets, is refused: whoever approved it did not see what it would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kit.errors import OfframpError, PlanError
from kit.migrate.offset_steps import STEP_KINDS, groups_of
from kit.migrate.offset_steps import remade as offset_step_of
from kit.migrate.plan import Plan, refuse_older_format
from kit.migrate.replacement import KIND as REPLACE
from kit.migrate.replacement import replace_step_of
from kit.migrate.soak import KIND as SOAK
from kit.migrate.soak import soak_step_of
from kit.migrate.step import Step
from kit.migrate.toggle import KIND as TOGGLE
from kit.migrate.toggle import toggle_step_of
from kit.migrate.values import Json, canonical
from kit.migrate.wave import BRAKE, WAVE, brake_step_of, wave_step_of

_BY_PARAMETERS: Mapping[str, Callable[[str, Mapping[str, Json]], Step]] = {
    REPLACE: replace_step_of,
    SOAK: soak_step_of,
    TOGGLE: toggle_step_of,
    WAVE: wave_step_of,
    BRAKE: brake_step_of,
}


def refuse_altered(plan: Plan) -> None:
    """Raises:
    PlanError: a step says something else than what it would do, reaches beyond the plan's targets, or is of no kind
        that this version knows; or the plan is of an older format.
    """
    refuse_older_format(plan)
    for step in plan.steps:
        _refuse_altered(step)
        strangers = groups_touched(step) - set(plan.targets)
        if strangers:
            raise PlanError(
                f"step {step.step_id!r} would reach group {min(strangers)!r}, which is no target of the plan"
                f" {plan.digest[:8]} for {plan.subject}: it was altered or forged; nothing is done by it"
            )


def groups_touched(step: Step) -> frozenset[str]:
    """The groups that a step reads or writes."""
    if step.kind in STEP_KINDS:
        return groups_of(step)
    groups = step.parameters.get("groups", (step.parameters.get("group"),))
    assert isinstance(groups, tuple)
    return frozenset(str(group) for group in groups)


def _refuse_altered(step: Step) -> None:
    try:
        made = (
            offset_step_of(step)
            if step.kind in STEP_KINDS
            else _BY_PARAMETERS[step.kind](step.step_id, step.parameters)
        )
    except KeyError as error:
        known = ", ".join(sorted({*STEP_KINDS, *_BY_PARAMETERS}))
        raise PlanError(
            f"step {step.step_id!r} of kind {step.kind!r} is none that this version makes ({known}): {error} is missing"
        ) from error
    except (TypeError, ValueError, AssertionError, AttributeError, OfframpError) as error:
        raise PlanError(f"step {step.step_id!r} can't be made again from its parameters: {error}") from error
    told, done = step.to_json(), made.to_json()
    differs = [name for name in told if canonical(told[name]) != canonical(done[name])]
    if differs:
        name = differs[0]
        raise PlanError(
            f"step {step.step_id!r} says {name} {canonical(told[name])}, but by its parameters it is"
            f" {canonical(done[name])}: the plan was altered or forged; nothing is done by it"
        )
