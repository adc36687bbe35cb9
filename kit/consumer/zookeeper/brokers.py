"""Ask the brokers for what a member needs besides records: where its group's offsets begin, and the members of the
Kafka group.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kazoo.client import KazooClient

from kit.clients.consumer_protocol import is_embedded
from kit.clients.multiread import Znode, fetch_children, fetch_data
from kit.clients.values import json_in
from kit.consumer.kafka.log_offsets import list_offsets
from kit.consumer.zookeeper.assignors import TopicAndPartition
from kit.consumer.zookeeper.config import COMMON_MIGRATION_KEYS, MIGRATION_PREFIX, ConsumerConfig
from kit.consumer.zookeeper.effects import KafkaGroup, Offsets
from kit.consumer.zookeeper.embedded import DEFAULTS
from kit.consumer.zookeeper.kafka_members import KafkaMember, KafkaMembers
from kit.errors import ConnectError, InputError

# librdkafka would log dead connections on standard error, some 20 lines a second.
QUIET = {"log_level": 0}
DESCRIBE_SECONDS = 0.5
"""Small: a member that must let go of a partition for an old consumer asks before it does."""
RENEW_SECONDS = 5.0
"""The time for which the list of groups may fail before the handle that asks for it is made again.

A broker that starts can answer metadata without a broker in it. librdkafka's handle, whose only broker was away until
then, may know none after that, and does not ask again before ``topic.metadata.refresh.interval.ms`` (5 minutes).
"""
STABLE = "Stable"
ANY_TOPIC = "offramp"


def plaintext_brokers(zookeeper: KazooClient) -> str:
    """``host:port`` of every broker as ZooKeeper has them, which is how an old consumer finds them.

    Raises:
        ConnectError: none of them has a PLAINTEXT listener, or none is registered.
    """
    (ids,) = fetch_children(zookeeper, ["/brokers/ids"])
    names = ids if isinstance(ids, list) else []
    znodes = fetch_data(zookeeper, [f"/brokers/ids/{name}" for name in sorted(names)])
    registrations = [json_in(znode.data) for znode in znodes if isinstance(znode, Znode)]
    brokers = [each for each in registrations if isinstance(each, dict)]
    plain = [
        f"{each['host']}:{each['port']}"
        for each in brokers
        if each.get("host") and type(each.get("port")) is int and each["port"] > 0
    ]
    if not plain:
        endpoints = sorted({str(each.get("endpoints", "no endpoint")) for each in brokers})
        raise ConnectError(
            f"no broker in /brokers/ids has a PLAINTEXT listener ({', '.join(endpoints) or 'none is registered'}): an "
            "old consumer speaks neither TLS nor SASL. A migration-enabled consumer can, with "
            "coordination.migration.bootstrap.servers, coordination.migration.security.protocol and so on"
        )
    return ",".join(plain)


def fetch_settings(config: ConsumerConfig, bootstrap_servers: str) -> dict[str, Any]:
    """librdkafka's settings for a handle that fetches assigned partitions and commits nothing.

    Records of aborted transactions are delivered, as by an old consumer.
    """
    same = ("fetch.message.max.bytes", "fetch.min.bytes", "fetch.wait.max.ms", "fetch.max.bytes", "socket.timeout.ms")
    settings = {name: config[name] for name in (*same, "socket.receive.buffer.bytes")}
    # librdkafka wants the bound of a whole answer not below that of a message.
    settings["fetch.max.bytes"] = max(settings["fetch.max.bytes"], settings["fetch.message.max.bytes"])
    return {
        **QUIET,
        **settings,
        **connection_settings(config, bootstrap_servers),
        "client.id": config["client.id"],
        "group.id": config.group_id,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_uncommitted",
        # librdkafka's second of rest, once enough is queued, would be a second of silence for a quick application.
        "fetch.queue.backoff.ms": 10,
    }


def connection_settings(config: ConsumerConfig, bootstrap_servers: str) -> dict[str, Any]:
    """Address and security, for any kind of handle."""
    prefixes = ("security.", "ssl.", "sasl.", "broker.address", "client.dns")
    secured = {name: value for name, value in config.kafka.items() if name.startswith(prefixes)}
    return {**QUIET, "bootstrap.servers": bootstrap_servers, **secured}


def check_migration_settings(kafka: Mapping[str, Any]) -> None:
    """Let librdkafka check the settings, by a handle that is closed at once and connects to no broker.

    Raises:
        InputError: librdkafka doesn't know one of the keys behind ``coordination.migration.``, or refuses a value.
    """
    try:
        Consumer({**QUIET, **DEFAULTS, "group.id": "checked", **kafka, "bootstrap.servers": ""}).close()
    except (KafkaException, TypeError, ValueError) as error:
        cause = error.args[0] if error.args else error
        said = cause.str() if isinstance(cause, KafkaError) else str(cause)
        known = ", ".join(MIGRATION_PREFIX + name for name in COMMON_MIGRATION_KEYS)
        raise InputError(
            f"one of the keys {MIGRATION_PREFIX}… is refused: {said}. Use enabled, poll.interval.ms and the "
            f"settings of "
            f"librdkafka's consumer: {known} and others (its CONFIGURATION.md)"
        ) from None


class GroupBrokers:
    """Requests about one group; each handle is created when it is first needed."""

    def __init__(self, config: ConsumerConfig, bootstrap_servers: str, renew_seconds: float = RENEW_SECONDS) -> None:
        self._config = config
        self._servers = bootstrap_servers
        self._renew_seconds = renew_seconds
        self._admin = self._new_admin()
        self._failing_since: float | None = None
        self._nobody: Consumer | None = None
        self._members = KafkaMembers()

    def connect(self) -> Consumer:
        """A handle for a stream."""
        return Consumer(fetch_settings(self._config, self._servers))

    def log_offsets(
        self, partitions: Sequence[TopicAndPartition], at: str, seconds: float
    ) -> dict[TopicAndPartition, int]:
        """First (``smallest``) or next (``largest``) offset of each log; partitions without an answer are left out."""
        spec = OffsetSpec.earliest() if at == "smallest" else OffsetSpec.latest()  # type: ignore[no-untyped-call]
        admin = self._admin  # to keep: another thread may make it again, and what it was asked would never be answered
        try:
            asked = list_offsets(admin, {TopicPartition(*pair): spec for pair in partitions}, seconds)
        except KafkaException:
            return {}
        offsets = {}
        for partition, future in asked.items():
            try:
                offsets[partition.topic, partition.partition] = int(future.result().offset)
            except KafkaException:
                continue
        return offsets

    def committed(self, wanted: Offsets, seconds: float) -> Mapping[TopicAndPartition, int | KafkaError]:
        """The group's offsets in Kafka; ``OFFSET_INVALID`` where there is none."""
        answers = self._as_nobody().committed([TopicPartition(*pair) for pair in wanted], timeout=max(0.1, seconds))
        return _answers(answers)

    def commit(self, wanted: Offsets, seconds: float) -> Mapping[TopicAndPartition, int | KafkaError]:
        """Commit without a member: Kafka accepts that only while the group is empty."""
        partitions = [TopicPartition(*pair, offset) for pair, offset in wanted.items()]
        return _answers(self._as_nobody().commit(offsets=partitions, asynchronous=False) or [])

    def describe(self, consumer_ids: Collection[str]) -> KafkaGroup | None:
        """The Kafka group; None when its coordinator doesn't answer in time.

        ``consumer_ids`` are those that are registered. An embedded consumer's client id is its member's consumer id
        (KIP-125), and others may have the same: see :class:`KafkaMembers`.
        """
        groups = self._listed()
        if groups is None:
            return None
        if not groups and self._answers():
            # The list lacks the group also when the coordinator's broker did not answer.
            groups = self._listed() or []
        elif not groups:
            return None
        is_stable = any(group.state == STABLE for group in groups)
        members = [
            KafkaMember(
                each.id,
                each.client_id,
                is_embedded(each.metadata) if is_stable or each.metadata else None,
                _assigned(each.assignment),
            )
            for group in groups
            for each in group.members
        ]
        return self._members.group(members, is_stable, consumer_ids)

    def _listed(self) -> list[Any] | None:
        """The group, in a list; empty if no broker that answered has it, None if no broker could be asked.

        Not by DescribeConsumerGroups of the admin client: when its coordinator goes away in the middle of that,
        librdkafka ends the whole process (its issue 4605).
        """
        try:
            groups = self._admin.list_groups(self._config.group_id, timeout=DESCRIBE_SECONDS)
        except KafkaException:
            self._renew_in_time()
            return None
        self._failing_since = None
        return None if any(group.error is not None for group in groups) else list(groups)

    def _renew_in_time(self) -> None:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since > self._renew_seconds:
            self._admin, self._failing_since = self._new_admin(), now

    def _new_admin(self) -> AdminClient:
        return AdminClient(connection_settings(self._config, self._servers))

    def _answers(self) -> bool:
        """Return whether the group's coordinator answers: it alone knows offsets."""
        try:
            self._as_nobody().committed([TopicPartition(ANY_TOPIC, 0)], timeout=DESCRIBE_SECONDS)
        except KafkaException:
            return False
        return True

    def close(self) -> None:
        if self._nobody is not None:
            self._nobody.close()

    def _as_nobody(self) -> Consumer:
        if self._nobody is None:
            self._nobody = self.connect()
        return self._nobody


def _assigned(assignment: bytes) -> frozenset[TopicAndPartition]:
    """Return the assignment of the consumer protocol; nothing while the group rebalances."""
    if not assignment:
        return frozenset()
    topics = ConsumerProtocolAssignment.decode(assignment).assigned_partitions
    return frozenset((each.topic, partition) for each in topics for partition in each.partitions)


def _answers(partitions: Sequence[TopicPartition]) -> dict[TopicAndPartition, int | KafkaError]:
    return {
        (each.topic, each.partition): each.error if each.error is not None else int(each.offset) for each in partitions
    }
