"""Keep a member's offsets: in ZooKeeper, in Kafka, or in both.

An offset is the next one to read. A partition that was not committed or fetched is in the answer, with a
reason. Rules: the old consumer's ``commitOffsets``; ``OffsetCommit`` and ``OffsetFetch`` of Kafka's protocol.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from kit.clients.values import shown
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.effects import Offsets
from kit.consumer.zookeeper.embedded import JOINING
from kit.consumer.zookeeper.znodes import GroupZnodes
from kit.text.numbers import offset_in

log = logging.getLogger("offramp.consumer")

RETRIABLE = frozenset(
    {
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
        KafkaError._WAIT_COORD,
        KafkaError._TIMED_OUT,
        KafkaError._TRANSPORT,
    }
)
"""Errors after which a request is sent again, when librdkafka has found the coordinator. Final are, for example: a
metadata text that is too large, an unknown member, a missing right."""

BATCH = 100
COMMIT_BATCH = 1_000
"""A coordinator appends one request as one batch of at most ``max.message.bytes`` (1 MB) of ``__consumer_offsets``. An
offset of a topic and a group with names of 249 characters takes about 600 bytes there."""
RECOMMIT_SECONDS = 600.0
"""Unchanged offsets are committed again after this time: Kafka lets offsets expire (after 1 or 7 days)."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """``offsets`` of the partitions that have one; those in ``errors`` could not be fetched, the rest have none."""

    offsets: Offsets
    errors: Mapping[TopicAndPartition, str] = field(default_factory=dict)


class Passing(str):
    """A reason that ends by itself: the embedded consumer is joining the Kafka group."""


class OffsetStore(Protocol):
    """One place for a group's offsets."""

    name: str

    def fetch(self, partitions: Sequence[TopicAndPartition]) -> Fetched:
        """The committed offsets, read now: the store forgets what it knew of these partitions."""
        ...

    def commit(self, offsets: Offsets, timeout_seconds: float) -> dict[TopicAndPartition, str]:
        """Commit; → the partitions that were not, with the reason. Unchanged offsets need no write."""
        ...


class ZookeeperOffsets:
    """``/consumers/<group>/offsets``, written in transactions that only this member's session can execute.

    An offset is never lowered, unless :meth:`allow_lower` reports it. It is compared with the offset that ZooKeeper
    holds. So an offset that came from Kafka is written here even if the partition then is stalled.
    """

    name = "zookeeper"

    def __init__(self, znodes: GroupZnodes) -> None:
        self._znodes = znodes
        self._known: dict[TopicAndPartition, tuple[int | None, int | None]] = {}
        self._may_lower: set[TopicAndPartition] = set()
        self._lock = threading.Lock()

    def fetch(self, partitions: Sequence[TopicAndPartition]) -> Fetched:
        with self._lock:
            errors = self._look(partitions)
            known = {pair: self._known[pair][0] for pair in partitions if pair not in errors}
        return Fetched({pair: offset for pair, offset in known.items() if offset is not None}, errors)

    def allow_lower(self, pair: TopicAndPartition) -> None:
        """The next commit of ``pair`` may be lower: its offset was out of range."""
        self._may_lower.add(pair)

    def commit(self, offsets: Offsets, timeout_seconds: float) -> dict[TopicAndPartition, str]:
        with self._lock:
            return self._commit(offsets)

    def _commit(self, offsets: Offsets) -> dict[TopicAndPartition, str]:
        errors: dict[TopicAndPartition, str] = self._look([pair for pair in offsets if pair not in self._known])
        wanted = {pair: offset for pair, offset in offsets.items() if pair not in errors}
        for start in range(0, len(wanted), BATCH):
            batch = dict(list(wanted.items())[start : start + BATCH])
            if not self._write(batch, errors):
                errors |= self._look(list(batch))
                if not self._write({pair: value for pair, value in batch.items() if pair not in errors}, errors):
                    errors |= dict.fromkeys(batch, "another client changes its offset in ZooKeeper at the same time")
        return errors

    def _look(self, partitions: Sequence[TopicAndPartition]) -> dict[TopicAndPartition, str]:
        errors = {}
        for pair, znode in self._znodes.read_offsets(partitions).items() if partitions else ():
            text = znode.data.decode("utf-8", "replace") if znode is not None else ""
            offset = offset_in(text)
            if znode is not None and offset is None:
                errors[pair] = f"{self._znodes.offset_path(pair)} holds {shown(text)}, which is no offset"
            self._known[pair] = (offset, znode.version if znode is not None else None)
        return errors

    def _write(self, offsets: Offsets, errors: dict[TopicAndPartition, str]) -> bool:
        changes = {}
        for pair, offset in offsets.items():
            known = self._known[pair][0]
            if known is not None and offset < known and pair not in self._may_lower:
                errors[pair] = f"ZooKeeper already has the higher offset {known}, so {offset} was not written"
            elif known != offset:
                changes[pair] = offset
        versions = {pair: self._known[pair][1] for pair in changes}
        if changes and not self._znodes.write_offsets(changes, versions):
            return False
        for pair, offset in changes.items():
            version = versions[pair]
            self._known[pair] = (offset, 0 if version is None else version + 1)
            self._may_lower.discard(pair)
        return True


