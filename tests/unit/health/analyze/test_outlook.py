"""The outlook of lag: worked cases, and a small broker that deletes segments as Kafka does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random
from typing import Any

import polars as pl
import pytest

from kit import analyze
from kit.tables import schema as tables
from kit.tables.groups import LogRetention, RecordTime

PLACE = {"topic": "t", "partition": 0}
KEY = {"group_id": "g", "store": "kafka", **PLACE}
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def look(
    at_ms: int, committed: int | None, end: int | None, start: int = 0, error: str | None = None
) -> dict[str, Any]:
    lag = None if committed is None or end is None else max(0, end - committed)
    offsets = {"committed_offset": committed, "log_start_offset": start, "log_end_offset": end}
    return {**KEY, **offsets, "lag": lag, "error": error, "at_ms": at_ms}


def looks(*rows: dict[str, Any]) -> pl.DataFrame:
    numbers = dict.fromkeys(("committed_offset", "log_start_offset", "log_end_offset", "lag", "at_ms"), pl.Int64)
    return pl.DataFrame(list(rows), schema_overrides={**numbers, "error": pl.String})


def retention(**settings: Any) -> pl.DataFrame:
    """A week, segments of a day, by time alone, unless it is said otherwise."""
    row = LogRetention("t", 0, "delete", 7 * DAY_MS, -1, DAY_MS, 1 << 30, False, 300_000, 1_000_000)
    known = {name: getattr(row, name) for name in row.__slots__}
    return pl.DataFrame(tables.LOG_RETENTION.from_rows([LogRetention(**{**known, **settings})]))


def arrivals(*rows: tuple[int, int | None]) -> pl.DataFrame:
    """(offset, when it was appended)."""
    made = [RecordTime("t", 0, offset, at, at, at, None if at is not None else "no leader") for offset, at in rows]
    return pl.DataFrame(tables.RECORD_TIMES.from_rows(made))


def outlook(frame: pl.DataFrame, kept: pl.DataFrame, found: pl.DataFrame) -> dict[str, Any]:
    last = frame.filter(pl.col("at_ms") == pl.col("at_ms").max())
    (row,) = analyze.lag_outlook(last, frame, kept, found, last["at_ms"][0]).to_dicts()
    return row


CLOSING = looks(look(0, 0, 1000), look(10_000, 150, 1050), look(20_000, 400, 1100))
GROWING = looks(look(0, 0, 1000), look(10_000, 50, 1100), look(20_000, 100, 1200))


def test_a_lag_that_falls_is_closed_between_its_slowest_and_its_quickest_step():
    row = outlook(CLOSING, retention(), arrivals((400, 0)))
    assert (row["trend"], row["lag"]) == ("closing", 700)
    assert (row["lag_per_s"], row["lag_per_s_lower"], row["lag_per_s_upper"]) == (-15, -20, -10)
    assert (row["close_lower_ms"], row["close_ms"], row["close_upper_ms"]) == (35_000, 46_667, 70_000)
    assert row["is_never_closed"] is False


def test_a_lag_that_grows_is_never_closed_and_deletion_overtakes_the_reader():
    """Ten come, five are read. In a week the front of deletion is at today's end, 6 days of reading ahead."""
    row = outlook(GROWING, retention(), arrivals((100, -90_000)))
    assert (row["trend"], row["is_never_closed"], row["close_lower_ms"]) == ("growing", True, None)
    seconds = (7 * 86_400 * 10 - 1100) / 5
    assert row["deletion_lower_ms"] == round(seconds * 1000)
    assert row["deletion_upper_ms"] > row["deletion_ms"] > row["deletion_lower_ms"]
    assert (row["deletion_by"], row["is_never_deleted"]) == ("time", False)
    assert row["pause_ms"] == 7 * DAY_MS - 110_000


