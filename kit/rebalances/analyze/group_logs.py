"""Everything that the logs of members and brokers hold about one group, by generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.broker_members import BrokerMembers
from kit.rebalances.analyze.clocks import Clocks
from kit.rebalances.analyze.consumer_instances import (
    ConsumerInstance,
    Event,
    Place,
    RebalanceAttempt,
    datetime_of,
    leaves,
    place_of,
    time_of,
)
from kit.rebalances.analyze.lives import leads_to
from kit.tables.rebalances import MemberRebalance

Owners = Mapping[str, str]
"""Partition → member."""
_ASSIGNMENT = re.compile(r"([^\s{},=]+)=Assignment\(partitions=\[([^\]]*)\]")
_LISTED = re.compile(
    r"([^\s{},=]+)=(?:[\w.]+\$)?(?:Subscription|Assignment)[@(]"  # what a leader works on, and what it comes to
    r"|\{member_id=([^,}]+),member_metadata|JoinGroupResponseMember\(memberId='([^']+)'"  # what it was answered
)
_OF_LIBRDKAFKA = re.compile(r'Member "([^"]+)"(?: \(me\))? assigned \d+ partition')
_UUID = r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_BY_LEADER = ("joined", "leader_assigning", "assignment_computed", "member_list")
_REMOVED = re.compile(r"[Rr]emoving member (\S+) on|`LeaveGroup` request for \(([^)]+)\)")
_EXPULSIONS = ("member_left", "member_failed", "member_fenced")
_BEGINS = ("group_rebalancing", "epoch_bumped", "group_converted")
_DEPARTURES = ("member_left", "member_failed")
_OF_CLASSIC_GROUPS = ("group_rebalancing", "group_stabilized", "group_empty")
_ENDS = ("group_stabilized", "group_assigned", "group_empty", "group_failed", "target_computed", "member_assigned")
"""The lines that brokers print while a generation is made, and when it is made: one of both alone gives no duration."""
_OF_EPOCHS = ("epoch_bumped", "target_computed", "member_assigned")


@dataclass(frozen=True)
class FoldedLogs:
    """Events in order, the consumers and their rebalances; ``lives``: of brokers' lines, by their places; ``clocks``:
    of all lines; ``table``: what all was made of.
    """

    table: IntoDataFrame
    events: list[Event]
    instances: list[ConsumerInstance]
    rows: list[MemberRebalance]
    lives: Mapping[Place, int]
    clocks: Clocks


@dataclass
class GroupLogs:
    """The lines of the logs about one life of a group.

    Attributes:
        clocks: of all lines.
        has_epochs: its members have the new protocol. There a member whose partitions stay logs nothing of a new epoch,
            while a classic member joins every generation.
        rows: generation → its members' rebalances.
        broker_events: generation → brokers' lines about it.
        assignments: generation → the whole group's, member → partitions, where a leader printed it; None: not which.
        apart: brokers' lines that belong to no generation.
        by_broker: its members, as far as brokers name them.
        left_at: member → when it reported that it left.
        instance_ids: static member → its ``group.instance.id``.
    """

    group_id: str
    clocks: Clocks
    life: int = 1
    has_epochs: bool = False
    rows: dict[int, list[MemberRebalance]] = field(default_factory=dict)
    broker_events: dict[int, list[Event]] = field(default_factory=dict)
    assignments: dict[int, dict[str, list[str] | None]] = field(default_factory=dict)
    apart: list[Event] = field(default_factory=list)
    by_broker: BrokerMembers = field(default_factory=BrokerMembers)
    left_at: dict[str, datetime] = field(default_factory=dict)
    instance_ids: dict[str, str] = field(default_factory=dict)

    @property
    def numbers(self) -> list[int]:
        """The generations that any log has, in order."""
        return sorted({*self.rows, *self.broker_events})

    def times(self, number: int, rows: Iterable[MemberRebalance]) -> tuple[list[datetime], list[datetime], bool]:
        """Return when that generation began, and when it ended, and whether both are by all its lines.

        If its lines are of several clocks: by the brokers' clock, or by one of them.
        """
        events = self.broker_events.get(number, [])
        begins, ends = (
            [(self.clocks.of(event), at) for event in some if (at := _at(event))]
            for some in (filter(self._begins(events), events), (each for each in events if each["kind"] in _ENDS))
        )
        begins += [
            (self.clocks.of_row(row), row.started_at)
            for row in rows
            if row.started_at and row.started_at != row.ended_at
        ]
        ends += [(self.clocks.of_row(row), row.ended_at) for row in rows if row.ended_at]
        clocks = list(dict.fromkeys(clock for clock, _ in [*ends, *begins]))
        began, ended = ([at for clock, at in times if clock == clocks[0]] for times in (begins, ends))
        return began, ended, len(clocks) < 2

    def _begins(self, events: list[Event]) -> Callable[[Event], bool]:
        """A classic member that asks to join may only be given an id, and the group continues. That a member left is
        also printed after the rebalance for it. Both begin a rebalance only if the group rebalances for that member;
        a departure also where the log does not show for whom.
        """
        of_group = [event for event in events if event["kind"] == "group_rebalancing"]
        named = {event["member_id"] for event in of_group}.union(*map(_removed_in, of_group))

        def begins(event: Event) -> bool:
            if event["kind"] in _DEPARTURES and not of_group:
                return True
            is_of_member = event["kind"] in (*_DEPARTURES, "member_joining")
            return event["kind"] in _BEGINS or (is_of_member and (self.has_epochs or event["member_id"] in named))

        return begins

    def forget_what_never_came(self) -> None:
        """A group that ends was about to rebalance: there is no such generation. Its name may be used again."""
        last = max(self.broker_events, default=None)
        if last is not None and {event["kind"] for event in self.broker_events[last]} == {"group_rebalancing"}:
            self.apart += self.broker_events.pop(last)

    def place(self, waiting: list[Event]) -> None:
        """Lines without a generation, behind the last that has one: they belong to the rebalance that has no end."""
        last = max(self.broker_events, default=None)
        is_open = last is not None and not any(each["kind"] in _ENDS for each in self.broker_events[last])
        (self.broker_events[last] if last is not None and is_open else self.apart).extend(waiting)

    def removed(self, number: int) -> set[str]:
        """Members that are gone by the broker's word. It may be printed again behind the generation that they left."""
        found, before = (
            set[str]().union(*map(_removed_in, self.broker_events.get(each, []))) for each in (number, number - 1)
        )
        return found if self.has_epochs else found - before  # A classic member that joins again has another id.

    def resigned(self, number: int) -> set[str]:
        """Members that are gone by their own word, at the end of that generation."""
        began, finished, _ = self.times(number, self.rows.get(number, []))
        ended = max(began + finished, default=None)
        return {member for member, at in self.left_at.items() if ended is not None and at <= ended}


