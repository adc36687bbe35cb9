"""Who replaces processes: a person, a command, or the lab. What they say is not believed; what is observed is.

Where it is set (``offramp.toml``)::

    [clusters.production.deploy]
    kind = "command"        # or "manual", the default; or "lab", for a cluster that `offramp lab up` started
    command = ["/opt/swap", "--group", "{group}", "--host", "{host}", "--member", "{member}", "--to", "{to_flavour}"]
    timeout_s = 300

Placeholders: ``{group}``, ``{member}`` (consumer id, of a KC its member id), ``{client_id}`` (of a KC its own, else the
consumer id), ``{host}``, ``{from_flavour}``, ``{to_flavour}``, ``{number}`` (which replacement of the step, from 1).

Names are chosen by strangers. No shell is involved, an argument holds one placeholder at most, and a value with
anything but letters, digits and ``._:-`` is refused, as is one that would be read as an option, unless
``allow_any_characters = true``. The same as one JSON object is in the command's environment, ``OFFRAMP_SWAP``, whatever
the characters. Ansible takes templates (``{{ … }}``) in extra variables, from a file too, but not in what it looks up,
so its playbook reads::

    command = ["ansible-playbook", "swap.yml"]
    # swap.yml:    vars: {swap: "{{ lookup('ansible.builtin.env', 'OFFRAMP_SWAP') | from_json }}"}

The command has a session of its own: Ctrl-C, a closed terminal or the end of offramp do not reach it. It reads nothing.
After ``timeout_s`` it is ended with all that it started in that session's process group.
"""

from __future__ import annotations

import json
import os
import re
import signal
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import IO, Protocol

from kit.errors import ProfileError, RunError
from kit.profile import COMMAND, LAB, DeploySettings, Profile
from kit.text.withholding import without_secrets

OUTPUT_LINES = 20
OUTPUT_BYTES = 64 * 1024
"""Of the end of its output; a command may say more than memory holds."""
LINE_CHARACTERS = 1000
CUT_OFF = "(the beginning of the output is left out)"
GRACE_S = 5.0
"""Between asking a command to end and ending it."""
VARIABLE = "OFFRAMP_SWAP"
_SAFE = re.compile(r"[A-Za-z0-9._:-]*")
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True)
class MemberReplacement:
    """Stop ``member``, a ``from_flavour``, and start a ``to_flavour`` in its place.

    ``member`` is empty when it was stopped already, by a run that was cut off: then one only has to be started.
    """

    group: str
    member: str
    client_id: str
    host: str
    from_flavour: str
    to_flavour: str
    number: int


class Deployer(Protocol):
    """Returns once it is done as far as it can tell; for a person that is at once."""

    needs_person: bool

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        """What will be done, or has to be, for each of a step's replacements."""
        ...

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        """What it said, for the evidence.

        Raises:
            RunError: it failed; with the end of its output.
        """
        ...

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        """Call off what was asked for and has not been seen."""
        ...


class Manual:
    """Tells the person what to do; the step waits until it is observed."""

    needs_person = True

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return f"Stop one {from_flavour} of {group} and start one {to_flavour} in its place, as the run asks for it."

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        who = f"{replacement.from_flavour} {replacement.member} (host {replacement.host or 'unknown'})"
        stop = f"stop {who} of group {replacement.group} and " if replacement.member else ""
        instruction = f"Now {stop}start one {replacement.to_flavour} of group {replacement.group}."
        tell(instruction)
        return instruction

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        _call_off(replacement, tell)


