"""Restart brokers and controllers: by a person, a command, or the lab. offramp does not trust their answer.

Where it is set (``offramp.toml``)::

    [clusters.production.deploy.nodes]
    kind = "command"        # or "manual", the default; or "lab", for a cluster that `offramp lab up` started
    command = ["/opt/node", "{action}", "--node", "{node_id}", "--role", "{role}", "--settings", "{settings_file}"]

Placeholders: ``{node_id}``, ``{role}`` (broker, controller), ``{action}`` (start, stop, restart, wipe), ``{from_mode}``
and ``{to_mode}`` (of a broker zookeeper, migration, kraft; of a controller migration, finalised; empty where there is
none), ``{settings_file}`` (a path below ``kraft.settings_dir``, empty without one), ``{cluster_id}``. The same as one
JSON object is in the command's environment, ``OFFRAMP_NODE``. What a command may hold: ``kit.engine.commands``.

``start`` of a controller formats its disk first if that is empty, with the cluster id and ``--release-version`` of the
brokers' version. ``restart`` starts a node that does not run. ``wipe`` empties ``metadata.log.dir`` of a controller
that was stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Protocol

from kit.engine.commands import CommandTemplate
from kit.profile import COMMAND, LAB, Profile

VARIABLE = "OFFRAMP_NODE"
BROKER, CONTROLLER = "broker", "controller"
START, STOP, RESTART, WIPE = "start", "stop", "restart", "wipe"
FINALISED = "finalised"
"""The mode of a controller without the migration flag."""


@dataclass(frozen=True, slots=True)
class NodeOrder:
    """The order for one node."""

    node_id: int
    role: str
    action: str
    from_mode: str
    to_mode: str
    settings_file: str
    cluster_id: str

    def __str__(self) -> str:
        mode = f" in {self.to_mode} mode" if self.to_mode else ""
        settings = f" with {self.settings_file}" if self.settings_file else ""
        format_it = (
            f", formatted with cluster id {self.cluster_id} if its disk is empty" if self.action == START else ""
        )
        return f"{self.action} {self.role} {self.node_id}{mode}{settings}{format_it}"


class NodeDeployer(Protocol):
    """Returns once it is done as far as it is known; for a person that is at once."""

    needs_person: bool

    def instruction(self, action: str, role: str, to_mode: str) -> str:
        """Return an instruction per node of a step: what the deployer will do, or what a person has to do."""
        ...

    def order(self, order: NodeOrder, tell: Callable[[str], None]) -> str:
        """Give an order. Return the deployer's answer, for the evidence.

        Raises:
            RunError: it failed; with the ends of its output.
        """
        ...


class ManualNodes:
    """Shows the person what to do; the step waits until it is observed."""

    needs_person = True

    def instruction(self, action: str, role: str, to_mode: str) -> str:
        mode = f" in {to_mode} mode" if to_mode else ""
        return f"{action.capitalize()} each {role}{mode}, as the run asks for it."

    def order(self, order: NodeOrder, tell: Callable[[str], None]) -> str:
        tell(f"Now {order}.")
        return f"Now {order}."


class CommandNodes:
    """Runs one command per node. Raises ProfileError: see ``CommandTemplate``."""

    needs_person = False

    def __init__(self, command: CommandTemplate) -> None:
        self._command = command

    def instruction(self, action: str, role: str, to_mode: str) -> str:
        return f"Run for each: {self._command}"

    def order(self, order: NodeOrder, tell: Callable[[str], None]) -> str:
        return self._command.run({name: str(value) for name, value in asdict(order).items()}, tell)


def node_deployer(profile: Profile) -> NodeDeployer:
    """Raises:
    ProfileError: the section can't be used.
    """
    settings, known = profile.deploy.nodes, NodeOrder.__dataclass_fields__
    if settings.kind == COMMAND:
        limits = (settings.timeout_s, settings.allow_any_characters)
        return CommandNodes(CommandTemplate(settings.command, known, VARIABLE, *limits, also_safe="/"))
    if settings.kind == LAB:
        words = ("node", "{role}", "{node_id}", "{action}", "{to_mode}")
        hand = [sys.executable, "-W", "ignore", "-m", "kit.lab.control", str(profile.file.parent), *words]
        return CommandNodes(CommandTemplate(hand, known, VARIABLE, settings.timeout_s))
    return ManualNodes()
