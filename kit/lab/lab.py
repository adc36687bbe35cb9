"""A lab: ZooKeeper, brokers, topics, producers and consumers on loopback, in a throw-away folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType

from confluent_kafka.admin import AdminClient

from kit.errors import InputError
from kit.lab import topics
from kit.lab.control import Control
from kit.lab.java import jars
from kit.lab.members import old_consumers
from kit.lab.members.handles import consumption_folder
from kit.lab.members.new_consumers import production_folder
from kit.lab.members.started import LabMembers
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.cluster import Servers
from kit.lab.servers.kraft import KRaftServers
from kit.lab.servers.migrating_cluster import MigratingServers
from kit.lab.servers.node_verbs import move_node
from kit.lab.servers.security import Security, profile_sections
from kit.text.quantity import quantity

ZOOKEEPER_KAFKA, *_, NEWEST_KAFKA = jars.KAFKA_SETS
PROTECTED_GROUP = "vault-payments"
QUICK_SPARK = """[clusters.lab.spark.conf]
"spark.driver.defaultJavaOptions" = "-XX:TieredStopAtLevel=1"
"spark.sql.codegen.wholeStage" = "false"
"spark.sql.codegen.factoryMode" = "NO_CODEGEN"
"""
"""A lab has so few rows that compiling plans costs Spark more than running them."""


class Lab(LabMembers):
    """``with Lab(brokers=1) as lab:`` – real servers, up when the block starts and gone when it ends.

    They also end when the caller is killed. ``racks`` names one rack per broker; ``chroot`` (``/name``) puts the
    brokers under a path of ZooKeeper. ``secured`` gives the brokers SASL_SSL and mutual TLS listeners and closes
    ``/consumers`` to everyone without the digest; old consumers, which have none, can't join there.
    ``zookeeper_version="3.4"`` (with ``brokers=0``) starts an old server that can't read many znodes in one request.
    ``kraft=True`` starts no ZooKeeper but plain combined nodes, each broker and controller, of Kafka
    ``kafka_version``: 3.9.1, 4.1.1, or 4.4.0 unless another one is named.
    ``controllers`` (with ZooKeeper and brokers) is for a move to KRaft: see ``migration``. Of a secured lab they have
    one listener, SASL_SSL with PLAIN; brokers call each other by SASL_SSL with SCRAM, and ZooKeeper knows the nodes by
    SASL and keeps what they write to them (``zookeeper.set.acl``).
    """

    def __init__(
        self,
        brokers: int = 1,
        racks: Sequence[str] = (),
        chroot: str = "",
        secured: bool = False,
        zookeeper_version: str = "3.8",
        kraft: bool = False,
        controllers: int = 0,
        kafka_version: str = "",
    ) -> None:
        if racks and len(racks) != brokers:
            raise InputError(f"A lab of {quantity(brokers, 'broker')} needs as many racks or none, not {len(racks)}.")
        if zookeeper_version != "3.8" and brokers:
            raise InputError(f"Brokers of Kafka 3.9 need ZooKeeper 3.8; start {zookeeper_version} with brokers=0.")
        if kraft and (not brokers or (tuple(racks), chroot, secured, zookeeper_version) != ((), "", False, "3.8")):
            raise InputError("A lab without ZooKeeper has plain brokers: Lab(brokers=3, kraft=True).")
        known = list(jars.KAFKA_SETS) if kraft else [ZOOKEEPER_KAFKA]
        if kafka_version and kafka_version not in known:
            place = "without" if kraft else "with"
            raise InputError(f"A lab {place} ZooKeeper runs Kafka {', '.join(known)}, not {kafka_version!r}.")
        if controllers and (kraft or not brokers or zookeeper_version != "3.8"):
            raise InputError("A lab that moves to KRaft has ZooKeeper 3.8 and brokers: Lab(brokers, controllers=1).")
        super().__init__()
        self._controllers = controllers
        self._kraft = kraft
        self._kafka_version = kafka_version or NEWEST_KAFKA
        self._shape = (brokers, tuple(racks), chroot, zookeeper_version)
        self._secured = secured
        self._numbers: Counter[str] = Counter()
        self._partitions: dict[str, int] = {}

    def start(self) -> Lab:
        """Start ZooKeeper, then all brokers side by side; raises LabError, after ending what was started."""
        self.supervisor = ProcessSupervisor()
        try:
            self.consumption.mkdir()
            self.production.mkdir()
            self.security = self._new_security() if self._secured else None
            if self.security is not None:
                self.security.make_certificates()
            self.servers = self._servers()
            self.servers.start()
            self._secure()
            self._control = Control(self.folder, self.replace, self.move_node)
        except BaseException:
            self.supervisor.close()
            raise
        return self

    def _new_security(self) -> Security:
        return Security(self.folder, moves=self._controllers > 0)

    def _servers(self) -> Servers:
        if self._kraft:
            return KRaftServers(self.supervisor, self._shape[0], self._kafka_version)
        if self._controllers:
            brokers, racks, chroot, _ = self._shape
            return MigratingServers(self.supervisor, brokers, self._controllers, racks, chroot, self.security)
        return Servers(self.supervisor, *self._shape, self.security)

    @property
    def migration(self) -> MigratingServers:
        """The servers with the verbs of a move to KRaft: ``lab.migration.reach("dual-write")``; raises InputError."""
        if not isinstance(self.servers, MigratingServers):
            raise InputError("This lab has no controllers to move to: start Lab(brokers=1, controllers=1).")
        return self.servers

    def stop(self) -> None:
        """End everything and remove the folder."""
        self._control.close()
        self.supervisor.close()

    def __enter__(self) -> Lab:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _secure(self) -> None:
        """Make the user, and one old group behind the digest."""
        if self.security is not None:
            self.security.create_user(self.admin)
            consumer_id = f"{PROTECTED_GROUP}_{old_consumers.instance_id()}"
            registration = b'{"version":1,"subscription":{"payments":1},"pattern":"static","timestamp":"1700000000000"}'
            contents = {
                f"{PROTECTED_GROUP}/ids/{consumer_id}": registration,
                f"{PROTECTED_GROUP}/owners/payments/0": f"{consumer_id}-0".encode(),
                f"{PROTECTED_GROUP}/offsets/payments/0": b"7",
            }
            self.security.protect(self.zookeeper_connect, "/consumers", contents)

    @property
    def folder(self) -> Path:
        """The throw-away folder: logs, data, consumption."""
        return self.supervisor.folder

    @property
    def consumption(self) -> Path:
        """Folder with one file of JSON lines per consumer: at_ms, consumer, topic, partition, offset."""
        return consumption_folder(self.supervisor.folder)

    @property
    def production(self) -> Path:
        """Folder with one file of JSON lines per paced producer: at_ms, producer, topic, partition, offset, number."""
        return production_folder(self.supervisor.folder)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma between; of a secured lab those of SASL_SSL."""
        return self.servers.addresses("SASL_SSL" if self.security else "PLAINTEXT")

    @property
    def secrets(self) -> dict[str, str]:
        """Environment variables that the profile of a secured lab refers to, with their values."""
        return self.security.secrets if self.security else {}

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client over the unprotected listener."""
        return AdminClient({**topics.QUIET, "bootstrap.servers": self.servers.addresses()})

    @cached_property
    def cluster_id(self) -> str:
        return str(self.admin.list_topics(timeout=10).cluster_id)

    def create_topic(self, name: str, partitions: int, replication: int = 1) -> None:
        """Create a topic and wait until it is served by all its replicas; raises LabError."""
        topics.create(self.admin, {name: partitions}, replication)
        self._partitions[name] = partitions

    def create_topics(self, partitions: Mapping[str, int], replication: int = 1) -> None:
        """Create several topics (name → partitions) at once."""
        topics.create(self.admin, partitions, replication)
        self._partitions |= partitions

    def grow_topic(self, name: str, partitions: int, replication: int = 1) -> None:
        """Give a topic more partitions, up to ``partitions``; raises LabError."""
        topics.grow(self.admin, name, partitions, replication)
        self._partitions[name] = partitions

    def produce(self, topic: str, count: int) -> dict[int, int]:
        """Write ``count`` records, numbered on, spread evenly over the topic; returns partition → count."""
        first = self._numbers[topic]
        self._numbers[topic] += count
        return topics.produce(self.servers.addresses(), topic, self._partitions[topic], first, count)

    def move_node(self, role: str, node_id: int, action: str, mode: str) -> str:
        """Start, stop, restart or wipe a broker or controller in a mode; see ``kit.lab.servers.node_verbs``."""
        return move_node(self.migration, role, node_id, action, mode)

    def profile_toml(self, protocol: str = "SASL_SSL", zookeeper_tls: bool = False) -> str:
        """The profile that names this lab as cluster ``lab``.

        ``protocol`` (``SASL_SSL``, or ``SSL`` with a client certificate) and ``zookeeper_tls`` choose what a secured
        lab's profile uses; its secrets are those of ``secrets``.
        """
        if not self.servers.brokers:
            return f'[clusters.lab]\nzookeeper_connect = "{self.zookeeper_connect}"\n'
        servers = self.servers.addresses(protocol if self.security else "PLAINTEXT")
        if self._kraft:
            plain = f'[clusters.lab]\nbootstrap_servers = "{servers}"\ncluster_id = "{self.cluster_id}"\n'
            return f'{plain}[clusters.lab.deploy]\nkind = "lab"\n{QUICK_SPARK}'
        zookeeper = self.servers.zookeeper_tls_connect if zookeeper_tls else self.zookeeper_connect
        plain = (
            "[clusters.lab]\n"
            f'bootstrap_servers = "{servers}"\n'
            f'zookeeper_connect = "{zookeeper}"\n'
            f'cluster_id = "{self.cluster_id}"\n'
            "[clusters.lab.deploy]\n"
            'kind = "lab"\n'
        )
        if self._controllers:
            plain += '[clusters.lab.deploy.nodes]\nkind = "lab"\n'
            plain += f'[clusters.lab.kraft]\ncontrollers = "{self.migration.voters}"\n'
        security = profile_sections(self.security, protocol, zookeeper_tls) if self.security else ""
        return plain + security + QUICK_SPARK
