"""Measure the cost of each verb as groups become more: 1,000, 10,000 and 100,000 groups × 20 on a cluster without
ZooKeeper.

The broker answers the same requests at each size, so its own time is measured too: that of the bare read.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil

from kit.clients.cluster import connect
from kit.groups.snapshot import observe
from kit.lab import Lab
from kit.lab.lab import QUICK_SPARK
from kit.lab.servers.kraft import KRaftBroker
from kit.profile import load_profile
from tests.bench.clock import expect, say
from tests.bench.report import watch
from tests.bench.rows import Row
from tests.bench.site import PARTITIONS, RECORDS, TOPIC, Site, commit_groups, create_offsets_topic

FULL = 10_000
"""Groups of the middle size, at scale 1."""
_HEAP_MB = 1_024
_SPARK = """[clusters.lab.spark.conf]
"spark.driver.memory" = "4g"
"""
"""Two million rows do not fit into Spark's default of 1 GB."""
_MOST = 1.2
"""The largest factor of the cost per group at the largest size to that at the middle size."""
_VERBS = {"groups": (), "lag": (), "export": ("--once",), "report": ("--output",)}


class Cost(NamedTuple):
    """The cost of one run of a command: seconds, seconds of CPU, and the most memory that its processes held together.

    The CPU is that of the command and of children that it waits for: not that of Spark's JVM.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float


def compared(site: Site) -> Iterator[Row]:
    """Per group, each size against the one before."""
    middle = round(FULL * site.sizes.scale)
    before, n_before = dict[str, Cost](), 0
    KRaftBroker.heap_mb = _HEAP_MB
    with Lab(kraft=True) as lab, tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "offramp.toml"
        profile.write_text(lab.profile_toml().replace(QUICK_SPARK, _SPARK), encoding="utf-8")
        lab.create_topic(TOPIC, PARTITIONS)
        lab.produce(TOPIC, RECORDS)
        create_offsets_topic(lab.bootstrap_servers)
        for n_groups in (middle // 10, middle, middle * 10):
            costs = _costs(profile, n_before, n_groups)
            for name, cost in costs.items():
                if n_before:
                    is_last = n_groups > middle
                    yield from _rows(name, cost, n_groups, before[name], n_before, 1 / _MOST if is_last else None)
            before, n_before = costs, n_groups


def _costs(profile: Path, n_before: int, n_groups: int) -> dict[str, Cost]:
    with connect(load_profile(file=profile)) as cluster:
        say(f"committing {n_groups - n_before:,} groups × {PARTITIONS} partitions")
        cluster.broker_client.run(commit_groups, cluster.broker_client, range(n_before, n_groups))
        began = time.perf_counter()
        found = observe(cluster)
        expect("groups of the snapshot", found.groups.height, n_groups)
        for step, duration_ms in found.read_timings.select("step", "duration_ms").iter_rows():
            say(f"  the bare read of {n_groups:,} groups, {step}: {duration_ms / 1000:.2f} s")
        costs = {"the bare read": Cost(time.perf_counter() - began, 0.0, 0.0)}
    for verb, options in _VERBS.items():
        costs[f"offramp {verb}"] = cost = _cost(profile, verb, options)
        say(
            f"  offramp {verb} of {n_groups:,} groups: {cost.wall_s:.2f} s, {cost.cpu_s:.2f} s of CPU,"
            f" {cost.peak_mb:,.0f} MB"
        )
    return costs


def _cost(profile: Path, verb: str, options: tuple[str, ...]) -> Cost:
    """Return the cost of a new process, with its children."""
    command = [sys.executable, "-m", "kit", verb, *options]
    command += [str(profile.parent)] if "--output" in options else []
    before, ended, peaks = resource.getrusage(resource.RUSAGE_CHILDREN), threading.Event(), [0.0]
    began = time.perf_counter()
    process = psutil.Popen([*command, "--profile-file", str(profile)], stdout=subprocess.DEVNULL)
    watcher = threading.Thread(target=watch, args=(process, ended, peaks))
    watcher.start()
    expect(f"exit code of offramp {verb}", process.wait(), 0)
    wall_s = time.perf_counter() - began
    ended.set()
    watcher.join()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s, cpu_s, peaks[0])


def _rows(name: str, cost: Cost, n: int, before: Cost, n_before: int, goal: float | None) -> Iterator[Row]:
    what = f"{name}, per group: {n:,} groups vs {n_before:,}"
    yield Row(what, cost.wall_s / n * 1000, before.wall_s / n_before * 1000, "ms", goal)
    if cost.peak_mb:
        yield Row(f"{what}, CPU", cost.cpu_s / n * 1000, before.cpu_s / n_before * 1000, "ms", None)
        yield Row(f"{name}, memory: {n:,} groups vs {n_before:,}", cost.peak_mb, before.peak_mb, "MB", None)
