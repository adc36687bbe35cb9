"""The recipes of all steps that this version makes; each stands beside the plans that have such steps."""

from __future__ import annotations

from kit.engine.model import recipes
from kit.engine.model.plan import Plan
from kit.kraft.move import recipes as kraft
from kit.moves.fleet import plan as fleet
from kit.moves.group import plan as group
from kit.moves.offsets import group_steps, steps as offsets
from kit.moves.protocol import plan as protocol
from kit.moves.znodes import steps as znodes

RECIPES: recipes.Recipes = {
    **group.RECIPES,
    **fleet.RECIPES,
    **offsets.RECIPES,
    **group_steps.RECIPES,
    **protocol.RECIPES,
    **znodes.RECIPES,
    **kraft.RECIPES,
}


def refuse_altered(plan: Plan) -> None:
    """Make each step again by all recipes that there are, and compare.

    Raises:
        PlanError: see :func:`kit.engine.model.recipes.refuse_altered`.
    """
    recipes.refuse_altered(plan, RECIPES)