def test_a_stalled_group_loses_its_next_record_when_its_segment_goes():
    stopped = looks(look(0, 100, 1000), look(DAY_MS, 100, 1200))
    row = outlook(stopped, retention(), arrivals((100, 0)))
    assert (row["trend"], row["is_never_closed"]) == ("standing", True)
    assert row["deletion_lower_ms"] == row["pause_ms"] == 6 * DAY_MS
    assert row["deletion_upper_ms"] == 7 * DAY_MS + 300_000


def test_a_segment_that_is_known_to_have_ended_narrows_the_bracket():
    """A tenth of the log is a segment, and the record so far on came an hour later."""
    stopped = looks(look(0, 100, 1000), look(DAY_MS, 100, 1000))
    kept = retention(segment_bytes=100_000)
    assert sorted(analyze.outlook_positions(stopped.tail(1), kept).rows()) == [("t", 0, 100), ("t", 0, 200)]
    row = outlook(stopped, kept, arrivals((100, 0), (200, HOUR_MS)))
    assert (row["deletion_lower_ms"], row["deletion_upper_ms"]) == (6 * DAY_MS, 6 * DAY_MS + HOUR_MS + 300_000)


def test_by_size_what_lies_behind_the_reader_is_as_long_as_the_limit():
    """1,000 octets a record; 2,000 records and at most a segment of 500 more; ten come each second."""
    kept = retention(retention_ms=-1, retention_bytes=2_000_000, segment_bytes=500_000, size_bytes=1_200_000)
    row = outlook(looks(look(0, 100, 1000), look(20_000, 100, 1200)), kept, arrivals((100, 0), (600, 0)))
    assert (row["deletion_lower_ms"], row["deletion_ms"]) == (90_000, 115_000)
    assert row["deletion_upper_ms"] == 140_000 + 300_000
    assert (row["deletion_by"], row["pause_ms"]) == ("size", 90_000)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"retention_ms": -1}, "no limit"),
        ({"cleanup_policy": "compact"}, "compaction is no retention"),
        ({"cleanup_policy": "compact", "retention_bytes": 1}, "nor is the size one then"),
    ],
)
def test_without_a_limit_nothing_is_deleted(settings, why):
    row = outlook(GROWING, retention(**settings), arrivals((100, 0)))
    assert row["is_never_deleted"] is True, why
    assert (row["deletion_ms"], row["deletion_lower_ms"], row["pause_ms"], row["deletion_by"]) == (None,) * 4
    assert row["error"] is None


def test_a_reader_that_keeps_up_is_never_overtaken_but_may_not_pause_for_ever():
    row = outlook(CLOSING, retention(), arrivals((400, 0)))
    assert row["is_never_deleted"] is True
    assert row["pause_ms"] == 7 * DAY_MS - 20_000


def test_a_steady_lag_may_be_closed_or_not():
    row = outlook(looks(look(0, 0, 100), look(1000, 20, 110), look(2000, 20, 120)), retention(), arrivals((20, 0)))
    assert row["trend"] == "steady"
    assert (row["close_lower_ms"], row["close_ms"], row["close_upper_ms"]) == (10_000, None, None)
    assert row["is_never_closed"] is False


def test_no_lag_is_closed_now():
    row = outlook(looks(look(0, 100, 100), look(1000, 120, 120)), retention(), arrivals())
    assert (row["trend"], row["close_ms"], row["close_upper_ms"], row["is_never_closed"]) == ("caught up", 0, 0, False)
    assert row["is_never_deleted"] is True
    assert row["pause_ms"] == 7 * DAY_MS


def test_records_that_went_unread_are_counted_and_the_rest_is_what_lags():
    row = outlook(looks(look(0, 10, 100, 5), look(10_000, 10, 120, 40)), retention(), arrivals((40, 0)))
    assert (row["expired_unread"], row["lag"], row["lag_retained"]) == (30, 110, 80)


