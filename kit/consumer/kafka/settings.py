"""The settings of a Kafka consumer: librdkafka's keys, checked, and values derived from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel

from kit.errors import InputError

COOPERATIVE = frozenset({"cooperative-sticky"})
EAGER = frozenset({"range", "roundrobin"})
STATISTICS_MS = 1000
"""The greatest age of ``metrics()`` in ms, if ``statistics.interval.ms`` is not set."""

_EARLIEST = ("smallest", "earliest", "beginning")
_LATEST = ("largest", "latest", "end")
_TAKEN = {
    "on_commit": "pass a callback to commit_async()",
    "stats_cb": "read metrics()",
    "default.topic.config": "put its settings beside the other settings",
    "enable.auto.offset.store": "records of poll() and consume() are stored at the next call, as in Java",
}
_CONNECTION = (
    "bootstrap.servers", "metadata.broker.list", "client.", "security.protocol", "ssl.", "sasl.", "https.",
    "enable.ssl.", "enable.sasl.", "broker.", "socket.", "reconnect.", "retry.", "connections.", "resolve_cb",
    "oauth_cb", "log_level", "log.",
)  # fmt: skip
"""Prefixes of the settings that a consumer's admin client gets too."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The settings of one ``KafkaConsumer``.

    ``incremental``: how assignments are applied, as changes (cooperative-sticky, KIP-848) or as a whole.
    ``reset`` is ``earliest``, ``latest`` or ``error``.
    """

    group_id: str
    consumer: dict[str, Any]
    connection: dict[str, Any]
    incremental: bool
    reset: str
    isolation: IsolationLevel
    auto_commits: bool
    reports_metrics: bool

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> KafkaSettings:
        """From librdkafka's keys.

        Raises:
            InputError: a setting is missing, is set by the wrapper itself, or does not fit the other settings; it is
            named.
                ``KafkaConsumer`` refuses what librdkafka checks itself, in librdkafka's words.
        """
        _refuse(config)
        consumer = {"statistics.interval.ms": STATISTICS_MS, **config, "enable.auto.offset.store": False}
        return cls(
            group_id=str(config["group.id"]),
            consumer=consumer,
            connection={key: value for key, value in config.items() if key.startswith(_CONNECTION)},
            incremental=_is_incremental(config),
            reset=_reset(str(config.get("auto.offset.reset", "largest"))),
            isolation=_isolation(str(config.get("isolation.level", "read_committed"))),
            auto_commits=_is_true(config.get("enable.auto.commit", True)),
            reports_metrics=str(consumer["statistics.interval.ms"]) != "0",
        )


def _refuse(config: Mapping[str, Any]) -> None:
    for key, instead in _TAKEN.items():
        if key in config:
            raise InputError(f"the setting {key!r} can't be set: {instead}")
    if not any(config.get(key) for key in ("bootstrap.servers", "metadata.broker.list")):
        raise InputError("a Kafka consumer needs the setting 'bootstrap.servers'")
    if not config.get("group.id"):
        # librdkafka 2.16 ends the process with a failed assertion on an empty one.
        raise InputError("a Kafka consumer needs the setting 'group.id', and it must not be empty")


def _is_incremental(config: Mapping[str, Any]) -> bool:
    """Derive the protocol from the settings: Python can't ask librdkafka which one it uses."""
    if str(config.get("group.protocol", "classic")).lower() == "consumer":
        return True
    named = set(str(config.get("partition.assignment.strategy") or "range,roundrobin").split(","))
    unknown = named - EAGER - COOPERATIVE
    if unknown:
        raise InputError(
            f"partition.assignment.strategy has {', '.join(map(repr, sorted(unknown)))}; librdkafka has "
            f"{', '.join(sorted(EAGER | COOPERATIVE))}"
        )
    if named & EAGER and named & COOPERATIVE:
        raise InputError(
            "partition.assignment.strategy mixes eager (range, roundrobin) and cooperative assignors: librdkafka can't "
            "move a group from one to the other; choose one kind"
        )
    return bool(named & COOPERATIVE)


def _reset(value: str) -> str:
    lowered = value.lower()
    return "earliest" if lowered in _EARLIEST else "latest" if lowered in _LATEST else "error"


def _isolation(value: str) -> IsolationLevel:
    """librdkafka's default is read_committed; Java's is read_uncommitted."""
    name = value.upper()
    return IsolationLevel.READ_UNCOMMITTED if name == "READ_UNCOMMITTED" else IsolationLevel.READ_COMMITTED


def _is_true(value: object) -> bool:
    return str(value).lower() in ("true", "t", "1")
