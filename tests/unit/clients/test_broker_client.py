"""An error is reported when every broker has gone, or refuses the login, in the midst of a read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from kafka.errors import (
    KafkaConnectionError,
    NodeNotReadyError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

from kit.clients.broker_client import BrokerClient
from kit.errors import AuthenticationFailed, ConnectError


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (NodeNotReadyError("No node_id provided"), "none of them is connected"),
        (KafkaConnectionError("Connection reset"), "KafkaConnectionError: Connection reset"),
    ],
)
def test_brokers_that_stop_answering_are_named_with_what_to_do(error, why):
    def run(coroutine, *arguments):
        raise error

    client = BrokerClient.__new__(BrokerClient)
    client._servers, client._manager = ["a:9092", "b:9092"], SimpleNamespace(run=run)
    with pytest.raises(ConnectError) as raised:
        client.run(None)
    expected = (
        f"the brokers stopped answering, a:9092, b:9092 too: {why}. Check whether they run, then run the command again"
    )
    assert str(raised.value) == expected


@pytest.mark.parametrize("error", [SaslAuthenticationFailedError("invalid token"), UnsupportedSaslMechanismError()])
def test_a_login_that_is_refused_later_is_no_failure_to_wait_for(error):
    def run(coroutine, *arguments):
        raise error

    client = BrokerClient.__new__(BrokerClient)
    client._manager = SimpleNamespace(run=run)
    with pytest.raises(AuthenticationFailed, match="refused a login that they accepted before"):
        client.run(None)


def failures(n_requests: int) -> list[type[Exception]]:
    """Return the failures of five requests, each on a new connection that the server closes after this many
    requests of the login.
    """

    async def send_request(request):
        raise KafkaConnectionError("closed")

    def get_connection(node):
        future, parser = SimpleNamespace(succeeded=lambda: False), SimpleNamespace(_correlation_id=n_requests)
        return SimpleNamespace(send_request=send_request, init_future=future, parser=parser, sasl_enabled=True)

    client = BrokerClient.__new__(BrokerClient)
    client._manager, client._hung_up = SimpleNamespace(get_connection=get_connection), []
    seen = list[type[Exception]]()
    for _ in range(5):
        with pytest.raises(Exception, match="closed") as caught:
            asyncio.run(client._send_to(1, "request"))
        seen.append(caught.type)
    return seen


def test_a_server_that_closes_each_connection_after_the_credentials_has_refused_them():
    """kafka-python drops the broker's answer if the broker closed the connection already. No server shows it always."""
    assert failures(3) == [KafkaConnectionError] * 3 + [SaslAuthenticationFailedError] * 2
    assert failures(2) == [KafkaConnectionError] * 5
