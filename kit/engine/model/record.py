"""Load what a run did from its folder, and check it against itself: plan, approvals, events, verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kit.engine.model.approval import Approval, load_approval
from kit.engine.model.event import Chain, Event, items_of, parse_chain, shown
from kit.engine.model.journal import APPROVAL, EVENTS, PLAN
from kit.engine.model.performer import ActedRecord, ItemOutcome, Outcome, WriteAttempt
from kit.engine.model.plan import Plan, load_plan
from kit.engine.model.states import AT_WORK, RunState, moved
from kit.engine.model.step import Step
from kit.engine.model.values import canonical, digest_of, parse_json
from kit.errors import EvidenceError, IllegalMove, OfframpError
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular

VERDICT = "verdict.json"
REPORT = "report.html"
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-")
"""Beside runs there may be plans, reports and a history in the same folder."""
_WRITTEN = {Outcome.CONFIRMED: 2, Outcome.UNKNOWN: 1}
"""The outcomes that mean that something was or may have been written; a later lower one does not replace a higher
one.
"""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run as its evidence shows it. ``notes`` reports what is unusual about the evidence without being an edit."""

    run_id: str
    folder: Path
    plan: Plan
    approvals: tuple[Approval, ...]
    events: tuple[Event, ...]
    head: str
    notes: tuple[str, ...] = ()

    @property
    def state(self) -> RunState:
        return RunState(self.events[-1].state)

    @property
    def sentence(self) -> str:
        """Return the sentence of the last ending, or that there was none."""
        if self.is_at_work:
            return (
                "The run is working, or its process was killed. Once no process holds its lock:"
                f" offramp resume {self.run_id}, or offramp undo {self.run_id}"
            )
        if self.state == RunState.APPROVED:
            return f"The run has not begun: offramp resume {self.run_id} begins it."
        return next((event.sentence or "" for event in reversed(self.events) if event.event == "ended"), "")

    @property
    def lacks_verdict(self) -> bool:
        """Return whether the verdict on the last line is missing: there was no room for it, or its writer died over
        it.
        """
        try:
            verdict = parse_json(read_regular(self.folder / VERDICT).decode())
        except (OSError, ValueError):
            return True
        return not isinstance(verdict, dict) or verdict.get("last_seq") != len(self.events)

    @property
    def is_at_work(self) -> bool:
        return self.state in AT_WORK

    @property
    def begun(self) -> frozenset[str]:
        """The steps whose act was ever called: they may have written something."""
        acting = (event for event in self.events if event.event == "moved" and event.state == RunState.ACTING)
        return frozenset(event.step_id or "" for event in acting)

    @property
    def written(self) -> frozenset[str]:
        """The steps with an item that the journal reports as written, or as perhaps written."""
        acted = (event for event in self.events if event.event == "acted" and event.outcome in _WRITTEN)
        return frozenset(event.step_id or "" for event in acted)

    @property
    def verified(self) -> frozenset[str]:
        return self._ok("verified")

    @property
    def undone(self) -> frozenset[str]:
        return self._ok("step_undone")

    def acted(self, step: Step) -> ActedRecord:
        """The outcome of each item over all acts of a step: what was written once stays so.

        An item that a cut-off act did not report is UNKNOWN.
        """
        acted = self._journaled(step)
        outcomes = {outcome.item: outcome for outcome in acted.outcomes}
        for outcome in _unreported(acted, step):
            remember(outcomes, outcome)
        return replace(acted, outcomes=tuple(outcomes.values()))

    def unreported(self, step: Step) -> tuple[ItemOutcome, ...]:
        """The items of a step whose write was begun and never spoken of, because the run was cut off."""
        return _unreported(self._journaled(step), step)

    def _journaled(self, step: Step) -> ActedRecord:
        outcomes: dict[str, ItemOutcome] = {}
        attempts, taken_back = _Attempts(), set[str]()
        for event in self.events:
            if event.event == "opened":
                attempts.cut_off()
            elif event.step_id != step.step_id:
                continue
            elif event.event == "attempted":
                attempts.add(event)
            elif event.event in ("acted", "undone"):
                outcome = _outcome(event)
                attempts.close(outcome, event.event == "undone")
                if event.event == "acted":
                    remember(outcomes, outcome)
                elif outcome.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED):
                    taken_back.add(outcome.item)
        return ActedRecord(step.step_id, tuple(outcomes.values()), tuple(attempts.made), frozenset(taken_back))

    @property
    def has_written(self) -> bool:
        """It wrote something to the cluster, or may have."""
        return any(event.event == "attempted" or event.outcome in _WRITTEN for event in self.events)

    @property
    def is_anything_open(self) -> bool:
        """It is not known of some write whether it was made or will be, and no verification has shown it since."""
        if self.state in (RunState.VERIFIED, RunState.UNDONE):
            return False
        return any(attempt.is_open for step in self.plan.steps for attempt in self.acted(step).attempts)

    @property
    def left_alone(self) -> tuple[str, ...]:
        """Return what an undo did not restore, or not as a whole, as ``item: why``."""
        last = {(it.step_id, it.item): it for it in self.events if it.event == "undone"}
        in_part = {it.item for it in last.values() if it.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED) and it.error}
        refused = {it.item for it in last.values() if it.outcome == Outcome.REFUSED}
        return tuple(f"{it.item}: {it.error}" for it in last.values() if it.item in refused | in_part)

    def _ok(self, kind: str) -> frozenset[str]:
        return frozenset(it.step_id or "" for it in self.events if it.event == kind and it.outcome == "ok")


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in a list of them; where ``error`` gives the reason it can't be read, all but ``run_id`` is None."""

    run_id: str
    state: str | None = None
    kind: str | None = None
    subject: str | None = None
    cluster_id: str | None = None
    plan_digest: str | None = None
    made_by: str | None = None
    approved_by: str | None = None
    started_at: str | None = None
    last_event_at: str | None = None
    n_events: int | None = None
    sentence: str | None = None
    error: str | None = None


