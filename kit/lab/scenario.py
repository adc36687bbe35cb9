"""Starts the demo's fleet in a lab of three brokers and knows the true state of every group."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.errors import LabError
from kit.lab import fleet
from kit.lab.lab import Lab
from kit.lab.members.handles import Consumer
from kit.lab.members.new_consumers import PacedProducer
from kit.lab.process import Process, wait_until
from kit.text.quantity import quantity

BROKERS = 3
RACKS = ("rack-a", "rack-b", "rack-c")
STABLE_SECONDS = 90.0
POLL_SECONDS = 0.25


@dataclass(slots=True)
class Expected:
    """The expected state of one group. ``old`` and ``new`` are its consumers by ZooKeeper and by Kafka, also those that
    left.

    ``condition`` is one of ``fleet``'s (``lagging``, ``stopped member`` …) or empty for a group in good order.
    """

    name: str
    topics: tuple[str, ...]
    condition: str = ""
    old: list[Consumer] = field(default_factory=list)
    new: list[Consumer] = field(default_factory=list)

    @property
    def partitions(self) -> set[tuple[str, int]]:
        """Every (topic, partition) the group subscribes to."""
        return {(topic, partition) for topic in self.topics for partition in range(fleet.TOPICS[topic])}

    @property
    def old_members(self) -> list[Consumer]:
        """Members by ZooKeeper now, the stopped one among them."""
        return [consumer for consumer in self.old if not consumer.has_left]

    @property
    def new_members(self) -> list[Consumer]:
        """Members by the group coordinator now."""
        return [consumer for consumer in self.new if not consumer.has_left]


@dataclass(frozen=True, slots=True)
class Scenario:
    """The running fleet: the truth by group name, the producer, and the consumer that was stopped."""

    lab: Lab
    groups: dict[str, Expected]
    producer: PacedProducer
    stopped: Consumer

    def with_condition(self, condition: str) -> list[Expected]:
        """The groups in that condition."""
        return [group for group in self.groups.values() if group.condition == condition]


def start(lab: Lab, say: Callable[[str], None] = lambda line: None) -> Scenario:
    """Create the topics, start every group, wait until all are stable, stop one member and let the producer continue.

    Raises LabError when a consumer ends early or the fleet isn't stable in 90 s.
    """
    began = time.monotonic()

    def tell(line: str) -> None:
        say(f"{line} ({time.monotonic() - began:.0f} s)")

    lab.create_topics(fleet.TOPICS, min(3, len(lab.servers.brokers)))
    written = sum(sum(lab.produce(topic, count).values()) for topic, count in fleet.FIRST_RECORDS.items())
    tell(f"{quantity(len(fleet.TOPICS), 'topic')} with {quantity(written, 'record')}")
    groups, stopped = start_groups(lab)
    tell(f"{quantity(len(groups), 'group')} started, waiting until each owns all its partitions")
    await_stable(lab, list(groups.values()))
    stopped.pause()
    producer = lab.start_producer(list(fleet.TOPICS), fleet.RECORDS_PER_SECOND)
    wait_until(lambda: bool(producer.acknowledged()), "the producer's first records", 30)
    tell("The group is stable. One member was stopped, and the producer continues.")
    return Scenario(lab, groups, producer, stopped)


def start_groups(lab: Lab) -> tuple[dict[str, Expected], Consumer]:
    """Start all processes without waiting; returns the groups by name and the consumer to stop later."""
    groups: dict[str, Expected] = {}
    to_stop = []
    for process in fleet.OLD_PROCESSES:
        for member, consumer in zip(process.members, lab.start_old_consumers(process.members, process.version, False)):
            expected(groups, member.group, member.topics.split(",")).old.append(consumer)
            if process.stopped:
                to_stop.append(consumer)
    for new_member, consumer in zip(fleet.NEW_MEMBERS, lab.start_new_consumers(fleet.NEW_MEMBERS, False)):
        expected(groups, new_member.group, new_member.topics).new.append(consumer)
    console, topic = fleet.CONSOLE
    expected(groups, console, [topic]).new.append(lab.start_console_consumer(console, topic, wait=False))
    return groups, to_stop[0]


def expected(groups: dict[str, Expected], name: str, topics: Sequence[str]) -> Expected:
    """The entry of a group, made at its first member."""
    return groups.setdefault(name, Expected(name, tuple(topics), fleet.CONDITIONS.get(name, "")))


def await_stable(lab: Lab, groups: Sequence[Expected]) -> None:
    """Wait until every group is as it is meant to stay; raises LabError, naming those that aren't."""
    client = KazooClient(lab.zookeeper_connect)
    client.start(15)
    waiting = list(groups)
    processes = {consumer.process for group in groups for consumer in (*group.old, *group.new)}

    def all_settled() -> bool:
        waiting[:] = [group for group in waiting if not is_settled(group, client)]
        return not waiting

    try:
        settle(all_settled, processes, waiting)
    finally:
        client.stop()
        client.close()


