"""Who replaces processes: a person, a command, or the lab. What they say is not believed; what is observed is.

Where it is set (``offramp.toml``)::

    [clusters.production.deploy]
    kind = "command"        # or "manual", the default; or "lab", for a cluster that `offramp lab up` started
    command = ["ansible-playbook", "swap.yml", "-e", "group={group} host={host} member={member} to={to_flavour}"]
    timeout_s = 300

Placeholders: ``{group}``, ``{member}`` (consumer id, of a KC its member id), ``{client_id}`` (of a KC its own, else the
consumer id), ``{host}``, ``{from_flavour}``, ``{to_flavour}``, ``{number}`` (which replacement of the step, from 1). No
shell is involved.
"""

from __future__ import annotations

import string
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from kit.errors import ProfileError, RunError
from kit.profile import COMMAND, LAB, DeploySettings, Profile

OUTPUT_LINES = 20


@dataclass(frozen=True, slots=True)
class Swap:
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

    def replace(self, swap: Swap, tell: Callable[[str], None]) -> str:
        """What it said, for the evidence.

        Raises:
            RunError: it failed; with the end of its output.
        """
        ...

    def countermand(self, swap: Swap, tell: Callable[[str], None]) -> None:
        """Call off what was asked for and has not been seen."""
        ...


class Manual:
    """Tells the person what to do; the step waits until it is observed."""

    needs_person = True

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return f"Stop one {from_flavour} of {group} and start one {to_flavour} in its place, as the run asks for it."

    def replace(self, swap: Swap, tell: Callable[[str], None]) -> str:
        who = f"{swap.from_flavour} {swap.member} (host {swap.host or 'unknown'})"
        stop = f"stop {who} of group {swap.group} and " if swap.member else ""
        told = f"Now {stop}start one {swap.to_flavour} of group {swap.group}."
        tell(told)
        return told

    def countermand(self, swap: Swap, tell: Callable[[str], None]) -> None:
        _call_off(swap, tell)


def _call_off(swap: Swap, tell: Callable[[str], None]) -> None:
    stop = f"stop {swap.from_flavour} {swap.member} and " if swap.member else ""
    tell(
        f"Do not {stop}start one {swap.to_flavour} of group {swap.group} any more: that is called off. If it was begun,"
        " tell nobody to undo it by hand; the run looks at what is there."
    )


class Command:
    """Runs one command per replacement.

    Raises:
        ProfileError: the command is empty or has an unknown placeholder.
    """

    needs_person = False

    def __init__(self, command: Sequence[str], timeout_s: float) -> None:
        if not command:
            raise ProfileError('deploy.kind is "command", but deploy.command is empty')
        known = set(Swap.__dataclass_fields__)
        used = {name for part in command for _, name, _, _ in string.Formatter().parse(part) if name is not None}
        if used - known:
            wrong = ", ".join(sorted(used - known))
            raise ProfileError(
                f"deploy.command has unknown placeholders: {wrong}; known are {', '.join(sorted(known))}"
            )
        self._command, self._timeout_s = tuple(command), timeout_s

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return f"Run for each: {' '.join(self._command)}"

    def replace(self, swap: Swap, tell: Callable[[str], None]) -> str:
        words = {name: str(value) for name, value in asdict(swap).items()}
        command = [part.format_map(words) for part in self._command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self._timeout_s, check=False)
        except subprocess.TimeoutExpired as error:
            raise RunError(
                f"{command[0]} did not end within {self._timeout_s:g} s; what it did is not known"
            ) from error
        except OSError as error:
            raise RunError(f"{command[0]} can't be run: {error.strerror}") from error
        output = "\n".join((done.stdout + done.stderr).splitlines()[-OUTPUT_LINES:])
        if done.returncode != 0:
            raise RunError(f"{command[0]} ended with exit code {done.returncode}: {output or 'it said nothing'}")
        return output

    def countermand(self, swap: Swap, tell: Callable[[str], None]) -> None:
        """The command itself has ended; what it set going elsewhere is for people to call off."""
        _call_off(swap, tell)


def deployer_of(profile: Profile) -> Deployer:
    """Raises:
    ProfileError: the deploy section can't be used.
    """
    settings: DeploySettings = profile.deploy
    if settings.kind == COMMAND:
        return Command(settings.command, settings.timeout_s)
    if settings.kind == LAB:
        words = ("{group}", "{client_id}", "{to_flavour}")
        hand = [sys.executable, "-m", "kit.lab.control", str(profile.file.parent), *words]
        return Command(hand, settings.timeout_s)
    return Manual()
