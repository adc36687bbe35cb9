"""Six kinds of topics with readers that are behind: each record's time of production is noted, and each hand-out."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.cimpl import NewTopic

from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.topics import QUIET

PARTITIONS = 6
"""The partitions of each topic; of each three the first has a reader that keeps up, then comes a slow one, and a
stalled one.
"""
_TICK_S = 0.05
_STANDS_FROM, _STANDS_UNTIL = 3, 14
"""Seconds of each twenty in which the third reader reads nothing."""
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "700",
    "min.cleanable.dirty.ratio": "0.01",
    "max.compaction.lag.ms": "500",
    "delete.retention.ms": "100",
}


class Noted(NamedTuple):
    """A record as its producer knows it: when it was produced, and when its broker had acknowledged it (epoch ms)."""

    offset: int
    produced_ms: int
    acknowledged_ms: int


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass
class Late:
    """One topic that is written and read, tick after tick, in a thread of its own.

    ``life`` is odd while it is made again, and another one afterwards.
    """

    lab: Lab
    kind: str
    settings: dict[str, str] = field(default_factory=dict)
    life: int = 0

    def __post_init__(self) -> None:
        self.notes: dict[tuple[int, int], list[Noted]] = defaultdict(list)
        """By life and partition."""
        self._begun, self._readers = time.monotonic(), list[Consumer]()
        self._create()
        self.producer = self._producer()

    @property
    def topic(self) -> str:
        return f"late-{self.kind}"

    @property
    def group(self) -> str:
        return f"late-{self.kind}"

    def run(self, stop: threading.Event) -> None:
        tick = 0
        try:
            while not stop.wait(_TICK_S):
                self.write(tick)
                self._read(tick)
                tick += 1
        finally:
            self.producer.flush(10)
            self._close_readers()

    def write(self, tick: int) -> None:
        """Steady: a record per partition and tick."""
        self.produce()

    def produce(self, count: int = 1, key: str | None = None) -> None:
        for partition in range(PARTITIONS):
            for _ in range(count):
                self.producer.produce(self.topic, b"x" * 50, key=key, partition=partition, on_delivery=self.delivered)
        self.producer.flush(10)

    def delivered(self, error: Any, message: Message) -> None:
        assert error is None, error
        self.note(message.partition(), Noted(message.offset(), message.timestamp()[1], now_ms()))

    def note(self, partition: int, noted: Noted) -> None:
        self.notes[self.life, partition].append(noted)

    def next_record(self, life: int, partition: int, offset: int, end: int) -> Noted | None:
        """The first record below ``end`` that the group was or will be handed when it reads on from ``offset``."""
        return min((each for each in self.notes[life, partition] if offset <= each.offset < end), default=None)

    @property
    def second(self) -> float:
        return (time.monotonic() - self._begun) % 20

    def _create(self) -> None:
        wait_until(self._is_made, f"{self.topic} is made", 30)
        self._readers = [self._reader(partition) for partition in range(PARTITIONS)]

    def _is_made(self) -> bool:
        """A topic of that name may be marked for deletion for a while."""
        new = NewTopic(self.topic, PARTITIONS, 1, config=self.settings)
        try:
            self.lab.admin.create_topics([new])[self.topic].result(30)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        found: dict[int, Any] = self.lab.admin.list_topics(self.topic, timeout=10).topics[self.topic].partitions
        return sum(each.leader >= 0 for each in found.values()) == PARTITIONS

    def _producer(self) -> Producer:
        return Producer({**QUIET, "bootstrap.servers": self.lab.bootstrap_servers, "linger.ms": 1})

    def _reader(self, partition: int) -> Consumer:
        settings = {"group.id": self.group, "enable.auto.commit": False, "fetch.wait.max.ms": 20}
        reader = Consumer({**QUIET, "bootstrap.servers": self.lab.bootstrap_servers, **settings})
        reader.assign([TopicPartition(self.topic, partition, 0)])
        return reader

    def _read(self, tick: int) -> None:
        is_standing = _STANDS_FROM <= self.second < _STANDS_UNTIL
        wanted = (100, 1 if tick % 3 == 0 else 0, 0 if is_standing else 3)
        for reader, count in zip(self._readers, cycle(wanted)):
            handed_out = reader.consume(count, 0.005) if count else []
            done = [message for message in handed_out if message.error() is None]
            if done:
                reader.commit(done[-1], asynchronous=False)

    def _close_readers(self) -> None:
        for reader in self._readers:
            reader.close()


class Bursty(Late):
    """Forty records at once, then nothing for three seconds."""

    def write(self, tick: int) -> None:
        if tick % 60 == 5:
            self.produce(40)


class Idle(Late):
    """A few records at the begin of each twenty seconds, a lone one in the midst."""

    def write(self, tick: int) -> None:
        at = tick % 400
        if at == 220 or (at < 40 and at % 4 == 0):
            self.produce()


class Compacted(Late):
    """Two records of three have one of five keys; the cleaner takes what is overwritten, others stay."""

    def __init__(self, lab: Lab, kind: str) -> None:
        super().__init__(lab, kind, _COMPACTED)
        settings = {"group.id": "audit", "enable.auto.commit": False}
        self._audit = Consumer({**QUIET, "bootstrap.servers": lab.bootstrap_servers, **settings})
        self._found: dict[tuple[int, int, int], int] = {}

    def write(self, tick: int) -> None:
        if tick % 2 == 0:
            self.produce(key=str(tick % 5) if tick % 6 else f"own-{tick}")

    def audit(self, wanted: dict[int, tuple[int, int]]) -> dict[int, int]:
        """Return what is left at or after these offsets, by partition: the records are read."""
        left = {}
        for partition, (offset, end) in wanted.items():
            self._audit.assign([TopicPartition(self.topic, partition, offset)])
            message = self._audit.poll(5)
            assert message is not None
            assert message.error() is None
            left[partition] = self._found[partition, offset, end] = message.offset()
        return left

    def next_record(self, life: int, partition: int, offset: int, end: int) -> Noted | None:
        return super().next_record(life, partition, self._found[partition, offset, end], end)


class Transactional(Late):
    """Transactions of some 400 ms, each fourth is aborted, with a second of nothing after each eighth."""

    def _producer(self) -> Producer:
        settings = {"linger.ms": 1, "transactional.id": "late"}
        producer = Producer({**QUIET, "bootstrap.servers": self.lab.bootstrap_servers, **settings})
        producer.init_transactions(30)
        self._open: list[tuple[int, Noted]] = []
        return producer

    def note(self, partition: int, noted: Noted) -> None:
        self._open.append((partition, noted))

    def write(self, tick: int) -> None:
        number, step = divmod(tick, 8)
        if number % 9 == 8:
            return
        if step == 0:
            self.producer.begin_transaction()
        self.produce()
        if step == 7:
            self._end(is_aborted=number % 4 == 1)

    def _end(self, is_aborted: bool) -> None:
        if is_aborted:
            self.producer.abort_transaction(10)
        else:
            self.producer.commit_transaction(10)
            for partition, noted in self._open:
                super().note(partition, noted)
        self._open.clear()


class Recreated(Late):
    """Deleted and made again each fifteen seconds, with offsets that begin at 0 again."""

    def write(self, tick: int) -> None:
        if tick % 300 == 200:
            self.life += 1
            self._close_readers()
            self.lab.admin.delete_topics([self.topic])[self.topic].result(30)
            wait_until(lambda: self.topic not in self.lab.admin.list_topics(timeout=10).topics, "it is gone", 30)
            self.life += 1
            self._create()
            self.producer = self._producer()  # the former one knows the topic that is gone
        self.produce()


KINDS = {
    "steady": Late,
    "bursty": Bursty,
    "idle": Idle,
    "compacted": Compacted,
    "transactional": Transactional,
    "recreated": Recreated,
}


@contextmanager
def running(lab: Lab) -> Iterator[dict[str, Late]]:
    """All six kinds, each in a thread; what one of them could not do is raised at the end."""
    topics = {kind: make(lab, kind) for kind, make in KINDS.items()}
    stop = threading.Event()
    with ThreadPoolExecutor(len(topics)) as pool:
        running_now: list[Future[None]] = [pool.submit(each.run, stop) for each in topics.values()]
        try:
            yield topics
        finally:
            stop.set()
    for each in running_now:
        each.result()
