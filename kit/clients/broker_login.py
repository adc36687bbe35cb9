"""Explain how a connection of kafka-python ended at its login, and what a server that refuses it is."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.metadata import MetadataRequest

from kit.text.addresses import host_and_port

HANG_UPS = 3
"""A server that closes the connection during the login this many more times has refused the login."""
_CREDENTIALS = 3
"""kafka-python's number of the first request with credentials, after ApiVersions and SaslHandshake."""
AUTHENTICATION_FAILURES = (
    kafka_errors.SaslAuthenticationFailedError,
    kafka_errors.UnsupportedSaslMechanismError,
    kafka_errors.AuthorizationError,
)


class NobodyListens(kafka_errors.KafkaError):  # type: ignore[misc]
    """At no address is there a process that takes connections."""


class ControllersOnly(kafka_errors.KafkaError):  # type: ignore[misc]
    """Each address that answered is a controller's listener, which serves no client."""


def unthrottled(get_connection: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return a connection that sends though it is throttled: kafka-python refuses that, also to its own bootstrap."""
    connection = get_connection(*arguments, **named)
    connection._maybe_throttle = lambda response: None
    return connection


def had_answered(connection: Any) -> bool:
    """Return whether the broker sent its API versions, which it does before the login."""
    return connection.parser is not None and connection.broker_version_data is not None


def ended_in_login(connection: Any) -> bool:
    """Return whether the credentials were sent, which is the third request, and the login never succeeded."""
    has_sent = connection.parser is not None and connection.parser._correlation_id >= _CREDENTIALS
    return connection.sasl_enabled and has_sent and not connection.init_future.succeeded()


def serves_clients(connection: Any) -> bool:
    """Return whether the server answers requests for metadata: a controller does not, by the API versions that it
    sent.
    """
    versions = connection.broker_version_data
    return versions is None or not versions.api_versions or MetadataRequest.API_KEY in versions.api_versions


def refuses(server: str, default_port: int | None = None) -> bool:
    """Return whether no process listens there; a host that does not answer, or has no address, is not known to
    refuse.
    """
    try:
        socket.create_connection(host_and_port(server, default_port), timeout=0.2).close()
    except ConnectionRefusedError:
        return True
    except (OSError, ValueError):
        return False
    return False
