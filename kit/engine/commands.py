"""One command of the operator's, run with placeholders filled in: what deployers of members and of nodes share.

No shell is involved, an argument holds one placeholder at most, and a value with anything but letters, digits and
``._:-`` is refused, as is one that would be read as an option, unless any characters are allowed. The same as one JSON
object is in the command's environment. The command has a session of its own and reads nothing. After its time it is
ended with all that it started in that session's process group. Its output goes through a relay (``relay``), which
keeps the beginning and the end, fills no disk, and outlives us as the command does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader

from kit.engine import relay
from kit.errors import ProfileError, RunError
from kit.text.quantity import quantity
from kit.text.withholding import without_secrets

FIRST_LINES, LAST_LINES = 5, 20
LINE_CHARACTERS = 1000
RELAY_S = 10.0
"""A relay has what it is asked for in memory."""
GRACE_S = 5.0
_LOOK_S = 0.05
NO_FORMS: Mapping[str, re.Pattern[str]] = {}


class CommandTemplate:
    """``known``: its placeholders; ``variable``: the environment variable with all of them as JSON.

    ``also_safe``: characters that a value may have besides letters, digits and ``._:-``. ``forms``: by placeholder, the
    form of a whole value that is safe as well.
    ``grace_s``: the time between asking a command to end and ending it.

    Raises:
        ProfileError: the command is empty, or has an unknown placeholder or several in one argument.
    """

    def __init__(
        self,
        command: Sequence[str],
        known: Collection[str],
        variable: str,
        timeout_s: float,
        allow_any: bool = False,
        also_safe: str = "",
        grace_s: float = GRACE_S,
        forms: Mapping[str, re.Pattern[str]] = NO_FORMS,
    ) -> None:
        if not command:
            raise ProfileError('deploy.kind is "command", but deploy.command is empty: give the command')
        for part in command:
            _refuse_placeholders(part, set(known), variable)
        self._safe = re.compile(rf"[A-Za-z0-9._:{re.escape(also_safe)}-]*")
        self._command, self._variable, self._timeout_s, self._allow_any = tuple(command), variable, timeout_s, allow_any
        self._grace_s, self._forms = grace_s, forms

    def __str__(self) -> str:
        return without_secrets(" ".join(map(_shown, self._command)))

    def refusal(self, words: Mapping[str, str]) -> str | None:
        """Return why the command is not run with these values; None: it is."""
        if self._allow_any:
            return None
        odd = {name: value for name, value in words.items() if not self._is_form(name, value)}
        reasons = (_refusal(part, odd, self._variable, self._safe) for part in self._command)
        return next((each for each in reasons if each is not None), None)

    def _is_form(self, name: str, value: str) -> bool:
        return name in self._forms and self._forms[name].fullmatch(value) is not None

    def run(self, words: Mapping[str, str], tell: Callable[[str], None]) -> str:
        """The ends of what it wrote, without what resembles a secret.

        Raises:
            RunError: a value is refused, it can't be run, took too long, or ended with another exit code than 0.
        """
        refusal = self.refusal(words)
        if refusal is not None:
            raise RunError(refusal)
        command = [part.format_map(words) for part in self._command]
        environment = {**os.environ, self._variable: json.dumps(dict(words))}
        with _relayed(command[0]) as (asked, pipes):
            code = self._run(command, environment, pipes, tell)
            outputs = _kept(asked)
        said = "\n".join(filter(None, (each.text() for each in outputs)))
        if code is None:
            raise RunError(
                f"{command[0]} did not end within {self._timeout_s:g} s and was ended, with its process"
                " group. Its effect is not known. Processes outside that group still run. Its last output:"
                f" {_last_first(said)}"
            )
        if code < 0:
            raise RunError(
                f"{command[0]} was killed by {_signal_name(-code)}; its effect is not known. Its last output:"
                f" {_last_first(said)}"
            )
        if code != 0:
            raise RunError(f"{command[0]} ended with exit code {code}: {_last_first(said)}")
        return said

    def _run(
        self,
        command: list[str],
        environment: Mapping[str, str],
        pipes: Sequence[int],
        tell: Callable[[str], None],
    ) -> int | None:
        """Its exit code; None: it took too long and was ended."""
        interrupts = _HeldInterrupts()
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=pipes[0],
                stderr=pipes[1],
                start_new_session=True,
            )
        except OSError as error:
            interrupts.let_go()
            raise RunError(f"{command[0]} can't be run: {error.strerror}") from error
        except ValueError as error:  # A name with a NUL, or that is no Unicode.
            interrupts.let_go()
            raise RunError(f"{command[0]} can't be run: a value can't be an argument: {error}") from error
        try:
            interrupts.let_go()
            return process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            _end(process, self._grace_s)
            return None
        except KeyboardInterrupt:
            tell(f"{command[0]} still runs, as process {process.pid}: offramp does not stop it halfway")
            raise


class _HeldInterrupts:
    """Ctrl-C, held back while a command starts: interrupted there, the command would continue without anything that
    knows of it.
    """

    def __init__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self._handler = signal.getsignal(signal.SIGINT) if is_main else None
        self._came = False
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self._came = True

    def let_go(self) -> None:
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._handler)
            self._handler = None
            if self._came:
                signal.raise_signal(signal.SIGINT)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # A real-time signal between the first and the last has none.
        return f"signal {number}"


def _last_first(said: str) -> str:
    """A program's error is its last line; if one line is shown, it is the last one."""
    lines = [line for line in said.splitlines() if line.strip()]
    return "\n".join([lines[-1], *lines[:-1]]) if lines else "nothing"


