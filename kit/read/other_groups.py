"""Members of share groups (KIP-932) and streams groups (KIP-1071), by a request of their own for each kind.

The pinned kafka-python knows the numbers of these requests but not their form. Their classes are made from the JSON
files beside this module: ShareGroupDescribe 1 (brokers >= 4.1), StreamsGroupDescribe 0 (>= 4.1, stable since 4.2).
Several members of a share group read one partition, so their assignment says nothing about owners and is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.api_message import ApiMessage

from kit.read.broker_client import BrokerClient
from kit.read.kafka_member import kafka_member
from kit.tables.groups import SHARE, STREAMS, Member


class ShareGroupDescribeRequest(ApiMessage, load_json="kit.read"):  # type: ignore[misc, call-arg]
    pass


class ShareGroupDescribeResponse(ApiMessage, load_json="kit.read"):  # type: ignore[misc, call-arg]
    pass


class StreamsGroupDescribeRequest(ApiMessage, load_json="kit.read"):  # type: ignore[misc, call-arg]
    pass


class StreamsGroupDescribeResponse(ApiMessage, load_json="kit.read"):  # type: ignore[misc, call-arg]
    pass


_REQUESTS = {SHARE: (ShareGroupDescribeRequest, 1), STREAMS: (StreamsGroupDescribeRequest, 0)}


def can_describe(client: BrokerClient, group_type: str) -> bool:
    """Whether the brokers have the request for groups of this type."""
    try:
        return client.supports(*_REQUESTS[group_type])
    except kafka_errors.IncompatibleBrokerVersion:
        return False


def describe_request(group_type: str, group_ids: Sequence[str]) -> Any:
    """One request for many groups of one type and one coordinator."""
    request, version = _REQUESTS[group_type]
    return request(
        group_ids=list(group_ids), include_authorized_operations=False, min_version=version, max_version=version
    )


def members(group: Any) -> list[Member]:
    return [kafka_member(group.group_id, each) for each in group.members]
