"""Register plans that move one group between the classic and the consumer protocol."""

from __future__ import annotations

from kit.engine.plan_kind import PlanKind, named
from kit.moves.lock_kind import RUN_LOCK
from kit.subjects import Verb

KIND = "protocol migration"
PLAN_KINDS = (
    PlanKind(
        named(KIND), "kit.moves.protocol.performer:RECIPES", "kit.moves.protocol.performer:performer_of", RUN_LOCK
    ),
)
PLAN_VERBS = {
    "protocol": Verb(
        "kit.moves.protocol.verb:app", "Move groups to the consumer protocol (KIP-848), or back to the classic one."
    )
}
RULES = {"protocol": "kit.protocol.checks:RULES"}
