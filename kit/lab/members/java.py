"""Starts Java members of Kafka groups, of any release from 0.9 on; each keeps a log in a layout of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kit.errors import InputError
from kit.lab.java import compiled, jars, jvm
from kit.lab.members.handles import Consumer, consumption_file
from kit.lab.process import ProcessSupervisor

HEAP_MB = 64
LAYOUTS = {
    "kafka": "[%d] %p %m (%c)%n",
    "hdp": "%d{yyyy-MM-dd HH:mm:ss} %-5p %c{2}:%L - %m%n",
    "spring": "%d{yyyy-MM-dd HH:mm:ss.SSS} %5p 4711 --- [%15.15t] %-40.40c{1.} : %m%n",
}
LOGGING = """log4j.rootLogger=INFO, E
log4j.appender.E=org.apache.log4j.ConsoleAppender
log4j.appender.E.Target=System.err
log4j.appender.E.layout=org.apache.log4j.EnhancedPatternLayout
log4j.appender.E.layout.ConversionPattern={pattern}
log4j.logger.org.apache.kafka.clients={level}
"""
# The session keeps the client's default, so that a starved machine loses no member.
QUICK = {
    "heartbeat.interval.ms": "500",
    "auto.commit.interval.ms": "500",
    "metadata.max.age.ms": "5000",
    "auto.offset.reset": "earliest",
}
BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


@dataclass(frozen=True, slots=True)
class JavaMember:
    """The task of one member. ``version`` is one of ``jars.CLIENTS``, ``layout`` one of ``LAYOUTS``; ``level`` is
    the clients' log level, ``zone`` that of its times; with ``listens`` it has a rebalance listener; ``settings``
    are consumer properties.
    """

    group: str
    topics: tuple[str, ...]
    client_id: str
    version: str = "3.9.1"
    layout: str = "kafka"
    level: str = "DEBUG"
    zone: str = "UTC"
    listens: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    def properties(self, bootstrap_servers: str, record: Path) -> dict[str, str]:
        """Its configuration, and the driver's own keys: see ``GroupMember.java``."""
        quick = dict(QUICK)
        if self.settings.get("group.protocol") == "consumer":  # there the broker sets them
            del quick["heartbeat.interval.ms"]
        return {
            **quick,
            "bootstrap.servers": bootstrap_servers,
            "group.id": self.group,
            "client.id": self.client_id,
            "key.deserializer": BYTES,
            "value.deserializer": BYTES,
            **self.settings,
            "driver.topics": ",".join(self.topics),
            "driver.record": str(record),
            "driver.listens": str(self.listens).lower(),
        }


def launch(supervisor: ProcessSupervisor, bootstrap_servers: str, member: JavaMember) -> Consumer:
    """Start a member in a JVM of its own without waiting; ``process.log`` is its log.

    Raises InputError for a version or layout that isn't known, LabError when Java can't be started.
    """
    for what, known, wanted in (("version", jars.CLIENTS, member.version), ("layout", LAYOUTS, member.layout)):
        if wanted not in known:
            raise InputError(f"Java members have no {what} {wanted!r}; there are {', '.join(known)}.")
    record = consumption_file(supervisor.folder, member.client_id)
    config = supervisor.folder / f"{member.client_id}.properties"
    config.write_text(jvm.properties(member.properties(bootstrap_servers, record)), encoding="utf-8")
    events = supervisor.folder / f"{member.client_id}.events"
    process = supervisor.start(member.client_id, command(supervisor, member, config), output=events)
    return Consumer(member.client_id, member.group, "new", process, record, events)


def command(supervisor: ProcessSupervisor, member: JavaMember, config: Path) -> list[str]:
    """Compiled against its own release: the arguments of ``subscribe`` changed, too."""
    jar_set = jars.CLIENTS[member.version]
    class_path = jars.class_path(jar_set, compiled.classes("GroupMember.java", jar_set))
    logging = supervisor.folder / f"log4j-{member.layout}-{member.level}.properties"
    logging.write_text(LOGGING.format(pattern=LAYOUTS[member.layout], level=member.level), encoding="utf-8")
    # The last configuration holds.
    options = ["-Xms16m", f"-Dlog4j.configuration=file:{logging}", f"-Duser.timezone={member.zone}"]
    return jvm.java(class_path, "GroupMember", [str(config)], HEAP_MB, supervisor.folder, options)
