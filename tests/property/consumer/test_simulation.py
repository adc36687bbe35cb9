"""Members driven step by step through a model of ZooKeeper and of the Kafka group, in any order and with any fault.

After every step the judge examines KIP-125's invariants (``tests/simulation/judge.py`` says which, and what is exempt);
every walk ends in calm, where each partition must be consumed by the one member the mode in force says. Walks are drawn
by seeds, so a failure names the walk to repeat.
"""

from __future__ import annotations

import pytest

from tests.simulation.walk import wander
from tests.soak import IS_SOAK, Record, report

BATCH = 100
N_BATCHES = 60 if IS_SOAK else 6


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_walks_by_the_operators_rules(batch: int, record_property: Record) -> None:
    report(record_property, f"{N_BATCHES * BATCH:,} walks in {N_BATCHES} batches")
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        wander(seed)


@pytest.mark.parametrize("batch", range(N_BATCHES // 3))
def test_walks_of_operators_who_break_the_rules(batch: int, record_property: Record) -> None:
    report(record_property, f"{N_BATCHES // 3 * BATCH:,} walks in {N_BATCHES // 3} batches")
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        wander(100_000 + seed, by_the_rules=False)


def test_walks_meet_what_they_are_meant_to_meet() -> None:
    """Not all walks are idle: some have plain Kafka consumers, some turn to Kafka's coordination."""
    worlds = [wander(seed).world for seed in range(BATCH)]
    assert sum(world.had_kc for world in worlds) > BATCH / 5
    assert sum(sum(world.judge.handed.values()) for world in worlds) > 20 * BATCH
