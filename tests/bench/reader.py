"""A process that only reads, once, and says what that took: ``reader <profiles> <cluster> snapshot|consumers``."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.rows import REPOSITORY

SNAPSHOT, CONSUMERS = "snapshot", "consumers"
_STATUS = Path("/proc/self/status")


def run(profiles: Path, cluster: str, what: str) -> dict[str, Any]:
    """Start that process and wait; gives seconds, n_offsets, and MB: imported_mb before it read, peak_mb at its end."""
    command = [sys.executable, "-m", "tests.bench.reader", str(profiles), cluster, what]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True, timeout=120)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def peak_mb() -> float:
    """The most memory this process held at once.

    Linux's own count of this program: ``ru_maxrss`` starts with what the parent held when it forked.
    """
    if _STATUS.exists():
        lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) / 1024
    unit = 1024**2 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def main(profiles: str, name: str, what: str) -> None:
    from kit.clients.cluster import connect
    from kit.groups.read.zookeeper import fetch_consumers
    from kit.groups.snapshot import observe
    from kit.profile import load_profile

    imported_mb = peak_mb()
    with connect(load_profile(name, profiles)) as cluster:
        started = time.perf_counter()
        found = observe(cluster) if what == SNAPSHOT else fetch_consumers(cluster.zookeeper)
        seconds = time.perf_counter() - started
    told = {"seconds": seconds, "n_offsets": len(found.committed_offsets), "imported_mb": imported_mb}
    print(json.dumps(told | {"peak_mb": peak_mb()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
