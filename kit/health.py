"""Lag in time from a live cluster, and a history, or the coordinators' topic, as Burrow's rules take them.

The rules themselves are ``kit.analyze.partition_health``; docs/health.md has the whole way, with figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import polars as pl

from kit import analyze
from kit.cluster import Cluster, librdkafka_settings
from kit.errors import InputError, PartialRead
from kit.read.offset_times import RESOLUTION_MS, Position, fetch_anchors, fetch_record_times
from kit.read.record_timestamps import read_record_times
from kit.snapshot import Frame, Snapshot
from kit.tables import schema as tables
from kit.tables.schema import Table
from kit.text.quantity import quantity
from kit.text.visible import visible

BISECTION, ANCHORS, RECORD = "bisection", "anchors", "record"
METHODS = (BISECTION, ANCHORS, RECORD)


def time_lag(
    cluster: Cluster,
    partition_lag: pl.DataFrame,
    at_ms: int,
    method: str = BISECTION,
    resolution_ms: int = RESOLUTION_MS,
) -> pl.DataFrame:
    """``kit.views.lag`` of a polars snapshot → its lag in time; columns as ``time_lag_by_records`` has them.

    Args:
        at_ms: when the ends of the logs were known (epoch): :func:`seen_at_ms` of the snapshot.
        method: ``bisection`` (ListOffsets by time, no record is read), ``anchors`` (a line from the first record to the
            newest), ``record`` (the record itself). By a history of polls: ``kit.analyze.time_lag_by_polls``.
        resolution_ms: how narrow the bracket of a bisection is to be.

    Raises:
        InputError: there is no such method.
        ConnectError, ReadError: the brokers stopped answering, or can't tell.
    """
    if method not in METHODS:
        raise InputError(f"there is no method {method!r} for a lag in time; there are {', '.join(METHODS)}")
    positions = _unread(partition_lag)
    client = cluster.broker_client
    if method == ANCHORS:
        anchors = fetch_anchors(client, {(topic, partition) for topic, partition, _ in positions})
        return _frame(analyze.time_lag_by_anchors(partition_lag, _rows(tables.LOG_ANCHORS, anchors), at_ms))
    if method == RECORD:
        found = read_record_times(librdkafka_settings(cluster.profile), positions)
    else:
        found = fetch_record_times(client, positions, at_ms, resolution_ms)
    return _frame(analyze.time_lag_by_records(partition_lag, _rows(tables.RECORD_TIMES, found), method, at_ms))


def commits_of_history(committed_offsets: Frame) -> Frame:
    """``history.load(tables.COMMITTED_OFFSETS)``, or polars rows like it, as commits (``commits_seen``)."""
    result: Frame = analyze.commits_seen(
        _in_ms(committed_offsets, observed_ms="observed_at", written_ms="committed_at")
    )
    return result


def commits_of_topic(offset_commits: Frame) -> Frame:
    """``read_offsets_topic(…).commits``, or polars rows like it, as commits (``topic_commits``)."""
    result: Frame = analyze.topic_commits(_in_ms(offset_commits, written_ms="written_at", committed_ms="committed_at"))
    return result


def ends_of_history(log_offsets: Frame, read_timings: Frame) -> Frame:
    """``tables.LOG_OFFSETS`` and ``tables.READ_TIMINGS`` of a history as sampled ends, for health and for lag by polls.

    Columns: topic, partition, log_end_offset, sampled_ms, sampled_until_ms (epoch; between which the end was read).
    """
    started: Any = nw.from_native(_in_ms(read_timings, sampled_ms="started_at"))
    steps = started.filter(nw.col("step") == "log offsets").select("snapshot_id", "sampled_ms")
    ends: Any = nw.from_native(_in_ms(log_offsets, sampled_until_ms="observed_at"))
    columns = ["topic", "partition", "log_end_offset", "sampled_ms", "sampled_until_ms"]
    result: Frame = nw.to_native(ends.join(steps, on="snapshot_id", how="inner").select(*columns))
    return result


def _in_ms(frame: Any, **columns: str) -> Any:
    """With times as epoch milliseconds, which narwhals can't make on Spark."""
    if isinstance(frame, pl.DataFrame):
        return frame.with_columns(**{name: pl.col(time).dt.epoch("ms") for name, time in columns.items()})
    from pyspark.sql import functions as F

    return frame.withColumns({name: F.unix_millis(time) for name, time in columns.items()})


def verify_time_lag(rows: pl.DataFrame) -> str:
    """A sentence when each lag could be told in time.

    Raises:
        PartialRead: naming the partitions (the first 20) whose lag could not, and why.
    """
    unknown = rows.filter((pl.col("lag") > 0) & pl.col("time_lag_ms").is_null())
    if unknown.is_empty():
        return f"Lag in time: {quantity(len(rows), 'partition')}, all known."
    lines = [f"{row['group_id']}/{row['topic']}-{row['partition']}: {row['error']}" for row in unknown.to_dicts()]
    shown = "\n".join([*map(visible, lines[:20]), *["…"] * (len(lines) > 20)])
    raise PartialRead(f"The lag in time of {quantity(len(lines), 'partition')} is unknown, not zero:\n{shown}")


def seen_at_ms(snapshot: Snapshot[pl.DataFrame]) -> int:
    """When a snapshot was complete (epoch ms): every record below its ends was appended before."""
    (at,) = snapshot.snapshots.select(pl.col("ended_at").dt.epoch("ms")).to_series()
    return int(at)


def _unread(partition_lag: pl.DataFrame) -> set[Position]:
    """Where groups will read next, of the partitions with something to read."""
    behind = partition_lag.filter(pl.col("lag") > 0)
    following = pl.max_horizontal("log_start_offset", "committed_offset")
    return set(behind.select("topic", "partition", following).iter_rows())


def _rows(table: Table, rows: Sequence[object]) -> pl.DataFrame:
    return _frame(pl.from_arrow(table.from_rows(rows)))


def _frame(frame: object) -> pl.DataFrame:
    assert isinstance(frame, pl.DataFrame)
    return frame
