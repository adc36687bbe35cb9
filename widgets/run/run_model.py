"""The run that a model shows: the newest one about its subject in the folder of runs, or one that was chosen.

Other processes begin runs there and go on with them; what they did is read again when a file grew or a folder came.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import traitlets as t

from kit.errors import IllegalMove, InputError, NotFound, OfframpError
from kit.migrate.engine.event import Event
from kit.migrate.engine.journal import EVENTS
from kit.migrate.engine.progress import in_order
from kit.migrate.engine.record import REPORT, RunRecord, RunRow, list_runs, load_run
from kit.migrate.engine.states import RunState
from kit.migrate.execution.rollback import steps_to_undo
from kit.migrate.operations import Operations

OVER = frozenset({RunState.VERIFIED, RunState.UNDONE, RunState.STALE})
_OF_ITEMS = frozenset({"attempted", "acted", "undone"})
ITEMS_S = 0.2
"""Between two pictures of a run that is at its items."""

P = ParamSpec("P")
R = TypeVar("R")


def showing(method: Callable[P, R]) -> Callable[P, R]:
    """What a method refuses is in ``error`` too: who presses a button catches nothing."""

    @wraps(method)
    def shown(*arguments: P.args, **named: P.kwargs) -> R:
        model: Any = arguments[0]
        model.error = ""
        try:
            return method(*arguments, **named)
        except OfframpError as error:
            model.error = str(error)
            raise

    return shown


class ShownRun(t.HasTraits):
    """``concerns`` says which plans and runs are this model's, ``about`` what they are about."""

    busy = t.Unicode(help="What is being done now; empty: nothing.")
    error = t.Unicode(help="What went wrong with the last thing that was done.")
    record = t.Any(None, help="The run that is shown: a kit.migrate.engine.record.RunRecord.")
    untrusted = t.Unicode(help="Runs in the folder whose evidence can't be read or was edited.")
    about: str

    def __init__(self, desk: Operations, **values: Any) -> None:
        super().__init__(**values)
        self.desk = desk
        self._chosen = False
        self._at_record = threading.RLock()
        self._seen: tuple[frozenset[str], int] = (frozenset(), 0)
        self._here = ""
        self._untold: tuple[Event, ...] = ()
        self._told_at = 0.0

    @abstractmethod
    def concerns(self, kind: str, subject: str) -> bool:
        """Whether a plan of this kind and subject is one of this model's."""

    @property
    def runs(self) -> Path:
        """The folder of plans and evidence."""
        return self.desk.runs

    @property
    def cluster_id(self) -> str:
        return self.desk.cluster.cluster_id

    @property
    def to_undo(self) -> tuple[str, ...]:
        """Titles of the steps of the run shown that can be taken back, newest first."""
        if self.record is None:
            return ()
        return tuple(step.title for step in steps_to_undo(self.record) if step.changes)

    def own_runs(self) -> list[RunRow]:
        """Of this cluster and subject, the oldest first."""
        rows = [row for row in list_runs(self.runs) if self.concerns(row.kind or "", row.subject or "")]
        return in_order(row for row in rows if row.cluster_id == self.cluster_id)

    def ways_back(self) -> str:
        """How what was done can be taken back."""
        if not self.to_undo or self.record is None:
            return "No run of it has anything to take back."
        steps = "; ".join(self.to_undo)
        return f"To take back run {self.record.run_id} ({steps}): undo it here, or: offramp undo {self.record.run_id}"

    def where_evidence_is(self) -> str:
        if self.record is None:
            return f"No run yet; plans are in {self.runs}."
        return f"{self.record.folder / REPORT} ({self.record.state}: {self.record.sentence})"

    @showing
    def show_run(self, run_id: str) -> None:
        """Show another run than the newest one.

        Raises:
            NotFound, EvidenceError: there is none, or its evidence was edited.
            InputError: it is about something else.
        """
        self._refuse_busy()
        folder = self.runs / run_id
        if not folder.is_dir():
            raise NotFound(f"there is no run {run_id!r} in {self.runs}")
        record = load_run(folder)
        if not self.concerns(record.plan.kind, record.plan.subject):
            raise InputError(f"run {run_id} is a {record.plan.kind} of {record.plan.subject}, not of {self.about}")
        with self._at_record:
            self.record, self._seen, self._chosen = record, (self._seen[0], _size(record)), True

    def _told(self, event: Event) -> None:
        """An event of the run shown, by this process; of a thousand items not each is shown by itself."""
        record: RunRecord | None = self.record
        if record is None or event.run_id != record.run_id:
            return
        if event.seq != len(record.events) + len(self._untold) + 1:
            self._untold = ()
        if event.seq == len(record.events) + len(self._untold) + 1:
            self._untold = (*self._untold, event)
            if event.event not in _OF_ITEMS or time.monotonic() - self._told_at >= ITEMS_S:
                self._told_at, told, self._untold = time.monotonic(), self._untold, ()
                self.record = replace(record, events=(*record.events, *told))

    def _look_for_runs(self) -> None:
        """Another process may have begun a run of this subject, or gone on with the one shown."""
        with self._at_record:
            if self.busy:
                return  # What this process does is told by its own events.
            names = frozenset(path.name for path in self.runs.iterdir()) if self.runs.is_dir() else frozenset()
            if self.record is not None and _size(self.record) != self._seen[1]:
                self.record = load_run(self.record.folder)
            if names != self._seen[0]:
                found = self._newest()
                self.record = self.record if self._outlasts(found) else found
            # What could not be read may have been in the making: it is looked at again.
            self._seen = (frozenset() if self.untrusted else names, 0 if self.record is None else _size(self.record))

    def _outlasts(self, found: RunRecord | None) -> bool:
        """The run that was carried out here gives way to newer ones only, not to an older one that was left stopped."""
        shown: RunRecord | None = self.record
        if shown is None or found is None or shown.run_id != self._here:
            return False
        return found.events[0].at < shown.events[0].at

    def _newest(self) -> RunRecord | None:
        """Of this subject: the newest run that isn't over, else the newest one."""
        self.untrusted = _untrusted([row.error for row in list_runs(self.runs) if row.error is not None])
        rows = self.own_runs()
        unfinished = [row for row in rows if row.state not in {str(state) for state in OVER}]
        newest = (unfinished or rows)[-1:]
        return load_run(self.runs / newest[0].run_id) if newest else None

    def _refuse_busy(self) -> None:
        if self.busy:
            raise IllegalMove(f"one thing at a time: {self.busy} is going on")

    def _wanted_run(self, states: frozenset[RunState], verb: str) -> RunRecord:
        record: RunRecord | None = self.record
        if record is None:
            raise IllegalMove(f"there is no run of {self.about} to {verb}")
        if record.state not in states:
            raise IllegalMove(f"run {record.run_id} is {record.state}: there is nothing to {verb}")
        return record


def _size(record: RunRecord) -> int:
    return (record.folder / EVENTS).stat().st_size


def _untrusted(errors: list[str]) -> str:
    if not errors:
        return ""
    count = "A run's evidence" if len(errors) == 1 else f"The evidence of {len(errors)} runs"
    return f"{count} in this folder can't be read or was edited: {errors[-1]}"
