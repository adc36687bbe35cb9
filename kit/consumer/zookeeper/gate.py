"""Decide which partitions a member delivers: those that its streams obey, in its session, while the lease on it lasts.

Invariant I4: nothing is delivered while a session is in doubt. The lease proves that the session lives: ZooKeeper's
leader answered a request that was sent less than a safe part of the session's time-out ago. A stream examines the lease
before every record. So a process that was stalled (SIGSTOP, a paused machine) delivers nothing when it wakes (R14).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import Offsets, Pairs
from kit.consumer.zookeeper.lease import Clock, Lease, seconds_since_boot
from kit.consumer.zookeeper.uncommitted import UncommittedOffsets

FINISH_SECONDS = 0.3
"""The time for which a stop waits for the application to finish the record it has: a record finished by then is
delivered once.
"""


class GatedStream(Protocol):
    """The methods of a stream that the gate calls: to start and to stop partitions, and to report how far each came."""

    def add(self, pair: TopicAndPartition, offset: int, assignment_epoch: int | None) -> None: ...

    def remove(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]: ...

    def await_finished(self, pairs: Iterable[TopicAndPartition], deadline: float) -> dict[TopicAndPartition, int]: ...

    def assignment_epoch(self, pair: TopicAndPartition) -> int | None: ...

    def set_assignment_epoch(self, pair: TopicAndPartition, assignment_epoch: int | None) -> None: ...

    def position(self, pair: TopicAndPartition) -> int: ...


class Gate:
    """Starts and stops partitions on the streams of one member. Any thread may call any method.

    ``lease`` reports until when records may be delivered; ``uncommitted`` has the offsets of what was stopped.
    """

    def __init__(self, clock: Clock = seconds_since_boot) -> None:
        self.clock = clock
        self.lease = Lease(clock)
        self.uncommitted = UncommittedOffsets()
        self._lock = threading.Lock()
        self._session: int | None = None
        self._assignment_epoch: int | None = None
        self._streams: Mapping[tuple[str, str], GatedStream] = {}
        self._places: dict[TopicAndPartition, GatedStream] = {}
        self._is_round_refused = False

    def open(self, streams: Mapping[tuple[str, str], GatedStream]) -> None:
        """``streams`` by (topic, thread id); a wildcard's by ("", thread id)."""
        self._streams = streams

    def session_began(self, session: int) -> None:
        """A new ZooKeeper session; nothing is delivered before its lease is first extended."""
        self.session_ended()
        with self._lock:
            self._session = session

    def session_ended(self) -> None:
        """The session is gone, and every owner znode with it: all streams stop, and their offsets are not committed."""
        with self._lock:
            self._session = None
            self.lease.end_session()
            self._remove(list(self._places))
            self.uncommitted.clear()

    def extend(self, session: int, until: float) -> None:
        """``session`` is certain until then; the proof of an earlier session reports nothing."""
        with self._lock:
            if session == self._session:
                self.lease.extend_session(until)

    def begin_assignment_epoch(self, assignment_epoch: int) -> None:
        """The Kafka group assigned partitions to this member."""
        with self._lock:
            self._assignment_epoch = assignment_epoch

    def end_assignment_epoch(self) -> Offsets:
        """Stop every partition that Kafka's assignment started; → all offsets that Kafka may lack."""
        with self._lock:
            self._assignment_epoch = None
            stopped = self._remove(self._kafka_assigned(self._places))
        self._await_finished(stopped)
        return self.uncommitted.not_in_kafka()

    def stop_all(self) -> Offsets:
        """Stop like :meth:`end_assignment_epoch`, for every partition. Nothing starts again before
        :meth:`begin_round`.
        """
        with self._lock:
            self._is_round_refused = True
            stopped = self._remove(list(self._places))
        self._await_finished(stopped)
        return self.uncommitted.not_in_kafka()

    def begin_round(self) -> None:
        """A round that begins now sees what stopped everything: it may start partitions again."""
        with self._lock:
            self._is_round_refused = False

    def start(self, threads: Assignment, offsets: Offsets, assignment_epoch: int | None) -> Pairs:
        """Start partitions at ``offsets``, not below where they were stopped; → those that were started.

        Nothing starts without a session, after :meth:`stop_all`, or in an ``assignment_epoch`` that has ended.
        """
        with self._lock:
            if not self._is_open(assignment_epoch):
                return frozenset()
            for pair, thread in threads.items():
                self._place(pair, thread, max(offsets[pair], self.uncommitted.restart(pair)), assignment_epoch)
            return frozenset(threads)

    def keep(self, threads: Assignment, assignment_epoch: int | None) -> Pairs:
        """Continue in ``assignment_epoch`` with those that are being consumed, on the thread given; → these.

        Partitions that are not in ``threads`` stay as they are.
        """
        with self._lock:
            if not self._is_open(assignment_epoch):
                return frozenset()
            kept = {pair: thread for pair, thread in threads.items() if pair in self._places}
            moved = [pair for pair, thread in kept.items() if self._places[pair] is not self._stream(pair, thread)]
            stopped = self._remove(moved)
        self._await_finished(stopped)
        with self._lock:
            if not self._is_open(assignment_epoch):
                return frozenset()
            for pair in moved:
                if (offset := self.uncommitted.resume(pair)) is not None:
                    self._place(pair, kept[pair], offset, assignment_epoch)
            still = frozenset(pair for pair in kept if pair in self._places)
            for pair in still:
                self._places[pair].set_assignment_epoch(pair, assignment_epoch)
            return still

    def stop(self, partitions: Iterable[TopicAndPartition]) -> Offsets:
        """Nothing of ``partitions`` is delivered after this; → their next offsets.

        A record that the application still has after ``FINISH_SECONDS`` does not count. Partitions that were stopped
        before are in the answer too, until they are released.
        """
        pairs = list(partitions)
        with self._lock:
            stopped = self._remove([pair for pair in pairs if pair in self._places])
        self._await_finished(stopped)
        return self.uncommitted.stopped_at(pairs)

    def drop(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Stop like :meth:`stop`, for partitions whose owner znode is gone already: their offsets are not this
        member's.
        """
        with self._lock:
            self._is_round_refused = True
            self._drop(list(partitions))

    def stop_others(self, partitions: Pairs) -> None:
        """Drop all but these."""
        with self._lock:
            self._drop(list((self._places.keys() | self.uncommitted.stopped()) - partitions))

    def consumed(self) -> tuple[int | None, Offsets]:
        """The session, and every partition's next offset; a record in hand does not count."""
        with self._lock:
            offsets = {pair: stream.position(pair) for pair, stream in self._places.items()}
            return self._session, offsets

    def kafka_assigned(self) -> Offsets:
        """Next offsets of the partitions that Kafka's assignment started."""
        with self._lock:
            return {pair: self._places[pair].position(pair) for pair in self._kafka_assigned(self._places)}

    def consuming(self) -> Pairs:
        with self._lock:
            return frozenset(self._places)

    @property
    def seconds_in_doubt(self) -> float:
        """Return how long nothing could be delivered by now; 0 without a session, and while it is certain."""
        with self._lock:
            return 0.0 if self._session is None else self.lease.seconds_over

    def _is_open(self, assignment_epoch: int | None) -> bool:
        is_current = assignment_epoch is None or assignment_epoch == self._assignment_epoch
        return self._session is not None and is_current and not self._is_round_refused

    def _place(self, pair: TopicAndPartition, thread: str, offset: int, assignment_epoch: int | None) -> None:
        if pair in self._places:
            self._places[pair].remove([pair])
        stream = self._stream(pair, thread)
        stream.add(pair, offset, assignment_epoch)
        self._places[pair] = stream

    def _stream(self, pair: TopicAndPartition, thread: str) -> GatedStream:
        return self._streams.get((pair[0], thread)) or self._streams["", thread]

    def _kafka_assigned(self, partitions: Iterable[TopicAndPartition]) -> list[TopicAndPartition]:
        return [pair for pair in partitions if self._places[pair].assignment_epoch(pair) is not None]

    def _remove(self, partitions: Sequence[TopicAndPartition]) -> dict[GatedStream, dict[TopicAndPartition, int]]:
        """Take them off their streams; → by stream, where each was stopped."""
        kafka_assigned = frozenset(self._kafka_assigned(partitions))
        by_stream: dict[GatedStream, list[TopicAndPartition]] = {}
        for pair in partitions:
            by_stream.setdefault(self._places.pop(pair), []).append(pair)
        stopped = {stream: stream.remove(pairs) for stream, pairs in by_stream.items()}
        for offsets in stopped.values():
            self.uncommitted.add(offsets, kafka_assigned & offsets.keys())
        return stopped

    def _drop(self, partitions: Sequence[TopicAndPartition]) -> None:
        self._remove([pair for pair in partitions if pair in self._places])
        self.uncommitted.forget(partitions)

    def _await_finished(self, stopped: Mapping[GatedStream, Mapping[TopicAndPartition, int]]) -> None:
        """Give the application a moment to finish its records: what it finishes counts, unless it was started again."""
        deadline = self.clock() + FINISH_SECONDS
        for stream, offsets in stopped.items():
            self.uncommitted.advance(offsets, stream.await_finished(offsets, deadline))
