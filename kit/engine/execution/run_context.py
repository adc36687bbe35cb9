"""Share what an execution and a rollback need: the open journal, the performer, the lock, the stop button, one act."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from kit.engine.model.clock import Clock
from kit.engine.model.event import at
from kit.engine.model.journal import Entry, Journal, iso, of_item, taken_request
from kit.engine.model.performer import (
    ActedRecord,
    ItemOutcome,
    Lock,
    Outcome,
    Performer,
    Report,
    StepState,
    refuse_other_cluster,
)
from kit.engine.model.record import RunRecord
from kit.engine.model.step import Step
from kit.engine.model.values import Json, canonical
from kit.errors import (
    ApprovalError,
    ConnectError,
    EvidenceError,
    LockLost,
    OfframpError,
    ReadError,
    RunError,
    Stopped,
    WrongCluster,
)


@dataclass(slots=True)
class StopButton:
    """Pressed by any thread at any time; the run examines it at the end of each item, and reports who pressed."""

    pressed: tuple[str, datetime] | None = None


@dataclass(slots=True)
class RunContext:
    """One process at work on one run; ``record`` is its state when the work began."""

    record: RunRecord
    journal: Journal
    performer: Performer
    lock: Lock
    clock: Clock
    stop: StopButton
    poll_s: float
    verb: str
    latest: datetime
    """The latest time that is known to have been, since a person last approved the plan, and by that the clock."""
    permit: Callable[[], None] = lambda: None
    """Raises ApprovalError where nothing may be written any more: examined before every write."""
    followed: Mapping[str, str] = field(default_factory=dict)
    """The targets that a later run changed, and which run. As long as the lock is held, no other run can follow."""
    is_marked: bool = False
    unsure: list[str] = field(default_factory=list)
    """Items of the present step whose outcome is unknown, the newest first: an ending names the first."""

    def raise_if_halted(self) -> None:
        """Search for a request to stop, and at the lock.

        Raises:
            Stopped: a person asked the run to stop.
            LockLost: the lock may be another run's by now.
        """
        pressed = self.stop.pressed or taken_request(self.record.folder)
        if pressed is not None:
            who, at = pressed
            self.journal.append(Entry("stop_requested", sentence=f"{who} asked to stop at {iso(at)}."))
            self.stop.pressed = None
            raise Stopped(f"{who} asked to stop")
        self.lock.assert_held()

    def raise_unless_permitted(self) -> None:
        """Check everything that must hold before each write.

        Raises:
            Stopped, LockLost, ApprovalError: the run may not continue.
            WrongCluster, ConnectError, ReadError: another cluster than the plan's answers now, or none.
        """
        self.permit()
        refuse_other_cluster(self.record.plan, self.performer)
        self.raise_if_halted()  # Last: a lock in Kafka vouches for the next seconds alone.

    def latest_known(self) -> datetime:
        """It can't be earlier than that by now: a clock that is set back revives nothing."""
        self.latest = max(self.latest, at(self.journal.events[-1]))
        return self.latest

    def mark(self) -> None:
        """From now on this is the last run that changed its targets, but for those that a later run has changed."""
        if not self.is_marked:
            mine = [target for target in self.record.plan.targets if target not in self.followed]
            self.lock.mark(mine, self.record.run_id)
            self.is_marked = True

    def ms_since(self, started: float) -> int:
        return round((self.clock.monotonic() - started) * 1000)

    def state_of(self, step: Step, verb: str, acted: ActedRecord | None = None) -> StepState:
        """Return the state of the step by the performer.

        Raises:
            RunError: it can't be read, with the reason; ``verb`` continues when that has ended.
        """
        try:
            return self.performer.state(step, acted)
        except ReadError as error:
            run_id = self.record.run_id
            raise RunError(
                f"the step's state can't be read: {error}. Repair the cause, then run: offramp {verb} {run_id}"
            ) from error

    def carry_out(
        self, step: Step, event: str, do: Callable[[Step, Report], Sequence[ItemOutcome]]
    ) -> list[ItemOutcome]:
        """Let a performer act or undo; afterwards every item of the step has an outcome in the journal.

        Items of a target that a later run changed are REFUSED here: the performer never gets them.

        Raises:
            Stopped, LockLost, ApprovalError: between two items, or while one is waited for.
            OfframpError, Exception: the performer's. An item that was attempted and not reported is unknown.
        """
        refused, acted = self.refused(step), self.record.acted(step)
        written = {it.item for it in acted.written}
        reported = [it for it in refused.values() if event == "acted" or it.item in written]
        self.journal.append(*(of_item(event, step.step_id, outcome) for outcome in reported))
        if refused:
            step = replace(step, changes=tuple(it for it in step.changes if it.item not in refused))
        if refused and not step.changes:
            return reported
        reporter = _Reporter(self, step, event, acted.without(refused))
        try:
            reporter([])
            reporter.take_new(do(step, reporter))
        except (Exception, KeyboardInterrupt) as error:
            if not isinstance(error, EvidenceError):
                reporter.close(error)
            raise
        reporter.close()
        if reporter.halted is not None:
            raise reporter.halted  # The performer swallowed it, and may have done so between items only.
        return [*reported, *reporter.outcomes]

    def refused(self, step: Step) -> dict[str, ItemOutcome]:
        """The items of a step whose target a later run changed, each with its outcome."""
        if not self.followed:
            return {}
        later = {item: self.followed.get(target) for item, target in self.performer.targets_of(step).items()}
        return {
            it.item: ItemOutcome(it.item, Outcome.REFUSED, error=f"run {run} changed this item after this run")
            for it in step.changes
            if (run := later[it.item]) is not None
        }

    def mark_cut_off(self, step: Step) -> ActedRecord:
        """Journal what is known of a step that was begun; items that its last act did not report may have been
        written.
        """
        lost, acted = self.record.unreported(step), self.record.acted(step)
        self.journal.append(*(of_item("acted", step.step_id, outcome) for outcome in lost))
        self.unsure = list(dict.fromkeys(attempt.item for attempt in acted.attempts if attempt.is_open))
        return acted

    def wait_for(self, step: Step, holds: Callable[[], tuple[bool, str, str | None]], event: str) -> None:
        """Ask until it holds: (whether, sentence, details as JSON text). Changes of the sentence are journaled.

        Raises:
            RunError: it did not hold before the step's deadline.
            Stopped, LockLost: before that.
        """
        started, last_sentence = self.clock.monotonic(), ""
        while True:
            ok, sentence, details = holds()
            ms = self.ms_since(started)
            is_over = ms >= step.deadline_s * 1000
            if ok or is_over:
                outcome = "ok" if ok else "failed"
                entry = Entry(event, step.step_id, None, outcome, sentence=sentence, duration_ms=ms, details=details)
                self.journal.append(entry)
            if ok:
                self.unsure = []
                return
            if is_over:
                raise RunError(f"not confirmed within {step.deadline_s:g} s: {sentence}")
            if sentence != last_sentence:
                self.journal.append(Entry("waiting", step.step_id, sentence=sentence, duration_ms=ms))
                last_sentence = sentence
            self.raise_if_halted()
            self.clock.sleep(min(self.poll_s, step.deadline_s - ms / 1000))

    def tell_failure(self, error: BaseException, step_id: str | None, sentence: str) -> None:
        """Journal a failure: an error of the project by its sentence, any other with its traceback."""
        text = str(error) if isinstance(error, OfframpError) else "".join(traceback.format_exception(error))
        self.journal.append(Entry("failed", step_id, sentence=sentence, error=text))


