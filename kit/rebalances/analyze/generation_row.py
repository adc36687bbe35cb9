"""One generation of one group → its row of ``tables.REBALANCES``."""

from __future__ import annotations

from datetime import datetime

from kit.rebalances.analyze.broker_members import arrived
from kit.rebalances.analyze.consumer_instances import are_utc
from kit.rebalances.analyze.group_logs import GroupLogs, Owners, member_of
from kit.tables.rebalances import MemberRebalance, Rebalance


def generation_row(
    group: GroupLogs, number: int, before: Rebalance | None, owned_before: Owners, owned: Owners
) -> Rebalance:
    """``before``: the row of the generation before, if the logs have it; owners are by partition."""
    rows, broker_events = group.rows.get(number, []), group.broker_events.get(number, [])
    assignment = group.assignments.get(number, {})
    replaced, first = _without_restarts(group, rows)
    named = {member_of(row) for row in rows if row.member_id or not assignment}
    members = named | set(assignment) | (set(owned.values()) if group.has_epochs else set())
    members = (members | group.by_broker.seen.get(number, set())) - replaced
    n_members = group.by_broker.counts.get(number, len(assignment) or None)
    known_before = set() if before is None else set(before.members or ())
    is_told = bool(members) or n_members == 0
    starts, ends, has_one_clock = group.times(number, first)
    started, ended = min(starts, default=None), max(ends, default=None)
    leaders = [*(row.leader_id for row in rows), group.by_broker.leaders.get(number)]
    leaders += [member_of(row) for row in rows if row.is_leader]
    leader = next(filter(None, leaders), None)
    assignors = [*(row.assignor for row in rows), *(event["assignor"] for event in broker_events)]
    left = _left(group, known_before, members, number)
    joined = set(filter(None, map(arrived, broker_events))) | (members - known_before if before else set())
    last_joiner, join_spread_ms = _last_joiner(first) if has_one_clock else (None, None)
    moved, kept = moved_and_kept(owned_before, owned)
    reasons = [row.reason for row in rows if row.reason] + [e["reason"] for e in broker_events if e["reason"]]
    return Rebalance(
        group_id=group.group_id,
        life=group.life,
        generation=number,
        is_epoch=group.has_epochs or any(row.is_epoch for row in rows),
        is_utc=all(row.is_utc for row in rows) and are_utc(broker_events),
        started_at=started,
        ended_at=ended,
        duration_ms=None if started is None or ended is None or not has_one_clock else _ms(started, ended),
        leader_id=leader,
        assignor=next((each for each in assignors if each), None),
        coordinator=next((row.coordinator for row in rows if row.coordinator), None),
        members=tuple(sorted(members)) if is_told else None,
        n_members=n_members,
        joined=tuple(sorted(joined)) if joined or (before and is_told) else None,
        left=tuple(sorted(left)) if left or before else None,
        members_without_log=_without_log(group, rows, {*assignment, *filter(None, [leader])}),
        last_joiner=last_joiner,
        join_spread_ms=join_spread_ms,
        moved=moved,
        kept=kept,
        partitions_without_known_owner=tuple(sorted(set(owned_before) - set(owned))) if rows else (),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _without_log(group: GroupLogs, rows: list[MemberRebalance], named: set[str]) -> tuple[str, ...]:
    """Return the members that the leader or a broker named and whose log is missing; none where no member's log was
    given at all.
    """
    return tuple(sorted(named - {member_of(row) for row in rows})) if group.rows else ()


def moved_and_kept(owned_before: Owners, owned: Owners) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The partitions of both whose owner changed, and those whose owner didn't; None: no partition is in both.

    >>> moved_and_kept({"t-0": "a", "t-1": "a", "t-2": "a"}, {"t-0": "a", "t-1": "b"})
    (('t-1',), ('t-0',))
    """
    both = sorted(owned_before.keys() & owned.keys())
    if not both:
        return None, None
    moved = tuple(p for p in both if owned_before[p] != owned[p])
    return moved, tuple(p for p in both if owned_before[p] == owned[p])


def _without_restarts(group: GroupLogs, rows: list[MemberRebalance]) -> tuple[set[str], list[MemberRebalance]]:
    """A static member that is restarted comes back into the same generation, under another member id: the ids it had
    before, and the rebalances without its returns."""
    newest: dict[str, str] = {}
    replaced, heirs, first = set[str](), set[str](), []
    for row in sorted(rows, key=lambda row: (row.started_at is None, row.started_at)):
        member, instance_id = member_of(row), group.instance_ids.get(member_of(row))
        if instance_id is not None:
            before, newest[instance_id] = newest.get(instance_id, member), member
            if before != member:
                replaced.add(before)
                heirs.add(member)
        if member not in heirs:
            first.append(row)
    return replaced, first


def _last_joiner(rows: list[MemberRebalance]) -> tuple[str | None, int | None]:
    """The last member to join, and how long after the first; unknown where fewer than two joins are in the logs."""
    joins = sorted((row.joined_at, member_of(row)) for row in rows if row.joined_at)
    if len(joins) < 2:
        return None, None
    return joins[-1][1], _ms(joins[0][0], joins[-1][0])


def _left(group: GroupLogs, known_before: set[str], members: set[str], number: int) -> set[str]:
    """Gone for sure: by the broker's word, by their own, or by a leader's list of all. Silence proves nothing."""
    missing = known_before - members
    known = missing if number in group.assignments else missing & group.resigned(number)
    return known | group.removed(number) - members


def _ms(since: datetime, until: datetime) -> int:
    return round((until - since).total_seconds() * 1000)
