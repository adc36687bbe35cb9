"""Who leads the quorum: what is said where nobody does."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from kafka.errors import IncompatibleBrokerVersion

from kit.errors import ConnectError
from kit.metadata_log.controllers import _ControllerClient
from kit.read.broker_client import Deadline


class Listener(_ControllerClient):
    """A broker's in ZooKeeper mode: kafka-python finds no version of the request that it takes."""

    def __init__(self) -> None:
        node = SimpleNamespace(node_id=0, host="kafka-1", port=9092)
        self._manager = SimpleNamespace(cluster=SimpleNamespace(bootstrap_brokers=lambda: [node]))

    async def send(self, request, node):
        raise IncompatibleBrokerVersion("no DescribeQuorum")

    async def pause(self, attempt):
        raise AssertionError("it is asked again, although it will never know")


def test_a_brokers_listener_is_said_to_be_one_at_once():
    with pytest.raises(ConnectError, match=r"kafka-1:9092 is no controller.*name the controllers' own listener"):
        asyncio.run(Listener()._leader("kafka-1:9092", Deadline.after(30)))
