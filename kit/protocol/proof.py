"""Proof from ``__consumer_offsets`` that no partition of a group had two owners at any time.

The coordinator writes what a member may own before it reports it to the member. So the log has the complete order:

=====================================  ================================================================
record (key type)                      what it changes
=====================================  ================================================================
ConsumerGroupCurrentMemberAssignment   one member holds its assigned partitions and those that it has
(8)                                    not revoked yet; a tombstone: it holds nothing
GroupMetadata (2)                      the members of a classic group hold their assignments; a
                                       tombstone: none of them holds a partition
=====================================  ================================================================

A client that reads on after the coordinator fenced it is not visible here: only its consumed records show it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from kit.errors import ReadError
from kit.profile import Profile
from kit.protocol.rebalance_times import EpochRecord, RebalanceTimes, rebalance_times
from kit.rebalances.offsets_topic.bounds import Bounds, fetch_bounds
from kit.rebalances.offsets_topic.epochs import epoch_rows
from kit.rebalances.offsets_topic.fetching import Fetch
from kit.rebalances.offsets_topic.generations import generation_rows
from kit.rebalances.offsets_topic.keys import parse_keys
from kit.rebalances.offsets_topic.selection import Selection
from kit.text.java_hash import OFFSETS_TOPIC, offsets_partition

Row: TypeAlias = dict[str, Any]
NONE_SEEN = RebalanceTimes()


@dataclass(frozen=True, slots=True)
class Holding:
    """One record about owners: from ``offset`` on, each member of ``members`` holds exactly these partitions.

    ``is_whole``: it is about a whole classic group, so members that it does not name hold nothing. Partitions are
    ``topic-partition``, as ``tables.GROUP_EPOCHS`` has them. ``epoch``: the member epoch or the generation.
    """

    offset: int
    written_at: datetime | None
    members: Mapping[str, frozenset[str]]
    is_whole: bool = False
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class DoubleOwner:
    """From ``offset`` of ``__consumer_offsets`` on, ``partition`` was held by several members."""

    partition: str
    members: tuple[str, ...]
    offset: int
    written_at: datetime | None


@dataclass(frozen=True, slots=True)
class OwnershipProof:
    """The proof by the log of one group from an offset on.

    ``n_records``: records about owners. ``n_missing``: offsets of the log's partition that hold no record any more, by
    compaction or because they are markers of transactions; then an owner can appear to have kept a partition that it
    gave up. ``epochs``: the first and last group epoch or generation. ``longest_unowned_ms``: the longest time for
    which a partition had no owner, between two owners. ``end``: the offset after the last one that was read; a later
    proof can start there. ``rebalances_before``, ``rebalances``: those that ended before that offset, as far as
    compaction left them, and from it on.
    """

    doubles: tuple[DoubleOwner, ...]
    n_records: int
    n_missing: int
    epochs: tuple[int, int] | None
    longest_unowned_ms: int | None
    end: int
    rebalances_before: RebalanceTimes = NONE_SEEN
    rebalances: RebalanceTimes = NONE_SEEN


def fetch_ends(profile: Profile, group_ids: Collection[str]) -> dict[str, int]:
    """By group, the end of its partition of ``__consumer_offsets``, from which on a proof can judge later.

    No record is read. A group whose partition has no leader is left out.

    Raises:
        ConnectError, AuthenticationFailed, WrongCluster, NotFound: see ``fetch_ownership``.
    """
    bounds = fetch_bounds(profile, OFFSETS_TOPIC, None)
    ends, count = {part.partition: part.end for part in bounds.parts}, _count(bounds)
    numbers = {each: offsets_partition(each, count) for each in group_ids}
    return {each: ends[number] for each, number in numbers.items() if number in ends}


def _count(bounds: Bounds) -> int:
    return 1 + max([*bounds.errors, *(part.partition for part in bounds.parts)], default=0)


def fetch_ownership(profile: Profile, group_id: str, since: int) -> OwnershipProof:
    """Read the group's partition of ``__consumer_offsets`` and judge what was written from offset ``since`` on.

    Raises:
        ConnectError, AuthenticationFailed, WrongCluster: see ``kit.clients.cluster.connect``.
        NotFound: there is no such topic, or the login may not describe it.
        ReadError: the partition, or one of its records about the group, can't be read.
    """
    bounds = fetch_bounds(profile, OFFSETS_TOPIC, None)
    number = offsets_partition(group_id, _count(bounds))
    parts = [part for part in bounds.parts if part.partition == number]
    if not parts:
        raise ReadError(f"{OFFSETS_TOPIC}-{number} can't be read: {bounds.errors.get(number, 'no broker has it')}")
    (part,) = parts
    fetch, selection = Fetch(profile, OFFSETS_TOPIC, parts), Selection(re.escape(group_id))
    holdings, group_epochs, n_seen = list[Holding](), list[EpochRecord](), 0
    for records in fetch:
        n_seen += int((records.offset >= since).sum())
        keys = selection.of(records, parse_keys(records.keys))
        epochs = epoch_rows(records, keys, bounds.topic_names).to_pylist()
        holdings += _of_members(epochs)
        group_epochs += _of_epochs(epochs)
        holdings += _of_groups(generation_rows(records, keys).to_pylist())
    if fetch.errors:
        raise ReadError(f"{OFFSETS_TOPIC}-{number} can't be read: {fetch.errors[number]}")
    end = fetch.read_until[number]
    n_missing = max(0, end - max(since, part.start)) - n_seen
    holdings.sort(key=lambda each: each.offset)
    records_of_epochs = sorted([*group_epochs, *_reached(holdings)], key=lambda each: each.offset)
    before, late = rebalance_times(records_of_epochs, since)
    return replace(judged(holdings, since, end, n_missing), rebalances_before=before, rebalances=late)


def judged(holdings: Iterable[Holding], since: int, end: int, n_missing: int = 0) -> OwnershipProof:
    """Replay records about owners in the order of the log. Those before ``since`` only show who owned what then."""
    held: dict[str, frozenset[str]] = {}
    doubles, epochs, free_since = list[DoubleOwner](), list[int](), dict[str, datetime | None]()
    n_records, longest = 0, list[int]()
    for each in holdings:
        before = _owned(held)
        if each.is_whole:
            held.clear()
        held |= each.members
        now, is_late = _owned(held), each.offset >= since
        free_at = [free_since.pop(partition, None) for partition in now - before]
        free_since |= dict.fromkeys(before - now, each.written_at)
        if is_late:
            n_records += 1
            epochs += [] if each.epoch is None else [each.epoch]
            twice = _twice(held, each.members)
            doubles += [DoubleOwner(name, _holders(held, name), each.offset, each.written_at) for name in twice]
            longest += [_ms(at, each.written_at) for at in free_at if at is not None and each.written_at is not None]
    span = (epochs[0], epochs[-1]) if epochs else None
    return OwnershipProof(tuple(doubles), n_records, n_missing, span, max(longest, default=None), end)


def _ms(start: datetime, end: datetime) -> int:
    return round((end - start).total_seconds() * 1000)


def _owned(held: Mapping[str, frozenset[str]]) -> frozenset[str]:
    return frozenset().union(*held.values())


def _twice(held: Mapping[str, frozenset[str]], changed: Collection[str]) -> list[str]:
    """The partitions of the members that a record names which another member holds as well."""
    return sorted(
        {
            partition
            for name in changed
            for partition in held[name]
            if any(partition in others for member, others in held.items() if member != name)
        }
    )


def _holders(held: Mapping[str, frozenset[str]], partition: str) -> tuple[str, ...]:
    return tuple(sorted(member for member, partitions in held.items() if partition in partitions))


def _of_members(rows: Iterable[Row]) -> Iterator[Holding]:
    """Rows of ``tables.GROUP_EPOCHS``."""
    for row in rows:
        if row["kind"] != "current_assignment":
            continue
        _refuse_undecoded(row)
        held = frozenset((*(row["assigned"] or ()), *(row["revoking"] or ())))
        yield Holding(row["offset"], row["written_at"], {row["member_id"]: held}, epoch=row["epoch"])


def _of_epochs(rows: Iterable[Row]) -> Iterator[EpochRecord]:
    """Yield when the coordinator raised the epoch of the group."""
    for row in rows:
        if row["kind"] == "group_epoch" and not row["is_tombstone"]:
            _refuse_undecoded(row)
            yield EpochRecord(row["offset"], row["written_at"], row["epoch"])


def _reached(holdings: Iterable[Holding]) -> Iterator[EpochRecord]:
    """Epochs of members, and generations of the classic group; its tombstone is none."""
    for each in holdings:
        if not each.is_whole:
            (member,) = each.members
            yield EpochRecord(each.offset, each.written_at, each.epoch, member)
        elif each.epoch is not None:
            yield EpochRecord(each.offset, each.written_at, each.epoch, is_generation=True)


def _of_groups(rows: Iterable[Row]) -> Iterator[Holding]:
    """Rows of ``tables.GROUP_GENERATIONS``: one per member of a record."""
    by_record: dict[int, list[Row]] = {}
    for row in rows:
        _refuse_undecoded(row)
        by_record.setdefault(row["offset"], []).append(row)
    for offset, members in by_record.items():
        held = {row["member_id"]: frozenset(row["assigned"] or ()) for row in members if row["member_id"] is not None}
        yield Holding(offset, members[0]["written_at"], held, is_whole=True, epoch=members[0]["generation"])


def _refuse_undecoded(row: Row) -> None:
    if row["error"] is not None:
        raise ReadError(f"{OFFSETS_TOPIC}-{row['partition']}, offset {row['offset']}: {row['error']}")
