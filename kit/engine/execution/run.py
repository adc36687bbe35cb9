"""A run: carries an approved plan out, can be stopped at any time, resumed after a crash, and undone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from platform import node, python_version

from kit.engine.execution.execute import Execution
from kit.engine.execution.rollback import Rollback, titles_to_undo
from kit.engine.execution.run_context import RunContext, StopButton
from kit.engine.model.approval import Approval, refuse_unless_genuine, refuse_unless_valid, save_approval
from kit.engine.model.clock import Clock
from kit.engine.model.event import Event, at
from kit.engine.model.expiry import latest_seen
from kit.engine.model.files import write_atomic
from kit.engine.model.journal import PLAN, Entry, Journal, create_run, taken_request
from kit.engine.model.performer import Lock, Performer, refuse_other_cluster
from kit.engine.model.plan import UNDO, Plan, load_plan, refuse_older_format
from kit.engine.model.record import REPORT, VERDICT, RunRecord, load_run, verdict_of
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.engine.model.values import canonical, digest_of, readable
from kit.engine.rendering.pages import record_html
from kit.errors import (
    ApprovalError,
    ConnectError,
    EvidenceError,
    IllegalMove,
    LockLost,
    OfframpError,
    RunError,
    StalePlan,
    StepFailed,
    Stopped,
)
from kit.profile import ApprovalSettings
from kit.profile.release import version
from kit.text.visible import argument
from kit.text.withholding import without_secrets

_GOES_ON_FROM = {
    RunState.OBSERVING,
    RunState.CHECKING,
    RunState.ACTING,
    RunState.VERIFYING,
    RunState.STOPPED,
    RunState.FAILED,
}
_GOES_BACK_FROM = {RunState.UNDOING, RunState.UNDO_HALTED}
_DONE = {
    RunState.VERIFIED: "Every step was executed and verified.",
    RunState.UNDONE: "Every write of the run was undone and read back.",
}


@dataclass(frozen=True, slots=True)
class RunResult:
    """The end of a run, or of one part of it. ``to_undo``: titles of the steps that can be undone, if all can."""

    run_id: str
    state: RunState
    sentence: str
    to_undo: tuple[str, ...]

    def raise_unless(self, state: RunState = RunState.VERIFIED) -> None:
        """Check how the run ended.

        Raises:
            Stopped: it was stopped before.
            RunError: it ended otherwise.
        """
        if self.state != state:
            kind = Stopped if self.state == RunState.STOPPED else RunError
            raise kind(f"run {self.run_id} is {self.state}, not {state}: {self.sentence}")


def start_run(
    plan: Plan,
    approval: Approval | None,
    root: Path,
    *,
    clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
    rules: ApprovalSettings = ApprovalSettings(),  # noqa: B008 - it is frozen
    latest: datetime | None = None,
    earliest: datetime | None = None,
) -> Path:
    """The folder of a new run under ``root``, for :class:`Run`; nothing is touched yet.

    Raises:
        ApprovalError: see ``approval.refuse_unless_valid``.
        EvidenceError: the folder can't be made.
    """
    refuse_older_format(plan)
    refuse_unless_valid(approval, plan, clock.now(), rules=rules, latest=latest, earliest=earliest)
    assert approval is not None
    return create_run(plan, approval, root, clock)


def way_back_until(record: RunRecord) -> datetime:
    """Until when a run may be undone without a new approval: the plan's limit, from when the run was begun.

    It was begun while its first approval held: what the journal reports of that is no authority.
    """
    began = min(at(record.events[0]), record.approvals[0].expires_at)
    return began + timedelta(seconds=record.plan.way_back_s)


class Run:
    """One run of the folder that :func:`start_run` made, in this process; the journal in it is all that it knows.

    Before each write, and not only when it begins, it is asked whether the approval holds still; during an undo,
    whether that is still within the time that the plan gives it.

    ``first_seen``: the ``earliest`` of an approval, as ``approval.refuse_unless_valid`` asks for it. ``tell`` is called
    with each event, in the thread that works. Only ``request_stop`` may be called from another one.

    Each of ``act``, ``resume`` and ``undo`` reports how it ended; it raises, before anything is written, where it may
    not begin: WrongCluster, TargetBusy, IllegalMove, ApprovalError (StalePlan: the differences), EvidenceError
    (edited). An error of a performer that is none of the project's ends it as StepFailed, which names the step and the
    items.
    """

    def __init__(
        self,
        folder: Path,
        performer: Performer,
        lock: Lock,
        *,
        clock: Clock = Clock(),  # noqa: B008
        poll_s: float = 1.0,
        tell: Callable[[Event], None] | None = None,
        rules: ApprovalSettings = ApprovalSettings(),  # noqa: B008
        first_seen: Callable[[Approval], datetime | None] = lambda approval: None,
    ) -> None:
        self.folder, self.run_id = folder, folder.name
        self._performer, self._lock, self._clock, self._poll_s, self._tell = performer, lock, clock, poll_s, tell
        self._rules, self._first_seen = rules, first_seen
        self._stop = StopButton()

    @property
    def record(self) -> RunRecord:
        """Everything so far. Raises EvidenceError if it was edited."""
        return load_run(self.folder)

    def request_stop(self, who: str) -> None:
        """Stop at the end of the item that is being written, or at once while nothing is; from any thread."""
        self._stop.pressed = (who, self._clock.now())

    def act(self, approval: Approval | None = None) -> RunResult:
        """Carry the plan out from its beginning; ``approval`` where the one it was started with ran out."""
        with self._at_work("act", {RunState.APPROVED}) as context:
            if approval is not None:
                self._take(context, approval)
            self._refuse_unless_approved(context)
            return self._forward(context)

    def resume(self, approval: Approval | None = None) -> RunResult:
        """Continue after a stop, a failure or a crash, in the direction it went; ``approval`` where the old one ran
        out.

        One that found the lock taken, or was killed before it began, begins now. The verdict of an ended run that
        found no room on the disk is written.
        A step that was begun and not verified is asked of the cluster, and only the rest of it is done.
        """
        with self._at_work("resume", _GOES_ON_FROM | _GOES_BACK_FROM | {RunState.APPROVED}) as context:
            if context.record.state in _DONE:
                return self._finish(context, _done(context))
            if context.record.state in _GOES_BACK_FROM:
                self._take_for_way_back(context, approval)
                return self._backward(context)
            if approval is not None:
                self._take(context, approval)
            self._refuse_unless_approved(context)
            self._refuse_followed(context)
            return self._forward(context)

    def undo(self, approval: Approval | None = None) -> RunResult:
        """Undo what this run did, newest step first, and nothing that another operator or tool did.

        The undo is part of the approval, for as long as the plan allows; after that it takes an approval that
        holds, or a new one here. Groups that a later run changed are left alone.
        """
        with self._at_work("undo", _GOES_ON_FROM | _GOES_BACK_FROM | {RunState.VERIFIED}) as context:
            self._take_for_way_back(context, approval)
            return self._backward(context)

    @contextmanager
    def _at_work(self, verb: str, begins_from: set[RunState]) -> Iterator[RunContext]:
        plan = load_plan(self.folder / PLAN)
        refuse_older_format(plan)
        refuse_other_cluster(plan, self._performer)
        self._performer.refuse_altered(plan)
        self._lock.acquire(plan.targets, self.run_id)
        try:
            with Journal(self.folder, self._clock, self._tell) as journal:
                record = load_run(self.folder)  # Another process may have gone on with it until now.
                _refuse_from_elsewhere(record, verb, begins_from)
                taken_request(self.folder)  # It was meant for the process before.
                hands = (journal, self._performer, self._lock, self._clock, self._stop, self._poll_s, verb)
                context = RunContext(record, *hands, _latest(record))
                context.permit = lambda: self._refuse_unless_approved(context)
                self._note_expired(context)
                if record.has_written:  # Before its first write a run has left no mark: the last one is then older.
                    context.followed = self._lock.followed_by(plan.targets, self.run_id)
                yield context
        finally:
            self._stop.pressed = None
            try:
                self._performer.end()
            finally:
                self._lock.release()

    def _refuse_unless_approved(self, context: RunContext, approval: Approval | None = None) -> None:
        given, now = approval or context.record.approvals[-1], self._clock.now()
        known = now if approval else max(now, context.latest_known())
        latest = latest_seen(self._mark_of(given), given.expires_at, known)
        earliest = self._first_seen(given)
        refuse_unless_valid(given, context.record.plan, now, rules=self._rules, latest=latest, earliest=earliest)

    def _refuse_unless_open(self, context: RunContext) -> None:
        """The undo: within the time that was approved with the plan, or by an approval that holds."""
        refuse_unless_genuine(context.record.approvals[-1], context.record.plan, self._rules)
        if self._is_way_back_over(context):
            until = way_back_until(context.record)
            try:
                self._refuse_unless_approved(context)
            except ApprovalError as error:
                raise ApprovalError(
                    f"run {self.run_id} could be undone without a new approval until {until.isoformat()}; approve its"
                    f" plan again: {error}"
                ) from error

    def _note_expired(self, context: RunContext) -> None:
        """Keep what has expired by now, before anything can refuse: it stays so if the clock is set back."""
        for approval in context.record.approvals:
            latest_seen(self._mark_of(approval), approval.expires_at, self._clock.now())
        self._is_way_back_over(context)

    def _is_way_back_over(self, context: RunContext) -> bool:
        until, known = way_back_until(context.record), max(self._clock.now(), context.latest_known())
        return latest_seen(self.folder / "expired-undo", until, known) >= until

    def _mark_of(self, approval: Approval) -> Path:
        return self.folder / f"expired-{digest_of(approval.to_json())[:12]}"

    def _refuse_followed(self, context: RunContext) -> None:
        """Refuse to continue if later runs changed all targets of this run; ``RunContext.refused`` has the other
        refusals.

        Raises:
            RunError: a later run changed every group of this one; what this run knows of them is old.
        """
        plan = context.record.plan
        later = context.followed
        if later and len(later) == len(plan.targets):
            target, run = next(iter(later.items()))
            what, verb = (f"group {target}", f"group {argument(target)}") if plan.consent is None else (target, "kraft")
            raise RunError(
                f"run {run} changed {what} after run {self.run_id}, so run {self.run_id} can't be resumed or undone "
                f"any more; nothing"
                f" was done. Make a plan from the present stage: offramp plan {verb}"
            )

    def _take(self, context: RunContext, approval: Approval) -> None:
        """A new approval goes into the evidence beside the old ones."""
        self._refuse_unless_approved(context, approval)
        number = sum(event.event == "approved" for event in context.record.events) + 1
        save_approval(approval, self.folder / f"approval-{number}.json")
        context.journal.approved(approval)
        context.record = load_run(self.folder)
        context.latest = _latest(context.record)

    def _take_for_way_back(self, context: RunContext, approval: Approval | None) -> None:
        """An approval that does not hold does not forbid an undo that needs none; see ``_refuse_unless_open``."""
        try:
            if approval is not None:
                self._take(context, approval)
        except ApprovalError:
            if self._is_way_back_over(context):
                raise

    def _forward(self, context: RunContext) -> RunResult:
        self._opened(context)
        result = self._walked(context, Execution(context), RunState.STOPPED, RunState.FAILED)
        if result.state == RunState.FAILED and context.record.plan.on_failure == UNDO:
            context.record = load_run(self.folder)
            return self._backward(context)
        return result

    def _backward(self, context: RunContext) -> RunResult:
        context.permit = lambda: self._refuse_unless_open(context)
        context.permit()
        self._refuse_followed(context)
        walk = Rollback(context)
        walk.refuse_if_stuck()
        self._opened(context)
        context.journal.move(RunState.UNDOING)
        return self._walked(context, walk, RunState.UNDO_HALTED, RunState.UNDO_HALTED)

    def _opened(self, context: RunContext) -> None:
        versions = {"python": python_version(), "offramp": version()}
        details = canonical({"verb": context.verb, "host": node(), "versions": versions})
        context.journal.append(Entry("opened", sentence=f"{context.verb} on {node()}.", details=details))

    def _walked(
        self, context: RunContext, walk: Execution | Rollback, stopped: RunState, failed: RunState
    ) -> RunResult:
        try:
            walk.walk()
        except StalePlan as error:
            self._finish(context, str(error))
            raise
        except EvidenceError:
            raise  # A step that can't be recorded isn't done, and can't be reported here either.
        except (Stopped, LockLost, ApprovalError) as error:
            return self._halt(context, stopped, error, walk.step)
        except OfframpError as error:
            return self._halt(context, failed, error, walk.step)
        except KeyboardInterrupt as error:
            self._halt(context, stopped, error, walk.step)
            raise
        except Exception as error:
            result = self._halt(context, failed, error, walk.step)
            raise StepFailed(f"run {self.run_id}: {result.sentence}; its evidence has the traceback") from error
        return self._finish(context, _done(context))

    def _halt(self, context: RunContext, state: RunState, error: BaseException, step: Step | None) -> RunResult:
        where = "before any step" if step is None else f"step {step.step_id!r}"
        where += _describe_unsure(context.unsure)
        what = str(error) if isinstance(error, OfframpError) else f"{type(error).__name__}: {error}"
        sentence = f"{where}: {without_secrets(what, context.record.plan.targets)}"
        step_id = None if step is None else step.step_id
        context.tell_failure(error, step_id, sentence)
        context.journal.move(state, step_id, sentence)
        return self._finish(context, sentence)

    def _finish(self, context: RunContext, sentence: str) -> RunResult:
        """The verdict and the page of it; both can be made again from the events."""
        journal = context.journal
        journal.append(Entry("ended", sentence=sentence))
        was = context.record
        record = RunRecord(self.run_id, self.folder, was.plan, was.approvals, tuple(journal.events), journal.head)
        report = record_html(record)
        if record.has_written and not record.is_anything_open:
            with suppress(ConnectError):  # Whoever comes next then waits for once.
                self._lock.mark_settled(record.plan.targets, self.run_id)
        try:
            write_atomic(self.folder / REPORT, report)
            write_atomic(self.folder / VERDICT, readable(verdict_of(record, report)))
        except EvidenceError as error:
            raise EvidenceError(
                f"run {self.run_id} is {record.state}: {sentence} But {error}. Make room; then: offramp resume"
                f" {self.run_id}"
            ) from error
        return RunResult(self.run_id, record.state, sentence, titles_to_undo(record))


def _describe_unsure(items: Sequence[str]) -> str:
    """Whatever ended the run: items with an unknown outcome are named first."""
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    return f", outcome unknown of item {items[0]!r}{more}" if items else ""


def _done(context: RunContext) -> str:
    state, events = context.journal.state, tuple(context.journal.events)
    left = replace(context.record, events=events).left_alone
    if state == RunState.UNDONE and left:
        return (
            "The writes of the run were undone, except items that another operator or tool changed"
            f" since: {'; '.join(left)}."
        )
    return _DONE[state]


def _latest(record: RunRecord) -> datetime:
    """The latest time that a run saw since a person last vouched for what it does, and by that for the clock."""
    approved = max(event.seq for event in record.events if event.event == "approved")
    return max(at(event) for event in record.events[approved - 1 :])


def _refuse_from_elsewhere(record: RunRecord, verb: str, begins_from: set[RunState]) -> None:
    is_told_late = verb == "resume" and record.state in _DONE and record.lacks_verdict
    if record.state not in begins_from and not is_told_late:
        states = ", ".join(sorted(begins_from))
        raise IllegalMove(f"run {record.run_id} is {record.state}; {verb} begins from: {states}")
