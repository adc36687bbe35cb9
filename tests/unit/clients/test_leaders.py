"""A search by time over many rounds asks once who leads, and again only when a leader moved."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from types import SimpleNamespace
from typing import Any

import pytest

from kit.health.read.offset_times import fetch_quiet, fetch_record_times

NOW = 100_000_000
TIMES = list(range(0, NOW, 700_000))
PARTITIONS = 3
NOT_LEADER = 6


class Brokers:
    """Three logs with the same records; their leader is broker 1 for so many answers, then broker 2."""

    def __init__(self, moves_after: int | None = None) -> None:
        self.n_metadata = self.n_refused = self.n_answers = 0
        self._moves_after = moves_after

    @property
    def _leader(self) -> int:
        return 1 if self._moves_after is None or self.n_answers < self._moves_after else 2

    def run(self, coroutine: Any, *arguments: Any) -> Any:
        return asyncio.run(coroutine(*arguments))

    async def gather(self, coroutines: Any) -> list[Any]:
        return [await each() for each in coroutines]

    async def pause(self, attempt: int) -> None:
        pass

    async def refresh_metadata(self) -> None:
        pass

    async def ask(self, request: Any, broker_id: int | None, deadline: Any) -> Any:
        self.n_metadata += 1
        replicas = {"leader_epoch": 0, "replica_nodes": [1, 2], "isr_nodes": [1, 2]}
        partitions = [
            SimpleNamespace(partition_index=number, leader_id=self._leader, **replicas) for number in range(PARTITIONS)
        ]
        topics = [SimpleNamespace(name="t", is_internal=False, partitions=partitions)]
        return SimpleNamespace(brokers=[SimpleNamespace(node_id=self._leader)], topics=topics)

    async def send(self, request: Any, broker_id: int) -> Any:
        is_leader = broker_id == self._leader
        self.n_answers += is_leader
        self.n_refused += not is_leader
        topics = [
            SimpleNamespace(name=topic.name, partitions=[_answer(each, is_leader) for each in topic.partitions])
            for topic in request.topics
        ]
        return SimpleNamespace(topics=topics)


def _answer(asked: Any, is_leader: bool) -> Any:
    first = bisect_left(TIMES, asked.timestamp)
    offset, time = (first, TIMES[first]) if first < len(TIMES) else (-1, -1)
    code = 0 if is_leader else NOT_LEADER
    return SimpleNamespace(partition_index=asked.partition_index, error_code=code, offset=offset, timestamp=time)


POSITIONS = [("t", partition, offset) for partition in range(PARTITIONS) for offset in (3, 70, 140)]


@pytest.mark.parametrize(("moves_after", "n_metadata", "n_refused"), [(None, 1, 0), (6, 2, 1), (7, 2, 1)])
def test_leaders_are_asked_for_once_and_again_after_a_move(moves_after, n_metadata, n_refused):
    brokers = Brokers(moves_after)
    rows = fetch_record_times(brokers, POSITIONS, NOW)
    assert {(row.topic, row.partition, row.offset): row.appended_ms for row in rows} == {
        place: TIMES[place[2]] for place in POSITIONS
    }
    assert brokers.n_answers > 7  # many rounds
    assert (brokers.n_metadata, brokers.n_refused >= n_refused) == (n_metadata, True)
    assert brokers.n_refused <= 3  # those that were under way together


def test_a_log_is_quiet_where_nothing_below_its_end_is_younger():
    ends = {("t", 0): 140, ("t", 1): 10, ("t", 2): 143}
    assert fetch_quiet(Brokers(), ends, TIMES[138]) == {("t", 0): False, ("t", 1): True, ("t", 2): False}
    assert fetch_quiet(Brokers(), ends, NOW) == dict.fromkeys(ends, True)
