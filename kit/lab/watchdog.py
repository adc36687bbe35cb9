"""Ends a lab's processes when the caller is gone, whether by Ctrl-C, an exception or ``kill -9``.

Started as a script of its own with a pipe from the caller as standard input. Lines on it are ``add <pid>`` and
``drop <pid>``; when it ends, the caller is gone. It imports nothing of ``kit``, so that it is up at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys

import psutil

MARK = "OFFRAMP_LAB"


def watch(folder: str) -> None:
    """Follow the caller's lines until they end, then end what is left and remove the lab's folder."""
    started: dict[int, float] = {}
    for line in sys.stdin:
        word, pid = line.split()
        if word == "add":
            with contextlib.suppress(psutil.NoSuchProcess):
                started[int(pid)] = psutil.Process(int(pid)).create_time()
        else:
            started.pop(int(pid), None)
    end(started)
    end(marked(folder))
    shutil.rmtree(folder, ignore_errors=True)


def end(started: dict[int, float]) -> None:
    """Kill every process with its group; a pid that was recycled since (other start time) is left alone."""
    victims = []
    for pid, created in started.items():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            process = psutil.Process(pid)
            if process.create_time() == created:
                victims.append(process)
                os.killpg(pid, signal.SIGKILL)
    psutil.wait_procs(victims, timeout=10)


def marked(folder: str) -> dict[int, float]:
    """Processes with the lab's mark that the caller never reported: it died right after it started them."""
    started_at = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK) == folder:
                started_at[process.pid] = process.create_time()
    return started_at


if __name__ == "__main__":
    # A terminal's Ctrl-C and hang-up are meant for the caller; this process must outlive it.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    watch(sys.argv[1])
