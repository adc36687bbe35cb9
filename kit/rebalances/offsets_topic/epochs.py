"""Groups of the new protocol (KIP-848): values of version 0. They are rare beside commits, so one by one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa

from kit.rebalances.offsets_topic.cursor import Cursor, DecodeError, time_of
from kit.rebalances.offsets_topic.fetching import Records
from kit.rebalances.offsets_topic.keys import (
    CURRENT_ASSIGNMENT,
    GROUP_EPOCH,
    MEMBER,
    TARGET_ASSIGNMENT,
    TARGET_EPOCH,
    Keys,
    name_of,
)
from kit.tables import schema as tables
from kit.tables.rebalances import GroupEpoch

Names: TypeAlias = Mapping[bytes, str]
"""Topic id (16 octets) → name."""
_STATES = {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"}


def epoch_rows(records: Records, keys: Keys, topic_names: Names) -> pa.Table:
    """``tables.GROUP_EPOCHS``: one row per record whose key is of a KIP-848 group, its members or assignments."""
    values = records.values.take(pa.array(keys.epochs)).to_pylist()
    columns = keys.epochs.tolist(), keys.epoch_groups.to_pylist(), keys.epoch_members.to_pylist(), values
    rows: list[GroupEpoch] = []
    for at, group_id, member_id, value in zip(*columns):
        row = _keyed(records, at, int(keys.kind[at]), group_id, member_id, value is None)
        rows.append(row if value is None else parse_epoch(row, int(keys.kind[at]), value, topic_names))
    return tables.GROUP_EPOCHS.from_rows(rows)


def parse_epoch(row: GroupEpoch, kind: int, value: bytes, topic_names: Names) -> GroupEpoch:
    """The row of a key, with what its value reports."""
    cursor = Cursor(value, is_flexible=True)
    try:
        version = cursor.number(">h")
        if version != 0:
            raise DecodeError(
                f"a record of type {name_of(kind)} has a value of version {version}, which this offramp can't read"
            )
        columns = _READERS[kind][1](cursor, topic_names)
        cursor.skip_tags()
    except DecodeError as problem:
        return replace(row, error=str(problem))
    return replace(row, **columns)


def _keyed(
    records: Records, at: int, kind: int, group_id: str, member_id: str | None, is_tombstone: bool
) -> GroupEpoch:
    return GroupEpoch(
        partition=int(records.partition[at]),
        offset=int(records.offset[at]),
        written_at=time_of(int(records.written_ms[at])),
        group_id=group_id,
        kind=_READERS[kind][0],
        is_tombstone=is_tombstone,
        epoch=None,
        previous_epoch=None,
        state=None,
        member_id=member_id,
        group_instance_id=None,
        client_id=None,
        client_host=None,
        assignor=None,
        assigned=None,
        revoking=None,
        error=None,
    )


def _epoch(cursor: Cursor, _names: Names) -> dict[str, Any]:
    return {"epoch": cursor.number(">i")}


def _member(cursor: Cursor, _names: Names) -> dict[str, Any]:
    """Its rack, what it subscribes to and its rebalance timeout are of no use here."""
    instance_id, _rack, client_id, client_host = (cursor.text() for _ in range(4))
    for _ in range(cursor.length(">i")):
        cursor.text()
    cursor.text()
    cursor.number(">i")
    return {
        "group_instance_id": instance_id,
        "client_id": client_id,
        "client_host": (client_host or "").removeprefix("/"),
        "assignor": cursor.text(),
    }


def _target(cursor: Cursor, topic_names: Names) -> dict[str, Any]:
    return {"assigned": _partitions(cursor, topic_names)}


def _current(cursor: Cursor, topic_names: Names) -> dict[str, Any]:
    epoch, previous_epoch, state = (cursor.number(kind) for kind in (">i", ">i", ">b"))
    return {
        "epoch": epoch,
        "previous_epoch": previous_epoch,
        "state": _STATES.get(state, f"{state} unknown"),
        "assigned": _partitions(cursor, topic_names),
        "revoking": _partitions(cursor, topic_names),
    }


def _partitions(cursor: Cursor, topic_names: Names) -> tuple[str, ...]:
    partitions: list[str] = []
    for _ in range(cursor.length(">i")):
        topic_id = cursor.take(16)
        topic = topic_names.get(topic_id) or base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
        partitions += [f"{topic}-{cursor.number('>i')}" for _ in range(cursor.length(">i"))]
        cursor.skip_tags()
    return tuple(sorted(partitions))


_READERS: dict[int, tuple[str, Callable[[Cursor, Names], dict[str, Any]]]] = {
    GROUP_EPOCH: ("group_epoch", _epoch),
    MEMBER: ("member", _member),
    TARGET_EPOCH: ("target_epoch", _epoch),
    TARGET_ASSIGNMENT: ("target_assignment", _target),
    CURRENT_ASSIGNMENT: ("current_assignment", _current),
}
"""The name of a key type in the table, and the function that reads its value."""
