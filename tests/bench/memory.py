"""Measure the memory of a process that does nothing but read, at both sizes."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from tests.bench import reader
from tests.bench.clock import expect, say
from tests.bench.rows import Row
from tests.bench.site import BROKERS_ONLY, PARTITIONS, WHOLE, Site

LIMIT_MB = 400.0
_ROUNDS = 2


def compared(site: Site) -> Iterator[Row]:
    """Peak memory against its limit: the groups alone, the znodes alone, and both in one snapshot."""
    groups, znodes = f"{site.sizes.groups:,} groups × {PARTITIONS}", f"{site.n_znodes:,} znodes"
    committed, in_zookeeper = site.sizes.committed, len(site.leaves) // 2
    yield _row(site, f"memory of the reader: {groups}", BROKERS_ONLY, reader.SNAPSHOT, committed)
    yield _row(site, f"memory of the reader: {znodes}", WHOLE, reader.CONSUMERS, in_zookeeper)
    yield _row(site, "memory of the reader: both in one snapshot", WHOLE, reader.SNAPSHOT, committed + in_zookeeper)


def _row(site: Site, name: str, cluster: str, what: str, n_offsets: int) -> Row:
    peaks = []
    for number in range(1, _ROUNDS + 1):
        told = reader.run(site.profiles, cluster, what)
        expect("committed offsets read", told["n_offsets"], n_offsets)
        say(
            f"  {name}, round {number} of {_ROUNDS}: {told['peak_mb']:.0f} MB, of which {told['imported_mb']:.0f} MB "
            f"before it read; {told['seconds']:.3f} s for the first read of the process"
        )
        peaks.append(told["peak_mb"])
    return Row(name, median(peaks), LIMIT_MB, "MB", 1)
