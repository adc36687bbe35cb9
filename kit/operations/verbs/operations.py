"""Options and output that the planning verbs of the command line share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kit.engine.model.plan import STOP, UNDO, WAY_BACK_S, Plan
from kit.errors import InputError
from kit.terminal.options import ChosenProfile
from kit.terminal.progress import waiting
from kit.terminal.terminal import AsJson, RunsFolder, print_json, refusals, say, tell

if TYPE_CHECKING:
    from kit.engine.plan_kind import PlanRequest
    from kit.operations.operations import Operations

WAY_BACK_HOURS = WAY_BACK_S / 3600
Overrides = Annotated[
    list[str] | None, typer.Option("--override", help="Name of a rule to override; can be given more than once.")
]
GroupToo = Annotated[str | None, typer.Option("--group", "-g", help="The group, in place of the argument.")]
GroupsToo = Annotated[
    list[str] | None,
    typer.Option("--group", "-g", help="A group, in place of the arguments; can be given more than once."),
]
WayBack = Annotated[float, typer.Option(help="Hours for which the run can be undone without a new approval.")]
UndoOnFailure = Annotated[bool, typer.Option("--undo-on-failure", help="Undo the done steps if a step fails.")]


def named_groups(arguments: list[str] | None, options: list[str] | None, exactly_one: bool = False) -> tuple[str, ...]:
    """The groups that are named as arguments or by ``--group``.

    Raises:
        InputError: not exactly one is named, where the verb needs that.
    """
    groups = (*(arguments or ()), *(options or ()))
    if exactly_one and len(groups) != 1:
        raise InputError("name one group, as an argument or by --group")
    return groups


@contextmanager
def open_operations(profile: ChosenProfile, runs: Path | None = None, is_patient: bool = False) -> Iterator[Operations]:
    """Open the operations of the profile's cluster; events and requests go to standard error.

    ``is_patient``: see ``kit.clients.cluster.connect``; a run sets it.
    """
    with refusals():
        from kit.clients.cluster import connect
        from kit.engine.rendering.text import event_text
        from kit.operations.operations import Operations

        chosen = profile.load()
        with waiting(f"connecting to {chosen.name}"):
            connected = connect(chosen, is_patient=is_patient)
        with connected as cluster:
            yield Operations(cluster, runs, say=say, tell=lambda event: say(event_text(event)))


@dataclass(frozen=True, kw_only=True)
class ChosenRuns(ChosenProfile):
    """The options that name a cluster, and its folder of plans and runs."""

    runs: RunsFolder = None

    def folder(self) -> Path:
        """The folder of plans and runs; raises as :meth:`load` if the profile has to name it."""
        from kit.engine.runs_folder import runs_beside

        return self.runs or runs_beside(self.load())

    def open(self, is_patient: bool = False) -> AbstractContextManager[Operations]:
        """See :func:`open_operations`."""
        return open_operations(self, self.runs, is_patient)


@dataclass(frozen=True, kw_only=True)
class Planning(ChosenRuns):
    """The options of a verb that makes a plan."""

    override: Overrides = None
    as_json: AsJson = False

    def make(self, operations: Operations, request: PlanRequest, subject: str | None = None) -> Plan:
        """Make the plan, save it and print it. ``subject``: what is read; by default the groups of the cluster."""
        with waiting(f"reading {subject or f'the groups of {operations.cluster.name}'}"):
            plan = operations.make_plan(request, self.override or ())
        show_plan(plan, self.as_json)
        return plan


@dataclass(frozen=True, kw_only=True)
class PlanningWithUndo(Planning):
    """The options of :class:`Planning`; the run may undo its steps by itself."""

    undo_on_failure: UndoOnFailure = False

    @property
    def on_failure(self) -> str:
        """Return what the run does if a step fails: ``STOP`` or ``UNDO``."""
        return UNDO if self.undo_on_failure else STOP


def show_plan(plan: Plan, as_json: bool) -> None:
    """Print a plan and the command that approves it; or the plan as JSON."""
    if as_json:
        print_json(plan.to_json())
        return
    from kit.engine.rendering.text import plan_text

    tell(*plan_text(plan).split("\n"))
    say(f"approve it: offramp approve {plan.digest[:8]}")