def _shown(part: str) -> str:
    """One with spaces is in quotes, from behind ``key=`` on: all of it may be a secret."""
    if not re.search(r"\s", part):
        return part
    key, value = re.findall(r"(?s)\A([^\s=]+=)?(.*)", part)[0]
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"{key}'{escaped}'"


def _refuse_placeholders(part: str, known: set[str], variable: str) -> None:
    try:
        fields = [field for field in string.Formatter().parse(part) if field[1] is not None]
    except ValueError as error:
        raise ProfileError(f"deploy.command: {without_secrets(part)!r}: {error}; write a brace itself twice") from error
    used = [f"{name}!{how}" if how else f"{name}:{spec}" if spec else str(name) for _, name, spec, how in fields]
    if set(used) - known:
        wrong = ", ".join(sorted(set(used) - known))
        raise ProfileError(f"deploy.command has unknown placeholders: {wrong}; use {', '.join(sorted(known))}")
    if len(used) > 1:
        raise ProfileError(
            f"deploy.command has several placeholders in one argument, {without_secrets(part)!r}: their values could"
            f" not be distinguished. Put each placeholder into its own argument, or let the"
            f" command read the JSON in ${variable}"
        )


def _refusal(part: str, words: Mapping[str, str], variable: str, safe: re.Pattern[str]) -> str | None:
    """Return why an argument holds what the command might take for something else; None: it does not."""
    for before, name, _, _ in string.Formatter().parse(part):
        value = words.get(name or "", "")
        if not safe.fullmatch(value) or (not before and value.startswith("-")):
            return (
                f"the deploy command was not run: {name} is {value!r}, which holds more than letters, digits and ._:-"
                f" or begins with a dash; let the command read ${variable} instead of {{{name}}}, or set"
                " deploy.allow_any_characters = true if it takes such values"
            )
    return None


def _end(process: subprocess.Popen[bytes], grace_s: float) -> None:
    """End a command and what it started, which may continue after the command itself has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while time.monotonic() < deadline:
            process.poll()  # Takes its exit code, so that it doesn't count as alive.
            os.killpg(process.pid, 0)
            time.sleep(_LOOK_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def _relayed(command: str) -> Iterator[tuple[socket.socket, Sequence[int]]]:
    """A relay for standard output and standard error: where it is asked, and what the command is to write to.

    Raises:
        RunError: it can't be started, so nothing is run.
    """
    with ExitStack() as stack:
        try:
            asked, answers = socket.socketpair()
            stack.enter_context(asked)
            with answers:
                ends = [os.pipe() for _ in range(2)]
                for end in (each for pair in ends for each in pair):
                    stack.callback(os.close, end)
                handles = [answers.fileno(), *(reading for reading, _ in ends)]
                subprocess.run(
                    [sys.executable, "-I", "-S", relay.__file__, *map(str, handles)],
                    check=True,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # A reader of our output need not wait for processes that outlive us.
                    pass_fds=handles,
                    start_new_session=True,
                )
        except (OSError, subprocess.SubprocessError) as error:
            raise RunError(f"{command} was not run: its output can't be read: {error}") from error
        yield asked, [writing for _, writing in ends]


@dataclass(frozen=True, slots=True)
class _Output:
    """The kept part of one pipe."""

    n_bytes: int
    n_lines: int
    head: bytes
    tail: bytes

    def text(self) -> str:
        """Its first and last lines without what resembles a secret; long lines are shortened."""
        if self.n_bytes == len(self.head) + len(self.tail):
            lines = _lines(self.head + self.tail)
            first, last = lines[:FIRST_LINES], lines[FIRST_LINES:]
        else:  # The lines at the cut may hold a secret, or the rest of one, whose name was cut away.
            first, last = _lines(self.head[: self.head.rfind(b"\n") + 1])[:FIRST_LINES], _lines(self.tail)[1:]
        is_all = self.n_bytes == len(self.head) + len(self.tail) and len(last) <= LAST_LINES
        counted = f"{quantity(self.n_bytes, 'byte')} in {quantity(max(self.n_lines, 1), 'line')}"
        gap = [] if is_all else [f"(… of {counted} the rest is left out …)"]
        return "\n".join(map(_shortened, [*first, *gap, *last[-LAST_LINES:]]))


def _lines(data: bytes) -> list[str]:
    return without_secrets(data.decode(errors="replace")).splitlines()


def _kept(asked: socket.socket) -> list[_Output]:
    """Return the relay's output of both pipes; nothing if the relay was killed."""
    asked.settimeout(RELAY_S)
    with suppress(OSError, ValueError), asked.makefile("rb") as answer:
        asked.sendall(b"?")
        return [_one(answer) for _ in range(2)]
    return [_Output(0, 0, b"", b"")] * 2


def _one(answer: BufferedReader) -> _Output:
    n_bytes, n_lines, n_head, n_tail = map(int, answer.readline().split())
    return _Output(n_bytes, n_lines, answer.read(n_head), answer.read(n_tail))


def _shortened(line: str) -> str:
    left = len(line) - LINE_CHARACTERS
    return line if left <= 0 else f"{line[:LINE_CHARACTERS]} … ({left:,} more characters)"
