"""The analyses of health give the same rows on Spark and on polars, on random histories of many groups."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import narwhals as nw
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from kit import analyze
from kit.health.analyze import lists
from kit.health.analyze.outlook import TRENDS
from kit.tables import schema as tables
from kit.tables.groups import LogRetention
from kit.tables.spark import in_spark
from tests.limits import lower
from tests.soak import soak_only

Frames = dict[str, Any]
AT_MS = 40_000
LOGS = [(f"t{topic}", partition) for topic in range(3) for partition in range(2)]


def history(seed: int = 7) -> Frames:
    """Commits that rise, rest, fall and are deleted; ends that rise, rest, fall and are missing."""
    chance, besides = Random(seed), Random(seed)
    commits, ends, lags, found = [], [], [], []
    for topic, partition in LOGS:
        end = chance.randrange(50)
        for at in range(0, AT_MS, chance.choice([3000, 7000])):
            end = max(0, end + chance.choice([0, 0, 3, 9, 20, -15]))
            known = None if chance.random() < 0.1 else end
            ends.append((topic, partition, known, at, at + chance.randrange(200)))
    last_end = {log: chance.choice([None, 10, 60, 200]) for log in LOGS}
    for number in range(120):
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
            error = besides.choice([error, None])  # None of both: nothing there to read
            is_quiet = besides.choice([True, False, None])
            found.append((topic, partition, offset, time, time, time and time + 500, error, is_quiet))
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
        | {"error": pl.String, "is_quiet": pl.Boolean},
    }
    rows = {"commits": commits, "ends": ends, "lag": lags, "arrivals": found}
    frames = {name: pl.DataFrame(rows[name], schema=schemas[name], orient="row") for name in rows}
    anchors = frames["arrivals"].group_by("topic", "partition").agg(
        first_offset=pl.col("offset").min(), first_ms=pl.col("from_ms").min(),
        newest_offset=pl.col("offset").max(), newest_ms=pl.col("until_ms").max(), error=pl.lit(None, pl.String),
    )  # fmt: skip
    looks, kept = [], []
    for *place, committed, start, end, _lag, _error in lags:
        for at in range(chance.randrange(5)):
            moved = committed and max(0, committed + chance.choice([0, 5, 9, -3]) * at)
            grown = end and end + chance.choice([0, 4, 11]) * at
            looks.append((*place, moved, start, grown, AT_MS - 5000 + 1000 * at))
    for topic, partition in LOGS:
        limit, size = chance.choice([None, -1, 30_000]), chance.choice([None, 0, 5000])
        policy = chance.choice(["delete", "compact", "compact,delete"])
        limits = (limit, chance.choice([-1, 2000]), chance.choice([5000, 60_000]), chance.choice([100, 900]))
        kept.append((topic, partition, policy, *limits, chance.random() < 0.1, chance.choice([None, 500]), size, None))
    offsets = ("committed_offset", "log_start_offset", "log_end_offset", "at_ms")
    frames["looks"] = pl.DataFrame(looks, {**key_types, **dict.fromkeys(offsets, pl.Int64)}, orient="row")
    frames["retention"] = pl.DataFrame(tables.LOG_RETENTION.from_rows([LogRetention(*row) for row in kept]))
    begun = {f"g{number}": chance.randrange(AT_MS) for number in range(0, 120, 3)}
    frames["incidents"] = pl.DataFrame(
        {"group_id": list(begun), "from_ms": list(begun.values()), "until_ms": [at + 6000 for at in begun.values()]}
    )
    seen = [
        (*key, f"s{at}", offset, at * 1_000_000, chance.choice([None, at * 900_000])) for *key, offset, at, _ in commits
    ]
    frames["seen"] = pl.DataFrame(
        seen,
        {**key_types, "snapshot_id": pl.String, "committed_offset": numbers, "at_ms": numbers, "written_ms": numbers},
        orient="row",
    )
    snapshots = pl.DataFrame({"snapshot_id": sorted({row[4] for row in seen})})
    newest = frames["ends"].group_by("topic", "partition").agg(pl.col("log_end_offset").last())
    at_ms = pl.col("snapshot_id").str.slice(1).cast(pl.Int64) * 1_000_000
    grown = pl.col("log_end_offset") + pl.col("at_ms") // 700_000_000 % 50  # a log that begins again at times
    frames["seen_ends"] = (
        newest.join(snapshots, how="cross").with_columns(at_ms=at_ms).with_columns(log_end_offset=grown)
    )
    looks = snapshots.with_columns(at_ms=at_ms)
    frames["hours"] = analyze.looks_of_hours(looks, looks["at_ms"].unique() // 3_600_000 * 3_600_000)
    owned = frames["seen"].select("snapshot_id", "group_id", "topic", "partition", source="store")
    owners = [chance.choice([None, "a", "b"]) for _ in range(len(owned))]
    shared = pl.Series([chance.choice([None, None, False, True]) for _ in owners], dtype=pl.Boolean)
    frames["ownership"] = owned.with_columns(member_id=pl.Series(owners, dtype=pl.String), is_shared=shared)
    times = pl.DataFrame({"at_ms": list(range(0, AT_MS, 4900))})
    return frames | {"anchors": anchors, "times": times}


def _health(frames: Frames) -> Any:
    return analyze.partition_health(frames["commits"], frames["ends"], frames["times"], 4, 3, 0.3)


def _verdicts(frames: Frames) -> Any:
    return analyze.BurrowRule(4, 3, warns=True).verdicts(frames["commits"], frames["ends"], frames["times"])


def _of_groups(frames: Frames) -> Any:
    late = analyze.time_lag_by_records(frames["lag"], frames["arrivals"], "record", AT_MS)
    outlook = analyze.lag_outlook(frames["lag"], frames["looks"], frames["retention"], frames["arrivals"], AT_MS)
    last: Any = nw.from_native(_health(frames))
    return analyze.group_outlook(late, outlook, nw.to_native(last.filter(nw.col("at_ms") == 39_200)))


def _any_rule() -> analyze.AnyRule:
    return analyze.AnyRule((analyze.BurrowRule(4, 3, 0.5), analyze.SilenceRule(4000)))


def _lags(frames: Frames) -> Any:
    return analyze.lag_over_time(frames["seen"], frames["seen_ends"])


def _holes(frames: Frames) -> Any:
    named: Any = nw.from_native(frames["ends"])
    return nw.to_native(named.filter(nw.col("topic") == "t1").select("topic", "partition"))


def _hours(frames: Frames) -> Any:
    return analyze.group_hours(frames["seen"], frames["seen_ends"], frames["ownership"], frames["hours"])


ANALYSES: dict[str, Callable[[Frames], Any]] = {
    "commit_windows": lambda f: analyze.commit_windows(f["commits"], f["ends"], f["times"], 4),
    "end_rings": lambda f: analyze.end_rings(f["ends"], f["times"], 4),
    "partition_health": _health,
    "group_health": lambda f: analyze.group_health(_health(f)),
    "LagRule": lambda f: analyze.LagRule(5, 4000).verdicts(f["commits"], f["ends"], f["times"]),
    "SilenceRule": lambda f: analyze.SilenceRule(4000).verdicts(f["commits"], f["ends"], f["times"]),
    "waiting_since": lambda f: analyze.waiting_since(f["commits"], f["ends"], f["times"]),
    "BurrowRule": _verdicts,
    "AnyRule": lambda f: _any_rule().verdicts(f["commits"], f["ends"], f["times"]),
    "lag_over_time": _lags,
    "within_target": lambda f: analyze.within_target(_lags(f), 30),
    "lag_by_hour": lambda f: analyze.lag_by_hour(_lags(f)),
    "time_lag_over_time": lambda f: analyze.time_lag_over_time(f["seen"], f["seen_ends"]),
    "time_lag_over_holes": lambda f: analyze.time_lag_over_time(f["seen"], f["seen_ends"], _holes(f)),
    "group_hours": _hours,
    "troubled": lambda f: analyze.troubled(_hours(f), 3, 1_800_000),
    "within_target_by_hours": lambda f: analyze.within_target_by_hours(_hours(f), 30),
    "verdict_spans": lambda f: analyze.verdict_spans(_verdicts(f)),
    "group_alarms": lambda f: analyze.group_alarms(_verdicts(f)),
    "incident_outcomes": lambda f: analyze.incident_outcomes(analyze.group_alarms(_verdicts(f)), f["incidents"]),
    "false_alarms": lambda f: analyze.false_alarms(analyze.group_alarms(_verdicts(f)), f["incidents"]),
    "time_lag_by_polls": lambda f: analyze.time_lag_by_polls(f["lag"], f["ends"], AT_MS),
    "time_lag_by_records": lambda f: analyze.time_lag_by_records(f["lag"], f["arrivals"], "record", AT_MS),
    "time_lag_with_holes": lambda f: analyze.time_lag_by_polls(f["lag"], f["ends"], AT_MS, _holes(f)),
    "lag_velocity": lambda f: analyze.lag_velocity(f["looks"]),
    "outlook_positions": lambda f: analyze.outlook_positions(f["lag"], f["retention"]),
    "lag_outlook": lambda f: analyze.lag_outlook(f["lag"], f["looks"], f["retention"], f["arrivals"], AT_MS),
    "group_outlook": _of_groups,
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


@pytest.mark.parametrize(
    "name",
    # It puts others together, which are compared by themselves: Spark plans it for longer than three of those.
    [pytest.param(name, marks=soak_only) if name == "group_outlook" else name for name in ANALYSES],
)
def test_spark_and_polars_agree(name: str, spark_frames: Frames) -> None:
    expected = ANALYSES[name](history())
    found = pl.from_arrow(ANALYSES[name](spark_frames).toArrow())
    assert len(expected) > 10
    assert found.schema == expected.schema
    assert _sorted(found) == _sorted(expected)


def test_a_log_may_be_in_many_batches(spark: SparkSession, spark_frames: Frames) -> None:
    """Its ends come with the first one."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = spark.conf.get(name)
    spark.conf.set(name, 3)
    try:
        found = pl.from_arrow(_health(spark_frames).toArrow())
    finally:
        spark.conf.set(name, before)
    assert _sorted(found) == _sorted(_health(history()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [1, 3, 10_000])
def test_each_partition_is_judged_by_its_window_and_ring(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both as SQL's windows give them, the rules as one would write them down; so many lists are measured at once."""
    lower(monkeypatch, lists, AT_ONCE=at_once)
    frames = history(seed)
    key = [*KEY, "at_ms"]
    windows = analyze.commit_windows(frames["commits"], frames["ends"], frames["times"], 4).sort("order")
    windows = windows.group_by(key).agg("committed_offset", "committed_ms", "lag")
    rings = analyze.end_rings(frames["ends"], frames["times"], 4)
    wanted = windows.join(rings, on=["topic", "partition", "at_ms"], how="left").sort(key).to_dicts()
    found = _health(frames).sort(key).to_dicts()
    assert [_of(row, key) for row in found] == [_of(row, key) for row in wanted]
    assert [_of(row, RESTATED) for row in found] == [restated(row, 4, 3, 0.3) for row in wanted]


KEY = ["group_id", "store", "topic", "partition"]
RESTATED = [
    "status",
    "n_commits",
    "lag",
    "first_committed_ms",
    "committed_ms",
    "lowest_lag",
    "rewound_from",
    "rewound_to",
]


def _of(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: row[name] for name in names}


def restated(row: dict[str, Any], intervals: int, allowed: int, minimum: float) -> dict[str, Any]:
    """The rules over one window, commit by commit."""
    offsets, ms, newest = row["committed_offset"], row["committed_ms"], row["newest_end"]
    lags = [lag for lag in row["lag"] if lag is not None]
    lag = None if newest is None else max(0, newest - offsets[-1])
    back = next((turn for turn in range(1, len(offsets)) if offsets[turn] < offsets[turn - 1]), None)
    silent, is_caught_up = row["at_ms"] // 1000 * 1000 - ms[-1], lag is not None and row["lowest_end"] <= offsets[-1]
    if lag is None:
        status = None
    elif len(offsets) < minimum * intervals or lag <= allowed:
        status = "OK"
    elif silent > ms[-1] - ms[0] and not is_caught_up:
        status = "STOP"
    elif back is not None and max(offsets[back:]) < offsets[back - 1]:
        status = "REWIND"
    elif any(each <= allowed for each in lags):
        status = "OK"
    elif len(set(offsets)) == 1:
        status = "STALL"
    else:
        status = "WARN" if lags == sorted(lags) else "OK"
    rewound = (None, None) if back is None else (offsets[back - 1], offsets[back])
    values = [status, len(offsets), lag, ms[0], ms[-1], min(lags, default=None), *rewound]
    return dict(zip(RESTATED, values, strict=True))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("at_once", [1, 3, 10_000])
def test_each_partition_waits_since_what_happened_to_it(
    seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By one event after the other, up to each observation; so many lists are measured at once."""
    lower(monkeypatch, lists, AT_ONCE=at_once)
    frames = history(seed)
    found = _sorted(analyze.waiting_since(frames["commits"], frames["ends"], frames["times"]))
    ends = frames["ends"].drop_nulls("log_end_offset").sort("sampled_ms")
    expected = []
    for key, commits in frames["commits"].sort("order").group_by(KEY):
        entered = commits["committed_ms"].cum_max()
        events = [(ms, 1, offset) for ms, offset in zip(entered, commits["committed_offset"])]
        log = ends.filter(topic=key[2], partition=key[3])
        events += [(ms, 0, end) for ms, end in log.select("sampled_ms", "log_end_offset").rows()]
        events.sort(key=lambda event: event[:2])  # of one moment the end comes first; the commits stay in order
        for at_ms in frames["times"]["at_ms"]:
            row = waiting([event for event in events if event[0] <= at_ms])
            expected += [] if row is None else [(*key, at_ms, *row)]
    assert len(expected) > 100
    assert found == sorted(expected, key=lambda row: tuple((value is None, str(value)) for value in row))


def waiting(events: list[tuple[int, int, int | None]]) -> tuple[int | None, ...] | None:
    offset = end = fine_ms = waits_ms = arrived_ms = None
    is_committed = False
    for ms, is_commit, number in events:
        if is_commit:
            offset, is_committed, arrived_ms = (offset if number is None else number), number is not None, ms
        else:
            end = number
        if offset is not None and end is not None and end > offset:
            waits_ms = ms if waits_ms is None else waits_ms
        elif offset is not None and end is not None:
            fine_ms, waits_ms = ms, None
    lag = None if end is None or offset is None else max(0, end - offset)
    return (lag, arrived_ms, fine_ms, waits_ms) if is_committed else None


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


@pytest.mark.parametrize("name", [name for name in ANALYSES if name.startswith(("time_lag_by", "time_lag_with"))])
def test_the_estimate_lies_in_its_bracket(name: str) -> None:
    for row in ANALYSES[name](history()).drop_nulls("time_lag_ms").to_dicts():
        assert row["lower_ms"] <= row["time_lag_ms"]
        assert row["upper_ms"] is None or row["time_lag_ms"] <= row["upper_ms"]


def test_each_outlook_lies_in_its_bracket() -> None:
    rows = [row for seed in range(9) for row in ANALYSES["lag_outlook"](history(seed)).to_dicts()]
    assert {row["trend"] for row in rows} == set(TRENDS)
    for row in rows:
        for what in ("close", "deletion"):
            known = [row[f"{what}{bound}_ms"] for bound in ("_lower", "", "_upper")]
            assert sorted(each for each in known if each is not None) == [each for each in known if each is not None]
        assert not (row["is_never_deleted"] and row["deletion_lower_ms"] is not None)
