"""Lag in time by polls: the vectors of other tools, with brackets that they don't give."""

from __future__ import annotations

import polars as pl
import pytest

from kit import analyze

PLACE = {"topic": "t", "partition": 0}


def lag_of(committed: int | None, end: int | None, start: int = 0) -> pl.DataFrame:
    lag = None if committed is None or end is None else max(0, end - committed)
    row = {"group_id": "g", "store": "kafka", **PLACE, "committed_offset": committed, "log_start_offset": start}
    row |= {"log_end_offset": end, "lag": lag, "error": None}
    numbers = dict.fromkeys(("committed_offset", "log_start_offset", "log_end_offset", "lag"), pl.Int64)
    return pl.DataFrame([row], schema_overrides={**numbers, "error": pl.String})


def polls(*points: tuple[int, int]) -> pl.DataFrame:
    """(end, second), each read in no time."""
    rows = [
        {**PLACE, "log_end_offset": end, "sampled_ms": 1000 * at, "sampled_until_ms": 1000 * at} for end, at in points
    ]
    return pl.DataFrame(rows)


STEADY = [(100, 0), (160, 30), (220, 60)]


@pytest.mark.parametrize(
    ("points", "committed", "seconds", "lower", "upper"),
    [
        (STEADY, 130, 45, 30, 60),
        (STEADY, 40, 90, 60, None),
        (STEADY, 220, 0, 0, 0),
        (STEADY, 160, 30, 0, 30),
        ([(100, 0), (100, 30), (100, 60), (160, 90)], 130, 15, 0, 30),
        ([(100, 0), (100, 30)], 90, None, 30, None),
        ([(100, 0), (160, 30), (160, 60), (160, 90)], 130, 75, 60, 90),
        ([(1000, 0), (1060, 30), (5, 60)], 2, None, 0, None),
        ([(1000, 0), (5, 30), (11, 60)], 8, 15, 0, 30),
        ([(100, 0)], 40, None, 0, None),
    ],
    ids=[
        "between polls", "older than all", "no lag", "at a poll", "flat, then rising", "flat", "idle", "made anew",
        "made anew and growing", "one poll",
    ],
)  # fmt: skip
def test_by_polls(points, committed, seconds, lower, upper):
    """The last point is the one of the lag itself."""
    (end, at) = points[-1]
    (row,) = analyze.time_lag_by_polls(lag_of(committed, end), polls(*points[:-1], (end, at)), 1000 * at).to_dicts()
    found = (row["time_lag_ms"], row["lower_ms"], row["upper_ms"])
    assert found == tuple(None if each is None else 1000 * each for each in (seconds, lower, upper))
    assert row["is_extrapolated"] == (upper is None)


def test_idle_is_told_where_it_is_known():
    idle = analyze.time_lag_by_polls(lag_of(130, 160), polls((100, 0), (160, 30)), 60_000)
    assert idle["is_idle"].to_list() == [True]
    growing = analyze.time_lag_by_polls(lag_of(130, 161), polls((100, 0), (160, 30)), 60_000)
    assert growing["is_idle"].to_list() == [False]
    alone = analyze.time_lag_by_polls(lag_of(130, 160), polls((100, 70)), 60_000)
    assert alone["is_idle"].to_list() == [None]


def test_a_poll_takes_time_and_the_bracket_knows():
    ends = polls((100, 0), (160, 30)).with_columns(sampled_until_ms=pl.col("sampled_ms") + 400)
    (row,) = analyze.time_lag_by_polls(lag_of(130, 200), ends, 60_000).to_dicts()
    assert (row["lower_ms"], row["upper_ms"]) == (29_600, 60_000)


def test_what_was_deleted_unread_is_told_of_the_oldest_left():
    (row,) = analyze.time_lag_by_polls(lag_of(10, 220, start=130), polls(*STEADY), 60_000).to_dicts()
    assert (row["time_lag_ms"], row["is_truncated"]) == (45_000, True)


def test_an_unknown_lag_is_unknown_in_time():
    (row,) = analyze.time_lag_by_polls(lag_of(None, 220), polls(*STEADY), 60_000).to_dicts()
    assert {name: row[name] for name in row if row[name] is not None}.keys() == {
        "group_id", "store", "topic", "partition", "method",
    }  # fmt: skip


def arrival(**values: object) -> pl.DataFrame:
    times = ("appended_ms", "from_ms", "until_ms")
    row = {**PLACE, "offset": 130, **dict.fromkeys(times), "error": None, **values}
    return pl.DataFrame([row], schema_overrides={**dict.fromkeys(times, pl.Int64), "error": pl.String})


def test_a_record_that_can_not_be_told_is_unknown_and_says_why():
    found = analyze.time_lag_by_records(lag_of(130, 220), arrival(error="no leader"), "record", 60_000)
    assert found.select("time_lag_ms", "upper_ms", "error").rows() == [(None, None, "time lag: no leader")]


def test_a_record_of_the_future_has_no_age():
    """By a clock that runs ahead; 0 would say that nothing waits."""
    later = arrival(appended_ms=60_001, from_ms=60_001, until_ms=61_000)
    found = analyze.time_lag_by_records(lag_of(130, 220), later, "record", 60_000)
    assert found.select("time_lag_ms", "lower_ms", "upper_ms", "error").rows() == [
        (None, None, None, "time lag: the record is dated after this clock")
    ]


def test_without_lag_nothing_has_to_be_asked():
    found = analyze.time_lag_by_records(lag_of(220, 220), arrival(), "record", 60_000)
    assert found.select("time_lag_ms", "lower_ms", "upper_ms", "error").rows() == [(0, 0, 0, None)]


def test_two_anchors_can_not_see_a_burst():
    anchors = pl.DataFrame(
        {**PLACE, "first_offset": [0], "first_ms": [0], "newest_offset": [200], "newest_ms": [40_000]}
    )
    anchors = anchors.with_columns(error=pl.lit(None, pl.String))
    (row,) = analyze.time_lag_by_anchors(lag_of(100, 201), anchors, 60_000).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (40_000, 20_000, 60_000)
    (row,) = analyze.time_lag_by_anchors(lag_of(200, 201), anchors, 60_000).to_dicts()
    assert row["time_lag_ms"] == 20_000
