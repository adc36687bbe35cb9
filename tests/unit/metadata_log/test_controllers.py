"""Who leads the quorum: what is said where nobody does."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from kafka.protocol.admin.cluster import DescribeQuorumRequest

from kit.errors import ConnectError
from kit.metadata_log.controllers import _ControllerClient
from kit.read.broker_client import Deadline


class Listener(_ControllerClient):
    """A broker's: it takes no votes; in KRaft mode it would answer DescribeQuorum in the leader's name."""

    def __init__(self) -> None:
        node = SimpleNamespace(node_id=0, host="kafka-1", port=9092)
        self._manager = SimpleNamespace(cluster=SimpleNamespace(bootstrap_brokers=lambda: [node]))

    async def send(self, request, node):
        if isinstance(request, DescribeQuorumRequest):
            raise AssertionError("a broker is asked who leads")
        return SimpleNamespace(api_keys=[SimpleNamespace(api_key=key) for key in (0, 1, 3, 18, 55)])

    async def pause(self, attempt):
        raise AssertionError("it is asked again, although it will never know")


def test_a_brokers_listener_is_said_to_be_one_at_once():
    with pytest.raises(ConnectError, match=r"kafka-1:9092 is no controller.*name the controllers' own listener"):
        asyncio.run(Listener()._leader("kafka-1:9092", Deadline(30)))
