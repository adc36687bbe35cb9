"""Define how large a committed offset may be: what a coordinator compares a commit with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest

from kit.clients.broker_client import RETRIABLE_FAILURES, BrokerClient, Deadline, describe_refusal
from kit.text.java_hash import OFFSETS_TOPIC

_TOPIC, _BROKER = 2, 4
_BATCH_BYTES, _METADATA_CHARS = "max.message.bytes", "offset.metadata.max.bytes"
_BATCH_OVERHEAD = 61 + 80
"""The header of a record batch, and the most that the record of an offset takes besides its names and metadata."""


@dataclass(frozen=True, slots=True)
class CommitLimits:
    """``metadata_chars``: the lowest of all brokers; ``batch_bytes``: of one offset with its names and metadata.

    ``unknown``: why they are not known; both are None then.
    """

    metadata_chars: int | None = None
    batch_bytes: int | None = None
    unknown: str | None = None

    def problem(self, group_id: str, topic: str, metadata: str | None) -> str | None:
        """Return why a coordinator would refuse this offset (codes 12 and 28); None: it would not, or nothing is
        known.
        """
        metadata = metadata or ""
        if self.metadata_chars is not None and len(metadata) > self.metadata_chars:
            return f"metadata of {len(metadata):,} characters, {_METADATA_CHARS} is {self.metadata_chars:,}"
        size = len(f"{group_id}{topic}{metadata}".encode()) + _BATCH_OVERHEAD
        if self.batch_bytes is not None and size > self.batch_bytes:
            return f"about {size:,} bytes, {_BATCH_BYTES} of {OFFSETS_TOPIC} is {self.batch_bytes:,}"
        return None


def fetch_commit_limits(client: BrokerClient) -> CommitLimits:
    """DescribeConfigs of the offsets topic and of each broker; needs DESCRIBE_CONFIGS on that topic and the cluster.

    Raises:
        ConnectError: no broker answered.
    """
    return client.run(_fetch, client, Deadline())


async def _fetch(client: BrokerClient, deadline: Deadline) -> CommitLimits:
    asked = [
        partial(_setting, client, _BROKER, str(each), _METADATA_CHARS, each, deadline) for each in client.broker_ids()
    ]
    asked.append(partial(_setting, client, _TOPIC, OFFSETS_TOPIC, _BATCH_BYTES, None, deadline))
    answers: Sequence[int | str] = await client.gather(asked)
    problems = [each for each in answers if isinstance(each, str)]
    if problems:
        return CommitLimits(unknown=problems[0])
    *chars, size = map(int, answers)
    return CommitLimits(min(chars), size)


async def _setting(
    client: BrokerClient, kind: int, name: str, setting: str, broker_id: int | None, deadline: Deadline
) -> int | str:
    """The value, or why it is not known."""
    what = f"broker {name}" if kind == _BROKER else f"topic {name}"
    resource: Any = DescribeConfigsRequest.DescribeConfigsResource
    wanted = [resource(resource_type=kind, resource_name=name, configuration_keys=[setting])]
    try:
        response = await client.ask(DescribeConfigsRequest(resources=wanted), broker_id, deadline)
    except (*RETRIABLE_FAILURES, kafka_errors.IncompatibleBrokerVersion) as error:
        return f"{setting} of {what} can't be read: {error}"
    (result,) = response.results
    if result.error_code:
        return f"{setting} of {what} can't be read: {describe_refusal(result.error_code, 'DESCRIBE_CONFIGS')}"
    values = [int(each.value) for each in result.configs if each.name == setting and each.value]
    return values[0] if values else f"{what} does not report {setting}"
