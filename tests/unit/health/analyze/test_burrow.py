"""Burrow's rules: the cases of its own evaluator, those of our own, and how windows come about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
import pytest

from kit import analyze

PLACE = {"topic": "t", "partition": 0}
GROUP = {"group_id": "g", "store": "kafka", **PLACE}


@dataclass(frozen=True)
class Case:
    """One window as the evaluator gets it; times in seconds."""

    status: str
    offsets: Sequence[int]
    lags: Sequence[int | None]
    ends: Sequence[int]
    lag: int
    now: float
    at: Sequence[float] = ()
    allowed: int = 0

    def judged(self) -> dict[str, object]:
        n = len(self.offsets)
        at = self.at or [60 * turn for turn in range(n)]
        window = {
            **GROUP,
            "at_ms": round(self.now * 1000),
            "order": range(n),
            "committed_offset": self.offsets,
            "committed_ms": [round(each * 1000) for each in at],
            "lag": pl.Series(self.lags, dtype=pl.Int64),
        }
        ring = {**PLACE, "at_ms": [round(self.now * 1000)], "lowest_end": [min(self.ends)]}
        rings = pl.DataFrame({**ring, "newest_end": [self.offsets[-1] + self.lag]})
        (row,) = analyze.window_health(pl.DataFrame(window), rings, allowed_lag=self.allowed).to_dicts()
        return row


EVERY_100_S = [100, 200, 300, 400, 500]
THOUSANDS = [1000, 2000, 3000, 4000, 5000]
GROWING, BEHIND = [0, 50, 100, 150, 200], [50, 100, 150, 200, 250]
SAME, HIGH = [1000] * 5, [100, 150, 200, 250, 300]
BACK = [1000, 2000, 3000, 2000, 4000]
BACK_LAGS = [100, 150, 200, 1250, 300]
SECONDS = [
    1512224618.356, 1512224619.362, 1512224620.366, 1512224621.367, 1512224622.370, 1512224623.373, 1512224624.378,
    1512224625.379, 1512224626.383, 1512224627.383, 1512224628.383, 1512224629.388, 1512224630.391, 1512224631.394,
    1512224632.397,
]  # fmt: skip
STEADY = range(792748079, 792748094)

EVALUATOR = [
    Case("OK", THOUSANDS, GROWING, [5200], 200, 600, EVERY_100_S),
    Case("OK", THOUSANDS, GROWING, [5200], 200, 900, EVERY_100_S),
    Case("STOP", THOUSANDS, GROWING, [5200], 200, 1000, EVERY_100_S),
    Case("STOP", THOUSANDS, BEHIND, [5250], 250, 1000, EVERY_100_S),
    Case("OK", SAME, GROWING, [1200], 200, 600, EVERY_100_S),
    Case("STALL", SAME, HIGH, [1300], 300, 600, EVERY_100_S),
    Case("STALL", SAME, [100] * 5, [1100], 100, 600, EVERY_100_S),
    Case("OK", BACK, BACK_LAGS, [4300], 300, 600, EVERY_100_S),
    Case("OK", THOUSANDS, BEHIND, [5250], 0, 1000, EVERY_100_S),
    Case("STOP", STEADY, [0] * 15, [792749024, 792749000, 792748800, 792748600, 792748500], 931, 1512224650, SECONDS),
    Case("OK", STEADY, [0] * 15, [792748094, 792748093, 792748093, 792748093], 1, 1512224650, SECONDS),
    Case(
        "OK",
        range(1000, 6000, 500),
        [0, None, 50, None, 100, None, 150, None, 200, None],
        [5700],
        200,
        600,
        [100, 150, 200, 250, 300, 350, 400, 450, 500, 550],
    ),
    Case("OK", [1000, 2000, 2000], [2, 1, 1], [2001], 1, 550, [100, 200, 300], allowed=1),
    Case("STALL", SAME, HIGH, [1300], 300, 600, EVERY_100_S, allowed=99),
    Case("OK", BACK, BACK_LAGS, [4300], 300, 600, EVERY_100_S, allowed=99),
    Case("REWIND", [1000, 2000, 3000, 2000, 2500], BACK_LAGS, [4300], 300, 600, EVERY_100_S),
]
"""The 16 situations that Burrow's own evaluator (ced55ba) is tested with, and what it says of each."""

TENS = range(100, 200, 10)
OWN = {
    "catching up": Case("OK", TENS, range(50, 0, -5), [200, 210], 5, 600),
    "lag is growing": Case("WARN", TENS, range(20, 70, 5), [300], 110, 600),
    "one dip": Case("OK", TENS, [20, 25, 30, 35, 34, 45, 50, 55, 60, 65], [300], 110, 600),
    "the same offset": Case("STALL", [100] * 10, range(20, 70, 5), [165], 65, 600),
    "silent for longer than the window": Case("STOP", TENS, [20] * 10, [400], 210, 1081),
    "silent for exactly the window": Case("WARN", TENS, [20] * 10, [400], 210, 1080),
    "silent, but caught up a moment ago": Case("OK", TENS, [0] * 10, [190, 195, 260], 70, 1140),
    "stepped back": Case("REWIND", [100, 200, 50, 90], [5, 5, 200, 190], [300], 210, 200),
    "stepped back and made it good": Case("OK", [100, 200, 150, 210], [5, 5, 60, 30], [300], 90, 200),
    "one commit": Case("STOP", [100], [50], [150], 50, 1),
    "no lag once, then growing": Case("OK", [100, 110, 120], [0, 40, 80], [260], 140, 130),
    "the second step back is missed": Case("WARN", [100, 90, 120, 10], [5, 9, 9, 200], [300], 290, 190),
}


