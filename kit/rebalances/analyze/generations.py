"""A group's logs, replayed generation by generation: who owned what before and after, and who was gone."""

from __future__ import annotations

from kit.rebalances.analyze.generation_row import generation_row
from kit.rebalances.analyze.group_logs import FoldedLogs, GroupLogs, Owners, collect, member_of
from kit.tables.rebalances import Rebalance


def generations(logs: FoldedLogs) -> list[Rebalance]:
    """One row per group, life and generation, in order."""
    return [row for group in collect(logs) for row in replayed(group)]


def replayed(group: GroupLogs) -> list[Rebalance]:
    """The rows of one life of a group, in order."""
    rows: list[Rebalance] = []
    holders: Owners = {}
    owners: Owners = {}
    for number in group.numbers:
        before = rows[-1] if rows and rows[-1].generation == number - 1 else None
        if group.has_epochs:  # The log may begin later than a member owned what it gives up.
            owners = {p: member_of(row) for row in group.rows.get(number, []) for p in row.revoked or ()} | dict(owners)
        holders = _holders_after(group, number, holders)
        rows.append(generation_row(group, number, before, owners, holders))
        owners = {**owners, **holders} if group.has_epochs else holders or owners
    return rows


def _holders_after(group: GroupLogs, number: int, holders: Owners) -> Owners:
    """Return who has what: in the new protocol a member keeps what no log reports that it lost."""
    gone = group.removed(number) | group.resigned(number)
    after = {p: member for p, member in holders.items() if member not in gone} if group.has_epochs else {}
    for row in group.rows.get(number, []):
        if row.owned is not None:  # The last list is all that the member owns.
            after = {p: member for p, member in after.items() if member != member_of(row)}
            after |= dict.fromkeys(row.owned, member_of(row))
    return after | {p: member for member, ps in group.assignments.get(number, {}).items() for p in ps or ()}
