"""An offset of a stopped partition is committed to Kafka once, and never after another member may have gone further."""

from __future__ import annotations

from kit.consumer.zookeeper.uncommitted import UncommittedOffsets

A, B = ("t", 0), ("t", 1)


def stopped(kafka_assigned: tuple[tuple[str, int], ...] = ()) -> UncommittedOffsets:
    uncommitted = UncommittedOffsets()
    uncommitted.add({A: 5, B: 7}, kafka_assigned)
    return uncommitted


def test_a_commit_of_an_older_offset_leaves_the_newer_one_due() -> None:
    uncommitted = stopped()
    uncommitted.mark_committed({A: 4, B: 7})
    assert uncommitted.not_in_kafka() == {A: 5}
    assert uncommitted.stopped_at([A, B]) == {A: 5, B: 7}


def test_without_zookeeper_only_kafkas_own_assignment_is_committed_to_kafka() -> None:
    uncommitted = stopped(kafka_assigned=(A,))
    uncommitted.mark_uncertain([A, B])
    assert uncommitted.not_in_kafka() == {A: 5}


def test_a_finished_record_counts_unless_the_partition_was_started_meanwhile() -> None:
    uncommitted = stopped()
    assert uncommitted.restart(B) == 7
    uncommitted.advance({A: 5, B: 7}, {A: 6, B: 8})
    assert uncommitted.stopped_at([A, B]) == {A: 6}


def test_a_partition_that_continues_where_it_was_stopped_needs_no_commit() -> None:
    uncommitted = stopped()
    assert uncommitted.resume(A) == 5
    assert uncommitted.resume(A) is None
    assert uncommitted.of({A: 5, B: 7}) == {B: 7}


def test_a_released_partition_is_committed_by_its_next_owner_alone() -> None:
    uncommitted = stopped()
    uncommitted.forget([A])
    assert uncommitted.of({A: 5, B: 7}) == {B: 7}
    assert uncommitted.stopped() == {B}


def test_after_the_answer_to_a_rebalance_nothing_older_is_committed() -> None:
    uncommitted = stopped()
    uncommitted.discard_unsaved()
    assert uncommitted.not_in_kafka() == {}
    assert uncommitted.stopped_at([A]) == {A: 5}
