"""A model of one group at its Kafka coordinator: classic protocol, eager, range.

A rebalance ends only when every member that is still alive has answered; its generation's assignment waits for each
member until it asks. Of the sync phase there is nothing: the server computes what the leader would.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from kit.consumer.zookeeper.assignors import TopicAndPartition, assign_range
from kit.consumer.zookeeper.effects import Offsets, Pairs
from kit.consumer.zookeeper.kafka_members import KafkaMember
from tests.simulation.steps import Steps

GROUP_SESSION_SECONDS = 6.0


class Unavailable(Exception):
    """The coordinator can't be reached."""


class Rejected(Exception):
    """The coordinator refuses: no member, or not of this generation."""


@dataclass
class _Member:
    client_id: str
    topics: Collection[str]
    heard: float
    is_embedded: bool
    has_joined: bool = True


@dataclass
class GroupServer:
    """``partitions``: topic → how many; members see growth when one refreshes its metadata (R22)."""

    clock: Callable[[], float]
    partitions: dict[str, int] = field(default_factory=dict)
    members: dict[str, _Member] = field(default_factory=dict)
    generation: int = 0
    is_rebalancing: bool = False
    assignments: dict[str, Pairs] = field(default_factory=dict)
    offsets: dict[TopicAndPartition, int] = field(default_factory=dict)
    is_available: bool = True
    _serial: int = 0

    def join(self, member_id: str | None, client_id: str, topics: Collection[str], is_embedded: bool) -> str:
        if member_id not in self.members:
            self._serial += 1
            member_id = f"{client_id}-{self._serial:04d}"
        self._begin()
        self.members[member_id] = _Member(client_id, topics, self.clock(), is_embedded)
        self._complete()
        return member_id

    def leave(self, member_id: str) -> None:
        if self.members.pop(member_id, None) is not None:
            self._begin()
            self._complete()

    def refresh(self, partitions: Mapping[str, int]) -> None:
        """The leader's metadata are new: it asks for a rebalance."""
        if self.members and self.partitions != partitions:
            self.partitions = dict(partitions)
            self._begin()

    def heartbeat(self, member_id: str) -> str:
        """``ok``, ``rebalance`` or ``unknown``."""
        member = self.members.get(member_id)
        if member is None:
            return "unknown"
        member.heard = self.clock()
        return "rebalance" if not member.has_joined else "ok"

    def commit(self, member_id: str | None, generation: int, offsets: Offsets) -> None:
        is_nobody = member_id is None and not self.members
        if not is_nobody and (member_id not in self.members or generation != self.generation):
            raise Rejected(f"{member_id} of generation {generation}")
        self.offsets.update(offsets)

    def expired(self) -> list[str]:
        """Members the coordinator puts out now."""
        return [name for name, each in self.members.items() if self.clock() - each.heard >= GROUP_SESSION_SECONDS]

    def describe(self) -> list[KafkaMember]:
        """While it rebalances, a coordinator shows neither subscriptions nor assignments."""
        if self.is_rebalancing:
            return [KafkaMember(name, member.client_id, None) for name, member in self.members.items()]
        return [
            KafkaMember(name, member.client_id, member.is_embedded, self.assignments.get(name, frozenset()))
            for name, member in self.members.items()
        ]

    def assigned_to(self, member_id: str | None) -> Pairs:
        """Return what this member may consume: its part of the last generation, until it has answered for the next
        one.
        """
        member = self.members.get(member_id or "")
        if member is None or (self.is_rebalancing and member.has_joined):
            return frozenset()
        return self.assignments.get(member_id or "", frozenset())

    def _begin(self) -> None:
        if not self.is_rebalancing:
            self.is_rebalancing = True
            for member in self.members.values():
                member.has_joined = False

    def _complete(self) -> None:
        if not all(member.has_joined for member in self.members.values()):
            return
        self.is_rebalancing = False
        self.generation += 1
        streams = {name: dict.fromkeys(member.topics, 1) for name, member in self.members.items()}
        numbers = {topic: range(count) for topic, count in self.partitions.items()}
        whole = assign_range(streams, numbers) if streams else {}
        self.assignments = {
            name: frozenset(pair for pair, thread in whole.items() if thread == f"{name}-0") for name in self.members
        }


