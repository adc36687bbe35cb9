"""Groups of one kind of client each that go through the same scenes at the same time, and leave their logs."""

from __future__ import annotations

import json
import shutil
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from kit.errors import LabError
from kit.lab import Lab
from kit.lab.members.handles import Consumer, consumption_file
from kit.lab.members.java import JavaMember, launch
from kit.lab.process import wait_until
from tests.interop import kafka_python_member
from tests.soak import IS_SOAK, first

TOPIC = "clicks.eu-west"
PARTITIONS = 4
RECORDS = 40
SECONDS = 120.0
COOPERATIVE = {"partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"}
NEW_PROTOCOL = {"group.protocol": "consumer"}
PATIENT, PATIENT_OLD = {"session.timeout.ms": "15000"}, {"zookeeper.session.timeout.ms": "15000"}
"""On a busy machine a member is late, is given up, and plays another scene; 0.9 sends heartbeats when it polls alone.
"""
RDKAFKA_DEBUG = {"debug": "cgrp,consumer,topic", "log_level": 7}
KEPT, LINES_OF_BROKER = Path("build") / "log-scenes", 40
"""The folder for the logs of a scene that failed, and the number of the broker's lines that are shown."""
Owners = dict[str, frozenset[int]]
"""Consumer id → its partitions of ``TOPIC``."""


@dataclass
class Cast:
    """One group: ``start`` makes a member by its name; ``seen`` has who owned what after each scene."""

    group: str
    start: Callable[[str], Consumer]
    owners: Callable[[], Owners]
    lab: Lab
    has_worked: Callable[[Consumer], bool] = lambda member: True
    """The condition that a member has been in the group long enough for the next scene."""
    members: dict[str, Consumer] = field(default_factory=dict)
    seen: list[Owners] = field(default_factory=list)

    def enter(self, name: str) -> None:
        self.members[name] = self.start(name)

    def is_settled(self, names: Iterable[str]) -> bool:
        """Return whether each of these, and no other operator or tool, has partitions and has worked, and every
        partition is one's.

        And whether all records are delivered: so each member that lets go commits the same positions.
        """
        owners = self.owners()
        ids = {self.members[name].consumer_id for name in names}
        held = sorted(partition for owned in owners.values() for partition in owned)
        if {who for who, owned in owners.items() if owned} != ids or held != list(range(PARTITIONS)):
            return False
        n_records = sum(len(member.records()) for member in self.members.values())
        return n_records >= RECORDS and all(self.has_worked(self.members[name]) for name in names)

    @property
    def logs(self) -> list[Path]:
        return [member.process.log for member in self.members.values()]


def by_word(cast: Cast) -> Owners:
    """Return what the members that run report of themselves."""
    running = [member for member in cast.members.values() if member.process.running]
    return {each.consumer_id: frozenset(number for _, number in each.partitions()) for each in running}


def by_znodes(zookeeper: KazooClient, group: str) -> Owners:
    path = f"/consumers/{group}/owners/{TOPIC}"
    found: dict[str, set[int]] = {}
    try:
        for partition in zookeeper.get_children(path):
            thread = zookeeper.get(f"{path}/{partition}")[0].decode()
            found.setdefault(thread.rpartition("-")[0], set()).add(int(partition))
    except NoNodeError:
        return {}
    return {who: frozenset(owned) for who, owned in found.items()}


def java(
    lab: Lab, version: str, layout: str, mark: str = "", settings: dict[str, str] | None = None, **wishes: Any
) -> Cast:
    group = f"java{mark}.{version}"
    wanted = settings if settings == NEW_PROTOCOL else PATIENT | (settings or {})

    def start(name: str) -> Consumer:
        member = JavaMember(group, (TOPIC,), f"{group}-{name}", version, layout, settings=wanted, **wishes)
        return launch(lab.supervisor, lab.servers.addresses(), member)

    return _spoken(lab, group, start)


