"""The analyses of health give the same rows on Spark and on polars, on random histories of many groups."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit import analyze
from kit.tables.spark import in_spark

Frames = dict[str, Any]
AT_MS = 40_000
LOGS = [(f"t{topic}", partition) for topic in range(3) for partition in range(2)]


def history(seed: int = 7) -> Frames:
    """Commits that rise, rest, fall and are deleted; ends that rise, rest, fall and are missing."""
    chance = Random(seed)
    commits, ends, lags, found = [], [], [], []
    for topic, partition in LOGS:
        end = chance.randrange(50)
        for at in range(0, AT_MS, chance.choice([3000, 7000])):
            end = max(0, end + chance.choice([0, 0, 3, 9, 20, -15]))
            known = None if chance.random() < 0.1 else end
            ends.append((topic, partition, known, at, at + chance.randrange(200)))
    last_end = {log: chance.choice([None, 10, 60, 200]) for log in LOGS}
    for number in range(40):
        key = (f"g{number}", chance.choice(["kafka", "zookeeper"]), *chance.choice(LOGS[:-1]))
        offset, at = chance.randrange(40), 0
        for order in range(chance.randrange(1, 9)):
            offset = max(0, offset + chance.choice([0, 0, 4, 8, -6]))
            at += chance.choice([500, 4000, 9000, -2000])
            commits.append((*key, None if chance.random() < 0.05 else offset, max(0, at), order))
        committed, end = chance.choice([None, offset]), last_end[key[2:]]
        lag = None if committed is None or end is None else max(0, end - committed)
        lags.append((*key, committed, chance.choice([None, 0, 25]), end, lag, chance.choice([None, None, "no leader"])))
    for topic, partition in LOGS:
        for offset in range(0, 60, 2):
            time = chance.choice([None, chance.randrange(AT_MS)])
            error = "no leader" if time is None else None
            found.append((topic, partition, offset, time, time, time and time + 500, error))
    numbers = pl.Int64
    log = {"topic": pl.String, "partition": pl.Int32}
    key_types = {"group_id": pl.String, "store": pl.String, **log}
    schemas = {
        "commits": {**key_types, "committed_offset": numbers, "committed_ms": numbers, "order": numbers},
        "ends": {**log, "log_end_offset": numbers, "sampled_ms": numbers, "sampled_until_ms": numbers},
        "lag": {
            **key_types,
            **dict.fromkeys(("committed_offset", "log_start_offset", "log_end_offset", "lag"), numbers),
        }
        | {"error": pl.String},
        "arrivals": {**log, **dict.fromkeys(("offset", "appended_ms", "from_ms", "until_ms"), numbers)}
        | {"error": pl.String},
    }
    rows = {"commits": commits, "ends": ends, "lag": lags, "arrivals": found}
    frames = {name: pl.DataFrame(rows[name], schema=schemas[name], orient="row") for name in rows}
    anchors = frames["arrivals"].group_by("topic", "partition").agg(
        first_offset=pl.col("offset").min(), first_ms=pl.col("from_ms").min(),
        newest_offset=pl.col("offset").max(), newest_ms=pl.col("until_ms").max(), error=pl.lit(None, pl.String),
    )  # fmt: skip
    times = pl.DataFrame({"at_ms": list(range(0, AT_MS, 4900))})
    return frames | {"anchors": anchors, "times": times}


def _health(frames: Frames) -> Any:
    return analyze.partition_health(frames["commits"], frames["ends"], frames["times"], 4, 3, 0.3)


ANALYSES: dict[str, Callable[[Frames], Any]] = {
    "commit_windows": lambda f: analyze.commit_windows(f["commits"], f["ends"], f["times"], 4),
    "end_rings": lambda f: analyze.end_rings(f["ends"], f["times"], 4),
    "partition_health": _health,
    "group_health": lambda f: analyze.group_health(_health(f)),
    "time_lag_by_polls": lambda f: analyze.time_lag_by_polls(f["lag"], f["ends"], AT_MS),
    "time_lag_by_records": lambda f: analyze.time_lag_by_records(f["lag"], f["arrivals"], "record", AT_MS),
    "time_lag_by_anchors": lambda f: analyze.time_lag_by_anchors(f["lag"], f["anchors"], AT_MS),
}


def _sorted(frame: pl.DataFrame) -> list[tuple[Any, ...]]:
    return sorted(frame.rows(), key=lambda row: tuple((value is None, str(value)) for value in row))


@pytest.fixture(scope="module")
def spark_frames(spark: SparkSession) -> Frames:
    return {name: in_spark(spark, _plain(frame.to_arrow())).cache() for name, frame in history().items()}


def _plain(table: pa.Table) -> pa.Table:
    """Spark knows no Arrow strings of 64-bit length, which polars gives."""
    kinds = [field.with_type(pa.string()) if pa.types.is_large_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(kinds))


@pytest.mark.parametrize("name", ANALYSES)
def test_spark_and_polars_agree(name: str, spark_frames: Frames) -> None:
    expected = ANALYSES[name](history())
    found = pl.from_arrow(ANALYSES[name](spark_frames).toArrow())
    assert len(expected) > 10
    assert found.schema == expected.schema
    assert _sorted(found) == _sorted(expected)


def test_the_history_has_every_status() -> None:
    seen = pl.concat([_health(history(seed)) for seed in range(20)])["status"]
    assert set(seen) == {"OK", "WARN", "STOP", "STALL", "REWIND", None}


@pytest.mark.parametrize("name", ANALYSES)
def test_order_and_laziness_do_not_matter(name: str) -> None:
    frames = history()
    expected = _sorted(ANALYSES[name](frames))
    lazy = ANALYSES[name]({each: frame.reverse().lazy() for each, frame in frames.items()})
    assert _sorted(lazy.collect()) == expected
    nothing = ANALYSES[name]({each: frame.clear() for each, frame in frames.items()})
    assert nothing.is_empty()
    assert nothing.schema == ANALYSES[name](frames).schema


@pytest.mark.parametrize("name", [name for name in ANALYSES if name.startswith("time_lag")])
def test_the_estimate_lies_in_its_bracket(name: str) -> None:
    for row in ANALYSES[name](history()).drop_nulls("time_lag_ms").to_dicts():
        assert row["lower_ms"] <= row["time_lag_ms"]
        assert row["upper_ms"] is None or row["time_lag_ms"] <= row["upper_ms"]
