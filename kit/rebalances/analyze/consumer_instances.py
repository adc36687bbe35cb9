"""Find the consumer of each log line, and each consumer's way through its rebalances.

Old clients print neither client nor member in most lines, and several consumers may write into one file. Then the lines
before decide which consumer a line is of. That is a fold over rows in order, so it runs on the collected event table,
not on Spark. The table is small: heartbeats and commits that succeeded are left out first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from kit.rebalances.analyze.places import name_places

Event = Mapping[str, Any]
Place = tuple[str, int, int]
"""The file, the line, and the record in it."""


class Phase(Enum):
    """The place of an event in a consumer's way through a rebalance."""

    QUIET = "nothing happened"
    ASIDE = "says nothing about where the rebalance is"
    OPENING = "may come before a rebalance"
    LEFT = "the consumer is no member any more; what follows is another rebalance"
    STARTED = "the rebalance has begun"
    FAILED = "the rebalance has failed; the next start is another one"
    ENDED = "the consumer has its assignment"


@dataclass(frozen=True)
class Kind:
    """The meaning of one kind of event. ``reason_rank``: how well it gives the reason, 1 best; None: it gives no
    reason. ``is_greeting``: a client that starts may print it before its first request for metadata.
    """

    phase: Phase
    reason_rank: int | None = None
    is_greeting: bool = False


KINDS = {
    "heartbeat_ok": Kind(Phase.QUIET),
    "heartbeat_sent": Kind(Phase.QUIET),
    "commit_ok": Kind(Phase.QUIET),
    "metadata": Kind(Phase.ASIDE, is_greeting=True),
    "coordinator_failed": Kind(Phase.ASIDE, is_greeting=True),
    "coordinator_query": Kind(Phase.OPENING, is_greeting=True),
    "subscribed": Kind(Phase.OPENING, is_greeting=True),
    "coordinator_found": Kind(Phase.OPENING),
    "revoked": Kind(Phase.OPENING),
    "released": Kind(Phase.OPENING),
    "join_reason": Kind(Phase.OPENING, reason_rank=1),
    "rebalancing": Kind(Phase.OPENING, reason_rank=2),
    "heartbeat_failed": Kind(Phase.OPENING, reason_rank=3),
    "poll_timeout": Kind(Phase.LEFT, reason_rank=4),
    "session_timeout": Kind(Phase.LEFT, reason_rank=5),
    "lost_all": Kind(Phase.LEFT, reason_rank=6),
    "leaving": Kind(Phase.LEFT, reason_rank=7),
    "crashed": Kind(Phase.LEFT, reason_rank=8),
    "left": Kind(Phase.LEFT),
    "lost": Kind(Phase.LEFT),
    "member_reset": Kind(Phase.LEFT),
    "member_fenced": Kind(Phase.LEFT),
    "joining": Kind(Phase.STARTED),
    "join_requested": Kind(Phase.STARTED),
    "rebalance_begun": Kind(Phase.STARTED),
    "reconciling": Kind(Phase.STARTED),
    "join_failed": Kind(Phase.FAILED),
    "sync_failed": Kind(Phase.FAILED),
    "rebalance_failed": Kind(Phase.FAILED),
    "reconcile_failed": Kind(Phase.FAILED),
    "assigned": Kind(Phase.ENDED),
    "group_assignment": Kind(Phase.ENDED),
    "rebalance_ended": Kind(Phase.ENDED),
}
"""The meaning of each kind of event for a rebalance; a kind that is not here has none."""
QUIET = [kind for kind, each in KINDS.items() if each.phase is Phase.QUIET]
_GREETINGS = {kind for kind, each in KINDS.items() if each.is_greeting}
_REASONS = sorted((each.reason_rank, kind) for kind, each in KINDS.items() if each.reason_rank is not None)
_TARGET = re.compile(r"transitioned from \w+ to (\w+)")
_NEXT = re.compile(r"changed (?:join )?state \S+ -> ([\w-]+)")
_ACKNOWLEDGES = re.compile(r'current assignment "(?!NULL")')
_OF_CONSUMERS = ("group_instance_id", "client_id", "member_id", "origin", "group_id", "coordinator", "coordinator_id")
_NAME_THEIR_CLIENT = ("librdkafka", "brod")
_HANDLE = re.compile(r"#consumer-\d+")
"""The numbers that librdkafka gives to the consumers of one process: they may have one client id."""
_NAMED = ("[Consumer ", "[ShareConsumer ", "[Worker ", "[Schema registry ")
"""The beginning of a Java client's line that names its consumer: in one file there may be a worker and its
consumers.
"""
_NAME_AN_OLD_GENERATION = ("heartbeat_failed", "commit_failed", "join_failed", "join_reason", "coordinator_found")
"""A line of such an event may print the generation that the member had before."""
_REACHED = ("ACKNOWLEDGING", "STABLE")
_THROWN_OUT = (
    "poll_timeout",
    "session_timeout",
    "heartbeat_failed",
    "member_fenced",
    "member_reset",
    "lost",
    "lost_all",
)
_FOR_TIMEOUT = re.compile(r"due to consumer poll timeout has expired")
_GONE = ("LEAVING", "UNSUBSCRIBED", "STALE", "FENCED", "FATAL")


