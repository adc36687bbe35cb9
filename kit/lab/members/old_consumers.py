"""Starts members of old ZooKeeper groups: real JVM consumers of three releases, one JVM for one or several members."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kit.errors import InputError
from kit.lab.java import compiled, jars, jvm
from kit.lab.members.handles import Consumer, consumption_file
from kit.lab.process import ProcessSupervisor

HEAP_MB = 128
DUAL = {"offsets.storage": "kafka", "dual.commit.enabled": "true"}
OFFSET_STORES: Mapping[str, Mapping[str, str]] = {
    "zookeeper": {"offsets.storage": "zookeeper"},
    "kafka": {"offsets.storage": "kafka", "dual.commit.enabled": "false"},
    "both": DUAL,
}
# Small time-outs, so that a crash shows within seconds. A broker holds a fetch without records for as long as new
# consumers ask it to: with the old default, 100 ms, the demo's groups alone take a quarter of a core from each broker.
QUICK = {
    "fetch.wait.max.ms": "500",
    "zookeeper.session.timeout.ms": "6000",
    "rebalance.backoff.ms": "500",
    "rebalance.max.retries": "20",
    "auto.commit.interval.ms": "500",
    "auto.offset.reset": "smallest",
}


@dataclass(frozen=True, slots=True)
class OldMember:
    """The task of one member. ``topics`` is ``t1,t2``, ``~whitelist regex`` or ``!blacklist regex``.

    ``threads`` counts streams per topic; ``offsets`` is ``zookeeper``, ``kafka`` or ``both``; ``assignor`` is
    ``range`` or ``roundrobin``; ``delay_ms`` is waited after each record; after ``limit`` records (0: never) it
    leaves its group in order; ``settings`` are consumer properties.
    """

    group: str
    topics: str
    threads: int = 1
    offsets: str = "zookeeper"
    assignor: str = "range"
    delay_ms: int = 0
    limit: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)

    def properties(self, zookeeper_connect: str, instance: str) -> dict[str, str]:
        """Its configuration; ``instance`` is the part of the consumer id after the group."""
        return {
            **QUICK,
            "group.id": self.group,
            "consumer.id": instance,
            "zookeeper.connect": zookeeper_connect,
            "partition.assignment.strategy": self.assignor,
            **OFFSET_STORES[self.offsets],
            **self.settings,
        }


def launch(
    supervisor: ProcessSupervisor, zookeeper_connect: str, members: Sequence[OldMember], version: str
) -> list[Consumer]:
    """Start one JVM of ``version`` with ``members`` and return their handles without waiting.

    Raises InputError for a version or offset store that isn't known, LabError when Java can't be started.
    """
    if version not in jars.OLD_CONSUMERS:
        raise InputError(f"Old consumers are of {', '.join(jars.OLD_CONSUMERS)}; {version} isn't one of them.")
    for member in members:
        if member.offsets not in OFFSET_STORES:
            raise InputError(f"Offsets go to {', '.join(OFFSET_STORES)}; {member.offsets!r} isn't one of them.")
    instances = [instance_id() for _ in members]
    name = f"old-{members[0].group}-{instances[0]}"
    files = []
    for member, instance in zip(members, instances):
        properties = member.properties(zookeeper_connect, instance) | driver_properties(supervisor, member, instance)
        file = supervisor.folder / f"{member.group}_{instance}.properties"
        file.write_text(jvm.properties(properties), encoding="utf-8")
        files.append(str(file))
    events = supervisor.folder / f"{name}.events"
    process = supervisor.start(name, command(supervisor, version, files), output=events)
    return [
        Consumer(
            f"{m.group}_{i}",
            m.group,
            "old",
            process,
            consumption_file(supervisor.folder, f"{m.group}_{i}"),
            events,
            m.limit > 0,
        )
        for m, i in zip(members, instances)
    ]


def command(supervisor: ProcessSupervisor, version: str, files: Sequence[str]) -> list[str]:
    """The driver is compiled once, against 1.1.1, and runs on every old release."""
    driver = compiled.classes("OldConsumer.java", jars.OLD_CONSUMERS["1.1.1"])
    class_path = jars.class_path(jars.OLD_CONSUMERS[version], driver)
    return jvm.java(class_path, "OldConsumer", files, HEAP_MB, supervisor.folder, ["-Xms32m"])


def driver_properties(supervisor: ProcessSupervisor, member: OldMember, instance: str) -> dict[str, str]:
    """The driver's own keys, see ``OldConsumer.java``."""
    consumer_id = f"{member.group}_{instance}"
    return {
        "driver.id": consumer_id,
        "driver.topics": member.topics,
        "driver.threads": str(member.threads),
        "driver.delay.ms": str(member.delay_ms),
        "driver.limit": str(member.limit),
        "driver.record": str(consumption_file(supervisor.folder, consumer_id)),
    }


def instance_id() -> str:
    """Shaped as the old consumer makes it, ``<host>-<epoch ms>-<8 hex digits>``, but known before the start."""
    return f"lab-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}"
