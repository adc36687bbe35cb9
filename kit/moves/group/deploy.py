"""Replace processes: by a person, a command, or the lab. offramp does not trust their answer, only what it observes.

Where it is set (``offramp.toml``)::

    [clusters.production.deploy]
    kind = "command"        # or "manual", the default; or "lab", for a cluster that `offramp lab up` started
    command = ["/opt/swap", "--group", "{group}", "--host", "{host}", "--member", "{member}", "--to", "{to_flavour}"]
    timeout_s = 300

Placeholders: ``{group}``, ``{member}`` (consumer id, of a Kafka member its member id), ``{client_id}`` (of a Kafka
member its own, else the consumer id), ``{host}``, ``{from_flavour}``, ``{to_flavour}`` (OZKCC, MEZKCC or KC; in a plan
of protocols ``classic`` or ``consumer``), ``{number}`` (which replacement of the step, from 1). An empty
``{to_flavour}``: stop the member, start none. An empty ``{from_flavour}``: start one in the place of the member, which
was stopped before. Plans with ``--how stopped`` order both.

Names are chosen by strangers. No shell is involved, an argument holds one placeholder at most, and a value with
anything but letters, digits and ``._:-`` is refused, as is one that would be read as an option, unless
``allow_any_characters = true``. A ``{member}`` may also be a UUID in base64, with ``+`` and ``/``. The same as one
JSON object is in the command's environment, ``OFFRAMP_SWAP``, whatever the characters. Ansible takes templates
(``{{ … }}``) in extra variables, from a file too, but not in lookups,
so its playbook reads::

    command = ["ansible-playbook", "swap.yml"]
    # swap.yml:    vars: {swap: "{{ lookup('ansible.builtin.env', 'OFFRAMP_SWAP') | from_json }}"}

The command has a session of its own: Ctrl-C, a closed terminal or the end of offramp do not reach it. It reads nothing.
After ``timeout_s`` it is ended with all that it started in that session's process group.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Protocol

from kit.engine.commands import GRACE_S, CommandTemplate
from kit.moves.group.group_state import noun
from kit.profile import COMMAND, LAB, DeploySettings, Profile

VARIABLE = "OFFRAMP_SWAP"
_UUID = re.compile(r"[A-Za-z0-9+/]{21}[AQgw]")
"""16 bytes in base64: librdkafka's ids of consumer-protocol members."""


@dataclass(frozen=True, slots=True)
class MemberReplacement:
    """Stop ``member``, a ``from_flavour``, and start a ``to_flavour`` in its place.

    ``member`` is empty when it was stopped already, by a run that was cut off: then one only has to be started.
    ``to_flavour`` is empty when the member only has to be stopped. ``from_flavour`` is empty when one only has to be
    started in the place of ``member``, which this run stopped before.
    """

    group: str
    member: str
    client_id: str
    host: str
    from_flavour: str
    to_flavour: str
    number: int


class Deployer(Protocol):
    """Returns once it is done as far as it is known; for a person that is at once."""

    needs_person: bool

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        """Return an instruction per replacement of a step: what the deployer will do, or what a person has to do."""
        ...

    def refusal(self, replacement: MemberReplacement) -> str | None:
        """Return why it would refuse this order, before any is given; None: it would not."""
        ...

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        """Replace a member. Return the deployer's answer, for the evidence.

        Raises:
            RunError: it failed; with the ends of its output.
        """
        ...

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        """Call off what was asked for and has not been seen."""
        ...


class Manual:
    """Shows the person what to do; the step waits until it is observed."""

    needs_person = True

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        before, after = noun(from_flavour), noun(to_flavour)
        if not to_flavour:
            return f"Stop each {before} of {group}, as the run asks for it."
        if not from_flavour:
            return f"Start one {after} of {group} in the place of each stopped member, as the run asks for it."
        return f"Stop one {before} of {group} and start one {after} in its place, as the run asks for it."

    def refusal(self, replacement: MemberReplacement) -> str | None:
        return None

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        who = f"{noun(replacement.from_flavour)} {replacement.member} (host {replacement.host or 'unknown'})"
        stop = f"stop {who} of group {replacement.group}" if replacement.member and replacement.from_flavour else ""
        start = f"start one {noun(replacement.to_flavour)} of group {replacement.group}"
        place = f" in the place of {who}" if replacement.member and not replacement.from_flavour else ""
        parts = [each for each in (stop, start + place if replacement.to_flavour else "") if each]
        instruction = f"Now {' and '.join(parts)}."
        tell(instruction)
        return instruction

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        _call_off(replacement, tell)


def _call_off(replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
    is_stop = replacement.member and replacement.from_flavour
    stop = f"stopping {noun(replacement.from_flavour)} {replacement.member}" if is_stop else ""
    start = f"starting one {noun(replacement.to_flavour)}" if replacement.to_flavour else ""
    tell(
        f"Cancelled: {' and '.join(each for each in (stop, start) if each)} of group {replacement.group}. Do not do"
        " this any more, and stop the tool that was to do it. Finished work stays: the run reads the group again."
    )


class Command:
    """Runs one command per replacement. Raises ProfileError: see ``CommandTemplate``."""

    needs_person = False

    def __init__(
        self, command: Sequence[str], timeout_s: float, allow_any: bool = False, *, grace_s: float = GRACE_S
    ) -> None:
        known = MemberReplacement.__dataclass_fields__
        forms = {"member": _UUID}
        self._command = CommandTemplate(command, known, VARIABLE, timeout_s, allow_any, grace_s=grace_s, forms=forms)

    def instruction(self, group: str, from_flavour: str, to_flavour: str) -> str:
        return f"Run for each: {self._command}"

    def refusal(self, replacement: MemberReplacement) -> str | None:
        return self._command.refusal(_words(replacement))

    def replace(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> str:
        return self._command.run(_words(replacement), tell)

    def countermand(self, replacement: MemberReplacement, tell: Callable[[str], None]) -> None:
        """The command itself has ended; what it set going elsewhere is for people to call off."""
        _call_off(replacement, tell)


def _words(replacement: MemberReplacement) -> dict[str, str]:
    return {name: str(value) for name, value in asdict(replacement).items()}


def deployer_of(profile: Profile) -> Deployer:
    """Return who replaces members, by the profile.

    Raises:
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