def collect(logs: FoldedLogs) -> list[GroupLogs]:
    """Each group's share of the consumers, of their rebalances and of all events, by group id and life."""
    groups: dict[tuple[str, int], GroupLogs] = {}

    def of(group_id: str, life: int) -> GroupLogs:
        return groups.setdefault((group_id, life), GroupLogs(group_id, logs.clocks, life))

    for row in logs.rows:
        if row.group_id and row.generation is not None:
            of(row.group_id, row.life).rows.setdefault(row.generation, []).append(row)
    for instance in logs.instances:
        if group_id := instance.value_of("group_id"):
            for life in sorted({attempt.life for attempt in instance.attempts}):
                _take_instance(of(group_id, life), instance)
    _take_broker_events(of, logs)
    instance_ids = _instance_ids(logs.events)
    for group in groups.values():
        group.instance_ids = instance_ids.get(group.group_id, {})
        group.rows = _with_what_they_lead_to(group.rows) if group.has_epochs else group.rows
    return [groups[key] for key in sorted(groups)]


def _instance_ids(events: Iterable[Event]) -> dict[str, dict[str, str]]:
    """Group → static member → its ``group.instance.id``."""
    ids: dict[str, dict[str, str]] = {}
    for event in events:
        if event["group_instance_id"] and event["group_id"] and event["member_id"]:
            ids.setdefault(event["group_id"], {})[event["member_id"]] = event["group_instance_id"]
    return ids


def _take_assignments(group: GroupLogs, instance: ConsumerInstance) -> None:
    """All members and what they get, where a leader printed it; before 2.4 another line reports the generation."""
    for attempt in instance.attempts:
        for event in attempt.all_of(*_BY_LEADER) if attempt.life == group.life else ():
            number = attempt.generation if event["generation"] is None else event["generation"]
            if number is not None and (members := _members_in(event, attempt)):
                known = group.assignments.setdefault(number, {})
                known |= {member: ps for member, ps in members.items() if ps is not None or member not in known}


def _members_in(event: Event, attempt: RebalanceAttempt) -> dict[str, list[str] | None]:
    of_one = _OF_LIBRDKAFKA.search(event["text"])
    if of_one:  # Cooperative: what is printed is the target. What others own still is held back after that.
        is_target = any("cooperative" in (each["assignor"] or "") for each in attempt.events)
        return {of_one[1]: None if is_target else event["partitions"]}
    listed = {next(filter(None, names)) for names in _LISTED.findall(event["text"])}
    partitions = {member: [p for p in ps.split(", ") if p] for member, ps in _ASSIGNMENT.findall(event["text"])}
    return {**dict.fromkeys(listed), **partitions}


