"""The run that a model shows: the newest run of its subject in the folder of runs, or one that a person chose.

Other processes start and resume runs in the same folder. A run is read again when its file has grown, and the folder
when it has a new run.
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

from kit.engine.execution.rollback import titles_to_undo
from kit.engine.model.event import Event
from kit.engine.model.journal import EVENTS
from kit.engine.model.progress import in_order
from kit.engine.model.record import REPORT, RunRecord, RunRow, list_runs, load_run
from kit.engine.model.states import RunState
from kit.errors import IllegalMove, InputError, NotFound, OfframpError
from kit.operations.operations import Operations

OVER = frozenset({RunState.VERIFIED, RunState.UNDONE, RunState.STALE})
_OF_ITEMS = frozenset({"attempted", "acted", "undone"})
ITEMS_S = 0.2
"""Between two updates of the view while a run works through its items."""

P = ParamSpec("P")
R = TypeVar("R")


def showing(method: Callable[P, R]) -> Callable[P, R]:
    """Puts the error that a method raises into ``error`` too: a button can't catch it."""

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


class RunModel(t.HasTraits):
    """``concerns`` reports which plans and runs are this model's; ``about`` names their subject."""

    busy = t.Unicode(help="The action that is running; empty: none.")
    error = t.Unicode(help="Why the last action failed.")
    record = t.Any(None, help="The run that is shown: a kit.engine.model.record.RunRecord.")
    plan_of_run = t.Any(None, help="The plan of that run: it stays in view while the run continues.")
    untrusted = t.Unicode(help="Which runs in the folder have evidence that was edited or can't be read.")
    about: str

    def __init__(self, operations: Operations, **values: Any) -> None:
        super().__init__(**values)
        self.operations = operations
        self._chosen = ""
        self._at_record = threading.RLock()
        self._seen: tuple[frozenset[str], int] = (frozenset(), 0)
        self._here = ""
        self._pending: tuple[Event, ...] = ()
        self._shown_at = 0.0

    @t.observe("record")
    def _plan_of(self, change: Any) -> None:
        self.plan_of_run = None if self.record is None else self.record.plan

    @abstractmethod
    def concerns(self, kind: str, subject: str) -> bool:
        """Return whether a plan of this kind and subject is this model's."""

    @property
    def runs(self) -> Path:
        """The folder of plans and evidence."""
        return self.operations.runs

    @property
    def cluster_id(self) -> str:
        return self.operations.cluster.cluster_id

    @property
    def to_undo(self) -> tuple[str, ...]:
        """Titles of the steps that an undo of the shown run would undo, newest first."""
        if self.record is None:
            return ()
        return titles_to_undo(self.record)

    def own_runs(self) -> list[RunRow]:
        """The runs of this cluster and subject, the oldest first."""
        rows = [row for row in list_runs(self.runs) if self.concerns(row.kind or "", row.subject or "")]
        return in_order(row for row in rows if row.cluster_id == self.cluster_id)

    def ways_back(self) -> str:
        """Return how to undo the shown run."""
        if not self.to_undo or self.record is None:
            return "There is nothing to undo."
        steps = "; ".join(self.to_undo)
        return f"To undo run {self.record.run_id} ({steps}): undo the run here, or: offramp undo {self.record.run_id}"

    def where_evidence_is(self) -> str:
        if self.record is None:
            return f"There is no run yet. Plans are in {self.runs}."
        return f"{self.record.folder / REPORT} ({self.record.state}: {self.record.sentence})"

    @showing
    def show_run(self, run_id: str) -> None:
        """Show this run instead of the newest one.

        Raises:
            NotFound, EvidenceError: there is no such run, or its evidence was edited.
            InputError: the run has another subject.
        """
        self._refuse_busy()
        folder = self.runs / run_id
        if not folder.is_dir():
            raise NotFound(f"there is no run {run_id!r} in {self.runs}; `offramp runs` lists them")
        record = load_run(folder)
        if not self.concerns(record.plan.kind, record.plan.subject):
            raise InputError(f"run {run_id} is a {record.plan.kind} of {record.plan.subject}, not of {self.about}")
        with self._at_record:
            self.record, self._seen, self._chosen = record, (self._seen[0], _size(record)), run_id

    def _add_event(self, event: Event) -> None:
        """Add an event that this process wrote; a run of a thousand items does not update the view for each of them."""
        with self._at_record:
            record: RunRecord | None = self.record
            if record is None or event.run_id != record.run_id:
                return
            if event.seq != len(record.events) + len(self._pending) + 1:
                self._pending = ()
            if event.seq != len(record.events) + len(self._pending) + 1:
                return
            self._pending = (*self._pending, event)
            if event.event not in _OF_ITEMS or time.monotonic() - self._shown_at >= ITEMS_S:
                self._show_pending()
            elif len(self._pending) == 1:
                later = threading.Timer(ITEMS_S, self._show_pending)
                later.daemon = True
                later.start()

    def _show_pending(self) -> None:
        """Also of a run that has nothing more to report for minutes, while a node restarts."""
        with self._at_record:
            events, self._pending = self._pending, ()
            record: RunRecord | None = self.record
            if record is not None and events and events[0].seq == len(record.events) + 1:
                self._shown_at = time.monotonic()
                self.record = replace(record, events=(*record.events, *events))

    def _look_for_runs(self) -> None:
        """Another process may have started a run of this subject, or resumed the shown run."""
        with self._at_record:
            if self.busy:
                return  # The events of this process come through _add_event.
            names = frozenset(path.name for path in self.runs.iterdir()) if self.runs.is_dir() else frozenset()
            if self.record is not None and _size(self.record) != self._seen[1]:
                self.record = load_run(self.record.folder)
            if names != self._seen[0]:
                newest = self._newest()
                self.record = self.record if self._outlasts(newest) else newest
            # A run that could not be read may have been half written, so it is read again.
            self._seen = (frozenset() if self.untrusted else names, 0 if self.record is None else _size(self.record))

    def _outlasts(self, newest: RunRecord | None) -> bool:
        """Return whether the shown run stays: a chosen run does. A newer run replaces one that this process
        executed.
        """
        shown: RunRecord | None = self.record
        if shown is not None and shown.run_id == self._chosen:
            return True
        if shown is None or newest is None or shown.run_id != self._here:
            return False
        return newest.events[0].at < shown.events[0].at

    def _newest(self) -> RunRecord | None:
        """The newest unfinished run of this subject, else the newest run."""
        self.untrusted = _untrusted([row.error for row in list_runs(self.runs) if row.error is not None])
        rows = self.own_runs()
        unfinished = [row for row in rows if row.state not in {str(state) for state in OVER}]
        newest = (unfinished or rows)[-1:]
        return load_run(self.runs / newest[0].run_id) if newest else None

    def _refuse_busy(self) -> None:
        if self.busy:
            raise IllegalMove(f"one thing at a time: {self.busy} is still running; wait, or stop it")

    def _required_run(self, states: frozenset[RunState], verb: str) -> RunRecord:
        record: RunRecord | None = self.record
        if record is None:
            raise IllegalMove(f"there is no run of {self.about} to {verb}: execute a plan first")
        if record.state not in states:
            raise IllegalMove(f"run {record.run_id} is {record.state}: it has nothing to {verb}; make a new plan")
        return record


def _size(record: RunRecord) -> int:
    return (record.folder / EVENTS).stat().st_size


def _untrusted(errors: list[str]) -> str:
    if not errors:
        return ""
    count = "A run's evidence" if len(errors) == 1 else f"The evidence of {len(errors)} runs"
    return f"{count} in this folder was edited or can't be read: {errors[-1]}"
