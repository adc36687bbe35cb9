"""KIP-848 groups by the logs of their members and by the coordinators' topic: where they differ.

A member's log shows its epoch and its partitions after each reconciliation; the topic has each that the coordinator
stored, as far as it isn't compacted away. A member needn't hear of all: it goes straight to the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import member_rebalances
from kit.rebalances.analyze.epochs import by_group, epoch_rebalances
from kit.rebalances.analyze.findings import listed
from kit.tables.rebalances import LogFinding

Row = dict[str, Any]
_BY_ID = re.compile(r"[\w-]{22}-\d+", re.ASCII)
"""A partition of a topic that was deleted since: only its id is known."""


@dataclass
class _Member:
    """Its current assignments in the topic, in order. ``is_back``: it left, or was thrown out, and came again."""

    records: list[Row] = field(default_factory=list)
    is_gone: bool = False
    is_back: bool = False

    def take(self, row: Row) -> None:
        self.is_back |= self.is_gone and not row["is_tombstone"]
        self.is_gone = row["is_tombstone"]
        if not row["is_tombstone"]:
            self.records.append(row)

    def is_whole(self, epoch: int) -> bool:
        """Return whether all of that epoch is there: compaction leaves out what is before the first record."""
        if not self.records:
            return False
        first = self.records[0]
        return bool(epoch > first["epoch"] or (epoch == first["epoch"] and first["previous_epoch"] <= 0))

    def of(self, epoch: int) -> list[list[str]]:
        return [row["assigned"] for row in self.records if row["epoch"] == epoch]


@dataclass
class _Stored:
    """One group in the topic. ``members_of``: by epoch of the target assignment, in order."""

    epochs: set[int]
    members: dict[str, _Member]
    members_of: dict[int, list[str]]

    def was_without(self, member: str, epoch: int) -> bool:
        """Return whether nothing in the topic is of that member, though all of that epoch is there."""
        first = next(iter(self.members_of), None)
        is_whole = epoch in self.members_of and (epoch != first or first == 1)
        return is_whole and member not in self.members and member not in self.members_of[epoch]


def epoch_differences(events: IntoDataFrame, epochs: IntoDataFrame) -> list[LogFinding]:
    """``tables.LOG_EVENTS`` against ``tables.GROUP_EPOCHS``, of groups that are in both.

    ``not_stored``: a log has an epoch that the group, or the member, does not have in the topic.
    ``unknown_member``: a member has partitions by its log and is in no record. ``other_assignment``: its partitions are
    none of those stored for it in that epoch. ``not_logged``: partitions were taken from a member and given back, and
    its log, which has epochs before and after, does not show it. Members of the classic protocol in such a group
    are compared in the epochs that the topic has: other generations are of a time before or after. A group of which a
    record can't be decoded is not compared.
    """
    logged = _logged(events)
    members_of: dict[str, dict[int, list[str]]] = {}
    for row in epoch_rebalances(epochs).iter_rows(named=True):
        members_of.setdefault(row["group_id"], {})[row["generation"]] = row["members"]
    findings: list[LogFinding] = []
    for rows in by_group(epochs):
        group_id = rows[0]["group_id"]
        if group_id in logged and all(row["error"] is None for row in rows):
            findings += _of_group(logged[group_id], _stored(rows, members_of.get(group_id, {})))
    return findings


def _logged(events: IntoDataFrame) -> dict[str, dict[str, list[Row]]]:
    """Group → member → its rebalances, in order."""
    members: dict[str, dict[str, list[Row]]] = {}
    for row in member_rebalances(events).iter_rows(named=True):
        if row["group_id"] is not None and row["member_id"] is not None and row["source"] != "zookeeper":
            members.setdefault(row["group_id"], {}).setdefault(row["member_id"], []).append(row)
    return members


def _stored(rows: list[Row], members_of: dict[int, list[str]]) -> _Stored:
    members: dict[str, _Member] = {}
    for row in rows:
        if row["member_id"] is not None:
            member = members.setdefault(row["member_id"], _Member())
            if row["kind"] == "current_assignment":
                member.take(row)
    return _Stored({row["epoch"] for row in rows} - {None}, members, members_of)


def _of_group(logged: dict[str, list[Row]], stored: _Stored) -> Iterator[LogFinding]:
    unstored: dict[int, LogFinding] = {}
    for member_id, rows in sorted(logged.items()):
        member = stored.members.get(member_id, _Member())
        last_of_epoch = {row["generation"]: row for row in rows if _is_logged(row)}
        for epoch, row in last_of_epoch.items():
            is_stored, is_classic = epoch in stored.epochs, row["joined_at"] is not None
            if not row["owned"] or (is_classic and not is_stored):
                continue
            if not is_stored:
                text = "is in the logs, but not in the topic: its record was compacted, or never stored."
                unstored.setdefault(epoch, _finding(row, "not_stored", epoch, text, None))
            elif stored.was_without(member_id, epoch):
                text = f"has no member {member_id} in the topic, although the member's log shows this membership."
                yield _finding(row, "unknown_member", epoch, text, member_id)
            elif member.is_whole(epoch):
                yield from _other(row, member.of(epoch))
        if not member.is_back:
            yield from _unheard(rows, member)
    yield from unstored.values()


def _other(row: Row, assigned: list[list[str]]) -> Iterator[LogFinding]:
    member_id, epoch, owned = row["member_id"], row["generation"], listed(sorted(row["owned"]))
    if not assigned:
        text = f"of {member_id} is in the member's log, with {owned}, but not in the topic."
        yield _finding(row, "not_stored", epoch, text, member_id)
    elif _are_named(assigned) and sorted(row["owned"]) not in assigned:
        text = f"gives {member_id} {listed(assigned[-1])} in the topic, but {owned} in the member's log."
        yield _finding(row, "other_assignment", epoch, text, member_id)


def _unheard(rows: list[Row], member: _Member) -> Iterator[LogFinding]:
    """A member that has a partition before and after, and not meanwhile, must have given it up and taken it again."""
    for before, after in pairwise(rows):
        if not (_is_logged(before) and _is_logged(after)):
            continue
        kept = set(before["owned"]) & set(after["owned"])
        between = [row for row in member.records if before["generation"] < row["epoch"] < after["generation"]]
        gaps = {row["epoch"]: row for row in between if row["assigned"] and kept - set(row["assigned"])}
        for epoch, row in gaps.items():
            if _are_named([row["assigned"]]):
                text = (
                    f"gives {row['member_id']} {listed(row['assigned'])} in the topic; the member's log "
                    f"shows no such assignment "
                )
                text += f"between epochs {before['generation']} and {after['generation']}."
                at = row["written_at"]
                yield LogFinding(row["group_id"], "not_logged", row["member_id"], True, at, _sentence(row, epoch, text))


def _is_logged(row: Row) -> bool:
    return row["outcome"] == "assigned" and row["generation"] is not None and row["owned"] is not None


def _are_named(assignments: list[list[str]]) -> bool:
    return not any(_BY_ID.fullmatch(partition) for each in assignments for partition in each)


def _finding(row: Row, kind: str, epoch: int, text: str, member_id: str | None) -> LogFinding:
    at = row["ended_at"] or row["started_at"]
    return LogFinding(row["group_id"], kind, member_id, row["is_utc"], at, _sentence(row, epoch, text))


def _sentence(row: Row, epoch: int, text: str) -> str:
    return f"Group {row['group_id']}: epoch {epoch} {text}"
