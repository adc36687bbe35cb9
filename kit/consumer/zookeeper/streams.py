"""A stream: an iterator of records of the partitions its thread owns.

Each stream has a librdkafka handle of its own and fetches on the thread that iterates it, so a slow stream holds up no
other. Fetched records wait in a queue. To hand one out is to take it from the front of the queue; to stop a partition
is to empty the queue from the back and to put the other partitions' records back. Both take one record at a time, and
a queue gives a record once: after :meth:`Stream.remove` none of the partition's records can be delivered any more,
and those it emptied out are exactly those that were not.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import filterfalse

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.gate import Gate
from kit.errors import OfframpError

log = logging.getLogger("offramp.consumer")

CHUNK = 500
FETCH_SECONDS = 0.05
FINISH_LOOK_SECONDS = 0.002
LOOK_SECONDS = 1.0


class ConsumerTimeout(Exception):
    """No record came for ``consumer.timeout.ms``. The stream can be iterated again."""


@dataclass(eq=False)
class _Place:
    """One partition on this stream, from its start to its stop. A later start is another place.

    ``offset`` is the one after the last record that was fetched and not returned, ``first`` the one it began at.
    """

    offset: int
    assignment_epoch: int | None
    first: int


class Stream:
    """Records of one thread's partitions, in each partition's order. One thread at a time may iterate.

    The record delivered last is *in hand*: it counts as consumed when the next one is asked for, or :meth:`taken` is
    called; a loop that is left by ``break`` or an exception leaves it in hand. :meth:`give_back` takes it back.

    Iterating ends with the consumer's shutdown. It raises :class:`ConsumerTimeout` when nothing came for
    ``timeout_seconds``, and the error that ended the consumer, if one did.
    """

    def __init__(
        self,
        thread_id: str,
        gate: Gate,
        connect: Callable[[], Consumer],
        reset: Callable[[TopicAndPartition, str], int],
        timeout_seconds: float | None = None,
    ) -> None:
        self.thread_id = thread_id
        self._gate = gate
        self._connect = connect
        self._reset = reset
        self._timeout = timeout_seconds
        self._pending: deque[Message] = deque()
        # The record delivered last; the application has it in hand until it asks for the next one.
        self._in_hand: Message | None = None
        # The record in hand, not done with, when its partition was taken off.
        self._parted: dict[TopicAndPartition, Message] = {}
        self._reader: int | None = None
        self._n_fetched = 0
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._places: dict[TopicAndPartition, _Place] = {}
        self._handle_lock = threading.Lock()
        self._consumer: Consumer | None = None
        self._fetching: dict[TopicAndPartition, _Place] = {}
        self._ends: dict[TopicAndPartition, int] = {}
        self._look_at = 0.0
        self._is_closed = False
        self._error: OfframpError | None = None

    def __iter__(self) -> Iterator[Message]:
        clock, lease, pending = self._gate.clock, self._gate.lease, self._pending
        self._reader = threading.get_ident()
        while True:
            message = None
            if clock() < lease.until:
                try:
                    # In hand before it is out of the queue: whoever finds it in neither would count it as consumed.
                    self._in_hand = message = pending[0]
                    pending.popleft()
                except IndexError:
                    message = None
            if message is None:
                message = self._wait()
                if message is None:
                    return
                pending = self._pending
            yield message

    def __next__(self) -> Message:
        """One record; for a loop over many, iterate."""
        return next(iter(self))

    def taken(self) -> None:
        """The application is done with the record delivered last: it counts as consumed from now on."""
        self._in_hand = None

    def taken_by_caller(self) -> None:
        """Count the record like :meth:`taken`, if the calling thread is the one that reads this stream."""
        if self._reader == threading.get_ident():
            self.taken()

    def give_back(self) -> None:
        """The record delivered last was not taken: this stream, or the partition's next owner, delivers it again."""
        with self._lock:
            message = self._in_hand
            if message is None:
                return
            pair = _pair(message)
            self._parted.pop(pair, None)
            if self._is_held(pair, message) and self._position(pair) > _offset(message):
                self._pending.appendleft(message)
            self._in_hand = None

    @property
    def n_records(self) -> int:
        """Records delivered so far."""
        return self._n_fetched - len(self._pending)

    def add(self, pair: TopicAndPartition, offset: int, assignment_epoch: int | None) -> None:
        """Consume ``pair`` from ``offset`` on. A record that this application still has in hand is left out."""
        with self._lock:
            parted = self._parted.pop(pair, None)
            is_had = parted is not None and _offset(parted) == offset
            self._places[pair] = _Place(offset + 1 if is_had else offset, assignment_epoch, offset)
            self._changed.notify_all()

    def remove(self, pairs: Iterable[TopicAndPartition]) -> dict[TopicAndPartition, int]:
        """Take partitions off; → their next offsets. A record in hand does not count: see :meth:`await_finished`."""
        with self._lock:
            places = {pair: self._places[pair] for pair in pairs if pair in self._places}
            waiting = self._emptied()
            for message in reversed(waiting):
                if (place := places.get(_pair(message))) is not None:
                    place.offset = _offset(message)
            self._part(places)
            for pair in places:
                del self._places[pair]
            kept = deque(message for message in waiting if _pair(message) not in places)
            self._n_fetched -= len(waiting) - len(kept)
            # Another queue: who has just examined the first record of the old one finds that empty, not another first.
            self._pending = kept
            return {pair: place.offset for pair, place in places.items()}

    def _part(self, places: Mapping[TopicAndPartition, _Place]) -> None:
        """The record in hand, if it is one of these partitions', goes with its partition."""
        message = self._in_hand
        if (
            message is None
            or (place := places.get(_pair(message))) is None
            or not self._is_held(_pair(message), message)
        ):
            return
        if _offset(message) < place.offset:
            place.offset = _offset(message)
            self._parted[_pair(message)] = message

    def await_finished(self, pairs: Iterable[TopicAndPartition], deadline: float) -> dict[TopicAndPartition, int]:
        """Give the application until ``deadline`` to finish a record of ``pairs``, which were taken off.

        → the partition's next offset when it finished one, else nothing.
        """
        pair, message = next(((pair, self._parted[pair]) for pair in pairs if pair in self._parted), (None, None))
        if pair is None or message is None or self._reader == threading.get_ident():
            return {}
        while self._in_hand is message:
            if self._gate.clock() >= deadline:
                return {}
            time.sleep(FINISH_LOOK_SECONDS)
        return {pair: _offset(message) + 1} if self._parted.get(pair) is message else {}

    def assignment_epoch(self, pair: TopicAndPartition) -> int | None:
        return self._places[pair].assignment_epoch

    def set_assignment_epoch(self, pair: TopicAndPartition, assignment_epoch: int | None) -> None:
        self._places[pair].assignment_epoch = assignment_epoch

    def position(self, pair: TopicAndPartition) -> int:
        """The next offset; a record still in hand does not count."""
        with self._lock:
            # In this order: a record delivered in between is then counted one time too few, never too many.
            position = self._position(pair)
            in_hand = self._in_hand
            is_in_hand = in_hand is not None and self._is_held(pair, in_hand)
            return min(position, _offset(in_hand)) if is_in_hand and in_hand is not None else position

    def _is_held(self, pair: TopicAndPartition, message: Message) -> bool:
        """Return whether ``message`` came after the partition's last start: one of an earlier start reports nothing
        about it.
        """
        place = self._places.get(pair)
        return place is not None and _pair(message) == pair and _offset(message) >= place.first

    def _position(self, pair: TopicAndPartition) -> int:
        waiting = (_offset(each) for each in self._pending.copy() if _pair(each) == pair)
        return next(waiting, self._places[pair].offset)

    @property
    def max_lag(self) -> int | None:
        """The greatest lag of a partition, by log ends that may be a second old; None: no log end is known."""
        ends = self._ends
        with self._lock:
            lags = [max(0, ends[pair] - self._position(pair)) for pair in self._places if pair in ends]
        return max(lags, default=None)

    def close(self, error: OfframpError | None = None) -> None:
        """End the iteration; it raises ``error``."""
        with self._lock:
            self._is_closed, self._error = True, error
            self._n_fetched -= len(self._emptied())
            self._changed.notify_all()
        with self._handle_lock:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None

    def _emptied(self) -> list[Message]:
        """Empty the queue from the back; → its records in order, without those that are delivered meanwhile."""
        taken: list[Message] = []
        while True:
            try:
                taken.append(self._pending.pop())
            except IndexError:
                return taken[::-1]

    def _wait(self) -> Message | None:
        """The next record when there is one; None when this stream is closed."""
        self._in_hand = None
        deadline = None if self._timeout is None else self._gate.clock() + self._timeout
        while True:
            if self._is_closed:
                if self._error is not None:
                    raise self._error
                return None
            if self._gate.clock() < self._gate.lease.until and (message := self._next()) is not None:
                return message
            if deadline is not None and self._gate.clock() >= deadline:
                raise ConsumerTimeout(f"{self.thread_id}: no record for {self._timeout:g} s")
            self._fetch()

    def _next(self) -> Message | None:
        with self._lock:
            if not self._pending:
                return None
            self._in_hand = self._pending[0]
            return self._pending.popleft()

    def _fetch(self) -> None:
        """Bring the handle in line with the partitions, and get more records."""
        with self._handle_lock:
            if not self._apply() or self._consumer is None:
                return
            # Wait for one record, then take what is there: waiting for a whole chunk would delay every record.
            messages = self._consumer.consume(1, FETCH_SECONDS)
            if messages:
                messages += self._consumer.consume(CHUNK, 0)
            self._note_ends(self._consumer)
        good = list(filterfalse(Message.error, messages))
        with self._lock:
            is_changed = self._fetching != self._places
            self._take_in([each for each in good if self._is_current(_pair(each))] if is_changed else good)
        for message in messages if len(good) < len(messages) else ():
            self._complain(message)

    def _note_ends(self, consumer: Consumer) -> None:
        """Note the log ends of librdkafka's last fetches. Another thread would have to wait for a fetch to end."""
        now = self._gate.clock()
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        known = {pair: consumer.get_watermark_offsets(TopicPartition(*pair), cached=True) for pair in self._fetching}
        self._ends = {pair: marks[1] for pair, marks in known.items() if marks is not None and marks[1] >= 0}

    def _take_in(self, messages: list[Message]) -> None:
        """Queue what was fetched; the places' offsets follow."""
        for message in self._last_ones(messages):
            if (pair := _pair(message)) in self._fetching:
                self._places[pair].offset = _offset(message) + 1
        self._n_fetched += len(messages)
        self._pending.extend(messages)

    def _last_ones(self, messages: list[Message]) -> Iterable[Message]:
        """The last record of each partition. Of one topic, as nearly all streams are, the partition's number shows."""
        partitions: Iterable[object] = map(Message.partition, messages)
        if len({topic for topic, _ in self._fetching}) != 1:
            partitions = zip(map(Message.topic, messages), partitions)
        return dict(zip(partitions, messages)).values()

    def _apply(self) -> bool:
        """False when there is nothing to fetch for now; waits a moment then."""
        with self._lock:
            if self._is_closed:
                return False
            if not self._places or self._pending:
                self._changed.wait(FETCH_SECONDS)
                return False
            added = {pair: place for pair, place in self._places.items() if self._fetching.get(pair) is not place}
            gone = [pair for pair, place in self._fetching.items() if self._places.get(pair) is not place]
            starts = [TopicPartition(*pair, place.offset) for pair, place in added.items()]
        if self._consumer is None:
            self._consumer = self._connect()
        if gone:
            self._consumer.incremental_unassign([TopicPartition(*pair) for pair in gone])
        if starts:
            self._consumer.incremental_assign(starts)
        self._fetching = {pair: place for pair, place in self._fetching.items() if pair not in gone} | added
        return True

    def _is_current(self, pair: TopicAndPartition) -> bool:
        place = self._places.get(pair)
        return place is not None and self._fetching.get(pair) is place

    def _complain(self, message: Message) -> None:
        error, pair = message.error(), _pair(message)
        if error is None:
            return
        if error.code() != KafkaError._AUTO_OFFSET_RESET:
            log.warning("%s: %s-%s can't be fetched: %s", self.thread_id, *pair, error.str())
            return
        offset = self._reset(pair, error.str())
        with self._lock:
            if self._is_current(pair):
                self._places[pair] = _Place(offset, self._places[pair].assignment_epoch, offset)


def _pair(message: Message) -> TopicAndPartition:
    return message.topic(), message.partition()  # type: ignore[return-value]  # both are set on every fetched record


def _offset(message: Message) -> int:
    return message.offset()  # type: ignore[return-value]
