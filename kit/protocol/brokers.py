"""Facts of brokers that decide whether groups can change their protocol (KIP-848): releases, features and settings.

ApiVersions of each broker gives the finalized ``group.version`` and the newest ``metadata.version`` that the broker
supports, which is known for each minor release. No request gives the patch release. DescribeConfigs gives the settings.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka import errors as kafka_errors

from kit.clients.broker_client import RETRIABLE_FAILURES, BrokerClient, Deadline, describe_code
from kit.clients.kafka_messages import BROKER, GROUP, describe_configs
from kit.clients.nodes import api_versions
from kit.groups.read.sweep import GROUPS_PER_REQUEST

HEARTBEAT = 68
"""ConsumerGroupHeartbeat. Version 1, of brokers >= 4.0, is what clients of the general availability use."""
PROTOCOLS = "group.coordinator.rebalance.protocols"
POLICY = "group.consumer.migration.policy"
ASSIGNORS = "group.consumer.assignors"
MAX_SIZE, CLASSIC_MAX_SIZE = "group.consumer.max.size", "group.max.size"
SESSION, SESSION_OF_GROUP = "group.consumer.session.timeout.ms", "consumer.session.timeout.ms"
HEARTBEAT_OF_GROUP = "consumer.heartbeat.interval.ms"
RETENTION, RETENTION_CHECK = "offsets.retention.minutes", "offsets.retention.check.interval.ms"
SETTINGS = (PROTOCOLS, POLICY, ASSIGNORS, MAX_SIZE, CLASSIC_MAX_SIZE, SESSION, RETENTION, RETENTION_CHECK)
LEVELS = ((21, (3, 9)), (25, (4, 0)), (27, (4, 1)), (29, (4, 2)), (30, (4, 3)), (33, (4, 4)))
"""The newest ``metadata.version`` of each minor release, by Kafka's ``kafka-storage.sh version-mapping``."""
_SHORT_NAMES = {"UniformAssignor": "uniform", "RangeAssignor": "range"}


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """One broker. ``heartbeat``: its newest version of ConsumerGroupHeartbeat; None: it has none, or is unknown.

    ``level``: the newest ``metadata.version`` that it supports; None: unknown. ``settings``: those of ``SETTINGS`` that
    the broker reports. ``error``: why ApiVersions is unknown; ``unread``: why the settings are unknown.
    """

    broker_id: int
    heartbeat: int | None = None
    level: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    error: str | None = None
    unread: str | None = None

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor release; None: unknown, or newer than this table."""
        if self.level is None:
            return None
        return next((release for newest, release in LEVELS if self.level <= newest), None)

    def number(self, name: str) -> int | None:
        return int(self.settings[name]) if name in self.settings else None

    def names(self, name: str) -> tuple[str, ...] | None:
        """A setting that is a list; assignors by their short names. None: not reported."""
        value = self.settings.get(name)
        if value is None:
            return None
        parts = (part.strip() for part in value.split(","))
        return tuple(_SHORT_NAMES.get(part.rpartition(".")[2], part) for part in parts if part)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """All brokers. ``group_version``: the finalized level of the feature, 0 if it is not finalized; None: unknown."""

    brokers: tuple[BrokerFacts, ...]
    group_version: int | None

    def numbers(self, name: str) -> list[int]:
        """The values that brokers report of a setting."""
        return [value for each in self.brokers if (value := each.number(name)) is not None]


def fetch_cluster_facts(client: BrokerClient) -> ClusterFacts:
    """Ask each broker. A broker that does not answer or refuses is there with its error.

    Raises:
        ConnectError: no broker answered.
    """
    return client.run(_fetch, client, Deadline())


def fetch_session_timeouts(client: BrokerClient, group_ids: Collection[str]) -> dict[str, int]:
    """Session timeouts in ms that groups have under the consumer protocol; groups that are not reported are left out.

    Hundreds of groups per request. Brokers before 4.0 report none.

    Raises:
        ConnectError: no broker answered.
    """
    return client.run(_sessions, client, sorted(group_ids), Deadline())


async def _fetch(client: BrokerClient, deadline: Deadline) -> ClusterFacts:
    levels: list[int] = []
    asked = [partial(_broker, client, each, levels, deadline) for each in client.broker_ids()]
    brokers = await client.gather(asked)
    return ClusterFacts(tuple(brokers), min(levels, default=None))


async def _broker(client: BrokerClient, broker_id: int, levels: list[int], deadline: Deadline) -> BrokerFacts:
    try:
        versions = await client.ask(api_versions(), broker_id, deadline)
    except (*RETRIABLE_FAILURES, kafka_errors.IncompatibleBrokerVersion) as error:
        unknown = f"broker {broker_id} does not answer: {error}"
        return BrokerFacts(broker_id, error=unknown, unread=unknown)
    if versions.error_code:
        unknown = f"broker {broker_id}: ApiVersions: {describe_code(versions.error_code)}"
        return BrokerFacts(broker_id, error=unknown, unread=unknown)
    if (versions.finalized_features_epoch or 0) >= 0:
        levels.append(_levels(versions.finalized_features, "max_version_level").get("group.version", 0))
    settings, unread = await _settings(client, broker_id, deadline)
    return BrokerFacts(
        broker_id,
        {each.api_key: each.max_version for each in versions.api_keys}.get(HEARTBEAT),
        _levels(versions.supported_features, "max_version").get("metadata.version"),
        settings,
        unread=unread,
    )


def _levels(features: Sequence[Any] | None, level: str) -> dict[str, int]:
    return {each.name: getattr(each, level) for each in features or ()}


async def _settings(client: BrokerClient, broker_id: int, deadline: Deadline) -> tuple[dict[str, str], str | None]:
    """The settings, and why they are unknown."""
    request = describe_configs(BROKER, [str(broker_id)], SETTINGS)
    try:
        (result,) = (await client.ask(request, broker_id, deadline)).results
    except RETRIABLE_FAILURES as error:
        return {}, f"broker {broker_id} does not report its settings: {error}"
    if result.error_code:
        return {}, f"broker {broker_id} does not report its settings: {describe_code(result.error_code)}"
    return {each.name: each.value for each in result.configs if each.value is not None}, None


async def _sessions(client: BrokerClient, group_ids: Sequence[str], deadline: Deadline) -> dict[str, int]:
    parts = [group_ids[at : at + GROUPS_PER_REQUEST] for at in range(0, len(group_ids), GROUPS_PER_REQUEST)]
    found = dict[str, int]()
    for part in parts:
        request = describe_configs(GROUP, part, [SESSION_OF_GROUP])
        for result in (await client.ask(request, None, deadline)).results:
            values = {each.name: each.value for each in result.configs if each.value is not None}
            if result.error_code == 0 and SESSION_OF_GROUP in values:
                found[result.resource_name] = int(values[SESSION_OF_GROUP])
    return found
