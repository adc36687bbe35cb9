"""Convergence: once faults have ended, every partition is consumed by exactly one member, the one it is assigned to.

The assignment is the one of the mode in force: Kafka's when the toggle says so and every member is migration-enabled,
or while Kafka consumers are members; else ZooKeeper's. Old consumers among Kafka consumers own nothing (R5), unless one
got hold of what a member had just released or died with: then it consumes that alone. An old consumer that gave up is
woken as its operators would: by a change under ids.
"""

from __future__ import annotations

from kit.consumer.zookeeper.assignors import TopicAndPartition, assign_range
from kit.consumer.zookeeper.migration import Mode
from tests.simulation.model_jvm import OldConsumer, PlainConsumer
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import Create, Delete
from tests.simulation.steps import Violation
from tests.simulation.world import SERVERS, SimulatedGroup, is_migrating

MOST_TICKS, CALM_TICKS, WAKE_EVERY = 90, 3, 15


def heal(world: SimulatedGroup) -> None:
    """All faults have ended."""
    world.set_coordinator(True)
    for name, member in world.members.items():
        world.resume(name)
        for from_zookeeper in (True, False):
            world.cut(name, from_zookeeper, is_cut=False)
        if not isinstance(member, PlainConsumer):
            member.client.fails_next = None


def settle(world: SimulatedGroup, most_ticks: int = MOST_TICKS) -> int:
    """Run fairly until nothing is wrong for a while; how many ticks it took until then.

    Raises:
        Violation: it never was so, or some record was not delivered.
    """
    heal(world)
    calm = 0
    for tick in range(most_ticks):
        if world.judge.is_rule_broken:
            _stop_kafka_consumers(world)
        world.run_fairly(1)
        problems = list_problems(world)
        calm = 0 if problems else calm + 1
        if calm == CALM_TICKS:
            return tick + 1 - CALM_TICKS
        if tick % WAKE_EVERY == WAKE_EVERY - 1:
            _wake_zombies(world)
    raise Violation("convergence", f"after {most_ticks} s: " + "; ".join(problems or ["it never was calm"]))


def list_problems(world: SimulatedGroup) -> list[str]:
    expected = expected_consumers(world)
    problems = []
    mode = expected_mode(world)
    are_old_reserved_out = mode is Mode.KAFKA and bool(world.old_members())
    for member in world.migrating():
        if member.mode is not mode:
            problems.append(f"{member.consumer_id} follows {member.mode}, not {mode}")
        if not are_old_reserved_out and {
            pair: _owner(world, thread.rpartition("-")[0]) for pair, thread in member.announced.items()
        } != _owners_of(expected):
            problems.append(f"{member.consumer_id}'s listener was last told {member.announced}")
    for pair in world.partitions:
        consumers = sorted(_consumers(world, pair))
        if len(consumers) != 1 if are_old_reserved_out else consumers != expected[pair]:
            problems.append(f"{pair[0]}-{pair[1]} is consumed by {consumers}, not {expected[pair]}")
        if expected[pair] and world.judge.handed[pair] < world.ends[pair]:
            problems.append(f"{pair[0]}-{pair[1]} is delivered up to {world.judge.handed[pair]} of {world.ends[pair]}")
    return problems


def expected_mode(world: SimulatedGroup) -> Mode:
    has_kc = any(isinstance(each, PlainConsumer) for each in world.members.values())
    has_old = any(not is_migrating(each) and not isinstance(each, PlainConsumer) for each in world.members.values())
    if has_kc or (world.toggle == Mode.KAFKA.value and not has_old):
        return Mode.KAFKA
    return Mode.ZOOKEEPER


def expected_consumers(world: SimulatedGroup) -> dict[TopicAndPartition, list[str]]:
    expected: dict[TopicAndPartition, list[str]] = {pair: [] for pair in world.partitions}
    if expected_mode(world) is Mode.KAFKA:
        for name, pairs in world.group.assignments.items():
            for pair in pairs:
                expected[pair].append(_owner(world, name))
        return expected
    members = {
        each.consumer_id: each.streams_by_topic
        for each in world.members.values()
        if not isinstance(each, PlainConsumer)
    }
    numbers = {"t": [number for _, number in world.partitions]}
    for pair, thread in (assign_range(members, numbers) if members else {}).items():
        expected[pair].append(thread.rpartition("-")[0])
    return expected


def _consumers(world: SimulatedGroup, pair: TopicAndPartition) -> list[str]:
    """Return who can deliver records of ``pair``, and may."""
    names = []
    for member in world.members.values():
        if pair not in member.consuming:
            continue
        owner = world.zookeeper.znodes.get(("owners", pair))
        is_owner = isinstance(member, PlainConsumer) or (owner is not None and owner.session == member.client.session)
        # An old consumer whose owner znode another one deleted reads on, and notices nothing.
        is_owner |= isinstance(member, OldConsumer) and owner is None
        if is_owner or isinstance(member, PythonMember):
            names.append(member.consumer_id if is_owner else member.consumer_id + " without owning it")
    return names


def _owners_of(expected: dict[TopicAndPartition, list[str]]) -> dict[TopicAndPartition, str]:
    return {pair: names[0] for pair, names in expected.items() if names}


def _owner(world: SimulatedGroup, name: str) -> str:
    """The consumer with this consumer id, or with this member id in the Kafka group. A KC has any client id."""
    for member in world.members.values():
        if isinstance(member, PlainConsumer) and member.kafka.member_id == name:
            return member.consumer_id
    member_of = world.group.members.get(name)
    return member_of.client_id if member_of is not None else name


def _stop_kafka_consumers(world: SimulatedGroup) -> None:
    """Stop Kafka consumers, as a member's alarm asks operators to do."""
    for name, member in world.members.items():
        if isinstance(member, PlainConsumer):
            world.leave(name)


def _wake_zombies(world: SimulatedGroup) -> None:
    if any(isinstance(each, OldConsumer) and each.is_zombie for each in world.members.values()):
        path = ("ids", "g_operator")
        world.zookeeper.transact(SERVERS, [Create(path, {})])
        world.zookeeper.transact(SERVERS, [Delete(path)])
