"""Register plans that toggle many groups."""

from __future__ import annotations

from kit.engine.plan_kind import PlanKind, named
from kit.moves.lock_kind import RUN_LOCK
from kit.subjects import Verb

KIND = "fleet toggle"
PLAN_KINDS = (PlanKind(named(KIND), "kit.moves.fleet.plan:RECIPES", "kit.moves.fleet.plan:performer_of", RUN_LOCK),)
PLAN_VERBS = {
    "fleet": Verb("kit.moves.fleet.verb:app", "Toggle all stable groups with only migration-enabled members, in waves.")
}
FRAMES = {
    "failed_groups": "kit.moves.fleet.frames:failed_groups",
    "groups": "kit.moves.fleet.frames:groups",
    "stages": "kit.moves.fleet.frames:stages",
}
RULES = {"fleet": "kit.moves.fleet.plan:RULES"}
