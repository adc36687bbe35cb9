"""A million partitions in both stores: ZooKeeper's znodes beside the Java client's multi-read, the diff, its memory.

The server begins with a snapshot file of them, which takes seconds; creating two million znodes takes minutes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kazoo.client import KazooClient

from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
from kit.lab.process import ProcessSupervisor
from kit.lab.servers.zookeeper import ZooKeeper
from tests.bench import diff_reader
from tests.bench.clock import compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import Site
from tests.bench.znodes import MULTIREAD, MULTIREAD_LIMIT, java_client
from tests.metadata_records import batch, octets_of, partition, topic, uuid, value
from tests.zookeeper_records import snapshot, znode

TOPICS, PARTITIONS, BROKERS = 10_000, 100, 30
JOIN_LIMIT_S, MEMORY_LIMIT_MB = 10.0, 4096.0
_HEAP_MB, _CLIENT_HEAP_MB, _ROUNDS = 3_000, 1_500, 3
_TOPIC_ID_AT, _PARTITION_ID_AT = 7, 3
"""Behind the frame version, the type and the version of a partition's record; the id of the partition has 4 bytes."""
_CHECKPOINT = TOPICS * (PARTITIONS + 1)
"""The last offset of the log: all of it is in ZooKeeper."""


def compared(site: Site) -> Iterator[Row]:
    n = TOPICS * PARTITIONS
    log = site.lab.folder / "00000000000000000000.log"
    say(f"both stores: writing {n:,} partitions")
    _write_log(log)
    with _server() as server:
        name = f"metadata znodes, {n:,} partitions"
        client = KazooClient(server.connect, timeout=60.0)
        client.start()
        try:
            ours = timed(
                lambda: fetch_metadata_znodes(client, bool), lambda read: expect("rows", len(read.partitions), n)
            )
            say(f"{name}: warming up the Java client's multi-read, then in turn")
            with java_client(
                site.lab.folder, server.connect, MULTIREAD, TOPICS + n, PARTITIONS, _CLIENT_HEAP_MB
            ) as walk:
                yield compare(f"{name} vs the Java client's multi-read", ours, walk, MULTIREAD_LIMIT, _ROUNDS)
        finally:
            client.stop()
            client.close()
        yield from _diff(server, log, n)


def _diff(server: ZooKeeper, log: Path, n_partitions: int) -> Iterator[Row]:
    """A process that does nothing else, as ``offramp kraft diff``; the join alone, and all of its memory."""
    say(f"diff of {n_partitions:,} partitions: both reads and the join in one process")
    told = diff_reader.run(server.connect, log)
    expect("values that are equal", told["n_equal"], n_partitions + TOPICS + 1)
    expect("values that are not", told["n_other"], 0)
    say(f"  {json.dumps(told)}")
    yield Row(f"diff of {n_partitions:,} partitions, polars join", told["join_s"], JOIN_LIMIT_S, "s", 1)
    yield Row(f"diff of {n_partitions:,} partitions, memory", told["peak_mb"], MEMORY_LIMIT_MB, "MB", 1)


def _replicas(topic_number: int, number: int) -> list[int]:
    """Place replicas like Kafka: the leader goes round, the followers in one of several distances."""
    first, step = topic_number + number, 1 + (topic_number + number // BROKERS) % (BROKERS - 2)
    return [first % BROKERS, (first + step) % BROKERS, (first + step + 1) % BROKERS]


def _write_log(path: Path) -> None:
    """A batch for each topic, then the state of a migration."""
    forms = dict[tuple[int, ...], tuple[bytes, bytes]]()
    with path.open("wb") as file:
        for number in range(TOPICS):
            values = [topic(_name(number), number + 2)]
            values += (_partition(forms, number, at) for at in range(PARTITIONS))
            file.write(batch(number * (PARTITIONS + 1), values))
        file.write(batch(_CHECKPOINT, [value("ZkMigrationState", {"zkMigrationState": 1})]))


def _partition(forms: dict[tuple[int, ...], tuple[bytes, bytes]], topic_number: int, number: int) -> bytes:
    replicas = _replicas(topic_number, number)
    key = tuple(replicas)
    if key not in forms:
        octets = partition(1, 0, replicas)
        forms[key] = octets[:_PARTITION_ID_AT], octets[_TOPIC_ID_AT + 16 :]
    head, tail = forms[key]
    return b"".join((head, struct.pack(">i", number), octets_of(uuid(topic_number + 2)), tail))


def _name(number: int) -> str:
    return f"topic-{number:05d}"


@contextmanager
def _server() -> Iterator[ZooKeeper]:
    """A ZooKeeper that found these znodes in its folder."""
    supervisor = ProcessSupervisor()
    try:
        server = ZooKeeper(supervisor)
        server.heap_mb = _HEAP_MB
        version = supervisor.folder / server.name / "data" / "version-2"
        version.mkdir(parents=True)
        (version / "snapshot.9").write_bytes(snapshot(*_tree(), seals=1))
        say("both stores: ZooKeeper reads its snapshot")
        server.start()
        yield server
    finally:
        supervisor.close()


def _tree() -> Iterator[bytes]:
    """Parents before their children."""
    migration = {
        "version": 0,
        "kraft_controller_id": 3000,
        "kraft_controller_epoch": 1,
        "kraft_metadata_offset": _CHECKPOINT,
        "kraft_metadata_epoch": 1,
    }
    yield from map(znode, ("/", "/brokers", "/brokers/topics"))
    yield znode("/migration", json.dumps(migration).encode())
    for number in range(TOPICS):
        path = f"/brokers/topics/{_name(number)}"
        placed = [_replicas(number, at) for at in range(PARTITIONS)]
        yield znode(path, _topic_value(number, placed))
        yield znode(f"{path}/partitions")
        for at, replicas in enumerate(placed):
            yield znode(f"{path}/partitions/{at}")
            yield znode(f"{path}/partitions/{at}/state", _state_value(replicas))


def _topic_value(number: int, placed: list[list[int]]) -> bytes:
    replicas = {str(at): each for at, each in enumerate(placed)}
    held = {"removing_replicas": {}, "partitions": replicas, "topic_id": uuid(number + 2), "adding_replicas": {}}
    return json.dumps(held | {"version": 3}, separators=(",", ":")).encode()


def _state_value(replicas: list[int]) -> bytes:
    held = {"controller_epoch": 1, "leader": replicas[0], "version": 1, "leader_epoch": 0, "isr": replicas}
    return json.dumps(held, separators=(",", ":")).encode()
