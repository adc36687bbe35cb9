"""Everything that the logs of members and brokers hold about one group, by generation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kit.analyze.rebalances.broker_members import BrokerMembers
from kit.analyze.rebalances.consumer_instances import ConsumerInstance, Event, RebalanceAttempt, datetime_of, time_of
from kit.tables.rebalances import MemberRebalance

Owners = Mapping[str, str]
"""Partition → member."""
_ASSIGNMENT = re.compile(r"([^\s{},=]+)=Assignment\(partitions=\[([^\]]*)\]")
_LISTED = re.compile(
    r"([^\s{},=]+)=(?:[\w.]+\$)?(?:Subscription|Assignment)[@(]"  # what a leader works on, and what it comes to
    r"|\{member_id=([^,}]+),member_metadata|JoinGroupResponseMember\(memberId='([^']+)'"  # what it was answered
)
_OF_LIBRDKAFKA = re.compile(r'Member "([^"]+)"(?: \(me\))? assigned \d+ partition')
_BY_LEADER = ("joined", "leader_assigning", "assignment_computed", "member_list")
_REMOVED = re.compile(r"[Rr]emoving member (\S+) on|`LeaveGroup` request for \(([^)]+)\)")
_EXPULSIONS = ("member_left", "member_failed", "member_fenced")
_BEGINS = ("group_rebalancing", "epoch_bumped", "group_converted", "member_joining", "member_left", "member_failed")
_OF_CLASSIC_GROUPS = ("group_rebalancing", "group_stabilized", "group_empty")
_ENDS = ("group_stabilized", "group_assigned", "group_empty", "group_failed", "target_computed", "member_assigned")
"""What brokers print while a generation is made, and when it is made: one of both alone gives no duration."""


@dataclass
class GroupLogs:
    """What the logs hold about one group.

    Attributes:
        has_epochs: its members have the new protocol. There a member whose partitions stay logs nothing of a new epoch,
            while a classic member joins every generation.
        rows: generation → its members' rebalances.
        broker_events: generation → brokers' lines about it.
        assignments: generation → the whole group's, member → partitions, where a leader printed it; None: not which.
        apart: brokers' lines that belong to no generation.
        by_broker: its members, as far as brokers name them.
        left_at: member → when it said that it left.
        instance_ids: static member → its ``group.instance.id``.
    """

    group_id: str
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

    def times(self, number: int, rows: Iterable[MemberRebalance]) -> tuple[list[datetime], list[datetime]]:
        """When the rows and the brokers' lines of that generation began, and when they ended."""
        begins, ends = (
            [at for event in self.broker_events.get(number, []) if event["kind"] in kinds and (at := _at(event))]
            for kinds in (_BEGINS, _ENDS)
        )
        begins += [row.started_at for row in rows if row.started_at and row.started_at != row.ended_at]
        return begins, ends + [row.ended_at for row in rows if row.ended_at]

    def forget_what_never_came(self) -> None:
        """A group that ends was about to rebalance: there is no such generation. Its name may be used anew."""
        last = max(self.broker_events, default=None)
        if last is not None and {event["kind"] for event in self.broker_events[last]} == {"group_rebalancing"}:
            self.apart += self.broker_events.pop(last)

    def place(self, waiting: list[Event]) -> None:
        """Lines without a generation, behind the last that has one: they belong to the rebalance that has no end."""
        last = max(self.broker_events, default=None)
        is_open = last is not None and not any(each["kind"] in _ENDS for each in self.broker_events[last])
        (self.broker_events[last] if last is not None and is_open else self.apart).extend(waiting)

    def removed(self, number: int) -> set[str]:
        """Members that are gone by the broker's word."""
        events = self.broker_events.get(number, [])
        return set[str]().union(*map(_removed_in, events))

    def resigned(self, number: int) -> set[str]:
        """Members that are gone by their own word, at the end of that generation."""
        began, ended_at = self.times(number, self.rows.get(number, []))
        ended = max(began + ended_at, default=None)
        return {member for member, at in self.left_at.items() if ended is not None and at <= ended}


