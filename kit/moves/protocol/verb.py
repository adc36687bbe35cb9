"""``offramp plan protocol``: one group from the classic to the consumer protocol (KIP-848), or back."""

from __future__ import annotations

from typing import Annotated

import typer

from kit.operations.verbs.operations import WAY_BACK_HOURS, GroupsToo, PlanningWithUndo, WayBack, named_groups
from kit.terminal.options import with_options
from kit.terminal.protocol_answers import ClientsReady, Monitoring, RemoteAssignor, RightsGranted, tools_of
from kit.terminal.terminal import say

app = typer.Typer(rich_markup_mode=None)


@app.command("protocol")
@with_options
def plan_protocol(
    planning: PlanningWithUndo,
    to: Annotated[str, typer.Option("--to", help="The protocol of all members: consumer or classic.")],
    groups: Annotated[list[str] | None, typer.Argument(help="The group, or several.")] = None,
    groups_too: GroupsToo = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            "--groups", help="Instead of names: all groups whose whole id matches this pattern and that can be moved."
        ),
    ] = None,
    how: Annotated[
        str, typer.Option(help="Replace members one by one (rolling), or stop all and then start all (stopped).")
    ] = "rolling",
    canary: Annotated[int, typer.Option(help="Number of members that are replaced first.")] = 1,
    member: Annotated[
        list[str] | None, typer.Option("--member", help="A member to replace first; can be given more than once.")
    ] = None,
    soak: Annotated[float, typer.Option(help="Seconds to watch the first members.")] = 60.0,
    lag_tolerance: Annotated[int, typer.Option(help="Records by which the first members' lag may grow.")] = 1000,
    step_timeout: Annotated[float, typer.Option(help="Time limit for one replacement, in seconds.")] = 180.0,
    observe: Annotated[float, typer.Option(help="Seconds between the two reads of the group.")] = 5.0,
    group_config: Annotated[
        list[str] | None,
        typer.Option(
            help="Set this group config first, for example consumer.session.timeout.ms=30000; can be given "
            "more than once."
        ),
    ] = None,
    clients_ready: ClientsReady = None,
    rights_granted: RightsGranted = None,
    monitoring: Monitoring = None,
    assignor: RemoteAssignor = None,
    wave: Annotated[
        int, typer.Option(help="With several groups: the number of groups that are moved before a pause.")
    ] = 10,
    pause: Annotated[
        float, typer.Option(help="With several groups: the seconds of a pause, in which the moved groups are watched.")
    ] = 60.0,
    max_read_ms: Annotated[
        float | None,
        typer.Option(
            help="With several groups: the longest time that a read of them may take; by "
            "default 5 times the present time."
        ),
    ] = None,
    way_back: WayBack = WAY_BACK_HOURS,
) -> None:
    """Move groups to the consumer protocol (KIP-848), or back to the classic one. Writes nothing to the cluster.

    The plan replaces the members one by one. The first consumer-protocol member converts the group. With --how stopped,
    all members stop before the first new one starts. Several groups are moved one after the other, in waves.
    """
    with planning.open() as operations:
        from kit.moves.protocol.fleet import ProtocolFleetRequest
        from kit.moves.protocol.plan import ProtocolPlanRequest, parse_configs
        from kit.protocol.facts import Answers

        names = named_groups(groups, groups_too)
        is_one = len(names) == 1 and pattern is None
        each = ProtocolPlanRequest(
            names[0] if is_one else "",
            to,
            canary=canary,
            soak_s=soak,
            lag_tolerance=lag_tolerance,
            step_timeout_s=step_timeout,
            observe_s=observe,
            members=tuple(member or ()),
            on_failure=planning.on_failure,
            way_back_s=way_back * 3600,
            configs=parse_configs(group_config or ()),
            answers=Answers(clients_ready, rights_granted, tools_of(monitoring), assignor),
            how=how,
        )
        fleet = None if is_one else ProtocolFleetRequest(each, names, pattern, wave, pause, max_read_ms)
        whom = f"group {names[0]}" if is_one else f"the groups of {operations.cluster.name}"
        say(f"reading {whom} …")
        planning.make(operations, fleet or each, whom)
