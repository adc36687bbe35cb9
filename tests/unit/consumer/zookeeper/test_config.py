"""A consumer's configuration and registration: what is refused, by name, before anything is registered."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kit.clients.registration import parse_registration
from kit.consumer.zookeeper.config import ConsumerConfig
from kit.consumer.zookeeper.connector import ZookeeperConsumer
from kit.consumer.zookeeper.registration import consumer_id, static_subscription, thread_ids, wildcard_subscription
from kit.errors import InputError

LEAST = {"group.id": "g", "zookeeper.connect": "zk:2181/kafka"}
MIGRATION = {
    "coordination.migration.enabled": True,
    "coordination.migration.bootstrap.servers": "kafka:9092",
    "offsets.storage": "kafka",
}


def test_defaults_follow_each_other() -> None:
    config = ConsumerConfig.parse({**LEAST, "zookeeper.sync.time.ms": "1500", "offsets.storage": "kafka"})
    assert config["rebalance.backoff.ms"] == 1500
    assert config["zookeeper.connection.timeout.ms"] == 6000
    assert config["dual.commit.enabled"] is True
    assert config["client.id"] == "g"
    assert ConsumerConfig.parse(LEAST)["dual.commit.enabled"] is False


def test_migration_keys_go_to_the_embedded_consumer() -> None:
    java_class = "org.apache.kafka.clients.consumer.RangeAssignor"
    config = ConsumerConfig.parse(
        {**LEAST, **MIGRATION, "coordination.migration.partition.assignment.strategy": java_class}
    )
    assert config.is_migration_enabled
    assert config.kafka == {"bootstrap.servers": "kafka:9092", "partition.assignment.strategy": "range"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"group.id": "a b"}, "group.id is 'a b'; it must be letters, digits"),
        ({"group.id": ""}, "group.id is ''"),
        ({"groupid": "g"}, "'groupid' is not a setting of the old consumer"),
        ({"auto.offset.reset": "earliest"}, "auto.offset.reset is 'earliest'; it must be smallest or largest"),
        ({"auto.commit.interval.ms": "soon"}, "auto.commit.interval.ms is 'soon'; it must be a whole number"),
        ({"consumer.timeout.ms": -2}, "consumer.timeout.ms is -2"),
        ({"fetch.wait.max.ms": 60000}, "fetch.wait.max.ms must not be greater than socket.timeout.ms"),
        ({"coordination.migration.enabled": True}, "needs coordination.migration.bootstrap.servers"),
        ({**MIGRATION, "offsets.storage": "zookeeper"}, "commits to both stores"),
        ({**MIGRATION, "dual.commit.enabled": False}, "commits to both stores"),
        ({**MIGRATION, "coordination.migration.partition.assignment.strategy": "cooperative-sticky"}, "cooperative"),
        ({**MIGRATION, "coordination.migration.group.id": "other"}, "group.id can't be chosen"),
        ({**MIGRATION, "coordination.migration.group.protocol": "consumer"}, "group.protocol can't be chosen"),
        ({**MIGRATION, "coordination.migration.enable.auto.commit": "true"}, "commits to both stores itself"),
    ],
)
def test_unusable_keys_are_refused_by_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        ConsumerConfig.parse({**LEAST, **given})


@pytest.mark.parametrize("missing", ["group.id", "zookeeper.connect"])
def test_missing_keys_are_named(missing: str) -> None:
    with pytest.raises(InputError, match=f"{re.escape(missing)} is missing"):
        ConsumerConfig.parse({key: value for key, value in LEAST.items() if key != missing})


def test_the_registration_is_the_old_consumers_byte_for_byte() -> None:
    assert static_subscription({"t8": 2}).payload(1795236385109) == (
        b'{"version":1,"subscription":{"t8":2},"pattern":"static","timestamp":"1795236385109"}'
    )
    assert wildcard_subscription("w.*", None, 2).payload(7) == (
        b'{"version":1,"subscription":{"w.*":2},"pattern":"white_list","timestamp":"7"}'
    )
    assert wildcard_subscription(None, " 'a, b\\.c' ", 1).payload(7) == (
        rb'{"version":1,"subscription":{"a|b\\.c":1},"pattern":"black_list","timestamp":"7"}'
    )


def test_a_deny_pattern_keeps_topics_that_only_begin_with_a_match() -> None:
    registered = parse_registration(wildcard_subscription(None, "orders", 1).payload(7))
    assert registered.topics(["orders", "orders-late", "__consumer_offsets"]) == {"orders-late": 1}
    assert "__consumer_offsets" in registered.topics(["__consumer_offsets"], excludes_internal=False)


@pytest.mark.parametrize("pattern", [r"\p{Alpha}+", "a++", "[a-z&&[^b]]", "(unclosed", "", "ö.*"])
def test_patterns_that_members_would_read_differently_are_refused(pattern: str) -> None:
    with pytest.raises(InputError, match="the pattern"):
        wildcard_subscription(pattern, None, 1)


@pytest.mark.parametrize(("allow", "deny"), [(None, None), ("a", "b")])
def test_one_pattern_is_needed(allow: str | None, deny: str | None) -> None:
    with pytest.raises(InputError, match="either allow or deny"):
        wildcard_subscription(allow, deny, 1)


@pytest.mark.parametrize("streams", [{}, {"t": 0}, {"t": True}, {"a b": 1}])
def test_topics_and_numbers_of_streams_are_checked(streams: dict[str, int]) -> None:
    with pytest.raises(InputError):
        static_subscription(streams)


def test_ids_have_the_old_consumers_form() -> None:
    assert re.fullmatch(r"g_[a-zA-Z0-9._-]+-\d{13}-[0-9a-f]{8}", consumer_id("g", None))
    assert thread_ids(consumer_id("g", "canary"), 2) == ["g_canary-0", "g_canary-1"]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("colour", "red"),
        ("session.timeout.ms", "soon"),
        ("security.protocol", "TLS"),
        ("max.poll.interval.ms", "1000"),
        ("heartbeat.interval.ms", None),
    ],
)
def test_a_migration_key_that_librdkafka_refuses_is_refused_by_name_with_those_that_are_known(
    key: str, value: str | None
) -> None:
    """Before anything is registered, or anybody connected to."""
    config = {**LEAST, **MIGRATION, f"coordination.migration.{key}": value}
    with pytest.raises(InputError, match=r"coordination\.migration\.… is refused: .*session\.timeout\.ms") as refused:
        ZookeeperConsumer(config)
    assert key in str(refused.value)
