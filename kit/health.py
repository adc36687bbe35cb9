"""Lag in time, from a live cluster: how old the next unread record of each partition is, by one of four methods."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from kit import analyze
from kit.cluster import Cluster, librdkafka_settings
from kit.errors import InputError
from kit.read.offset_times import RESOLUTION_MS, Position, fetch_anchors, fetch_record_times
from kit.read.record_timestamps import read_record_times
from kit.snapshot import Snapshot
from kit.tables import schema as tables
from kit.tables.schema import Table

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
