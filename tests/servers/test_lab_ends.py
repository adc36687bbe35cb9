"""Whatever happens to the caller, nothing of its lab stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kit.lab import state
from kit.lab.process import wait_until
from tests.soak import first

CALLER = """
import json, signal, sys
from kit.lab import Lab
with Lab(brokers=1) as lab:
    lab.create_topic("t", 1)
    paused = lab.start_old_consumer("g", "t")
    paused.pause()
    lab.start_producer("t")
    print(json.dumps([str(lab.folder), [process.pid for process in lab.supervisor.processes]]), flush=True)
    signal.pause()
"""


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", first([signal.SIGKILL, signal.SIGINT, signal.SIGTERM]))
def test_everything_ends_with_the_caller(number):
    caller = subprocess.Popen([sys.executable, "-c", CALLER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    folder, pids = json.loads(caller.stdout.readline())
    assert len(pids) == 4
    assert all(is_alive(pid) for pid in pids)
    caller.send_signal(number)
    caller.wait(30)
    caller.stdout.close()
    wait_until(lambda: not any(is_alive(pid) for pid in pids), "the end of all", 20)
    wait_until(lambda: not Path(folder).exists(), "the folder's removal", 20)


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """A cache folder of its own for the state, with the shared one's downloads."""
    from kit.spark.java import cache_folder

    shared = cache_folder()
    for part in ("jars", "classes"):
        (tmp_path / part).symlink_to(shared / part)
    monkeypatch.setenv("OFFRAMP_CACHE", str(tmp_path))
    return tmp_path


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kit.lab.command", *arguments], capture_output=True, text=True, timeout=120
    )


@pytest.mark.usefixtures("lab", "own_cache")
def test_up_status_down():
    assert run("status").returncode == 1
    first = run("up", "--bare", "--brokers", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    running = state.load()
    assert running is not None
    assert "[clusters.lab]" in Path(running.profile_file).read_text()
    assert f"export OFFRAMP_PROFILE_FILE={running.profile_file}" in first.stdout
    again = run("up")
    assert again.returncode == 0
    assert "is running already" in again.stdout
    assert "[clusters.lab]" in again.stdout
    assert run("status").returncode == 0
    parts = [child.pid for child in running.process().children()]
    assert len(parts) == 3  # ZooKeeper, broker, watchdog
    down = run("down")
    assert down.returncode == 0
    assert not any(is_alive(pid) for pid in (running.pid, *parts))
    assert not Path(running.folder).exists()
    assert run("down").stdout == "No lab is running.\n"


@pytest.mark.usefixtures("own_cache")
def test_recycled_pid_is_not_taken_for_the_lab(tmp_path):
    mine = state.State.of(os.getpid(), tmp_path, tmp_path / "offramp.toml", "x")
    state.save(mine)
    assert state.load() == mine
    state.save(state.State(mine.pid, mine.started_at - 5, mine.folder, mine.profile_file, "x"))
    assert state.load() is None
    assert run("down").stdout == "No lab is running.\n"
