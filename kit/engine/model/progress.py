"""Show how far each step of a run has come, by its events; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from kit.engine.model.event import Event, at
from kit.engine.model.record import RunRecord, RunRow
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.engine.model.values import Json, parse_json

WAITS, CHECKS, ACTS, VERIFIES = "not begun", "checking", "acting", "verifying"
DONE, HALTED, GOES_BACK, UNDONE = "done", "halted", "going back", "undone"
_SECOND = len("20261121T120000Z")
_PHASES = {
    RunState.CHECKING: CHECKS,
    RunState.ACTING: ACTS,
    RunState.VERIFYING: VERIFIES,
    RunState.STOPPED: HALTED,
    RunState.FAILED: HALTED,
}


@dataclass(frozen=True, slots=True)
class StepProgress:
    """``phase`` is one of the words above; ``n_done`` of ``n_items`` have a good outcome; times by the journal."""

    number: int
    step_id: str
    title: str
    phase: str
    n_done: int
    n_items: int
    sentence: str
    began_at: datetime | None
    ended_at: datetime | None

    @property
    def seconds(self) -> float | None:
        if self.began_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.began_at).total_seconds()


def step_progress(record: RunRecord) -> tuple[StepProgress, ...]:
    """One per step of the plan, in its order."""
    return tuple(_progress(record, number, step) for number, step in enumerate(record.plan.steps, 1))


def in_order(rows: Iterable[RunRow]) -> list[RunRow]:
    """The oldest first, also of those that began within one second, which their ids don't show."""
    return sorted(rows, key=lambda row: (row.run_id[:_SECOND], row.started_at or ""))


def evidence(event: Event) -> Mapping[str, Json]:
    """Return an event's ``details``, if they are an object."""
    details = parse_json(event.details) if event.details else None
    return details if isinstance(details, Mapping) else {}


def _progress(record: RunRecord, number: int, step: Step) -> StepProgress:
    mine = [event for event in record.events if event.step_id == step.step_id]
    phase = _phase(record, step, mine)
    ended = [event for event in mine if event.event in ("verified", "step_undone", "failed")]
    sentences = [event.sentence for event in mine if event.sentence and event.event != "moved"]
    return StepProgress(
        number=number,
        step_id=step.step_id,
        title=step.title,
        phase=phase,
        n_done=_n_done(mine),
        n_items=len(step.changes),
        sentence=sentences[-1] if sentences else "",
        began_at=at(mine[0]) if mine else None,
        ended_at=at(ended[-1]) if ended and phase in (DONE, HALTED, UNDONE) else None,
    )


def _phase(record: RunRecord, step: Step, mine: list[Event]) -> str:
    if step.step_id in record.undone:
        return UNDONE
    if record.state in (RunState.UNDOING, RunState.UNDO_HALTED) and step.step_id in record.begun:
        return GOES_BACK if record.state == RunState.UNDOING else HALTED
    if step.step_id in record.verified:
        return DONE
    moves = [RunState(event.state) for event in mine if event.event == "moved"]
    return _PHASES.get(moves[-1], WAITS) if moves else WAITS


def _n_done(mine: list[Event]) -> int:
    """Items with a good outcome that was not undone."""
    outcomes = {}
    for event in mine:
        if event.event in ("acted", "undone"):
            outcomes[event.item] = event.event == "acted" and event.outcome in ("CONFIRMED", "UNCHANGED")
    return sum(outcomes.values())
