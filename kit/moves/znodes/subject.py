"""Register plans that delete persistent znodes of members and owners."""

from __future__ import annotations

from kit.engine.plan_kind import PlanKind, named
from kit.moves.lock_kind import RUN_LOCK
from kit.subjects import Verb

DELETE_ZNODES = "deletion of persistent znodes"
PLAN_KINDS = (
    PlanKind(named(DELETE_ZNODES), "kit.moves.znodes.steps:RECIPES", "kit.moves.znodes.plan:performer_of", RUN_LOCK),
)
PLAN_VERBS = {
    "delete-znodes": Verb(
        "kit.moves.znodes.verb:app", "Delete persistent registrations and owner znodes of groups in ZooKeeper."
    )
}
RULES = {"delete-znodes": "kit.moves.znodes.plan:RULES"}
