"""The embedded consumer of ``kit.consumer.embedded`` on the model: one thread that works, polls and answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kit.consumer.assignors import TopicAndPartition
from kit.consumer.coordination import KafkaAssignment, Membership, Offsets, Pairs
from tests.simulation.model_kafka_group import GROUP_SESSION_SECONDS, GroupClient, Rejected, Unavailable
from tests.simulation.steps import Steps

if TYPE_CHECKING:
    from tests.simulation.model_member import PythonMember


@dataclass
class Answer:
    """Of a commit that another thread asked for."""

    is_there: bool = False
    failed: Pairs = frozenset()


class Embedded:
    """As :class:`kit.consumer.embedded.EmbeddedConsumer`."""

    def __init__(self, member: PythonMember) -> None:
        self._member = member
        self._world = member.world
        self.client = GroupClient(member.world.group, member.consumer_id, lambda: member.world.judge.joins(member))
        self.assignment = KafkaAssignment(Membership.OUT)
        self.is_stopping = False
        self._work: deque[Callable[[], None]] = deque()
        self._sent: dict[TopicAndPartition, int] = {}
        self._polled_at = -1.0

    def subscribe(self, topics: Sequence[str]) -> None:
        self._work.append(lambda: self._subscribe(tuple(sorted(topics))))

    def forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        pairs = list(partitions)
        self._work.append(lambda: self._forget(pairs))

    def commit(self, offsets: Offsets, is_own_thread: bool) -> Steps:
        """→ partitions that were not committed; gives up when time passes (0.3 s are less than a tick)."""
        if is_own_thread:
            yield None
            return self.commit_now(offsets)
        answer, asked, epoch = Answer(), self._world.now, self.assignment.epoch
        self._work.append(lambda: self._commit_later(offsets, answer, epoch))
        yield lambda: answer.is_there or self._world.now > asked
        return answer.failed if answer.is_there else frozenset(offsets)

    def commit_now(self, offsets: Offsets) -> Pairs:
        newest = {pair: offset for pair, offset in offsets.items() if offset >= self._sent.get(pair, 0)}
        self._sent |= newest
        try:
            self._world.commit_to_kafka(self._member, self.client, newest)
        except (Unavailable, Rejected):
            return frozenset(newest)
        return frozenset()

    def run(self) -> Steps:
        """The thread."""
        while not self.is_stopping:
            yield lambda: self.is_stopping or bool(self._work) or self.client.has_news or self._must_poll
            if self._work:
                self._work.popleft()()
                continue
            yield from self._poll()
        self.client.subscribe(())
        while self.client.has_news:
            yield from self._poll()

    @property
    def _must_poll(self) -> bool:
        return self._polled_at < self._world.now

    def _poll(self) -> Steps:
        yield from self.client.poll(self.on_assign, self.on_revoke, self.on_lost)
        self._polled_at = self._world.now
        self.polled()

    def polled(self) -> None:
        self._member.gate.extend_kafka(self._world.now + GROUP_SESSION_SECONDS / 2)

    def on_assign(self, pairs: Pairs) -> Steps:
        self._set(Membership.IN, pairs)
        yield None
        self._member.gate.begin_licence(self.assignment.epoch)
        self._member.note()

    def on_revoke(self) -> Steps:
        self._set(Membership.OUT if not self.client.topics or self.is_stopping else Membership.REBALANCING)
        yield from self._member.revoked()

    def on_lost(self) -> Steps:
        self._set(Membership.OUT)
        yield from self._member.lost()

    def _set(self, membership: Membership, pairs: Pairs = frozenset()) -> None:
        self.assignment = KafkaAssignment(membership, self.assignment.epoch + 1, pairs)

    def _subscribe(self, topics: tuple[str, ...]) -> None:
        if topics != self.client.topics:
            self.client.subscribe(topics)

    def _forget(self, pairs: Iterable[TopicAndPartition]) -> None:
        for pair in pairs:
            self._sent.pop(pair, None)

    def _commit_later(self, offsets: Offsets, answer: Answer, epoch: int) -> None:
        answer.failed = self.commit_now(offsets)
        answer.is_there = True
