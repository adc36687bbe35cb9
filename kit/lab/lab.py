"""A lab: ZooKeeper, brokers, topics, producers and consumers on loopback, in a throw-away folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType

from confluent_kafka.admin import AdminClient

from kit.lab import jars, old_consumers, topics
from kit.lab.consumers import Consumer, consumption_folder
from kit.lab.kafka import Broker
from kit.lab.old_consumers import OldMember
from kit.lab.process import Ward
from kit.lab.zookeeper import ZooKeeper


class Lab:
    """``with Lab(brokers=1) as lab:`` – real servers, up when the block starts and gone when it ends.

    They also end when the caller is killed. ``racks`` names one rack per broker; ``chroot`` (``/name``) puts
    the brokers under a path of ZooKeeper.
    """

    def __init__(self, brokers: int = 1, racks: Sequence[str] = (), chroot: str = "") -> None:
        self._count = brokers
        self._racks = racks
        self._chroot = chroot
        self._numbers: Counter[str] = Counter()
        self._partitions: dict[str, int] = {}

    def start(self) -> Lab:
        """Start ZooKeeper, then all brokers side by side; raises LabError, after ending what was started."""
        jars.ensure([jars.SERVERS])
        self.ward = Ward()
        try:
            self.consumption.mkdir()
            self.zookeeper = ZooKeeper(self.ward)
            self.zookeeper.start()
            self.brokers = [self._broker(number) for number in range(1, self._count + 1)]
            self.start_brokers()
        except BaseException:
            self.ward.close()
            raise
        return self

    def start_brokers(self) -> None:
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.await_started()

    def stop(self) -> None:
        """End consumers first, then brokers, then ZooKeeper, and remove the folder."""
        servers = [server.process for server in (*self.brokers, self.zookeeper) if server.process is not None]
        self.ward.stop([process for process in self.ward.processes if process not in servers], seconds=10)
        self.ward.stop([process for process in servers if process is not self.zookeeper.process], seconds=20)
        self.ward.close()

    def __enter__(self) -> Lab:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _broker(self, number: int) -> Broker:
        settings = {"broker.rack": self._racks[number - 1]} if self._racks else {}
        return Broker(self.ward, number, self.zookeeper_connect, self._count, settings)

    @property
    def folder(self) -> Path:
        """The throw-away folder: logs, data, consumption."""
        return self.ward.folder

    @property
    def consumption(self) -> Path:
        """Folder with one file of JSON lines per consumer: at_ms, consumer, topic, partition, offset."""
        return consumption_folder(self.ward.folder)

    @property
    def zookeeper_connect(self) -> str:
        """``host:port`` with the chroot."""
        return self.zookeeper.connect + self._chroot

    @property
    def bootstrap_servers(self) -> str:
        """``host:port`` of every broker, comma between."""
        return ",".join(broker.address for broker in self.brokers)

    @cached_property
    def admin(self) -> AdminClient:
        """An admin client over the unprotected listener."""
        return AdminClient({**topics.QUIET, "bootstrap.servers": self.bootstrap_servers})

    @cached_property
    def cluster_id(self) -> str:
        return str(self.admin.list_topics(timeout=10).cluster_id)

    def create_topic(self, name: str, partitions: int, replication: int = 1) -> None:
        """Create a topic and wait until it is served by all its replicas; raises LabError."""
        topics.create(self.admin, name, partitions, replication)
        self._partitions[name] = partitions

    def produce(self, topic: str, count: int) -> dict[int, int]:
        """Write ``count`` records, numbered on, spread evenly over the topic; returns partition → count."""
        first = self._numbers[topic]
        self._numbers[topic] += count
        return topics.produce(self.bootstrap_servers, topic, self._partitions[topic], first, count)

    def start_old_consumer(
        self,
        group: str,
        topics: str | Sequence[str],
        threads: int = 1,
        version: str = "1.1.1",
        offsets: str = "zookeeper",
        assignor: str = "range",
        delay_ms: int = 0,
        settings: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> Consumer:
        """Start one real old consumer in a JVM of its own; see ``OldMember`` for the arguments.

        Returns when its streams are made (``wait``); raises LabError when it ends before.
        """
        names = topics if isinstance(topics, str) else ",".join(topics)
        member = OldMember(group, names, threads, offsets, assignor, delay_ms, settings or {})
        return self.start_old_consumers([member], version, wait)[0]

    def start_old_consumers(
        self, members: Sequence[OldMember], version: str = "1.1.1", wait: bool = True
    ) -> list[Consumer]:
        """Start one JVM with several old consumers, of one group or of several."""
        started = old_consumers.launch(self.ward, self.zookeeper_connect, members, version)
        for consumer in started if wait else ():
            consumer.await_ready()
        return started

    def profile_toml(self) -> str:
        """The profile that names this lab as cluster ``lab``."""
        return (
            "[clusters.lab]\n"
            f'bootstrap_servers = "{self.bootstrap_servers}"\n'
            f'zookeeper_connect = "{self.zookeeper_connect}"\n'
            f'cluster_id = "{self.cluster_id}"\n'
        )
