"""A broker that starts and names no broker in its metadata for a moment: no server can be made to do so at will."""

from __future__ import annotations

import socketserver
import struct
import threading
import time
from collections.abc import Callable

from kit.consumer.zookeeper.brokers import GroupBrokers
from kit.consumer.zookeeper.config import ConsumerConfig
from kit.consumer.zookeeper.effects import KafkaGroup

METADATA, DESCRIBE_GROUPS, LIST_GROUPS, API_VERSIONS = 3, 15, 16, 18
NEWEST = {METADATA: 4, DESCRIBE_GROUPS: 0, LIST_GROUPS: 0, API_VERSIONS: 0}
UNSUPPORTED_VERSION = 35
GROUP = KafkaGroup(plain={"a member": frozenset()})


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


class StartingBroker(socketserver.ThreadingTCPServer):
    """Knows one group with one plain member; ``knows_brokers``: whether its metadata names a broker, itself."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, port: int = 0, knows_brokers: bool = True) -> None:
        self.knows_brokers = knows_brokers
        self.n_empty = 0
        self.connections: list[Connection] = []
        super().__init__(("127.0.0.1", port), Connection)
        self.port: int = self.server_address[1]
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def kill(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            self.shutdown_request(connection.request)

    def answer(self, key: int, version: int) -> bytes:
        if key == API_VERSIONS:
            known = b"".join(struct.pack(">hhh", api, 0, newest) for api, newest in NEWEST.items())
            return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(NEWEST)) + known
        if key == METADATA:
            self.n_empty += not self.knows_brokers
            itself = struct.pack(">i", 1) + text("127.0.0.1") + struct.pack(">ih", self.port, -1)
            named = struct.pack(">i", 1) + itself if self.knows_brokers else struct.pack(">i", 0)
            return struct.pack(">i", 0) + named + text("cluster") + struct.pack(">ii", 1, 0)
        if key == LIST_GROUPS:
            return struct.pack(">hi", 0, 1) + text("g") + text("consumer")
        group = b"".join(map(text, ("g", "Stable", "consumer", "range")))
        member = b"".join(map(text, ("a member", "a client", "/127.0.0.1"))) + struct.pack(">ii", 0, 0)
        return struct.pack(">ih", 1, 0) + group + struct.pack(">i", 1) + member


class Connection(socketserver.StreamRequestHandler):
    server: StartingBroker

    def handle(self) -> None:
        self.server.connections.append(self)
        while size := self.rfile.read(4):
            key, version, correlation = struct.unpack(">hhi", self.rfile.read(*struct.unpack(">i", size))[:8])
            answer = struct.pack(">i", correlation) + self.server.answer(key, version)
            self.wfile.write(struct.pack(">i", len(answer)) + answer)


def await_(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_a_handle_that_knows_no_broker_any_more_is_made_again() -> None:
    """Else the member hears of no assignment for five minutes, says nothing, and reads nothing."""
    config = ConsumerConfig.parse({"group.id": "g", "zookeeper.connect": "127.0.0.1:1"})
    broker = StartingBroker()
    asking = GroupBrokers(config, f"127.0.0.1:{broker.port}", renew_seconds=1.0)
    try:
        await_(lambda: asking.describe(()) == GROUP, "the group is described")
        broker.kill()
        await_(lambda: asking.describe(()) is None, "nobody answers")
        broker = StartingBroker(broker.port, knows_brokers=False)
        await_(lambda: asking.describe(()) is None and broker.n_empty > 0, "the metadata names no broker")
        broker.knows_brokers = True
        await_(lambda: asking.describe(()) == GROUP, "the group is described again")
    finally:
        asking.close()
        broker.kill()
