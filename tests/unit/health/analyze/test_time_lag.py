"""Lag in time by polls: the vectors of other tools, with brackets that they don't give."""

from __future__ import annotations

import polars as pl
import pytest

from kit import analyze
from kit.health.analyze.time_lag import NO_COMMIT
from kit.tables import schema as tables

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
        "between polls", "older than all", "no lag", "at a poll", "flat, then rising", "flat", "idle", "made again",
        "made again and growing", "one poll",
    ],
)  # fmt: skip
def test_by_polls(points, committed, seconds, lower, upper):
    """The last point is the one of the lag itself."""
    (end, at) = points[-1]
    (row,) = analyze.time_lag_by_polls(lag_of(committed, end), polls(*points[:-1], (end, at)), 1000 * at).to_dicts()
    found = (row["time_lag_ms"], row["lower_ms"], row["upper_ms"])
    assert found == tuple(None if each is None else 1000 * each for each in (seconds, lower, upper))
    assert row["is_extrapolated"] == (upper is None)


def test_idle_is_reported_where_it_is_known():
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


def test_records_deleted_unread_are_reported_of_the_oldest_left():
    (row,) = analyze.time_lag_by_polls(lag_of(10, 220, start=130), polls(*STEADY), 60_000).to_dicts()
    assert (row["time_lag_ms"], row["is_truncated"]) == (45_000, True)


def test_a_commit_beyond_the_end_has_no_age_and_reports_what_the_consumer_will_do():
    (row,) = analyze.time_lag_by_polls(lag_of(5000, 220), polls(*STEADY), 60_000).to_dicts()
    assert (row["lag"], row["beyond_end"], row["time_lag_ms"], row["lower_ms"]) == (0, 4780, None, None)
    assert row["error"].startswith("the commit is 4780 beyond the end of the log: ")
    assert "auto.offset.reset" in row["error"]


