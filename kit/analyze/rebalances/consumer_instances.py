"""Which consumer a log line is of, and each consumer's way through its rebalances.

Old clients print neither client nor member in most lines, and several consumers may write into one file: who a line is
of follows from what was said before it. That is a fold over rows in order, so it runs on the collected event table
(small: heartbeats and commits that went well are left out first), not on Spark.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Event = Mapping[str, Any]

QUIET = ("heartbeat_ok", "heartbeat_sent", "commit_ok")
"""Kinds of events that say that nothing happened."""
_LEFT = ("leaving", "left", "lost", "lost_all", "member_reset", "poll_timeout", "session_timeout", "member_fenced")
_STARTS = ("joining", "join_requested", "rebalance_begun", "reconciling")
_BEFORE = (
    "coordinator_query",
    "coordinator_found",
    "revoked",
    "released",
    "rebalancing",
    "join_reason",
    "subscribed",
)
_FIRST = ("metadata", "subscribed", "coordinator_query", "coordinator_failed")
"""What a client that starts may say before its first request for metadata is sent."""
_ENDS = ("assigned", "group_assignment", "rebalance_ended")
_TARGET = re.compile(r"transitioned from \w+ to (\w+)")
_ACKNOWLEDGES = re.compile(r'current assignment "(?!NULL")')
_REACHED = ("ACKNOWLEDGING", "STABLE")
"""A Java member of the new protocol names its states; one without a listener tells nothing else of an assignment."""
_THROWN_OUT = ("heartbeat_failed", *_LEFT)
_FAILURES = ("join_failed", "sync_failed", "rebalance_failed", "reconcile_failed")
_POSITIONS = ("offset_found", "offset_reset")
_REASONS = ("join_reason", "rebalancing", "heartbeat_failed", "poll_timeout", "session_timeout", "lost_all", "leaving")


@dataclass
class RebalanceAttempt:
    """One way from the first sign of a rebalance to its end; ``at``: the first time of each kind of event, in µs."""

    generation: int | None = None
    events: list[Event] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    is_done: bool = False
    done_at: int | None = None

    def take(self, event: Event) -> None:
        self.events.append(event)
        at = time_of(event)
        if at is not None:
            self.at.setdefault(event["kind"], at)
        if event["generation"] is not None and event["kind"] not in ("heartbeat_failed", "commit_failed"):
            self.generation = event["generation"]
        if not self.is_done and (event["kind"] in _ENDS or state_of(event) in _REACHED):
            self.is_done, self.done_at = True, at

    def first(self, *kinds: str) -> int | None:
        """When the first of the events of these kinds was."""
        times = [self.at[kind] for kind in kinds if kind in self.at]
        return min(times) if times else None

    def all_of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event["kind"] in kinds]

    def said(self, name: str) -> Any:
        """The last value an event gave for that column."""
        return next((event[name] for event in reversed(self.events) if event[name] is not None), None)


@dataclass
class ConsumerInstance:
    """One consumer from its first line to its last: a process, or a thread of one."""

    stream: tuple[Any, ...]
    number: int
    attempts: list[RebalanceAttempt] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    member_id: str | None = None
    epoch: int | None = None
    has_left: bool = False

    @property
    def name(self) -> str:
        """Its instance, client or member id, or its file; with a number where that would name two."""
        ids = [self.said("group_instance_id"), self.said("client_id"), self.said("member_id"), self.said("origin")]
        known = next((each for each in ids if each), str(self.stream[0]).rsplit("/", 1)[-1])
        return known if self.number == 1 else f"{known} (#{self.number})"

    @property
    def has_epochs(self) -> bool:
        """Whether it is a member of KIP-848's protocol: what it calls a generation is an epoch."""
        return self.epoch is not None or any(event["kind"] == "reconciling" for event in self.events)

    def said(self, name: str) -> Any:
        return next((event[name] for event in self.events if event[name] is not None), None)

    def take(self, event: Event) -> None:
        kind = event["kind"]
        if kind in QUIET:
            self._take_beat(event)
            return
        self.events.append(event)
        if event["member_id"] and kind != "assignment_computed":
            self.member_id, self.has_left = event["member_id"], False
        self.has_left |= kind in _LEFT
        if not self.attempts or self._begins_another(event):
            self.attempts.append(RebalanceAttempt(self.epoch))
        self.attempts[-1].take(event)

    def _take_beat(self, event: Event) -> None:
        """librdkafka tells the new protocol's epoch in heartbeats alone; one with an assignment acknowledges it."""
        self.epoch = event["generation"]
        if self.attempts and _ACKNOWLEDGES.search(event["text"]):
            self.attempts[-1].generation = self.epoch

    def _begins_another(self, event: Event) -> bool:
        attempt, state = self.attempts[-1], state_of(event)
        starts = event["kind"] in (*_STARTS, *_BEFORE, *_THROWN_OUT) or (state is not None and state not in _REACHED)
        is_stale = attempt.is_done or bool(attempt.all_of(*_FAILURES) and event["kind"] in _STARTS)
        return is_stale and starts


