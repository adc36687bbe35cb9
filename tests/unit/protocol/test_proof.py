"""Owners by the records of ``__consumer_offsets``: every time at which a partition has two is a finding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from kit.protocol.proof import DoubleOwner, Holding, judged
from kit.protocol.rebalance_times import EpochRecord, RebalanceTimes, rebalance_times

START = datetime(2026, 11, 28, tzinfo=UTC)


def at(offset: int) -> datetime:
    return START + timedelta(seconds=offset)


def member(offset: int, name: str, *partitions: str, epoch: int | None = None) -> Holding:
    return Holding(offset, at(offset), {name: frozenset(partitions)}, epoch=epoch)


def whole(offset: int, generation: int | None = None, **members: str) -> Holding:
    held = {name: frozenset(partitions.split()) for name, partitions in members.items()}
    return Holding(offset, at(offset), held, is_whole=True, epoch=generation)


def test_a_partition_that_is_given_up_first_has_one_owner_and_a_time_without_one():
    records = [member(1, "a", "t-0", "t-1"), member(2, "b"), member(5, "a", "t-0"), member(8, "b", "t-1", epoch=4)]
    proof = judged(records, since=2, end=9)
    assert (proof.doubles, proof.n_records, proof.longest_unowned_ms, proof.end) == ((), 3, 3000, 9)


def test_a_partition_that_another_member_still_holds_is_found_with_its_place():
    records = [member(1, "a", "t-0", "t-1"), member(2, "b", "t-1")]
    assert judged(records, since=2, end=3).doubles == (DoubleOwner("t-1", ("a", "b"), 2, at(2)),)
    assert judged(records, since=3, end=3).doubles == ()


def test_a_conversion_and_the_conversion_back_are_replayed_in_the_order_of_the_log():
    """Write like a coordinator: the tombstone first, then the other kind of records."""
    there = [whole(1, 6, a="t-0", b="t-1"), whole(2), member(3, "a", "t-0", epoch=6), member(4, "b", "t-1", epoch=6)]
    back = [member(5, "a"), member(6, "b"), whole(7, 7, a="t-1", b="t-0")]
    proof = judged([*there, *back], since=0, end=8)
    assert (proof.doubles, proof.epochs) == ((), (6, 7))
    late = judged([*there, whole(7, 7, c="t-0")], since=0, end=8)
    assert not late.doubles  # A record of a whole group replaces all holders.


def test_a_member_whose_tombstone_is_missing_is_reported():
    records = [member(1, "old", "t-0"), member(2, "new", "t-0")]
    assert [each.members for each in judged(records, since=0, end=3).doubles] == [("new", "old")]


def test_a_rebalance_ends_when_each_member_has_reached_the_newest_epoch():
    """A classic generation, its conversion with a joiner, a member that leaves, and an epoch raised meanwhile."""
    epoch = lambda offset, number, member=None: EpochRecord(offset, at(offset), number, member)  # noqa: E731
    converted = [epoch(2, 6), epoch(2, 6, "a"), epoch(2, 6, "b")]
    joined = [epoch(3, 7), epoch(3, 7, "c"), epoch(5, 7, "a"), epoch(8, 7, "b")]
    left = [epoch(9, None, "a"), epoch(9, 8), epoch(10, 8, "b"), epoch(11, 9), epoch(12, 9, "b"), epoch(19, 9, "c")]
    records = [EpochRecord(1, at(1), 6, is_generation=True), *converted, *joined, *left]
    before, late = rebalance_times(records, since=9)
    assert (before.n_classic, before.durations_ms, before.longest_ms) == (1, (5000,), 5000)
    assert (late.n_classic, late.durations_ms, late.median_ms) == (0, (10_000,), 10_000)
    assert rebalance_times(records[:-1], since=9)[1] == RebalanceTimes()  # The last one has not ended.
