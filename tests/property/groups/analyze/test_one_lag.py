"""``lag`` is one number: in each view, total, forecast, metric and listing the end of the log minus the commit."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import polars as pl
from hypothesis import HealthCheck, given, settings

from kit import analyze
from kit.cli.outlook import _in_words
from kit.health.analyze.windows import PARTITION
from kit.health.export.metrics import LABELS, Count, metrics_of
from kit.health.export.readings import Reading, chosen
from kit.health.live import GroupTrends
from kit.tables.groups import LogRetention
from kit.tables.schema import LOG_RETENTION, RECORD_TIMES
from tests.generators.random_snapshots import ANALYSES, Rows, polars_frames, snapshots
from tests.soak import IS_SOAK

AT = datetime(2026, 11, 21, tzinfo=UTC)
GROUP = ["group_id", "store"]
METRIC = "offramp_consumer_group_topic_partition_lag"


def by_kafka(lag: pl.DataFrame, rows: Rows) -> dict[Any, int | None]:
    """By partition the lag that Kafka's tools show, at least 0: the broker's own count, else by the offsets."""
    counted = {tuple(getattr(row, name) for name in PARTITION): row.unfinished for row in rows["committed_offsets"]}
    found: dict[Any, int | None] = {}
    for row in lag.to_dicts():
        key = tuple(row[name] for name in PARTITION)
        if None in (row["log_end_offset"], row["committed_offset"]):
            found[key] = None
        else:
            count = counted.get(key)
            found[key] = max(0, row["log_end_offset"] - row["committed_offset"]) if count is None else count
    return found


def lags_in(rows: pl.DataFrame) -> dict[Any, int | None]:
    return {tuple(row[:-1]): row[-1] for row in rows.select(*PARTITION, "lag").iter_rows()}


def sums(lags: dict[Any, int | None]) -> dict[Any, int | None]:
    """By group and store, of what is known; None: nothing is."""
    found: dict[Any, int | None] = {}
    for (group, store, *_), lag in lags.items():
        before = found.setdefault((group, store), None)
        found[group, store] = before if lag is None else lag + (before or 0)
    return found


def exported(lag: pl.DataFrame) -> dict[Any, int]:
    """Return what ``offramp export`` serves for each partition."""
    none = {"time_lag_ms": pl.Int64, "close_ms": pl.Int64, "deletion_lower_ms": pl.Int64, "status": pl.String}
    flags = {"is_never_closed": pl.Boolean, "is_never_deleted": pl.Boolean}
    rows = lag.with_columns(pl.lit(None, kind).alias(name) for name, kind in (none | flags).items())
    own, others = chosen(analyze.group_lag(lag).select(*GROUP, "lag", "n_partitions", "n_unknown"), 10_000)
    stages = pl.DataFrame(schema={"group_id": pl.String, "stage": pl.String})
    reading = Reading(AT, 0.1, 1, rows, own, others, stages, {}, 0, rows.clear(), "", None)  # type: ignore[arg-type]
    families = metrics_of(reading, Count(1, 0, 1), 60.0, LABELS["kminion"]).collect()
    (family,) = [each for each in families if each.name == METRIC]
    labels = ("group_id", "store", "topic_name", "partition_id")
    found = {tuple(sample.labels[name] for name in labels): int(sample.value) for sample in family.samples}
    return {(*key[:3], int(key[3])): value for key, value in found.items()}


@settings(max_examples=60 if IS_SOAK else 15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(snapshots())
def test_each_view_shows_the_same_lag(rows: Rows) -> None:
    frames = polars_frames(rows)
    every = ANALYSES["partition_lag"](frames)
    lag = every.filter(~pl.col("is_stale"))
    wanted = by_kafka(lag, rows)
    logs = lag.select("topic", "partition").unique().iter_rows()
    kept = pl.DataFrame(
        LOG_RETENTION.from_rows(
            [LogRetention(*log, "delete", 10**9, -1, 10**9, 10**9, False, 300_000, 10**6) for log in logs]
        )
    )
    none = pl.DataFrame(RECORD_TIMES.from_rows([]))
    looks = pl.concat([lag.with_columns(at_ms=pl.lit(at, pl.Int64)) for at in (0, 10_000)])
    late = analyze.time_lag_by_records(lag, none, "bisection", 10_000)
    outlook = analyze.lag_outlook(lag, looks, kept, none, 10_000)
    words = _in_words(outlook)
    for name, shown in {"lag": lag, "lag --time": late, "lag --outlook": outlook, "in words": words}.items():
        assert lags_in(shown) == wanted, name
    assert exported(lag) == {key: value for key, value in wanted.items() if value is not None}

    totals = {tuple(row[:2]): row[2] for row in analyze.group_lag(every).select(*GROUP, "lag").iter_rows()}
    assert totals == sums(wanted)
    watched = GroupTrends().add(lag.with_columns(at_ms=pl.lit(0, pl.Int64)))
    # An observation whose sum lacks a lag that could not be read has no lag in the line recently; its column has the
    # sum.
    assert {tuple(row[:2]): row[2] for row in watched.select(*GROUP, "lag").iter_rows()} == totals
    verdicts = pl.DataFrame(
        schema={name: late.schema[name] for name in PARTITION} | dict.fromkeys(("status", "evidence"), pl.String)
    )
    by_group = analyze.group_outlook(late, outlook, verdicts).select(*GROUP, "lag")
    assert all(totals[group, store] == value for group, store, value in by_group.iter_rows())
    summary = ANALYSES["group_summary"](frames)
    for row in summary.to_dicts():
        for store in ("zookeeper", "kafka"):
            assert row[f"{store}_lag"] == totals.get((row["group_id"], store))
        assert row["store_in_use"] is None or row["lag"] == row[f"{row['store_in_use']}_lag"]
    assert (outlook["lag_retained"].is_null() | (outlook["lag_retained"] <= outlook["lag"])).all()