def load_run(folder: Path) -> RunRecord:
    """A run's record, its state found by making all its moves again.

    Raises:
        EvidenceError: the folder can't be read, or its evidence was edited; what, and where.
    """
    try:
        return _loaded(folder)
    except (OSError, OfframpError, ValueError, LookupError, TypeError) as error:
        raise EvidenceError(f"{folder}: {error}") from error


def list_runs(root: Path) -> tuple[RunRow, ...]:
    """All runs under ``root``, oldest first; none where there is no such folder yet.

    Raises:
        EvidenceError: ``root`` itself can't be read.
    """
    return tuple(sorted(map(_row, _folders(root)), key=lambda row: (row.started_at or row.run_id, row.run_id)))


def remember(outcomes: dict[str, ItemOutcome], new: ItemOutcome) -> None:
    """Add a later outcome of an item: what was or may have been written stays so."""
    old = outcomes.get(new.item)
    if old is None or _WRITTEN.get(new.outcome, 0) >= _WRITTEN.get(old.outcome, 0):
        outcomes[new.item] = new


def verdict_of(record: RunRecord, report: str) -> dict[str, Any]:
    """Return the content of ``verdict.json``: how the run ended, and hashes of all that this rests on."""
    content: dict[str, Any] = {
        "run_id": record.run_id,
        "state": str(record.state),
        "sentence": record.sentence,
        "ended_at": record.events[-1].at,
        "plan_digest": record.plan.digest,
        "approved_by": [approval.approved_by for approval in record.approvals],
        "last_seq": len(record.events),
        "last_line_sha256": record.head,
        "report_sha256": _sha256(report.encode()),
    }
    return {**content, "checksum": digest_of(content)}


def _loaded(folder: Path) -> RunRecord:
    chain = parse_chain(read_regular(folder / EVENTS), folder.name)
    if not chain.events:
        raise EvidenceError(f"{EVENTS} is empty: the run was cut off before it began; nothing was done")
    _replay(chain.events)
    plan = load_plan(folder / PLAN)
    files = [folder / APPROVAL, *sorted(folder.glob("approval-*.json"), key=_number)]
    approvals = tuple(load_approval(file) for file in files)
    _refuse_others(chain, plan, approvals)
    notes = (*_older_notes(plan), *_torn_notes(chain), *_verdict_notes(folder, chain))
    return RunRecord(folder.name, folder, plan, approvals, chain.events, chain.head, notes)


def _replay(events: tuple[Event, ...]) -> None:
    state = RunState.PLANNED
    for event in events:
        try:
            state = moved(state, RunState(event.state)) if event.event == "moved" else state
        except (IllegalMove, ValueError) as error:
            raise EvidenceError(f"line {event.seq}: {error}") from error
        if RunState(event.state) != state:
            raise EvidenceError(f"line {event.seq} has the state {event.state}, but the run was {state}")


def _refuse_others(chain: Chain, plan: Plan, approvals: tuple[Approval, ...]) -> None:
    """The files beside the journal have to be those that the journal reports."""
    planned = parse_json(chain.events[0].details or "null")
    if not isinstance(planned, dict) or planned.get("plan_digest") != plan.digest:
        raise EvidenceError(f"{PLAN} is not the plan that was executed")
    journaled = [event.details for event in chain.events if event.event == "approved"]
    if (
        journaled != [canonical(approval.to_json()) for approval in approvals][: len(journaled)]
        or len(approvals) > len(journaled) + 1
    ):
        raise EvidenceError("the approvals are not the run's approvals")


def _older_notes(plan: Plan) -> Iterator[str]:
    """Yield what a run of an older version could not have proven by today's rules."""
    if plan.format == 1:
        yield (
            f"The run's plan is of format {plan.format}. A plan of that format does not prove: that each step "
            f"did what its "
            "text says; that the approval was valid at each write (it was checked between steps); which write was "
            "in progress when the run was cut off; who was logged in when the plan was made and approved; until "
            "when the undo was approved."
        )


