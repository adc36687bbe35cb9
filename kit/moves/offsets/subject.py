"""Register plans of offsets, and plans that delete whole groups."""

from __future__ import annotations

from kit.engine.model.plan import Plan
from kit.engine.plan_kind import PlanKind, named
from kit.moves.lock_kind import RUN_LOCK
from kit.subjects import Verb
from kit.tables.groups import KAFKA, ZOOKEEPER

DELETE_GROUPS = "deletion"
KIND_OF_STORE = {KAFKA: "kafka_offsets", ZOOKEEPER: "zookeeper_offsets"}
STEP_KINDS = frozenset(KIND_OF_STORE.values())


def _writes_offsets_alone(plan: Plan) -> bool:
    """Plans of offsets have many kinds, by what they do and where."""
    return bool(plan.steps) and {step.kind for step in plan.steps} <= STEP_KINDS


PLAN_KINDS = (
    PlanKind(
        _writes_offsets_alone, "kit.moves.offsets.steps:RECIPES", "kit.moves.offsets.performer:performer_of", RUN_LOCK
    ),
    PlanKind(
        named(DELETE_GROUPS),
        "kit.moves.offsets.group_steps:RECIPES",
        "kit.moves.offsets.delete_groups:performer_of",
        RUN_LOCK,
    ),
)
PLAN_VERBS = {
    "delete-groups": Verb(
        "kit.moves.offsets.verbs.delete_groups:app",
        "Delete groups without members from Kafka, with all their offsets.",
    ),
    "offsets": Verb("kit.moves.offsets.verbs.offsets:app", "Copy, reset, import, delete or export committed offsets."),
}
RULES = {
    "offsets": "kit.moves.offsets.rules:RULES",
    "delete-groups": "kit.moves.offsets.delete_groups:RULES",
    "offsets, groups or znodes": "kit.moves.undo_rights:RULES",
}
