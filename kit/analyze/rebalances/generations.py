"""Each consumer's rebalances, and what brokers' logs say → the generations of each group, of all logs together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kit.analyze.rebalances.consumer_instances import ConsumerInstance, Event, are_utc, datetime_of, time_of
from kit.tables.rebalances import MemberRebalance, Rebalance

_ASSIGNMENT = re.compile(r"([^\s{},=]+)=Assignment\(partitions=\[([^\]]*)\]")
_REMOVED = re.compile(r"[Rr]emoving member (\S+) on|`LeaveGroup` request for \(([^)]+)\)")
_LEAVINGS = ("member_left", "member_failed", "member_fenced")
Owners = dict[str, str]
"""Partition → member."""


@dataclass
class _Group:
    """What the logs hold about one group. ``is_kept``: in the new protocol a member whose partitions stay tells nothing
    of a new epoch, while a classic one joins every generation. ``left_at``: when members said that they left.
    ``instances``: static members' ``group.instance.id`` by member id."""

    group_id: str
    is_kept: bool = False
    rows: dict[int, list[MemberRebalance]] = field(default_factory=dict)
    by_broker: dict[int, list[Event]] = field(default_factory=dict)
    named: dict[int, dict[str, list[str]]] = field(default_factory=dict)
    left_at: dict[str, datetime] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)


def generations(found: list[ConsumerInstance], parts: list[MemberRebalance], events: list[Event]) -> list[Rebalance]:
    """One row per group and generation, in order."""
    groups: dict[str, _Group] = {}

    def of(group_id: str) -> _Group:
        return groups.setdefault(group_id, _Group(group_id))

    for row in parts:
        if row.group_id and row.generation is not None:
            of(row.group_id).rows.setdefault(row.generation, []).append(row)
    for event in events:
        if event["kind"] == "assignment_computed" and event["group_id"] and event["generation"] is not None:
            _take_named(of(event["group_id"]), event)
        elif event["group_instance_id"] and event["group_id"] and event["member_id"]:
            of(event["group_id"]).instances[event["member_id"]] = event["group_instance_id"]
    for instance in found:
        if group_id := instance.said("group_id"):
            _take_instance(of(group_id), instance)
    _take_brokers(of, events)
    for group in groups.values():
        group.rows = _with_what_they_lead_to(group.rows) if group.is_kept else group.rows
    return [row for group_id in sorted(groups) for row in _of_group(groups[group_id])]


def _take_named(group: _Group, event: Event) -> None:
    """The whole group's assignment, where a leader ≥ 2.4 printed it."""
    members = {m: [p for p in ps.split(", ") if p] for m, ps in _ASSIGNMENT.findall(event["text"])}
    if members:
        group.named[event["generation"]] = members


def _take_instance(group: _Group, instance: ConsumerInstance) -> None:
    group.is_kept |= any(event["kind"] == "reconciling" for event in instance.events)
    times = [_at(event) for event in instance.events if event["kind"] in ("leaving", "left")]
    last = max((at for at in times if at is not None), default=None)
    if instance.member_id is not None and last is not None:
        group.left_at[instance.member_id] = last


def _take_brokers(of: Any, events: Iterable[Event]) -> None:
    """A broker's line about a generation; of the new protocol it names who comes and goes before it names the epoch."""
    waiting: dict[str, list[Event]] = {}
    for event in events:
        if event["source"] != "broker" or not event["group_id"]:
            continue
        group, generation = of(event["group_id"]), _leads_to(event)
        if generation is None:
            waiting.setdefault(group.group_id, []).append(event)
            continue
        told = group.by_broker.setdefault(generation, [])
        told.append(event)
        group.is_kept |= event["kind"] == "epoch_bumped"
        # Without members of the new protocol its group is converted back, and goes on with a generation.
        if group.is_kept and event["kind"] in ("epoch_bumped", "group_rebalancing"):
            told += _news(waiting.pop(group.group_id, []))


def _news(said: list[Event]) -> list[Event]:
    """A joining leads to an epoch at once. Else it leads to none: a classic member joins to hear of its partitions."""
    return [event for event in said[:-1] if event["kind"] != "member_joining"] + said[-1:]


def _leads_to(event: Event) -> int | None:
    """The generation a broker's line is about; it names the old one when a rebalance begins."""
    generation: int | None = event["generation"]
    if generation is None:
        return None
    return generation + 1 if event["kind"] == "group_rebalancing" else generation


def _of_group(group: _Group) -> list[Rebalance]:
    found: list[Rebalance] = []
    holders: Owners = {}
    owners: Owners = {}
    for generation in sorted({*group.rows, *group.by_broker}):
        before = found[-1] if found and found[-1].generation == generation - 1 else None
        rows, whole = group.rows.get(generation, []), group.named.get(generation, {})
        gone = _gone(group, generation) | _gone_by_word(group, generation)
        kept = {p: member for p, member in holders.items() if member not in gone} if group.is_kept else {}
        holders = _owners(kept, rows) | {p: member for member, ps in whole.items() for p in ps}
        found.append(_generation(group, generation, before, owners, holders))
        owners = owners | holders if group.is_kept else holders or owners
    return found


def _with_what_they_lead_to(rows: dict[int, list[MemberRebalance]]) -> dict[int, list[MemberRebalance]]:
    """A member of the new protocol gives partitions up in its old epoch: the next one's rebalance asks for them."""
    found: dict[int, list[MemberRebalance]] = {}
    last: dict[str, MemberRebalance] = {}
    for generation in sorted(rows):
        for row in rows[generation]:
            before = last.get(_id(row))
            is_same = before is not None and before.generation == generation
            gives_up = before is not None and is_same and set(row.owned or ()) < set(before.owned or ())
            found.setdefault(generation + gives_up, []).append(row)
            last[_id(row)] = row
    return found


