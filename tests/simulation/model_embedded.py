"""The embedded consumer of ``consumer.zookeeper.embedded`` on the model: one thread that works, polls and answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import KafkaAssignment, Membership, Offsets, Pairs
from tests.simulation.model_kafka_group import GROUP_SESSION_SECONDS, GroupClient, Rejected, Unavailable
from tests.simulation.steps import Steps

if TYPE_CHECKING:
    from tests.simulation.model_member import PythonMember


@dataclass
class Waiting:
    """A commit that another thread asked for, as it was when it asked."""

    offsets: Offsets
    epoch: int
    turns: dict[TopicAndPartition, int]
    is_answered: bool = False
    failed: Pairs = frozenset()


class Embedded:
    """Model :class:`kit.consumer.zookeeper.embedded.EmbeddedConsumer`."""

    def __init__(self, member: PythonMember) -> None:
        self._member = member
        self._world = member.world
        self.client = GroupClient(
            member.world.group, member.consumer_id, lambda: member.world.judge.joins(member), is_embedded=True
        )
        self.assignment = KafkaAssignment(Membership.OUT)
        self.is_stopping = False
        self._work: deque[Callable[[], None]] = deque()
        self._sent: dict[TopicAndPartition, int] = {}
        self._turns: dict[TopicAndPartition, int] = {}
        self._polled_at = member.world.now

    def subscribe(self, topics: Sequence[str]) -> None:
        self._work.append(lambda: self._subscribe(tuple(sorted(topics))))

    def forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        for pair in partitions:
            self._turns[pair] = self._turns.get(pair, 0) + 1
            self._sent.pop(pair, None)

    def commit(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """→ partitions that were not committed; gives up when time passes (0.3 s are less than a tick)."""
        if is_own_thread:
            yield None
            return self.commit_now(offsets)
        if self.assignment.membership is not Membership.IN:
            return frozenset(offsets)
        turns = {pair: self._turns.get(pair, 0) for pair in offsets}
        waiting, asked = Waiting(offsets, self.assignment.epoch, turns), self._world.now
        self._work.append(lambda: self.commit_waiting(waiting))
        yield lambda: waiting.is_answered or self._world.now > asked
        return waiting.failed if waiting.is_answered else frozenset(offsets)

    def commit_now(self, offsets: Offsets) -> Pairs:
        newest = {pair: offset for pair, offset in offsets.items() if offset >= self._sent.get(pair, 0)}
        self._sent |= newest
        try:
            self._world.commit_to_kafka(self._member, self.client, newest)
        except (Unavailable, Rejected):
            return frozenset(newest)
        return frozenset()

    def commit_waiting(self, waiting: Waiting) -> None:
        turns = waiting.turns
        current = {pair: offset for pair, offset in waiting.offsets.items() if self._turns.get(pair, 0) == turns[pair]}
        is_late = waiting.epoch != self.assignment.epoch
        waiting.failed = frozenset(waiting.offsets) if is_late else self.commit_now(current)
        waiting.is_answered = True

    def run(self) -> Steps:
        """The thread."""
        while not self.is_stopping:
            yield lambda: self.is_stopping or bool(self._work) or self.client.has_news or self._must_poll
            if self._work:
                self._work.popleft()()
                continue
            yield from self._poll()
            before, self._polled_at = self._polled_at, self._world.now
            yield from self.polled(self._polled_at - before)
        while self._work:
            self._work.popleft()()
        self.client.subscribe(())
        while self.client.has_news:
            yield from self._poll()

    @property
    def _must_poll(self) -> bool:
        return self._polled_at < self._world.now

    def _poll(self) -> Steps:
        yield from self.client.poll(self.on_assign, self.on_revoke, self.on_lost)

    def polled(self, seconds: float) -> Steps:
        """Poll like the connector: a member that was stalled proves by a commit that it is still a member."""
        is_in = self.assignment.membership is Membership.IN
        if seconds >= GROUP_SESSION_SECONDS / 2 and is_in and self._is_put_out():
            self.rejoin()
            yield from self._member.lost()
        yield None
        self._member.gate.lease.extend_membership(self._world.now + GROUP_SESSION_SECONDS / 2)

    def rejoin(self) -> None:
        topics = self.client.topics
        self._set(Membership.OUT)
        self._subscribe(())
        self._subscribe(topics)

    def on_assign(self, pairs: Pairs) -> Steps:
        self._set(Membership.IN, pairs)
        yield None
        self._member.gate.begin_assignment_epoch(self.assignment.epoch)
        self._member.note()

    def on_revoke(self) -> Steps:
        self._set(Membership.OUT if not self.client.topics or self.is_stopping else Membership.REBALANCING)
        yield from self._member.revoked()

    def on_lost(self) -> Steps:
        self._set(Membership.OUT)
        yield from self._member.lost()

    def _is_put_out(self) -> bool:
        if self._member.gate.lease.seconds_without_session > 0:
            return True
        kafka_assigned = self._member.gate.kafka_assigned()
        return not kafka_assigned or bool(self.commit_now(kafka_assigned))

    def _set(self, membership: Membership, pairs: Pairs = frozenset()) -> None:
        self.assignment = KafkaAssignment(membership, self.assignment.epoch + 1, pairs)

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        if topics != self.client.topics:
            self.client.subscribe(topics)
