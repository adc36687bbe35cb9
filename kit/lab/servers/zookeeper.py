"""One ZooKeeper server of a lab."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Mapping, Sequence

from kit.lab.java import jars, jvm
from kit.lab.ports import free_ports
from kit.lab.process import Process, ProcessSupervisor

HEAP_MB = 64
START_SECONDS = 30.0
MAIN = "org.apache.zookeeper.server.ZooKeeperServerMain"


class ZooKeeper:
    """A standalone server on 127.0.0.1; sessions from 2 s to 30 min (a stopped member can stay for as long).

    ``version`` is ``3.8`` (Kafka 3.9.1's) or ``3.4`` (the old consumers' jars: a server without multiRead).
    """

    def __init__(
        self,
        supervisor: ProcessSupervisor,
        version: str = "3.8",
        name: str = "zookeeper",
        settings: Mapping[str, str] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        self.supervisor = supervisor
        self.name = name
        self.version = version
        self.port = free_ports(1)[0]
        self.connect = f"127.0.0.1:{self.port}"
        self.added = dict(settings or {})
        self.heap_mb = HEAP_MB
        self.options = options
        self.process: Process | None = None

    def start(self) -> None:
        """Start it and wait until it serves; raises LabError with its last log lines."""
        jar_set = jars.SERVERS if self.version == "3.8" else jars.OLD_CONSUMERS["1.1.1"]
        folder = self.supervisor.folder / self.name
        folder.mkdir(exist_ok=True)
        config = folder / "zoo.cfg"
        config.write_text(jvm.properties(self.settings(str(folder / "data"))), encoding="utf-8")
        class_path, folder = jars.class_path(jar_set), self.supervisor.folder
        command = jvm.java(class_path, MAIN, [str(config)], self.heap_mb, folder, self.options)
        self.process = self.supervisor.start(self.name, command)
        self.process.wait_until(self.serves, "serving", START_SECONDS)

    def settings(self, data: str) -> dict[str, str]:
        """Lines of ``zoo.cfg``."""
        return {
            "dataDir": data,
            "clientPort": str(self.port),
            "clientPortAddress": "127.0.0.1",
            "admin.enableServer": "false",
            "maxClientCnxns": "0",
            "tickTime": "1000",
            "minSessionTimeout": "2000",
            "maxSessionTimeout": "1800000",
            "4lw.commands.whitelist": "ruok,srvr,mntr,cons,wchc",
            **self.added,
        }

    def serves(self) -> bool:
        """Return whether it answers ``srvr`` as a standalone server (``ruok`` is answered with a dead main thread
        too).
        """
        return "Mode: standalone" in self.command("srvr")

    def command(self, word: str) -> str:
        """Answer to a four-letter command; empty when nothing listens."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        return ""