def converted(lab: Lab) -> Cast:
    """A classic member stays; beside it those of the new protocol come and go, and the group is converted each time."""
    group = "java-converted"

    def start(name: str) -> Consumer:
        version, settings = ("3.9.1", PATIENT) if name == "a" else ("4.1.1", NEW_PROTOCOL)
        member = JavaMember(group, (TOPIC,), f"{group}-{name}", version, "kafka", settings=settings)
        return launch(lab.supervisor, lab.servers.addresses(), member)

    return _spoken(lab, group, start)


def static(lab: Lab) -> Cast:
    """Static members: the name up to a hyphen is the instance. A restart takes less than the session."""
    group = "java-static"

    def start(name: str) -> Consumer:
        settings = {"group.instance.id": name.partition("-")[0], "session.timeout.ms": "300000"}
        member = JavaMember(group, (TOPIC,), f"{group}-{name}", "3.9.1", "kafka", settings=settings)
        return launch(lab.supervisor, lab.servers.addresses(), member)

    return _spoken(lab, group, start)


def rdkafka(lab: Lab, mark: str, assignor: str = "") -> Cast:
    group = f"rdkafka.{mark}"
    settings = RDKAFKA_DEBUG | (PATIENT if assignor else NEW_PROTOCOL)

    def start(name: str) -> Consumer:
        return lab.start_new_consumer(group, TOPIC, f"{group}-{name}", assignor, settings=settings, wait=False)

    return _spoken(lab, group, start)


def kafka_python(lab: Lab) -> Cast:
    group = "kafka-python"

    def start(name: str) -> Consumer:
        client_id = f"{group}-{name}"
        record, events = consumption_file(lab.folder, client_id), lab.folder / f"{client_id}.events"
        spec = {"bootstrap_servers": lab.bootstrap_servers, "group": group, "client_id": client_id, "topic": TOPIC}
        command = [sys.executable, "-P", kafka_python_member.__file__, json.dumps(spec | {"record": str(record)})]
        return Consumer(
            client_id, group, "new", lab.supervisor.start(client_id, command, output=events), record, events
        )

    return _spoken(lab, group, start)


def old(lab: Lab, zookeeper: KazooClient, version: str) -> Cast:
    group = f"old.{version}"
    return Cast(
        group,
        lambda name: lab.start_old_consumer(group, TOPIC, version=version, settings=PATIENT_OLD, wait=False),
        lambda: by_znodes(zookeeper, group),
        lab,
    )


def _spoken(lab: Lab, group: str, start: Callable[[str], Consumer]) -> Cast:
    cast = Cast(group, start, dict, lab)
    cast.owners = lambda: by_word(cast)
    return cast


def play(casts: list[Cast]) -> None:
    """A alone; B joins; B leaves in order; C joins; C is killed; A leaves."""
    _enter(casts, "a", ["a"])
    _enter(casts, "b", ["a", "b"])
    _exit(casts, "b", ["a"])
    _enter(casts, "c", ["a", "c"])
    for cast in casts:
        cast.members["c"].process.kill_without_waiting()
    _settle(casts, ["a"])
    for cast in casts:
        cast.members["c"].kill()
    _stop(casts, "a")


def restart(cast: Cast) -> None:
    """A alone; B joins; B is restarted; both leave."""
    _enter([cast], "a", ["a"])
    _enter([cast], "b", ["a", "b"])
    _stop([cast], "b")
    _enter([cast], "b-again", ["a", "b-again"])
    for name in ("a", "b-again"):
        _stop([cast], name)


def _enter(casts: list[Cast], name: str, then: list[str]) -> None:
    for cast in casts:
        cast.enter(name)
    _settle(casts, then)


def _exit(casts: list[Cast], name: str, then: list[str]) -> None:
    _stop(casts, name)
    _settle(casts, then)


def _stop(casts: list[Cast], name: str) -> None:
    for cast in casts:
        cast.members[name].process.signal(signal.SIGTERM)
    for cast in casts:
        cast.members[name].stop()


