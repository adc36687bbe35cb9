"""Register the move to KRaft."""

from __future__ import annotations

from kit.engine.plan_kind import LockKind, PlanKind, named
from kit.subjects import Verb

KIND = "move to KRaft"
VERBS = {
    "kraft": Verb(
        "kit.kraft.verbs.kraft:app",
        "Show the phase of a move from ZooKeeper to KRaft, check it, compare both stores, and rehearse it.",
    ),
    "znodes": Verb(
        "kit.kraft.verbs.znodes:app",
        "Show the content of znodes, now or at an earlier time, and the session that wrote it.",
    ),
}
PLAN_KINDS = (
    PlanKind(
        named(KIND),
        "kit.kraft.move.recipes:RECIPES",
        "kit.kraft.move.performer:performer_of",
        LockKind("kit.engine.lock:ClusterLock", "kit.engine.lock:refuse_without_zookeeper"),
    ),
)
PLAN_VERBS = {
    "kraft": Verb(
        "kit.kraft.verbs.plan:app",
        "Plan a move from ZooKeeper to KRaft, one phase per plan, or a rollback to ZooKeeper.",
    )
}
FRAMES = {"stays": "kit.kraft.move.frames:stays"}
RULES = {
    "kraft": "kit.kraft.move.gates:RULES",
    "kraft status": "kit.kraft.analyze.contradictions:RULES",
    "kraft preflight": "kit.kraft.analyze.preflight:RULES",
    "kraft lint": "kit.kraft.analyze.node_lint:RULES",
}
