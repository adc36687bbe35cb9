"""Register the story of a group's rebalances."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "rebalances": Verb(
        "kit.rebalances.verbs.rebalances:app",
        "Show what happened to groups: each generation, late members, moved partitions.",
    ),
}
ANALYSES = "kit.rebalances.analyses"
