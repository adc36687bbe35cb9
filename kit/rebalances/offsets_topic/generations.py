"""Generations of classic groups: values of versions 0 to 4. They are rare beside commits, so one by one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pyarrow as pa

from kit.clients.consumer_protocol import parse_member
from kit.rebalances.offsets_topic.cursor import Cursor, DecodeError, time_of
from kit.rebalances.offsets_topic.fetching import Records
from kit.rebalances.offsets_topic.keys import Keys
from kit.tables import schema as tables
from kit.tables.rebalances import GroupGeneration

_NEWEST = 4
_TIMEOUT_SINCE, _STATE_TIME_SINCE, _INSTANCE_SINCE, _FLEXIBLE_SINCE = 1, 2, 3, 4


def generation_rows(records: Records, keys: Keys) -> pa.Table:
    """``tables.GROUP_GENERATIONS``: one row per member of each record whose key is a group's."""
    values = records.values.take(pa.array(keys.generations)).to_pylist()
    rows: list[GroupGeneration] = []
    for at, group_id, value in zip(keys.generations.tolist(), keys.generation_groups.to_pylist(), values):
        place = (int(records.partition[at]), int(records.offset[at]), time_of(int(records.written_ms[at])))
        rows += parse_generation(*place, group_id, value)
    return tables.GROUP_GENERATIONS.from_rows(rows)


def parse_generation(
    partition: int, offset: int, written_at: datetime | None, group_id: str, value: bytes | None
) -> list[GroupGeneration]:
    """The rows of one record."""
    row = GroupGeneration(
        partition=partition,
        offset=offset,
        written_at=written_at,
        group_id=group_id,
        generation=None,
        protocol_type=None,
        protocol=None,
        leader_id=None,
        state_at=None,
        is_tombstone=value is None,
        n_members=None,
        member_id=None,
        group_instance_id=None,
        client_id=None,
        client_host=None,
        rebalance_timeout_ms=None,
        session_timeout_ms=None,
        subscribed=None,
        assigned=None,
        error=None,
    )
    if value is None:
        return [row]
    try:
        return list(_rows(row, value))
    except DecodeError as problem:
        return [replace(row, error=str(problem))]


def _rows(row: GroupGeneration, value: bytes) -> Iterator[GroupGeneration]:
    version = Cursor(value).number(">h")
    if not 0 <= version <= _NEWEST:
        raise DecodeError(f"the record of a group has a value of version {version}, which this offramp can't read")
    cursor = Cursor(value, version >= _FLEXIBLE_SINCE, at=2)
    row = replace(
        row,
        protocol_type=cursor.text(),
        generation=cursor.number(">i"),
        protocol=cursor.text(),
        leader_id=cursor.text(),
        state_at=time_of(cursor.number(">q")) if version >= _STATE_TIME_SINCE else None,
    )
    n_members = max(0, cursor.length(">i"))
    row = replace(row, n_members=n_members)
    members = [_member(cursor, version, row) for _ in range(n_members)]
    cursor.skip_tags()
    return iter(members or [row])


def _member(cursor: Cursor, version: int, row: GroupGeneration) -> GroupGeneration:
    row = replace(
        row,
        member_id=cursor.text(),
        group_instance_id=cursor.text() if version >= _INSTANCE_SINCE else None,
        client_id=cursor.text(),
        client_host=(cursor.text() or "").removeprefix("/"),
        rebalance_timeout_ms=cursor.number(">i") if version >= _TIMEOUT_SINCE else None,
        session_timeout_ms=cursor.number(">i"),
    )
    subscription, assignment = cursor.octet_string() or b"", cursor.octet_string() or b""
    cursor.skip_tags()
    if row.protocol_type != "consumer":
        return row
    subscribed, assigned, problem = parse_member(subscription, assignment)
    partitions = tuple(sorted(f"{topic}-{partition}" for topic, partition in assigned))
    return replace(row, subscribed=tuple(sorted(subscribed)), assigned=partitions, error=problem)
