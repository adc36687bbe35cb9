"""What may be handed out: sessions that are certain, a lease on them, and the streams that obey both.

Invariant I4: nothing is handed out while a session is in doubt. The lease is the proof that it is not: ZooKeeper's
leader answered a request that was sent less than a safe part of the session's time-out ago. It is looked at before
every record, so a process that stood still (SIGSTOP, a paused machine) hands out nothing when it wakes (R14).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from kit.consumer.zookeeper.assignors import Assignment, TopicAndPartition
from kit.consumer.zookeeper.effects import Offsets, Pairs

NEVER = float("-inf")
FINISH_SECONDS = 0.3
"""How long a stop waits for records the application has in hand: quick ones are then never in two members' hands."""
Clock = Callable[[], float]


class GatedStream(Protocol):
    """What the gate asks of a stream: to begin and to end with partitions, and to say how far each came."""

    def add(self, pair: TopicAndPartition, offset: int, assignment_epoch: int | None) -> None: ...

    def remove(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]: ...

    def await_finished(self, pairs: Iterable[TopicAndPartition], deadline: float) -> dict[TopicAndPartition, int]: ...

    def assignment_epoch(self, pair: TopicAndPartition) -> int | None: ...

    def set_assignment_epoch(self, pair: TopicAndPartition, assignment_epoch: int | None) -> None: ...

    def position(self, pair: TopicAndPartition) -> int: ...