def _settle(casts: list[Cast], names: list[str]) -> None:
    for cast in casts:
        try:
            wait_until(partial(cast.is_settled, names), f"{cast.group} of {names}", SECONDS)
        except LabError as error:
            raise LabError(f"{error} It is {cast.owners()}.\n{_account(cast)}") from None
        cast.seen.append(cast.owners())


def _account(cast: Cast) -> str:
    """Return the coordinator's account of the group, the ends of all logs, and where whole copies of them are kept."""
    kept = KEPT / cast.group
    kept.mkdir(parents=True, exist_ok=True)
    broker = cast.lab.servers.brokers[0].process.log
    for log in [*cast.logs, broker]:
        shutil.copy(log, kept)
    of_group = [line for line in broker.read_text(errors="replace").splitlines() if cast.group in line]
    members = []
    for name, member in cast.members.items():
        now = "runs" if member.process.running else "has ended"
        members.append(f"{name} ({member.consumer_id}) {now}:\n{member.process.last_lines()}")
    coordinator = "\n".join(["The broker's log of the group:", *of_group[-LINES_OF_BROKER:]])
    return "\n".join([f"All logs are in {kept}.", _described(cast), coordinator, *members])


def _described(cast: Cast) -> str:
    """The group as its coordinator has it; why not, if it can't be asked."""
    try:
        asked = AdminClient({"bootstrap.servers": cast.lab.servers.addresses()}).describe_consumer_groups([cast.group])
        group = asked[cast.group].result(timeout=10)
        return "\n".join(
            [f"The coordinator: {group.state}, {group.type}", *(str(vars(each)) for each in group.members)]
        )
    except KafkaException as error:
        return f"The coordinator does not describe it: {error}"


COMMITS = 10
"""0.9 commits twice a second, a line per partition."""


def has_worked_for_seconds(member: Consumer) -> bool:
    """0.9 hears no heartbeat's answer: it searches for its coordinator ``session.timeout.ms`` after it joined, and
    hears of a rebalance then. The broker waits for it as long, but from the event on: one that comes at once throws it
    out.
    """
    since = member.process.log.read_text(errors="replace").rpartition("Setting newly assigned partitions")[2]
    return since.count("Committed offset") >= COMMITS * max(1, len(member.partitions()))


def patient(lab: Lab) -> Cast:
    cast = java(lab, "0.9.0.1", "hdp", zone="Asia/Kolkata")
    cast.has_worked = has_worked_for_seconds
    return cast


def on_zookeeper(lab: Lab, zookeeper: KazooClient) -> list[Cast]:
    """Clients that a broker of 3.9 serves, in the long form every one.

    0.9's times are of the zone that a request's time in them proves.
    """
    return [
        patient(lab),
        java(lab, "2.8.2", "kafka", listens=True),
        java(lab, "3.9.1", "spring"),
        java(lab, "3.9.1", "kafka", "-info", COOPERATIVE, level="INFO"),
        rdkafka(lab, "eager", "range"),
        rdkafka(lab, "cooperative", "cooperative-sticky"),
        kafka_python(lab),
        *[old(lab, zookeeper, version) for version in first(["1.1.1", "0.10.2.2", "0.8.2.2"])],
        *(others(lab) if IS_SOAK else []),
    ]


def others(lab: Lab) -> list[Cast]:
    """Releases between those of the short form."""
    return [java(lab, "0.10.2.2", "kafka"), java(lab, "1.1.1", "spring"), java(lab, "4.1.1", "kafka")]


def on_kraft(lab: Lab) -> list[Cast]:
    """The new protocol, a classic group at the new coordinator, and one that has members of both."""
    return [
        java(lab, "4.1.1", "kafka", "-new", NEW_PROTOCOL),
        java(lab, "3.9.1", "spring", "-new", NEW_PROTOCOL, listens=True),
        java(lab, "4.1.1", "kafka", "-kraft"),
        rdkafka(lab, "new"),
        converted(lab),
    ]