def new_state(event: Event) -> str | None:
    """The state that a Java member of the new protocol comes to by this line."""
    target = _TARGET.search(event["text"]) if event["kind"] == "state_change" else None
    return None if target is None else target.group(1)


def reached_state(event: Event) -> str | None:
    """The state that any client comes to by this line; librdkafka's name no phase of a rebalance."""
    by_librdkafka = _NEXT.search(event["text"]) if event["kind"] == "state_change" else None
    return new_state(event) or (by_librdkafka and by_librdkafka.group(1))


def leaves(event: Event) -> bool:
    """Return whether its member leaves the group by this line; of a member that was fenced, other lines report it."""
    return event["kind"] in ("leaving", "left") or new_state(event) in ("LEAVING", "UNSUBSCRIBED", "STALE")


def phase_of(event: Event) -> Phase:
    """A Java member of the new protocol names its states; without a listener it reports nothing else of an
    assignment."""
    if state := new_state(event):
        return Phase.ENDED if state in _REACHED else Phase.LEFT if state in _GONE else Phase.OPENING
    if event["kind"] == "synced" and "[Worker " in event["text"]:
        return (
            Phase.ENDED
        )  # A worker of Kafka Connect has no partitions: its herder prints what it has, in another class.
    known = KINDS.get(event["kind"])
    return known.phase if known else Phase.ASIDE


@dataclass
class RebalanceAttempt:
    """One consumer's way from the first sign of a rebalance to its end.

    ``at``: the first time of each kind of event, in µs. ``failures``: the events that report that it failed. ``life``:
    of the group, see ``lives``.
    """

    generation: int | None = None
    life: int = 1
    events: list[Event] = field(default_factory=list)
    at: dict[str, int] = field(default_factory=dict)
    failures: list[Event] = field(default_factory=list)
    is_done: bool = False
    done_at: int | None = None

    def take(self, event: Event) -> None:
        self.events.append(event)
        at = time_of(event)
        if at is not None:
            self.at.setdefault(event["kind"], at)
        if event["generation"] is not None and event["kind"] not in _NAME_AN_OLD_GENERATION:
            self.generation = event["generation"]
        phase = phase_of(event)
        if phase is Phase.FAILED:
            self.failures.append(event)
            if self.is_of_old_consumer:  # It prints the end of each try before the line that the try failed.
                self.is_done, self.done_at = False, None
        elif phase is Phase.ENDED and not self.is_done and not (self.is_of_old_consumer and self.failures):
            self.is_done, self.done_at = True, at

    @property
    def is_of_old_consumer(self) -> bool:
        return bool(self.events[0]["source"] == "zookeeper")

    def is_before(self, event: Event) -> bool:
        """Return whether the event belongs to another rebalance, after this one."""
        phase = phase_of(event)
        if self.is_done:
            return phase in (Phase.OPENING, Phase.LEFT, Phase.STARTED)
        return phase is Phase.STARTED and (bool(self.failures) or self.was_left)

    @property
    def was_left(self) -> bool:
        """Return whether its member left on its own, and has not asked to join since: the time until it does is of no
        rebalance. A member that was thrown out rejoins, and its leaving is the reason.
        """
        is_out = any(event["kind"] in _THROWN_OUT or _FOR_TIMEOUT.search(event["text"]) for event in self.events)
        started = any(phase_of(event) is Phase.STARTED for event in self.events)
        return not is_out and not started and any(leaves(event) for event in self.events)

    @property
    def has_failed(self) -> bool:
        """Return whether it ends with a failure: a member that joined after one has another chance."""
        joined = [number for number, event in enumerate(self.events) if event["kind"] == "joined"]
        failed = [number for number, event in enumerate(self.events) if event in self.failures]
        return bool(failed) and not self.is_done and max(failed) > max(joined, default=-1)

    def first(self, *kinds: str) -> int | None:
        """Return when the first of the events of these kinds was."""
        times = [self.at[kind] for kind in kinds if kind in self.at]
        return min(times) if times else None

    def all_of(self, *kinds: str) -> list[Event]:
        return [event for event in self.events if event["kind"] in kinds]

    def value_of(self, name: str) -> Any:
        """The last value an event gave for that column."""
        return next((event[name] for event in reversed(self.events) if event[name] is not None), None)