class Gate:
    """Starts and stops partitions on the streams of one member; every method may be called by any thread.

    ``until`` is the clock's time up to which records may be handed out; it is read by streams before every record.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.until = NEVER
        self._zookeeper_until = NEVER
        self._kafka_until = float("inf")
        self._lock = threading.Lock()
        self._session: int | None = None
        self._assignment_epoch: int | None = None
        self._streams: Mapping[tuple[str, str], GatedStream] = {}
        self._places: dict[TopicAndPartition, GatedStream] = {}
        # Stopped, and not in Kafka yet, whichever thread is on its way there with it.
        self._unsaved: dict[TopicAndPartition, int] = {}
        # Where what is still owned was stopped: its commit may be under way, so what is fetched may be less.
        self._last: dict[TopicAndPartition, int] = {}
        self._was_kafka_assigned: dict[TopicAndPartition, bool] = {}
        self._is_round_refused = False

    def open(self, streams: Mapping[tuple[str, str], GatedStream]) -> None:
        """``streams`` by (topic, thread id); a wildcard's by ("", thread id)."""
        self._streams = streams

    def session_began(self, session: int) -> None:
        """A new ZooKeeper session; nothing is handed out before its lease is first extended."""
        self.session_ended()
        with self._lock:
            self._session = session

    def session_ended(self) -> None:
        """The session is gone, and with it every owner znode: all streams stop, nothing of them is to be committed."""
        with self._lock:
            self._session = None
            self._set(zookeeper_until=NEVER)
            self._remove(list(self._places))
            self._unsaved, self._last = {}, {}

    def extend(self, session: int, until: float) -> None:
        """``session`` is certain until then."""
        with self._lock:
            if session == self._session:
                self._set(zookeeper_until=until)

    def extend_kafka(self, until: float) -> None:
        """The embedded consumer's thread runs, and its membership is certain until then (R13)."""
        with self._lock:
            self._set(kafka_until=until)

    def begin_assignment_epoch(self, assignment_epoch: int) -> None:
        """A generation of the Kafka group began, with this member in it."""
        with self._lock:
            self._assignment_epoch = assignment_epoch

    def end_assignment_epoch(self) -> Offsets:
        """The generation ended: stop every partition started in it; next offsets of all that Kafka may not have yet."""
        with self._lock:
            self._assignment_epoch = None
            stopped = self._remove(
                [pair for pair, stream in self._places.items() if stream.assignment_epoch(pair) is not None]
            )
        self._await_finished(stopped)
        with self._lock:
            return dict(self._unsaved)

    def stop_all(self) -> Offsets:
        """As :meth:`end_assignment_epoch`, for everything; until :meth:`begin_round` nothing is started or kept."""
        with self._lock:
            self._is_round_refused = True
            stopped = self._remove(list(self._places))
        self._await_finished(stopped)
        with self._lock:
            return dict(self._unsaved)

    def begin_round(self) -> None:
        """What is decided from now on is decided in the light of what stopped everything."""
        with self._lock:
            self._is_round_refused = False

    def start(self, threads: Assignment, offsets: Offsets, assignment_epoch: int | None) -> Pairs:
        """Start partitions at ``offsets``, not below where they were stopped; none when there is no session, the round
        is over, or ``assignment_epoch`` isn't the current one."""
        with self._lock:
            if not self._is_open(assignment_epoch):
                return frozenset()
            for pair, thread in threads.items():
                self._place(pair, thread, max(offsets[pair], self._last.pop(pair, 0)), assignment_epoch)
            return frozenset(threads)

    def keep(self, threads: Assignment, assignment_epoch: int | None) -> Pairs:
        """Go on, in ``assignment_epoch``, with those that are being consumed, on the thread given; → these."""
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
                if pair in self._last:
                    self._unsaved.pop(pair, None)
                    self._place(pair, kept[pair], self._last.pop(pair), assignment_epoch)
            still = frozenset(pair for pair in kept if pair in self._places)
            for pair in still:
                self._places[pair].set_assignment_epoch(pair, assignment_epoch)
            return still

    def stop(self, partitions: Iterable[TopicAndPartition]) -> Offsets:
        """Nothing of ``partitions`` is handed out after this; their next offsets, without a record that the application
        still has in hand after ``FINISH_SECONDS``.

        Those of partitions stopped before are told again, until :meth:`forget`.
        """
        pairs = list(partitions)
        with self._lock:
            stopped = self._remove([pair for pair in pairs if pair in self._places])
        self._await_finished(stopped)
        with self._lock:
            return {pair: self._last[pair] for pair in pairs if pair in self._last}

    def drop(self, partitions: Iterable[TopicAndPartition]) -> None:
        """As :meth:`stop`, for partitions whose owner znode is gone already: their offsets are not this member's."""
        with self._lock:
            self._is_round_refused = True
            self._drop(list(partitions))

    def stop_others(self, partitions: Pairs) -> None:
        """Drop all but these."""
        with self._lock:
            self._drop([pair for pair in {**self._places, **self._last} if pair not in partitions])

    def forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        """Others may commit these from now on: nothing older may follow."""
        with self._lock:
            self._forget(partitions)

    def unsaved(self, offsets: Offsets) -> Offsets:
        """Of these what Kafka may not have yet."""
        with self._lock:
            return {pair: offset for pair, offset in offsets.items() if pair in self._unsaved}

    def mark_committed(self, offsets: Offsets) -> None:
        """Kafka has these."""
        with self._lock:
            self._unsaved = {pair: offset for pair, offset in self._unsaved.items() if offset != offsets.get(pair)}

    def mark_uncertain(self, partitions: Iterable[TopicAndPartition]) -> None:
        """ZooKeeper may not have taken their offsets. What was this member's by ZooKeeper's word alone may be somebody
        else's by now, and he may be further: Kafka must not get it either."""
        with self._lock:
            for pair in partitions:
                if not self._was_kafka_assigned.get(pair, False):
                    self._unsaved.pop(pair, None)

    def discard_unsaved(self) -> None:
        """Others may commit to Kafka from now on: what it has not by now must not come there later."""
        with self._lock:
            self._unsaved = {}

    def consumed(self) -> tuple[int | None, Offsets]:
        """The session and every partition's next offset; a record in hand doesn't count."""
        with self._lock:
            offsets = {pair: stream.position(pair) for pair, stream in self._places.items()}
            return self._session, offsets

    def kafka_assigned(self) -> Offsets:
        """Next offsets of the partitions that were started by Kafka's assignment."""
        with self._lock:
            kafka_assigned = [
                pair for pair, stream in self._places.items() if stream.assignment_epoch(pair) is not None
            ]
            return {pair: self._places[pair].position(pair) for pair in kafka_assigned}

    def consuming(self) -> Pairs:
        with self._lock:
            return frozenset(self._places)

    @property
    def seconds_in_doubt(self) -> float:
        """How long nothing may be handed out by now; 0 while all is certain."""
        with self._lock:
            return 0.0 if self._session is None else max(0.0, self.clock() - self.until)

    @property
    def seconds_without_lease(self) -> float:
        """How long the ZooKeeper session has been in doubt; 0 while it is certain."""
        with self._lock:
            return max(0.0, self.clock() - self._zookeeper_until)

    def _set(self, zookeeper_until: float | None = None, kafka_until: float | None = None) -> None:
        if zookeeper_until is not None:
            self._zookeeper_until = zookeeper_until
        if kafka_until is not None:
            self._kafka_until = kafka_until
        self.until = min(self._zookeeper_until, self._kafka_until)

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

    def _remove(self, partitions: Sequence[TopicAndPartition]) -> dict[GatedStream, dict[TopicAndPartition, int]]:
        """Off their streams, and noted where each was stopped."""
        by_stream: dict[GatedStream, list[TopicAndPartition]] = {}
        for pair in partitions:
            self._was_kafka_assigned[pair] = self._places[pair].assignment_epoch(pair) is not None
            by_stream.setdefault(self._places.pop(pair), []).append(pair)
        stopped = {stream: stream.remove(pairs) for stream, pairs in by_stream.items()}
        for offsets in stopped.values():
            self._unsaved |= offsets
            self._last |= offsets
        return stopped

    def _drop(self, partitions: Sequence[TopicAndPartition]) -> None:
        self._remove([pair for pair in partitions if pair in self._places])
        self._forget(partitions)

    def _forget(self, partitions: Iterable[TopicAndPartition]) -> None:
        for pair in list(partitions):
            self._unsaved.pop(pair, None)
            self._last.pop(pair, None)

    def _await_finished(self, stopped: Mapping[GatedStream, Mapping[TopicAndPartition, int]]) -> None:
        """A record in hand counts if the application is done with it soon, and nobody went on from it meanwhile."""
        deadline = self.clock() + FINISH_SECONDS
        for stream, offsets in stopped.items():
            finished = stream.await_finished(offsets, deadline)
            with self._lock:
                for noted in (self._unsaved, self._last):
                    noted |= {pair: after for pair, after in finished.items() if noted.get(pair) == offsets[pair]}
