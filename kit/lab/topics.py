"""Topics of a lab and numbered records in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from kit.errors import LabError
from kit.lab.process import wait_until
from kit.text.quantity import quantity

# Brokers of a lab come and go on purpose; a client's lines about it are noise.
QUIET = {"log_level": "0", "log.connection.close": "false"}
_SECONDS, _ANSWER_SECONDS, _PARTITIONS_PER_SECOND = 30, 20, 50


def create(admin: AdminClient, partitions: Mapping[str, int], replication: int) -> None:
    """Create topics (name → partitions) and wait until all replicas of each are in sync; raises LabError."""
    wanted = [NewTopic(name, count, replication) for name, count in partitions.items()]
    seconds = _seconds(sum(partitions.values()))
    for name, future in admin.create_topics(wanted, operation_timeout=_ANSWER_SECONDS).items():
        try:
            _take(future)
        except (KafkaException, TimeoutError) as error:
            raise LabError(f"Topic {name} was not created: {error or f'no answer in {_SECONDS} s'}") from error
    for name, count in partitions.items():
        wait_until(partial(is_whole, admin, name, count, replication), f"topic {name} on all its brokers", seconds)


def grow(admin: AdminClient, name: str, partitions: int, replication: int) -> None:
    """Give a topic more partitions and wait until they are served; raises LabError."""
    seconds = _seconds(partitions)
    try:
        wanted = [NewPartitions(name, partitions)]
        for future in admin.create_partitions(wanted, operation_timeout=_ANSWER_SECONDS).values():
            _take(future)
    except KafkaException as error:
        raise LabError(f"Topic {name} can't be given {quantity(partitions, 'partition')}: {error}") from None
    wait_until(lambda: is_whole(admin, name, partitions, replication), f"topic {name} on all its brokers", seconds)


def _take(future: Future[None]) -> None:
    """The answer to a request that is not done within ``_ANSWER_SECONDS`` is no failure: the brokers finish it."""
    try:
        future.result(_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.REQUEST_TIMED_OUT:
            raise


def _seconds(partitions: int) -> int:
    """Return how long to wait for that many partitions: a broker makes the log of each."""
    return _SECONDS + partitions // _PARTITIONS_PER_SECOND


def knows_all(address: str, brokers: int) -> bool:
    """Return whether the broker at ``address`` names all ``brokers`` and a controller among them.

    A broker serves before it knows any broker, itself included. A client that connects by then waits long to retry.
    """
    try:
        metadata = AdminClient({**QUIET, "bootstrap.servers": address}).list_topics(timeout=2)
    except KafkaException:
        return False
    return len(metadata.brokers) == brokers and metadata.controller_id in metadata.brokers


def is_whole(admin: AdminClient, name: str, partitions: int, replication: int) -> bool:
    """Return whether all partitions are visible, led and fully in sync; False if no broker answers in 10 s."""
    try:
        states = admin.list_topics(name, timeout=10).topics[name].partitions.values()
    except KafkaException:
        return False
    return len(states) == partitions and all(p.leader >= 0 and len(p.isrs) == replication for p in states)


def all_in_sync(admin: AdminClient, brokers: int) -> bool:
    """Return whether a broker names all ``brokers``, and every partition is led and fully in sync."""
    try:
        metadata = admin.list_topics(timeout=2)
    except KafkaException:
        return False
    states = [each for topic in metadata.topics.values() for each in topic.partitions.values()]
    return len(metadata.brokers) == brokers and all(p.leader >= 0 and len(p.isrs) == len(p.replicas) for p in states)


def produce(bootstrap_servers: str, topic: str, partitions: int, first: int, count: int) -> dict[int, int]:
    """Write records numbered from ``first``, spread evenly; returns partition → acknowledged count.

    Raises LabError when one was not acknowledged within two minutes.
    """
    acknowledged: Counter[int] = Counter(dict.fromkeys(range(partitions), 0))
    failures: list[str] = []

    def delivered(error: Any, message: Message) -> None:
        if error is not None:
            failures.append(str(error))
        else:
            acknowledged[int(message.partition() or 0)] += 1

    producer = Producer({**QUIET, "bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
    for number in range(first, first + count):
        while True:
            try:
                producer.produce(topic, str(number).encode(), partition=number % partitions, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(120)
    if left or failures:
        raise LabError(f"{left + len(failures)} of {quantity(count, 'record')} for {topic} not written: {failures[:1]}")
    return dict(acknowledged)
