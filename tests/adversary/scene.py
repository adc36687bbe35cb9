"""A world led manually: what a race needs beside what walks use."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord, load_run
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.group.plan import GroupPlanRequest
from tests.adversary.judge import Wrong
from tests.adversary.moves import Move
from tests.adversary.plans import plan_fleet, plan_group
from tests.adversary.process import Process, seams
from tests.adversary.world import ContestedCluster

Groups = tuple[tuple[str, tuple[str, ...], str | None], ...]


@contextmanager
def scene(*groups: tuple[str, tuple[str, ...], str | None]) -> Iterator[ContestedCluster]:
    """In it all that was wrong is raised at its end, with its story."""
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="adversary-", dir=memory if memory.is_dir() else None))
    world = ContestedCluster(root, groups)
    world.settle()
    failed: AssertionError | None = None
    try:
        with seams():
            yield world
    except AssertionError as error:
        failed = error
    finally:
        shutil.rmtree(root)
    story = "\n".join(world.story)
    for wrong in world.judge.wrongs:
        raise Wrong(wrong.what, f"{wrong}\n{story}") from failed
    if failed is not None:
        raise AssertionError(f"{failed}\n{story}") from failed


def move_plan(world: ContestedCluster, name: str, to_stage: str, **changed: object) -> Plan:
    plan = plan_group(
        world, GroupPlanRequest(name, to_stage, **{"soak_s": 0, "min_stable_s": 0, "step_timeout_s": 40, **changed})
    )
    world.judge.raise_if_wrong()
    assert plan is not None, world.story
    return plan


def toggle_plan(world: ContestedCluster, to: str, *names: str, wave: int = 1) -> Plan:
    plan = plan_fleet(world, FleetPlanRequest(to, groups=names, wave=wave, pause_s=0, min_stable_s=0))
    world.judge.raise_if_wrong()
    assert plan is not None, world.story
    return plan


def begin(world: ContestedCluster, plan: Plan, **how: object) -> Process:
    process = world.start(plan, **how)
    assert process is not None, world.story
    return process


def record(process: Process) -> RunRecord:
    return load_run(process.folder)


def strike_at(world: ContestedCluster, what: str, move: Move, nth: int = 1) -> None:
    """At the ``nth`` point whose name begins so, once."""
    left = [nth]

    def strike(process: Process, name: str) -> None:
        if name.startswith(what):
            left[0] -= 1
            if left[0] == 0:
                world.say(f"  at {process}: {name}:")
                move(world, process, world.rng)

    world.strike = strike