class GroupClient:
    """A consumer's membership as librdkafka and the Java client keep it: heartbeats by themselves, the rest in poll.

    ``has_news``: poll has something to do. ``generation`` is the one last joined. ``joins`` is called before JoinGroup.
    """

    def __init__(self, server: GroupServer, client_id: str, joins: Callable[[], None], is_embedded: bool) -> None:
        self.server = server
        self.client_id = client_id
        self.is_embedded = is_embedded
        self._joins = joins
        self.topics: tuple[str, ...] = ()
        self.member_id: str | None = None
        self.assigned: Pairs | None = None
        self.generation = -1
        self.is_cut = False
        self.is_losing = False
        self._heard = 0.0
        self._is_waiting = False
        self._is_lost = False
        self._must_rejoin = False
        self._must_leave = False

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Be a member for these; with none, leave – which is not undone by joining again at once."""
        self._must_leave |= not topics and self.member_id is not None
        self.topics = topics

    @property
    def is_reachable(self) -> bool:
        return self.server.is_available and not self.is_cut

    def heartbeat(self) -> None:
        """One heartbeat, or what a client does when none was answered for the session's time."""
        if self.member_id is None:
            return
        if not self.is_reachable:
            self._is_lost |= self.server.clock() - self._heard >= GROUP_SESSION_SECONDS
            return
        answer = self.server.heartbeat(self.member_id)
        self._heard = self.server.clock()
        self._is_lost |= answer == "unknown"
        self._must_rejoin |= answer == "rebalance" and not self._is_waiting

    @property
    def could_hear(self) -> bool:
        """A heartbeat now would tell something new."""
        member = self.server.members.get(self.member_id or "")
        if self.member_id is None or not self.is_reachable or self._is_lost:
            return False
        return member is None or (not member.has_joined and not self._must_rejoin)

    @property
    def is_lost(self) -> bool:
        return self._is_lost

    @property
    def has_expired(self) -> bool:
        """By its own clock it may be out of the group; a client that examines its timer delivers nothing then."""
        return self.seconds_unheard >= GROUP_SESSION_SECONDS

    @property
    def seconds_unheard(self) -> float:
        """Since a heartbeat was answered."""
        return self.server.clock() - self._heard

    @property
    def has_news(self) -> bool:
        if self._is_lost:
            return True
        if self.assigned is not None:
            return self._must_rejoin or self._must_leave
        if self._must_leave or not self.topics:
            return self._must_leave
        return self.is_reachable and (self._must_join or not self.server.is_rebalancing)

    @property
    def _must_join(self) -> bool:
        """No JoinGroup is under way, or the one that was is out of date."""
        member = self.server.members.get(self.member_id or "")
        return not self._is_waiting or member is None or not member.has_joined

    def poll(self, assign: Callable[[Pairs], Steps], revoke: Callable[[], Steps], lose: Callable[[], Steps]) -> Steps:
        """Serve one event, if there is one."""
        if self._is_lost:
            yield from self._lose(lose)
        elif self.assigned is not None:
            if self._must_rejoin or self._must_leave:
                yield from revoke()
                self.assigned = None
        elif self._must_leave:
            self._leave()
        elif not self.topics:
            return
        elif self.is_reachable and self._must_join:
            self._join()
        elif self.is_reachable and not self.server.is_rebalancing:
            yield from self._take(assign)

    def commit(self, offsets: Offsets) -> None:
        """Raises Unavailable or Rejected."""
        if not self.is_reachable:
            raise Unavailable
        self.server.commit(self.member_id, self.generation, offsets)

    def _lose(self, lose: Callable[[], Steps]) -> Steps:
        had = self.assigned is not None
        self.member_id, self.assigned = None, None
        self._is_lost = self._must_rejoin = self._is_waiting = self._must_leave = False
        if had:
            self.is_losing = True
            yield from lose()
            self.is_losing = False

    def _leave(self) -> None:
        if self.member_id is not None and self.is_reachable:
            self.server.leave(self.member_id)
        self.member_id = None
        self._must_rejoin = self._is_waiting = self._must_leave = False

    def _join(self) -> None:
        """JoinGroup is sent; from here on a heartbeat has nothing to say until the answer came."""
        self._joins()
        self._must_rejoin, self._is_waiting = False, True
        self.member_id = self.server.join(self.member_id, self.client_id, self.topics, self.is_embedded)
        self._heard = self.server.clock()

    def _take(self, assign: Callable[[Pairs], Steps]) -> Steps:
        assert self.member_id is not None
        self._is_waiting = False
        self.generation = self.server.generation
        self.assigned = self.server.assignments[self.member_id]
        yield from assign(self.assigned)
