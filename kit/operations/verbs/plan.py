"""``offramp plan``: its verbs; each kind of plan brings its own."""

from __future__ import annotations

from collections.abc import Mapping

import typer

from kit.subjects import Verb, merged
from kit.terminal.verbs import group_of

VERBS: Mapping[str, Verb] = {
    "list": Verb(
        "kit.operations.verbs.runs:plan_app", "List all plans: plans that need attention first, then the newest."
    ),
    "show": Verb(
        "kit.operations.verbs.operate:plan_app", ("Print a plan, and the changes of the cluster since it was made.")
    ),
    **merged("PLAN_VERBS"),
}

app = typer.Typer(
    cls=group_of(VERBS),
    help="Make a plan for approval. Writes nothing to the cluster.",
    no_args_is_help=True,
    rich_markup_mode=None,
    callback=lambda: None,
)