Ask = Callable[[Offsets, float], Mapping[TopicAndPartition, int | KafkaError]]
"""Commit these offsets, or fetch those of these partitions, within seconds → per partition the offset, or the error."""


class KafkaOffsets:
    """Offsets in Kafka, committed by ``commit`` and fetched by ``fetch``: as a member of the group, or without one.

    A commit that fails with an error of ``RETRIABLE`` is tried ``commit_retries`` times more
    (``offsets.commit.max.retries``). Without a member (generation −1) Kafka accepts a commit only
    while the group is empty.
    """

    name = "kafka"

    def __init__(
        self,
        commit: Ask,
        fetch: Ask,
        backoff_seconds: float,
        fetch_seconds: float,
        commit_retries: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._commit = commit
        self._fetch = fetch
        self._backoff = backoff_seconds
        self._fetch_seconds = fetch_seconds
        self._commit_tries = 1 + commit_retries
        self._clock = clock
        self._sleep = sleep
        self._committed: dict[TopicAndPartition, tuple[int, float]] = {}

    def fetch(self, partitions: Sequence[TopicAndPartition]) -> Fetched:
        for pair in partitions:
            self._committed.pop(pair, None)
        offsets, errors = self._until_final(self._fetch, dict.fromkeys(partitions, 0), self._fetch_seconds)
        return Fetched({pair: offset for pair, offset in offsets.items() if offset != OFFSET_INVALID}, errors)

    def commit(self, offsets: Offsets, timeout_seconds: float) -> dict[TopicAndPartition, str]:
        now = self._clock()
        changed = [(pair, offset) for pair, offset in offsets.items() if self._is_due(pair, offset, now)]
        errors: dict[TopicAndPartition, str] = {}
        for start in range(0, len(changed), COMMIT_BATCH):
            part, left = dict(changed[start : start + COMMIT_BATCH]), max(0.0, now + timeout_seconds - self._clock())
            committed, failed = self._until_final(self._commit, part, left, self._commit_tries)
            self._committed |= {pair: (part[pair], now) for pair in committed}
            errors |= failed
        return errors

    def _is_due(self, pair: TopicAndPartition, offset: int, now: float) -> bool:
        """A negative offset is a position that is not known yet; it would fail the whole request."""
        known, at = self._committed.get(pair, (None, 0.0))
        return offset >= 0 and (offset != known or now - at > RECOMMIT_SECONDS)

    def _until_final(
        self, ask: Ask, wanted: Offsets, seconds: float, tries: float = math.inf
    ) -> tuple[dict[TopicAndPartition, int], dict[TopicAndPartition, str]]:
        """Ask, and ask again while errors are ``RETRIABLE``, until ``seconds`` or ``tries`` have ended."""
        deadline = self._clock() + seconds
        offsets: dict[TopicAndPartition, int] = {}
        errors: dict[TopicAndPartition, str] = {}
        while wanted:
            passing = {}
            tries -= 1
            for pair, answer in _asked(ask, wanted, max(0.0, deadline - self._clock())).items():
                if not isinstance(answer, KafkaError):
                    offsets[pair] = answer
                elif answer.code() in RETRIABLE and tries > 0 and self._clock() + self._backoff < deadline:
                    passing[pair] = wanted[pair]
                else:
                    reason = f"{answer.name()}: {answer.str()}"
                    errors[pair] = Passing(reason) if answer is JOINING else reason
            wanted = passing
            if wanted:
                self._sleep(self._backoff)
        return offsets, errors


class DualOffsets:
    """ZooKeeper first, then Kafka; neither's failure keeps an offset from the other. Fetched: the higher one."""

    name = "both"

    def __init__(self, zookeeper: OffsetStore, kafka: OffsetStore) -> None:
        self.zookeeper = zookeeper
        self.kafka = kafka

    def fetch(self, partitions: Sequence[TopicAndPartition]) -> Fetched:
        answers = [self.zookeeper.fetch(partitions), self.kafka.fetch(partitions)]
        errors = {pair: reason for each in answers for pair, reason in each.errors.items()}
        offsets: dict[TopicAndPartition, int] = {}
        for each in answers:
            for pair, offset in each.offsets.items():
                offsets[pair] = max(offset, offsets.get(pair, offset))
        return Fetched({pair: offset for pair, offset in offsets.items() if pair not in errors}, errors)

    def commit(self, offsets: Offsets, timeout_seconds: float) -> dict[TopicAndPartition, str]:
        errors: dict[TopicAndPartition, str] = {}
        for store in (self.zookeeper, self.kafka):
            for pair, reason in store.commit(offsets, timeout_seconds).items():
                message, before = f"{store.name}: {reason}", errors.get(pair)
                passing = Passing(message) if isinstance(reason, Passing) else message
                errors[pair] = passing if before is None else f"{before}; {message}"
        return errors


def _asked(ask: Ask, wanted: Offsets, seconds: float) -> Mapping[TopicAndPartition, int | KafkaError]:
    """The answer; an error of the whole request counts for each partition."""
    try:
        return ask(wanted, seconds)
    except KafkaException as error:
        return dict.fromkeys(wanted, error.args[0])
