"""What is said when every broker has gone in the midst of a read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError

from kit.clients.broker_client import BrokerClient
from kit.errors import ConnectError


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
    expected = f"the brokers stopped answering, a:9092, b:9092 too: {why}; see whether they run, then do it again"
    assert str(raised.value) == expected
