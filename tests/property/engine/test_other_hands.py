"""Later runs over a part of the targets, a second undo, values that come back: what others set since is left alone."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from kit.engine.model.performer import Outcome
from kit.errors import OfframpError
from tests.adversary import mistakes
from tests.adversary.mistakes import put_back
from tests.models.engine import Killed, ModelRun, approve_plan

TARGETS = ("shop.a", "shop.b", "shop.c")
N_WALKS = 40


def wander(root, seed: int) -> list[str]:
    """A run, cut off anywhere and taken up again; the items of others that it wrote."""
    rng = random.Random(seed)
    world = ModelRun(root / str(seed), (3, 3), targets=TARGETS)
    _work(world, "act", rng)
    if rng.random() < 0.7 and world.run.record.has_written:
        _later_run(world, rng.choice(TARGETS))
    for _ in range(3):
        _work(world, rng.choice(("undo", "undo", "resume")), rng)
        _other_operator(world, rng)
    return [wrong for wrong in world.cluster.wrongs if wrong.endswith("is another operator or tool's")]


def _work(world: ModelRun, verb: str, rng: random.Random) -> None:
    run, fault = world.process(), rng.choice((world.press_stop, world.kill, lambda name: None))
    world.hazard.arm(rng.randint(0, 60), fault)
    with suppress(OfframpError, Killed):
        getattr(run, verb)(approve_plan(world.plan, now=world.time.clock.now()))
    world.hazard.armed = None


def _later_run(world: ModelRun, target: str) -> None:
    """It did with the target what it wanted, and left in the end just the value that the first run had left."""
    world.lock.later[target] = "20991231T000000Z-later"
    targets = [world.performer.targets_of(step) for step in world.plan.steps]
    _set(world, [item for each in targets for item, of in each.items() if of == target])


def _other_operator(world: ModelRun, rng: random.Random) -> None:
    """Sets again what the run had set and has undone: it is that operator's value now."""
    told = [it for it in world.run.record.events if it.event == "undone" and it.outcome == Outcome.CONFIRMED]
    _set(world, [it.item for it in told if it.item is not None and rng.random() < 0.5])


def _set(world: ModelRun, items: list[str]) -> None:
    world.cluster.theirs.update(items)
    world.cluster.values |= dict.fromkeys(items, "new")


def test_a_value_that_another_tool_set_since_is_left_alone(tmp_path):
    assert {seed: wrongs for seed in range(N_WALKS) if (wrongs := wander(tmp_path, seed))} == {}


@pytest.mark.parametrize("mistake", [mistakes.LATER_RUNS, mistakes.TWICE_BACK], ids=["later runs", "twice back"])
def test_walks_find_the_mistake(tmp_path, mistake):
    with put_back(mistake):
        assert any(wander(tmp_path, seed) for seed in range(N_WALKS))
