"""A procedure as a model without any widget: a plan, who approved it, the run that carries it out, the way back.

The model refuses by itself whatever may not be; a button that is disabled is only a courtesy. Work runs on one thread
and reports by traits; whoever wants to wait for it calls ``wait``, which raises what went wrong. All that must outlive
the notebook is in the desk's folder: a new model finds the newest run there and shows how it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import traitlets as t

from kit.errors import ApprovalError, IllegalMove, OfframpError, RunError
from kit.migrate.engine.approval import SHORTEST_PREFIX
from kit.migrate.engine.event import Event
from kit.migrate.engine.plan import Plan
from kit.migrate.engine.states import AT_WORK, RunState
from kit.migrate.execution.run import Run
from kit.migrate.operations import Operations, operator
from widgets.run.plan_model import Planned
from widgets.run.run_model import showing
from widgets.run.watch import Watch

EVERY_S = 2.0
OpenDesk = Callable[[Callable[[str], None], Callable[[Event], None]], Operations]
FORWARD, BACK = "forward", "back"
RESUMABLE = frozenset({RunState.STOPPED, RunState.FAILED, RunState.UNDO_HALTED, *AT_WORK})
UNDOABLE = frozenset({*RESUMABLE, RunState.VERIFIED})

_ENDS_INSTRUCTION = frozenset({"acted", "undone", "verified", "failed"})


class Procedure(Planned):
    """``open_desk`` gets what a desk tells a person, and each event of a run; ``close_all`` ends the connections."""

    direction = t.Unicode(help="Of the run that this process carries out now: forward, back, or empty.")
    instruction = t.Unicode(help="What a person has to do now.")
    typed_undo = t.Unicode(help="Typed to undo: what the run's plan is of.")
    watch_error = t.Unicode(help="Why the cluster can't be seen now; what is shown is of the last look.")
    is_watching = t.Bool(False)
    possible = t.Any(frozenset(), help="What can be done now, by name.")

    def __init__(self, open_desk: OpenDesk, close_all: Callable[[], None] = lambda: None) -> None:
        super().__init__(open_desk(self._say, self._tell))
        self._close_all = close_all
        self._watch: Watch | None = None
        self._run: Run | None = None
        self._goal: RunState | None = None
        self._undo_next = False
        self._look_for_runs()
        self._update()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until what is going on has ended, or so many seconds; whether it has.

        An interrupt (Ctrl-C, the square button) asks a run to stop, and waits on until it has.

        Raises:
            OfframpError: what it ended with, if not as it should.
        """
        try:
            return self._worker.wait(timeout_s)
        except KeyboardInterrupt:
            if self._run is None:
                raise
            self.stop()
            return self._worker.wait(timeout_s)

    def finish(self) -> str:
        """Wait, and say how it stands; what went wrong is raised by ``verify``, after other cells showed it."""
        with suppress(OfframpError):
            self.wait()
        return self.error or self.sentence or "Nothing was carried out."

    def verify(self, *, dry_run: bool = False) -> str:
        """A sentence, if what was carried out here ended as it should; of a dry run, if it could begin.

        Raises:
            RunError: it did not, or nothing was carried out.
        """
        if self._goal is None:
            if not dry_run:
                raise RunError(f"nothing was carried out for {self.about}: {self.error or 'nobody asked for it'}")
            return self._verify_undo() if self._chosen and self.plan is None else self._verify_dry()
        if self.record is None or self.record.state != self._goal:
            state = "not begun" if self.record is None else f"{self.record.state}: {self.record.sentence}"
            raise RunError(f"the run for {self.about} is {state}")
        return f"Run {self.record.run_id} is {self.record.state}: {self.record.sentence}"

    # What other processes do

    def refresh(self) -> None:
        """Look once at the cluster, and at what other processes did. What fails is in ``watch_error``."""
        try:
            self._see()
            self._look_around()
            self.watch_error = ""
        except OfframpError as error:
            self.watch_error = str(error)
        except Exception as error:  # noqa: BLE001 - a watch that dies unseen shows old numbers as new ones
            self.watch_error = f"{type(error).__name__}: {error}"

    def start_watching(self, every_s: float = EVERY_S) -> None:
        """Refresh in the background, until told to stop."""
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
        """Carry the approved plan out.

        Raises:
            IllegalMove: there is no plan, or something is being done.
            ApprovalError: it was not approved.
        """
        self._refuse_busy()
        plan = self._wanted_plan()
        if self.approval is None:
            raise ApprovalError(f"plan {plan.digest[:8]} for {plan.subject} was not approved: nothing was done")
        self._worker.start(f"carrying out plan {plan.digest[:8]}", lambda: self._act(plan))

    @showing
    def stop(self) -> None:
        """Ask the run that this process carries out to stop after what is being written.

        Raises:
            IllegalMove: there is none.
        """
        run = self._run
        if run is None:
            raise IllegalMove("nothing is being carried out from here, so there is nothing to stop")
        run.request_stop(operator())
        self.sentence = "It was asked to stop, and does after what is being written."

    @showing
    def resume(self) -> None:
        """Go on with the run shown, in the direction in which it went.

        Raises:
            IllegalMove: there is none that can go on, or something is being done.
        """
        self._refuse_busy()
        record = self._wanted_run(RESUMABLE, "go on with")
        is_back = record.state in (RunState.UNDOING, RunState.UNDO_HALTED)
        self._worker.start(
            f"going on with run {record.run_id}", lambda: self._carry_on(Run.resume, BACK if is_back else FORWARD)
        )

    @showing
    def undo(self, typed: str | None = None) -> None:
        """Take back what the run shown did; one that is going on is stopped first.

        ``typed`` (by default ``typed_undo``): what its plan is of, or eight characters of its digest.

        Raises:
            ApprovalError: something else was typed.
            IllegalMove: there is nothing to take back, or something else is being done.
        """
        record = self._wanted_run(UNDOABLE, "undo")
        typed = (self.typed_undo if typed is None else typed).strip()
        is_digest = len(typed) >= SHORTEST_PREFIX and record.plan.digest.startswith(typed.lower())
        if typed != record.plan.subject and not is_digest:
            raise ApprovalError(f"to undo run {record.run_id}, type {record.plan.subject!r}: nothing was taken back")
        if self._run is not None and self.direction == FORWARD:
            self._undo_next = True
            self.stop()
            return
        self._refuse_busy()
        self._worker.start(f"taking back run {record.run_id}", lambda: self._carry_on(Run.undo, BACK))

    def close(self) -> None:
        """End the watch, stop a run and wait for it, end the connections."""
        self.stop_watching()
        if self._run is not None:
            self._run.request_stop(operator())
        with suppress(Exception):  # It was shown, and is in the evidence.
            self._worker.wait()
        self._close_all()

    # What each model does in its own way

    def _see(self) -> None:
        """Look at the cluster once."""

    def _pace_s(self, every_s: float) -> float:
        """How long the watch pauses after a look."""
        return every_s

    def _reached(self) -> None:
        """A run ended as it should."""

    # Within the worker

    def _act(self, plan: Plan) -> None:
        run = self.desk.begin(plan)
        self._void()
        self._carry_out(run, Run.act, FORWARD)

    def _carry_on(self, verb: Callable[..., Any], direction: str) -> None:
        record = self.record
        newer = self.desk.newer_approval(record)
        self._carry_out(self.desk.run(record.run_id), lambda run: verb(run, newer), direction)

    def _carry_out(self, run: Run, verb: Callable[[Run], Any], direction: str) -> None:
        self._goal = RunState.VERIFIED if direction == FORWARD else RunState.UNDONE
        with self._at_record:
            self._run, self._here, self.record = run, run.run_id, run.record
        self.direction = direction
        try:
            ending = verb(run)
            if self._undo_next and ending.state in UNDOABLE:
                self._goal, self.direction = RunState.UNDONE, BACK
                ending = run.undo()
        finally:
            self.instruction = self.typed_undo = ""
            with self._at_record:
                self._undo_next, self._run, self.record = False, None, run.record
            self.direction = ""
        self.sentence = ending.sentence
        ending.raise_unless(self._goal)
        self._reached()

    # What others tell

    def _say(self, sentence: str) -> None:
        self.instruction = sentence

    def _tell(self, event: Event) -> None:
        self._told(event)
        if event.event in _ENDS_INSTRUCTION:
            self.instruction = ""

    def _look_around(self) -> None:
        """What other processes did meanwhile: an approval of this plan, another run or events of the one shown."""
        plan = self.plan
        if plan is not None and self.approval is None:
            approval = self.desk.approval(plan)
            if self.plan is plan:
                self.approval = approval
        self._look_for_runs()

    def _verify_undo(self) -> str:
        record = self._wanted_run(UNDOABLE, "undo")
        if not self.to_undo:
            raise RunError(f"run {record.run_id} has nothing to take back")
        return f"Dry run: nothing was changed; run {record.run_id} would be taken back: {'; '.join(self.to_undo)}"

    @t.observe("busy", "direction", "plan", "approval", "record")
    def _update(self, change: Any = None) -> None:
        self.possible = frozenset(name for name, is_so in self._can().items() if is_so)

    def _can(self) -> dict[str, bool]:
        state = None if self.record is None else self.record.state
        return {
            "plan": not self.busy,
            "approve": not self.busy and self.plan is not None,
            "act": not self.busy and self.plan is not None and self.approval is not None,
            "stop": bool(self.direction),
            "resume": not self.busy and state in RESUMABLE,
            "undo": bool(self.to_undo) and state in UNDOABLE and (not self.busy or self.direction == FORWARD),
        }
