"""Ghosts: substitutes of a cluster's brokers in a rehearsal of the move to KRaft. They have no data and serve no
client.

Controllers of 3.9 copy ZooKeeper's metadata once every broker is in ``/brokers/ids``, has registered with them in
migration mode, and sends heartbeats (KIP-866). A ghost does these three things. The pinned kafka-python has neither
request; their classes are made from the JSON files beside this module, which follow Kafka's protocol guide.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Any

from kafka import errors as kafka_errors
from kazoo.client import KazooClient

from kit.clients.broker_client import BrokerClient, describe_code
from kit.clients.kafka_messages import messages_of
from kit.errors import LabError, OfframpError
from kit.lab.process import wait_until

METADATA_VERSION = 21
"""The level of 3.9: a broker in migration mode supports its own ``inter.broker.protocol.version`` alone."""
HEARTBEAT_S = 1.0
_CAUGHT_UP = 2**62
_NOT_CONTROLLER, _RETRIABLE = 41, (7, 41, 102)
_DEADLINE_S, _REGISTER_S = 10.0, 30.0

BrokerRegistrationRequest, BrokerRegistrationResponse = messages_of("BrokerRegistration", "kit.lab.servers")
BrokerHeartbeatRequest, BrokerHeartbeatResponse = messages_of("BrokerHeartbeat", "kit.lab.servers")


class _Controllers(BrokerClient):
    """Connections to controllers; they answer no Metadata, so the servers given are all that it knows."""

    asks_metadata = False

    async def _bootstrap(self, timeout_ms: int) -> None:
        pass

    async def ask_leader(self, request: Any) -> Any:
        """The answer of the controller that leads, or the last refusal of one that doesn't."""
        answer = None
        for node in self._manager.cluster.bootstrap_brokers():
            with contextlib.suppress(kafka_errors.KafkaError):
                answer = await self.send(request, node.node_id)
                if answer.error_code != _NOT_CONTROLLER:
                    return answer
        return answer


class Ghosts:
    """``start`` puts them into ``/brokers/ids`` and registers them; a thread sends their heartbeats until ``stop``.

    ``controlling`` is the one that holds ``/controller``, as a broker in ZooKeeper mode does; None: no broker does.
    Controllers' requests to them go to one listening socket, which takes connections and never answers.
    """

    def __init__(
        self,
        broker_ids: Sequence[int],
        controlling: int | None,
        cluster_id: str,
        zookeeper_connect: str,
        controllers: str,
    ) -> None:
        self.broker_ids = list(broker_ids)
        self._controlling, self._cluster_id = controlling, cluster_id
        self._servers = controllers.split(",")
        self._zookeeper = KazooClient(zookeeper_connect, timeout=60.0)
        self._client: _Controllers | None = None
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=4 * len(self.broker_ids) + 16)
        self._epochs: dict[int, int] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="ghosts", daemon=True)

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def enter_zookeeper(self) -> None:
        """Hold ``/brokers/ids/<id>`` of each, and ``/controller``."""
        self._zookeeper.start(15)
        for broker_id in self.broker_ids:
            self._zookeeper.create(f"/brokers/ids/{broker_id}", self._znode(), ephemeral=True, makepath=True)
        if self._controlling is not None:
            claim = {"version": 2, "brokerid": self._controlling, "timestamp": "0", "kraftControllerEpoch": -1}
            self._zookeeper.create("/controller", json.dumps(claim).encode(), ephemeral=True)

    def _znode(self) -> bytes:
        held = {
            "version": 5,
            "host": "127.0.0.1",
            "port": self.port,
            "jmx_port": -1,
            "timestamp": "0",
            "endpoints": [f"PLAINTEXT://127.0.0.1:{self.port}"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "features": {},
        }
        return json.dumps(held).encode()

    def register(self) -> None:
        """Register each with the controllers, and begin its heartbeats; raises LabError."""
        self._client = _Controllers({"bootstrap_servers": self._servers}, _DEADLINE_S)
        for broker_id in self.broker_ids:
            wait_until(partial(self._is_registered, broker_id), f"the registration of ghost {broker_id}", _REGISTER_S)
        self._thread.start()

    def _is_registered(self, broker_id: int) -> bool:
        assert self._client is not None
        answer = self._client.run(self._client.ask_leader, self._registration(broker_id))
        if answer is None or answer.error_code in _RETRIABLE:
            return False
        if answer.error_code:
            raise LabError(f"The controllers refused ghost {broker_id}: {describe_code(answer.error_code)}")
        self._epochs[broker_id] = answer.broker_epoch
        return True

    def _registration(self, broker_id: int) -> Any:
        listener, feature = BrokerRegistrationRequest.Listener, BrokerRegistrationRequest.Feature
        return BrokerRegistrationRequest(
            broker_id=broker_id,
            cluster_id=self._cluster_id,
            incarnation_id=uuid.uuid4(),
            listeners=[listener(name="PLAINTEXT", host="127.0.0.1", port=self.port, security_protocol=0)],
            features=[
                feature(
                    name="metadata.version",
                    min_supported_version=METADATA_VERSION,
                    max_supported_version=METADATA_VERSION,
                )
            ],
            rack=None,
            is_migrating_zk_broker=True,
            log_dirs=[uuid.uuid4()],
            previous_broker_epoch=-1,
        )

    def _beat(self) -> None:
        """Heartbeats of all, once a second; while no controller leads, no node gets it."""
        while not self._ended.wait(HEARTBEAT_S):
            assert self._client is not None
            with contextlib.suppress(OfframpError):
                self._client.run(self._beat_once)

    async def _beat_once(self) -> None:
        assert self._client is not None
        for broker_id, epoch in self._epochs.items():
            await self._client.ask_leader(
                BrokerHeartbeatRequest(
                    broker_id=broker_id,
                    broker_epoch=epoch,
                    current_metadata_offset=_CAUGHT_UP,
                    want_fence=False,
                    want_shut_down=False,
                )
            )

    def stop(self) -> None:
        """End the heartbeats, and leave both."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._client is not None:
            self._client.close()
        self._zookeeper.stop()
        self._zookeeper.close()
        self._socket.close()
