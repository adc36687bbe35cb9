"""A procedure as a model without any widget: a plan, who approved it, the run that carries it out, the way back.

The model refuses by itself whatever may not be; a button that is disabled is only a courtesy. Work runs on one thread
and reports by traits; whoever wants to wait for it calls ``wait``, which raises what went wrong. All that must outlive
the notebook is in the desk's folder: a new model finds the newest run there and shows how it stands.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import traitlets as t

from kit.errors import ApprovalError, IllegalMove, InputError, NotFound, OfframpError, RunError, Stopped
from kit.migrate.approval import SHORTEST_PREFIX, Approval
from kit.migrate.backward import steps_to_undo
from kit.migrate.desk import Desk, operator
from kit.migrate.event import Event
from kit.migrate.journal import EVENTS
from kit.migrate.plan import Plan
from kit.migrate.record import REPORT, RunRecord, list_runs, load_run
from kit.migrate.run import Run
from kit.migrate.states import AT_WORK, RunState
from widgets.progress import in_order
from widgets.worker import Worker

OpenDesk = Callable[[Callable[[str], None], Callable[[Event], None]], Desk]
FORWARD, BACK = "forward", "back"
OVER = frozenset({RunState.VERIFIED, RunState.UNDONE, RunState.VOID})
RESUMABLE = frozenset({RunState.STOPPED, RunState.FAILED, RunState.UNDO_HALTED, *AT_WORK})
UNDOABLE = frozenset({*RESUMABLE, RunState.VERIFIED})

_ENDS_INSTRUCTION = frozenset({"acted", "undone", "verified", "failed"})

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


class Procedure(t.HasTraits):
    """``subject`` is what is typed to confirm; ``kind`` the kind of its plans (``kit.migrate.group.KIND``)."""

    busy = t.Unicode(help="What is being done now; empty: nothing.")
    direction = t.Unicode(help="Of the run that this process carries out now: forward, back, or empty.")
    sentence = t.Unicode(help="What came of the last thing that was done.")
    error = t.Unicode(help="What went wrong with it.")
    instruction = t.Unicode(help="What a person has to do now.")
    plan = t.Any(None, help="The plan that can be approved: a kit.migrate.plan.Plan.")
    dry = t.Any(None, help="What a run of it would do now: a kit.migrate.dry_run.DryRun.")
    approval = t.Any(None, help="Of this plan, by this model or by somebody else: a kit.migrate.approval.Approval.")
    approver = t.Unicode(help="Who approves.")
    typed_subject = t.Unicode(help="Typed to approve: the group's name.")
    typed_digest = t.Unicode(help="Typed to approve: eight or more of the plan's digest's first characters.")
    typed_undo = t.Unicode(help="Typed to undo: the group's name.")
    record = t.Any(None, help="The run that is shown: a kit.migrate.record.RunRecord.")
    untrusted = t.Unicode(help="Runs in the folder whose evidence can't be read or was edited.")
    possible = t.Any(frozenset(), help="What can be done now, by name.")

    def __init__(self, open_desk: OpenDesk, subject: str, kind: str) -> None:
        super().__init__(approver=operator())
        self.subject, self.kind = subject, kind
        self._worker = Worker(self._now_busy, self._failed)
        self._run: Run | None = None
        self._goal: RunState | None = None
        self._undo_next = False
        self._chosen = False
        self._at_record = threading.RLock()
        self._seen: tuple[frozenset[str], int] = (frozenset(), 0)
        self.desk = open_desk(self._say, self._tell)
        self._look_for_runs()
        self._update()

    # What can be done, and what was

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
                raise RunError(f"nothing was carried out for {self.subject}: {self.error or 'nobody asked for it'}")
            return self._verify_undo() if self._chosen and self.plan is None else self._verify_dry()
        if self.record is None or self.record.state != self._goal:
            state = "not begun" if self.record is None else f"{self.record.state}: {self.record.sentence}"
            raise RunError(f"the run for {self.subject} is {state}")
        return f"Run {self.record.run_id} is {self.record.state}: {self.record.sentence}"

    def how_to_approve(self) -> str:
        """What to type in a terminal, and what to hand to papermill then."""
        if self.plan is None:
            return "There is no plan to approve."
        if self.approval is not None:
            return f"{self.approval.approved_by} approved plan {self.plan.digest[:8]} until {self.approval.expires_at}."
        short, runs = self.plan.digest[:12], shlex.quote(str(self.runs))
        return (
            f"The plan's digest is {self.plan.digest}.\n"
            f"Approve it: offramp approve {short} --runs {runs}\n"
            f"Then carry it out by papermill: -p approval_digest {short} -p dry_run False"
        )

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

    # Plan and approval

    @showing
    def load_plan(self, digest: str) -> None:
        """Take up a plan that was kept, with its approval.

        Raises:
            NotFound, PlanError: there is no such plan, or it was edited.
            InputError: it is another group's or of another kind, or too little of the digest was given.
        """
        self._refuse_busy()
        digest = digest.strip().lower()
        if len(digest) < SHORTEST_PREFIX:
            raise InputError(f"give {SHORTEST_PREFIX} or more characters of the plan's digest, not {digest!r}")
        plan = self.desk.plan(digest)
        if not plan.digest.startswith(digest):
            raise NotFound(f"no plan in {self.runs} has a digest that begins with {digest!r}")
        if (plan.subject, plan.kind) != (self.subject, self.kind):
            raise InputError(
                f"plan {digest[:8]} is a {plan.kind} of {plan.subject}, not a {self.kind} of {self.subject}"
            )
        self._take(plan)
        self._worker.start("looking what has changed since", self._rehearse)

    @showing
    def approve(self) -> Approval:
        """Approve the plan shown by what was typed.

        Raises:
            IllegalMove: there is no plan, or something is being done.
            ApprovalError: what was typed isn't this plan's, or this person may not.
        """
        self._refuse_busy()
        plan = self._wanted_plan()
        self.approval = self.desk.approve(plan, self.typed_subject, self.typed_digest, self.approver)
        self.sentence = f"{self.approval.approved_by} approved plan {plan.digest[:8]}."
        return self.approval

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

        ``typed`` (by default ``typed_undo``): the group's name, or eight characters of the plan's digest.

        Raises:
            ApprovalError: something else was typed.
            IllegalMove: there is nothing to take back, or something else is being done.
        """
        record = self._wanted_run(UNDOABLE, "undo")
        typed = (self.typed_undo if typed is None else typed).strip()
        is_digest = len(typed) >= SHORTEST_PREFIX and record.plan.digest.startswith(typed.lower())
        if typed != self.subject and not is_digest:
            raise ApprovalError(f"to undo run {record.run_id}, type {self.subject!r}: nothing was taken back")
        if self._run is not None and self.direction == FORWARD:
            self._undo_next = True
            self.stop()
            return
        self._refuse_busy()
        self._worker.start(f"taking back run {record.run_id}", lambda: self._carry_on(Run.undo, BACK))

    @showing
    def show_run(self, run_id: str) -> None:
        """Show another run than the newest one.

        Raises:
            NotFound, EvidenceError: there is none, or its evidence was edited.
            InputError: it is another group's.
        """
        self._refuse_busy()
        folder = self.runs / run_id
        if not folder.is_dir():
            raise NotFound(f"there is no run {run_id!r} in {self.runs}")
        record = load_run(folder)
        if (record.plan.subject, record.plan.kind) != (self.subject, self.kind):
            raise InputError(f"run {run_id} is a {record.plan.kind} of {record.plan.subject}")
        with self._at_record:
            self.record, self._seen, self._chosen = record, (self._seen[0], _size(record)), True

    def close(self) -> None:
        """Ask a run to stop and wait for it."""
        if self._run is not None:
            self._run.request_stop(operator())
        with suppress(Exception):  # It was shown, and is in the evidence.
            self._worker.wait()

    # Within the worker

    def _rehearse(self) -> None:
        plan = self.plan
        if plan is not None:
            self.dry = self.desk.dry_run(plan)

    def _act(self, plan: Plan) -> None:
        run = self.desk.begin(plan)
        self._void()
        self._carry_out(run, Run.act, FORWARD)

    def _carry_on(self, verb: Callable[..., Any], direction: str) -> None:
        record = self.record
        approval = self.desk.approval(record.plan)
        newer = approval if approval not in record.approvals else None
        self._carry_out(self.desk.run(record.run_id), lambda run: verb(run, newer), direction)

    def _carry_out(self, run: Run, verb: Callable[[Run], Any], direction: str) -> None:
        self._goal = RunState.VERIFIED if direction == FORWARD else RunState.UNDONE
        with self._at_record:
            self._run, self.record = run, run.record
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

    def _reached(self) -> None:
        """A run ended as it should."""

    # What others tell

    def _say(self, sentence: str) -> None:
        self.instruction = sentence

    def _tell(self, event: Event) -> None:
        record: RunRecord | None = self.record
        if record is not None and (event.run_id, event.seq) == (record.run_id, len(record.events) + 1):
            self.record = replace(record, events=(*record.events, event))
        if event.event in _ENDS_INSTRUCTION:
            self.instruction = ""

    def _now_busy(self, what: str) -> None:
        self.busy = what

    def _failed(self, error: BaseException) -> None:
        if isinstance(error, Stopped):
            self.sentence = str(error)
        elif isinstance(error, OfframpError):
            self.error = str(error)
        else:
            self.error = f"{type(error).__name__}: {error}"

    def _look_around(self) -> None:
        """What other processes did meanwhile: an approval of this plan, another run or events of the one shown."""
        plan = self.plan
        if plan is not None and self.approval is None:
            approval = self.desk.approval(plan)
            if self.plan is plan:
                self.approval = approval
        self._look_for_runs()

    def _look_for_runs(self) -> None:
        """Another process may have begun a run of this subject, or gone on with the one shown."""
        with self._at_record:
            if self.busy:
                return  # A run that is just being made can't be read yet.
            names = frozenset(path.name for path in self.runs.iterdir()) if self.runs.is_dir() else frozenset()
            if self.record is not None and _size(self.record) != self._seen[1]:
                self.record = load_run(self.record.folder)
            if names != self._seen[0]:
                self.record = self._newest()
            # What could not be read may have been in the making: it is looked at again.
            self._seen = (frozenset() if self.untrusted else names, 0 if self.record is None else _size(self.record))

    def _newest(self) -> RunRecord | None:
        """Of this subject: the newest run that isn't over, else the newest one."""
        every = in_order(list_runs(self.runs))
        broken = [row.error or "" for row in every if row.error is not None]
        self.untrusted = _untrusted(broken)
        rows = [row for row in every if (row.subject, row.kind) == (self.subject, self.kind)]
        rows = [row for row in rows if row.cluster_id == self.cluster_id]
        unfinished = [row for row in rows if row.state not in {str(state) for state in OVER}]
        newest = (unfinished or rows)[-1:]
        return load_run(self.runs / newest[0].run_id) if newest else None

    # Guards

    def _refuse_busy(self) -> None:
        if self.busy:
            raise IllegalMove(f"one thing at a time: {self.busy} is going on")

    def _wanted_plan(self) -> Plan:
        if self.plan is None:
            raise IllegalMove(f"there is no plan for {self.subject}: make one first")
        plan: Plan = self.plan
        return plan

    def _wanted_run(self, states: frozenset[RunState], verb: str) -> RunRecord:
        record: RunRecord | None = self.record
        if record is None:
            raise IllegalMove(f"there is no run of {self.subject} to {verb}")
        if record.state not in states:
            raise IllegalMove(f"run {record.run_id} is {record.state}: there is nothing to {verb}")
        return record

    def _take(self, plan: Plan) -> None:
        self.typed_subject = self.typed_digest = ""
        self.dry, self.plan, self.approval = None, plan, self.desk.approval(plan)

    def _void(self) -> None:
        self.plan = self.dry = self.approval = None
        self.typed_subject = self.typed_digest = ""

    def _verify_undo(self) -> str:
        record = self._wanted_run(UNDOABLE, "undo")
        if not self.to_undo:
            raise RunError(f"run {record.run_id} has nothing to take back")
        return f"Dry run: nothing was changed; run {record.run_id} would be taken back: {'; '.join(self.to_undo)}"

    def _verify_dry(self) -> str:
        plan = self._wanted_plan()
        if self.dry is None:
            raise RunError(f"plan {plan.digest[:8]} was not rehearsed")
        if self.dry.differences:
            raise RunError(f"plan {plan.digest[:8]} does not hold any more: {self.dry.differences[0].sentence}")
        first = self.dry.steps[0]
        if not first.can_begin:
            raise RunError(f"plan {plan.digest[:8]} could not begin: {first.sentence}")
        return f"Dry run of plan {plan.digest[:8]}: nothing was changed; it could begin: {first.sentence}"

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


def _size(record: RunRecord) -> int:
    return (record.folder / EVENTS).stat().st_size


def _untrusted(errors: list[str]) -> str:
    if not errors:
        return ""
    count = "A run's evidence" if len(errors) == 1 else f"The evidence of {len(errors)} runs"
    return f"{count} in this folder can't be read or was edited: {errors[-1]}"
