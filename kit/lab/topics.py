"""Topics of a lab and numbered records in them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kit.errors import LabError
from kit.lab.process import wait_until

# Brokers of a lab come and go on purpose; what a client has to say about it is noise.
QUIET = {"log_level": "0", "log.connection.close": "false"}


def create(admin: AdminClient, name: str, partitions: int, replication: int) -> None:
    """Create a topic and wait until every partition has a leader and all its replicas in sync; raises LabError."""
    try:
        admin.create_topics([NewTopic(name, partitions, replication)])[name].result(30)
    except KafkaException as error:
        raise LabError(f"Topic {name} was not created: {error.args[0].str()}") from error
    wait_until(lambda: is_whole(admin, name, partitions, replication), f"topic {name} on all its brokers", 30)


def is_whole(admin: AdminClient, name: str, partitions: int, replication: int) -> bool:
    """Whether all partitions are visible, led and fully in sync."""
    found = admin.list_topics(name, timeout=10).topics[name].partitions.values()
    return len(found) == partitions and all(p.leader >= 0 and len(p.isrs) == replication for p in found)


def produce(bootstrap_servers: str, topic: str, partitions: int, first: int, count: int) -> dict[int, int]:
    """Write records numbered from ``first``, spread evenly; returns partition → acknowledged count.

    Raises LabError when one was not acknowledged within two minutes.
    """
    acknowledged: Counter[int] = Counter({partition: 0 for partition in range(partitions)})
    failures: list[str] = []

    def told(error: Any, message: Message) -> None:
        if error is not None:
            failures.append(str(error))
        else:
            acknowledged[message.partition()] += 1

    producer = Producer({**QUIET, "bootstrap.servers": bootstrap_servers, "enable.idempotence": True, "linger.ms": 5})
    for number in range(first, first + count):
        while True:
            try:
                producer.produce(topic, str(number).encode(), partition=number % partitions, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(120)
    if left or failures:
        raise LabError(f"{left + len(failures)} of {count} records for {topic} were not written: {failures[:1]}")
    return dict(acknowledged)
