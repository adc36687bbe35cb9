"""Servers of a lab that moves from ZooKeeper to KRaft: brokers in three modes, and controllers of Kafka 3.9."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from kit.errors import InputError, LabError
from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.kafka import Broker
from kit.lab.servers.kraft import STORAGE_TOOL
from kit.lab.servers.security import NODE_USER, Security

ZOOKEEPER, MIGRATION, KRAFT = MODES = ("zookeeper", "migration", "kraft")
"""The modes of a broker: plain ZooKeeper; ZooKeeper and registered with the controllers; KRaft."""
METADATA_VERSION = "3.9"
HEAP_MB = 256
FIRST_CONTROLLER = 3000
USER = "admin"
_AUTHORIZERS = {
    ZOOKEEPER: "kafka.security.authorizer.AclAuthorizer",
    MIGRATION: "kafka.security.authorizer.AclAuthorizer",
    KRAFT: "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
}
_PATIENT = {
    "controller.quorum.election.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "6000",
    "controller.quorum.request.timeout.ms": "5000",
}
"""Against leaders that change because two cores are busy."""


class Quorum:
    """The settings that brokers and controllers of one lab must share."""

    def __init__(
        self,
        controllers: int,
        zookeeper_connect: str,
        controllers_zookeeper_connect: str,
        security: Security | None = None,
    ) -> None:
        ports = free_ports(controllers) if controllers else []
        self.addresses = {FIRST_CONTROLLER + at: f"127.0.0.1:{port}" for at, port in enumerate(ports)}
        self.zookeeper_connect = zookeeper_connect
        self.controllers_zookeeper_connect = controllers_zookeeper_connect
        self.security = security
        self.super_users: tuple[str, ...] = ()
        """More of them than the lab itself needs; nodes that are started know it."""
        self.password = secrets.token_hex(12)
        self._token_key = secrets.token_hex(12)

    @property
    def options(self) -> Sequence[str]:
        """Return the options of each node's JVM."""
        return self.security.options if self.security else ()

    def settings(self) -> dict[str, str]:
        """Lines of every node that knows the controllers."""
        plain = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL")
        protocols = [f"{each}:{each}" for each in plain] + [
            f"CONTROLLER:{'SASL_SSL' if self.security else 'PLAINTEXT'}"
        ]
        return {
            "controller.quorum.voters": ",".join(f"{node}@{at}" for node, at in self.addresses.items()),
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": ",".join(protocols),
            **(self.security.controller_settings() if self.security else {}),
            **_PATIENT,
        }

    def rights(self, mode: str) -> dict[str, str]:
        """Lines of an authorizer that lets all in but the user of a secured lab, and of delegation tokens."""
        return {
            "authorizer.class.name": _AUTHORIZERS[mode],
            "super.users": ";".join(f"User:{each}" for each in ("ANONYMOUS", USER, NODE_USER, *self.super_users)),
            "delegation.token.secret.key": self._token_key,
        }


def _zookeeper(connect: str, security: Security | None, session_ms: int = 6000) -> dict[str, str]:
    return {
        "zookeeper.connect": connect,
        "zookeeper.set.acl": "true" if security else "false",
        "zookeeper.session.timeout.ms": str(session_ms),
        "zookeeper.connection.timeout.ms": "18000",
    }


class MigratingBroker(Broker):
    """A broker that is started in one of ``MODES``; it also has a SASL_PLAINTEXT listener, which tokens need."""

    heap_mb = HEAP_MB

    def __init__(self, supervisor: ProcessSupervisor, broker_id: int, quorum: Quorum, brokers: int, rack: str | None):
        super().__init__(supervisor, broker_id, quorum.zookeeper_connect, brokers, rack, quorum.security)
        self.addresses["SASL_PLAINTEXT"] = f"127.0.0.1:{free_ports(1)[0]}"
        self.added["listeners"] = ",".join(f"{name}://{at}" for name, at in self.addresses.items())
        self.quorum = quorum
        self.options = quorum.options
        self.mode = ZOOKEEPER

    def started_line(self) -> str:
        if self.mode == KRAFT:
            return f"[KafkaRaftServer nodeId={self.broker_id}] Kafka Server started"
        return super().started_line()

    def role(self) -> dict[str, str]:
        login = (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{self.quorum.password}";'
        )
        return {
            "listener.name.sasl_plaintext.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": login,
            **self.quorum.rights(self.mode),
            **self._mode_settings(),
        }

    def _mode_settings(self) -> dict[str, str]:
        if self.mode == KRAFT:
            return {"process.roles": "broker", "node.id": str(self.broker_id), **self.quorum.settings()}
        plain = {
            "broker.id": str(self.broker_id),
            "inter.broker.protocol.version": METADATA_VERSION,
            **_zookeeper(self.zookeeper_connect, self.quorum.security),
        }
        if self.mode == ZOOKEEPER:
            return plain
        return {**plain, "zookeeper.metadata.migration.enable": "true", **self.quorum.settings()}


