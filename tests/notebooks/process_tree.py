"""The end of a process that starts processes: JupyterLab with its kernels, nbval with its kernels and their Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from kit.errors import LabError
from kit.lab.process import Process, wait_until


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
    if not _are_gone(processes, seconds):
        for each in processes:
            with suppress(psutil.NoSuchProcess):
                each.kill()
        _are_gone(processes, seconds)


def _are_gone(processes: list[psutil.Process], seconds: float) -> bool:
    """Ask for each: ``psutil.wait_procs`` fails by FileNotFoundError if one ends while it opens its descriptor."""
    with suppress(LabError):
        wait_until(lambda: not any(map(_runs, processes)), "the end of processes", seconds)
        return True
    return False


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False