def only_listed(attempt: RebalanceAttempt, client_id: str | None, owned: Iterable[str] | None) -> str | None:
    """The member id of a leader that prints it nowhere else, if one listed id alone has its name, or one of several
    alone is assigned what it owns."""
    listed: dict[str, list[str] | None] = {}
    for event in attempt.all_of(*_BY_LEADER):
        listed |= _members_in(event, attempt)
    of_client = [member for member in listed if client_id and re.fullmatch(re.escape(client_id) + _UUID, member)]
    if len(of_client) > 1 and owned is not None:
        of_client = [each for each in of_client if (ps := listed[each]) is not None and set(ps) == set(owned)]
    return of_client[0] if len(of_client) == 1 else None


def _take_instance(group: GroupLogs, instance: ConsumerInstance) -> None:
    group.has_epochs |= any(event["kind"] == "reconciling" for event in instance.events)
    _take_assignments(group, instance)
    member: str | None = None
    lives: dict[str, int] = {}
    for attempt in instance.attempts:
        for event in attempt.events:
            member = event["member_id"] or member
            if not member:
                continue
            if not leaves(event):
                lives[member] = attempt.life
            elif lives.get(member, attempt.life) == group.life and (at := _at(event)):
                group.left_at[member] = at


def _take_broker_events(of: Callable[[str, int], GroupLogs], logs: FoldedLogs) -> None:
    """Brokers' lines by generation; they may name who comes and goes before they name the number."""
    waiting: dict[str, list[Event]] = {}
    newest: dict[str, GroupLogs] = {}
    for event in logs.events:
        if event["source"] != "broker" or not (group_id := event["group_id"]):
            continue
        group = newest[group_id] = of(group_id, logs.lives[place_of(event)])
        group.by_broker.take(event, _removed_in(event))
        if event["kind"] == "group_dead":
            group.forget_what_never_came()
            group.place([*waiting.pop(group_id, []), event])
        elif (generation := leads_to(event)) is None:
            waiting.setdefault(group_id, []).append(event)
        else:
            group.broker_events.setdefault(generation, []).append(event)
            group.has_epochs |= event["kind"] in _OF_EPOCHS
            _take_changes(group, generation, event, waiting)
    for group_id, remaining in waiting.items():
        newest[group_id].place(remaining)


def _take_changes(group: GroupLogs, generation: int, event: Event, waiting: dict[str, list[Event]]) -> None:
    """Lines without a number lead to the generation of the next that ends or begins one."""
    # A group that loses its last member of the new protocol is converted back and continues with a generation.
    kinds = ("epoch_bumped", "group_rebalancing", "target_computed") if group.has_epochs else _OF_CLASSIC_GROUPS
    if event["kind"] in kinds:
        came = waiting.pop(group.group_id, [])
        changing = _changes(came) if group.has_epochs else came
        group.broker_events[generation] += changing
        group.apart += [each for each in came if each not in changing]


def _removed_in(event: Event) -> set[str]:
    if event["kind"] in _EXPULSIONS:
        return {event["member_id"]} - {None}
    lists = _REMOVED.findall(event["text"]) if event["kind"] == "group_rebalancing" else []
    named = {member for match in lists for members in match if members for member in members.split(", ")}
    return {member for member in named if not member.endswith(("...", "…"))}  # its end was left out in pasting


def _changes(events: list[Event]) -> list[Event]:
    """A join that changes the group leads to an epoch at once. Other joins are classic members that ask for theirs."""
    return [event for event in events[:-1] if event["kind"] != "member_joining"] + events[-1:]


def _with_what_they_lead_to(rows: dict[int, list[MemberRebalance]]) -> dict[int, list[MemberRebalance]]:
    """A member of the new protocol gives partitions up in its old epoch: the next epoch's rebalance asked for them."""
    moved: dict[int, list[MemberRebalance]] = {}
    last: dict[str, MemberRebalance] = {}
    for generation in sorted(rows):
        for row in rows[generation]:
            before = last.get(member_of(row))
            is_same = before is not None and before.generation == generation
            gives_up = before is not None and is_same and set(row.owned or ()) < set(before.owned or ())
            moved.setdefault(generation + gives_up, []).append(row)
            last[member_of(row)] = row
    return moved


def member_of(row: MemberRebalance) -> str:
    """Its member id, else what its log calls it."""
    return row.member_id or row.consumer


def _at(event: Event) -> datetime | None:
    return datetime_of(time_of(event))
