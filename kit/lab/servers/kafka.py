"""Brokers of a lab: Kafka 3.9.1 in ZooKeeper mode."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import Process, ProcessSupervisor
from kit.lab.servers.security import Security

HEAP_MB = 160
START_SECONDS = 60.0


class Broker:
    """One broker on 127.0.0.1.

    ``addresses`` is listener → ``host:port``: PLAINTEXT, and with ``security`` also SASL_SSL and SSL.
    """

    heap_mb = HEAP_MB
    jar_set = jars.SERVERS
    options: Sequence[str] = ()
    """The options of its JVM."""

    def __init__(
        self,
        supervisor: ProcessSupervisor,
        broker_id: int,
        zookeeper_connect: str,
        brokers: int,
        rack: str | None = None,
        security: Security | None = None,
    ) -> None:
        self.supervisor = supervisor
        self.broker_id = broker_id
        self.name = f"broker-{broker_id}"
        protocols = ("PLAINTEXT", "SASL_SSL", "SSL") if security else ("PLAINTEXT",)
        self.addresses = {name: f"127.0.0.1:{port}" for name, port in zip(protocols, free_ports(len(protocols)))}
        self.zookeeper_connect = zookeeper_connect
        self.brokers = brokers
        self.added = {"broker.rack": rack} if rack else {}
        if security is not None:
            self.added |= security.broker_settings(**{name.lower(): at for name, at in self.addresses.items()})
        self.process: Process | None = None
        self._log_read = 0

    def launch(self) -> None:
        """Start it without waiting."""
        folder = self.supervisor.folder / self.name
        folder.mkdir(exist_ok=True)
        config = folder / "server.properties"
        config.write_text(jvm.properties(self.settings(folder)), encoding="utf-8")
        self.prepare(config)
        log = self.supervisor.folder / f"{self.name}.log"
        self._log_read = log.stat().st_size if log.exists() else 0
        class_path = jars.class_path(self.jar_set)
        arguments, folder = [str(config)], self.supervisor.folder
        command = jvm.java(class_path, "kafka.Kafka", arguments, self.heap_mb, folder, self.options)
        self.process = self.supervisor.start(self.name, command)

    def prepare(self, config: Path) -> None:
        """Prepare a start; a broker of ZooKeeper's needs nothing."""

    def await_started(self) -> None:
        """Wait until its log reports that it has started. Raises LabError with its last log lines."""
        assert self.process is not None
        self.process.wait_until(self.has_started, "started", START_SECONDS)

    def has_started(self) -> bool:
        """Return whether its log reports it since the last launch; the log is appended over restarts."""
        assert self.process is not None
        with self.process.log.open("rb") as log:
            log.seek(self._log_read)
            return self.started_line().encode() in log.read()

    def started_line(self) -> str:
        """The line of its log that reports it has started."""
        return f"KafkaServer id={self.broker_id}] started"

    def settings(self, folder: Path) -> dict[str, str]:
        """Lines of ``server.properties``: small buffers, replication as far as there are brokers."""
        copies = min(3, self.brokers)
        return {
            **self.role(),
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(folder / "data"),
            "offsets.topic.num.partitions": "3",
            "offsets.topic.replication.factor": str(copies),
            "transaction.state.log.num.partitions": "3",
            "transaction.state.log.replication.factor": str(copies),
            "transaction.state.log.min.isr": str(max(1, copies - 1)),
            "default.replication.factor": str(copies),
            "min.insync.replicas": str(max(1, copies - 1)),
            "group.initial.rebalance.delay.ms": "0",
            "num.network.threads": "2",
            "num.io.threads": "2",
            "background.threads": "2",
            "num.recovery.threads.per.data.dir": "1",
            "log.cleaner.dedupe.buffer.size": "4194304",
            "log.index.size.max.bytes": "1048576",
            "auto.create.topics.enable": "false",
            **self.added,
        }

    def role(self) -> dict[str, str]:
        """Return who it is, where it listens and who controls it."""
        return {
            "broker.id": str(self.broker_id),
            "listeners": f"PLAINTEXT://{self.addresses['PLAINTEXT']}",
            "zookeeper.connect": self.zookeeper_connect,
            "zookeeper.session.timeout.ms": "6000",
            "zookeeper.connection.timeout.ms": "18000",
        }
