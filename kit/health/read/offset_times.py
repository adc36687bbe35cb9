"""Offsets by time and times by offset, from ListOffsets: no record is read.

ListOffsets answers a time with the first record that is not older, its offset and its timestamp. So a record's time is
found by searching: all partitions side by side, each at times of its own. Timestamps of a log are taken to grow; where
a producer's clock went back, what is found is the newest timestamp up to the record. A transaction's marker is a
record for ListOffsets, and so is what was aborted: ``kit.health.read.next_records`` knows better.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafka.protocol.consumer import ListOffsetsRequest

from kit.clients.broker_client import BrokerClient, Deadline
from kit.clients.brokers import NEWEST, NEWEST_VERSION, Key, Listed, fetch_leaders, list_offsets
from kit.errors import ReadError
from kit.tables.groups import LogAnchor, RecordTime

RESOLUTION_MS = 1000
_STEP, _FEW, _PROBES = 8, 2, 12

Position: TypeAlias = tuple[str, int, int]
"""Topic, partition, offset."""


def fetch_record_times(
    client: BrokerClient, positions: Collection[Position], at_ms: int, resolution_ms: int = RESOLUTION_MS
) -> list[RecordTime]:
    """Return when the first records at or after these offsets were appended, to ``resolution_ms``, until ``at_ms``.

    A bracket is wider where nothing shows a hole of the log (what compaction took) from a record as old as the one
    before, and the next time is further off than ``resolution_ms``: the truth is at one of its ends. A lag of a day
    takes some ten rounds, however many partitions there are. A time that can't be reported is a row with an error.

    Raises:
        ConnectError, ReadError: no broker answered.
    """
    return client.run(_search, client, positions, at_ms, resolution_ms, Deadline())


def fetch_quiet(client: BrokerClient, ends: Mapping[Key, int], since_ms: int) -> dict[Key, bool]:
    """Return whether nothing below these ends is dated ``since_ms`` or later; no entry where no broker reported one.

    Raises:
        ConnectError: no broker answered.
    """
    (listed,), failed = client.run(_ask, client, [dict.fromkeys(ends, since_ms)], Deadline())
    return {key: key not in listed or listed[key][0] >= end for key, end in ends.items() if key not in failed}


def fetch_anchors(client: BrokerClient, keys: Collection[Key]) -> list[LogAnchor]:
    """The first record of each log and the one with the newest timestamp.

    Raises:
        ConnectError: no broker answered.
        ReadError: the brokers are older than Kafka 3.0 and know no newest timestamp (KIP-734).
    """
    if not client.supports(ListOffsetsRequest, NEWEST_VERSION):
        raise ReadError("brokers before Kafka 3.0 don't report the newest timestamp (KIP-734). Use another method")
    questions = [dict.fromkeys(keys, time) for time in (0, NEWEST)]
    (first, newest), errors = client.run(_ask, client, questions, Deadline())
    return [_anchor(key, first.get(key), newest.get(key), errors.get(key)) for key in sorted(keys)]


def _anchor(key: Key, first: Listed | None, newest: Listed | None, error: str | None) -> LogAnchor:
    if first is None or newest is None:
        return LogAnchor(*key, None, None, None, None, error or "the records of this partition have no timestamp")
    return LogAnchor(*key, *first, *newest)


@dataclass
class _Bracket:
    """The bounds of the first record at or after an offset.

    The newest time of all records up to the offset is at least ``low`` and less than or equal to ``high``. So is the
    time of the record at the offset, if there is one; in a hole the next record is meant, and that is not after
    ``latest``, the time of the first record that is known to lie behind the offset.
    """

    offset: int
    high: int
    low: int | None = None
    step: int = 1
    error: str | None = None

    def __post_init__(self) -> None:
        self.latest = self.high
        self._below: Listed | None = None
        self._above: Listed | None = None
        self._probes = 0
        self._rose = self._beside = self._was_beside = self._was_line = False

    def probe(self, resolution_ms: int) -> int | None:
        """The next time to ask for; None: known well enough, or as well as can be."""
        if self.error is not None:
            return None
        if self.low is None:
            return max(0, self.high - self.step * resolution_ms)
        if self.latest - self.low <= resolution_ms or self.high - self.low <= 1:
            return None
        return min(max(self._guess(self.low, resolution_ms), self.low + 1), self.high - 1)

    def _guess(self, low: int, resolution_ms: int) -> int:
        """Beside what was found last, where bursts begin and end; by turns on a line and half-way; at last half-way.

        Once it is known to the resolution, only what comes after it may be far: then the next time is asked for.
        """
        half = (low + self.high + 1) // 2
        if self.high - low <= resolution_ms:
            return low + 1 if self._is_next() else half
        self._probes += 1
        self._was_beside, self._beside = self._beside and self._probes <= _PROBES, False
        if self._was_beside:
            return low + resolution_ms if self._rose else self.high - resolution_ms
        line = None if self._was_line or self._probes > _PROBES else self._on_line()
        self._was_line = line is not None
        return half if line is None else line

    def _on_line(self) -> int | None:
        if self._below is None or self._above is None:
            return None
        (first, begin), (last, end) = self._below, self._above
        return begin + (end - begin) * (self.offset - first) // (last - first)

    def _is_next(self) -> bool:
        return self._below is not None and self.offset - self._below[0] <= _FEW

    def learn(self, asked_ms: int, listed: Listed | None) -> None:
        """The first record that is not older than ``asked_ms``."""
        if listed is None or listed[0] > self.offset:
            self._learn_later(asked_ms, listed)
        elif listed[1] > self.high:
            self.error = (
                "the record's timestamp is later than this machine's clock, or later than those of newer records"
            )
        elif listed[0] == self.offset:
            self.low = self.high = self.latest = listed[1]
        elif listed[1] >= (self.low or 0):
            # Twice beside only where it leapt: over a gap it came to where a burst begins.
            self._beside = not self._was_beside or listed[1] - asked_ms > asked_ms - (self.low or 0)
            self.low, self._below, self._rose = listed[1], listed, True

    def _learn_later(self, asked_ms: int, listed: Listed | None) -> None:
        self.step *= _STEP
        if asked_ms <= self.high:
            self._beside = self._was_line and not self._was_beside
            self.high, self._above, self._rose = asked_ms, listed or self._above, False
            # With nothing as young in the whole log, what is at the offset is older. Records may come meanwhile.
            self.latest = min(self.latest, asked_ms if listed is None else listed[1])
        if asked_ms == 0 and listed is None:
            self.error = "the records of this partition have no timestamp"
        elif asked_ms == 0:
            self.low = self.latest

    def row(self, key: Key) -> RecordTime:
        if self.error is not None or self.low is None:
            return RecordTime(*key, self.offset, None, None, None, self.error or "not read")
        return RecordTime(*key, self.offset, (self.low + self.latest) // 2, self.low, self.latest)


async def _search(
    client: BrokerClient, positions: Iterable[Position], at_ms: int, resolution_ms: int, deadline: Deadline
) -> list[RecordTime]:
    brackets: dict[Key, list[_Bracket]] = defaultdict(list)
    for topic, number, offset in sorted(set(positions)):
        brackets[topic, number].append(_Bracket(offset, at_ms))
    leaders = await fetch_leaders(client, set(brackets), deadline)
    while True:
        probes = {key: times for key, each in brackets.items() if (times := _probes(each, resolution_ms))}
        if not probes:
            return [each.row(key) for key, of_partition in brackets.items() for each in of_partition]
        layers = list(_layers(probes))
        answers, failed = await list_offsets(client, leaders, layers, deadline)
        for asked, listed in zip(layers, answers, strict=True):
            for key, time_ms in asked.items():
                _learn(brackets[key], time_ms, _dated(listed.get(key)), failed.get(key))


def _learn(brackets: Iterable[_Bracket], time_ms: int, listed: Listed | None, error: str | None) -> None:
    for each in brackets:
        if error is not None:
            each.error = error
        elif each.error is None:
            each.learn(time_ms, listed)


def _probes(brackets: Iterable[_Bracket], resolution_ms: int) -> list[int]:
    """The times to ask one partition for; groups with close offsets ask for the same."""
    wanted = (each.probe(resolution_ms) for each in brackets)
    return sorted({time_ms for time_ms in wanted if time_ms is not None})


def _layers(probes: Mapping[Key, Sequence[int]]) -> Iterator[dict[Key, int]]:
    """A request may name a partition once: the first time of each, then the second of those that have one, …"""
    for layer in range(max(map(len, probes.values()), default=0)):
        yield {key: times[layer] for key, times in probes.items() if layer < len(times)}


def _dated(listed: Listed | None) -> Listed | None:
    """None where there is no such record, or it carries no time."""
    return listed if listed is not None and min(listed) >= 0 else None


async def _ask(
    client: BrokerClient, questions: Sequence[Mapping[Key, int]], deadline: Deadline
) -> tuple[list[dict[Key, Listed]], dict[Key, str]]:
    """The first record that is not older than its partition's time, where there is one; why not, where it failed."""
    leaders = await fetch_leaders(client, {key for times in questions for key in times}, deadline)
    answers, failed = await list_offsets(client, leaders, questions, deadline)
    return [{key: record for key, record in each.items() if _dated(record)} for each in answers], failed
