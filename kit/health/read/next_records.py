"""Find when the next record that a group can read was appended: by time where that shows, by reading it where it
doesn't.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from kit.clients.broker_client import BrokerClient
from kit.clients.brokers import Key
from kit.groups.read.transactions import fetch_transactional
from kit.health.read.offset_times import RESOLUTION_MS, Position, fetch_quiet, fetch_record_times
from kit.health.read.record_timestamps import read_record_times
from kit.tables.groups import RecordTime


def find_record_times(
    client: BrokerClient,
    settings: Mapping[str, Any],
    positions: Collection[Position],
    ends: Mapping[Key, int],
    at_ms: int,
    resolution_ms: int = RESOLUTION_MS,
) -> list[RecordTime]:
    """Return when the next records at or after these offsets were appended, by ``fetch_record_times``; few are read.

    Read is where the log holds transactions, whose markers and aborted records ListOffsets takes for records, and
    where the bracket stays wider than ``resolution_ms``. If that may not be read (READ on the topic), the bracket
    is what ListOffsets shows.

    Args:
        settings: librdkafka's, with the brokers and their security.
        ends: where each log ended at the observation, at ``at_ms`` (epoch).

    Raises:
        ConnectError, ReadError: no broker answered.
    """
    with_transactions = fetch_transactional(client, {(topic, partition) for topic, partition, _ in positions})
    estimates = {_position(row): row for row in fetch_record_times(client, positions, at_ms, resolution_ms)}
    unclear = [
        place for place, row in estimates.items() if place[:2] in with_transactions or _is_wide(row, resolution_ms)
    ]
    read = read_record_times(settings, unclear, ends, at_ms)
    return list((estimates | {_position(row): row for row in read if row.error is None}).values())


def with_quiet(
    client: BrokerClient, rows: Collection[RecordTime], ends: Mapping[Key, int], since_ms: int
) -> list[RecordTime]:
    """These rows, with whether anything was appended to their logs from ``since_ms`` (epoch) to the observation.

    Raises:
        ConnectError: no broker answered.
    """
    asked = {(row.topic, row.partition) for row in rows}
    quiet = fetch_quiet(client, {key: ends[key] for key in asked}, since_ms)
    return [replace(row, is_quiet=quiet.get((row.topic, row.partition))) for row in rows]


def _position(row: RecordTime) -> Position:
    return row.topic, row.partition, row.offset


def _is_wide(row: RecordTime, resolution_ms: int) -> bool:
    return row.from_ms is not None and row.until_ms is not None and row.until_ms - row.from_ms > resolution_ms
