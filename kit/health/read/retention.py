"""Read what decides when records are deleted: settings of topics and brokers, and the size of each log at its
leader.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeLogDirsRequest

from kit.clients.broker_client import (
    RETRIABLE_FAILURES,
    BrokerClient,
    Deadline,
    describe_code,
    describe_refusal,
)
from kit.clients.brokers import Key, fetch_leaders
from kit.clients.kafka_messages import BROKER, TOPIC, describe_configs
from kit.tables.groups import LogRetention

_TOPICS_PER_REQUEST = 1000
_CHECK = "log.retention.check.interval.ms"
_SETTINGS = (
    *("cleanup.policy", "remote.storage.enable"),
    *("retention.ms", "retention.bytes", "segment.ms", "segment.bytes"),
)


@dataclass
class _Known:
    topics: dict[str, Mapping[str, str]] = field(default_factory=dict)
    checks: dict[int, int] = field(default_factory=dict)
    sizes: dict[Key, int] = field(default_factory=dict)
    errors: dict[str | int, str] = field(default_factory=dict)
    """By topic, or by broker: why something of it is unknown."""


def fetch_retention(client: BrokerClient, keys: Collection[Key]) -> list[LogRetention]:
    """One row per partition. A value that a broker does not report is null, and the row's error has the reason.

    DescribeConfigs for topics and for their leaders, DescribeLogDirs for each leader.

    Raises:
        ConnectError: no broker answered.
    """
    return client.run(_fetch, client, set(keys), Deadline())


async def _fetch(client: BrokerClient, keys: set[Key], deadline: Deadline) -> list[LogRetention]:
    leaders, known = await fetch_leaders(client, keys, deadline), _Known()
    by_leader: dict[int, list[Key]] = defaultdict(list)
    for key, leader in leaders.items():
        if leader is not None:
            by_leader[leader].append(key)
    topics = sorted({topic for topic, _ in keys})
    parts = [topics[at : at + _TOPICS_PER_REQUEST] for at in range(0, len(topics), _TOPICS_PER_REQUEST)]
    questions = [partial(_topics, client, part, known, deadline) for part in parts]
    questions += [partial(_leader, client, leader, led, known, deadline) for leader, led in by_leader.items()]
    await client.gather(questions)
    return [_row(key, leaders[key], known) for key in sorted(keys)]


async def _topics(client: BrokerClient, topics: Sequence[str], known: _Known, deadline: Deadline) -> None:
    wanted = describe_configs(TOPIC, topics, _SETTINGS)
    try:
        response = await client.ask(wanted, None, deadline)
    except RETRIABLE_FAILURES as error:
        known.errors.update(dict.fromkeys(topics, f"no broker reported the settings of the topic: {error}"))
        return
    for result in response.results:
        if result.error_code:
            known.errors[result.resource_name] = (
                f"the settings of the topic can't be read: {describe_refusal(result.error_code, 'DESCRIBE_CONFIGS')}"
            )
        else:
            known.topics[result.resource_name] = {each.name: each.value for each in result.configs}


async def _leader(client: BrokerClient, leader: int, led: Sequence[Key], known: _Known, deadline: Deadline) -> None:
    wanted = describe_configs(BROKER, [str(leader)], [_CHECK])
    try:
        (settings,) = (await client.ask(wanted, leader, deadline)).results
        logs = await client.ask(DescribeLogDirsRequest(topics=_logs(led)), leader, deadline)
    except RETRIABLE_FAILURES as error:
        known.errors[leader] = f"broker {leader} does not answer: {error}"
        return
    codes = {settings.error_code, getattr(logs, "error_code", 0), *(folder.error_code for folder in logs.results)} - {0}
    if codes:
        known.errors[leader] = f"broker {leader} did not report the sizes of its logs: {describe_code(min(codes))}"
    for each in settings.configs:
        if each.name == _CHECK:
            known.checks[leader] = int(each.value)
    for folder in logs.results:
        for topic in folder.topics:
            for each in topic.partitions:
                if not each.is_future_key:
                    known.sizes[topic.name, each.partition_index] = each.partition_size


def _logs(keys: Iterable[Key]) -> Any:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in keys:
        by_topic[topic].append(number)
    described = DescribeLogDirsRequest.DescribableLogDirTopic
    return [described(topic=topic, partitions=numbers) for topic, numbers in by_topic.items()]


def _row(key: Key, leader: int | None, known: _Known) -> LogRetention:
    settings, size = known.topics.get(key[0], {}), known.sizes.get(key)
    tiered = settings.get("remote.storage.enable", "false") == "true" if settings else None
    check_ms = None if leader is None else known.checks.get(leader)
    error = known.errors.get(key[0])
    if error is None and (size is None or check_ms is None):
        unknown = f"broker {leader} did not report the size of the partition's log"
        no_leader = "the partition has no leader, so the size of its log is unknown"
        error = no_leader if leader is None else known.errors.get(leader, unknown)
    return LogRetention(
        *key,
        cleanup_policy=settings.get("cleanup.policy"),
        retention_ms=_number(settings, "retention.ms"),
        retention_bytes=_number(settings, "retention.bytes"),
        segment_ms=_number(settings, "segment.ms"),
        segment_bytes=_number(settings, "segment.bytes"),
        is_tiered=tiered,
        check_ms=check_ms,
        size_bytes=size,
        error=error,
    )


def _number(settings: Mapping[str, str], name: str) -> int | None:
    return int(settings[name]) if name in settings else None