@dataclass
class ConsumerInstance:
    """One consumer from its first line to its last: a process, or a thread of one.

    ``member_ids``: all that its lines name. ``place``: its host or file, where other places have that name, too.
    ``is_one_of_several``: another consumer of its process has its client id.
    """

    stream: tuple[Any, ...]
    number: int
    attempts: list[RebalanceAttempt] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    member_id: str | None = None
    member_ids: set[str] = field(default_factory=set)
    place: str | None = None
    is_one_of_several: bool = False
    epoch: int | None = None
    has_left: bool = False
    has_reconciled: bool = False
    first: dict[str, Any] = field(default_factory=dict)
    """The first value that an event gave for each of ``_OF_CONSUMERS``."""

    @property
    def base_name(self) -> str:
        """Its instance, client or member id, or its file: other consumers may have the same."""
        ids = [
            self.stream[2] if self.is_one_of_several else None,
            self.value_of("group_instance_id"),
            self.value_of("client_id"),
            self.value_of("member_id"),
            self.value_of("origin"),
        ]
        return next((each for each in ids if each), str(self.stream[0]).rsplit("/", 1)[-1])

    @property
    def name(self) -> str:
        """The base name, with the place or a number where several consumers would have that name."""
        placed = self.base_name if self.place is None else f"{self.base_name} in {self.place}"
        return placed if self.number == 1 else f"{placed} (#{self.number})"

    @property
    def has_epochs(self) -> bool:
        """Return whether it is a member of KIP-848's protocol: what it calls a generation is an epoch."""
        return self.epoch is not None or self.has_reconciled

    def value_of(self, name: str) -> Any:
        return self.first.get(name)

    def take(self, event: Event) -> None:
        phase = phase_of(event)
        if phase is Phase.QUIET:
            self._take_beat(event)
            return
        self.events.append(event)
        self.has_reconciled |= event["kind"] == "reconciling"
        for name in _OF_CONSUMERS:
            if event[name] is not None:
                self.first.setdefault(name, event[name])
        if event["member_id"] and event["kind"] != "assignment_computed":
            self.member_id, self.has_left = event["member_id"], False
            self.member_ids.add(event["member_id"])
        self.has_left |= phase is Phase.LEFT
        if not self.attempts or self.attempts[-1].is_before(event):
            self.attempts.append(RebalanceAttempt(self.epoch))
        self.attempts[-1].take(event)

    def _take_beat(self, event: Event) -> None:
        """librdkafka prints the new protocol's epoch only in heartbeats; one with an assignment acknowledges it."""
        self.epoch = event["generation"]
        if self.attempts and _ACKNOWLEDGES.search(event["text"]):
            self.attempts[-1].generation = self.epoch


def place_of(event: Event) -> Place:
    return event["file"], event["line"], event["record"]


