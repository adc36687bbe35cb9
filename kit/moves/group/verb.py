"""``offramp plan group``: one group along KIP-125's path, or back."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import WAY_BACK_HOURS, GroupToo, PlanningWithUndo, WayBack, named_groups
from kit.terminal.options import with_options
from kit.terminal.terminal import say

app = typer.Typer(rich_markup_mode=None)
PATH = ("OZKCC", "canary MEZKCC", "all MEZKCC", "Kafka coordination", "canary KC", "all KC")
"""The stages of ``kit.moves.group.plan``, which loads clients and frames."""


@app.command("group")
@with_options
def plan_group(
    planning: PlanningWithUndo,
    to: Annotated[str, typer.Option("--to", help=f"The stage to reach: {', '.join(PATH)}.")],
    group: Annotated[str | None, typer.Argument(help="The group.")] = None,
    group_too: GroupToo = None,
    canary: Annotated[int, typer.Option(help="Number of members that are replaced first.")] = 1,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="A member to replace first; can be given more than once.")
    ] = None,
    soak: Annotated[float, typer.Option(help="Seconds to watch a canary.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds during which the group must have had the same members."),
    ] = 60.0,
    lag_tolerance: Annotated[int, typer.Option(help="Number of records by which the canary's lag may grow.")] = 1000,
    step_timeout: Annotated[
        float, typer.Option("--step-timeout", "--each", help="Time limit for one replacement, in seconds.")
    ] = 180.0,
    observe: Annotated[
        float, typer.Option("--observe", "--look", help="Seconds between the two observations of the group.")
    ] = 5.0,
    way_back: WayBack = WAY_BACK_HOURS,
) -> None:
    """Move one group along KIP-125's path, one stage or several, forward or back. Writes nothing to the cluster."""
    with planning.open() as operations:
        from kit.moves.group.plan import GroupPlanRequest

        limits = (canary, soak, min_stable, lag_tolerance, step_timeout, observe)
        (group,) = named_groups([group] if group else [], [group_too] if group_too else [], exactly_one=True)
        request = GroupPlanRequest(group, to, *limits, tuple(member or ()), planning.on_failure, way_back * 3600)
        say(f"reading {group} …")
        planning.make(operations, request, group)
