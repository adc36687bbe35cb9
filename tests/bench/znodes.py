"""``/consumers`` into Arrow: our sweep beside the Java client's and kazoo's pipelined reads."""

from __future__ import annotations

import subprocess
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from kit.clients.multiread import ITEMS_PER_REQUEST, REQUESTS_IN_FLIGHT
from kit.groups.read.zookeeper import ConsumersTree, fetch_consumers
from kit.lab.java import compiled, jars
from kit.spark.java import java_command
from tests.bench.clock import Timing, compare, expect, say, timed
from tests.bench.rows import Row
from tests.bench.site import WHOLE, Site

PIPELINED, MULTIREAD = (1_000, 1), (REQUESTS_IN_FLIGHT, ITEMS_PER_REQUEST)
"""The Java client's requests in flight and znodes per request: one by one, or as ours."""
MULTIREAD_LIMIT = 0.5
"""Ours makes rows of what the Java client leaves as bytes: it may take twice as long."""
_LARGE_ANSWERS = f"-Djute.maxbuffer={8 * 2**20}"
"""By default the Java client takes none of more than 1 MB: a thousand topics of a hundred partitions."""
_SOURCE = Path(__file__).with_name("ZooKeeperWalk.java")
_WARM_UPS = 3


def compared(site: Site) -> Iterator[Row]:
    """Ours against the Java client's requests, one by one and many at once, and kazoo's reads of the leaves alone."""
    what = f"/consumers, {site.n_znodes:,} znodes"
    with site.connect(WHOLE) as cluster:
        ours = timed(lambda: fetch_consumers(cluster.zookeeper), lambda tree: expect("znodes", _n_read(tree), _n(site)))
        ours()
        for requests, name, goal in ((PIPELINED, "getData", 4), (MULTIREAD, "multi-read", MULTIREAD_LIMIT)):
            say(f"{what}: warming up the Java client's {name}, then in turn")
            with java_client(site.lab.folder, site.lab.zookeeper_connect, requests, _n(site)) as walk:
                yield compare(f"{what} vs the Java client's {name}", ours, walk, goal)
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
def java_client(
    folder: Path, connect_string: str, requests: tuple[int, int], n_znodes: int, partitions: int = 0, heap_mb: int = 512
) -> Iterator[Timing]:
    """A JVM with its default compilers and collector; it ends when its standard input does.

    ``folder`` is the lab's, for the settings of its log. ``partitions``: it reads the state of so many of each topic;
    0: it reads ``/consumers``.
    """
    classes = compiled.classes(str(_SOURCE), jars.SERVERS)
    logging = f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}"
    class_path = jars.class_path(jars.SERVERS, classes)
    command = [java_command(), f"-Xmx{heap_mb}m", _LARGE_ANSWERS, logging, "-cp", class_path, "ZooKeeperWalk"]
    command += [connect_string, *map(str, requests), str(partitions)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:

        def walk() -> float:
            assert jvm.stdin is not None
            assert jvm.stdout is not None
            jvm.stdin.write("once\n")
            jvm.stdin.flush()
            told = jvm.stdout.readline().split()
            expect("values the Java client told", len(told), 4)
            seconds, read, _, refused = told
            expect("znodes read and refused by the Java client", (int(read), int(refused)), (n_znodes, 0))
            return float(seconds)

        for _ in range(_WARM_UPS):
            walk()
        yield walk


def _get_async(client: KazooClient, paths: Sequence[str]) -> int:
    under_way: deque[Any] = deque()
    found = []
    for path in paths:
        if len(under_way) == PIPELINED[0]:
            found.append(under_way.popleft().get())
        under_way.append(client.get_async(path))
    found += [each.get() for each in under_way]
    return sum(stat is not None for _, stat in found)
