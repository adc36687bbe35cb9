"""Make a step again from its parameters, so that its text and its effect are one: each step is compared with its own
recipe.

Actors act on a step's parameters, people read its title, changes and undo. A plan in which the two differ, or that
reaches beyond its targets, is refused: whoever approved it did not see what it would do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kit.engine.model.parameters import StepParameters
from kit.engine.model.plan import Consent, Plan, refuse_older_format
from kit.engine.model.step import Step
from kit.engine.model.values import canonical
from kit.errors import OfframpError, PlanError

P = TypeVar("P", bound=StepParameters)


@dataclass(frozen=True, slots=True)
class Recipe:
    """The way in which one kind of step is made again from its parameters, and the targets that it reads or writes.

    ``consent``: what a plan with such a step has to ask of its approval, by the rules that it overrides. ``target_of``:
    the target that an item of the step belongs to; None: all items of such a step belong to one target.
    """

    remake: Callable[[Step], Step]
    groups: Callable[[Step], frozenset[str]]
    consent: Callable[[Plan, Step], Consent | None] = lambda plan, step: None
    target_of: Callable[[str], str] | None = None


Recipes = Mapping[str, Recipe]
"""By the kind of step."""


def of_parameters(
    kind: type[P], make: Callable[[str, P], Step], target_of: Callable[[str], str] | None = None
) -> Recipe:
    """Return the recipe of a step whose parameters name all that it is made from, its group or groups among them."""
    return Recipe(lambda step: make(step.step_id, kind.of(step)), _groups_in_parameters, target_of=target_of)


def targets_of(step: Step, recipes: Recipes) -> dict[str, str]:
    """The target of each item of a step."""
    recipe, items = recipes[step.kind], [change.item for change in step.changes]
    if recipe.target_of is not None:
        return {item: recipe.target_of(item) for item in items}
    if not items:
        return {}
    (target,) = recipe.groups(step)
    return dict.fromkeys(items, target)


def refuse_altered(plan: Plan, recipes: Recipes) -> None:
    """Make each step again by its recipe, and compare.

    Raises:
        PlanError: a step reports something else than what it would do, reaches beyond the plan's targets, or is of no
        kind that this version knows; or the plan is of an older format.
    """
    refuse_older_format(plan)
    for step in plan.steps:
        _refuse_altered(step, recipes)
        _refuse_other_consent(plan, step, recipes[step.kind].consent(plan, step))
        strangers = recipes[step.kind].groups(step) - set(plan.targets)
        if strangers:
            raise PlanError(
                f"step {step.step_id!r} would reach group {min(strangers)!r}, which is no target of the plan"
                f" {plan.digest[:8]} for {plan.subject}: the plan was altered or forged, or another version made it."
                " None of it is executed"
            )


def _refuse_other_consent(plan: Plan, step: Step, wanted: Consent | None) -> None:
    """A plan that asks less of its approval than its steps demand is forged."""
    if plan.consent != wanted:
        raise PlanError(
            f"step {step.step_id!r} requires another approval than the plan {plan.digest[:8]} for {plan.subject}:"
            " the plan was altered or forged, or another version made it. None of it is executed"
        )


def _groups_in_parameters(step: Step) -> frozenset[str]:
    groups = step.parameters.get("groups", (step.parameters.get("group"),))
    assert isinstance(groups, tuple)
    return frozenset(str(group) for group in groups)


def _refuse_altered(step: Step, recipes: Recipes) -> None:
    try:
        made = recipes[step.kind].remake(step)
    except KeyError as error:
        known = ", ".join(sorted(recipes))
        raise PlanError(
            f"step {step.step_id!r} of kind {step.kind!r} can't be made by this version of offramp ({known}): "
            f"{error} is missing. Make a new plan"
        ) from error
    except (TypeError, ValueError, AssertionError, AttributeError, OfframpError) as error:
        raise PlanError(f"step {step.step_id!r} can't be made again from its parameters: {error}") from error
    shown, done = step.to_json(), made.to_json()
    differs = [name for name in shown if canonical(shown[name]) != canonical(done[name])]
    if differs:
        name = differs[0]
        raise PlanError(
            f"step {step.step_id!r} shows {name} {canonical(shown[name])}, but by its parameters it is"
            f" {canonical(done[name])}: the plan was altered or forged, or another version made it. None of it is"
            " executed"
        )
