"""One observation that is exported: how long the whole of it takes, and which lags in time are missing."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import polars as pl
import pytest

from kit.errors import ConnectError
from kit.groups.snapshot import Snapshot
from kit.health.export.missing_times import unknown_times
from kit.health.export.readings import Reading, Readings, Times
from kit.health.live import Poll
from kit.tables import schema as tables
from tests.unit.health.export.readings import row

AT = datetime(2026, 11, 21, tzinfo=UTC)


def look() -> Poll:
    known = {"log_start_offset": 0, "member_id": "m", "lag_retained": 5, "expired_unread": 0, "has_no_commit": False}
    known |= {"beyond_end": 0, "is_upper_bound": False}
    rows = [{**row(partition=at), **known, "is_stale": False, "error": None, "at_ms": 0} for at in (0, 1)]
    partitions = pl.DataFrame(rows, schema_overrides={"error": pl.String, "partition": pl.Int32}).drop(
        "status", "time_lag_ms", "close_ms", "is_never_closed", "deletion_lower_ms", "is_never_deleted"
    )
    frames = {table.name: pl.DataFrame(table.stamped_schema.empty_table()) for table in tables.ALL}
    return Poll(1, AT, Snapshot("", **frames), partitions, 0.04, 3, 0)


def taken(times: Times) -> Reading:
    """A reading whose lags in time take 30 s."""
    clock, seen = iter([100.0, 130.8]), look()
    reader = Readings(SimpleNamespace(broker_client=SimpleNamespace(n_sent=0)), times=times, clock=lambda: next(clock))
    reader._looks = SimpleNamespace(take=lambda: seen, partitions=[seen.partitions])
    return reader.take()


def late(*ages: int | None) -> pl.DataFrame:
    rows = [
        {"group_id": "g", "store": "kafka", "topic": "t", "partition": at, "lag": 5, "beyond_end": 0}
        for at in range(len(ages))
    ]
    return pl.DataFrame(rows, schema_overrides={"partition": pl.Int32}).with_columns(
        time_lag_ms=pl.Series(ages, dtype=pl.Int64), error=pl.lit("not read", pl.String)
    )


def outlook(rows: pl.DataFrame, n_looks: int | None, is_never_deleted: bool | None) -> pl.DataFrame:
    times = dict.fromkeys(("close_ms", "deletion_lower_ms"), pl.lit(None, pl.Int64))
    flags = {"is_never_closed": pl.lit(True), "is_never_deleted": pl.lit(is_never_deleted, pl.Boolean)}
    return rows.with_columns(n_looks=pl.lit(n_looks, pl.Int64), **times, **flags)


def test_a_reading_takes_as_long_as_its_lags_in_time_and_keeps_what_they_lack():
    reading = taken(lambda *_: (late(1, None), outlook(late(1, None), 2, True)))
    assert reading.took_s == pytest.approx(30.8)
    assert reading.unknown_times.rows() == [("g", "kafka", "t", 1, "not read")]
    assert reading.partitions["time_lag_ms"].to_list() == [1, None]


def test_if_no_lag_in_time_can_be_read_all_are_missing():
    def fail(*_):
        raise ConnectError("no broker answers")

    reading = taken(fail)
    assert (len(reading.unknown_times), reading.error) == (2, "no broker answers")


@pytest.mark.parametrize(("n_looks", "is_never", "n_missing"), [(None, None, 0), (2, None, 1), (2, False, 0)])
def test_an_outlook_is_missing_if_retention_is_unknown_but_not_if_it_lacks_an_observation(n_looks, is_never, n_missing):
    assert len(unknown_times(late(1), outlook(late(1), n_looks, is_never))) == n_missing
