"""Files of a cluster's metadata: its log beside DumpLogSegments, a ZooKeeper snapshot beside ZooKeeper's formatter.

Each side is a process of its own, as a person starts it.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

from kit.lab.java import jars, jvm
from tests.bench.clock import Timing, compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import Site
from tests.metadata_records import batch, change, partition, topic
from tests.zookeeper_records import snapshot, znode

TOPICS, PARTITIONS, ZNODES = 10_000, 100, 1_000_000
LOG_GOAL, SNAPSHOT_GOAL = 10, 20
_HEAP_MB, _ROUNDS = 3_000, 3
_PARTITION_ID_AT = 3
"""Behind the frame version, the type and the version of the record, a byte each."""
_READ_LOG = "from kit.kraft.metadata_log import read_log; print(len(read_log({!r}).partitions))"
_READ_SNAPSHOT = "from kit.kraft.zookeeper_history import read_zookeeper_files as read; print(len(read([{!r}]).znodes))"


def compared(site: Site) -> Iterator[Row]:
    with TemporaryDirectory() as folder:
        yield from _logs(Path(folder))
        yield _snapshot(Path(folder))


def _logs(folder: Path) -> Iterator[Row]:
    """A log of partitions alone, and one in which each of a tenth of them is changed ten times."""
    for topics, changes in ((TOPICS, 0), (TOPICS // 10, 10)):
        n_partitions = topics * PARTITIONS
        name = f"metadata log, {n_partitions:,} partitions, {changes * n_partitions:,} changes"
        say(f"{name}: writing")
        log = folder / "00000000000000000000.log"
        batches = chain(map(created, range(topics)), (_changes(at) for _ in range(changes) for at in range(topics)))
        base_offset = 0
        with log.open("wb") as file:
            for values in batches:
                file.write(batch(base_offset, values))
                base_offset += len(values)
        tool = _java(folder, "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", str(log))
        ours = _ours(_READ_LOG.format(str(log)), n_partitions)
        yield compare(f"{name} vs DumpLogSegments", ours, tool, LOG_GOAL, _ROUNDS)


def created(number: int) -> list[bytes]:
    """Return the records that one request creates: the topic, then its partitions."""
    first = partition(number + 1, 0)
    head, tail = first[:_PARTITION_ID_AT], first[_PARTITION_ID_AT + 4 :]
    return [
        topic(f"topic-{number:05d}", number + 1),
        *(head + struct.pack(">i", at) + tail for at in range(PARTITIONS)),
    ]


def _changes(number: int) -> list[bytes]:
    """Another leader and ISR for each partition of a topic."""
    first = change(number + 1, 0, isr=[2, 3], leader=2)
    head, tail = first[:_PARTITION_ID_AT], first[_PARTITION_ID_AT + 4 :]
    return [head + struct.pack(">i", at) + tail for at in range(PARTITIONS)]


def _snapshot(folder: Path) -> Row:
    say(f"ZooKeeper snapshot: writing {ZNODES:,} znodes")
    file = folder / "snapshot.5f"
    file.write_bytes(snapshot(*tree()))
    name = f"ZooKeeper snapshot, {ZNODES:,} znodes vs SnapshotFormatter"
    tool = _java(folder, "org.apache.zookeeper.server.SnapshotFormatter", str(file))
    return compare(name, _ours(_READ_SNAPSHOT.format(str(file)), ZNODES), tool, SNAPSHOT_GOAL, _ROUNDS)


def tree() -> Iterator[bytes]:
    """Groups with offsets in 97 partitions each."""
    top = ["/", "/consumers"]
    yield from map(znode, top)
    for number in range((ZNODES - len(top)) // 100):
        group = f"/consumers/group-{number:05d}"
        yield from (znode(f"{group}{below}") for below in ("", "/offsets", "/offsets/orders"))
        yield from (znode(f"{group}/offsets/orders/{at}", b"%d" % (number * at)) for at in range(97))
    yield from (znode(f"/rest-{number}") for number in range((ZNODES - len(top)) % 100))


def _ours(code: str, n_rows: int) -> Timing:
    return timed(lambda: _ran([sys.executable, "-c", code]), lambda told: expect("rows", int(told), n_rows))


def _java(folder: Path, main: str, *arguments: str) -> Timing:
    """It writes what it prints to a file, as who searches for something in it does."""
    command = jvm.java(jars.class_path(jars.SERVERS), main, arguments, _HEAP_MB, folder)

    def told() -> int:
        with (folder / "told").open("wb") as file:
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
        return (folder / "told").stat().st_size

    return timed(told, lambda size: expect("that it printed much", size > 10**8, True))


def _ran(command: Sequence[str]) -> str:
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
