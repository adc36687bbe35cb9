"""Walks of operators, other operators or tools, clocks and networks against the engine with its real actors
(``tests/adversary``).

After every write the judge examines what an operator relies on: no write outside an approval that holds, nobody started
who reads another's partition, a way back that touches what its run did and nothing else, nothing unknown left untold.
Walks are drawn by seeds, so a failure names the walk to repeat, and shows it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from kit.engine.model.states import RunState
from tests.adversary.walk import wander
from tests.soak import IS_SOAK, Record, report

BATCH = 25
N_BATCHES = 100 if IS_SOAK else 8


pytestmark = pytest.mark.slow


@cache
def walked(batch: int) -> Counter[str]:
    """Walk a batch, once. Returns what its walks met."""
    met: Counter[str] = Counter()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        world = wander(seed)
        met.update(state for _, state in world.ends)
        met.update(str(order.manner) for order in world.orders)
        met["died"] += sum("is killed" in line for line in world.story)
        met["countermanded"] += sum(order.is_countermanded for order in world.orders)
    return met


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_walks(batch: int, record_property: Record) -> None:
    """A failure names its seed: ``wander(seed)`` walks it again."""
    report(record_property, f"{N_BATCHES * BATCH:,} walks in {N_BATCHES} batches")
    walked(batch)


def test_walks_meet_what_they_are_meant_to_meet() -> None:
    """Not all walks are idle: runs are verified, undone, refused, killed; orders come late."""
    met = walked(0) + walked(1)
    assert min(met[state] for state in (RunState.VERIFIED, RunState.UNDONE, RunState.FAILED)) >= 5, met
    assert met["died"] >= 3, met