def state_of(event: Event) -> str | None:
    """The state that a Java member of the new protocol goes to."""
    found = _TARGET.search(event["text"]) if event["kind"] == "state_change" else None
    return found and found.group(1)


def time_of(event: Event) -> int | None:
    """µs since 1970, in UTC where that is known, else as printed."""
    at = event["observed_at"]
    return event["local_at"] if at is None else int(at.timestamp() * 1_000_000)


def datetime_of(at_us: int | None) -> datetime | None:
    return None if at_us is None else datetime.fromtimestamp(at_us / 1_000_000, UTC)


def are_utc(events: Iterable[Event]) -> bool:
    """Whether no event has a time of an unknown zone."""
    return all(event["observed_at"] is not None or event["local_at"] is None for event in events)


def consumer_instances(events: Iterable[Event]) -> list[ConsumerInstance]:
    """The consumers, in the order of their first lines; brokers' lines are of none."""
    mine = [event for event in events if event["source"] != "broker"]
    alone = _alone(mine)
    found: dict[tuple[Any, ...], list[ConsumerInstance]] = {}
    order: list[ConsumerInstance] = []
    for event in mine:
        stream = stream_of(event)
        if stream[2] is None:
            stream = (*stream[:2], alone.get(stream[:2]))
        known = found.setdefault(stream, [])
        if not known or _is_another(known[-1], event):
            known.append(ConsumerInstance(stream, len(known) + 1))
            order.append(known[-1])
        known[-1].take(event)
    return order


def _alone(events: list[Event]) -> dict[tuple[Any, ...], Any]:
    """File and origin → the one consumer that names itself there: clients ≥ 3.7 leave their name out here and there."""
    names: dict[tuple[Any, ...], set[Any]] = {}
    for event in events:
        *place, name = stream_of(event)
        if name is not None:
            names.setdefault(tuple(place), set()).add(name)
    return {place: known.pop() for place, known in names.items() if len(known) == 1}


def stream_of(event: Event) -> tuple[Any, ...]:
    """Whose lines these are as far as the line says: new clients name themselves, old ones only their file."""
    named = event["source"] == "librdkafka" or event["text"].find("[Consumer ") >= 0
    if named:
        return (event["file"], event["origin"], event["group_instance_id"] or event["client_id"], event["group_id"])[:3]
    if event["source"] == "zookeeper":
        return (event["file"], event["origin"], event["member_id"])
    return (event["file"], event["origin"], None)


def _is_another(instance: ConsumerInstance, event: Event) -> bool:
    """Whether a line of an old client shows that another consumer writes now, or the same anew after a restart."""
    if instance.stream[2] is not None:
        return False
    text, kind = event["text"], event["kind"]
    if kind == "metadata" and "correlation_id=1," in text:
        return any(each["kind"] not in _FIRST for each in instance.events)
    if instance.member_id is None or instance.has_left:
        return False
    if kind == "join_requested" and "member_id=," in text:
        return not _is_before_joining(instance)
    return kind == "joined" and event["member_id"] not in (None, instance.member_id)


def _is_before_joining(instance: ConsumerInstance) -> bool:
    return not any(event["kind"] == "joined" for event in instance.events)


def reasons(attempt: RebalanceAttempt) -> list[str]:
    """Why, in the log's own words, best first."""
    found = [event for kind in _REASONS for event in attempt.all_of(kind)]
    return list(dict.fromkeys(event["reason"] or event["kind"].replace("_", " ") for event in found))


def positions(attempt: RebalanceAttempt) -> list[str]:
    return [
        f"{partition}@{event['offset']}"
        for event in attempt.all_of(*_POSITIONS)
        for partition in event["partitions"] or ()
        if event["offset"] is not None
    ]