@pytest.mark.parametrize("method", ["polls", "records", "anchors"])
def test_on_a_log_that_retention_emptied_nothing_waits(method):
    lag = lag_of(10, 220, start=220)
    if method == "polls":
        rows = analyze.time_lag_by_polls(lag, polls(*STEADY), 60_000)
    elif method == "records":
        rows = analyze.time_lag_by_records(lag, arrival().clear(), "bisection", 60_000)
    else:
        rows = analyze.time_lag_by_anchors(lag, pl.DataFrame(tables.LOG_ANCHORS.from_rows([])), 60_000)
    (row,) = rows.to_dicts()
    assert (row["lag"], row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (210, 0, 0, 0)
    assert (row["is_truncated"], row["error"]) == (True, None)


def test_an_unknown_lag_is_unknown_in_time():
    (row,) = analyze.time_lag_by_polls(lag_of(None, 220), polls(*STEADY), 60_000).to_dicts()
    assert {name: row[name] for name in row if row[name] is not None}.keys() == {
        "group_id", "store", "topic", "partition", "method", "error",
    }  # fmt: skip
    assert row["error"] == NO_COMMIT


def arrival(**values: object) -> pl.DataFrame:
    times = ("appended_ms", "from_ms", "until_ms")
    row = {**PLACE, "offset": 130, **dict.fromkeys(times), "error": None, "is_quiet": None, **values}
    kinds = {**dict.fromkeys(times, pl.Int64), "error": pl.String, "is_quiet": pl.Boolean}
    return pl.DataFrame([row], schema_overrides=kinds)


def test_a_record_that_can_not_be_reported_is_unknown_and_reports_why():
    found = analyze.time_lag_by_records(lag_of(130, 220), arrival(error="no leader"), "record", 60_000)
    assert found.select("time_lag_ms", "upper_ms", "error").rows() == [(None, None, "time lag: no leader")]


def test_a_record_of_the_future_has_no_age():
    """By a clock that runs ahead; 0 would say that nothing waits."""
    later = arrival(appended_ms=60_001, from_ms=60_001, until_ms=61_000)
    found = analyze.time_lag_by_records(lag_of(130, 220), later, "record", 60_000)
    assert found.select("time_lag_ms", "lower_ms", "upper_ms", "error").rows() == [
        (None, None, None, "time lag: the record's timestamp is later than this machine's clock")
    ]


def test_without_lag_nothing_has_to_be_asked():
    found = analyze.time_lag_by_records(lag_of(220, 220), arrival(), "record", 60_000)
    assert found.select("time_lag_ms", "lower_ms", "upper_ms", "error").rows() == [(0, 0, 0, None)]


def test_a_group_with_nothing_to_read_but_markers_is_not_late():
    """The lag in records is 1 for ever where a transactional producer wrote last; nothing waits."""
    found = analyze.time_lag_by_records(lag_of(130, 131), arrival(is_quiet=True), "record", 60_000)
    row = found.select("lag", "time_lag_ms", "lower_ms", "upper_ms", "is_idle", "error").row(0)
    assert row == (1, 0, 0, 0, True, None)


@pytest.mark.parametrize("is_quiet", [True, False, None])
def test_a_log_that_got_nothing_recent_is_idle(is_quiet):
    read = arrival(appended_ms=9, from_ms=9, until_ms=9, is_quiet=is_quiet)
    found = analyze.time_lag_by_records(lag_of(130, 220), read, "bisection", 60_000)
    assert found.select("is_idle", "is_extrapolated").row(0) == (is_quiet, False)


def test_if_offsets_may_be_no_records_a_poll_is_no_lower_bound():
    """130 to 159 may be gone, by compaction: then the next record came after the second poll."""
    lag, ends = lag_of(130, 220), polls(*STEADY)
    named = pl.DataFrame({**PLACE})
    (row,) = analyze.time_lag_by_polls(lag, ends, 60_000, named).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (45_000, 0, 60_000)
    elsewhere = named.with_columns(partition=1)
    (row,) = analyze.time_lag_by_polls(lag, ends, 60_000, elsewhere).to_dicts()
    assert (row["lower_ms"], row["upper_ms"]) == (30_000, 60_000)


def anchors(**values: object) -> pl.DataFrame:
    row = {**PLACE, "first_offset": 0, "first_ms": 0, "newest_offset": 200, "newest_ms": 40_000, "error": None}
    return pl.DataFrame([row | values], schema_overrides={"error": pl.String})


@pytest.mark.parametrize(("at_ms", "is_idle"), [(100_000, False), (100_001, True)])
def test_by_anchors_a_log_is_idle_whose_newest_record_is_a_minute_old(at_ms, is_idle):
    (row,) = analyze.time_lag_by_anchors(lag_of(100, 201), anchors(), at_ms).to_dicts()
    assert row["is_idle"] is is_idle


def test_behind_the_newest_record_no_line_leads():
    """Timestamps went back there: the record is at most as young as the newest."""
    (row,) = analyze.time_lag_by_anchors(lag_of(205, 210), anchors(), 60_000).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (20_000, 20_000, 60_000)
    assert row["is_extrapolated"]
    (row,) = analyze.time_lag_by_anchors(lag_of(200, 210), anchors(), 60_000).to_dicts()
    assert not row["is_extrapolated"]


def test_up_to_the_first_record_of_a_compacted_log_the_first_is_next():
    compacted = anchors(first_offset=120, first_ms=10_000)
    (row,) = analyze.time_lag_by_anchors(lag_of(100, 201), compacted, 60_000).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (50_000, 50_000, 50_000)
    assert not row["is_extrapolated"]


def test_two_anchors_can_not_see_a_burst():
    (row,) = analyze.time_lag_by_anchors(lag_of(100, 201), anchors(), 60_000).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"]) == (40_000, 20_000, 60_000)
    (row,) = analyze.time_lag_by_anchors(lag_of(200, 201), anchors(), 60_000).to_dicts()
    assert row["time_lag_ms"] == 20_000


def test_a_group_that_continues_under_a_new_id_is_reported_by_the_same_polls():
    """Polls are of logs: nothing has to be learnt again."""
    old, new = lag_of(130, 220), lag_of(130, 220).with_columns(group_id=pl.lit("new"))
    rows = analyze.time_lag_by_polls(pl.concat([old, new]), polls(*STEADY), 60_000).sort("group_id")
    assert rows.drop("group_id").row(0) == rows.drop("group_id").row(1)


def test_retention_that_was_shortened_among_the_polls_reports_of_the_oldest_left():
    """The start was 0, is 190 now: the polls that saw the deleted records still bound those that are left."""
    (row,) = analyze.time_lag_by_polls(lag_of(10, 220, start=190), polls(*STEADY), 60_000).to_dicts()
    assert (row["time_lag_ms"], row["lower_ms"], row["upper_ms"], row["is_truncated"]) == (15_000, 0, 30_000, True)


@pytest.mark.parametrize(("committed", "seconds_ago"), [(130, 105), (190, 75), (250, 45), (300, 20)])
def test_a_clock_that_was_set_back_among_the_polls_widens_the_bracket(committed, seconds_ago):
    """Sixty records each thirty seconds; before the fourth poll the clock went back by fifty. Now it is 70, really 120.

    By this clock the true age is what the records' own times would give, which are by the clock as it was.
    """
    ends = polls((100, 0), (160, 30), (220, 60), (280, 40))
    (row,) = analyze.time_lag_by_polls(lag_of(committed, 340), ends, 70_000).to_dicts()
    assert row["lower_ms"] <= 1000 * seconds_ago
    assert row["upper_ms"] is None or 1000 * (seconds_ago - 50) <= row["upper_ms"]
