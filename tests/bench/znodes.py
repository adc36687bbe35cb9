"""``/consumers`` into Arrow: our sweep beside the Java client's and kazoo's pipelined reads."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from kit.lab.java import compiled, jars
from kit.read.zookeeper import ConsumersTree, fetch_consumers
from kit.spark.java import java_command
from tests.bench.clock import Timing, compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import WHOLE, Site

_IN_FLIGHT = 1_000
_SOURCE = Path(__file__).with_name("ZooKeeperWalk.java")
_WARM_UPS = 3


def compared(site: Site) -> Iterator[Row]:
    """Ours against the same requests by the Java client, and against kazoo's reads of the leaves alone."""
    what = f"/consumers, {site.n_znodes:,} znodes"
    with site.connect(WHOLE) as cluster:
        ours = timed(lambda: fetch_consumers(cluster.zookeeper), lambda tree: expect("znodes", _n_read(tree), _n(site)))
        ours()
        say(f"{what}: warming up the Java client, then in turn")
        with _java_client(site) as walk:
            yield compare(f"{what} vs the Java client's getData", ours, walk, 4)
        say(f"{what}: in turn with kazoo's get_async of {len(site.leaves):,} known paths")
        client = KazooClient(site.lab.zookeeper_connect)
        client.start()
        try:
            leaves = timed(lambda: _get_async(client, site.leaves), lambda n: expect("leaves", n, len(site.leaves)))
            yield compare(f"{what} vs kazoo's get_async", ours, leaves, 20, rounds=3)
        finally:
            client.stop()
            client.close()


def _n(site: Site) -> int:
    """Znodes with data: owners, offsets, a member per group, a mode per tenth group."""
    groups = site.sizes.registered_groups
    return len(site.leaves) + groups + -(-groups // 10)


def _n_read(tree: ConsumersTree) -> int:
    return sum(map(len, (tree.ownership, tree.committed_offsets, tree.members, tree.migration_states)))


@contextmanager
def _java_client(site: Site) -> Iterator[Timing]:
    """A JVM with its default compilers and collector; it ends when its standard input does."""
    classes = compiled.classes(str(_SOURCE), jars.SERVERS)
    logging = f"-Dlog4j.configuration=file:{site.lab.folder / 'log4j.properties'}"
    class_path = jars.class_path(jars.SERVERS, classes)
    command = [java_command(), "-Xmx512m", logging, "-cp", class_path, "ZooKeeperWalk"]
    command += [site.lab.zookeeper_connect, str(_IN_FLIGHT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:

        def walk() -> float:
            assert jvm.stdin is not None
            assert jvm.stdout is not None
            jvm.stdin.write("once\n")
            jvm.stdin.flush()
            told = jvm.stdout.readline().split()
            expect("values the Java client told", len(told), 4)
            seconds, read, _, refused = told
            expect("znodes read and refused by the Java client", (int(read), int(refused)), (_n(site), 0))
            return float(seconds)

        for _ in range(_WARM_UPS):
            walk()
        yield walk


def _get_async(client: KazooClient, paths: Sequence[str]) -> int:
    under_way: deque[Any] = deque()
    found = []
    for path in paths:
        if len(under_way) == _IN_FLIGHT:
            found.append(under_way.popleft().get())
        under_way.append(client.get_async(path))
    found += [each.get() for each in under_way]
    return sum(stat is not None for _, stat in found)
