"""Halving the time: what one answer of ListOffsets teaches of one record."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from random import Random

import pytest

from kit.health.read.offset_times import _Bracket

NOW = 1_000_000


def halved(
    times: list[int], offset: int, resolution_ms: int = 1000, offsets: Sequence[int] | None = None
) -> tuple[_Bracket, int]:
    """Against a log whose record times these are, at ``offsets`` (0, 1, …); → the bracket, and how often it asked."""
    bracket, asked = _Bracket(offset, NOW), 0
    places = range(len(times)) if offsets is None else offsets
    while (at := bracket.probe(resolution_ms)) is not None:
        first = bisect_left(times, at)
        bracket.learn(at, (places[first], times[first]) if first < len(times) else None)
        asked += 1
        assert asked < 60
    return bracket, asked


EVERY_10_MS = list(range(0, NOW, 10))


@pytest.mark.parametrize("offset", [0, 1, 4321, 50_000, 99_000, 99_998, 99_999])
@pytest.mark.parametrize("resolution_ms", [1, 50, 1000])
def test_the_truth_lies_in_the_bracket(offset, resolution_ms):
    bracket, _ = halved(EVERY_10_MS, offset, resolution_ms)
    assert bracket.error is None
    assert bracket.low <= EVERY_10_MS[offset] <= bracket.high
    assert bracket.high - bracket.low <= resolution_ms


def test_a_lone_record_is_found_exactly_and_soon():
    bracket, asked = halved([10, 500_000, 999_000], 1)
    assert (bracket.low, bracket.high) == (500_000, 500_000)
    assert asked <= 5


def test_a_lag_of_seventeen_minutes_takes_few_questions():
    _, asked = halved(EVERY_10_MS, 0)
    assert asked <= 15


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (
            [NOW + 500],
            "the record's timestamp is later than this machine's clock, or later than those of newer records",
        ),
        ([], "the records of this partition have no timestamp"),
    ],
)
def test_an_unreadable_value_has_a_reason(times, said):
    bracket, _ = halved(times, 0)
    assert bracket.row(("t", 0)).error == said
    assert bracket.row(("t", 0)).appended_ms is None


@pytest.mark.parametrize("offset", [0, 3, 7])
def test_before_the_first_record_that_compaction_left_the_first_is_next(offset):
    bracket, _ = halved([500_000, 990_000], offset, offsets=[8, 9])
    assert (bracket.row(("t", 0)).from_ms, bracket.row(("t", 0)).until_ms) == (500_000, 500_000)


@pytest.mark.parametrize("offset", [3, 5, 8])
def test_in_a_hole_the_truth_is_the_next_record_not_the_one_before(offset):
    """Records at 2 and 9; what was between is gone. It converged just after the record at 2, ten minutes too old."""
    row = halved([100_000, 100_500, 300_000, 900_000], offset, offsets=[0, 1, 2, 9])[0].row(("t", 0))
    assert row.from_ms <= 900_000 <= row.until_ms


def test_a_hole_that_a_second_bridges_stays_within_the_resolution():
    row = halved([100_000, 300_000, 300_700], 5, offsets=[0, 2, 9])[0].row(("t", 0))
    assert (row.from_ms, row.until_ms - row.from_ms <= 1000) == (300_000, True)


def test_a_record_as_old_as_the_one_before_can_not_be_distinguished_from_a_hole():
    """The brackets are one and the same: whoever wants to know has to read."""
    dense = halved([100_000, 300_000, 300_000, 900_000], 2)[0].row(("t", 0))
    hole = halved([100_000, 300_000, 900_000], 2, offsets=[0, 1, 3])[0].row(("t", 0))
    assert (dense.from_ms, dense.until_ms) == (hole.from_ms, hole.until_ms) == (300_000, 900_000)


def test_with_nothing_younger_in_the_log_it_is_as_old_as_the_one_before():
    """Something lies below the log's end, and it is not younger: no hole is possible."""
    row = halved([100_000, 300_000, 300_000], 2)[0].row(("t", 0))
    assert (row.from_ms, row.until_ms - row.from_ms <= 1000) == (300_000, True)


@pytest.mark.parametrize("seed", range(40))
def test_holes_bursts_and_equal_times_anywhere(seed):
    """The truth is the first record at or after the offset; wherever a bracket is wide, it is at one of its ends."""
    chance = Random(seed)
    gaps = [chance.choice([0, 0, 1, 3, 40, 900, 5_000, 60_000]) for _ in range(400)]
    times = [time for time in accumulate(gaps, initial=1000) if time < NOW]
    offsets = list(accumulate(chance.choice([1, 1, 1, 2, 30]) for _ in times))
    for offset in range(offsets[-1] + 1):
        row = halved(times, offset, 1000, offsets)[0].row(("t", 0))
        truth = times[bisect_left(offsets, offset)]
        assert row.error is None
        assert row.from_ms <= truth <= row.until_ms, (offset, row)
        assert row.until_ms - row.from_ms <= 1000 or truth in (row.from_ms, row.until_ms)


def test_a_steady_log_takes_few_questions_however_old_the_record_is():
    """A line through what was found leads there: halving a day to a second takes seventeen."""
    assert max(halved(EVERY_10_MS, offset)[1] for offset in range(0, 100_000, 997)) <= 8


@pytest.mark.parametrize("offset", [2, 3, 4])
def test_if_a_producers_clock_was_set_back_the_newest_time_before_bounds_it(offset):
    """The log is 100, 500, 200, 210, 220, 900 s; ListOffsets shows the first record that is not older, in order."""
    times = [1000 * second for second in (100, 500, 200, 210, 220, 900)]
    bracket = _Bracket(offset, NOW)
    while (at := bracket.probe(1000)) is not None:
        bracket.learn(at, next(((place, time) for place, time in enumerate(times) if time >= at), None))
    row = bracket.row(("t", 0))
    assert (row.from_ms, row.until_ms) == (500_000, 900_000)  # wide: it is going to be read


def test_records_that_retention_took_after_the_observation_leave_the_oldest_as_next():
    row = halved([600_000, 700_000], 10, offsets=[40, 41])[0].row(("t", 0))
    assert (row.from_ms, row.until_ms) == (600_000, 600_000)
