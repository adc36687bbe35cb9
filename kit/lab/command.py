"""``offramp lab up | status | down``: a lab that runs in the background."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, TextIO

import psutil
import typer

from kit.lab import state
from kit.lab.java.jars import KAFKA_SETS
from kit.text.quantity import quantity

BROKERS = 3
PHASES = ("zookeeper", "controllers", "dual-write", "kraft", "finalised")
"""The phases of the lab, which loads clients."""
POLL_SECONDS = 0.1
DOWN_SECONDS = 30.0

_HELP = "Real ZooKeeper, Kafka and consumers on this machine."
app = typer.Typer(help=_HELP, no_args_is_help=True, rich_markup_mode=None)


@app.command()
def up(
    brokers: Annotated[int, typer.Option(min=1, max=9, help="Number of brokers.")] = BROKERS,
    bare: Annotated[bool, typer.Option("--bare", help="Servers only, no consumer groups.")] = False,
    kraft: Annotated[
        str | None,
        typer.Option(help=f"A cluster that moves to KRaft, in this phase: {', '.join(PHASES)}."),
    ] = None,
    kafka: Annotated[
        str | None,
        typer.Option(help=f"A cluster without ZooKeeper and without groups, of this version: {', '.join(KAFKA_SETS)}."),
    ] = None,
) -> None:
    """Start servers and about twenty consumer groups in the background, and print the profile to use.

    With --kraft no groups, but one of every kind of metadata, and a controller.
    """
    if kraft is not None and kraft not in PHASES:
        raise typer.BadParameter(f"there is no phase {kraft!r}; there are {', '.join(PHASES)}", param_hint="--kraft")
    if kafka is not None and kafka not in KAFKA_SETS:
        raise typer.BadParameter(f"the versions are {', '.join(KAFKA_SETS)}, not {kafka!r}", param_hint="--kafka")
    if kafka is not None and kraft is not None:
        raise typer.BadParameter("a cluster without ZooKeeper has no phase: leave out --kraft", param_hint="--kafka")
    running = state.load()
    if running is not None:
        typer.echo(f"A lab is running already ({running.summary}).")
        show_profile(running)
        return
    started = start(brokers, kafka or kraft or ("bare" if bare else "fleet"))
    typer.echo(f"The lab is up: {started.summary}. It continues until `offramp lab down`, at most 8 hours.")
    show_profile(started)


@app.command()
def status() -> None:
    """Say whether a lab runs, with what, and where its profile is. Exit code 1 when none runs."""
    running = state.load()
    if running is None:
        typer.echo("No lab is running. Start one with: offramp lab up")
        raise typer.Exit(1)
    holder = running.process()
    parts = [child for child in holder.children() if child.status() != psutil.STATUS_ZOMBIE] if holder else []
    typer.echo(
        f"A lab is running: {running.summary}; {quantity(len(parts), 'process', 'processes')}, folder {running.folder}"
    )
    show_profile(running)


@app.command("profile")
def profile() -> None:
    """Print the path of the running lab's profile. Exit code 1 when none runs."""
    running = state.load()
    if running is None:
        typer.echo("No lab is running. Start one with: offramp lab up", err=True)
        raise typer.Exit(1)
    typer.echo(running.profile_file)


@app.command()
def down() -> None:
    """Stop the lab and everything in it."""
    running = state.load()
    holder = running.process() if running else None
    if holder is None:
        typer.echo("No lab is running.")
        return
    holder.terminate()
    try:
        holder.wait(DOWN_SECONDS)
    except psutil.TimeoutExpired:
        typer.echo(
            (
                f"The lab did not end within {DOWN_SECONDS:.0f} s and was killed; its watchdog ends the remaining "
                f"processes."
            ),
            err=True,
        )
        holder.kill()
    state.state_file().unlink(missing_ok=True)
    typer.echo("The lab is down.")


def start(brokers: int, content: str) -> state.State:
    """Start the process that holds the lab, print its lines until the lab is ready, and return its state.

    Ends the program with the holder's exit code when it fails; Ctrl-C ends the holder too.
    """
    log = state.home() / "up.log"
    with log.open("w", encoding="utf-8") as out, log.open(encoding="utf-8") as lines:
        command = [sys.executable, "-m", "kit.lab.daemon", str(brokers), content]
        holder = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            return follow(holder, lines)
        except KeyboardInterrupt:
            holder.terminate()
            holder.wait()
            raise typer.Exit(130) from None


def follow(holder: subprocess.Popen[bytes], lines: TextIO) -> state.State:
    """Print the holder's lines until its state is there."""
    while True:
        ended = holder.poll()
        ready = state.load()
        for line in lines:
            typer.echo(line.rstrip("\n"))
        if ready is not None and ready.pid == holder.pid:
            return ready
        if ended is not None:
            raise typer.Exit(ended or 1)
        time.sleep(POLL_SECONDS)


def show_profile(running: state.State) -> None:
    """Print the profile and how to make the other commands use it."""
    typer.echo(f"\nProfile ({running.profile_file}):\n")
    typer.echo(Path(running.profile_file).read_text(encoding="utf-8"))
    typer.echo(f"export OFFRAMP_PROFILE_FILE={running.profile_file}")


if __name__ == "__main__":
    app()
