"""A group's members, as the log of its coordinator names them: one by one, as they come and go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kit.rebalances.analyze.consumer_instances import Event

_COUNT = re.compile(r"with (\d+) members|The group has (\d+) members")
_TARGET = re.compile(r"([^\s{},=]+)=(?:Member)?Assignment\(")
_IS_WHOLE = re.compile(r"assignor in \d+ms: \{.*\)\}\.")
_ARRIVES = re.compile(r"joins the (?:consumer|share|streams) group")


def arrived(event: Event) -> str | None:
    """The member of the new protocol that joins by this line; a classic one only asks to."""
    is_arrival = event["kind"] == "member_joining" and _ARRIVES.search(event["text"])
    return event["member_id"] if is_arrival else None


@dataclass
class BrokerMembers:
    """Attributes:
    seen: generation → members that came before it, and are not known to have gone.
    counts: generation → how many members it has.
    leaders: generation → who leads it.
    """

    seen: dict[int, set[str]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    leaders: dict[int, str] = field(default_factory=dict)
    _now: set[str] = field(default_factory=set)

    def take(self, event: Event, removed: set[str]) -> None:
        """One line of the coordinator, in order; ``removed``: members that are gone by it."""
        number: int | None = event["generation"]
        self._now -= removed
        if member := arrived(event):
            self._now.add(member)
        elif event["kind"] == "epoch_bumped" and number is not None:
            self.seen[number] = set(self._now)
        elif event["kind"] == "target_computed" and number is not None:
            self._take_target(event, number)
        elif event["kind"] == "group_loaded" and event["member_id"] and number is not None:
            self.seen.setdefault(number, set()).add(event["member_id"])
        if event["kind"] == "group_rebalancing":
            self._take_reason(event, number)
        elif event["kind"] == "group_empty":
            self._now = set()
        if number is None or event["kind"] == "group_rebalancing":
            return
        if event["leader_id"]:
            self.leaders[number] = event["leader_id"]
            self._was_there(event["leader_id"], number)
        if count := _COUNT.search(event["text"]):
            self.counts[number] = int(count[1] or count[2])
        if event["kind"] == "group_empty":
            self.counts[number] = 0
        if event["kind"] == "group_stabilized":
            self._close(number)

    def _take_target(self, event: Event, number: int) -> None:
        """Some versions list all members, each with what it gets; a streams group's epoch may be raised silently."""
        listed = set(_TARGET.findall(event["text"]))
        if listed and _IS_WHOLE.search(event["text"]):
            self._now, self.counts[number] = listed, len(listed)
        self._now |= listed
        if listed:
            self.seen[number] = set(self._now)
        self.seen.setdefault(number, set(self._now))

    def _take_reason(self, event: Event, number: int | None) -> None:
        leader = event["leader_id"]
        if leader and number is not None:
            self.leaders[number] = leader
            self.leaders[number + 1] = leader
            self._was_there(leader, number)
        if event["member_id"]:
            self._now.add(event["member_id"])
            if "Updating metadata for member" in event["text"] and number is not None:
                self._was_there(event["member_id"], number)

    def _was_there(self, member: str, number: int) -> None:
        """It did not come now: the log begins later than it did."""
        self._now.add(member)
        for each in (number - 1, number):
            if each in self.seen and len(self.seen[each]) < self.counts.get(each, 0):
                self.seen[each].add(member)

    def _close(self, number: int) -> None:
        if len(self._now) > self.counts.get(number, len(self._now)):  # a member left without a line
            self._now = {self.leaders[number]} if number in self.leaders else set()
        self.seen[number] = set(self._now)
