"""``offramp lock show | break``: which run has which group now, and how an operator ends a lock."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from kit.errors import PartialRead
from kit.operations.verbs.operations import GroupToo, open_operations
from kit.terminal.listing import print_frame
from kit.terminal.options import ChosenProfile, with_options
from kit.terminal.terminal import AsJson, print_json, say

app = typer.Typer(
    help="Locks of groups: show which run holds which lock, end a lock.", no_args_is_help=True, rich_markup_mode=None
)

Target = Annotated[str | None, typer.Argument(help="A group.")]
Whole = Annotated[
    bool, typer.Option("--whole-cluster", help="The lock of a run on many groups, or of a move to KRaft.")
]


@app.command("show")
@with_options
def show(
    profile: ChosenProfile,
    target: Target = None,
    group: GroupToo = None,
    as_json: AsJson = False,
) -> None:
    """Show the locks that runs hold now, in ZooKeeper and in Kafka. Writes nothing.

    Exit code 12: the login may not see every lock.
    """
    target = target or group
    with open_operations(profile) as operations:
        import polars as pl

        from kit.moves.locks.held_locks import held_locks, hidden_locks

        held = [each for each in held_locks(operations.cluster) if target in (None, each.target)]
        hidden = hidden_locks(operations.cluster)
        if as_json:
            print_json([asdict(each) for each in held])
        elif held:
            print_frame(pl.DataFrame([asdict(each) for each in held]).drop("is_whole", "holder"))
        elif hidden is None:
            say("no run holds a lock" if target is None else f"no run holds the lock of group {target}")
        if hidden is not None:
            raise PartialRead(hidden)


@app.command("break")
@with_options
def break_(
    profile: ChosenProfile,
    target: Target = None,
    group: GroupToo = None,
    whole: Whole = False,
    typed_run: Annotated[
        str | None,
        typer.Option(
            "--run", help="The run that holds the lock, as a confirmation; without this option you are asked."
        ),
    ] = None,
) -> None:
    """End a lock, for example of a process that hangs. Its run stops before its next write."""
    target = target or group
    if (target is None) != whole:
        raise typer.BadParameter("name one group, or --whole-cluster")
    with open_operations(profile) as operations:
        from kit.moves.locks.held_locks import break_locks, held_locks

        for each in held_locks(operations.cluster):
            if each.is_whole if whole else each.target == target and not each.is_whole:
                who = f"run {each.run_id} of {each.user or 'an unknown user'} on {each.host} since {each.since}"
                say(f"the lock of {each.target} in {each.store} is held by {who}")
        typed = typed_run or typer.prompt("Type the run whose lock you break", err=True)
        for each in break_locks(operations.cluster, target, typed):
            say(f"the lock of {each.target} in {each.store} is broken; run {each.run_id} stops before its next write")