def _torn_notes(chain: Chain) -> Iterator[str]:
    if chain.torn:
        yield f"The last line is incomplete, because its writer ended within it: {shown(chain.torn)!r}."


def _verdict_notes(folder: Path, chain: Chain) -> Iterator[str]:
    state = RunState(chain.events[-1].state)
    path = folder / VERDICT
    if not path.exists():
        if chain.events[-1].event == "ended":
            yield f"The run ended {state}, and {VERDICT} is missing."
        return
    verdict = parse_json(read_regular(path).decode())
    if not isinstance(verdict, dict):
        raise EvidenceError(f"{VERDICT} is not a verdict")
    content = {name: value for name, value in verdict.items() if name != "checksum"}
    if digest_of(content) != verdict.get("checksum"):
        raise EvidenceError(f"{VERDICT} was edited")
    seq = content["last_seq"]
    if seq > len(chain.events):
        raise EvidenceError(
            f"{EVENTS} has {quantity(len(chain.events), 'line')}; {seq} were written: the last lines were removed"
        )
    heads = [event.previous for event in chain.events[1:]] + [chain.head]
    if (heads[seq - 1], chain.events[seq - 1].state) != (content["last_line_sha256"], content["state"]):
        raise EvidenceError(f"{VERDICT} is not the verdict on these events")
    if seq < len(chain.events):
        yield f"{VERDICT} is of line {seq}; the run continued after it."
    elif _sha256(read_regular(folder / REPORT)) != content["report_sha256"]:
        raise EvidenceError(f"{REPORT} was edited")


def _outcome(event: Event) -> ItemOutcome:
    before: Any = parse_json(event.before or "null")
    after: Any = parse_json(event.after or "null")
    details: Any = parse_json(event.details or "null")
    return ItemOutcome(event.item or "", Outcome(event.outcome or ""), before, after, event.error, details)


def _unreported(acted: ActedRecord, step: Step) -> tuple[ItemOutcome, ...]:
    why = "the run was cut off before it reported the outcome"
    details = {attempt.item: attempt.details for attempt in acted.attempts if attempt.is_open and not attempt.is_back}
    silent = details.keys() - {outcome.item for outcome in acted.written}
    return tuple(
        ItemOutcome(it.item, Outcome.UNKNOWN, it.before, it.after, why, details[it.item])
        for it in step.changes
        if it.item in silent
    )


class _Attempts:
    """The writes of one step that were begun, and what came of each."""

    def __init__(self) -> None:
        self.made: list[WriteAttempt] = []
        self._at: dict[str, list[int]] = {}

    def add(self, event: Event) -> None:
        details: Any = parse_json(event.details or "null")
        is_back = event.state == RunState.UNDOING
        for item in items_of(event):
            self._at.setdefault(item, []).append(len(self.made))
            self.made.append(WriteAttempt(item, is_back, details if event.item is not None else None, None))

    def cut_off(self) -> None:
        """Another process took the run up: what was not spoken of by then never will be."""
        self.made = [replace(it, outcome=Outcome.UNKNOWN) if it.outcome is None else it for it in self.made]

    def close(self, outcome: ItemOutcome, is_back: bool) -> None:
        """Close the attempts on an item. A result that was found or written closes every attempt before; an item
        that was not tried closes none.
        """
        is_told = outcome.outcome in (Outcome.CONFIRMED, Outcome.UNCHANGED)
        for at in self._at.get(outcome.item, ()):
            attempt = self.made[at]
            is_meant = is_back or not attempt.is_back
            if is_meant and (attempt.outcome is None or (is_told and attempt.is_open)):
                self.made[at] = replace(attempt, outcome=outcome.outcome)


def _folders(root: Path) -> list[Path]:
    try:
        if not root.exists():
            return []
        return sorted(path for path in root.iterdir() if path.is_dir() and _is_run(path))
    except OSError as error:
        raise EvidenceError(f"{root} can't be read: {error.strerror}") from error


def _is_run(folder: Path) -> bool:
    """Reports have such names too, but other files; one with none at all was a run, and so may be an unreadable one."""
    if not _RUN_ID.match(folder.name):
        return False
    try:
        names = {path.name for path in folder.iterdir()}
    except OSError:
        return True
    return not names or not names.isdisjoint((PLAN, APPROVAL, EVENTS))


def _row(folder: Path) -> RunRow:
    try:
        record = load_run(folder)
    except EvidenceError as error:
        return RunRow(folder.name, error=str(error))
    plan, events = record.plan, record.events
    return RunRow(
        record.run_id,
        str(record.state),
        plan.kind,
        plan.subject,
        plan.cluster_id,
        plan.digest,
        plan.made_by,
        ", ".join(approval.approved_by for approval in record.approvals),
        events[0].at,
        events[-1].at,
        len(events),
        record.sentence,
    )


def _number(path: Path) -> int:
    return int(path.stem.partition("-")[2])


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
