"""A reservation goes only when ZooKeeper has what the plain Kafka consumers committed."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from kit.consumer.metrics import Metrics
from kit.consumer.zookeeper.driver import Driver
from kit.consumer.zookeeper.effects import CopyToZookeeper
from kit.consumer.zookeeper.offsets import Fetched

A, B = ("t", 0), ("t", 1)


class Zookeeper:
    """Offsets as ZooKeeper has them; ``refused`` are not written, ``is_gone`` says that it can't be asked."""

    name = "zookeeper"

    def __init__(self, refused: Sequence[tuple[str, int]] = (), is_gone: bool = False) -> None:
        self.offsets: dict[tuple[str, int], int] = {}
        self.refused, self.is_gone = refused, is_gone

    def commit(self, offsets: Mapping[tuple[str, int], int], seconds: float) -> dict[tuple[str, int], str]:
        if self.is_gone:
            raise ConnectionLoss
        self.offsets |= {pair: offset for pair, offset in offsets.items() if pair not in self.refused}
        return dict.fromkeys(self.refused, "it holds 'x', which is no offset")

    def fetch(self, partitions: Sequence[tuple[str, int]]) -> Fetched:
        return Fetched({pair: self.offsets[pair] for pair in partitions if pair in self.offsets})


def driver(zookeeper: Zookeeper, commits: bool) -> Driver:
    nothing: Any = None
    return Driver(
        "g_c",
        znodes=nothing,
        gate=nothing,
        brokers=nothing,
        zookeeper_offsets=zookeeper,  # type: ignore[arg-type]
        kafka_offsets=nothing,
        store=nothing,
        metrics=Metrics("g", "g", dict),
        reset="smallest",
        commits=commits,
        viewed=lambda view: None,
        changed=threading.Event(),
        listener=None,
    )


@pytest.mark.parametrize("commits", [True, False])
def test_the_offset_of_a_reservation_is_written_whatever_the_member_commits_itself(commits: bool) -> None:
    """``auto.commit.enable=false`` is about its own records, not about what others committed."""
    zookeeper = Zookeeper()
    assert driver(zookeeper, commits)._perform(CopyToZookeeper({A: 5, B: 7})) == frozenset()
    assert zookeeper.offsets == {A: 5, B: 7}


def test_a_reservation_stays_while_zookeeper_has_less() -> None:
    assert driver(Zookeeper(refused=[B]), True)._perform(CopyToZookeeper({A: 5, B: 7})) == {B}
    assert driver(Zookeeper(is_gone=True), True)._perform(CopyToZookeeper({A: 5, B: 7})) == {A, B}


def test_a_reservation_goes_when_zookeeper_is_further() -> None:
    zookeeper = Zookeeper(refused=[A])
    zookeeper.offsets[A] = 9
    assert driver(zookeeper, False)._perform(CopyToZookeeper({A: 5})) == frozenset()
