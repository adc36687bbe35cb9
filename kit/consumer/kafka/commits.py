"""Commits that wait for the answer, and commits with a callback of their own.

librdkafka has one commit callback per client and calls it in the middle of a poll. That callback only notes the answer.
The callbacks of ``commit_async`` run between librdkafka's calls, so they may use the consumer.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from confluent_kafka import Consumer, IllegalStateException, KafkaError, KafkaException, TopicPartition

from kit.consumer.kafka.values import OffsetAndMetadata, checked, to_library
from kit.text.naming import listed

log = logging.getLogger("offramp.consumer")

Offsets: TypeAlias = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback: TypeAlias = Callable[[dict[TopicPartition, OffsetAndMetadata], KafkaException | None], None]
Content: TypeAlias = frozenset[tuple[str, int, int]]


@dataclass(frozen=True, slots=True)
class _UnderWay:
    offsets: dict[TopicPartition, OffsetAndMetadata]
    content: Content
    callback: CommitCallback


@dataclass(frozen=True, slots=True)
class _Answered:
    commit: _UnderWay
    error: KafkaException | None

    def tell(self) -> None:
        self.commit.callback(self.commit.offsets, self.error)


class Commits:
    """The commits of one consumer; ``on_commit`` is its librdkafka callback.

    ``lost``: partitions of a lost assignment, until the next assignment. A commit that names one is refused here:
    librdkafka has forgotten its member id by then, and a coordinator accepts a commit without a member id as soon as
    the group is empty.
    """

    def __init__(self) -> None:
        self.lost: set[TopicPartition] = set()
        self._under_way: list[_UnderWay] = []
        self._answered: deque[_Answered] = deque()
        self.closing = False

    def commit(self, raw: Consumer, offsets: Offsets) -> None:
        """Commit and wait for the answer; raises KafkaException, also if a single partition failed."""
        if (refusal := self._refusal(offsets)) is not None:
            raise refusal
        if offsets:
            checked(raw.commit(offsets=to_library(offsets), asynchronous=False))

    def begin(self, raw: Consumer, offsets: Offsets, callback: CommitCallback | None) -> None:
        """Send a commit; only ``callback`` learns its result. A commit of no partition succeeds."""
        partitions, refusal = to_library(offsets), self._refusal(offsets)
        is_sent = bool(partitions) and refusal is None
        if is_sent:
            raw.commit(offsets=partitions, asynchronous=True)
        if callback is not None:
            commit = _UnderWay(dict(offsets), content_of(partitions), callback)
            if is_sent:
                self._under_way.append(commit)
            else:
                self._answered.append(_Answered(commit, refusal))

    def begin_last(self, raw: Consumer, offsets: Offsets) -> None:
        """Send the automatic commit ahead of librdkafka's ``close``; a failure is logged.

        If the group rebalances and no ``poll`` has served the revocation yet, librdkafka leaves the group first and
        commits afterwards. The coordinator refuses that commit.
        """
        self.begin(raw, offsets, _log_failure)

    def _refusal(self, offsets: Offsets) -> KafkaException | None:
        lost = sorted(f"{each.topic}-{each.partition}" for each in offsets if each in self.lost)
        if not lost:
            return None
        text = f"{', '.join(lost)} lost: the consumer is no longer a member of the group. Call poll() to join again"
        return KafkaException(KafkaError(KafkaError.UNKNOWN_MEMBER_ID, text))

    def committed(self, raw: Consumer, partitions: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """The group's committed offsets; raises KafkaException, and IllegalStateException while the consumer closes."""
        if self.closing:
            raise IllegalStateException(
                "committed() can't be called while the consumer closes: librdkafka would wait until the time-out"
            )
        return checked(raw.committed(partitions, timeout=timeout)) if partitions else []

    def on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        """Match the answer to a commit. Answers carry no id, so it is the oldest commit with the same content.

        Answers to automatic commits come here too. One with the same content has the same meaning.
        """
        content = content_of(partitions)
        for commit in self._under_way:
            if commit.content == content:
                self._under_way.remove(commit)
                self._answered.append(_Answered(commit, _failure(error, partitions)))
                return

    def tell(self) -> None:
        """Run the callbacks of answered commits; if one raises, so does this, and the remaining callbacks wait."""
        while self._answered:
            self._answered.popleft().tell()

    def abandon(self) -> None:
        """Answer every commit that is still under way with an error: the consumer is closed."""
        gone = KafkaException(KafkaError(KafkaError._DESTROY, "the consumer was closed before the broker answered"))
        self._answered.extend(_Answered(commit, gone) for commit in self._under_way)
        self._under_way.clear()


def _log_failure(offsets: Offsets, error: KafkaException | None) -> None:
    if error is not None:
        names, reason = listed(f"{each.topic}-{each.partition}" for each in offsets), error.args[0].str()
        log.warning(
            "the last commit of %s failed: %s. The next owner may receive the last records again", names, reason
        )


def content_of(partitions: Sequence[TopicPartition]) -> Content:
    return frozenset((each.topic, each.partition, each.offset) for each in partitions)


def _failure(error: KafkaError | None, partitions: list[TopicPartition]) -> KafkaException | None:
    """The error of the whole commit, else the first one of a partition."""
    if error is not None:
        return KafkaException(error)
    return next((KafkaException(each.error) for each in partitions if each.error is not None), None)
