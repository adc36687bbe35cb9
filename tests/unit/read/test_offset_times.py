"""Halving the time: what one answer of ListOffsets teaches of one record."""

from __future__ import annotations

from bisect import bisect_left

import pytest

from kit.read.offset_times import _Bracket

NOW = 1_000_000


def halved(times: list[int], offset: int, resolution_ms: int = 1000) -> tuple[_Bracket, int]:
    """Against a log whose record times these are; → the bracket, and how often it asked."""
    bracket, asked = _Bracket(offset, NOW), 0
    while (at := bracket.probe(resolution_ms)) is not None:
        first = bisect_left(times, at)
        bracket.learn(at, (first, times[first]) if first < len(times) else None)
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
        ([NOW + 500], "the record is dated after this clock, or after younger records"),
        ([], "its records carry no time"),
    ],
)
def test_what_can_not_be_told_says_why(times, said):
    bracket, _ = halved(times, 0)
    assert bracket.row(("t", 0)).error == said
    assert bracket.row(("t", 0)).appended_ms is None
