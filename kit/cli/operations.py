"""Options and output that the planning verbs of the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from kit.cli.progress import waiting
from kit.cli.terminal import print_json, refusals, say, tell
from kit.cluster import connect
from kit.migrate.engine.plan import Plan
from kit.migrate.operations import Operations
from kit.migrate.rendering.text import event_text, plan_text
from kit.profile import load_profile

Overrides = Annotated[
    list[str] | None, typer.Option("--override", help="Name of a rule to override; can be given again.")
]
UndoOnFailure = Annotated[bool, typer.Option("--undo-on-failure", help="Undo the done steps if a step fails.")]


@contextmanager
def open_operations(profile: str | None, profile_file: Path | None, runs: Path | None) -> Iterator[Operations]:
    """What an operator does with the profile's cluster; events and requests go to standard error."""
    with refusals():
        chosen = load_profile(profile, profile_file)
        with waiting(f"connecting to {chosen.name}"):
            connected = connect(chosen)
        with connected as cluster:
            yield Operations(cluster, runs, say=say, tell=lambda event: say(event_text(event)))


def show_plan(plan: Plan, as_json: bool) -> None:
    """Print a plan and the command that approves it; or the plan as JSON."""
    if as_json:
        print_json(plan.to_json())
        return
    tell(*plan_text(plan).split("\n"))
    say(f"approve it: offramp approve {plan.digest[:8]}")
