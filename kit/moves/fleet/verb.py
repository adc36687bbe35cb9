"""``offramp plan fleet``: many groups at once, in waves, or back."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import WAY_BACK_HOURS, GroupsToo, PlanningWithUndo, WayBack, named_groups
from kit.terminal.options import with_options

app = typer.Typer(rich_markup_mode=None)
SETTLE_S = 180.0
"""As ``kit.moves.group.rules`` has it, which loads clients and frames."""


@app.command("fleet")
@with_options
def plan_fleet(
    planning: PlanningWithUndo,
    to: Annotated[str, typer.Option("--to", help="kafka or zookeeper.")],
    groups: Annotated[list[str] | None, typer.Argument(help="Groups; by default all that are ready.")] = None,
    groups_too: GroupsToo = None,
    pattern: Annotated[str, typer.Option("--groups", help="Regular expression a group's whole id must match.")] = ".*",
    wave: Annotated[int, typer.Option(help="Groups per wave; 0: all at once.")] = 10,
    pause: Annotated[float, typer.Option(help="Seconds to watch a wave before the next one.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds for which a group must have had the same members."),
    ] = 600.0,
    lag_tolerance: Annotated[int, typer.Option(help="Records by which the toggled groups' lag may grow.")] = 10_000,
    max_read_ms: Annotated[
        float | None,
        typer.Option("--max-read-ms", "--read-ms", help="Longest read of the toggled groups; by default 5 times now."),
    ] = None,
    step_timeout: Annotated[
        float, typer.Option("--step-timeout", "--each", help="Seconds in which all groups of a wave must follow.")
    ] = SETTLE_S,
    way_back: WayBack = WAY_BACK_HOURS,
) -> None:
    """Toggle all stable groups with only migration-enabled members, in waves; or back. Writes nothing."""
    with planning.open() as operations:
        from kit.moves.fleet.plan import FleetPlanRequest

        limits = (
            wave,
            pause,
            min_stable,
            lag_tolerance,
            max_read_ms,
            step_timeout,
            planning.on_failure,
            way_back * 3600,
        )
        request = FleetPlanRequest(to, pattern, named_groups(groups, groups_too), *limits)
        planning.make(operations, request)