@pytest.mark.parametrize("case", EVALUATOR, ids=range(len(EVALUATOR)))
def test_it_reports_what_burrow_reports(case):
    assert case.judged()["status"] == case.status


@pytest.mark.parametrize("case", OWN.values(), ids=OWN)
def test_our_own_cases(case):
    assert case.judged()["status"] == case.status


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        (
            "silent for longer than the window",
            "no commit for 541 s, which is longer than the last 10 commits took (540 s); 210 records wait",
        ),
        ("stepped back", "the committed offset went back from 200 to 50 and has not reached the earlier offset again"),
        ("the same offset", "the group committed only the offset 100, 10 times"),
        ("lag is growing", "the lag never fell while the group committed 10 times; it is 110 records"),
        ("catching up", "the lag fell within the window; it is 5 records"),
        ("no lag once, then growing", "a commit of the window was 0 records behind, which is allowed (0)"),
    ],
)
def test_a_verdict_reports_why(name, evidence):
    assert OWN[name].judged()["evidence"] == evidence


def commits(*rows: tuple[int | None, int]) -> pl.DataFrame:
    """(offset, second) in the order of their arrival."""
    offsets, seconds = zip(*rows)
    ms = [each * 1000 for each in seconds]
    columns = {**GROUP, "committed_offset": pl.Series(offsets, dtype=pl.Int64), "committed_ms": ms}
    return pl.DataFrame({**columns, "order": range(len(rows))})


def ends(*rows: tuple[int | None, int]) -> pl.DataFrame:
    offsets, seconds = zip(*rows)
    end = pl.Series(offsets, dtype=pl.Int64)
    return pl.DataFrame({**PLACE, "log_end_offset": end, "sampled_ms": [each * 1000 for each in seconds]})


def at(*seconds: int) -> pl.DataFrame:
    return pl.DataFrame({"at_ms": [each * 1000 for each in seconds]})


def windows(*arguments, **wishes) -> dict[int, list[tuple[int, int | None]]]:
    """Second → (offset, lag at its arrival), oldest first."""
    rows = analyze.commit_windows(*arguments, **wishes).sort("at_ms", "order")
    looks = rows.group_by("at_ms", maintain_order=True).agg("committed_offset", "lag")
    return {row["at_ms"] // 1000: list(zip(row["committed_offset"], row["lag"])) for row in looks.to_dicts()}


def test_many_times_are_a_back_test():
    found = windows(commits((1, 10), (2, 20), (3, 30)), ends((9, 0), (12, 20)), at(9, 10, 25, 99), intervals=2)
    assert found == {10: [(1, 8)], 25: [(1, 8), (2, 10)], 99: [(2, 10), (3, 9)]}


def test_a_clock_that_goes_back_changes_no_window():
    found = windows(commits((1, 10), (2, 5), (3, 12)), ends((9, 0)), at(7, 11, 12), intervals=2)
    assert {second: [offset for offset, _ in each] for second, each in found.items()} == {11: [1, 2], 12: [2, 3]}


def test_a_deleted_offset_forgets_what_was_before():
    found = windows(commits((1, 10), (None, 20), (7, 30)), ends((9, 0)), at(15, 20, 30))
    assert found == {15: [(1, 8)], 30: [(7, 2)]}


def test_groups_of_one_topic_see_the_same_ends():
    one = commits((1, 10))
    other = one.with_columns(group_id=pl.lit("h"), committed_offset=pl.lit(4, pl.Int64))
    rows = analyze.commit_windows(pl.concat([one, other]), ends((9, 9), (20, 11)), at(30))
    assert dict(rows.select("group_id", "lag").iter_rows()) == {"g": 8, "h": 5}


def test_the_ring_of_ends_is_as_long_as_the_window():
    found = analyze.end_rings(ends((5, 0), (8, 10), (None, 15), (9, 20)), at(10, 20), intervals=2).sort("at_ms")
    assert found.select("lowest_end", "newest_end").rows() == [(5, 8), (8, 9)]


def test_without_an_end_the_status_is_unknown():
    other_topic = ends((9, 0)).with_columns(topic=pl.lit("u"))
    rows = analyze.partition_health(commits((1, 10)), other_topic, at(20))
    assert rows.select("status", "evidence", "lag").rows() == [(None, "the log end offset is unknown", None)]
    (group,) = analyze.group_health(rows).to_dicts()
    assert (group["status"], group["n_unknown"], group["lag"]) == (None, 1, None)


def test_a_window_that_is_too_short_to_judge_counts_as_ok():
    arguments = (commits((1, 10)), ends((9, 0)), at(100))
    assert analyze.partition_health(*arguments)["status"].to_list() == ["STOP"]
    (row,) = analyze.partition_health(*arguments, minimum_complete=0.5).to_dicts()
    assert (row["status"], row["evidence"]) == ("OK", "1 of 10 commits, too few to judge")


@pytest.mark.parametrize(
    ("statuses", "status"),
    [(["OK", "OK"], "OK"), (["OK", "WARN"], "WARN"), (["WARN", "STOP"], "ERR"), ([None, "OK"], "OK"), ([None], None)],
)
def test_a_group_is_as_its_worst_partition(statuses, status):
    rows = pl.DataFrame({**GROUP, "at_ms": 1, "status": pl.Series(statuses, dtype=pl.String), "lag": 1})
    assert analyze.group_health(rows)["status"].to_list() == [status]
