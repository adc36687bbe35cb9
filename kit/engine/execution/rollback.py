"""Take a run back: undo its steps, the newest first, and read each back as not done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kit.engine.execution.run_context import RunContext
from kit.engine.model.journal import Entry, of_item
from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, StepState
from kit.engine.model.record import RunRecord
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.errors import AuthenticationFailed, ConnectError, ReadError, RunError

_CHANGED = "another operator or tool changed this item after this run"


def steps_to_undo(record: RunRecord) -> tuple[Step, ...]:
    """Every step that may have written something and was not undone, newest first."""
    left = record.begun - record.undone
    return tuple(step for step in reversed(record.plan.steps) if step.step_id in left)


def titles_to_undo(record: RunRecord) -> tuple[str, ...]:
    """Return the titles of the steps that an undo would undo, newest first; none once a step has begun that can't
    be undone.
    """
    steps = [step for step in steps_to_undo(record) if step.changes and _has_written(record, step)]
    is_stuck = any(step.cannot_be_undone is not None and _is_left(record.acted(step)) for step in steps)
    return () if is_stuck else tuple(step.title for step in steps)


def _has_written(record: RunRecord, step: Step) -> bool:
    """Return whether the step wrote an item, or may have; an item that the undo has restored counts."""
    if step.step_id in record.written:  # One pass over the journal for all steps; the exact answer takes one for each.
        return True
    acted = record.acted(step)
    return _is_left(acted) or bool(acted.taken_back)


class Rollback:
    """One walk back to how it was before the run; ``step`` is where it is."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.step: Step | None = None

    def refuse_if_stuck(self) -> None:
        """Before anything is undone, so that it isn't left halfway.

        Raises:
            RunError: a step that is done can't be undone, or another operator or tool was there since the newest was.
        """
        performer, is_newest = self._context.performer, True
        for step in steps_to_undo(self._context.record):
            acted = self._mine(step)
            if not _is_left(acted):
                continue
            if step.cannot_be_undone is not None and performer.state(step, acted) != StepState.NOT_DONE:
                raise RunError(f"step {step.step_id!r} cannot be undone: {step.cannot_be_undone}; nothing was undone")
            if is_newest and not (checked := performer.check_back(step, acted)).ok:
                raise RunError(f"step {step.step_id!r} can't be undone now: {checked.sentence}; nothing was undone")
            is_newest = False

    def walk(self) -> None:
        """Undo what this run wrote, the newest step first.

        Raises:
            RunError: a step could not be undone.
            Stopped, LockLost, ApprovalError: before an item is written, or between steps.
        """
        for step in steps_to_undo(self._context.record):
            self.step = step
            self._context.raise_unless_permitted()
            self._undo(step)
        self._context.journal.move(RunState.UNDONE)

    def _undo(self, step: Step) -> None:
        self._context.mark_cut_off(step)
        acted, performer = self._mine(step), self._context.performer
        if not _is_left(acted) and not acted.taken_back:
            self._leave(step)
            self._context.journal.append(
                Entry("step_undone", step.step_id, None, "ok", sentence="Nothing of the step is left to undo.")
            )
            return
        state = self._context.state_of(step, "undo", acted)
        if state != StepState.NOT_DONE or acted.is_open:
            checked = performer.check_back(step, acted)
            if not checked.ok:
                raise RunError(f"the step can't be undone now: {checked.sentence}")
            outcomes = self._context.carry_out(step, "undone", lambda left, report: performer.undo(left, acted, report))
            self._refuse_left(step, acted, outcomes)
        else:
            self._leave(step)
            self._tell_changed_by_others(step, acted, performer.check_back(step, acted).left_alone)
        self._context.wait_for(step, lambda: self._is_back(step, acted), "step_undone")

    def _mine(self, step: Step) -> ActedRecord:
        """Return the journal's record of the step, without the targets that a later run changed."""
        return self._context.record.acted(step).without(self._context.refused(step))

    def _leave(self, step: Step) -> None:
        """Journal which items of this run stay as a later run left them."""
        refused, written = self._context.refused(step), {it.item for it in self._context.record.acted(step).written}
        self._context.journal.append(
            *(of_item("undone", step.step_id, outcome) for item, outcome in refused.items() if item in written)
        )

    def _tell_changed_by_others(self, step: Step, acted: ActedRecord, reasons: Mapping[str, str]) -> None:
        """Nothing is left of what this run wrote: what this run did not undo itself, another operator or tool changed.

        Items that this run had begun to undo when it was cut off are read back now. ``reasons`` are of the items that
        the actor would refuse.
        """
        events = self._context.journal.events
        reported = {it.item for it in events if (it.event, it.step_id) == ("undone", step.step_id)}
        begun = {it.item for it in acted.attempts if it.is_back} - reasons.keys()
        left = [it.item for it in acted.written if it.item not in reported]
        others = {item: reasons.get(item, _CHANGED) for item in left if item not in begun}
        self._context.journal.append(
            *(Entry("undone", step.step_id, item, Outcome.CONFIRMED) for item in left if item in begun),
            *(Entry("undone", step.step_id, item, Outcome.REFUSED, error=why) for item, why in others.items()),
        )

    def _refuse_left(self, step: Step, acted: ActedRecord, outcomes: Sequence[ItemOutcome]) -> None:
        """An error in hand is not waited for; what others changed since is left alone, and no error.

        Raises:
            RunError: something that this run wrote is there still, and was refused.
        """
        mine = {it.item for it in acted.outcomes}
        refused = [f"{it.item}: {it.error}" for it in outcomes if it.outcome == Outcome.REFUSED and it.item in mine]
        if refused and self._context.performer.state(step, acted) != StepState.NOT_DONE:
            raise RunError(f"{len(refused)} of {len(outcomes)} items were not undone: {'; '.join(refused[:3])}")

    def _is_back(self, step: Step, acted: ActedRecord) -> tuple[bool, str, str | None]:
        try:
            state = self._context.performer.state(step, acted)
        except AuthenticationFailed:
            raise
        except ConnectError as error:
            return False, f"the cluster does not answer: {error}", None
        except ReadError as error:
            return False, f"the step's state can't be read: {error}", None
        return state == StepState.NOT_DONE, state.sentence, None


def _is_left(acted: ActedRecord) -> bool:
    """Return whether the step wrote something, or may have, or may still."""
    return bool(acted.written) or acted.is_open
