"""Names, marks and places of the locks in Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kit.errors import LockLost
from kit.moves.locks.kafka_lock import WHOLE_CLUSTER, KafkaLock, lock_group, target_of
from kit.moves.locks.lease import Lease
from kit.moves.locks.mark import Mark, parse_mark


def test_each_group_has_a_lock_of_its_own_and_none_is_the_whole_clusters():
    names = ["orders", "orders ", "a/b", "", ".", "..", "%", ":cluster", "ü" * 100, "x" * 300, "x" * 301]
    locks = [lock_group(name) for name in names]
    assert len({*locks, WHOLE_CLUSTER}) == len(names) + 1
    assert max(map(len, locks)) <= 249
    assert [target_of(lock) for lock in locks[:3]] == names[:3]


@pytest.mark.parametrize(
    "text", [None, "", "{}", "[1]", "7", "[" * 100_000, '{"run_id": "r"}', '{"run_id": "r", "x": 1}']
)
def test_a_mark_of_another_shape_is_nobodys(text):
    assert parse_mark(text) is None


def test_a_mark_comes_back_as_it_was_written():
    mark = Mark("run-1", "host", "ann", "2026-01-31T12:00:00+00:00", is_held=False, changed_by="run-0")
    assert parse_mark(mark.to_text()) == mark


class Coordinator:
    """Behind the names of a client: answers each commit with the next code; ``meanwhile`` happens before an answer."""

    def __init__(self, codes: list[int], meanwhile: Callable[[], None] = lambda: None) -> None:
        self.codes, self.meanwhile, self.generations = codes, meanwhile, list[int]()

    async def send_within(self, request, broker_id, seconds):
        self.generations.append(request.generation_id_or_member_epoch)
        self.meanwhile()
        place = SimpleNamespace(error_code=self.codes.pop(0))
        return SimpleNamespace(topics=[SimpleNamespace(partitions=[place])])


def held(client: Any) -> Lease:
    """A lease in generation 5, at a coordinator that is known."""
    lease = Lease(client, "offramp.lock.orders", "group orders", Mark("run-1", "h", "ann", "t"))
    lease._coordinator, lease._member_id, lease._generation = 1, "me", 5
    return lease


def test_a_commit_that_a_rebalance_overtook_is_sent_again():
    """The heartbeat rejoined while the commit was under way: its generation has ended, and the lock is held."""
    client = Coordinator([22, 0])
    lease = held(client)
    client.meanwhile = lambda: setattr(lease, "_generation", 6)
    asyncio.run(lease._confirm())
    assert client.generations == [5, 6]


@pytest.mark.parametrize("code", [22, 25, 82])
def test_a_refused_commit_is_a_lost_lock_for_good(code):
    lease = held(Coordinator([code]))
    for _ in range(2):
        with pytest.raises(LockLost, match="the coordinator refused the commit"):
            asyncio.run(lease._confirm())


class Interrupted:
    """A client whose wait for an answer is ended by Ctrl-C."""

    def __init__(self) -> None:
        self.is_closed = False

    def run(self, *_: object) -> None:
        raise KeyboardInterrupt

    def close(self) -> None:
        self.is_closed = True


def test_an_interrupted_release_ends_every_lease():
    """A lease that stays open sends heartbeats until the kernel ends, and its group stays busy."""
    clients = [Interrupted(), Interrupted()]
    lock = KafkaLock(None)
    lock._leases = {str(number): held(client) for number, client in enumerate(clients)}
    with pytest.raises(KeyboardInterrupt):
        lock.release()
    assert all(client.is_closed for client in clients)