@dataclass(slots=True)
class _Reporter:
    """The ``report`` of one act: asks before each write, makes outcomes durable, raises where the run must stop."""

    context: RunContext
    step: Step
    event: str
    acted: ActedRecord
    outcomes: list[ItemOutcome] = field(default_factory=list)
    attempted: dict[str, Json] = field(default_factory=dict)
    """Item → by what its write is known again."""
    halted: Exception | None = None
    planned: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        self.planned = frozenset(change.item for change in self.step.changes)

    def attempt(self, items: Sequence[str], details: Json = None) -> None:
        self._refuse_strangers(items)
        self._raise_halted(self.context.raise_unless_permitted)
        self.context.mark()
        written: Json = details if len(items) == 1 else {"items": list(items)}
        item = items[0] if len(items) == 1 else None
        entry = Entry("attempted", self.step.step_id, item, details=None if written is None else canonical(written))
        # Before it is durable: what may have been asked for is unknown, not untouched.
        self.attempted |= dict.fromkeys(items, details)
        self.context.journal.append(entry)

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.take(outcomes)
        self._raise_halted(self.context.raise_if_halted)

    def take_new(self, returned: Sequence[ItemOutcome]) -> None:
        """Return the outcomes that an act returned and had not reported before."""
        reported = {outcome.item: outcome for outcome in self.outcomes}
        self.take([outcome for outcome in returned if reported.get(outcome.item) != outcome])

    def take(self, outcomes: Sequence[ItemOutcome]) -> None:
        self.outcomes += outcomes
        by_item = {outcome.item: outcome.outcome for outcome in outcomes}
        left = [it for it in self.context.unsure if by_item.get(it) not in (Outcome.CONFIRMED, Outcome.UNCHANGED)]
        unknown = [item for item in by_item if by_item[item] == Outcome.UNKNOWN]
        self.context.unsure = list(dict.fromkeys([*unknown, *left]))
        self.context.journal.append(*(of_item(self.event, self.step.step_id, outcome) for outcome in outcomes))
        self._refuse_strangers([outcome.item for outcome in outcomes])
        unasked = [it.item for it in outcomes if it.is_written and it.item not in self.attempted]
        if unasked:
            raise RunError(f"{unasked[0]} was written before the run allowed the write")

    def close(self, error: BaseException | None = None) -> None:
        """An outcome for each item that has none: what was attempted may have been written, the rest was not."""
        reported = {it.item for it in self.outcomes}
        why = None if error is None else f"{type(error).__name__}: {error}"
        rest = [
            ItemOutcome(it.item, self._left(it.item), it.before, it.after, why, self.attempted.get(it.item))
            for it in self.step.changes
            if it.item not in reported
        ]
        self.take(rest)

    def _left(self, item: str) -> Outcome:
        return Outcome.UNKNOWN if item in self.attempted else Outcome.NOT_ATTEMPTED

    def _refuse_strangers(self, items: Sequence[str]) -> None:
        strangers = [item for item in items if item not in self.planned]
        if strangers:
            raise RunError(f"{strangers[0]} is not an item of the step that was approved")

    def _raise_halted(self, look: Callable[[], None]) -> None:
        if self.halted is None:
            try:
                look()
            except (Stopped, LockLost, ApprovalError, WrongCluster, ConnectError, ReadError) as error:
                self.halted = error
        if self.halted is not None:
            raise self.halted
