"""Carry a plan out: compare what it observed, then check, act and verify step by step."""

from __future__ import annotations

from collections.abc import Sequence

from kit.engine.execution.rollback import titles_to_undo
from kit.engine.execution.run_context import RunContext
from kit.engine.model.journal import Entry
from kit.engine.model.observation import IGNORED, Difference, Observation, differences
from kit.engine.model.performer import Checked, Outcome, StepState, refuse_other_cluster
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.engine.model.values import canonical
from kit.errors import AuthenticationFailed, ConnectError, RunError, StalePlan

_NOT_DONE = {Outcome.REFUSED, Outcome.NOT_ATTEMPTED}
_SHOWN = 3


class Execution:
    """One walk from the state of a run to its end; ``step`` is where it is, for who has to report where it failed."""

    def __init__(self, context: RunContext) -> None:
        self._context, self._plan = context, context.record.plan
        self.step: Step | None = None
        self._is_open = not context.record.has_written
        """True if what allowed the plan is to be asked again."""

    def walk(self) -> None:
        """Observe again, then execute what is not done yet, step by step.

        Raises:
            StalePlan: what was observed has changed and nothing was written yet.
            RunError: a step failed, or observations changed in the midst of the run.
            Stopped, LockLost, ApprovalError: before an item is written, or between steps.
        """
        verified, begun = self._context.record.verified, self._context.record.begun
        has_begun = [step for step in self._plan.steps if step.step_id in begun]
        self._context.journal.move(RunState.OBSERVING)
        self._context.raise_if_halted()
        self._compare(has_begun)
        for step in self._plan.steps:
            if step.step_id in verified:
                continue
            self.step = step
            if step.step_id not in begun or not self._was_done(step):
                self._check(step)
                self._act(step)
            elif self._context.record.acted(step).is_open:
                # An order that was never seen is cancelled, whoever did it instead.
                self._context.journal.move(RunState.CHECKING, step.step_id)
                self._act(step)
            self._verify(step)
        self._context.journal.move(RunState.VERIFIED)

    def _compare(self, has_begun: Sequence[Step]) -> None:
        """Compare the cluster with the plan. A value that a begun step moves by itself is no difference;
        everything else still is.
        """
        moved = {name for step in has_begun for name in step.affects}
        planned = {
            name: Observation(it.value, IGNORED) if name in moved else it for name, it in self._plan.observed.items()
        }
        changed = differences(planned, self._context.performer.observe(self._plan))
        if not changed:
            return
        self._context.journal.append(*map(_entry, changed))
        what_changed = f"what the plan observed has changed: {describe_differences(changed)}"
        if has_begun:
            run = self._context.record.run_id
            back = f". Or undo it: offramp undo {run}" if titles_to_undo(self._context.record) else ""
            raise RunError(
                f"{what_changed}; a part of the plan is already executed. Restore the former values, then continue:"
                f" offramp resume {run}{back}"
            )
        self._context.journal.move(RunState.STALE, sentence=what_changed)
        raise StalePlan(f"{what_changed}; nothing was written. Make a new plan: offramp plan")

    def _was_done(self, step: Step) -> bool:
        """A step that was begun before: asked of the cluster, never repeated blindly."""
        self._context.mark_cut_off(step)
        state = self._context.state_of(step, "resume")
        self._context.journal.append(Entry("checked", step.step_id, None, str(state), sentence=state.sentence))
        return state == StepState.DONE

    def _check(self, step: Step) -> None:
        self._context.raise_unless_permitted()
        self._context.journal.move(RunState.CHECKING, step.step_id)
        started = self._context.clock.monotonic()
        checked = self._first_checked(step)
        outcome, ms = "ok" if checked.ok else "failed", self._context.ms_since(started)
        self._context.journal.append(
            Entry("checked", step.step_id, None, outcome, sentence=checked.sentence, duration_ms=ms)
        )
        if not checked.ok:
            raise RunError(f"the precondition does not hold: {checked.sentence}")

    def _first_checked(self, step: Step) -> Checked:
        """Before a run's first write also what had to hold for its plan; from then on each step asks what it needs."""
        if self._is_open:
            self._settle_others()
            refusal = self._context.performer.refusal(self._plan)
            if refusal is not None:
                return Checked(False, refusal)
            self._is_open = False
        return self._context.performer.check(step)

    def _settle_others(self) -> None:
        """A run that was killed may have left an order behind, which comes into the midst of this one's."""
        plan, run_id = self._plan, self._context.record.run_id
        other = self._context.lock.unsettled(plan.targets, run_id)
        if other is not None:
            sentence = f"Run {other} on the same target did not end: its orders may still arrive."
            self._context.journal.append(Entry("waiting", sentence=sentence))
            self._context.performer.settle(plan, other, self._context.raise_if_halted)

    def _act(self, step: Step) -> None:
        self._context.raise_unless_permitted()
        self._context.journal.move(RunState.ACTING, step.step_id, step.title)
        act = self._context.performer.act
        outcomes = self._context.carry_out(step, "acted", act)
        failed = [outcome for outcome in outcomes if outcome.outcome in _NOT_DONE]
        if failed:
            first = "; ".join(f"{it.item} {it.outcome}: {it.error or 'no reason given'}" for it in failed[:_SHOWN])
            raise RunError(f"{len(failed)} of {len(step.changes)} items were not done: {first}")

    def _verify(self, step: Step) -> None:
        self._context.journal.move(RunState.VERIFYING, step.step_id)
        self._context.wait_for(step, lambda: self._holds(step), "verified")

    def _holds(self, step: Step) -> tuple[bool, str, str | None]:
        try:
            verified = self._context.performer.verify(step)
            refuse_other_cluster(self._plan, self._context.performer)  # Another cluster's answers verify nothing.
        except AuthenticationFailed:
            raise
        except ConnectError as error:
            return False, f"the cluster does not answer: {error}", None
        return verified.ok, verified.sentence, canonical(verified.evidence)


def describe_differences(changed: Sequence[Difference]) -> str:
    """The first of them as sentences, and how many more there are."""
    more = f"; and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
    return "; ".join(difference.sentence for difference in changed[:_SHOWN]) + more


def _entry(difference: Difference) -> Entry:
    return Entry(
        "differs",
        item=difference.item,
        before=difference.expected,
        after=difference.found,
        sentence=difference.sentence,
    )
