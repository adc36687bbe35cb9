"""A pytest plugin: a run has a temporary folder of its own, and leaves neither files nor processes behind.

Every process that a test starts inherits ``TMPDIR``, so the folder identifies the processes of this run.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

VARIABLE = "TMPDIR"
SECONDS = float(os.environ.get("OFFRAMP_LEFTOVERS_SECONDS", "20"))
"""Time for a process that a test has asked to end, such as a broker."""
KILL_SECONDS = 20


def pytest_configure(config: pytest.Config) -> None:
    """Make the folder, before pytest-xdist starts its workers."""
    if not _is_worker(config):
        folder = Path(tempfile.mkdtemp(prefix="offramp-tests-"))
        config.stash[_FOLDER] = folder
        os.environ[VARIABLE] = tempfile.tempdir = str(folder)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the processes that are left, and fail the run for them; the workers of pytest-xdist have ended before."""
    folder = session.config.stash.get(_FOLDER, None)
    if folder is None:
        return
    _end_own_spark()
    left = processes_of(folder)
    _, alive = psutil.wait_procs(left, SECONDS)
    session.config.stash[_LEFT] = [_described(process) for process in alive]
    for process in alive:
        process.kill()
    psutil.wait_procs(alive, KILL_SECONDS)
    if alive and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_LEFT, []):
        terminalreporter.write_line(f"A test left this process behind: {line}", red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def processes_of(folder: Path) -> list[psutil.Process]:
    """Every process of this run but this one, by the temporary folder in its environment."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and _is_of(process, folder)]


def _end_own_spark() -> None:
    """End the Java of a Spark session of this process. PySpark keeps it until Python ends."""
    pyspark = sys.modules.get("pyspark")
    gateway = pyspark.SparkContext._gateway if pyspark is not None else None
    if gateway is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait(SECONDS)


def _is_of(process: psutil.Process, folder: Path) -> bool:
    try:
        return process.environ().get(VARIABLE) == str(folder) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _described(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline())[:200]}"
    except psutil.Error:
        return str(process.pid)


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


_FOLDER = pytest.StashKey[Path]()
_LEFT = pytest.StashKey[list[str]]()
