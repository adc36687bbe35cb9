"""Register plans and runs of every kind."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "plan": Verb("kit.operations.verbs.plan:app", "Make a plan for approval."),
    "approve": Verb("kit.operations.verbs.operate:app", "Show one plan and approve it."),
    "act": Verb("kit.operations.verbs.operate:app", "Execute an approved plan."),
    "stop": Verb("kit.operations.verbs.runs:app", "Ask a run that continues elsewhere to stop."),
    "resume": Verb("kit.operations.verbs.operate:app", "Continue a run that was stopped, failed or was cut off."),
    "undo": Verb("kit.operations.verbs.operate:app", "Undo what a run did, the newest step first."),
    "runs": Verb("kit.operations.verbs.runs:app", "List all runs, or show one."),
    "verify": Verb(
        "kit.operations.verbs.runs:app", "Check a run's evidence: unedited, and the run ended verified or undone."
    ),
}
