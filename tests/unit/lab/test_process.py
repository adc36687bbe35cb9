"""Waiting, failing and stopping of processes; events of consumers."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

import pytest

from kit.errors import LabError
from kit.lab.members.handles import Event, read_events
from kit.lab.ports import BLOCK, free_ports, is_free
from kit.lab.process import ProcessSupervisor, wait_until


@pytest.fixture
def supervisor():
    started = ProcessSupervisor()
    yield started
    started.close()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_early_end_is_reported_at_once_with_the_log(supervisor):
    process = supervisor.start("broken", python("print('out of luck'); raise SystemExit(7)"))
    with pytest.raises(LabError, match=r"(?s)exit code 7.*out of luck"):
        process.wait_until(lambda: False, "ready", 60)


def test_command_that_does_not_exist(supervisor):
    with pytest.raises(LabError, match="can't be started"):
        supervisor.start("absent", ["/no/such/command"])


def test_stop_of_a_paused_process(supervisor):
    process = supervisor.start("paused", python("import signal; print('up', flush=True); signal.pause()"))
    process.wait_until(lambda: "up" in process.last_lines(), "up", 20)
    process.pause()
    process.stop(20)
    assert process.exit_code == -15


def test_stubborn_process_is_killed_and_it_is_reported(supervisor, capsys):
    code = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()"
    process = supervisor.start("stubborn", python(code))
    process.wait_until(lambda: "up" in process.last_lines(), "up", 20)
    process.stop(0.2)
    assert process.exit_code == -9
    assert "killed" in capsys.readouterr().err


def test_wait_names_what_it_waited_for():
    with pytest.raises(LabError, match="godot"):
        wait_until(lambda: False, "godot", 0.05)


HALF_A_BLOCK = """
from kit.lab.ports import BLOCK, free_ports
print(*(free_ports(1)[0] for _ in range(BLOCK // 2)), flush=True)
input()
"""


def test_a_port_is_not_given_twice():
    """Two listeners of one broker got the same, asked for one after the other: before either listens."""
    ports = [free_ports(1)[0] for _ in range(BLOCK // 2)]
    assert len(set(ports)) == len(ports)
    assert all(is_free(port) for port in ports)


def test_a_port_is_not_given_to_two_processes():
    """A process keeps its block until it ends, so each of these ends only after all have their ports."""
    with ExitStack() as running:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        processes = [running.enter_context(subprocess.Popen(python(HALF_A_BLOCK), **pipes)) for _ in range(3)]
        ports = [port for each in processes for port in each.stdout.readline().split()]
        for each in processes:
            each.communicate("\n")
    assert len(ports) == 3 * (BLOCK // 2)
    assert len(set(ports)) == len(ports)


def test_more_ports_than_there_are():
    with pytest.raises(LabError, match=f"No {BLOCK} free ports"):
        free_ports(BLOCK)


def test_events_pass_over_other_lines_and_half_ones(tmp_path):
    log = tmp_path / "e"
    log.write_text('log4j:WARN nothing\n17 me BEG {"a": 1}\n18 me STOP\n19 me RE')
    assert list(read_events(log)) == [Event(17, "me", "BEG", '{"a": 1}'), Event(18, "me", "STOP", "")]
    assert next(iter(read_events(log))).value() == {"a": 1}
