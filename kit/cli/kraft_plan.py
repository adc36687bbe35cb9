"""``offramp plan kraft``: the next phase of a move to KRaft, or the way back (KIP-866). Nothing is written to it."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.cli.operations import Overrides, open_operations, show_plan
from kit.cli.terminal import AsJson, ProfileFile, ProfileName, RunsFolder, say
from kit.migrate.engine.plan import WAY_BACK_S
from kit.migrate.kraft.request import KraftPlanRequest
from kit.migrate.kraft.steps import NODE_TIMEOUT_S, PHASES

app = typer.Typer(rich_markup_mode=None)


@app.command("kraft")
def plan_kraft(
    to: Annotated[str, typer.Option("--to", help=f"The phase to reach: {', '.join(PHASES)}.")],
    node_timeout: Annotated[
        float, typer.Option("--node-timeout", help="Seconds that one node may take until it runs well in its new mode.")
    ] = NODE_TIMEOUT_S,
    way_back: Annotated[
        float, typer.Option(help="Hours for which the run can be undone without a new approval.")
    ] = WAY_BACK_S / 3600,
    override: Overrides = None,
    runs: RunsFolder = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profile_file: ProfileFile = None,
) -> None:
    """Move a cluster from ZooKeeper to KRaft, one phase per plan, or back from any of them. Writes nothing."""
    with open_operations(profile, profile_file, runs) as operations:
        say(f"looking at cluster {operations.cluster.name} …")
        request = KraftPlanRequest(to, node_timeout, way_back * 3600)
        show_plan(operations.plan_kraft(request, override or ()), as_json)
