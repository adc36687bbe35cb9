"""The handle of a writing process: it is given an order, is stalled where it was told to, continues, or is killed."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyspark

from kit.errors import LabError
from kit.lab.java.compiled import compile_into
from kit.lab.process import wait_until

_SOURCE = Path(__file__).with_name("Boundaries.java")
_PATIENCE_S = 240
"""Spark starts, and does what it is reported, within this time even beside many other processes."""


def compiled(folder: Path) -> Path:
    """The jar of ``Boundaries``."""
    jar = folder / "boundaries.jar"
    compile_into(jar, str(_SOURCE), Path(pyspark.__file__).parent / "jars")
    return jar


class Writer:
    """One process with a Spark of its own; what it shows comes in order.

    Args:
        folder: for its pipes and its log.
        jar: :func:`compiled`.
    """

    def __init__(self, folder: Path, jar: Path) -> None:
        folder.mkdir()
        self._orders, self.log, self._stands = folder / "orders", folder / "log", False
        events = folder / "events"
        for pipe in (events, self._orders):
            os.mkfifo(pipe)
        self._events = os.fdopen(os.open(events, os.O_RDWR), "rb", buffering=0)  # Opened for both it never ends.
        command = [sys.executable, "-m", "tests.property.history.writing_process", events, self._orders, jar]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        assert self.told() == "ready"

    def order(self, verb: str, folder: str, what: str, at: int, later_s: float, number: int) -> None:
        if self._stands:  # A failed test left it so.
            self.go_on()
        given = {"verb": verb, "folder": folder, "what": what, "at": at, "later_s": later_s, "number": number}
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(given)}\n".encode())
        self._process.stdin.flush()

    def told(self) -> str:
        """``done`` and the number of changes, ``refused`` and why, or ``stopped`` and before what."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._events, selectors.EVENT_READ)
            try:
                wait_until(lambda: bool(selector.select(0)), "an answer", _PATIENCE_S, self._fail_when_ended)
            except LabError as error:
                self.kill()
                raise AssertionError(f"{error}\n{self.log.read_text()}") from None
        told = self._events.readline().decode().rstrip("\n")
        self._stands = told.startswith("stopped")
        return told

    def _fail_when_ended(self) -> None:
        if self._process.poll() is not None:
            raise LabError(f"the writing process ended with exit code {self._process.returncode}")

    def go_on(self) -> str:
        """From where it stands to where it is done."""
        self._orders.write_bytes(b"!")
        return self.told()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """Python and Java at once, by SIGKILL; one that was killed before stays so."""
        if self.is_alive:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._events.close()