def settle(all_settled: Callable[[], bool], processes: set[Process], waiting: list[Expected]) -> None:
    """Poll slowly (each observation reads files), ending at once when a process has failed."""
    deadline = time.monotonic() + STABLE_SECONDS
    while not all_settled():
        for process in processes:
            if process.exit_code:
                raise LabError(f"{process.name} ended with {process.exit_code}:\n{process.last_lines()}")
        if time.monotonic() > deadline:
            names = ", ".join(group.name for group in waiting)
            raise LabError(f"After {STABLE_SECONDS:.0f} s not every partition is owned and read: {names}.")
        time.sleep(POLL_SECONDS)


def is_settled(group: Expected, client: KazooClient) -> bool:
    """Return whether those who leave have left, and the remaining members own and have read every partition between
    them.
    """
    leaving = [consumer for consumer in (*group.old, *group.new) if consumer.leaves]
    if not all(consumer.has_left for consumer in leaving):
        return False
    return is_owned_by_zookeeper(group, client) and is_owned_by_kafka(group) and has_read_all(group)


def is_owned_by_zookeeper(group: Expected, client: KazooClient) -> bool:
    """Return whether exactly its old members are registered and every partition has one of them as owner."""
    members = group.old_members
    if not members:
        return True
    owners = [thread for topic in group.topics for thread in owners_of(client, group.name, topic)]
    registered = set(children(client, f"/consumers/{group.name}/ids"))
    owning = {owner.rpartition("-")[0] for owner in owners}
    ids = {consumer.consumer_id for consumer in members}
    owned = registered == ids and owning <= ids and len(owners) == len(group.partitions)
    return owned and (group.condition != fleet.STOPPED_MEMBER or has_committed_all(group, client))


def has_committed_all(group: Expected, client: KazooClient) -> bool:
    """Return whether ZooKeeper holds an offset of every partition: a stopped member can't add its own later."""
    kept = [children(client, f"/consumers/{group.name}/offsets/{topic}") for topic in group.topics]
    return sum(map(len, kept)) == len(group.partitions)


def owners_of(client: KazooClient, group: str, topic: str) -> list[str]:
    """Thread ids that own partitions of a topic."""
    path = f"/consumers/{group}/owners/{topic}"
    try:
        return [client.get(f"{path}/{partition}")[0].decode() for partition in children(client, path)]
    except NoNodeError:  # released between the two reads
        return []


def children(client: KazooClient, path: str) -> list[str]:
    """Names below a znode; none when it isn't there."""
    try:
        return list(client.get_children(path))
    except NoNodeError:
        return []


def is_owned_by_kafka(group: Expected) -> bool:
    """Return whether its new members, by their own words, have every partition exactly once."""
    members = group.new_members
    if not members:
        return True
    assigned = [pair for consumer in members if consumer.is_member() for pair in consumer.partitions()]
    return sorted(assigned) == sorted(group.partitions)


def has_read_all(group: Expected) -> bool:
    """Return whether something of every partition was delivered; of those that leave or lag that isn't asked."""
    if group.condition in (fleet.LAGGING, fleet.EMPTY):
        return True
    read = {pair for consumer in (*group.old, *group.new) for pair in consumer.handed_out()}
    return read >= group.partitions
