"""Divide a run into stretches of time, by step, and by item of a step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from kit.engine.model.event import Event, at
from kit.engine.model.record import RunRecord
from kit.engine.model.states import RunState

PHASES = ("checking", "acting", "verifying", "undoing")
_PHASES = {RunState.CHECKING: "checking", RunState.ACTING: "acting", RunState.VERIFYING: "verifying"}


@dataclass(frozen=True, slots=True)
class Stretch:
    """``item`` is empty for work on the whole step."""

    step_id: str
    item: str
    phase: str
    began_at: datetime
    ended_at: datetime

    @property
    def seconds(self) -> float:
        return (self.ended_at - self.began_at).total_seconds()


def step_stretches(record: RunRecord) -> Iterator[Stretch]:
    """Return the activity of the run from each move to the next one, and from each event to the next while it goes
    back.
    """
    for event, after in zip(record.events, record.events[1:]):
        if event.state == RunState.UNDOING and after.state == RunState.UNDOING and after.step_id:
            yield Stretch(after.step_id, "", "undoing", at(event), at(after))
    moves = [event for event in record.events if event.event == "moved"]
    for event, after in zip(moves, [*moves[1:], record.events[-1]]):
        phase = _PHASES.get(RunState(event.state))
        if phase is not None and event.step_id:
            yield Stretch(event.step_id, "", phase, at(event), _end(record, event, after))


def item_stretches(record: RunRecord) -> Iterator[Stretch]:
    """From the moment before a write to the moment its outcome was known, of each item that was written singly."""
    attempted: dict[tuple[str | None, str], Event] = {}
    for event in record.events:
        if event.item is None:
            continue
        key = (event.step_id, event.item)
        if event.event == "attempted":
            attempted[key] = event
        elif event.event in ("acted", "undone") and (began := attempted.pop(key, None)) is not None:
            phase = "acting" if event.event == "acted" else "undoing"
            yield Stretch(event.step_id or "", event.item, phase, at(began), at(event))


def _end(record: RunRecord, event: Event, after: Event) -> datetime:
    """A run that was cut off and taken up again did not work in between."""
    within = [each for each in record.events if event.seq < each.seq <= after.seq]
    opened = [each.seq for each in within if each.event == "opened"]
    last = [each for each in within if not opened or each.seq < opened[0]]
    return at(last[-1] if last else event)
