"""``offramp plan delete-znodes``: persistent registrations and owner znodes, which no live member holds."""

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
from kit.terminal.terminal import AsJson, ProfileFile, ProfileName, RunsFolder

app = typer.Typer(rich_markup_mode=None)


@app.command("delete-znodes")
def delete_znodes(
    groups: Annotated[list[str] | None, typer.Argument(help="Groups, by name.")] = None,
    groups_too: GroupsToo = None,
    undo_on_failure: UndoOnFailure = False,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Delete persistent registrations and owner znodes of groups in ZooKeeper. Writes nothing to the cluster.

    A live member's znodes are ephemeral, and are never deleted. The plan keeps the text of each znode, and its undo
    creates them again. A znode that changed since the plan is left alone and named.
    """
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.znodes.plan import DeleteZnodesRequest

        request = DeleteZnodesRequest(named_groups(groups, groups_too), UNDO if undo_on_failure else STOP)
        with waiting(f"reading the groups of {operations.cluster.name}"):
            plan = operations.make_plan(request, override or ())
        show_plan(plan, as_json)
