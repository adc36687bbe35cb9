"""The leader of the quorum is found, and its absence is reported."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from kafka.protocol.admin.cluster import DescribeQuorumRequest
from kafka.protocol.consumer.fetch import FetchRequest

from kit.clients.broker_client import Deadline
from kit.errors import ConnectError, ReadError
from kit.kraft.metadata_log.controllers import _ControllerClient


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


def test_a_brokers_listener_is_reported_to_be_one_at_once():
    with pytest.raises(ConnectError, match=r"kafka-1:9092 is no controller.*Name the controllers' own listener"):
        asyncio.run(Listener()._leader("kafka-1:9092", Deadline(30)))


class Quorum(_ControllerClient):
    """Two controllers; an election comes before each of so many Fetch, and is answered by ``code``."""

    def __init__(self, elections: int, code: int = 74) -> None:
        nodes = [SimpleNamespace(node_id=at, host=f"controller-{at}", port=9093) for at in (0, 1)]
        self._manager = SimpleNamespace(cluster=SimpleNamespace(bootstrap_brokers=lambda: nodes))
        self.elections, self.code, self.epoch = elections, code, 1

    async def send(self, request, node):
        if isinstance(request, DescribeQuorumRequest):
            leads = node == self.epoch % 2
            partition = SimpleNamespace(error_code=0 if leads else 6, leader_epoch=self.epoch)
            return SimpleNamespace(error_code=0, topics=[SimpleNamespace(partitions=[partition])])
        if not isinstance(request, FetchRequest):
            return SimpleNamespace(api_keys=[SimpleNamespace(api_key=key) for key in (1, 52, 53, 55)])
        code = 0
        if self.elections:
            self.elections, self.epoch, code = self.elections - 1, self.epoch + 1, self.code
        else:
            asked = request.topics[0].partitions[0].current_leader_epoch
            assert (node, asked) == (self.epoch % 2, self.epoch), "it asks who led before"
        partition = SimpleNamespace(error_code=code, snapshot_id=None, records=b"", high_watermark=0)
        return SimpleNamespace(error_code=0, responses=[SimpleNamespace(partitions=[partition])])

    async def pause(self, attempt):
        pass


@pytest.mark.parametrize("code", [6, 74, 75])
def test_after_an_election_the_new_leader_is_asked(code):
    fetched = asyncio.run(Quorum(2, code).fetch("controllers", Deadline(30)))
    assert ([each.kind for each in fetched.files], fetched.until) == (["fetched"], 0)


def test_a_quorum_that_elects_all_the_time_is_reported():
    with pytest.raises(ConnectError, match=r"each of 5 attempts to read __cluster_metadata \(Fetch: FENCED_LEADER"):
        asyncio.run(Quorum(100).fetch("controllers", Deadline(30)))


def test_another_refusal_is_not_asked_again():
    quorum = Quorum(100, 29)
    with pytest.raises(ReadError, match="ClusterAction"):
        asyncio.run(quorum.fetch("controllers", Deadline(30)))
    assert quorum.elections == 99
