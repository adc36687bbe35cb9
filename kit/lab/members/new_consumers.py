"""Starts members of new Kafka groups (confluent-kafka, Java's console consumer) and paced producers."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.lab.java import compiled, jars, jvm
from kit.lab.members import pacer, subscriber
from kit.lab.members.handles import Consumer, consumption_file, whole_lines
from kit.lab.process import Process, ProcessSupervisor
from kit.lab.topics import QUIET

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_HEAP_MB = 96


@dataclass(frozen=True, slots=True)
class NewMember:
    """The task of one confluent-kafka member.

    ``assignor`` is librdkafka's ``partition.assignment.strategy``, empty with ``group.protocol=consumer``, where the
    broker assigns; ``delay_ms`` is waited after each record;
    ``until_end`` makes it leave once it has read everything; ``settings`` are librdkafka's.
    """

    group: str
    topics: Sequence[str]
    client_id: str = ""
    assignor: str = "range"
    delay_ms: int = 0
    until_end: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, bootstrap_servers: str, client_id: str, record: Path) -> dict[str, Any]:
        """Return the task as ``subscriber.py`` reads it."""
        settings = {
            **QUIET,
            "bootstrap.servers": bootstrap_servers,
            "group.id": self.group,
            **({"partition.assignment.strategy": self.assignor} if self.assignor else {}),
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500,
            # Slow members must not be taken for dead ones.
            "queued.min.messages": 1000,
            **self.settings,
        }
        return {
            "client_id": client_id,
            "topics": list(self.topics),
            "record": str(record),
            "delay_ms": self.delay_ms,
            "until_end": self.until_end,
            "settings": settings,
        }


def launch(
    supervisor: ProcessSupervisor, bootstrap_servers: str, members: Sequence[NewMember], number: int
) -> list[Consumer]:
    """Start one process with ``members`` without waiting; ``number`` (unique in a lab) goes into client ids."""
    ids = [member.client_id or f"{member.group}-{number}-{turn}" for turn, member in enumerate(members)]
    name = f"new-{members[0].group}-{number}"
    specs = [
        member.spec(bootstrap_servers, client_id, consumption_file(supervisor.folder, client_id))
        for member, client_id in zip(members, ids)
    ]
    events = supervisor.folder / f"{name}.events"
    process = supervisor.start(name, script(supervisor, subscriber.__file__, name, specs), output=events)
    return [
        Consumer(
            client_id,
            member.group,
            "new",
            process,
            consumption_file(supervisor.folder, client_id),
            events,
            member.until_end,
        )
        for member, client_id in zip(members, ids)
    ]


def launch_console(
    supervisor: ProcessSupervisor, bootstrap_servers: str, group: str, topic: str, number: int
) -> Consumer:
    """Start Java's console consumer as a member of ``group`` without waiting."""
    client_id = f"{group}-console-{number}"
    formatter = compiled.classes("RecordLines.java", jars.SERVERS)
    arguments = ["--bootstrap-server", bootstrap_servers, "--topic", topic, "--group", group, "--from-beginning"]
    arguments += ["--consumer-property", f"client.id={client_id}", "--consumer-property", "auto.commit.interval.ms=500"]
    arguments += ["--formatter", "RecordLines", "--property", f"consumer={client_id}"]
    class_path = jars.class_path(jars.SERVERS, formatter)
    record = consumption_file(supervisor.folder, client_id)
    process = supervisor.start(
        client_id, jvm.java(class_path, CONSOLE, arguments, CONSOLE_HEAP_MB, supervisor.folder), output=record
    )
    return Consumer(client_id, group, "console", process, record, process.log)


@dataclass(frozen=True, slots=True)
class PacedProducer:
    """A process that writes numbered records; ``production_file`` has what the brokers acknowledged."""

    name: str
    process: Process
    production_file: Path

    def acknowledged(self) -> list[dict[str, Any]]:
        """Acknowledged records so far: ``at_ms``, ``producer``, ``topic``, ``partition``, ``offset``, ``number``."""
        if not self.production_file.exists():
            return []
        return [json.loads(line) for line in whole_lines(self.production_file)]

    def stop(self) -> None:
        """SIGTERM and wait; what was written is acknowledged then."""
        self.process.stop()


def launch_producer(
    supervisor: ProcessSupervisor, bootstrap_servers: str, topics: Sequence[str], rate: float, number: int
) -> PacedProducer:
    """Start a producer of ``rate`` records per second over all ``topics``."""
    name = f"producer-{number}"
    record = production_folder(supervisor.folder) / f"{name}.jsonl"
    settings = {**QUIET, "bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5}
    spec = {"name": name, "topics": list(topics), "rate": rate, "record": str(record), "settings": settings}
    return PacedProducer(name, supervisor.start(name, script(supervisor, pacer.__file__, name, spec)), record)


def production_folder(folder: Path) -> Path:
    """Return where the paced producers of the lab in ``folder`` write what was acknowledged."""
    return folder / "production"


def script(supervisor: ProcessSupervisor, file: str, name: str, spec: object) -> list[str]:
    """The command that runs one of the lab's scripts on ``spec``.

    By its file and with ``-P``, not by its module name: importing ``kit`` would cost seconds, and the scripts' own
    folder on the path would put this package's ``kafka.py`` before the library of that name.
    """
    path = supervisor.folder / f"{name}.json"
    path.write_text(json.dumps(spec, indent=1), encoding="utf-8")
    return [sys.executable, "-P", file, str(path)]
