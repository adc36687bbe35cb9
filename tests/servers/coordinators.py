"""Commits without a member, and the coordinators that take them.

A consumer makes them: it waits for the topic of offsets, which the first request for a coordinator creates. The admin
client's commits fail or time out meanwhile.
"""

from __future__ import annotations

from contextlib import closing

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from kit.lab import Lab
from kit.lab.process import wait_until
from kit.lab.topics import QUIET
from tests.servers.awaiting import SECONDS

_STARTING = {
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError._TIMED_OUT,
    KafkaError._TRANSPORT,
    KafkaError._WAIT_COORD,
}


def await_coordinator(lab: Lab, group: str = "none") -> None:
    """Return when the topic of offsets exists and the group's coordinator answers. No group is made."""
    with closing(_consumer(lab, group)) as consumer:
        wait_until(lambda: _has_answered(consumer), f"the answer of the coordinator of {group}", SECONDS)


def commit(lab: Lab, group: str, *offsets: TopicPartition) -> None:
    """Return when the coordinator has accepted every offset."""
    with closing(_consumer(lab, group)) as consumer:
        wait_until(lambda: _has_accepted(consumer, list(offsets)), f"the commit of {group}", SECONDS)


def committed(lab: Lab, group: str, *partitions: TopicPartition) -> list[int]:
    """The committed offset of each partition; -1001 where there is none."""
    with closing(_consumer(lab, group)) as consumer:
        return [each.offset for each in consumer.committed(list(partitions), timeout=SECONDS)]


def _consumer(lab: Lab, group: str) -> Consumer:
    return Consumer({**QUIET, "bootstrap.servers": lab.servers.addresses(), "group.id": group})


def _has_answered(consumer: Consumer) -> bool:
    try:
        consumer.committed([TopicPartition("any", 0)], timeout=10)
    except KafkaException as error:
        _refuse_unless_starting(error)
        return False
    return True


def _has_accepted(consumer: Consumer, offsets: list[TopicPartition]) -> bool:
    try:
        answers = consumer.commit(offsets=offsets, asynchronous=False)
    except KafkaException as error:
        _refuse_unless_starting(error)
        return False
    assert [answer.error for answer in answers] == [None] * len(offsets), answers
    return True


def _refuse_unless_starting(error: KafkaException) -> None:
    """Raise every error again that does not come from a coordinator that starts."""
    if error.args[0].code() not in _STARTING:
        raise error
