"""Members driven step by step through a model of ZooKeeper and of the Kafka group, in any order and with any fault.

After every step the judge looks at KIP-125's invariants (``tests/simulation/judge.py`` says which, and what is exempt);
every walk ends in calm, where each partition must be consumed by the one member the mode in force says. Walks are drawn
by seeds, so a failure names the walk to repeat. Mistakes put back on purpose must be found.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

from kit.consumer import coordination as effects
from kit.consumer.assignors import assign
from kit.consumer.coordination import Coordination, KafkaGroup
from kit.consumer.gate import Gate
from kit.consumer.migration import decide
from tests.simulation.model_member import PythonMember
from tests.simulation.steps import Violation
from tests.simulation.walk import wander

IS_SOAK = bool(os.environ.get("OFFRAMP_SOAK"))
BATCH = 100
N_BATCHES = 60 if IS_SOAK else 6
N_SEEDS_PER_MISTAKE = 600


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_walks_by_the_operators_rules(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        wander(seed)


@pytest.mark.parametrize("batch", range(N_BATCHES // 3))
def test_walks_of_operators_who_break_the_rules(batch: int) -> None:
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        wander(100_000 + seed, by_the_rules=False)


def test_walks_meet_what_they_are_meant_to_meet() -> None:
    """Not all walks are idle: some have plain Kafka consumers, some turn to Kafka's coordination."""
    worlds = [wander(seed).world for seed in range(BATCH)]
    assert sum(world.had_kc for world in worlds) > BATCH / 5
    assert sum(sum(world.judge.handed.values()) for world in worlds) > 20 * BATCH


class RevokedDoesNothing(Coordination):
    """D2: the old owner fetches through the whole join, and commits late."""

    def revoked(self) -> effects.Steps:
        return
        yield


class SessionLostIsIgnored(Coordination):
    """D6: what was held in the last session is deleted in the next, whoever holds it by then."""

    def session_lost(self) -> None:
        pass

    def doubt(self) -> None:
        pass


class PlainConsumersAreIgnored(Coordination):
    """D12, D13: ZooKeeper's assignment while plain Kafka consumers are members."""

    def _decide(self, view: effects.GroupView) -> Any:
        if not self.is_migration_enabled:
            return (yield from super()._decide(view))
        yield effects.ReadKafkaGroup(frozenset(view.members))
        return decide(view.toggle, view.members, view.migration_enabled, (), self.mode, False), KafkaGroup()


class ReleasesBeforeItCommits(Coordination):
    """I3 the wrong way round: the next owner begins at an older offset."""

    def _let_go(self, mine: Any) -> effects.Steps:
        leaving = frozenset(pair for pair in self.held if pair not in mine)
        if leaving:
            yield effects.Release(leaving)
            yield from self._stop(leaving)
            self.held = {pair: thread for pair, thread in self.held.items() if pair not in leaving}


class NeverCommitsAtARelease(Coordination):
    """D14, in effect: the ZooKeeper commit is left out."""

    def _commit(self, offsets: effects.Offsets) -> Any:
        return frozenset()
        yield


class ReadsOffsetsBeforeItClaims(Coordination):
    """As the old consumer does: its predecessor may commit in between."""

    def _follow_zookeeper(self, view: Any, decision: Any, group: Any) -> effects.Round:
        whole = assign(self.strategy, view.members, view.partitions, self.hash_form)
        mine = self._own(whole)
        self._early = yield effects.FetchOffsets(frozenset(mine))
        return (yield from super()._follow_zookeeper(view, decision, group))

    def _consume(self, mine: Any, licence: int | None, outcome: Any, telling: Any) -> effects.Round:
        steps = super()._consume(mine, licence, outcome, telling)
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(effect, effects.FetchOffsets) and licence is None:
                answer = {pair: self._early[pair] for pair in effect.partitions if pair in self._early}
            else:
                answer = yield effect


class LicenceIsIgnored(Gate):
    """A round that a rebalance overtook starts what the last generation gave it (I2)."""

    def _is_open(self, licence: int | None) -> bool:
        return self._session is not None


class LostIsIgnored(Coordination):
    """R13: put out of the Kafka group, it reads on beside the next owner."""

    def lost(self) -> effects.Steps:
        return
        yield


class ClaimsNothing(PythonMember):
    """D1: no owner znodes for what Kafka's coordination gives it."""

    def do_ClaimEach(self, effect: effects.ClaimEach) -> Any:
        return frozenset()


def member_with(mistake: type) -> type[PythonMember]:
    if issubclass(mistake, PythonMember):
        return mistake
    name = "gate_class" if issubclass(mistake, Gate) else "coordination_class"
    return type(mistake.__name__, (PythonMember,), {name: mistake})


@pytest.mark.parametrize(
    "mistake",
    [
        ClaimsNothing,
        RevokedDoesNothing,
        SessionLostIsIgnored,
        PlainConsumersAreIgnored,
        ReleasesBeforeItCommits,
        NeverCommitsAtARelease,
        ReadsOffsetsBeforeItClaims,
        LicenceIsIgnored,
        LostIsIgnored,
    ],
)
def test_a_mistake_is_caught(mistake: type) -> None:
    member_class = member_with(mistake)
    for seed in range(N_SEEDS_PER_MISTAKE):
        try:
            wander(seed, member_class)
        except Violation as found:
            print(f"{mistake.__name__}: seed {seed}: {found}")
            return
    pytest.fail(f"{N_SEEDS_PER_MISTAKE} walks with {mistake.__name__}, and nothing was found")
