"""``offramp plan delete-groups``: whole groups that are not in use."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.engine.model.plan import STOP, UNDO
from kit.operations.verbs.operations import (
    GroupsToo,
    Overrides,
    UndoOnFailure,
    named_groups,
    open_operations,
    show_plan,
)
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, ProfileFile, ProfileName, RunsFolder, say

app = typer.Typer(rich_markup_mode=None)

AT_MOST = 100
"""As ``kit.moves.offsets.delete_groups`` has it, which loads clients."""


@app.command("delete-groups")
def delete_groups(
    groups: Annotated[list[str] | None, typer.Argument(help="Groups, by name.")] = None,
    groups_too: GroupsToo = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--groups", help="Instead of names: a regular expression for whole ids; groups in use are left out."
        ),
    ] = None,
    at_most: Annotated[int, typer.Option("--at-most", help="The most groups that a plan may delete.")] = AT_MOST,
    undo_on_failure: UndoOnFailure = False,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Delete groups without members from Kafka, with all their offsets. Writes nothing to the cluster.

    The plan keeps each offset with its metadata and leader epoch, and its undo commits them again. When it is carried
    out, a group that has members again, or that has new commits since, is left alone and named.
    """
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.offsets.delete_groups import DeleteGroupsRequest

        request = DeleteGroupsRequest(
            named_groups(groups, groups_too), pattern, at_most, UNDO if undo_on_failure else STOP
        )
        with waiting(f"reading the groups of {operations.cluster.name}"):
            plan = operations.make_plan(request, override or ())
        show_plan(plan, as_json)
        say(f"offsets saved to {operations.backup_file(plan)}; to restore them: undo the run, or plan offsets import")
