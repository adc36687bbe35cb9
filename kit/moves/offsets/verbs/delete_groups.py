"""``offramp plan delete-groups``: whole groups that are not in use."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import GroupsToo, PlanningWithUndo, named_groups
from kit.terminal.options import with_options
from kit.terminal.terminal import say

app = typer.Typer(rich_markup_mode=None)

AT_MOST = 100
"""The default of ``kit.moves.offsets.delete_groups``, which loads clients."""


@app.command("delete-groups")
@with_options
def delete_groups(
    planning: PlanningWithUndo,
    groups: Annotated[list[str] | None, typer.Argument(help="Groups, by name.")] = None,
    groups_too: GroupsToo = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--groups", help="Instead of names: a regular expression for whole ids; groups in use are left out."
        ),
    ] = None,
    at_most: Annotated[int, typer.Option("--at-most", help="The most groups that a plan may delete.")] = AT_MOST,
) -> None:
    """Delete groups without members from Kafka, with all their offsets. Writes nothing to the cluster.

    The plan keeps each offset with its metadata and leader epoch, and its undo commits them again. At its execution, a
    group that has members again, or that has new commits since, is left alone and named.
    """
    with planning.open() as operations:
        from kit.moves.offsets.delete_groups import DeleteGroupsRequest

        request = DeleteGroupsRequest(named_groups(groups, groups_too), pattern, at_most, planning.on_failure)
        plan = planning.make(operations, request)
        say(f"offsets saved to {operations.backup_file(plan)}; to restore them: undo the run, or plan offsets import")
