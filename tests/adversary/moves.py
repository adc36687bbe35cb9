"""Do what another operator or tool, the network, the clock or the operator does while a run is between two requests."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta

from kit.engine.lock import LOCKS, escaped
from kit.engine.model.approval import save_approval
from kit.engine.model.journal import APPROVAL, PLAN
from kit.engine.model.plan import save_plan
from kit.tables.groups import KAFKA, ZOOKEEPER
from tests.adversary import plans
from tests.adversary.kafka_groups import KafkaGroup
from tests.adversary.process import Process, ProcessKilled
from tests.adversary.world import ContestedCluster
from tests.adversary.znodes import LOST, TIMEOUT

Move = Callable[[ContestedCluster, Process, random.Random], None]
MODES = (None, KAFKA, ZOOKEEPER)


def toggles(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    world.set_toggle(_name(world, rng), rng.choice(MODES))


def toggles_the_same(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """The same text once more, by somebody who now relies on it."""
    name = _name(world, rng)
    world.set_toggle(name, world.groups[name].mode)


def replaces(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    name = _name(world, rng)
    members = world.groups[name].members
    world.replace_member(
        name, rng.choice(members).member_id if members else None, rng.choice(world.groups[name].flavours)
    )


def restarts(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    name = _name(world, rng)
    members = world.groups[name].members
    if members:
        one = rng.choice(members)
        world.replace_member(name, one.member_id, one.flavour)


def adds(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    name = _name(world, rng)
    world.replace_member(name, None, rng.choice(world.groups[name].flavours))


def removes(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    name = _name(world, rng)
    if len(world.groups[name].members) > 1:
        world.replace_member(name, rng.choice(world.groups[name].members).member_id, None)


def kills(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """Sometimes over the middle of a line."""
    if rng.random() < 0.5:
        with (process.folder / "events.jsonl").open("ab") as file:
            file.write(json.dumps({"run_id": process.run_id})[:-3].encode())
    world.say(f"{process} is killed")
    process.is_dead = True  # The code that would release its lock at the exit does not run.
    raise ProcessKilled


def interrupts(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    world.say(f"{process} gets Ctrl-C")
    raise KeyboardInterrupt


def stops(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    if process.run is not None and not process.is_back:
        process.run.request_stop("Cid")
        process.stopped = True
        world.say(f"{process} is asked to stop")


def expires(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    world.time.ahead += timedelta(hours=5)
    world.say("five hours pass at once: approvals expire")


def sets_clock_back(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    world.time.ahead -= timedelta(hours=rng.choice((1, 6)))
    world.say("the operator's clock is set back")


def loses_answer(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    process.client.loses = (rng.random() < 0.5, rng.choice((LOST, TIMEOUT)))
    world.say(f"the answer to the next write of {process} is lost; is it applied: {process.client.loses[0]}")


def ends_session(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    process.client.expire()
    world.say(f"the ZooKeeper session of {process} expires")


def blinds(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    process.blind = rng.choice((1, 3))
    world.say(f"the next {process.blind} looks of {process} fail")


def carries_out(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    if world.open_orders:
        world.finish_late(rng.choice(world.open_orders))


def edits_the_plan(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """Edit the plan of a run that was begun, with a digest and an approval that are its own."""
    plan = world.judge.runs[process.run_id].plan
    other = plans.forged(plan, [name for name in world.groups if name not in plan.targets] or list(plan.targets), rng)
    save_plan(other, process.folder / PLAN)
    save_approval(world.approve(other), process.folder / APPROVAL)
    world.edited.add(process.run_id)
    world.say(f"somebody edits the plan of {world.short(process.run_id)}, and its approval")


def kills_a_member(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """Kill a member of a group of Kafka: it is visible until its session ends."""
    name = _name(world, rng)
    if world.groups[name].members:
        world.kill_member(_kafka_group(world, name), rng.choice(world.groups[name].members).member_id)


def moves_the_coordinator(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """Reads fail for a while. The new coordinator may know the lock's group no more as its holder left it."""
    _kafka_group(world, _name(world, rng)).move_coordinator()
    process.blind = rng.choice((1, 3))
    world.say(f"the coordinator moves; the next {process.blind} reads of {process} fail")
    if rng.random() < 0.5:
        ends_session(world, process, rng)


def breaks_the_lock(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    """Break the lock like ``offramp lock break``, while the run works."""
    for target in world.judge.runs[process.run_id].plan.targets:
        place = f"{LOCKS}/{escaped(target)}"
        if place in world.tree.nodes:
            world.tree.delete(place)
            world.say(f"another operator breaks the lock of {target}")


def waits(world: ContestedCluster, process: Process, rng: random.Random) -> None:
    world.time.seconds += 3600.0
    world.say("an hour passes")


ANY: tuple[Move, ...] = (
    toggles,
    toggles_the_same,
    replaces,
    restarts,
    adds,
    removes,
    kills,
    interrupts,
    stops,
    expires,
    sets_clock_back,
    loses_answer,
    ends_session,
    blinds,
    carries_out,
    edits_the_plan,
    waits,
)
LIKELY: tuple[Move, ...] = (kills, loses_answer, expires, carries_out, toggles, toggles_the_same, replaces)
"""Drawn more often: what most of the ways to undo have to do with."""

OF_PROTOCOLS: tuple[Move, ...] = (
    *(each for each in ANY if each not in (toggles, toggles_the_same, edits_the_plan)),
    *(kills, loses_answer, expires, carries_out, replaces),
    *(kills_a_member, kills_a_member, moves_the_coordinator, moves_the_coordinator, breaks_the_lock, breaks_the_lock),
)
"""The moves of groups that Kafka alone coordinates."""


def _kafka_group(world: ContestedCluster, name: str) -> KafkaGroup:
    found = world.groups[name]
    assert isinstance(found, KafkaGroup)
    return found


def _name(world: ContestedCluster, rng: random.Random) -> str:
    """Mostly the first, which most plans are for."""
    names = list(world.groups)
    return rng.choice([names[0], names[0], *names])
