"""``offramp plan fleet``: many groups at once, in waves, or back."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import WAY_BACK_HOURS, GroupsToo, PlanningWithUndo, WayBack, named_groups
from kit.terminal.options import with_options

app = typer.Typer(rich_markup_mode=None)
SETTLE_S = 180.0
"""The default of ``kit.moves.group.rules``, which loads clients and frames."""


@app.command("fleet")
@with_options
def plan_fleet(
    planning: PlanningWithUndo,
    to: Annotated[str, typer.Option("--to", help="kafka or zookeeper.")],
    groups: Annotated[
        list[str] | None, typer.Argument(help="Names of groups; by default all groups that are ready.")
    ] = None,
    groups_too: GroupsToo = None,
    pattern: Annotated[str, typer.Option("--groups", help="Regular expression a group's whole id must match.")] = ".*",
    wave: Annotated[int, typer.Option(help="Number of groups per wave; 0: all groups in one wave.")] = 10,
    pause: Annotated[float, typer.Option(help="Seconds to watch a wave before the next one.")] = 60.0,
    min_stable: Annotated[
        float,
        typer.Option("--min-stable", "--stable", help="Seconds during which a group must have had the same members."),
    ] = 600.0,
    lag_tolerance: Annotated[
        int, typer.Option(help="Number of records by which the lag of the toggled groups may grow.")
    ] = 10_000,
    max_read_ms: Annotated[
        float | None,
        typer.Option(
            "--max-read-ms",
            "--read-ms",
            help="Longest time that a read of the toggled groups may take; by default 5 times the present time.",
        ),
    ] = None,
    step_timeout: Annotated[
        float,
        typer.Option(
            "--step-timeout",
            "--each",
            help="Time limit in which all groups of a wave must follow the toggle, in seconds.",
        ),
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
