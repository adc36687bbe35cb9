"""What the kit knows of the story of a group's rebalances."""

from __future__ import annotations

from kit.terminal.verb import Verb

VERBS = {
    "rebalances": Verb(
        "kit.rebalances.verbs.rebalances:app", "What happened to groups: each generation, who was late, what moved."
    ),
}
ANALYSES = "kit.rebalances.analyses"
