"""``offramp plan group``: one group along KIP-125's path, or back."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.engine.model.plan import STOP, UNDO
from kit.operations.verbs.operations import (
    WAY_BACK_HOURS,
    GroupToo,
    Overrides,
    UndoOnFailure,
    WayBack,
    named_groups,
    open_operations,
    show_plan,
)
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, ProfileFile, ProfileName, RunsFolder, say

app = typer.Typer(rich_markup_mode=None)
PATH = ("OZKCC", "canary MEZKCC", "all MEZKCC", "Kafka coordination", "canary KC", "all KC")
"""As ``kit.moves.group.plan`` has it, which loads clients and frames."""


@app.command("group")
def plan_group(
    to: Annotated[str, typer.Option("--to", help=f"The stage to reach: {', '.join(PATH)}.")],
    group: Annotated[str | None, typer.Argument(help="The group.")] = None,
    group_too: GroupToo = None,
    canary: Annotated[int, typer.Option(help="How many members are replaced first.")] = 1,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="A member to replace first; can be given again.")
    ] = None,
    soak: Annotated[float, typer.Option(help="Seconds to watch a canary.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds for which the group must have had the same members."),
    ] = 60.0,
    lag_tolerance: Annotated[int, typer.Option(help="Records by which a canary's lag may grow.")] = 1000,
    step_timeout: Annotated[
        float, typer.Option("--step-timeout", "--each", help="Seconds that one replacement may take.")
    ] = 180.0,
    observe: Annotated[
        float, typer.Option("--observe", "--look", help="Seconds between the two observations of the group.")
    ] = 5.0,
    way_back: WayBack = WAY_BACK_HOURS,
    undo_on_failure: UndoOnFailure = False,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Move one group along KIP-125's path, one stage or several, forward or back. Writes nothing to the cluster."""
    with open_operations(profile, profile_file, runs) as operations:
        from kit.moves.group.plan import GroupPlanRequest

        on_failure = UNDO if undo_on_failure else STOP
        limits = (canary, soak, min_stable, lag_tolerance, step_timeout, observe)
        (group,) = named_groups([group] if group else [], [group_too] if group_too else [], exactly_one=True)
        request = GroupPlanRequest(group, to, *limits, tuple(member or ()), on_failure, way_back * 3600)
        say(f"reading {group} …")
        with waiting(f"reading {group}"):
            plan = operations.make_plan(request, override or ())
        show_plan(plan, as_json)
