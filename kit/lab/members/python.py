"""Starts members written in Python (``kit.consumer``): of old groups, migration-enabled, or of new groups."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.lab.members.handles import Consumer, consumption_file
from kit.lab.members.old_consumers import QUICK, instance_id
from kit.lab.process import ProcessSupervisor


@dataclass(frozen=True, slots=True)
class PythonMember:
    """The task of one member.

    ``flavour`` is ``ozkcc``, ``mezkcc`` or ``kc``; ``topics`` are names, or else ``allow`` or ``deny`` is a pattern;
    ``delay_ms`` is waited after each record; ``settings`` are the consumer's own keys.
    """

    flavour: str
    group: str
    topics: Sequence[str] = ()
    allow: str | None = None
    deny: str | None = None
    threads: int = 1
    assignor: str = "range"
    delay_ms: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)

    def config(self, zookeeper_connect: str, bootstrap_servers: str, instance: str) -> dict[str, Any]:
        """Its configuration; ``instance`` is the part of the consumer id after the group."""
        if self.flavour == "kc":
            return {
                "log_level": 0,
                "bootstrap.servers": bootstrap_servers,
                "group.id": self.group,
                "client.id": f"{self.group}-{instance}",
                "partition.assignment.strategy": self.assignor,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 500,
                "session.timeout.ms": 6000,
                "heartbeat.interval.ms": 500,
                **self.settings,
            }
        migration = {
            "offsets.storage": "kafka",
            "coordination.migration.enabled": "true",
            "coordination.migration.bootstrap.servers": bootstrap_servers,
        }
        return {
            **QUICK,
            "group.id": self.group,
            "consumer.id": instance,
            "zookeeper.connect": zookeeper_connect,
            "partition.assignment.strategy": self.assignor,
            **(migration if self.flavour == "mezkcc" else {}),
            **self.settings,
        }


def launch(
    supervisor: ProcessSupervisor,
    zookeeper_connect: str,
    bootstrap_servers: str,
    members: Sequence[PythonMember],
    profile: Path | None = None,
) -> list[Consumer]:
    """Start one process with ``members`` without waiting; they log in at ZooKeeper as this profile describes."""
    specs, consumers = [], []
    instances = [instance_id() for _ in members]
    name = f"python-{members[0].group}-{instances[0]}"
    events = supervisor.folder / f"{name}.events"
    for member, instance in zip(members, instances):
        config = member.config(zookeeper_connect, bootstrap_servers, instance)
        consumer_id = config.get("client.id") or f"{member.group}_{instance}"
        record = consumption_file(supervisor.folder, consumer_id)
        specs.append(
            {
                "flavour": member.flavour,
                "config": config,
                "topics": list(member.topics),
                "allow": member.allow,
                "deny": member.deny,
                "threads": member.threads,
                "delay_ms": member.delay_ms,
                "profile": str(profile) if profile else None,
                "record": str(record),
            }
        )
        consumers.append((consumer_id, member.group, "new" if member.flavour == "kc" else "old", record))
    file = supervisor.folder / f"{name}.json"
    file.write_text(json.dumps(specs, indent=1), encoding="utf-8")
    process = supervisor.start(name, [sys.executable, "-m", "kit.lab.members.python_process", str(file)], output=events)
    return [Consumer(each, group, kind, process, record, events) for each, group, kind, record in consumers]
