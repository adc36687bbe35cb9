"""The whole report of all groups, from the command to the page: its time, its page's size and the memory it takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.bench.clock import expect, say
from tests.bench.rows import Row
from tests.bench.site import WHOLE, Site

LIMIT_S, LIMIT_MB = 60.0, 5.0
_LOOK_S = 0.2


def compared(site: Site) -> Iterator[Row]:
    """Rows with a limit as their peer: a first report, and a second one that compares itself with it."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first", "second"):
            seconds, peak_mb = _report(site, Path(folder))
            page_mb = (Path(folder) / f"report-{WHOLE}.html").stat().st_size / 1e6
            say(f"report: the {name} took {seconds:.1f} s and {peak_mb:.0f} MB with Spark, its page {page_mb:.1f} MB")
            what = f"offramp report of {site.sizes.groups:,} groups, the {name}"
            yield Row(f"{what}, vs {LIMIT_S:g} s", seconds, LIMIT_S, "s", 1)
            yield Row(f"{what}: its page vs {LIMIT_MB:g} MB", page_mb, LIMIT_MB, "MB", 1)


def _report(site: Site, folder: Path) -> tuple[float, float]:
    """Seconds of a new process, and the most memory that it and its children held at once, in MB."""
    command = [sys.executable, "-m", "kit", "report", "--output", str(folder)]
    command += ["--profile", WHOLE, "--profile-file", str(site.profiles)]
    started = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    ended, peaks = threading.Event(), [0.0]
    watcher = threading.Thread(target=watch, args=(process, ended, peaks))
    watcher.start()
    code = process.wait()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    expect("exit code of offramp report", code, 0)
    return seconds, peaks[0]


def watch(process: psutil.Process, ended: threading.Event, peaks: list[float]) -> None:
    while not ended.wait(_LOOK_S):
        held = 0
        for each in [process, *_below(process)]:
            try:
                held += each.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        peaks[0] = max(peaks[0], held / 1e6)


def _below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children(recursive=True))
    except psutil.NoSuchProcess:
        return []
