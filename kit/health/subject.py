"""Register lag in time and the health of groups."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "watch": Verb(
        "kit.health.verbs.watch:app",
        "Show every group's lag, poll after poll: stalled groups and groups with growing lag first.",
    ),
    "export": Verb(
        "kit.health.verbs.export:app", "Serve lag, lag in time, outlook and verdicts as metrics for Prometheus."
    ),
}
ANALYSES = "kit.health.analyses"