def _owners(holders: Owners, rows: list[MemberRebalance]) -> Owners:
    """What a member owns last is all it owns."""
    for row in rows:
        if row.owned is not None:
            holders = {p: member for p, member in holders.items() if member != _id(row)}
            holders |= dict.fromkeys(row.owned, _id(row))
    return holders


def _gone(group: _Group, generation: int) -> set[str]:
    """Who is gone by the broker's word."""
    told = group.by_broker.get(generation, [])
    gone = {event["member_id"] for event in told if event["kind"] in _LEAVINGS and event["member_id"]}
    for event in told:
        if event["kind"] == "group_rebalancing":
            gone |= {m for found in _REMOVED.findall(event["text"]) for part in found if part for m in part.split(", ")}
    return gone


def _gone_by_word(group: _Group, generation: int) -> set[str]:
    ended = max(_times(group, generation, group.rows.get(generation, []))[1], default=None)
    return {member for member, at in group.left_at.items() if ended is not None and at <= ended}


def _restarted(group: _Group, generation: int) -> tuple[set[str], list[MemberRebalance]]:
    """A static member that is restarted comes back into the same generation, under another member id: the ids it had
    before, and the rebalances without its ways back."""
    rows = sorted(group.rows.get(generation, []), key=lambda row: (row.started_at is None, row.started_at))
    now: dict[str, str] = {}
    replaced, heirs, first = set[str](), set[str](), []
    for row in rows:
        member, instance = _id(row), group.instances.get(_id(row))
        if instance is not None:
            before, now[instance] = now.get(instance, member), member
            if before != member:
                replaced.add(before)
                heirs.add(member)
        if member not in heirs:
            first.append(row)
    return replaced, first


def _times(group: _Group, generation: int, rows: list[MemberRebalance]) -> tuple[list[datetime], list[datetime]]:
    """All that began, all that ended."""
    told = [at for event in group.by_broker.get(generation, []) if (at := _at(event)) is not None]
    starts = [row.started_at for row in rows if row.started_at is not None]
    ends = [row.ended_at for row in rows if row.ended_at is not None]
    return starts + told, ends + told


def _generation(
    group: _Group, generation: int, before: Rebalance | None, owned_before: Owners, owned: Owners
) -> Rebalance:
    rows, told = group.rows.get(generation, []), group.by_broker.get(generation, [])
    whole = group.named.get(generation, {})
    replaced, first = _restarted(group, generation)
    seen = {_id(row) for row in rows} | set(whole) | (set(owned.values()) if group.is_kept else set())
    seen -= replaced
    started, ended = (limit(times, default=None) for limit, times in zip((min, max), _times(group, generation, first)))
    leader = next((row.leader_id for row in rows if row.leader_id), None)
    leader = leader or next((e["leader_id"] for e in told if e["leader_id"]), None)
    joins = sorted((row.joined_at, _id(row)) for row in first if row.joined_at)
    moved, kept = moved_and_kept(owned_before, owned)
    said = [row.reason for row in rows if row.reason] + [e["reason"] for e in told if e["reason"]]
    return Rebalance(
        group_id=group.group_id,
        generation=generation,
        is_epoch=group.is_kept or any(row.is_epoch for row in rows),
        is_utc=all(row.is_utc for row in rows) and are_utc(told),
        started_at=started,
        ended_at=ended,
        duration_ms=None if started is None or ended is None else round((ended - started).total_seconds() * 1000),
        leader_id=leader,
        assignor=next((row.assignor for row in rows if row.assignor), None),
        coordinator=next((row.coordinator for row in rows if row.coordinator), None),
        members=tuple(sorted(seen)),
        joined=None if before is None else tuple(sorted(seen - set(before.members))),
        left=None if before is None else tuple(sorted(_left(group, before, seen, generation))),
        members_without_log=tuple(sorted({*whole, *([leader] if leader else [])} - {_id(row) for row in rows})),
        last_joiner=joins[-1][1] if len(joins) > 1 else None,
        join_spread_ms=round((joins[-1][0] - joins[0][0]).total_seconds() * 1000) if len(joins) > 1 else None,
        moved=moved,
        kept=kept,
        partitions_without_known_owner=tuple(sorted(set(owned_before) - set(owned))) if rows else (),
        reasons=tuple(dict.fromkeys(said)),
    )


def moved_and_kept(
    owned_before: Mapping[str, str], owned: Mapping[str, str]
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Partitions of both (→ member) whose owner changed, and those whose didn't; None: none is in both."""
    both = sorted(owned_before.keys() & owned.keys())
    if not both:
        return None, None
    moved = tuple(p for p in both if owned_before[p] != owned[p])
    return moved, tuple(p for p in both if owned_before[p] == owned[p])


def _left(group: _Group, before: Rebalance, seen: set[str], generation: int) -> set[str]:
    """Gone for sure, by the broker's word, by its own, or not in a leader's list of all; silence is no leaving."""
    missing = set(before.members) - seen
    said = missing if generation in group.named else missing & _gone_by_word(group, generation)
    return said | _gone(group, generation) - seen


def _id(row: MemberRebalance) -> str:
    return row.member_id or row.consumer


def _at(event: Event) -> datetime | None:
    return datetime_of(time_of(event))
