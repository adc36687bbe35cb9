"""Register plans that move one group."""

from __future__ import annotations

from kit.engine.plan_kind import PlanKind, named
from kit.moves.lock_kind import RUN_LOCK
from kit.subjects import Verb

KIND = "group migration"
PLAN_KINDS = (PlanKind(named(KIND), "kit.moves.group.plan:RECIPES", "kit.moves.group.plan:performer_of", RUN_LOCK),)
PLAN_VERBS = {
    "group": Verb(
        "kit.moves.group.verb:app", "Move one group along KIP-125's path, one stage or several, forward or back."
    )
}
FRAMES = {
    "member_lag": "kit.moves.group.frames:member_lag",
    "members": "kit.moves.group.frames:members",
    "toggle_handovers": "kit.moves.group.frames:toggle_handovers",
}
RULES = {"group": "kit.moves.group.rules:RULES"}