class Controller(Broker):
    """A node that only controls; ``has_flag`` is ``zookeeper.metadata.migration.enable``."""

    heap_mb = HEAP_MB

    def __init__(self, supervisor: ProcessSupervisor, node_id: int, quorum: Quorum) -> None:
        super().__init__(supervisor, node_id, quorum.zookeeper_connect, 1)
        self.name = f"controller-{node_id}"
        self.addresses = {"CONTROLLER": quorum.addresses[node_id]}
        self.quorum = quorum
        self.options = quorum.options
        self.has_flag = True

    def prepare(self, config: Path) -> None:
        """Format the storage before the first start, with ZooKeeper's cluster id; raises LabError."""
        if (config.parent / "data").exists():
            return
        # Both forms of an argument in one, because an id may begin with a dash.
        arguments = [
            "format",
            f"--cluster-id={read_cluster_id(self.zookeeper_connect)}",
            f"--config={config}",
            f"--release-version={METADATA_VERSION}",
        ]
        command = jvm.java(jars.class_path(self.jar_set), STORAGE_TOOL, arguments, 128, self.supervisor.folder)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise LabError(f"The storage of {self.name} was not formatted:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")

    def started_line(self) -> str:
        return f"[KafkaRaftServer nodeId={self.broker_id}] Kafka Server started"

    def settings(self, folder: Path) -> dict[str, str]:
        connect = self.quorum.controllers_zookeeper_connect
        # Kafka's default, of which a client waits two thirds for an answer: a lab delays what controllers send.
        security = self.quorum.security
        migrating = {**_zookeeper(connect, security, 18_000), "zookeeper.metadata.migration.enable": "true"}
        return {
            "process.roles": "controller",
            "node.id": str(self.broker_id),
            "listeners": f"CONTROLLER://{self.addresses['CONTROLLER']}",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "num.network.threads": "2",
            "num.io.threads": "2",
            **self.quorum.settings(),
            **self.quorum.rights(KRAFT),
            **(security.caller_settings() if security else {}),
            **(migrating if self.has_flag else {}),
            **self.added,
        }


def read_cluster_id(zookeeper_connect: str) -> str:
    """The id that brokers wrote into ZooKeeper; raises LabError when there is none."""
    with connected(zookeeper_connect) as client:
        content = json_at(client, "/cluster/id")
    if "id" not in content:
        raise LabError(f"ZooKeeper {zookeeper_connect} holds no /cluster/id: start a broker before a controller.")
    return str(content["id"])


@contextmanager
def connected(zookeeper_connect: str, security: Security | None = None) -> Iterator[KazooClient]:
    """A connection for the block; with ``security`` it may do all."""
    client = KazooClient(zookeeper_connect, **(security.zookeeper_login if security else {}))
    client.start(15)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def json_at(client: KazooClient, path: str) -> Mapping[str, Any]:
    """A znode's JSON object; empty where there is none."""
    held = json.loads(client.get(path)[0] or b"{}") if client.exists(path) else {}
    return held if isinstance(held, dict) else {}


def is_mode(mode: str) -> str:
    """``mode``, if it is one of ``MODES``; raises InputError."""
    if mode not in MODES:
        raise InputError(f"There is no mode {mode!r} of a broker; there are {', '.join(MODES)}.")
    return mode
