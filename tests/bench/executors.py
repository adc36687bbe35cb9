"""Spark's way through many files of metadata: an executor with one core beside one with two, which this machine has.

Linear would be twice as fast. What a task reads it reads alone, so only memory and Spark's own work stand in the way.
Each Spark is a process of its own and kept on its cores, driver and Java too: else the one with a single task at a time
has the second core for its Java while Python reads. More than two cores need a larger machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench import metadata
from tests.bench.clock import compare, expect, say
from tests.bench.rows import REPOSITORY, Row
from tests.bench.site import Site
from tests.metadata_records import batch
from tests.zookeeper_records import snapshot

FILES, TOPICS, ZNODES = 8, 200, 250_000
GOAL = 1.6
"""The goal for the factor, which linear growth would make 2: Spark's driver has work that is not shared."""
LOGS, SNAPSHOTS = "logs", "snapshots"


def compared(site: Site) -> Iterator[Row]:
    """In turn, each warmed up by a round."""
    n_partitions = TOPICS * metadata.PARTITIONS
    n_rows = {LOGS: FILES * (TOPICS + n_partitions), SNAPSHOTS: FILES * ZNODES}
    names = {LOGS: f"metadata logs of {n_partitions:,} partitions", SNAPSHOTS: f"snapshots of {ZNODES:,} znodes"}
    with TemporaryDirectory() as folder:
        _write(Path(folder))
        with _reader(1, folder) as one, _reader(2, folder) as two:
            for what, name in names.items():
                ours, peer = (partial(read, what, n_rows[what]) for read in (two, one))
                for way in (ours, peer):
                    way()
                yield compare(f"Spark, {FILES} {name}: 2 cores vs 1", ours, peer, GOAL)


@contextmanager
def _reader(cores: int, folder: str) -> Iterator[Callable[[str, int], float]]:
    """A Spark that reads when it is reported to, and gives the seconds; it ends when its standard input does."""
    command = [sys.executable, "-m", "tests.bench.executors", str(cores), folder]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def read(what: str, n_rows: int) -> float:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{what}\n")
            process.stdin.flush()
            told = process.stdout.readline().split()
            expect("values that Spark told", len(told), 2)
            expect("rows", int(told[1]), n_rows)
            return float(told[0])

        yield read


def main(cores: str, folder: str) -> None:
    """Run that process."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    from kit.kraft.metadata_log.tasks import read_files as read_logs
    from kit.kraft.zookeeper_history import read_files as read_snapshots
    from kit.profile import SparkSettings
    from kit.spark.session import start

    spark = start(SparkSettings(master=f"local[{cores}]"), "bench")
    for line in sys.stdin:
        what = line.strip()
        started = time.perf_counter()
        paths = sorted(Path(folder, what).iterdir())
        rows = read_logs(spark, paths).records if what == LOGS else read_snapshots(spark, paths).znodes
        n_rows = rows.count()
        print(time.perf_counter() - started, n_rows, flush=True)
    spark.stop()


def _write(folder: Path) -> None:
    """A folder for each file, as it was copied from a node."""
    say(f"executors: writing {FILES} metadata logs and {FILES} snapshots")
    octets, at = list[bytes](), 0
    for number in range(TOPICS):
        values = metadata.created(number)
        octets.append(batch(at, values))
        at += len(values)
    some = {LOGS: (f"{0:020}.log", b"".join(octets)), SNAPSHOTS: ("snapshot.5f", snapshot(*_znodes()))}
    for what, (name, held) in some.items():
        for number in range(FILES):
            path = folder / what / f"node-{number}" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(held)


def _znodes() -> Iterator[bytes]:
    return islice(metadata.tree(), ZNODES)


if __name__ == "__main__":
    main(*sys.argv[1:])
