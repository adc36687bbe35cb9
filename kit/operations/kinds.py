"""The kinds of plans that subjects registered, and the recipes of all their steps."""

from __future__ import annotations

from functools import cache

from kit.engine.model import recipes
from kit.engine.model.plan import Plan
from kit.engine.plan_kind import PlanKind
from kit.errors import PlanError
from kit.subjects import registered


def plan_kinds() -> tuple[PlanKind, ...]:
    return tuple(kind for kinds in registered("PLAN_KINDS") for kind in kinds)


def kind_of(plan: Plan) -> PlanKind:
    """The registered kind of a plan.

    Raises:
        PlanError: no subject of this version registered it, or several did: its steps are not those of its kind.
    """
    kinds = [kind for kind in plan_kinds() if kind.executes(plan)]
    if len(kinds) != 1:
        raise PlanError(f"a plan of kind {plan.kind!r} can't be executed by this version of offramp. Make a new plan")
    return kinds[0]


@cache
def all_recipes() -> recipes.Recipes:
    """By the kind of step, of all kinds of plans."""
    return {name: recipe for kind in plan_kinds() for name, recipe in kind.load_recipes().items()}


def refuse_altered(plan: Plan) -> None:
    """Make each step again by all recipes that there are, and compare.

    Raises:
        PlanError: see :func:`kit.engine.model.recipes.refuse_altered`.
    """
    recipes.refuse_altered(plan, all_recipes())
