"""The last commit to Kafka of a member that leaves: as a member of the group, and never over another's."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from kit.consumer.metrics import Metrics
from kit.consumer.zookeeper.driver import LAST_COMMIT_SECONDS, Driver
from kit.consumer.zookeeper.effects import CommitKafka
from kit.consumer.zookeeper.gate import Gate

A, B = ("t", 0), ("t", 1)
Offsets = Mapping[tuple[str, int], int]


class Kafka:
    """The offsets in Kafka, and the embedded consumer: it may commit once it has joined."""

    name = "kafka"

    def __init__(self, joins: bool, there: Offsets | None = None) -> None:
        self.offsets = dict(there or {})
        self.waits: list[float] = []
        self._joins, self._is_member = joins, False

    def await_joined(self, seconds: float) -> None:
        self.waits.append(seconds)
        self._is_member = self._joins

    def commit(self, offsets: Offsets, seconds: float) -> dict[tuple[str, int], str]:
        if not self._is_member:
            return dict.fromkeys(offsets, "it is joining")
        self.offsets |= offsets
        return {}

    def committed(self, offsets: Offsets, seconds: float) -> dict[tuple[str, int], int]:
        return {pair: self.offsets.get(pair, -1001) for pair in offsets}


def leaves(kafka: Kafka, offsets: Offsets, lease: float = 60.0, commits: bool = True) -> Gate:
    """A member that stopped at ``offsets`` makes its last commit, with ``lease`` seconds of its session certain."""
    gate = Gate(clock=lambda: 0.0)
    gate.session_began(1)
    gate.extend(1, lease)
    gate.uncommitted.add(offsets, ())
    nothing: Any = None
    member: Any = kafka
    driver = Driver(
        "g_c",
        znodes=nothing,
        gate=gate,
        brokers=member,
        zookeeper_offsets=nothing,
        kafka_offsets=member,
        store=nothing,
        metrics=Metrics("g", "g", dict),
        reset="smallest",
        commits=commits,
        viewed=lambda view: None,
        changed=threading.Event(),
        listener=None,
    )
    driver.embedded = member
    driver._perform(CommitKafka(offsets, is_last=True))
    return gate


def test_it_waits_until_the_member_has_joined() -> None:
    kafka = Kafka(joins=True)
    gate = leaves(kafka, {A: 5, B: 7})
    assert kafka.offsets == {A: 5, B: 7}
    assert kafka.waits == [LAST_COMMIT_SECONDS]
    assert gate.uncommitted.not_in_kafka() == {}


def test_a_member_that_can_not_join_reports_what_kafka_lacks(caplog: Any) -> None:
    kafka = Kafka(joins=False)
    leaves(kafka, {A: 5})
    assert kafka.offsets == {}
    assert "g_c: stopped without a commit to kafka: t-0: it is joining" in caplog.text


def test_a_session_in_doubt_after_the_wait_lowers_nothing() -> None:
    """Another member may own A by now, and be further."""
    kafka = Kafka(joins=True, there={A: 9, B: 3})
    leaves(kafka, {A: 5, B: 7}, lease=-1.0)
    assert kafka.offsets == {A: 9, B: 7}


def test_a_member_with_nothing_to_commit_does_not_wait() -> None:
    kafka = Kafka(joins=True)
    leaves(kafka, {})
    leaves(kafka, {A: 5}, commits=False)
    assert kafka.waits == []
