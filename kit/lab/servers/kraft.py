"""A lab without ZooKeeper: one Kafka 4.1.1 node, broker and controller in one process, which speaks KIP-848."""

from __future__ import annotations

import base64
import subprocess
import uuid
from pathlib import Path

from kit.errors import InputError, LabError
from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.cluster import Servers
from kit.lab.servers.kafka import Broker

HEAP_MB = 256
STORAGE_TOOL = "kafka.tools.StorageTool"


class KRaftBroker(Broker):
    """Node 1 of a cluster that never knew ZooKeeper; groups of both protocols, quick to notice a lost member."""

    heap_mb = HEAP_MB
    jar_set = jars.NEWER_SERVERS

    def __init__(self, supervisor: ProcessSupervisor) -> None:
        super().__init__(supervisor, broker_id=1, zookeeper_connect="", brokers=1)
        self.controller = f"127.0.0.1:{free_ports(1)[0]}"
        self.added = {
            "group.consumer.session.timeout.ms": "6000",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.heartbeat.interval.ms": "300",
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.min.session.timeout.ms": "1000",
        }

    def prepare(self, config: Path) -> None:
        """Format the storage before the first start; raises LabError with the tool's words."""
        if (config.parent / "data").exists():
            return
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # Both forms of an argument in one, because an id may begin with a dash.
        arguments = ["format", f"--cluster-id={cluster_id}", f"--config={config}"]
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
            "controller.quorum.voters": f"{self.broker_id}@{self.controller}",
        }


class KRaftServers(Servers):
    """One :class:`KRaftBroker`."""

    def __init__(self, supervisor: ProcessSupervisor) -> None:
        self.supervisor = supervisor
        self.brokers = [KRaftBroker(supervisor)]

    @property
    def zookeeper_connect(self) -> str:
        """There is none; raises InputError."""
        raise InputError("This lab has no ZooKeeper: it was started with kraft=True.")

    def start(self) -> None:
        """Return when the node serves; raises LabError."""
        self.start_brokers()
