"""The end of a process that starts processes: JupyterLab with its kernels, nbval with its kernels and their Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from kit.lab.process import Process


@contextmanager
def ended(process: Process) -> Iterator[Process]:
    """End a process and every process below it, each by its own pid."""
    try:
        yield process
    finally:
        below: list[psutil.Process] = []
        if process.running:
            below = psutil.Process(process.pid).children(recursive=True)
        process.stop(20)
        end_all(below)


def end_all(processes: list[psutil.Process], seconds: float = 5) -> None:
    """Wait for processes that were asked to end, and kill those that are left after some seconds."""
    _, left = psutil.wait_procs(processes, timeout=seconds)
    for each in left:
        each.kill()
    psutil.wait_procs(left, timeout=seconds)
