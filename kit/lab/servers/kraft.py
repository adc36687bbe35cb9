"""A lab without ZooKeeper: one to nine combined nodes, each broker and controller in one process."""

from __future__ import annotations

import base64
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from kit.errors import InputError, LabError
from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.cluster import Servers
from kit.lab.servers.kafka import Broker

HEAP_MB = 256
STORAGE_TOOL = "kafka.tools.StorageTool"
SHARE_GROUPS_SINCE = "4.1"
"""First version whose brokers have the settings of share groups."""


_QUICK_GROUPS = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.heartbeat.interval.ms": "100",
}
"""Members hear of a rebalance at once. Their sessions have Kafka's default of 45 s: on a starved machine, a member
misses heartbeats for seconds and is not lost. A scene that needs quick expiry sets a shorter session itself."""


class KRaftBroker(Broker):
    """A combined node of a cluster that never knew ZooKeeper."""

    heap_mb = HEAP_MB

    def __init__(self, supervisor: ProcessSupervisor, node_id: int, nodes: int, version: str) -> None:
        super().__init__(supervisor, broker_id=node_id, zookeeper_connect="", brokers=nodes)
        self.jar_set = jars.KAFKA_SETS[version]
        self.controller = f"127.0.0.1:{free_ports(1)[0]}"
        self.cluster_id = self.voters = ""  # KRaftServers, which knows all nodes, sets them.
        self.added = dict(_QUICK_GROUPS)
        if version >= SHARE_GROUPS_SINCE:
            copies = min(3, nodes)
            self.added["share.coordinator.state.topic.num.partitions"] = "3"
            self.added["share.coordinator.state.topic.replication.factor"] = str(copies)
            self.added["share.coordinator.state.topic.min.isr"] = str(max(1, copies - 1))

    def prepare(self, config: Path) -> None:
        """Format the storage before the first start; raises LabError with the tool's words."""
        if (config.parent / "data").exists():
            return
        # Both forms of an argument in one, because an id may begin with a dash.
        arguments = ["format", f"--cluster-id={self.cluster_id}", f"--config={config}"]
        class_path = jars.class_path(self.jar_set)
        command = jvm.java(class_path, STORAGE_TOOL, arguments, self.heap_mb, self.supervisor.folder)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"The storage of {self.name} was not formatted:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")

    def started_line(self) -> str:
        return f"[KafkaRaftServer nodeId={self.broker_id}] Kafka Server started"

    def role(self) -> dict[str, str]:
        return {
            "process.roles": "broker,controller",
            "node.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://{self.addresses['PLAINTEXT']},CONTROLLER://{self.controller}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": self.voters,
        }


class KRaftServers(Servers):
    """Nodes 1 … ``nodes``, all of them voters, of one Kafka version (a key of ``jars.KAFKA_SETS``)."""

    def __init__(self, supervisor: ProcessSupervisor, nodes: int, version: str) -> None:
        jars.ensure([jars.KAFKA_SETS[version]])
        self.supervisor = supervisor
        started = [KRaftBroker(supervisor, number, nodes, version) for number in range(1, nodes + 1)]
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        voters = ",".join(f"{node.broker_id}@{node.controller}" for node in started)
        for node in started:
            node.cluster_id, node.voters = cluster_id, voters
        self.brokers: Sequence[KRaftBroker] = started

    @property
    def zookeeper_connect(self) -> str:
        """There is none; raises InputError."""
        raise InputError("This lab has no ZooKeeper: it was started with kraft=True.")

    def start(self) -> None:
        """Return when every node serves and knows all others; raises LabError."""
        self.start_brokers()