def collect(
    instances: Iterable[ConsumerInstance], rows: Iterable[MemberRebalance], events: Iterable[Event]
) -> list[GroupLogs]:
    """Each group's share of the consumers, of their rebalances and of all events, by group id."""
    groups: dict[str, GroupLogs] = {}

    def of(group_id: str) -> GroupLogs:
        return groups.setdefault(group_id, GroupLogs(group_id))

    for row in rows:
        if row.group_id and row.generation is not None:
            of(row.group_id).rows.setdefault(row.generation, []).append(row)
    events = list(events)
    for event in events:
        if event["group_instance_id"] and event["group_id"] and event["member_id"]:
            of(event["group_id"]).instance_ids[event["member_id"]] = event["group_instance_id"]
    for instance in instances:
        if group_id := instance.value_of("group_id"):
            _take_instance(of(group_id), instance)
    _take_broker_events(of, events)
    for group in groups.values():
        group.rows = _with_what_they_lead_to(group.rows) if group.has_epochs else group.rows
    return [groups[group_id] for group_id in sorted(groups)]


def _take_assignments(group: GroupLogs, instance: ConsumerInstance) -> None:
    """All members and what they get, where a leader printed it; before 2.4 another line says the generation."""
    for attempt in instance.attempts:
        for event in attempt.all_of(*_BY_LEADER):
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


def _take_instance(group: GroupLogs, instance: ConsumerInstance) -> None:
    group.has_epochs |= any(event["kind"] == "reconciling" for event in instance.events)
    _take_assignments(group, instance)
    times = [_at(event) for event in instance.events if event["kind"] in ("leaving", "left")]
    last = max((at for at in times if at is not None), default=None)
    if instance.member_id is not None and last is not None:
        group.left_at[instance.member_id] = last


def _take_broker_events(of: Callable[[str], GroupLogs], events: Iterable[Event]) -> None:
    """Brokers' lines by generation; in the new protocol they name who comes and goes before they name the epoch."""
    waiting: dict[str, list[Event]] = {}
    for event in events:
        if event["source"] != "broker" or not event["group_id"]:
            continue
        group, generation = of(event["group_id"]), _leads_to(event)
        group.by_broker.take(event, _removed_in(event))
        if event["kind"] == "group_dead":
            group.forget_what_never_came()
            group.apart.append(event)
            continue
        if generation is None:
            waiting.setdefault(group.group_id, []).append(event)
            continue
        of_generation = group.broker_events.setdefault(generation, [])
        of_generation.append(event)
        group.has_epochs |= event["kind"] == "epoch_bumped"
        # A group that loses its last member of the new protocol is converted back and continues with a generation.
        changes = ("epoch_bumped", "group_rebalancing") if group.has_epochs else _OF_CLASSIC_GROUPS
        if event["kind"] in changes:
            came = waiting.pop(group.group_id, [])
            changing = _changes(came) if group.has_epochs else came
            of_generation += changing
            group.apart += [each for each in came if each not in changing]
    for group_id, remaining in waiting.items():
        of(group_id).place(remaining)


def _removed_in(event: Event) -> set[str]:
    if event["kind"] in _EXPULSIONS:
        return {event["member_id"]} - {None}
    lists = _REMOVED.findall(event["text"]) if event["kind"] == "group_rebalancing" else []
    return {member for match in lists for members in match if members for member in members.split(", ")}


def _changes(events: list[Event]) -> list[Event]:
    """A join that changes the group leads to an epoch at once. Other joins are classic members that ask for theirs."""
    return [event for event in events[:-1] if event["kind"] != "member_joining"] + events[-1:]


def _leads_to(event: Event) -> int | None:
    """The generation a broker's line is about; it names the old one when a rebalance begins."""
    generation: int | None = event["generation"]
    if generation is None:
        return None
    return generation + 1 if event["kind"] == "group_rebalancing" else generation


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
