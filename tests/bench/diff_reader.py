"""A process that reads both stores, compares them, and says what that took: ``diff_reader <zookeeper> <log>``."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench.reader import peak_mb
from tests.bench.rows import REPOSITORY


def run(connect_string: str, log: Path) -> dict[str, Any]:
    """Start that process and wait; gives znodes_s, log_s, join_s, peak_mb, and how many values are equal or not."""
    command = [sys.executable, "-m", "tests.bench.diff_reader", connect_string, str(log)]
    done = subprocess.run(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True, check=True, timeout=600)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def main(connect_string: str, log_path: str) -> None:
    import polars as pl
    from kazoo.client import KazooClient

    from kit.kraft.analyze.diff import metadata_diff
    from kit.kraft.metadata_log import read_log
    from kit.kraft.read.metadata_znodes import fetch_metadata_znodes
    from kit.tables import schema as tables

    marks = [time.perf_counter()]
    client = KazooClient(connect_string, timeout=60.0)
    client.start()
    znodes = fetch_metadata_znodes(client, bool)
    marks.append(time.perf_counter())
    log = read_log(log_path)
    kraft = log.partitions, log.items
    marks.append(time.perf_counter())
    checkpoint = znodes.control.checkpoint
    assert checkpoint is not None
    found = metadata_diff(
        pl.DataFrame(znodes.partitions),
        pl.DataFrame(znodes.items),
        *kraft,
        pl.DataFrame(tables.METADATA_REMOVALS.from_rows(())),
        pl.DataFrame({"topic": []}, schema={"topic": pl.String}),
        checkpoint,
    )
    marks.append(time.perf_counter())
    client.stop()
    n_equal = found.filter(pl.col("verdict").is_in(["equal", "expected"])).height
    spans = dict(zip(("znodes_s", "log_s", "join_s"), (round(b - a, 3) for a, b in pairwise(marks))))
    told = spans | {"n_equal": n_equal, "n_other": found.height - n_equal, "peak_mb": round(peak_mb())}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
