"""Walks of moves between the classic and the consumer protocol, struck between any two requests of a run.

Another operator deploys, a member is killed, the coordinator moves, a lock is broken. No run is VERIFIED untruly, and
none is stuck without resume, undo or a new plan.
"""

from __future__ import annotations

from collections import Counter

import pytest

from kit.engine.model.record import load_run
from kit.engine.model.states import RunState
from kit.moves.group.group_state import CLASSIC, CONSUMER
from kit.moves.group.replacement import KIND as REPLACE
from kit.moves.protocol.plan import ProtocolPlanRequest
from kit.moves.protocol.stopped import START_ALL
from tests.adversary import moves
from tests.adversary.deployers import Manner
from tests.adversary.judge import Wrong
from tests.adversary.kafka_groups import KafkaGroup
from tests.adversary.mistakes import CALLED_OFF_UNNAMED, STRANGERS_OWN, Mistake, put_back
from tests.adversary.plans import plan_protocol
from tests.adversary.process import Process
from tests.adversary.protocol_walk import wander_protocols
from tests.adversary.scene import begin, strike_at
from tests.adversary.walk import told
from tests.adversary.world import ContestedCluster
from tests.soak import IS_SOAK, Record, report

BATCH = 20
N_BATCHES = 100 if IS_SOAK else 2


@pytest.mark.parametrize("batch", range(N_BATCHES))
def test_walks_of_protocols(batch: int, record_property: Record) -> None:
    """A failure names its seed: ``wander_protocols(seed)`` walks it again."""
    report(record_property, f"{N_BATCHES * BATCH:,} walks in {N_BATCHES} batches")
    met = Counter[str]()
    for seed in range(batch * BATCH, (batch + 1) * BATCH):
        world = wander_protocols(seed)
        met.update(state for _, state in world.ends)
        met.update(step.kind for facts in world.judge.runs.values() for step in facts.plan.steps)
    assert min(met[it] for it in (RunState.VERIFIED, RunState.UNDONE, RunState.FAILED)) >= 3, met
    assert min(met[it] for it in (REPLACE, START_ALL)) >= 3, met


def planned(world: ContestedCluster, **wishes: object) -> Process:
    """A run of a plan to the consumer protocol, not executed yet."""
    plan = plan_protocol(world, ProtocolPlanRequest("orders", CONSUMER, soak_s=0.0, step_timeout_s=40.0, **wishes))
    assert plan is not None, world.story
    return begin(world, plan)


def a_restart_beside_an_order() -> None:
    """Another operator restarts a consumer-protocol member while the run waits for its own: two newcomers are there."""
    protocols = (CONSUMER, CLASSIC, CLASSIC)
    with told(0, lambda root: ContestedCluster(root, [("orders", protocols, None)], kind=KafkaGroup)) as world:
        world.locks_in_kafka = True
        world.settle()
        process = planned(world)
        (theirs,) = (each for each in world.groups["orders"].members if each.flavour == CONSUMER)
        strike_at(world, "replaced", lambda *_: world.replace_member("orders", theirs.member_id, CONSUMER))
        process.work("act")
        assert load_run(process.folder).state == RunState.FAILED
        world.strike = None
        world.again(process).work("undo")
        world.judge.raise_if_wrong()


def a_stop_that_is_called_off() -> None:
    """The stop may still be executed when the run is resumed: it is called off by its member and its protocol."""
    with told(0, lambda root: ContestedCluster(root, [("orders", (CLASSIC,) * 3, None)], kind=KafkaGroup)) as world:
        world.locks_in_kafka = True
        world.settle()
        process = planned(world, how="stopped")
        world.manners = (Manner.SLOW,)
        process.work("act")
        world.manners = (Manner.PROMPT,)
        world.again(process).work("undo")
        world.judge.raise_if_wrong()
        assert load_run(process.folder).state == RunState.UNDONE


@pytest.mark.parametrize(
    ("race", "mistake"),
    [(a_restart_beside_an_order, STRANGERS_OWN), (a_stop_that_is_called_off, CALLED_OFF_UNNAMED)],
)
def test_a_race_of_protocols_is_judged_and_finds_the_mistake_that_is_put_back(race, mistake: Mistake) -> None:
    race()
    with put_back(mistake), pytest.raises((Wrong, AssertionError)):
        race()


@pytest.mark.parametrize("move", [moves.kills_a_member, moves.moves_the_coordinator, moves.breaks_the_lock])
@pytest.mark.parametrize("how", ["rolling", "stopped"])
def test_a_run_that_is_struck_between_two_requests_ends_by_resume_or_undo(move: moves.Move, how: str) -> None:
    with told(0, lambda root: ContestedCluster(root, [("orders", (CLASSIC,) * 3, None)], kind=KafkaGroup)) as world:
        world.locks_in_kafka = True
        world.settle()
        process = planned(world, how=how)
        strike_at(world, "replaced", move, nth=2)
        process.work("act")
        world.strike = None
        for verb in ("resume", "resume", "undo"):
            if load_run(process.folder).state in (RunState.VERIFIED, RunState.UNDONE):
                break
            world.settle()
            process = world.again(process)
            process.work(verb, world.approve(load_run(process.folder).plan))
        world.judge.raise_if_wrong()
        assert load_run(process.folder).state == RunState.VERIFIED, "\n".join(world.story)
