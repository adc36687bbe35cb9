"""Settings of a consumer that reads records by assigned offsets and is no member of any group."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError

LONE: dict[str, Any] = {
    "log_level": "0",
    "log.connection.close": "false",
    # librdkafka wants a group; no member joins it and nothing is committed to it.
    "group.id": "offramp-joins-no-group",
    "client.id": "offramp",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    # A broker holds back the answer that there are no more records for this long.
    "fetch.wait.max.ms": 50,
}
"""For librdkafka. Aborted records are left out: an offset of theirs never was a group's."""


def describe_unread(error: KafkaError) -> str:
    """Return why a partition can't be read; where the login lacks a right, with that right."""
    lacks = ": the login lacks READ on the topic" if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED else ""
    return f"{error.str()}{lacks}"
