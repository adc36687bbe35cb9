"""A procedure as a model without any widget: plan, approval, run, undo.

The model itself refuses what is not allowed; a disabled button is only a courtesy. The work runs on one thread and sets
traits; ``wait`` waits for it and raises its error. State that must outlive the notebook is in the folder of runs: a new
model finds the newest run there and shows its state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import traitlets as t

from kit.engine.execution.run import Run
from kit.engine.model.approval import SHORTEST_PREFIX
from kit.engine.model.event import Event
from kit.engine.model.performer import Waiting
from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord
from kit.engine.model.states import AT_WORK, RunState
from kit.errors import ApprovalError, IllegalMove, OfframpError, RunError
from kit.operations.operations import Operations, operator
from kit.text.visible import visible
from widgets.run.plan_model import PlanModel
from widgets.run.run_model import showing
from widgets.run.watch import Watch

EVERY_S = 2.0
OpenOperations = Callable[[Callable[[str], None], Callable[[Event], None]], Operations]
FORWARD, BACK = "forward", "back"
_BEGUN = frozenset({RunState.STOPPED, RunState.FAILED, RunState.UNDO_HALTED, *AT_WORK})
RESUMABLE = _BEGUN | {RunState.APPROVED}
"""One that has not begun found the lock taken."""
UNDOABLE = _BEGUN | {RunState.VERIFIED}

_ENDS_INSTRUCTION = frozenset({"acted", "undone", "verified", "failed"})


class Procedure(PlanModel):
    """``open_operations`` gets two functions: one takes instructions to a person, one takes each event of a run.

    ``close_all`` closes the connections.
    """

    direction = t.Unicode(help="Direction of the run that this process executes: forward or back. Empty: no run.")
    instruction = t.Unicode(help="What a person must do now, a line each.")
    waiting = t.Unicode(help="What the run waits for now.")
    typed_undo = t.Unicode(help="Typed to undo: the subject of the run's plan.")
    watch_error = t.Unicode(help="Why the cluster can't be read now; the view shows the last reading.")
    is_watching = t.Bool(False)
    possible = t.Any(frozenset(), help="The names of the actions that are possible now.")

    def __init__(self, open_operations: OpenOperations, close_all: Callable[[], None] = lambda: None) -> None:
        super().__init__(open_operations(self._say, self._tell))
        self._close_all = close_all
        self._watch: Watch | None = None
        self._run: Run | None = None
        self._goal: RunState | None = None
        self._undo_next = False
        self._at_possible = threading.RLock()
        self._look_for_runs()
        self._update()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the running action, at most ``timeout_s``; returns whether it has ended.

        An interrupt (Ctrl-C, the square button) asks the run to stop, and then waits for its end.

        Raises:
            OfframpError: the action failed.
        """
        try:
            return self._worker.wait(timeout_s)
        except KeyboardInterrupt:
            if self._run is None:
                raise
            self.stop()
            return self._worker.wait(timeout_s)

    def finish(self) -> str:
        """Wait, and return the result as a sentence; ``verify`` raises an error after the cells that show it."""
        with suppress(OfframpError):
            self.wait()
        return self.error or self.sentence or "Nothing was executed: make a plan and approve it first."

    def verify(self, *, dry_run: bool = False) -> str:
        """A sentence if the run of this process reached its goal or, in a dry run, if the plan can begin now.

        Raises:
            RunError: the run did not reach its goal, the plan can't begin, or nothing was executed.
        """
        if self._goal is None:
            if not dry_run:
                raise RunError(f"nothing was executed for {self.about}: {self.error or 'no run was started here'}")
            return self._verify_undo() if self._chosen and self.plan is None else self._verify_dry()
        if self.record is None or self.record.state != self._goal:
            state = "not started" if self.record is None else f"{self.record.state}: {self.record.sentence}"
            raise RunError(f"the run for {self.about} is {state}")
        return f"Run {self.record.run_id} is {self.record.state}: {self.record.sentence}"

    # Other processes

    def refresh(self) -> None:
        """Read the cluster once, and what other processes did. An error goes to ``watch_error``."""
        try:
            self._see()
            self._look_around()
            self.watch_error = ""
        except OfframpError as error:
            self.watch_error = str(error)
        except Exception as error:  # noqa: BLE001 - a watch that ends silently would show old numbers as new ones
            self.watch_error = f"{type(error).__name__}: {error}"

    def start_watching(self, every_s: float = EVERY_S) -> None:
        """Refresh in the background until ``stop_watching``."""
        if self._watch is None:
            self._watch = Watch(self.refresh, lambda: self._pace_s(every_s))
            self.is_watching = True

    def stop_watching(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()
        self.is_watching = False

    # The run

    @showing
    def act(self) -> None:
        """Execute the approved plan.

        Raises:
            IllegalMove: there is no plan, or another action is running.
            ApprovalError: the plan is not approved.
        """
        self._refuse_busy()
        plan = self._required_plan()
        if self.approval is None:
            raise ApprovalError(
                f"plan {plan.digest[:8]} for {plan.subject} was not approved: nothing was done; approve the plan first"
            )
        self._worker.start(f"executing plan {plan.digest[:8]}", lambda: self._act(plan))

    @showing
    def stop(self) -> None:
        """Ask the run of this process to stop after the current write.

        Raises:
            IllegalMove: this process executes no run.
        """
        run = self._run
        if run is None:
            raise IllegalMove(
                "this notebook executes no run: stop the run where it was started, or with `offramp stop`"
            )
        run.request_stop(operator())
        self.sentence = "The run was asked to stop. It stops after the current write."

    @showing
    def resume(self) -> None:
        """Resume the shown run in its direction.

        Raises:
            IllegalMove: no run can be resumed, or another action is running.
        """
        self._refuse_busy()
        record = self._required_run(RESUMABLE, "resume")
        is_back = record.state in (RunState.UNDOING, RunState.UNDO_HALTED)
        self._worker.start(
            f"resuming run {record.run_id}", lambda: self._carry_on(record, Run.resume, BACK if is_back else FORWARD)
        )

    @showing
    def undo(self, typed: str | None = None) -> None:
        """Undo what the shown run did; a run that is still going forward is stopped first.

        ``typed`` (by default ``typed_undo``): the subject of the run's plan, or eight characters of its digest.

        Raises:
            ApprovalError: something else was typed.
            IllegalMove: there is nothing to undo, or another action is running.
        """
        record = self._required_run(UNDOABLE, "undo")
        if not _names_run(self.typed_undo if typed is None else typed, record):
            raise ApprovalError(f"nothing was undone: to undo run {record.run_id}, type {record.plan.subject!r}")
        if self._run is not None and self.direction == FORWARD:
            self._undo_next = True
            self.stop()
            return
        self._refuse_busy()
        self._worker.start(f"undoing run {record.run_id}", lambda: self._carry_on(record, Run.undo, BACK))

    def close(self) -> None:
        """Stop watching, stop a run and wait for its end, close the connections."""
        self.stop_watching()
        if self._run is not None:
            self._run.request_stop(operator())
        with suppress(Exception):  # The view showed the error, and the evidence has it.
            self._worker.wait()
        self._close_all()

    # Each model overrides these

    def _see(self) -> None:
        """Read the cluster once."""

    def _pace_s(self, every_s: float) -> float:
        """Return how long the watch pauses after a reading."""
        return every_s

    def _reached(self) -> None:
        """Called when a run has reached its goal."""

    # Within the worker

    def _act(self, plan: Plan) -> None:
        run = self.operations.begin(plan)
        self._void()
        self._carry_out(run, Run.act, FORWARD)

    def _carry_on(self, record: RunRecord, verb: Callable[..., Any], direction: str) -> None:
        newer = self.operations.newer_approval(record)
        self._carry_out(self.operations.run(record.run_id), lambda run: verb(run, newer), direction)

    def _carry_out(self, run: Run, verb: Callable[[Run], Any], direction: str) -> None:
        self._goal = RunState.VERIFIED if direction == FORWARD else RunState.UNDONE
        with self._at_record:
            self._run, self._here, self.record = run, run.run_id, run.record
        self.direction = direction
        try:
            result = verb(run)
            if self._undo_next and result.state in UNDOABLE:
                self._goal, self.direction = RunState.UNDONE, BACK
                result = run.undo()
        finally:
            self.instruction = self.waiting = self.typed_undo = ""
            with self._at_record:
                self._undo_next, self._run, self.record = False, None, run.record
            self.direction = ""
        result.raise_unless(self._goal)
        self.sentence = result.sentence
        self._reached()

    # Reports of the run and of other processes

    def _say(self, sentence: str) -> None:
        if isinstance(sentence, Waiting):
            self.waiting = sentence
        else:
            self.instruction = f"{self.instruction}\n{sentence}".strip()

    def _tell(self, event: Event) -> None:
        self._add_event(event)
        if event.event in _ENDS_INSTRUCTION:
            self.instruction = self.waiting = ""

    def _look_around(self) -> None:
        """Find what other processes did: an approval of this plan, a new run, events of the shown run."""
        plan = self.plan
        if plan is not None and self.approval is None:
            approval = self.operations.approval(plan)
            if self.plan is plan:
                self.approval = approval
        self._look_for_runs()

    def _verify_undo(self) -> str:
        record = self._required_run(UNDOABLE, "undo")
        if not self.to_undo:
            raise RunError(f"run {record.run_id} has nothing to undo")
        return f"Dry run: nothing was changed; an undo of run {record.run_id} would undo: {'; '.join(self.to_undo)}"

    @t.observe("record")
    def _confirm_again(self, change: Any) -> None:
        """Forget what was typed to undo another run."""
        if _run_id(change.old) != _run_id(change.new):
            self.typed_undo = ""

    @t.observe("busy", "direction", "plan", "approval", "record", "typed_subject", "typed_digest", "typed_undo")
    def _update(self, change: Any = None) -> None:
        with self._at_possible:  # JupyterLab may deliver two fields on two threads at once: the last one sees both.
            self.possible = frozenset(name for name, is_so in self._can().items() if is_so)

    def _can(self) -> dict[str, bool]:
        state = None if self.record is None else self.record.state
        return {
            "plan": not self.busy,
            "approve": not self.busy and self.plan is not None and not self.approval_mismatch,
            "act": not self.busy and self.plan is not None and self.approval is not None,
            "stop": bool(self.direction),
            "resume": not self.busy and state in RESUMABLE,
            "undo": self.can_undo and _names_run(self.typed_undo, self.record),
        }

    @property
    def can_undo(self) -> bool:
        """Return whether the shown run can be undone once its subject is typed."""
        is_free = not self.busy or self.direction == FORWARD
        return bool(self.to_undo) and self.record.state in UNDOABLE and is_free


def _run_id(record: RunRecord | None) -> str | None:
    return None if record is None else record.run_id


def _names_run(typed: str, record: RunRecord) -> bool:
    """Return whether ``typed`` is the subject of the run's plan, or eight or more characters of its digest."""
    typed = typed.strip()
    is_digest = len(typed) >= SHORTEST_PREFIX and record.plan.digest.startswith(typed.lower())
    return is_digest or typed in (record.plan.subject.strip(), visible(record.plan.subject).strip())