BAD = {
    "made again": ((look(0, 900, 1000), look(10_000, 0, 50), look(20_000, 40, 100)), (4.0, 5.0, 2, True)),
    "made again just now": ((look(0, 900, 1000), look(10_000, 0, 50)), (None, None, None, None)),
    "rewound": ((look(0, 500, 900), look(10_000, 100, 950), look(20_000, 200, 1000)), (10.0, 5.0, 2, True)),
    "no commit in one": ((look(0, 0, 100), look(5_000, None, 9), look(10_000, 50, 200)), (5.0, 10.0, 2, False)),
    "an end that is not known": ((look(0, 0, 100), look(5_000, 2, None), look(10_000, 50, 200)), (5.0, 10.0, 2, False)),
    "one observation": ((look(0, 0, 100),), (None, None, None, None)),
    "two of the same moment": ((look(0, 0, 100), look(0, 5, 110), look(10_000, 55, 210)), (5.0, 10.0, 2, False)),
    "a clock that was set back": ((look(20_000, 0, 100), look(5_000, 50, 200)), (None, None, None, None)),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "found"), BAD.values(), ids=BAD)
def test_bad_input_gives_no_wrong_rate(rows, found):
    row = outlook(looks(*rows), retention(), arrivals())
    assert (row["consumed_per_s"], row["produced_per_s"], row["n_looks"], row["is_restarted"]) == found
    if found[0] is None:
        assert row["trend"] in ("unknown", "caught up")
        assert row["error"] == "there is only one usable observation, so no rate is known"
        assert row["is_never_closed"] is None
        assert row["close_ms"] is None


def test_a_partition_that_was_added_among_the_observations_has_a_rate_of_its_own():
    added = {"partition": 1}
    frame = looks(look(0, 0, 100), look(10_000, 50, 200), look(10_000, 0, 3) | added, look(20_000, 99, 200),
                  look(20_000, 10, 23) | added)  # fmt: skip
    rates = analyze.lag_velocity(frame).sort("partition")
    assert rates.select("partition", "n_looks", "consumed_per_s").rows() == [(0, 3, 4.95), (1, 2, 1.0)]


def test_an_unknown_value_is_null_with_the_reason():
    unknown = retention(
        cleanup_policy=None, retention_ms=None, retention_bytes=None, error="the settings of the topic can't be read"
    )
    row = outlook(GROWING, unknown, arrivals((100, 0)))
    assert (row["deletion_ms"], row["deletion_lower_ms"], row["is_never_deleted"], row["pause_ms"]) == (None,) * 4
    assert row["error"] == "retention: the settings of the topic can't be read"
    row = outlook(GROWING, retention(), arrivals((100, None)))
    assert row["pause_ms"] is None
    assert row["error"] == "record times: no leader"


def test_a_size_that_is_not_known_leaves_the_limit_of_time_as_the_latest():
    """It could go sooner by size, so there is no lower bound; it goes no later than by time."""
    for unknown in ({"size_bytes": None}, {"is_tiered": True}):
        stopped = looks(look(0, 100, 1000), look(DAY_MS, 100, 1200))
        row = outlook(stopped, retention(retention_bytes=1, **unknown), arrivals((100, 0)))
        assert (row["deletion_lower_ms"], row["is_never_deleted"], row["pause_ms"]) == (None, None, None)
        assert row["deletion_upper_ms"] == 7 * DAY_MS + 300_000


def test_an_unreadable_size_is_no_error_where_time_alone_is_the_limit():
    kept = retention(size_bytes=None, error="broker 1 did not report the sizes of its logs")
    row = outlook(GROWING, kept, arrivals((100, 0)))
    assert row["error"] is None
    assert row["deletion_upper_ms"] is not None


def test_retention_that_was_shortened_deletes_at_once():
    row = outlook(GROWING, retention(retention_ms=1000), arrivals((100, -90_000)))
    assert (row["deletion_lower_ms"], row["pause_ms"]) == (0, 0)


