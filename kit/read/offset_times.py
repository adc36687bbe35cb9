"""Offsets by time and times by offset, from ListOffsets: no record is read.

ListOffsets answers a time with the first record that is not older, its offset and its timestamp. So a record's time is
found by halving: all partitions side by side, each at a time of its own. Timestamps of a log are taken to grow; where
a producer's clock went back, what is found is the newest timestamp up to the record.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from kafka.protocol.consumer import ListOffsetsRequest

from kit.errors import ReadError
from kit.read.broker_client import DEADLINE_S, BrokerClient, Deadline
from kit.read.brokers import NEWEST, NEWEST_VERSION, Key, Listed, fetch_leaders, list_offsets
from kit.tables.groups import LogAnchor, RecordTime

RESOLUTION_MS = 1000
_STEP = 8

Position: TypeAlias = tuple[str, int, int]
"""Topic, partition, offset."""


def fetch_record_times(
    client: BrokerClient,
    positions: Collection[Position],
    at_ms: int,
    resolution_ms: int = RESOLUTION_MS,
    deadline_s: float = DEADLINE_S,
) -> list[RecordTime]:
    """When the records at these offsets were appended, to ``resolution_ms``, by halving the time until ``at_ms``.

    A lag of a day takes some twenty rounds, however many partitions there are. What can't be told is a row with an
    error.

    Raises:
        ConnectError, ReadError: no broker answered.
    """
    return client.run(_halve, client, positions, at_ms, resolution_ms, Deadline(deadline_s))


def fetch_anchors(client: BrokerClient, keys: Collection[Key], deadline_s: float = DEADLINE_S) -> list[LogAnchor]:
    """The first record of each log and the one with the newest timestamp.

    Raises:
        ConnectError: no broker answered.
        ReadError: the brokers are older than Kafka 3.0 and know no newest timestamp (KIP-734).
    """
    if not client.supports(ListOffsetsRequest, NEWEST_VERSION):
        raise ReadError("brokers older than Kafka 3.0 don't tell the newest timestamp (KIP-734): use another method")
    deadline = Deadline(deadline_s)
    first, failed = client.run(_list, client, dict.fromkeys(keys, 0), deadline)
    newest, failed_too = client.run(_list, client, dict.fromkeys(keys, NEWEST), deadline)
    errors = failed_too | failed
    return [_anchor(key, first.get(key), newest.get(key), errors.get(key)) for key in sorted(keys)]


def _anchor(key: Key, first: Listed | None, newest: Listed | None, error: str | None) -> LogAnchor:
    if first is None or newest is None:
        return LogAnchor(*key, None, None, None, None, error or "its records carry no time")
    return LogAnchor(*key, *first, *newest)


@dataclass
class _Bracket:
    """What is known of one record: its time is not before ``low`` and not after ``high``."""

    offset: int
    high: int
    low: int | None = None
    step: int = 1
    error: str | None = None

    def probe(self, resolution_ms: int) -> int | None:
        """The next time to ask for; None: known well enough."""
        if self.error is not None:
            return None
        if self.low is None:
            return max(0, self.high - self.step * resolution_ms)
        return None if self.high - self.low <= resolution_ms else (self.low + self.high + 1) // 2

    def learn(self, asked_ms: int, listed: Listed | None) -> None:
        """The first record that is not older than ``asked_ms``."""
        if listed is None or listed[0] > self.offset:
            self.high, self.step = min(self.high, asked_ms), self.step * _STEP
            if asked_ms == 0:
                self.error = "its records carry no time"
            return
        offset, time_ms = listed
        if time_ms > self.high:
            self.error = "the record is dated after this clock, or after younger records"
        elif offset == self.offset:
            self.low = self.high = time_ms
        else:
            self.low = max(time_ms, self.low or 0)

    def row(self, key: Key) -> RecordTime:
        if self.error is not None or self.low is None:
            return RecordTime(*key, self.offset, None, None, None, self.error or "not read")
        return RecordTime(*key, self.offset, (self.low + self.high) // 2, self.low, self.high)


async def _halve(
    client: BrokerClient, positions: Iterable[Position], at_ms: int, resolution_ms: int, deadline: Deadline
) -> list[RecordTime]:
    brackets: dict[Key, list[_Bracket]] = defaultdict(list)
    for topic, number, offset in sorted(set(positions)):
        brackets[topic, number].append(_Bracket(offset, at_ms))
    while True:
        probes = {key: _probes(each, resolution_ms) for key, each in brackets.items()}
        if not any(probes.values()):
            return [each.row(key) for key, found in brackets.items() for each in found]
        for asked in _layers(probes):
            listed, failed = await _list(client, asked, deadline)
            for key, time_ms in asked.items():
                for each in brackets[key]:
                    if key in failed:
                        each.error = failed[key]
                    elif each.error is None:
                        each.learn(time_ms, listed.get(key))


def _probes(brackets: Iterable[_Bracket], resolution_ms: int) -> list[int]:
    """The times to ask one partition for; groups that stand close ask for the same."""
    wanted = (each.probe(resolution_ms) for each in brackets)
    return sorted({time_ms for time_ms in wanted if time_ms is not None})


def _layers(probes: Mapping[Key, Sequence[int]]) -> Iterator[dict[Key, int]]:
    """A request may name a partition once: the first time of each, then the second of those that have one, …"""
    for layer in range(max(map(len, probes.values()))):
        yield {key: times[layer] for key, times in probes.items() if layer < len(times)}


async def _list(
    client: BrokerClient, times: Mapping[Key, int], deadline: Deadline
) -> tuple[dict[Key, Listed], dict[Key, str]]:
    """The first record that is not older than its partition's time, where there is one; why not, where it failed."""
    leaders = await fetch_leaders(client, set(times), deadline)
    (listed,), failed = await list_offsets(client, leaders, (times,), deadline)
    return {key: found for key, found in listed.items() if min(found) >= 0}, failed
