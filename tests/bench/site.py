"""The lab that is measured: one broker with many groups, one ZooKeeper with a large ``/consumers``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from kafka.protocol.consumer import OffsetCommitRequest
from kazoo.client import KazooClient

from kit.clients.broker_client import BrokerClient
from kit.clients.cluster import Cluster, connect
from kit.lab import Lab
from kit.lab.java import jvm
from kit.lab.lab import QUICK_SPARK
from kit.lab.servers import kafka, zookeeper
from kit.lab.topics import QUIET
from kit.profile import load_profile
from tests.bench.clock import expect, say

TOPIC = "orders"
PARTITIONS = 20
BROKERS_ONLY, WHOLE = "brokers", "lab"
"""Names of the two profiles: without ZooKeeper, as the tools that are compared with, and with it."""
RECORDS = 100 * PARTITIONS
_COMMITS_IN_FLIGHT = 4
_OPERATIONS_PER_TRANSACTION = 500
_HEAP_MB = 512


@dataclass(frozen=True, slots=True)
class Sizes:
    """The numbers of groups with committed offsets, and of groups under ``/consumers``."""

    groups: int = 10_000
    registered_groups: int = 2_400
    scale: float = 1.0

    def scaled(self, scale: float) -> Sizes:
        return Sizes(max(1, int(self.groups * scale)), max(1, int(self.registered_groups * scale)), scale)

    @property
    def committed(self) -> int:
        """Committed offsets at the coordinator."""
        return self.groups * PARTITIONS


@dataclass(frozen=True, slots=True)
class Site:
    """A filled lab. ``leaves`` are the paths of owners and offsets, ``n_znodes`` counts all of ``/consumers``."""

    lab: Lab
    sizes: Sizes
    profiles: Path
    leaves: tuple[str, ...]
    n_znodes: int

    def connect(self, name: str) -> Cluster:
        return connect(load_profile(name, self.profiles))


@contextmanager
def filled(sizes: Sizes) -> Iterator[Site]:
    """Start the lab, with heaps for this size and Java's full compiler, and fill it.

    The lab's servers are otherwise set to start quickly; slow ones are unfair to whoever asks them more often.
    """
    zookeeper.HEAP_MB = kafka.HEAP_MB = _HEAP_MB
    jvm.FLAGS = tuple(flag for flag in jvm.FLAGS if "TieredStopAtLevel" not in flag)  # type: ignore[assignment]
    say("starting ZooKeeper and one broker")
    with Lab(brokers=1) as lab:
        profiles = lab.folder / "offramp.toml"
        brokers = f'bootstrap_servers = "{lab.bootstrap_servers}"\ncluster_id = "{lab.cluster_id}"\n'
        profiles.write_text(
            f"{lab.profile_toml().replace(QUICK_SPARK, '')}\n[clusters.{BROKERS_ONLY}]\n{brokers}", encoding="utf-8"
        )
        lab.create_topic(TOPIC, PARTITIONS)
        lab.produce(TOPIC, RECORDS)
        with connect(load_profile(WHOLE, profiles)) as cluster:
            say(f"committing {sizes.groups:,} groups × {PARTITIONS} partitions")
            create_offsets_topic(lab.bootstrap_servers)
            cluster.broker_client.run(commit_groups, cluster.broker_client, range(sizes.groups))
            leaves, n_znodes = _create_consumers(lab.zookeeper_connect, sizes.registered_groups)
        yield Site(lab, sizes, profiles, leaves, n_znodes)


def group_name(number: int) -> str:
    return f"bench-{number:05d}"


def create_offsets_topic(bootstrap_servers: str) -> None:
    """The first commit makes that topic, and the library waits for it; it is made for a group that is filled anyway."""
    consumer = Consumer({**QUIET, "bootstrap.servers": bootstrap_servers, "group.id": group_name(0)})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    consumer.close()


async def commit_groups(client: BrokerClient, numbers_of_groups: range) -> None:
    """Commit the partitions of the groups of these numbers."""
    (broker_id,) = client.broker_ids()
    for start in range(0, len(numbers_of_groups), _COMMITS_IN_FLIGHT):
        numbers = numbers_of_groups[start : start + _COMMITS_IN_FLIGHT]
        for answer in [client.send(_commit(number), broker_id) for number in numbers]:
            codes = {each.error_code for topic in (await answer).topics for each in topic.partitions}
            expect("error codes of a commit", codes, {0})


def _commit(number: int) -> Any:
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partitions = [
        topic.OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=(number + partition) % 100,
            committed_leader_epoch=-1,
            committed_metadata="",
        )
        for partition in range(PARTITIONS)
    ]
    return OffsetCommitRequest(
        group_id=group_name(number),
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=[topic(name=TOPIC, partitions=partitions)],
        max_version=8,
    )


def _create_consumers(connect_string: str, n_groups: int) -> tuple[tuple[str, ...], int]:
    znodes = [znode for number in range(n_groups) for znode in _group_znodes(number)]
    say(f"creating {len(znodes):,} znodes under /consumers")
    client = KazooClient(connect_string)
    client.start()
    try:
        for start in range(0, len(znodes), _OPERATIONS_PER_TRANSACTION):
            transaction = client.transaction()
            for path, data in znodes[start : start + _OPERATIONS_PER_TRANSACTION]:
                transaction.create(path, data)
            failed = [each for each in transaction.commit() if not isinstance(each, str)]
            expect("failures of a transaction", failed, [])
    finally:
        client.stop()
        client.close()
    return tuple(path for path, _ in znodes if path.rpartition("/")[2].isdecimal()), len(znodes)


def _group_znodes(number: int) -> Iterator[tuple[str, bytes]]:
    """One member that owns every partition; every tenth group can switch stores (KIP-125)."""
    name = group_name(number)
    group, member = f"/consumers/{name}", f"{name}_host-1795236384713-72c22bd1"
    for path in ("", "/ids", "/owners", "/offsets", f"/owners/{TOPIC}", f"/offsets/{TOPIC}"):
        yield group + path, b""
    registration = b'{"version":1,"subscription":{"orders":1},"pattern":"static","timestamp":"1795236385109"}'
    yield f"{group}/ids/{member}", registration
    if number % 10 == 0:
        yield f"{group}/migration", b""
        yield f"{group}/migration/ids", b""
        yield f"{group}/migration/mode", b"zookeeper"
    for partition in range(PARTITIONS):
        yield f"{group}/owners/{TOPIC}/{partition}", f"{member}-0".encode()
        yield f"{group}/offsets/{TOPIC}/{partition}", str(1_000_000 + number * partition).encode()
