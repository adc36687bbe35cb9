"""A stream's queue: what is stopped is not delivered, what is kept stays in order, offsets are exact."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import pytest
from confluent_kafka import Message

from kit.consumer.zookeeper.gate import Gate
from kit.consumer.zookeeper.streams import ConsumerTimeout, Stream
from kit.errors import InputError

FOREVER = float("inf")


def record(partition: int, offset: int) -> Message:
    return Message(topic="t", partition=partition, offset=offset)


class Nothing:
    """A handle that fetches nothing."""

    def incremental_assign(self, partitions: object) -> None: ...

    def incremental_unassign(self, partitions: object) -> None: ...

    def consume(self, count: int, seconds: float) -> list[Message]:
        return []

    def get_watermark_offsets(self, partition: object, cached: bool) -> tuple[int, int]:
        return 0, 1000

    def close(self) -> None: ...


def stream_of(gate: Gate, timeout: float | None = None) -> Stream:
    return Stream("g_c-0", gate, Nothing, lambda pair, reason: 0, timeout)  # type: ignore[arg-type]


@pytest.fixture
def gate() -> Gate:
    gate = Gate()
    gate.lease.until = FOREVER
    return gate


def filled(gate: Gate, count: int, timeout: float | None = None) -> Stream:
    """Partitions 0 and 1, a record of each in turn, offsets from 0."""
    stream = stream_of(gate, timeout)
    for partition in (0, 1):
        stream.add(("t", partition), 0, None)
    stream._fetching = dict(stream._places)
    stream._take_in([record(number % 2, number // 2) for number in range(count)])  # type: ignore[misc]
    return stream


def taken(records: Iterator[object], count: int) -> list[tuple[int, int]]:
    return [(record.partition(), record.offset()) for record, _ in zip(records, range(count))]  # type: ignore[attr-defined]


def test_a_stopped_partition_is_not_delivered_and_the_other_stays_in_order(gate: Gate) -> None:
    stream = filled(gate, 10)
    records = iter(stream)
    assert [next(records).offset() for _ in range(3)] == [0, 0, 1]
    assert stream.remove([("t", 1)]) == {("t", 1): 1}
    assert stream.await_finished([("t", 1)], FOREVER) == {}
    assert [(next(records).partition(), offset) for offset in (2, 3, 4)] == [(0, 2), (0, 3), (0, 4)]
    assert stream.position(("t", 0)) == 4  # the last one is in hand
    assert stream.n_records == 6


def test_the_record_in_hand_counts_when_the_next_is_asked_for_or_its_reader_reports_it(gate: Gate) -> None:
    stream = filled(gate, 4)
    records = iter(stream)
    next(records)
    assert stream.position(("t", 0)) == 0
    next(records)
    assert stream.position(("t", 0)) == 1
    stream.taken_by_caller()
    assert stream.position(("t", 1)) == 1
    assert stream.position(("t", 0)) == 1


def test_a_record_of_another_thread_does_not_count_until_it_is_taken(gate: Gate) -> None:
    stream = filled(gate, 4)
    reader = threading.Thread(target=lambda: next(iter(stream)))
    reader.start()
    reader.join()
    stream.taken_by_caller()
    assert stream.position(("t", 0)) == 0
    stream.taken()
    assert stream.position(("t", 0)) == 1


def refuse(stream: Stream) -> None:
    for _ in stream:
        raise ValueError("bad record")


def test_a_loop_that_is_left_does_not_count_its_last_record(gate: Gate) -> None:
    """By break, by an exception, by the end of the generator."""
    stream = filled(gate, 6)
    for _ in stream:
        break
    assert stream.position(("t", 0)) == 0
    with pytest.raises(ValueError, match="bad record"):
        refuse(stream)
    assert stream.position(("t", 1)) == 0
    assert stream.position(("t", 0)) == 1
    records = iter(stream)
    assert next(records).offset() == 1
    records.close()  # type: ignore[attr-defined]
    assert stream.remove([("t", 0), ("t", 1)]) == {("t", 0): 1, ("t", 1): 1}


def test_a_record_given_back_is_the_next_one_and_is_not_counted(gate: Gate) -> None:
    stream = filled(gate, 4)
    first = next(stream)
    stream.give_back()
    stream.give_back()
    assert stream.n_records == 0
    assert stream.position(("t", 0)) == 0
    assert next(stream) is first
    assert taken(iter(stream), 2) == [(1, 0), (0, 1)]


def test_a_record_given_back_after_its_partition_went_is_the_next_owners(gate: Gate) -> None:
    stream = filled(gate, 4)
    next(stream)
    assert stream.remove([("t", 0)]) == {("t", 0): 0}
    stream.give_back()
    assert stream.await_finished([("t", 0)], FOREVER) == {}
    stream.add(("t", 0), 0, None)
    assert stream.position(("t", 0)) == 0


def test_a_partition_that_comes_back_continues_after_the_record_in_hand(gate: Gate) -> None:
    """It is not delivered to the same application twice, and not counted before it is taken."""
    stream = filled(gate, 4)
    next(stream)
    assert stream.remove([("t", 0)]) == {("t", 0): 0}
    stream.add(("t", 0), 0, None)
    assert stream.position(("t", 0)) == 0
    stream.taken()
    assert stream.position(("t", 0)) == 1


def test_a_record_in_hand_of_long_ago_lowers_nothing(gate: Gate) -> None:
    """Its partition went to somebody who read on, and came back."""
    stream = filled(gate, 4)
    next(stream)
    stream.remove([("t", 0)])
    stream.add(("t", 0), 100, None)
    assert stream.position(("t", 0)) == 100
    stream.give_back()
    assert stream.position(("t", 0)) == 100


def test_a_release_waits_a_moment_for_the_application_and_counts_what_it_finished(gate: Gate) -> None:
    stream = filled(gate, 4)
    gate.session_began(1)
    gate.extend(1, FOREVER)
    gate._places = {("t", 0): stream, ("t", 1): stream}
    reader = threading.Thread(target=lambda: next(stream))
    reader.start()
    reader.join()
    threading.Timer(0.05, stream.taken).start()
    assert gate.stop([("t", 0)]) == {("t", 0): 1}


def test_a_release_does_not_count_what_the_application_still_has(gate: Gate) -> None:
    stream = filled(gate, 4)
    gate.session_began(1)
    gate.extend(1, FOREVER)
    gate._places = {("t", 0): stream, ("t", 1): stream}
    reader = threading.Thread(target=lambda: next(stream))
    reader.start()
    reader.join()
    assert gate.stop([("t", 0)]) == {("t", 0): 0}
    assert gate.stop_all() == {("t", 0): 0, ("t", 1): 0}


def test_nothing_is_delivered_after_the_lease(gate: Gate) -> None:
    stream = filled(gate, 4, timeout=0.05)
    records = iter(stream)
    next(records)
    gate.lease.until = gate.clock() - 1
    with pytest.raises(ConsumerTimeout, match=r"no record for 0\.05 s"):
        next(records)
    gate.lease.until = FOREVER
    assert next(iter(stream)).partition() == 1


def test_a_closed_stream_ends_or_reports_why(gate: Gate) -> None:
    stream = filled(gate, 4)
    stream.close()
    assert list(stream) == []
    broken = filled(gate, 4)
    broken.close(InputError("roundrobin.hash"))
    with pytest.raises(InputError, match=r"roundrobin\.hash"):
        list(broken)


def test_each_record_is_delivered_or_given_back_never_both() -> None:
    """One thread iterates, another stops and starts partitions at the offsets it is reported: no gap, nothing twice."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(20):
            gate = Gate()
            gate.lease.until = FOREVER
            stream = filled(gate, 2000)
            handed: list[tuple[int, int]] = []
            reader = threading.Thread(target=lambda: handed.extend(taken(iter(stream), 10_000)))  # noqa: B023
            reader.start()
            stopped = stream.remove([("t", 1)]) | stream.await_finished([("t", 1)], FOREVER)
            while stream._pending:
                pass
            stream.close()
            reader.join(10)
            assert [offset for partition, offset in handed if partition == 0] == list(range(1000))
            assert [offset for partition, offset in handed if partition == 1] == list(range(stopped["t", 1]))
    finally:
        sys.setswitchinterval(before)