def time_of(event: Event) -> int | None:
    """µs since 1970, in UTC where that is known, else as printed."""
    at = event["observed_at"]
    return event["local_at"] if at is None else int(at.timestamp() * 1_000_000)


def datetime_of(at_us: int | None) -> datetime | None:
    return None if at_us is None else datetime.fromtimestamp(at_us / 1_000_000, UTC)


def are_utc(events: Iterable[Event]) -> bool:
    """Return whether no event has a time of an unknown zone."""
    return all(event["observed_at"] is not None or event["local_at"] is None for event in events)


def consumer_instances(events: Iterable[Event]) -> list[ConsumerInstance]:
    """The consumers, in the order of their first lines; a broker's line belongs to none."""
    mine = [event for event in events if event["source"] != "broker"]
    alone = _alone(mine)
    by_stream: dict[tuple[Any, ...], list[ConsumerInstance]] = {}
    order: list[ConsumerInstance] = []
    for event in mine:
        stream = stream_of(event)
        if stream[2] is None:
            stream = (*stream[:2], alone.get(stream[:2]))
        known = by_stream.setdefault(stream, [])
        if not known or _is_another(known[-1], event):
            known.append(ConsumerInstance(stream, len(known) + 1))
            order.append(known[-1])
        known[-1].take(event)
    _number_handles(order)
    name_places(order)
    return order


def _number_handles(instances: list[ConsumerInstance]) -> None:
    """Call the consumers of one process by their numbers where they have one client id."""
    handles: dict[tuple[Any, ...], list[ConsumerInstance]] = {}
    for each in instances:
        client, number, _ = str(each.stream[2]).partition("#consumer-")
        if number:
            handles.setdefault((*each.stream[:2], client), []).append(each)
    for same in handles.values():
        for each in same:
            each.is_one_of_several = len(same) > 1


def _alone(events: list[Event]) -> dict[tuple[Any, ...], Any]:
    """File and origin → the one consumer that names itself there: clients ≥ 3.7 leave their name out here and there."""
    names: dict[tuple[Any, ...], set[Any]] = {}
    for event in events:
        *place, name = stream_of(event)
        if name is not None:
            names.setdefault(tuple(place), set()).add(name)
    return {place: known.pop() for place, known in names.items() if len(known) == 1}


def stream_of(event: Event) -> tuple[Any, ...]:
    """Return whose lines these are as far as the line describes: new clients name themselves, old ones only their
    file."""
    named = event["source"] in _NAME_THEIR_CLIENT or any(prefix in event["text"] for prefix in _NAMED)
    handle = _HANDLE.search(event["text"]) if event["source"] == "librdkafka" else None
    if handle and event["client_id"]:
        return (event["file"], event["origin"], event["client_id"] + handle[0])
    if named:
        return (event["file"], event["origin"], event["group_instance_id"] or event["client_id"], event["group_id"])[:3]
    if event["source"] == "zookeeper":
        return (event["file"], event["origin"], event["member_id"])
    return (event["file"], event["origin"], None)


def _is_another(instance: ConsumerInstance, event: Event) -> bool:
    """Return whether a line of an old client shows that another consumer writes now, or the same one after a
    restart.
    """
    if instance.stream[2] is not None:
        return False
    text, kind = event["text"], event["kind"]
    if kind == "metadata" and "correlation_id=1," in text:
        return any(each["kind"] not in _GREETINGS for each in instance.events)
    if instance.member_id is None or instance.has_left:
        return False
    if kind == "join_requested" and "member_id=," in text:
        return any(each["kind"] == "joined" for each in instance.events)
    return kind == "joined" and event["member_id"] not in (None, instance.member_id)


def reasons(attempt: RebalanceAttempt) -> list[str]:
    """Return why, in the log's own words, best first."""
    events = [event for _, kind in _REASONS for event in attempt.all_of(kind)]
    return list(dict.fromkeys(event["reason"] or event["kind"].replace("_", " ") for event in events))


def positions(attempt: RebalanceAttempt) -> list[str]:
    return [
        f"{partition}@{event['offset']}"
        for event in attempt.all_of("offset_found", "offset_reset")
        for partition in event["partitions"] or ()
        if event["offset"] is not None
    ]
