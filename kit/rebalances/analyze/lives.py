"""The lives of a group: its generations begin again at 1 after it ended, or when its offsets topic was made again.

A life ends with a coordinator's word (Dead), or where numbers go back. Times of one clock alone are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from kit.rebalances.analyze.clocks import Clocks
from kit.rebalances.analyze.consumer_instances import (
    ConsumerInstance,
    Event,
    Place,
    RebalanceAttempt,
    place_of,
    time_of,
)

_COUNTING = (
    *("group_rebalancing", "group_stabilized", "group_assigned", "group_empty", "group_loaded"),
    *("epoch_bumped", "target_computed"),
)
"""Brokers' lines whose number is the group's; others name that of a member, which may be old."""
_LATE_US = 60_000_000
"""A host may print the number of a generation that others have left by so much."""


def leads_to(event: Event) -> int | None:
    """The generation that a broker's line is about; it names the old one when a rebalance begins."""
    generation: int | None = event["generation"]
    if generation is None:
        return None
    return generation + 1 if event["kind"] == "group_rebalancing" else generation


@dataclass
class _Life:
    """A group as it was seen by one clock until now. ``reached``: number → when it was first seen, in µs."""

    number: int = 1
    reached: dict[int, int] = field(default_factory=dict)
    newest: dict[object, int] = field(default_factory=dict)
    is_dead: bool = False

    def take(self, writer: object, generation: int, at: int | None, is_epoch: bool) -> None:
        """``writer``: whose numbers never go back within a life. ``is_epoch``: a member may be behind its group."""
        if self._is_another(writer, generation, at, is_epoch):
            self.number, self.reached, self.newest = self.number + 1, {}, {}
        self.is_dead = False
        self.newest[writer] = generation
        if at is not None:
            self.reached.setdefault(generation, at)

    def _is_another(self, writer: object, generation: int, at: int | None, is_epoch: bool) -> bool:
        if generation < self.newest.get(writer, 0):
            return True
        top = max(self.reached, default=0)
        if self.is_dead:
            return generation <= top
        is_late = generation < top and at is not None and at - self.reached[top] > _LATE_US
        return is_late and not is_epoch and writer not in self.newest


def number_lives(events: Iterable[Event], instances: Iterable[ConsumerInstance], clocks: Clocks) -> dict[Place, int]:
    """Set ``life`` of each attempt, and return the life of each broker's line about a group; ``events``: in order."""
    instances = list(instances)
    marks = {place_of(event): (each, attempt) for each in instances for attempt, event in _numbered(each)}
    groups: dict[tuple[str, int | None], _Life] = {}
    of_brokers: dict[Place, int] = {}
    for event in events:
        place = place_of(event)
        instance, attempt = marks.get(place, (None, None))
        group_id = event["group_id"] if instance is None else instance.value_of("group_id")
        if not group_id or (instance is None and event["source"] != "broker"):
            continue
        life = groups.setdefault((group_id, clocks.of(event)), _Life())
        if instance is None:
            of_brokers[place] = _of_broker(life, event)
        elif attempt is not None and attempt.generation is not None:
            writer = (instance.stream, attempt.value_of("member_id") if instance.has_epochs else None)
            life.take(writer, attempt.generation, time_of(event), instance.has_epochs)
            attempt.life = life.number
    for instance in instances:
        _continue_lives(instance)
    return of_brokers


def _continue_lives(instance: ConsumerInstance) -> None:
    """Set the life of what follows an attempt that has a generation, up to the next that has one."""
    numbered, life = {id(attempt) for attempt, _ in _numbered(instance)}, 1
    for attempt in instance.attempts:
        attempt.life = life = attempt.life if id(attempt) in numbered else life


def _numbered(instance: ConsumerInstance) -> Iterator[tuple[RebalanceAttempt, Event]]:
    """The attempts that have a generation, with the first line that reports it; the remaining attempts are of the life
    before.
    """
    for attempt in instance.attempts:
        said = next((each for each in attempt.events if each["generation"] == attempt.generation), None)
        if said is not None and attempt.generation:
            yield attempt, said


def _of_broker(life: _Life, event: Event) -> int:
    number = leads_to(event)
    if event["kind"] == "group_dead":
        life.is_dead = True
    elif number is not None and event["kind"] in _COUNTING:
        life.take((event["file"], event["origin"]), number, time_of(event), is_epoch=False)
    return life.number