def test_retention_that_is_shortened_among_the_observations_is_no_progress_of_the_reader():
    """The start passes the reader: what lags is less, and it has read nothing. 300 are lost."""
    row = outlook(looks(look(0, 100, 1000), look(10_000, 100, 1100, 400)), retention(), arrivals((400, 0)))
    assert (row["lag_retained"], row["expired_unread"], row["trend"]) == (700, 300, "standing")
    assert (row["consumed_per_s"], row["lag_per_s"], row["is_restarted"]) == (0, 10, False)
    assert (row["close_ms"], row["is_never_closed"]) == (None, True)


def test_retention_that_is_lengthened_among_the_observations_counts_as_it_is_now():
    row = outlook(GROWING, retention(retention_ms=14 * DAY_MS), arrivals((100, -90_000)))
    assert row["pause_ms"] == 14 * DAY_MS - 110_000


def test_a_group_that_continues_under_a_new_id_has_no_rate_yet_and_the_old_one_is_gone():
    renamed = look(20_000, 100, 1200) | {"group_id": "new"}
    row = outlook(looks(look(0, 0, 1000), look(10_000, 50, 1100), renamed), retention(), arrivals((100, 0)))
    assert (row["group_id"], row["lag"], row["trend"], row["n_looks"]) == ("new", 1100, "unknown", None)
    assert (row["close_ms"], row["is_never_closed"], row["error"]) == (
        None,
        None,
        "there is only one usable observation, so no rate is known",
    )
    assert row["pause_ms"] == 7 * DAY_MS - 20_000


def test_if_only_markers_wait_the_group_has_caught_up_and_no_record_is_deleted():
    at = PLACE | {
        "offset": 100,
        "appended_ms": None,
        "from_ms": None,
        "until_ms": None,
        "error": None,
        "is_quiet": True,
    }
    found = pl.DataFrame([at], schema_overrides=dict(arrivals().schema))
    row = outlook(looks(look(0, 100, 101), look(10_000, 100, 101)), retention(), found)
    assert (row["lag"], row["lag_retained"], row["trend"], row["error"]) == (1, 1, "caught up", None)
    assert (row["is_never_deleted"], row["deletion_lower_ms"]) == (True, None)


# -- against a broker ------------------------------------------------------------------------------------------------