def _call_off(replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
    stop = f"stopping {replacement.from_flavour} {replacement.member} and " if replacement.member else ""
    tell(
        f"Called off: {stop}starting one {replacement.to_flavour} of group {replacement.group}. Whoever, or whatever,"
        " was about to do this must not do it any more. What is done already stays: the run looks at the group."
    )


class Command:
    """Runs one command per replacement.

    Raises:
        ProfileError: the command is empty, or has an unknown placeholder or several in one argument.
    """

    needs_person = False

    def __init__(self, command: Sequence[str], timeout_s: float, allow_any: bool = False) -> None:
        if not command:
            raise ProfileError('deploy.kind is "command", but deploy.command is empty')
        for part in command:
            _refuse_placeholders(part)
        self._command, self._timeout_s, self._allow_any = tuple(command), timeout_s, allow_any

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return f"Run for each: {without_secrets(' '.join(self._command))}"

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        words = {name: str(value) for name, value in asdict(replacement).items()}
        if not self._allow_any:
            for part in self._command:
                _refuse_unsafe(part, words)
        command = [part.format_map(words) for part in self._command]
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            code = self._run(command, {**os.environ, VARIABLE: json.dumps(words)}, (output, errors), tell)
            # What a program that did its work wrote to standard error is noise, no evidence.
            said = "\n".join(filter(None, map(_end_of, (output, errors) if code != 0 else (output,))))
        if code is None:
            raise RunError(
                f"{command[0]} did not end within {self._timeout_s:g} s and was ended, with its process group; what"
                f" it did is not known; what left that group, or runs elsewhere, goes on."
                f" It said last: {_last_first(said)}"
            )
        if code != 0:
            raise RunError(f"{command[0]} ended with exit code {code}: {_last_first(said)}")
        return said

    def _run(
        self,
        command: list[str],
        environment: Mapping[str, str],
        outputs: tuple[IO[bytes], IO[bytes]],
        tell: Callable[[str], None],
    ) -> int | None:
        """Its exit code; None: it took too long and was ended. It writes to files, so it outlives us if it must."""
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=outputs[0],
                stderr=outputs[1],
                start_new_session=True,
            )
        except OSError as error:
            raise RunError(f"{command[0]} can't be run: {error.strerror}") from error
        except ValueError as error:  # A name with a NUL, or that is no Unicode.
            raise RunError(f"{command[0]} can't be run: a value can't be an argument: {error}") from error
        try:
            return process.wait(self._timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return None
        except KeyboardInterrupt:
            tell(f"{command[0]} goes on by itself, as process {process.pid}: it is not stopped midway")
            raise

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        """The command itself has ended; what it set going elsewhere is for people to call off."""
        _call_off(replacement, tell)


def _last_first(said: str) -> str:
    """A program's error stands last; where one line is shown, that is the one."""
    lines = [line for line in said.splitlines() if line.strip()]
    return "\n".join([lines[-1], *lines[:-1]]) if lines else "nothing"


def deployer_of(profile: Profile) -> Deployer:
    """Raises:
    ProfileError: the deploy section can't be used.
    """
    settings: DeploySettings = profile.deploy
    if settings.kind == COMMAND:
        return Command(settings.command, settings.timeout_s, settings.allow_any_characters)
    if settings.kind == LAB:
        words = ("{group}", "{client_id}", "{to_flavour}")
        hand = [sys.executable, "-W", "ignore", "-m", "kit.lab.control", str(profile.file.parent), *words]
        return Command(hand, settings.timeout_s, allow_any=True)  # It takes each as it is.
    return Manual()


def _refuse_placeholders(part: str) -> None:
    known = set(MemberReplacement.__dataclass_fields__)
    try:
        fields = [field for field in string.Formatter().parse(part) if field[1] is not None]
    except ValueError as error:
        raise ProfileError(f"deploy.command: {part!r}: {error}; a brace itself is written twice") from error
    used = [f"{name}!{how}" if how else f"{name}:{spec}" if spec else str(name) for _, name, spec, how in fields]
    if set(used) - known:
        wrong = ", ".join(sorted(set(used) - known))
        raise ProfileError(f"deploy.command has unknown placeholders: {wrong}; known are {', '.join(sorted(known))}")
    if len(used) > 1:
        raise ProfileError(
            f"deploy.command has several placeholders in one argument, {part!r}: a name could pass for more than one"
            f" of them; give each an argument of its own, or read the JSON in ${VARIABLE}"
        )


def _refuse_unsafe(part: str, words: Mapping[str, str]) -> None:
    """Raises:
    RunError: a name holds what the command might take for something else; nothing was run.
    """
    for before, name, _, _ in string.Formatter().parse(part):
        value = words.get(name or "", "")
        if not _SAFE.fullmatch(value) or (not before and value.startswith("-")):
            raise RunError(
                f"the deploy command was not run: {name} is {value!r}, which holds more than letters, digits and ._:-"
                f" or begins with a dash; let the command read ${VARIABLE} instead of {{{name}}}, or set"
                " deploy.allow_any_characters = true if it takes such values"
            )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a command and what it started, which may go on after the command itself has ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while time.monotonic() < deadline:
            process.poll()  # Takes its exit code, so that it doesn't count as alive.
            os.killpg(process.pid, 0)
            time.sleep(_LOOK_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _end_of(output: IO[bytes]) -> str:
    """The last lines that it wrote, without what looks like a secret; long lines are shortened."""
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - OUTPUT_BYTES))
    text = output.read(OUTPUT_BYTES).decode(errors="replace")
    lines = without_secrets(text).splitlines()
    if size > OUTPUT_BYTES:
        lines[0] = CUT_OFF  # It may be the rest of a secret whose name was cut away.
    return "\n".join(_shortened(line) for line in lines[-OUTPUT_LINES:])


def _shortened(line: str) -> str:
    left = len(line) - LINE_CHARACTERS
    return line if left <= 0 else f"{line[:LINE_CHARACTERS]} … ({left:,} more characters)"
