"""One group: its ZooKeeper, its Kafka coordinator, its members, time, faults and operators.

Time passes in ticks of a second. In a tick, running processes' own timers come before the servers': pings and
heartbeats are sent, and a client that has heard nothing for its session's time knows it (librdkafka counts from the
answer to a heartbeat, the coordinator from the heartbeat itself; that the difference is too small to matter is what R13
rests on, and what this model takes for granted). A paused process has no timers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import Offsets
from kit.consumer.zookeeper.migration import Mode
from tests.simulation.judge import GroupJudge
from tests.simulation.model_jvm import OldConsumer, PlainConsumer
from tests.simulation.model_kafka_group import GroupClient, GroupServer, Unavailable
from tests.simulation.model_member import PythonMember
from tests.simulation.model_zookeeper import Create, Delete, Set, SimulatedZookeeper

Member: TypeAlias = PythonMember | OldConsumer | PlainConsumer
REFRESH_TICKS = 3
SERVERS = 0
"""The session of operators, brokers and tools: it makes only persistent znodes."""


def is_migrating(member: Member) -> bool:
    return isinstance(member, PythonMember) and member.is_migration_enabled


class SimulatedGroup:
    """``members`` by name, those alive. ``ends``: each partition's log end; a record comes with every tick."""

    def __init__(self, n_partitions: int = 4, member_class: type[PythonMember] = PythonMember) -> None:
        self.now = 0.0
        self.topics = ("t",)
        self.members: dict[str, Member] = {}
        self.had_kc = False
        self.slept_while_cut: set[str] = set()
        self.member_class = member_class
        self.judge = GroupJudge(self)
        self.zookeeper = SimulatedZookeeper(lambda: self.now, self.judge)
        self.group = GroupServer(lambda: self.now, {"t": n_partitions})
        self.ends: dict[TopicAndPartition, int] = {("t", number): 3 for number in range(n_partitions)}
        self._n_partitions = n_partitions
        self._killed: list[Member] = []
        self.zookeeper.transact(SERVERS, [Create(("topics", "t"), n_partitions)])

    # Members

    @property
    def partitions(self) -> list[TopicAndPartition]:
        return sorted(self.ends)

    @property
    def toggle(self) -> str | None:
        znode = self.zookeeper.znodes.get(("mode", None))
        return znode.data if znode is not None else None

    def python_members(self) -> list[PythonMember]:
        return [each for each in self.members.values() if isinstance(each, PythonMember)]

    def migrating(self) -> list[PythonMember]:
        return [each for each in self.python_members() if each.is_migration_enabled]

    def by_session(self, session: int) -> Member | None:
        for member in [*self.members.values(), *self._killed]:
            if not isinstance(member, PlainConsumer) and member.client.session == session:
                return member
        return None

    def plain_members(self) -> list[str]:
        """Return the plain members of the Kafka group, as the coordinator has them."""
        return [name for name, each in self.group.members.items() if not each.is_embedded]

    def old_members(self) -> frozenset[tuple[str, int]]:
        """Registered and not migration-enabled, each with its znode's czxid."""
        enabled = set(self.zookeeper.children("migration/ids"))
        ids = [name for name in self.zookeeper.children("ids") if name not in enabled]
        return frozenset((name, self.zookeeper.znodes["ids", name].made) for name in ids)

    def zookeeper_offset(self, pair: TopicAndPartition) -> int:
        znode = self.zookeeper.znodes.get(("offsets", pair))
        return znode.data if znode is not None else 0

    # Steps

    def ready(self) -> list[tuple[str, str]]:
        """(member, thread) that can do a step now."""
        return [
            (name, thread)
            for name, member in self.members.items()
            if not member.is_paused
            for thread, each in member.threads.items()
            if each.is_ready
        ]

    def step(self, name: str, thread: str) -> None:
        member = self.members[name]
        member.threads[thread].step()
        if member.has_left:
            del self.members[name]

    def tick(self) -> None:
        """A second passes."""
        self.now += 1
        for pair in self.ends:
            self.ends[pair] += 1
        for member in [each for each in self.members.values() if not each.is_paused]:
            self._pass_time(member)
            self.slept_while_cut.discard(member.consumer_id)
        for session in self.zookeeper.expired():
            self._expire(session)
        if self.group.is_available:
            self._put_out(self.group.expired())
            if self.now % REFRESH_TICKS == 0:
                self.group.refresh({"t": self._n_partitions})

    def run(self, name: str, thread: str, until: Callable[[], bool] = lambda: False, n_steps: int = 1000) -> None:
        """Steps of one thread alone, until ``until``, or until it waits."""
        for _ in range(n_steps):
            member = self.members.get(name)
            if until() or member is None or member.is_paused or not member.threads[thread].is_ready:
                return
            self.step(name, thread)

    def run_up_to(self, name: str, effect: type, thread: str = "rounds") -> None:
        """Steps of one thread alone until it is about to have ``effect``."""
        member = self.members[name]
        assert isinstance(member, PythonMember)
        for _ in range(500):
            if isinstance(member.about_to.get(thread), effect):
                return
            assert member.threads[thread].is_ready, f"{name} waits, and is not about to {effect.__name__}"
            self.step(name, thread)
        raise AssertionError(f"{name} is never about to {effect.__name__}")

    def run_fairly(self, ticks: int = 0, frozen: Iterable[tuple[str, str]] = ()) -> None:
        """Everybody's steps in turn, until all wait; then a tick, and so on. ``frozen`` threads do none."""
        still = set(frozen)
        for tick in range(ticks + 1):
            self._run_until_all_wait(still)
            if tick < ticks:
                self.tick()

    def _run_until_all_wait(self, frozen: set[tuple[str, str]]) -> None:
        for _ in range(500):
            ready = [each for each in self.ready() if each not in frozen]
            if not ready:
                return
            for name, thread in ready:
                if name in self.members and self.members[name].threads[thread].is_ready:
                    self.step(name, thread)

    # Members come and go

    def join(self, kind: str, name: str, n_streams: int = 2) -> Member:
        """``mezkcc``, ``zk`` (Python, not migration-enabled), ``ozkcc``, ``kc`` or ``namesake``; a name may come again.

        A namesake is a KC with the client id of a migration-enabled member, if there is one.
        """
        if kind in ("kc", "namesake"):
            self.had_kc = True
            ids = [each.consumer_id for each in self.migrating()] if kind == "namesake" else []
            self.members[name] = PlainConsumer(self, name, *ids[:1])
        elif kind == "ozkcc":
            self.members[name] = OldConsumer(self, name, n_streams)
        else:
            self.members[name] = self.member_class(self, name, kind == "mezkcc", n_streams)
        self.judge.begins(self.members[name])
        return self.members[name]

    def leave(self, name: str) -> None:
        self.members[name].is_leaving = True

    def kill(self, name: str) -> None:
        member = self.members.pop(name)
        self.judge.end_of(member)
        if not isinstance(member, PlainConsumer):
            member.client.forget()
            self._killed.append(member)

    def pause(self, name: str) -> None:
        self.members[name].is_paused = True
        client = self._kafka_client(self.members[name])
        if client is not None and client.seconds_unheard > 1:
            self.slept_while_cut.add(client.client_id)

    def resume(self, name: str) -> None:
        self.members[name].is_paused = False

    def cut(self, name: str, from_zookeeper: bool, is_cut: bool) -> None:
        member = self.members[name]
        if from_zookeeper and not isinstance(member, PlainConsumer):
            member.client.is_cut = is_cut
        elif not from_zookeeper and (client := self._kafka_client(member)) is not None:
            client.is_cut = is_cut

    # Operators and servers

    def set_toggle(self, text: str | None) -> None:
        path = ("mode", None)
        if text is None:
            self.zookeeper.transact(SERVERS, [Delete(path)])
        elif self.zookeeper.transact(SERVERS, [Create(path, text)]) is not None:
            self.zookeeper.transact(SERVERS, [Set(path, text)])

    def set_coordinator(self, is_available: bool) -> None:
        """A coordinator that comes back gives every member its whole session again."""
        self.group.is_available = is_available
        for member in self.group.members.values():
            member.heard = self.now

    def grow(self) -> None:
        """One more partition."""
        self.ends["t", self._n_partitions] = 1
        self._n_partitions += 1
        self.zookeeper.transact(SERVERS, [Set(("topics", "t"), self._n_partitions)])

    def steal(self, pair: TopicAndPartition) -> None:
        """An old consumer with an outdated registry deletes an owner znode blindly."""
        self.zookeeper.transact(SERVERS, [Delete(("owners", pair))])

    def may_join_kc(self) -> bool:
        """Rules of operators: Kafka's assignment is in force at every member, and Kafka has the offsets."""
        ids = self.zookeeper.children("ids")
        return (
            self.toggle == Mode.KAFKA.value
            and not self.old_members()
            and all(isinstance(each, PlainConsumer) or is_migrating(each) for each in self.members.values())
            and all(each.mode is Mode.KAFKA for each in self.migrating() if each.consumer_id in ids)
            and all(self._is_in_kafka(pair) for pair in self.partitions)
        )

    def may_join_old(self) -> bool:
        """While there are Kafka consumers only with Kafka's assignment in force and every partition owned, reservations
        included (R5); else when ZooKeeper has the offsets (R18)."""
        if not self.plain_members():
            return all(self._is_in_zookeeper(pair) for pair in self.partitions)
        is_reserved = all(("owners", pair) in self.zookeeper.znodes for pair in self.partitions)
        return is_reserved and {each.mode for each in self.migrating()} == {Mode.KAFKA}

    def may_join_migrating(self) -> bool:
        """Not among old and Kafka consumers, unless one is there that knows better than to follow ZooKeeper."""
        is_mixed = bool(self.plain_members()) and bool(self.old_members())
        return not is_mixed or any(each.mode is Mode.KAFKA for each in self.migrating())

    def _is_in_kafka(self, pair: TopicAndPartition) -> bool:
        return self._is_consumed(pair) or self.group.offsets.get(pair, 0) >= self.zookeeper_offset(pair)

    def _is_in_zookeeper(self, pair: TopicAndPartition) -> bool:
        return self._is_consumed(pair) or self.zookeeper_offset(pair) >= self.group.offsets.get(pair, 0)

    def _is_consumed(self, pair: TopicAndPartition) -> bool:
        """By one that will commit it to both stores."""
        return any(pair in each.consuming and each.client.is_alive for each in self.migrating())

    def commit_to_kafka(self, member: Member, client: GroupClient, offsets: Offsets) -> None:
        """Raises Unavailable or Rejected."""
        before = {pair: self.group.offsets.get(pair) for pair in offsets}
        try:
            client.commit(offsets)
        except Unavailable:
            self.judge.kafka_refused(offsets)
            raise
        self.judge.commits_to_kafka(member, before, offsets)

    # A tick

    def _pass_time(self, member: Member) -> None:
        if not isinstance(member, PlainConsumer):
            member.client.ping()
        client = self._kafka_client(member)
        if client is None:
            return
        client.heartbeat()
        if client.is_lost:
            self._run_client(member)

    def _run_client(self, member: Member) -> None:
        """The client library calls back that the membership is lost."""
        name = next(name for name, each in self.members.items() if each is member)
        thread = "poll" if isinstance(member, PlainConsumer) else "embedded"
        client = self._kafka_client(member)
        assert client is not None
        self.run(name, thread, until=lambda: not client.is_lost and not client.is_losing, n_steps=60)

    def _kafka_client(self, member: Member) -> GroupClient | None:
        if isinstance(member, PlainConsumer):
            return member.kafka
        return member.embedded.client if isinstance(member, PythonMember) and member.embedded is not None else None

    def _expire(self, session: int) -> None:
        member = self.by_session(session)
        if member is not None:
            self.judge.end_of(member)
        self.zookeeper.close(session)

    def _put_out(self, member_ids: Iterable[str]) -> None:
        for member_id in member_ids:
            for member in self.members.values():
                client = self._kafka_client(member)
                if client is not None and client.member_id == member_id:
                    self.judge.put_out(member)
            self.group.leave(member_id)
