"""The servers of a lab together: one ZooKeeper, and brokers started side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kit.lab import topics
from kit.lab.java import jars
from kit.lab.process import ProcessSupervisor, wait_until
from kit.lab.servers.kafka import Broker
from kit.lab.servers.security import Security
from kit.lab.servers.zookeeper import ZooKeeper

KNOW_SECONDS = 30.0


class Servers:
    """ZooKeeper and ``brokers`` brokers (ids from 1) under ``chroot``; a ``security`` adds its listeners."""

    def __init__(
        self,
        supervisor: ProcessSupervisor,
        brokers: int,
        racks: Sequence[str],
        chroot: str,
        zookeeper_version: str,
        security: Security | None,
    ) -> None:
        jars.ensure([jars.SERVERS])
        self.supervisor = supervisor
        self.chroot = chroot
        added = security.zookeeper_settings() if security else {}
        self.zookeeper = ZooKeeper(supervisor, zookeeper_version, settings=added)
        self.zookeeper_tls_connect = f"127.0.0.1:{added.get('secureClientPort', '')}{chroot}"
        self.brokers: Sequence[Broker] = [
            Broker(supervisor, number, self.zookeeper_connect, brokers, racks[number - 1] if racks else None, security)
            for number in range(1, brokers + 1)
        ]

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` with the chroot."""
        return self.zookeeper.connect + self.chroot

    def addresses(self, protocol: str = "PLAINTEXT") -> str:
        """``host:port`` of every broker's listener of that protocol, comma between."""
        return ",".join(broker.addresses[protocol] for broker in self.brokers)

    def start(self) -> None:
        """Return when every broker serves and knows all others; raises LabError."""
        self.zookeeper.start()
        self.start_brokers()

    def start_brokers(self) -> None:
        """Start all brokers side by side, as ``start`` does."""
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.await_started()
        for broker in self.brokers:
            self.await_known(broker)

    def await_known(self, broker: Broker) -> None:
        """Wait until ``broker`` knows all brokers and the controller."""
        ready = partial(topics.knows_all, broker.addresses["PLAINTEXT"], len(self.brokers))
        wait_until(ready, f"{broker.name} knowing all brokers", KNOW_SECONDS)
