"""The members of a lab: started, replaced one by one, and known with what one in their place has to be like."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kit.errors import InputError
from kit.lab.java import jars
from kit.lab.members import java as java_members, new_consumers, old_consumers, python as python_members
from kit.lab.members.handles import Consumer
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember, PacedProducer
from kit.lab.members.old_consumers import OldMember
from kit.lab.members.protocols import PROTOCOLS, of_protocol
from kit.lab.members.python import PythonMember
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.cluster import Servers


@dataclass(frozen=True, slots=True)
class _Started:
    """A consumer, and what one in its place has to be like. ``member`` describes one that knows two protocols."""

    consumer: Consumer
    topics: tuple[str, ...]
    threads: int = 1
    assignor: str = "range"
    member: NewMember | JavaMember | None = None


class LabMembers:
    """Start clients on a lab's servers: producers, and consumers of every kind."""

    supervisor: ProcessSupervisor
    servers: Servers

    member_profile: Path | None = None
    """Profile by whose login members in Python come to ZooKeeper."""

    def __init__(self) -> None:
        self._serial = itertools.count(1)
        self._known: dict[str, _Started] = {}

    @property
    def _all(self) -> list[_Started]:
        """A copy: orders for several groups start members at the same time."""
        return list(self._known.values())

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` with the chroot, unencrypted."""
        return self.servers.zookeeper_connect

    def start_old_consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        threads: int = 1,
        version: str = "1.1.1",
        offsets: str = "zookeeper",
        assignor: str = "range",
        delay_ms: int = 0,
        settings: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> Consumer:
        """Start one real old consumer in a JVM of its own; see ``OldMember`` for the arguments.

        Returns when its streams are made (``wait``); raises LabError when it ends before.
        """
        names = topics if isinstance(topics, str) else ",".join(topics)
        member = OldMember(group, names, threads, offsets, assignor, delay_ms, settings=settings or {})
        return self.start_old_consumers([member], version, wait)[0]

    def start_old_consumers(
        self, members: Sequence[OldMember], version: str = "1.1.1", wait: bool = True
    ) -> list[Consumer]:
        """Start one JVM with several old consumers, of one group or of several."""
        started = old_consumers.launch(self.supervisor, self.zookeeper_connect, members, version)
        for member, each in zip(members, started):
            topics = tuple(member.topics.split(","))
            self._known[each.consumer_id] = _Started(each, topics, member.threads, member.assignor)
        for consumer in started if wait else ():
            consumer.await_ready()
        return started

    def start_python_member(
        self, flavour: str, group: str, topics: str | Sequence[str] = (), **wishes: Any
    ) -> Consumer:
        """Start one member written in Python in a process of its own; see ``PythonMember`` for the arguments.

        Returns when it is a member; raises LabError when it ends before.
        """
        names = [topics] if isinstance(topics, str) else topics
        return self.start_python_members([PythonMember(flavour, group, names, **wishes)])[0]

    def start_python_members(self, members: Sequence[PythonMember], wait: bool = True) -> list[Consumer]:
        """Start one process with several members written in Python, of one group or of several."""
        started = python_members.launch(
            self.supervisor, self.zookeeper_connect, self.servers.addresses(), members, self.member_profile
        )
        for member, each in zip(members, started):
            self._known[each.consumer_id] = _Started(each, tuple(member.topics), member.threads, member.assignor)
        for consumer in started if wait else ():
            consumer.await_ready()
        return started

    def start_new_consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        client_id: str = "",
        assignor: str = "range",
        delay_ms: int = 0,
        until_end: bool = False,
        settings: Mapping[str, Any] | None = None,
        wait: bool = True,
    ) -> Consumer:
        """Start one confluent-kafka consumer in a process of its own; see ``NewMember`` for the arguments.

        Returns when partitions are assigned to it (``wait``); raises LabError when it ends before.
        """
        names = [topics] if isinstance(topics, str) else topics
        member = NewMember(group, names, client_id, assignor, delay_ms, until_end, settings or {})
        return self.start_new_consumers([member], wait)[0]

    def start_new_consumers(self, members: Sequence[NewMember], wait: bool = True) -> list[Consumer]:
        """Start one process with several confluent-kafka consumers, of one group or of several."""
        started = new_consumers.launch(self.supervisor, self.servers.addresses(), members, next(self._serial))
        for member, each in zip(members, started):
            self._known[each.consumer_id] = _Started(each, tuple(member.topics), member=member)
        for consumer in started if wait else ():
            consumer.await_ready()
        return started

    def start_java_member(self, member: JavaMember, wait: bool = True) -> Consumer:
        """Start one Java member of a Kafka group in a JVM of its own; returns when partitions are assigned to it.

        Raises LabError when it ends before.
        """
        consumer = java_members.launch(self.supervisor, self.servers.addresses(), member)
        self._known[consumer.consumer_id] = _Started(consumer, member.topics, member=member)
        if wait:
            consumer.await_ready()
        return consumer

    def start_console_consumer(self, group: str, topic: str, wait: bool = True) -> Consumer:
        """Start the Java console consumer of Kafka 3.9.1 as a member of ``group``."""
        consumer = new_consumers.launch_console(
            self.supervisor, self.servers.addresses(), group, topic, next(self._serial)
        )
        self._known[consumer.consumer_id] = _Started(consumer, (topic,))
        if wait:
            consumer.await_ready()
        return consumer

    def consumers(self, group: str) -> list[Consumer]:
        """Every consumer of a group that was started here, those that ended among them, oldest first."""
        return [known.consumer for known in self._all if known.consumer.group == group]

    def replace(self, group: str, consumer_id: str, flavour: str) -> str:
        """Stop a consumer in order and start one of another flavour in its place; what was done, in a sentence.

        ``flavour``: OZKCC, MEZKCC or KC; or ``classic`` or ``consumer``, the protocol of a member that is otherwise the
        same; empty: none is started. One that isn't known or has ended is not stopped: then one is only started. The
        other members of its process stay. Started members aren't all alike, as in a real fleet: OZKCCs are of
        every release in turn, every other KC is Java's console consumer.

        Raises:
            InputError: the group has no consumer here, or the flavour isn't one.
            LabError: the old one did not leave, or the new one did not become a member.
        """
        mine = [known for known in self._all if known.consumer.group == group]
        if not mine:
            raise InputError(f"The lab has started no consumer of group {group!r}.")
        stopping = self._known.get(consumer_id)
        if stopping is not None and stopping.consumer.process.running:
            self._end(stopping.consumer)
        if not flavour:
            return f"{consumer_id} stopped"
        started = self._launch(flavour, stopping or mine[0])
        return f"{consumer_id or 'nothing'} stopped, {started.consumer_id} started"

    def _end(self, consumer: Consumer) -> None:
        """With its process, unless others are members in it."""
        same_process = [each.consumer for each in self._all if each.consumer.process is consumer.process]
        if any(not each.has_left for each in same_process if each is not consumer):
            consumer.leave()
        else:
            consumer.stop()

    def _launch(self, flavour: str, like: _Started) -> Consumer:
        group, topics, turn = like.consumer.group, like.topics, next(self._serial)
        if flavour in PROTOCOLS:
            return self._launch_protocol(flavour, like, f"{group}-{flavour}-{turn}")
        if flavour == "OZKCC":
            # All of a roundrobin group have to be of before 1.0, or of after it (KAFKA-5822).
            releases = ("1.1.1",) if like.assignor == "roundrobin" else tuple(jars.OLD_CONSUMERS)
            release = releases[turn % len(releases)]
            return self.start_old_consumer(group, topics, like.threads, release, assignor=like.assignor)
        if flavour == "MEZKCC":
            return self.start_python_member("mezkcc", group, topics, threads=like.threads, assignor=like.assignor)
        if flavour == "KC" and len(topics) == 1 and turn % 2:
            return self.start_console_consumer(group, topics[0])
        if flavour == "KC":
            return self.start_python_member("kc", group, topics)
        raise InputError(f"There is no flavour {flavour!r}; there are OZKCC, MEZKCC, KC, {' and '.join(PROTOCOLS)}.")

    def _launch_protocol(self, protocol: str, like: _Started, client_id: str) -> Consumer:
        """A member as ``like`` under ``protocol``; what it was described as at first is kept for the next one."""
        if isinstance(like.member, JavaMember):
            started = self.start_java_member(of_protocol(like.member, protocol, client_id))
        elif like.member is not None:
            started = self.start_new_consumers([of_protocol(like.member, protocol, client_id)])[0]
        else:
            raise InputError(f"{like.consumer.consumer_id} can't be started under the protocol {protocol!r}.")
        self._known[client_id] = replace(self._known[client_id], member=like.member)
        return started

    def start_producer(self, topics: str | Sequence[str], rate: float = 100.0) -> PacedProducer:
        """Start a process that writes numbered records, ``rate`` per second over all ``topics``, until stopped."""
        names = [topics] if isinstance(topics, str) else topics
        return new_consumers.launch_producer(self.supervisor, self.servers.addresses(), names, rate, next(self._serial))
