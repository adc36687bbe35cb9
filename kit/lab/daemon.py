"""Holds a lab in the background for ``offramp lab up``: ``python -m kit.lab.daemon <brokers> CONTENT``.

CONTENT is ``fleet``, ``bare``, a version of ``jars.KAFKA_SETS`` or a phase of ``migrating_cluster.PHASES``.
A version is a cluster without ZooKeeper and without groups. A phase is of a move to KRaft: that lab has one of every
kind of metadata, and no fleet.

Its output is shown by ``up`` until the lab is ready. It ends, and the lab with it, at SIGTERM, after eight hours,
or when the lab's folder was deleted.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import signal
import sys
import time
from pathlib import Path
from types import FrameType

from kit.errors import LabError, OfframpError
from kit.lab import scenario, state
from kit.lab.entities import make_one_of_everything
from kit.lab.java.jars import KAFKA_SETS
from kit.lab.lab import Lab
from kit.lab.servers.migrating_cluster import PHASES
from kit.text.quantity import quantity

PROFILE_NAME = "offramp.toml"
BARE = "bare"
CONTROLLERS = 1
LIFETIME_HOURS = 8
"""A forgotten lab ends: its consumers write down every record they deliver."""


def end(number: int, frame: FrameType | None) -> None:
    """Leave every ``with`` on the way out."""
    raise SystemExit(0)


def say(line: str) -> None:
    print(line, flush=True)


def hold(brokers: int, content: str) -> None:
    """Start the lab, write its profile and state, and wait for the signal to end."""
    began = time.monotonic()
    racks = [scenario.RACKS[number % len(scenario.RACKS)] for number in range(brokers)]
    phase = content if content in PHASES else None
    version = content if content in KAFKA_SETS else ""
    summary = f"{f'Kafka {version} without ZooKeeper' if version else 'ZooKeeper'}, {quantity(brokers, 'broker')}"
    say(f"Starting {summary} …")
    if version:
        made = Lab(brokers, kraft=True, kafka_version=version)
    else:
        made = Lab(brokers, racks, controllers=CONTROLLERS if phase else 0)
    with made as lab:
        say(f"servers are up ({time.monotonic() - began:.0f} s)")
        if phase:
            move(lab, phase)
            summary += f", {quantity(CONTROLLERS, 'controller')}, phase {phase}"
        elif not version and content != BARE:
            summary += f", {quantity(len(scenario.start(lab, say).groups), 'group')}"
        profile = lab.folder / PROFILE_NAME
        profile.write_text(lab.profile_toml(), encoding="utf-8")
        state.save(state.State.of(os.getpid(), lab.folder, profile, summary))
        try:
            wait_while_there_are_files(lab.folder, LIFETIME_HOURS * 3600)
        finally:
            state.state_file().unlink(missing_ok=True)


def wait_while_there_are_files(folder: Path, lifetime_s: float, pause_s: float = 5.0) -> None:
    """Wait until the lifetime is over or ``folder`` was deleted: servers without their files only use the CPU."""
    until = time.monotonic() + lifetime_s
    while folder.exists() and time.monotonic() < until:
        time.sleep(pause_s)


def move(lab: Lab, phase: str) -> None:
    """Fill the lab with metadata, then go to ``phase``, saying what is reached."""
    make_one_of_everything(lab.migration, secrets.token_hex(12))
    for each in PHASES[1 : PHASES.index(phase) + 1]:
        lab.migration.reach(each)
        say(f"phase {each} is reached")


def main() -> None:
    """Hold a lab unless another is held already; errors end with their exit code."""
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Path(state.home() / "lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("error: another lab is being started or stopped right now.")
            raise SystemExit(LabError.exit_code) from None
        try:
            hold(int(sys.argv[1]), sys.argv[2])
        except OfframpError as error:
            say(f"error: {error}")
            raise SystemExit(error.exit_code) from None


if __name__ == "__main__":
    main()
