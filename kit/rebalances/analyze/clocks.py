"""Clocks of logs that print no zone: each host and file has its own, and two may differ by the zone.

A coordinator lets all members of a generation through at one moment. If one log prints this moment whole quarters of an
hour later than another log, in every generation that both have, their zones differ: their times are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kit.rebalances.analyze.consumer_instances import Event, time_of
from kit.tables.rebalances import MemberRebalance

Clock = tuple[str, str | None]
"""The file, and the origin that the lines' prefix names."""
Moment = tuple[str, int, str]
_STEP_US, _TOLERANCE_US = 900_000_000, 10_000_000
_MOMENTS = {"joined": "joined", "group_stabilized": "joined", "synced": "synced", "group_assigned": "synced"}
"""Lines that consumers and brokers print at the same moment of a generation."""


@dataclass(frozen=True)
class Offset:
    """``clock`` is ``ahead_us`` ahead of ``other``, and of the first clock, by a generation that both have."""

    clock: Clock
    other: Clock
    ahead_us: int
    group_id: str
    generation: int


@dataclass(frozen=True)
class Clocks:
    """``offsets``: of clocks that differ from the first one; ``lines``: file and line → how far ahead its clock is."""

    offsets: tuple[Offset, ...] = ()
    lines: Mapping[tuple[str, int], int] = field(default_factory=dict)

    def of(self, event: Event) -> int | None:
        """Return the common offset of the times of lines that can be compared; None: they are in UTC."""
        return None if event["observed_at"] is not None else self.lines.get((event["file"], event["line"]), 0)

    def of_row(self, row: MemberRebalance) -> int | None:
        """Return :func:`of` a row."""
        return None if row.is_utc else self.lines.get((row.file, row.line), 0)


def compared(events: Iterable[Event]) -> Clocks:
    """The clocks of all lines that print no zone."""
    unzoned = [each for each in events if each["observed_at"] is None and each["local_at"] is not None]
    if len({_clock(each) for each in unzoned}) < 2:
        return Clocks()
    offsets = tuple(_offsets(_moments(unzoned)))
    ahead = {each.clock: each.ahead_us for each in offsets}
    lines = {(each["file"], each["line"]): ahead[_clock(each)] for each in unzoned if _clock(each) in ahead}
    return Clocks(offsets, lines)


def _clock(event: Event) -> Clock:
    return event["file"], event["origin"]


def _moments(events: Iterable[Event]) -> dict[Moment, dict[Clock, int]]:
    """Each moment of a generation, as the clocks have it first."""
    moments: dict[Moment, dict[Clock, int]] = {}
    for event in events:
        name, at = _MOMENTS.get(event["kind"]), time_of(event)
        if name and at is not None and event["group_id"] and event["generation"] is not None:
            moments.setdefault((event["group_id"], event["generation"], name), {}).setdefault(_clock(event), at)
    return moments


def _offsets(moments: Mapping[Moment, Mapping[Clock, int]]) -> Iterator[Offset]:
    """Return the offsets that all common moments agree on; clocks are compared with the first that saw the moment."""
    pairs: dict[tuple[Clock, Clock], list[tuple[Moment, int]]] = {}
    for moment, seen in moments.items():
        first, *others = sorted(seen, key=str)
        for other in others:
            pairs.setdefault((first, other), []).append((moment, seen[other] - seen[first]))
    ahead: dict[Clock, int] = {}
    for (first, other), common in sorted(pairs.items(), key=str):
        steps = {round(difference / _STEP_US) for _, difference in common}
        step = steps.pop()
        is_exact = all(abs(difference - step * _STEP_US) <= _TOLERANCE_US for _, difference in common)
        if not steps and is_exact and other not in ahead:
            ahead[other] = ahead.get(first, 0) + step * _STEP_US
            if ahead[other]:
                (group_id, generation, _), _ = common[0]
                yield Offset(other, first, ahead[other], group_id, generation)
