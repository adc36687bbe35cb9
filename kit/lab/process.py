"""Processes of a lab: each in its own group with its own log, awaited by condition, stopped by its own pid."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from kit.errors import LabError
from kit.lab import watchdog

POLL_SECONDS, LONGEST_POLL_SECONDS = 0.02, 0.5
STOP_SECONDS = 60.0
LINES_QUOTED = 15


class Process:
    """One started process: ``pid``, ``log`` (its output) and the ways to end it."""

    def __init__(self, name: str, popen: subprocess.Popen[bytes], log: Path, supervisor: ProcessSupervisor) -> None:
        self.name = name
        self.pid = popen.pid
        self.log = log
        self._popen = popen
        self._supervisor = supervisor

    @property
    def running(self) -> bool:
        """Return whether it has not ended. A process that SIGSTOP stopped counts as running."""
        return self._popen.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Return the exit code (negative: the signal), None while the process runs."""
        return self._popen.poll()

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """Wait for ``ready``; raises LabError after ``seconds``, or at once when the process has ended."""

        def fail_when_ended() -> None:
            if not self.running and not ready():  # It may have become ready and ended since it was asked.
                raise LabError(f"{self.name} ended with exit code {self.exit_code} before it was ready.")

        try:
            wait_until(ready, f"{self.name}: {what}", seconds, fail_when_ended)
        except LabError as error:
            raise LabError(f"{error}\nLast lines of its log:\n{self.last_lines()}") from None

    def last_lines(self) -> str:
        """The end of its log, indented."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return "\n".join(f"  {line}" for line in text.splitlines()[-LINES_QUOTED:])

    def tell(self, line: str) -> None:
        """Write one line to its standard input."""
        assert self._popen.stdin is not None
        self._popen.stdin.write(f"{line}\n".encode())
        self._popen.stdin.flush()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process; nothing when it has ended."""
        if self.running:
            os.kill(self.pid, number)

    def pause(self) -> None:
        """SIGSTOP: it keeps its connections; the servers decide when its sessions end."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """kill -9 of the whole group, then wait for its end."""
        self.kill_without_waiting()
        self._popen.wait()
        self._forget()

    def kill_without_waiting(self) -> None:
        """kill -9 of the whole group, unless it has been waited for: its pid may be someone else's then."""
        if self._popen.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """SIGTERM (a paused one is woken for it), wait, and after ``seconds`` SIGKILL, saying so on standard error."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)
        try:
            self._popen.wait(seconds)
        except subprocess.TimeoutExpired:
            sys.stderr.write(f"{self.name} (pid {self.pid}) did not end in {seconds:.0f} s: killed.\n")
            self.kill()
        self._forget()

    def _forget(self) -> None:
        if self._popen.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._popen.stdin.close()
        self._supervisor.forget(self)


class ProcessSupervisor:
    """A temporary folder, the processes of it, and a watchdog that ends both when the caller is gone."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="offramp-lab-"))
        self.processes: list[Process] = []
        self._watchdog = subprocess.Popen(
            [sys.executable, "-P", watchdog.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    def start(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        output: Path | None = None,
    ) -> Process:
        """Start ``command`` in its own process group; what it prints goes to ``<folder>/<name>.log``.

        ``output`` takes standard output away from the log. Raises LabError when it can't be started.
        """
        log = self.folder / f"{name}.log"
        env = {**os.environ, **(environment or {}), watchdog.MARK: str(self.folder)}
        try:
            with log.open("ab") as errors, (output or log).open("ab") as out:
                popen = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=out, stderr=errors, env=env, cwd=self.folder, process_group=0
                )
        except OSError as error:
            raise LabError(f"{name} can't be started: {error}") from error
        process = Process(name, popen, log, self)
        self.processes.append(process)
        self._say(f"add {process.pid}")
        return process

    def forget(self, process: Process) -> None:
        """Take a process that has ended off the list."""
        if process in self.processes:
            self.processes.remove(process)
            self._say(f"drop {process.pid}")

    def close(self) -> None:
        """End what still runs, remove the folder and let the watchdog go.

        Killed, not asked: what an orderly end would write goes with the folder.
        """
        for process in self.processes:
            process.kill_without_waiting()
        for process in list(self.processes):
            process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.close()
        self._watchdog.wait()

    def _say(self, line: str) -> None:
        assert self._watchdog.stdin is not None
        self._watchdog.stdin.write(f"{line}\n".encode())
        self._watchdog.stdin.flush()


def wait_until(
    ready: Callable[[], bool], what: str, seconds: float, each_time: Callable[[], None] | None = None
) -> None:
    """Poll ``ready`` until it is true. A rest between two polls is at least twice as long as a poll took.

    Raises:
        LabError: ``what`` did not come within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while True:
        asked = time.monotonic()
        if ready():
            return
        took = time.monotonic() - asked
        if each_time is not None:
            each_time()
        if time.monotonic() > deadline:
            raise LabError(f"After {seconds:.0f} s the lab still waits for: {what}.")
        time.sleep(min(max(POLL_SECONDS, 2 * took), LONGEST_POLL_SECONDS))
