"""What going forward and going back share: the open journal, the performer, the lock, the stop button, one act."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kit.errors import EvidenceError, LockLost, OfframpError, RunError, Stopped
from kit.migrate.approval import Approval, refuse_unless_valid
from kit.migrate.clock import Clock
from kit.migrate.journal import Entry, Journal, iso, of_item
from kit.migrate.performer import ActedRecord, ItemOutcome, Lock, Outcome, Performer, Report
from kit.migrate.record import RunRecord, remember
from kit.migrate.step import Step
from kit.profile import ApprovalSettings


@dataclass(slots=True)
class StopButton:
    """Pressed by any thread at any time; the run looks at it at the end of each item, and says who pressed."""

    pressed: tuple[str, datetime] | None = None


@dataclass(slots=True)
class Workplace:
    """One process at work on one run; ``record`` is how it stood when the work was taken up."""

    record: RunRecord
    journal: Journal
    performer: Performer
    lock: Lock
    clock: Clock
    stop: StopButton
    poll_s: float
    verb: str
    rules: ApprovalSettings = ApprovalSettings()  # noqa: RUF009 - it is frozen
    unsure: str | None = None
    """The first item of which nobody can tell what came of it, after an act that broke off."""

    def raise_if_halted(self) -> None:
        """Raises:
        Stopped: somebody pressed the button.
        LockLost: the lock may be another run's by now.
        """
        pressed = self.stop.pressed
        if pressed is not None:
            who, at = pressed
            self.journal.append(Entry("stop_requested", sentence=f"{who} asked to stop at {iso(at)}."))
            self.stop.pressed = None
            raise Stopped(f"{who} asked to stop")
        self.lock.assert_held()

    def refuse_unless_approved(self, approval: Approval | None = None) -> None:
        """Raises:
        ApprovalError: the approval, by default the run's last one, does not hold now.
        """
        found, latest = approval or self.record.approvals[-1], self.journal.latest
        refuse_unless_valid(found, self.record.plan, self.clock.now(), rules=self.rules, latest=latest)

    def ms_since(self, started: float) -> int:
        return round((self.clock.monotonic() - started) * 1000)

    def carry_out(self, step: Step, event: str, do: Callable[[Report], Sequence[ItemOutcome]]) -> list[ItemOutcome]:
        """Let a performer act or undo; afterwards every item of the step has an outcome in the journal.

        Raises:
            Stopped, LockLost: between two items; what was not reported was not attempted.
            OfframpError, Exception: the performer's; what was not reported is unknown.
        """
        self.unsure = None
        reporter = _Reporter(self, step, event)
        try:
            reporter([])  # The last look at the button and at the lock before something is written.
            reporter.take_new(do(reporter))
        except (Exception, KeyboardInterrupt) as error:
            if not isinstance(error, EvidenceError):
                reporter.close(Outcome.NOT_ATTEMPTED if error is reporter.halted else Outcome.UNKNOWN, error)
            raise
        reporter.close(Outcome.NOT_ATTEMPTED)
        if reporter.halted is not None:
            raise reporter.halted  # The performer swallowed it, and may have done so between items only.
        return reporter.outcomes

    def mark_cut_off(self, step: Step) -> ActedRecord:
        """What is known of a step that was begun; items that its last act did not report may have been written."""
        why = "the run was cut off before it could report"
        lost = [ItemOutcome(it.item, Outcome.UNKNOWN, it.before, it.after, why) for it in self.record.unreported(step)]
        self.journal.append(*(of_item("acted", step.step_id, outcome) for outcome in lost))
        outcomes = {outcome.item: outcome for outcome in self.record.acted(step).outcomes}
        for outcome in lost:
            remember(outcomes, outcome)
        return ActedRecord(step.step_id, tuple(outcomes.values()))

    def wait_for(self, step: Step, holds: Callable[[], tuple[bool, str, str | None]], event: str) -> None:
        """Ask until it holds: (whether, sentence, details as JSON text). Changes of the sentence are journaled.

        Raises:
            RunError: it did not hold before the step's deadline.
            Stopped, LockLost: before that.
        """
        started, told = self.clock.monotonic(), ""
        while True:
            ok, sentence, details = holds()
            ms = self.ms_since(started)
            is_over = ms >= step.deadline_s * 1000
            if ok or is_over:
                outcome = "ok" if ok else "failed"
                entry = Entry(event, step.step_id, None, outcome, sentence=sentence, duration_ms=ms, details=details)
                self.journal.append(entry)
            if ok:
                return
            if is_over:
                raise RunError(f"it did not hold within {step.deadline_s:g} s: {sentence}")
            if sentence != told:
                self.journal.append(Entry("waiting", step.step_id, sentence=sentence, duration_ms=ms))
                told = sentence
            self.raise_if_halted()
            self.clock.sleep(min(self.poll_s, step.deadline_s - ms / 1000))

    def tell_failure(self, error: BaseException, step_id: str | None, sentence: str) -> None:
        """A project's error is told by its sentence; of any other the traceback is kept."""
        told = str(error) if isinstance(error, OfframpError) else "".join(traceback.format_exception(error))
        self.journal.append(Entry("failed", step_id, sentence=sentence, error=told))


@dataclass(slots=True)
class _Reporter:
    """The ``report`` of one act: makes outcomes durable, then raises if nothing more may be written."""

    place: Workplace
    step: Step
    event: str
    outcomes: list[ItemOutcome] = field(default_factory=list)
    halted: Exception | None = None

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.take(outcomes)
        if self.halted is None:
            try:
                self.place.raise_if_halted()
            except (Stopped, LockLost) as error:
                self.halted = error
        if self.halted is not None:
            raise self.halted

    def take_new(self, returned: Sequence[ItemOutcome]) -> None:
        """Of what an act returned, that which it had not reported so."""
        reported = {outcome.item: outcome for outcome in self.outcomes}
        self.take([outcome for outcome in returned if reported.get(outcome.item) != outcome])

    def take(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.outcomes += outcomes
        self.place.journal.append(*(of_item(self.event, self.step.step_id, outcome) for outcome in outcomes))
        planned = {change.item for change in self.step.changes}
        strangers = [outcome.item for outcome in outcomes if outcome.item not in planned]
        if strangers:
            raise RunError(f"{strangers[0]} was touched, which is no item of the step that was approved")

    def close(self, outcome: Outcome, error: BaseException | None = None) -> None:
        """An outcome for each item that has none."""
        reported = {it.item for it in self.outcomes}
        why = None if error is None else f"{type(error).__name__}: {error}"
        rest = [
            ItemOutcome(change.item, outcome, change.before, change.after, why)
            for change in self.step.changes
            if change.item not in reported
        ]
        if rest and outcome == Outcome.UNKNOWN:
            self.place.unsure = rest[0].item
        self.take(rest)