@dataclass
class LogBroker:
    """One log of records that come evenly; it deletes as Kafka does, ``check_ms`` apart."""

    gap_ms: float
    length: int
    segment_bytes: int
    segment_ms: int
    retention_ms: int
    retention_bytes: int
    bases: list[int] = field(default_factory=lambda: [0])

    def time(self, offset: int) -> float:
        return offset * self.gap_ms

    def end(self, now: float) -> int:
        return int(now // self.gap_ms) + 1

    def grow(self, now: float) -> None:
        per_segment = max(1, min(self.segment_bytes // self.length, int(self.segment_ms // self.gap_ms) + 1))
        while self.bases[-1] + per_segment < self.end(now):
            self.bases.append(self.bases[-1] + per_segment)

    def delete(self, now: float) -> None:
        self.grow(now)
        while len(self.bases) > 1 and self.is_over(now):
            self.bases.pop(0)

    def is_over(self, now: float) -> bool:
        rest = (self.end(now) - self.bases[1]) * self.length
        by_time = self.retention_ms >= 0 and now - self.time(self.bases[1] - 1) > self.retention_ms
        return by_time or (0 <= self.retention_bytes <= rest)


@dataclass
class LogReader:
    """A reader of one log at ``now``, in ms."""

    number: int
    broker: LogBroker
    now: int
    check_ms: int
    behind: float
    pace: float

    def __post_init__(self) -> None:
        for at in range(0, self.now + 1, self.check_ms):
            self.broker.delete(at)
        self.broker.grow(self.now)
        start, end = self.broker.bases[0], self.broker.end(self.now)
        self.position = start + int((end - start - 1) * (1 - self.behind))
        self.read = min(self.position, round(BACK_MS * self.pace / self.broker.gap_ms))
        before = look(self.now - BACK_MS, self.position - self.read, self.broker.end(self.now - BACK_MS))
        place = {"partition": self.number}
        self.looks = [before | place, look(self.now, self.position, end, start) | place]
        self.retention = LogRetention(
            *("t", self.number, "delete", self.broker.retention_ms, self.broker.retention_bytes),
            *(self.broker.segment_ms, self.broker.segment_bytes, False, self.check_ms, (end - start) * 100),
        )

    def overtaken(self) -> tuple[float, float]:
        """Return when the log's start passes the reader, or one that is two records behind or ahead of it, in ms from
        now.

        An observation shows whole offsets: at rates that are nearly alike two records are minutes.
        """
        behind, at = math.inf, self.now - self.now % self.check_ms + self.check_ms
        while at < self.now + HORIZON_MS:
            self.broker.delete(at)
            reader = min(self.broker.end(at), self.position + self.read / BACK_MS * (at - self.now))
            if self.broker.bases[0] > reader - 2:
                behind = min(behind, at - self.now)
            if self.broker.bases[0] > reader + 2:
                return behind, at - self.now
            at += self.check_ms
        return behind, math.inf


BACK_MS, HORIZON_MS = 10_000, 400_000


def scenes(count: int, chance: Random) -> list[LogReader]:
    made = []
    for number in range(count):
        gap, check = chance.choice([50, 100, 400]), chance.choice([500, 5000])
        kept_ms, kept_records = chance.choice([-1000, 20_000, 60_000, 200_000]), chance.choice([-1, 100, 500, 2000])
        segment_bytes, segment_ms = 100 * chance.randint(2, 60), 1000 * chance.randint(2, 60)
        broker = LogBroker(gap, 100, segment_bytes, segment_ms, kept_ms, 100 * kept_records)
        pace = chance.choice([0, 0.3, 0.8, 0.95, 1, 1.5])
        made.append(LogReader(number, broker, 1000 * chance.randint(30, 300), check, chance.random(), pace))
    return made


def test_the_bracket_holds_what_a_broker_does():
    made = scenes(300, Random(20))
    frame = looks(*(row for scene in made for row in scene.looks))
    last = pl.concat([looks(scene.looks[1]) for scene in made])
    kept = pl.DataFrame(tables.LOG_RETENTION.from_rows([scene.retention for scene in made]))
    asked = analyze.outlook_positions(last, kept).rows()
    # Each observation is at a time of its own: all are moved to one.
    shift = {scene.number: HORIZON_MS - scene.now for scene in made}
    moved = frame.with_columns(pl.col("at_ms") + pl.col("partition").replace_strict(shift))
    times = [(number, offset, int(made[number].broker.time(offset)) + shift[number]) for _, number, offset in asked]
    found = [RecordTime("t", number, offset, at, at, at) for number, offset, at in times]
    rows = analyze.lag_outlook(last, moved, kept, pl.DataFrame(tables.RECORD_TIMES.from_rows(found)), HORIZON_MS)
    n_overtaken = n_bounded = 0
    for row in rows.to_dicts():
        scene = made[row["partition"]]
        soonest, latest = scene.overtaken()
        assert row["error"] is None
        lower = math.inf if row["is_never_deleted"] else row["deletion_lower_ms"]
        assert lower <= latest + 1, (scene, row, latest)
        n_overtaken += latest < math.inf
        upper = row["deletion_upper_ms"]
        if upper is not None and upper < HORIZON_MS - scene.check_ms:
            assert soonest <= upper + 1, (scene, row, soonest)
            n_bounded += 1
    assert n_overtaken > 50
    assert n_bounded > 50


def test_a_commit_beyond_the_end_has_no_outlook():
    row = outlook(looks(look(0, 5000, 100), look(10_000, 5000, 120)), retention(), arrivals())
    assert (row["trend"], row["lag"], row["beyond_end"]) == ("beyond the end", 0, 4880)
    unknown = ("close_ms", "is_never_closed", "deletion_lower_ms", "is_never_deleted", "pause_ms")
    assert [row[name] for name in unknown] == [None] * len(unknown)
    assert "auto.offset.reset" in row["error"]
