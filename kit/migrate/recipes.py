"""The recipes of all steps that this version makes; each stands beside the plans that have such steps."""

from __future__ import annotations

from kit.migrate.engine import recipes
from kit.migrate.engine.plan import Plan
from kit.migrate.fleet import plan as fleet
from kit.migrate.group import plan as group
from kit.migrate.kraft import recipes as kraft
from kit.migrate.offsets import group_steps
from kit.migrate.offsets import steps as offsets
from kit.migrate.protocol import plan as protocol

RECIPES: recipes.Recipes = {
    **group.RECIPES,
    **fleet.RECIPES,
    **offsets.RECIPES,
    **group_steps.RECIPES,
    **protocol.RECIPES,
    **kraft.RECIPES,
}


def refuse_altered(plan: Plan) -> None:
    """Make each step again by all recipes that there are, and compare.

    Raises:
        PlanError: see :func:`kit.migrate.engine.recipes.refuse_altered`.
    """
    recipes.refuse_altered(plan, RECIPES)
