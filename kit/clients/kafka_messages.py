"""Requests in kafka-python's codecs. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from types import new_class
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.api_message import ApiMessage

TOPIC, BROKER, GROUP = 2, 4, 32
"""Resource types of DescribeConfigs."""


def messages_of(name: str, package: str) -> tuple[Any, Any]:
    """Make the classes of a request and of its response, from the two JSON files of ``package``.

    For requests of which the pinned kafka-python knows only the number. The caller keeps both: kafka-python finds the
    class of a response by a weak reference.
    """
    request, response = (
        new_class(f"{name}{kind}", (ApiMessage,), {"load_json": package}) for kind in ("Request", "Response")
    )
    return request, response


def describe_configs(kind: int, names: Iterable[str], settings: Iterable[str]) -> DescribeConfigsRequest:
    """One request for the same settings of resources of one kind."""
    resource, keys = DescribeConfigsRequest.DescribeConfigsResource, list(settings)
    return DescribeConfigsRequest(
        resources=[resource(resource_type=kind, resource_name=name, configuration_keys=keys) for name in names]
    )
