"""``offramp plan delete-znodes``: persistent registrations and owner znodes, which no live member holds."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import GroupsToo, PlanningWithUndo, named_groups
from kit.terminal.options import with_options

app = typer.Typer(rich_markup_mode=None)


@app.command("delete-znodes")
@with_options
def delete_znodes(
    planning: PlanningWithUndo,
    groups: Annotated[list[str] | None, typer.Argument(help="Groups, by name.")] = None,
    groups_too: GroupsToo = None,
) -> None:
    """Delete persistent registrations and owner znodes of groups in ZooKeeper. Writes nothing to the cluster.

    A live member's znodes are ephemeral, and are never deleted. The plan keeps the text of each znode, and its undo
    creates them again. A znode that changed since the plan is left alone and named.
    """
    with planning.open() as operations:
        from kit.moves.znodes.plan import DeleteZnodesRequest

        request = DeleteZnodesRequest(named_groups(groups, groups_too), planning.on_failure)
        planning.make(operations, request)
