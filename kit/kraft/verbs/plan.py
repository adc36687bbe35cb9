"""``offramp plan kraft``: the next phase of a move to KRaft, the rollback, a repair, a fail-over (KIP-866)."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.errors import InputError
from kit.operations.verbs.operations import WAY_BACK_HOURS, Planning, WayBack
from kit.terminal.options import with_options
from kit.terminal.terminal import refusals, say

app = typer.Typer(rich_markup_mode=None)

PHASES = ("controllers", "dual write", "kraft", "finalised", "zookeeper")
NODE_TIMEOUT_S = 300.0
REPAIR, FAIL_OVER, UNREGISTER = "repair", "fail over", "unregister broker"
"""The plans of ``kit.kraft.move.steps``, which loads a client."""


@app.command("kraft")
@with_options
def plan_kraft(
    planning: Planning,
    to: Annotated[str | None, typer.Option("--to", help=f"The phase to reach: {', '.join(PHASES)}.")] = None,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Repair the first damage that an aborted move, or another operator or tool, left."
        ),
    ] = False,
    fail_over: Annotated[
        bool, typer.Option("--fail-over", help="Restart the active controller, so that another one is elected.")
    ] = False,
    unregister: Annotated[
        int | None,
        typer.Option("--unregister", help="End the registration of this broker, which does not return.", min=0),
    ] = None,
    node_timeout: Annotated[
        float, typer.Option("--node-timeout", help="Time limit for one node to run in its new mode, in seconds.")
    ] = NODE_TIMEOUT_S,
    way_back: WayBack = WAY_BACK_HOURS,
) -> None:
    """Plan a move from ZooKeeper to KRaft, one phase per plan, or a rollback to ZooKeeper. Writes nothing.

    Other plans: repair the damage that an aborted move left (--repair), elect another active controller (--fail-over),
    or end the registration of a broker that does not return (--unregister).
    """
    from kit.kraft.move.plan import KraftPlanRequest

    gone = None if unregister is None else f"{UNREGISTER} {unregister}"
    goals = (to, REPAIR if repair else None, FAIL_OVER if fail_over else None, gone)
    asked = [name for name in goals if name is not None]
    with refusals():
        if len(asked) != 1:
            raise InputError("give one of --to PHASE, --repair, --fail-over and --unregister")
        request = KraftPlanRequest(asked[0], node_timeout, way_back * 3600)
    with planning.open(is_patient=True) as operations:
        say(f"reading cluster {operations.cluster.name} …")
        planning.make(operations, request, f"cluster {operations.cluster.name}")
