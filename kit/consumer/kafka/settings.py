"""The settings of a Kafka consumer: librdkafka's own, checked, and what else follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import IsolationLevel

from kit.errors import InputError

COOPERATIVE = frozenset({"cooperative-sticky"})
EAGER = frozenset({"range", "roundrobin"})
STATISTICS_MS = 1000
"""How old ``metrics()`` may be unless ``statistics.interval.ms`` says otherwise."""

_EARLIEST = ("smallest", "earliest", "beginning")
_LATEST = ("largest", "latest", "end")
_TAKEN = {
    "on_commit": "pass a callback to commit_async()",
    "stats_cb": "read metrics()",
    "default.topic.config": "its settings may stand beside the others",
    "enable.auto.offset.store": "what poll() and consume() returned is stored at their next call, as in Java",
}
_CONNECTION = (
    "bootstrap.servers", "metadata.broker.list", "client.", "security.protocol", "ssl.", "sasl.", "https.",
    "enable.ssl.", "enable.sasl.", "broker.", "socket.", "reconnect.", "retry.", "connections.", "resolve_cb",
    "oauth_cb", "log_level", "log.",
)  # fmt: skip
"""Beginnings of the settings that the admin client of a consumer shares."""


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """What ``KafkaConsumer`` runs with.

    ``incremental`` tells how assignments are applied: as changes (cooperative-sticky, KIP-848) or as a whole.
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
            InputError: naming the setting that is missing, is the wrapper's own, or does not go with the others.
                What librdkafka checks itself is refused by ``KafkaConsumer``, in librdkafka's words.
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
            raise InputError(f"the setting {key!r} is not taken: {instead}")
    if not any(config.get(key) for key in ("bootstrap.servers", "metadata.broker.list")):
        raise InputError("a Kafka consumer needs the setting 'bootstrap.servers'")
    if not config.get("group.id"):
        # librdkafka 2.16 ends the process with a failed assertion on an empty one.
        raise InputError("a Kafka consumer that is told of rebalances needs a 'group.id' that is not empty")


def _is_incremental(config: Mapping[str, Any]) -> bool:
    """Python can't ask librdkafka which protocol it uses, so it is read from what was asked for."""
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
