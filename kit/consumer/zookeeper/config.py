"""The settings of an old consumer: its own keys and defaults (0.8.2 … 1.1), and KIP-125's.

A key that isn't known is refused by its name, a value that can't be used before anything is registered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kit.errors import InputError

MIGRATION_PREFIX = "coordination.migration."
ROUNDROBIN_HASH = "roundrobin.hash"
HASH_0_8_2, HASH_1_0 = "0.8.2", "1.0"
RANGE, ROUNDROBIN = "range", "roundrobin"
ZOOKEEPER_STORE, KAFKA_STORE = "zookeeper", "kafka"

_NAME = re.compile(r"[a-zA-Z0-9._-]+")
_JAVA_ASSIGNORS = {
    "org.apache.kafka.clients.consumer.RangeAssignor": RANGE,
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": ROUNDROBIN,
}


@dataclass(frozen=True, slots=True)
class _Key:
    parse: Callable[[str], Any]
    default: Any
    expected: str


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _number(least: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text)
        if not least <= number < 2**31:
            raise ValueError(number)
        return number

    return parse


def _one_of(*words: str) -> Callable[[str], str]:
    return lambda text: {word: word for word in words}[text]


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(text)
    return text


def _text(text: str) -> str:
    if not text.strip():
        raise ValueError(text)
    return text.strip()


def _count_key(default: int | None, least: int = 0) -> _Key:
    return _Key(_number(least), default, f"a whole number, {least} or more")


_BOOLEAN = "true or false"
_LETTERS = "letters, digits, dot, underscore and dash, at least one"
KEYS: Mapping[str, _Key] = {
    "group.id": _Key(_name, None, _LETTERS),
    "zookeeper.connect": _Key(_text, None, "host:port, several with commas, a chroot at the end"),
    "zookeeper.session.timeout.ms": _count_key(6000, 1),
    "zookeeper.connection.timeout.ms": _count_key(None, 1),
    "zookeeper.sync.time.ms": _count_key(2000),
    "rebalance.max.retries": _count_key(4, 1),
    "rebalance.backoff.ms": _count_key(None),
    "auto.commit.enable": _Key(_boolean, True, _BOOLEAN),
    "auto.commit.interval.ms": _count_key(60_000, 1),
    "auto.offset.reset": _Key(_one_of("smallest", "largest"), "largest", "smallest or largest"),
    "offsets.storage": _Key(_one_of(ZOOKEEPER_STORE, KAFKA_STORE), ZOOKEEPER_STORE, "zookeeper or kafka"),
    "dual.commit.enabled": _Key(_boolean, None, _BOOLEAN),
    "offsets.channel.backoff.ms": _count_key(1000),
    "offsets.channel.socket.timeout.ms": _count_key(10_000, 1),
    "offsets.commit.max.retries": _count_key(5),
    "partition.assignment.strategy": _Key(_one_of(RANGE, ROUNDROBIN), RANGE, "range or roundrobin"),
    "exclude.internal.topics": _Key(_boolean, True, _BOOLEAN),
    "consumer.id": _Key(_name, None, _LETTERS),
    "client.id": _Key(_name, None, _LETTERS),
    "num.consumer.fetchers": _count_key(1, 1),
    "fetch.message.max.bytes": _count_key(1024 * 1024, 1),
    "fetch.min.bytes": _count_key(1, 1),
    "fetch.wait.max.ms": _count_key(100),
    "fetch.max.bytes": _count_key(50 * 1024 * 1024, 1),
    "queued.max.message.chunks": _count_key(2, 1),
    "refresh.leader.backoff.ms": _count_key(200),
    "socket.timeout.ms": _count_key(30_000, 1),
    "socket.receive.buffer.bytes": _count_key(0),
    "consumer.timeout.ms": _Key(_number(-1), -1, "milliseconds, or -1 for none"),
    ROUNDROBIN_HASH: _Key(
        _one_of(HASH_0_8_2, HASH_1_0),
        HASH_1_0,
        "0.8.2 (peers are 0.8.2 to 0.11) or 1.0 (peers are 1.0 or 1.1)",
    ),
    MIGRATION_PREFIX + "enabled": _Key(_boolean, False, _BOOLEAN),
    MIGRATION_PREFIX + "poll.interval.ms": _count_key(1000, 1),
}
"""The old consumer's keys (spec: its ``ConsumerConfig``), KIP-125's two, and ``roundrobin.hash``, which is ours: the
partitions' order of ``roundrobin`` changed in 1.0 (KAFKA-5822) and peers don't say their version. One default is not
the old consumer's: ``socket.receive.buffer.bytes`` is 0, the system's own; its 64 KiB would hold a stream back."""


_FORCED = {
    "group.id": "the Kafka group always has the group.id of the consumer (KIP-125)",
    "client.id": "members identify each other by the consumer's id (KIP-125)",
    "enable.auto.commit": "the consumer commits to both stores itself",
    "enable.auto.offset.store": "the consumer commits to both stores itself",
    "auto.offset.reset": "the embedded consumer fetches nothing; set auto.offset.reset without the prefix",
    "group.protocol": "the consumer protocol (KIP-848) has no point at which every member has stopped, which the "
    "consumer needs. Use classic",
    "on_commit": "the consumer sets on_commit itself",
}
COMMON_MIGRATION_KEYS = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location",
    "ssl.certificate.location", "ssl.key.location", "ssl.key.password", "session.timeout.ms", "heartbeat.interval.ms",
    "max.poll.interval.ms", "group.instance.id", "partition.assignment.strategy", "client.rack", "socket.timeout.ms",
    "metadata.max.age.ms", "reconnect.backoff.ms", "debug",
)  # fmt: skip
"""The keys of librdkafka that people set; the rest are in its CONFIGURATION.md, and known to librdkafka alone."""


@dataclass(frozen=True, slots=True)
class ConsumerConfig:
    """A checked configuration. ``values`` holds every key of ``KEYS``; ``kafka`` is for the embedded consumer.

    Made by :meth:`parse`; where a default depends on another key it is filled in.
    """

    values: Mapping[str, Any]
    kafka: Mapping[str, Any] = field(repr=False)  # Passwords are among them.

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> ConsumerConfig:
        """Check ``config``, whose values may be text, numbers or booleans.

        Raises:
            InputError: a key isn't known or missing, or a value can't be used; the message names it.
        """
        values = {name: key.default for name, key in KEYS.items()}
        kafka: dict[str, Any] = {}
        for name, given in config.items():
            if name in KEYS:
                values[name] = _parsed(name, given)
            elif name.startswith(MIGRATION_PREFIX):
                kafka[name.removeprefix(MIGRATION_PREFIX)] = given
            else:
                raise InputError(
                    f"{name!r} is not a setting of the old consumer. Its settings are {', '.join(sorted(KEYS))}"
                )
        _fill(values)
        _check(values, kafka)
        return cls(values, _librdkafka(kafka))

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def seconds(self, name: str) -> float:
        """A duration key (``….ms``) in seconds."""
        return float(self.values[name]) / 1000

    @property
    def group_id(self) -> str:
        return str(self.values["group.id"])

    @property
    def is_migration_enabled(self) -> bool:
        return bool(self.values[MIGRATION_PREFIX + "enabled"])


def _parsed(name: str, given: Any) -> Any:
    key = KEYS[name]
    try:
        return key.parse(str(given).strip())
    except (ValueError, KeyError):
        raise InputError(f"{name} is {given!r}; it must be {key.expected}") from None


def _fill(values: dict[str, Any]) -> None:
    """Defaults that follow another key, as the old ``ConsumerConfig`` and KIP-125 have them."""
    defaults = {
        "zookeeper.connection.timeout.ms": values["zookeeper.session.timeout.ms"],
        "rebalance.backoff.ms": values["zookeeper.sync.time.ms"],
        "client.id": values["group.id"],
        "dual.commit.enabled": values["offsets.storage"] == KAFKA_STORE,
    }
    for name, default in defaults.items():
        if values[name] is None:
            values[name] = default


def _check(values: dict[str, Any], kafka: dict[str, Any]) -> None:
    for name in ("group.id", "zookeeper.connect"):
        if values[name] is None:
            raise InputError(f"{name} is missing: {KEYS[name].expected}")
    if values["fetch.wait.max.ms"] > values["socket.timeout.ms"]:
        raise InputError("fetch.wait.max.ms must not be greater than socket.timeout.ms")
    if not values[MIGRATION_PREFIX + "enabled"]:
        return
    if not kafka.get("bootstrap.servers"):
        raise InputError(f"a migration-enabled consumer needs {MIGRATION_PREFIX}bootstrap.servers (KIP-125)")
    if values["offsets.storage"] != KAFKA_STORE or not values["dual.commit.enabled"]:
        raise InputError(
            "a migration-enabled consumer commits to both stores: offsets.storage=kafka, dual.commit.enabled=true "
            "(KIP-125, Terminology)"
        )


def _librdkafka(kafka: dict[str, Any]) -> dict[str, Any]:
    """Java's class names of assignors as librdkafka calls them; eager ones only (race R4, R20)."""
    for name in kafka.keys() & _FORCED.keys():
        raise InputError(f"{MIGRATION_PREFIX}{name} can't be chosen: {_FORCED[name]}")
    strategy = str(kafka.get("partition.assignment.strategy", RANGE)).strip()
    strategy = _JAVA_ASSIGNORS.get(strategy, strategy)
    if strategy not in (RANGE, ROUNDROBIN):
        raise InputError(
            f"{MIGRATION_PREFIX}partition.assignment.strategy is {strategy!r}; it must be range or roundrobin: with "
            "a cooperative assignor a partition could be delivered before its old owner stopped"
        )
    return {**kafka, "partition.assignment.strategy": strategy}
