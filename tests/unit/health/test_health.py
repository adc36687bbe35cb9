"""A history, or the coordinators' topic, as the analyses of health take them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from kit import analyze
from kit.errors import PartialRead
from kit.health import sources as health

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = 1_767_225_600_000
KEY = {"group_id": "g", "store": "zookeeper", "topic": "t", "partition": 0}


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


def committed(*rows: tuple[int | None, float, float | None, str | None]) -> pl.DataFrame:
    """(offset, observed, written, error), times in minutes."""
    schema = {"committed_offset": pl.Int64, "committed_at": pl.Datetime("us", "UTC"), "error": pl.String}
    made = [
        {
            **KEY,
            "committed_offset": offset,
            "observed_at": minute(seen),
            "committed_at": None if written is None else minute(written),
            "error": error,
        }
        for offset, seen, written, error in rows
    ]
    return pl.DataFrame(made, schema_overrides=schema)


def seen(rows: pl.DataFrame) -> list[tuple[int | None, float]]:
    found = health.commits_of_history(rows).sort("order").select("committed_offset", "committed_ms").rows()
    return [(offset, (ms - START_MS) / 60_000) for offset, ms in found]


def test_an_offset_that_does_not_move_is_one_commit():
    assert seen(committed((5, 0, None, None), (5, 1, None, None), (8, 2, None, None))) == [(5, 0), (8, 2)]


def test_a_store_that_reports_the_time_shows_each_commit():
    rows = committed((5, 0, -0.5, None), (5, 1, -0.5, None), (5, 2, 1.5, None))
    assert seen(rows) == [(5, -0.5), (5, 1.5)]


def test_an_offset_that_could_not_be_read_is_no_commit_and_a_deleted_one_forgets():
    rows = committed((5, 0, None, None), (None, 1, None, "no leader"), (5, 2, None, None), (None, 3, None, None))
    assert seen(rows) == [(5, 0), (None, 3)]


def test_ends_are_read_between_two_times():
    logs = pl.DataFrame(
        {"snapshot_id": "s", "observed_at": minute(1), "topic": "t", "partition": 0, "log_end_offset": [9]}
    )
    steps = {"snapshot_id": "s", "step": ["metadata", "log offsets"], "started_at": [minute(0), minute(0.5)]}
    (row,) = health.ends_of_history(logs, pl.DataFrame(steps)).to_dicts()
    assert (row["sampled_ms"] - START_MS, row["sampled_until_ms"] - START_MS) == (30_000, 60_000)


def test_from_a_history_to_a_verdict():
    """The group stops after a minute, while records come."""
    rows = committed(*((min(10 + at, 12), at, None, None) for at in range(8)))
    sampled = range(START_MS, START_MS + 480_000, 60_000)
    logs = {"topic": "t", "partition": [0] * 8, "log_end_offset": range(20, 28), "sampled_ms": sampled}
    ends = pl.DataFrame(logs)
    times = pl.DataFrame({"at_ms": [START_MS + 60_000 * at for at in (2, 4, 5)]})
    found = analyze.partition_health(health.commits_of_history(rows), ends, times).sort("at_ms")
    assert found["status"].to_list() == ["WARN", "WARN", "STOP"]


def test_an_age_in_a_topic_with_holes_has_no_lower_bound():
    """Offset 90 of the ledger is a transaction's marker: the next record came at minute 9, nobody was a minute late."""
    times = {"snapshot_id": [f"s{at}" for at in range(11)], "observed_at": [minute(at) for at in range(11)]}
    logs = pl.concat(
        [
            pl.DataFrame({**times, "topic": topic, "partition": 0, "log_end_offset": [91] * 10 + [92]})
            for topic in ("ledger", "plain")
        ]
    )
    commits = logs.select("snapshot_id", "observed_at", "topic", "partition", committed_offset=pl.lit(90, pl.Int64))
    commits = commits.with_columns(group_id="topic", store=pl.lit("kafka"))
    bounds = ["time_lag_lower_ms", "time_lag_upper_ms"]

    def last(*holes: str) -> dict[str, tuple[int, int | None]]:
        rows = health.ages_of_history(commits, logs, holes).filter(pl.col("at_ms") == START_MS + 600_000)
        return {group: (lower, upper) for group, lower, upper in rows.select("group_id", *bounds).iter_rows()}

    assert last() == {"ledger": (600_000, None), "plain": (600_000, None)}
    assert last("ledger", "gone") == {"ledger": (0, None), "plain": (600_000, None)}


def test_a_lag_that_is_unknown_in_time_is_an_error_with_names():
    rows = pl.DataFrame({**KEY, "lag": [0, 7], "time_lag_ms": [0, None], "error": [None, "time lag: no leader"]})
    rows = rows.with_columns(beyond_end=0)
    assert "1 partition, all known" in health.verify_time_lag(rows.head(1))
    with pytest.raises(PartialRead, match="is unknown, not zero:\ng/t-0: time lag: no leader"):
        health.verify_time_lag(rows)


def test_partitions_that_have_no_age_are_not_called_known():
    rows = pl.DataFrame({**KEY, "lag": [7, 0, None], "time_lag_ms": [9, None, None], "beyond_end": [0, 5, None]})
    rows = rows.with_columns(error=pl.lit("a reason"))
    told = "1 partition, all known. Not counted: 1 partition without a lag, 1 commit beyond the end of the log."
    assert health.verify_time_lag(rows) == f"Lag in time: {told}"
    assert health.verify_outlook(rows.tail(2)).startswith("Outlook: 0 partitions, all known. Not counted: 1 partition ")


def test_observations_from_before_the_clock_was_set_back_do_not_count():
    """The last observation is the one that was taken last, though its time is not the latest."""
    looks = pl.DataFrame({"at_ms": [1000, 1000, 61_000, 61_000, 31_000, 31_000, 41_000, 41_000], "n": range(8)})
    assert health._by_one_clock(looks)["n"].to_list() == [4, 5, 6, 7]
    assert health._by_one_clock(looks.head(4)).equals(looks.head(4))
    assert health._by_one_clock(looks.clear()).is_empty()
