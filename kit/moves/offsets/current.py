"""The committed offsets now: the selected ones, in both stores, within their logs. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import polars as pl

from kit.clients.cluster import Cluster
from kit.moves.offsets.clamping import GONE
from kit.moves.offsets.fetch import STORES, GroupInStore, Stores, fetch_logs, fetch_stores, partitions_by_topic
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.resets import bounds
from kit.moves.offsets.rules import member_findings, other_store_of, source_finding
from kit.moves.offsets.selection import Key, Place, Selection
from kit.tables.conditions import Condition
from kit.tables.groups import KAFKA, ZOOKEEPER, LogOffset

_OFFSETS: dict[str, Any] = {
    "group_id": pl.String,
    "topic": pl.String,
    "partition": pl.Int32,
    "log_start": pl.Int64,
    "log_end": pl.Int64,
    "zookeeper": pl.Int64,
    "kafka": pl.Int64,
    "zookeeper_lag": pl.Int64,
    "kafka_lag": pl.Int64,
    "error": pl.String,
}
_GROUPS: dict[str, Any] = {
    "group_id": pl.String,
    "zookeeper_members": pl.Int64,
    "kafka_state": pl.String,
    "kafka_members": pl.Int64,
    "error": pl.String,
}


@dataclass(frozen=True, slots=True)
class Committed:
    """``offsets`` (a row per group and partition) and ``groups``, as of ``observed_at`` (None: never read).

    A missing offset is null, and so is its lag; ``error`` reports what could not be read.
    """

    observed_at: datetime | None
    stores: Stores
    offsets: pl.DataFrame
    groups: pl.DataFrame


NEVER_SEEN = Committed(None, Stores({}, {}), pl.DataFrame(schema=_OFFSETS), pl.DataFrame(schema=_GROUPS))


def fetch_committed(cluster: Cluster, selection: Selection, to_groups: Mapping[str, str] | None = None) -> Committed:
    """Read the selected groups and the groups that ``to_groups`` names for them; other groups are not read.

    Raises:
        NotFound: a named topic or partition does not exist.
        ConnectError, ReadError: the cluster could not be read.
    """
    read_for = {written: read for read, written in (to_groups or {}).items()}
    stores = fetch_stores(
        cluster, lambda group_id: selection.accepts(read_for.get(group_id, group_id)), only_stable=False
    )
    named = {*selection.groups, *read_for} if selection.groups is not None else stores.known()
    held = {each: _held(stores, each, selection, read_for.get(each, each)) for each in sorted(named)}
    if selection.groups is None:
        held = {group_id: places for group_id, places in held.items() if places}
    logs = fetch_logs(cluster, {topic for places in held.values() for topic, _ in places} | _topics(selection))
    partitions = partitions_by_topic(logs)
    keys = [
        (group_id, *place)
        for group_id, places in held.items()
        for place in selection.places(read_for.get(group_id, group_id), places, partitions)
    ]
    offsets = pl.DataFrame([_offset(stores, logs, key) for key in keys], schema=_OFFSETS, orient="row")
    groups = pl.DataFrame([_group(stores, group_id) for group_id in held], schema=_GROUPS, orient="row")
    return Committed(datetime.now(UTC), stores, offsets, groups)


def member_rules(
    seen: Committed, source: str | None, target: str, to_groups: Mapping[str, str] | None = None
) -> list[Condition]:
    """Return whether the groups have no members, so that ``target`` may be written (and, for a copy, ``source``
    read).
    """
    renamed = dict(to_groups or {})
    read = [group_id for group_id in seen.groups["group_id"] if group_id not in renamed.values()]
    written = [renamed.get(group_id, group_id) for group_id in read]
    here, there = (
        {each: seen.stores.group(store, each) for each in written} for store in (target, other_store_of(target))
    )
    findings = member_findings(here, target, there)
    if source is not None:
        findings.append(source_finding({each: seen.stores.group(source, each) for each in read}))
    return findings


def _held(stores: Stores, group_id: str, selection: Selection, named: str) -> set[Place]:
    """The selected partitions of which a group has an offset in either store."""
    places = {place for store in STORES for place in stores.group(store, group_id).offsets}
    return {place for place in places if selection.takes(named, *place)}


def _topics(selection: Selection) -> set[str]:
    return {topic for group_id in selection.groups or () for topic, _ in selection.named_places(group_id)}


def _offset(stores: Stores, logs: Mapping[Place, LogOffset], key: Key) -> tuple[object, ...]:
    group_id, topic, partition = key
    place = (topic, partition)
    stored = {store: stores.group(store, group_id).offsets.get(place, NOTHING) for store in (ZOOKEEPER, KAFKA)}
    log = logs.get(place)
    start, end = bounds(log) or (None, None)
    lags = (_lag(stored[store], end) for store in (ZOOKEEPER, KAFKA))
    error = "; ".join(_errors(stored.values(), log)) or None
    return *key, start, end, stored[ZOOKEEPER].offset, stored[KAFKA].offset, *lags, error


def _lag(stored: Stored, end: int | None) -> int | None:
    return None if stored.offset is None or end is None else max(0, end - stored.offset)


def _errors(stored: Iterable[Stored], log: LogOffset | None) -> Iterator[str]:
    yield from (each.error for each in stored if each.error is not None)
    if log is None:
        yield GONE
    elif log.error is not None:
        yield log.error


def _group(stores: Stores, group_id: str) -> tuple[object, ...]:
    zookeeper, kafka = stores.group(ZOOKEEPER, group_id), stores.group(KAFKA, group_id)
    errors = "; ".join(each.error for each in (zookeeper, kafka) if each.error is not None) or None
    old_members = None if stores.zookeeper is None else _members(zookeeper)
    return group_id, old_members, kafka.state, _members(kafka), errors


def _members(group: GroupInStore) -> int | None:
    return len(group.members) if group.error is None else None
