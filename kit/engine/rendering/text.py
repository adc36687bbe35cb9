"""Plans and runs as text for a terminal and as rows for a table; their pages are in ``pages``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kit.engine.model.event import Event
from kit.engine.model.observation import WITHIN, Observation
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import Consent, Plan
from kit.engine.model.record import RunRecord
from kit.engine.model.step import Step
from kit.engine.model.values import Json, canonical, parse_json
from kit.text.visible import visible


def shown(value: Json) -> str:
    """A value for a person: text made visible, nothing as a dash, the rest as JSON."""
    return visible("–" if value is None else value if isinstance(value, str) else canonical(value))


def worded(value: Json) -> str:
    """A value in words rather than JSON; a member that was replaced as one describes it. Not escaped.

    >>> worded({"flavour": "MEZKCC", "member": "g_1", "host": ""}), worded({"OZKCC": ["a", "b"], "KC": []})
    ('MEZKCC g_1', 'OZKCC: a, b; KC: none')
    """
    if isinstance(value, Mapping):
        if "flavour" in value and "member" in value:
            host = f" on {value['host']}" if value.get("host") else ""
            said = f"; the deployer reported: {value['said']}" if value.get("said") else ""
            return f"{value['flavour']} {value['member']}{host}{said}"
        return "; ".join(f"{name}: {_nested(each)}" for name, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(_nested(each) for each in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value is None else value if isinstance(value, str) else canonical(value)


def worded_json(text: str | None) -> str | None:
    """Return :func:`worded` of an event's column, which is JSON text."""
    if text is None:
        return None
    try:
        value: Any = parse_json(text)
    except ValueError:
        return text
    return worded(value)


def change_sentence(outcome: str | None, before: str | None, after: str | None) -> str:
    """Return the outcome of one item in words, by the columns of its event. Not escaped.

    >>> change_sentence("CONFIRMED", '"zookeeper"', '"kafka"'), change_sentence("REFUSED", "7", None)
    ('Before: zookeeper. Now: kafka.', 'Nothing was written. The value was 7.')
    """
    was, now = ("absent" if text in (None, "null") else worded_json(text) for text in (before, after))
    if outcome == Outcome.CONFIRMED:
        return f"Before: {was}. Now: {now}."
    if outcome == Outcome.UNCHANGED:
        return f"Nothing was written. The value is {now}."
    if outcome == Outcome.UNKNOWN:
        return f"Before: {was}. The present value is not known."
    return f"Nothing was written. The value was {was}."


def _nested(value: Json) -> str:
    return f"({worded(value)})" if isinstance(value, Mapping) and value else worded(value)


def plan_rows(plan: Plan) -> list[dict[str, Json]]:
    """One row per change, in order; a step without changes is one row whose item is None.

    Columns: number (of the step, from 1), step_id, kind, title, item, before, after, undo, cannot_be_undone,
    needs_person, performed_by, deadline_s.
    """
    return [
        {
            "number": number,
            "step_id": step.step_id,
            "kind": step.kind,
            "title": step.title,
            "item": item,
            "before": before,
            "after": after,
            "undo": step.undo,
            "cannot_be_undone": step.cannot_be_undone,
            "needs_person": step.needs_person,
            "performed_by": step.performed_by,
            "deadline_s": step.deadline_s,
        }
        for number, step in enumerate(plan.steps, 1)
        for item, before, after in _changes(step)
    ]


def observation_rows(plan: Plan) -> list[dict[str, Json]]:
    """One row per observation: name, value, tolerance (in words)."""
    return [{"name": name, "value": it.value, "tolerance": tolerance(it)} for name, it in plan.observed.items()]


def plan_text(plan: Plan) -> str:
    """The plan for a terminal: what it is, what it saw, each step with before → after, the risks, the digest."""
    return "\n".join(map(shown, _plan_lines(plan))) + "\n"


def record_text(record: RunRecord) -> str:
    """A run for a terminal: its state, its approvals, its events."""
    return "\n".join(map(shown, _record_lines(record))) + "\n"


def event_text(event: Event) -> str:
    """One event as one line."""
    about = "/".join(part for part in (event.step_id, event.item) if part)
    change = f"{event.before} → {event.after}" if event.item and (event.before or event.after) else None
    sentence = event.error if event.event == "acted" or event.sentence is None else event.sentence
    what = event.state if event.event == "moved" else event.event
    first = None if sentence is None else sentence.splitlines()[0]
    parts = (event.at, f"{what:<12}", event.outcome, about or None, change, first)
    return shown(" ".join(part for part in parts if part))


def hours(seconds: float) -> str:
    """A time limit in words."""
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"


def tolerance(observation: Observation) -> str:
    """Return how far it may move, in words."""
    if observation.tolerance == WITHIN:
        return f"within {observation.within:g}"
    return observation.tolerance.replace("_", " ")


def describe_consent(consent: Consent) -> str:
    """Return who approves such a plan, what is typed, for how long that holds."""
    person = "a second person" if consent.second_person else "a person"
    limit = "" if consent.longest_hours is None else f"; it holds for {hours(consent.longest_hours * 3600)} at most"
    return f"by {person} who types {consent.subject!r}{limit}"


def describe_way_back(plan: Plan) -> str:
    """Return whether a run of it can be undone, and until when without a new approval: as a run offers it.

    A run offers no undo from the first write on that can't be undone; before it only what writes is undone.
    """
    until = f"without a new approval until {hours(plan.way_back_s)} after its start"
    writing = [(number, step) for number, step in enumerate(plan.steps, 1) if step.changes]
    stuck = [number for number, step in writing if step.cannot_be_undone is not None]
    if not stuck:
        return f"the run can be undone {until}"
    if stuck[0] == writing[0][0]:
        return "the run can't be undone"
    return f"from step {stuck[0]} on the run can't be undone; before that it can, {until}"


def _plan_lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.name} on cluster {plan.cluster_id}"
    yield f"planned by {plan.made_by} at {plan.made_at.isoformat()}"
    if plan.consent is not None:
        yield f"approval: {describe_consent(plan.consent)}"
    if len(plan.targets) > 1:
        yield f"groups: {', '.join(plan.targets)}"
    yield from _pairs("parameters", ((name, shown(value)) for name, value in plan.parameters.items()))
    observed = plan.observed.items()
    yield from _pairs("observed", ((name, f"{shown(it.value)}  ({tolerance(it)})") for name, it in observed))
    for number, step in enumerate(plan.steps, 1):
        yield from _step_lines(number, step)
    yield from _listed("risks", plan.risks)
    yield from _pairs("overridden rules", plan.overridden.items())
    yield ""
    yield f"if a step fails: {'undo the executed steps' if plan.on_failure == 'undo' else 'stop there'}"
    yield f"undo: {describe_way_back(plan)}"
    yield f"digest: {plan.digest}"


def _step_lines(number: int, step: Step) -> Iterator[str]:
    yield ""
    yield f"{number}. {step.title}  [{step.kind}]"
    if step.performed_by:
        yield f"   {'manually, by' if step.needs_person else 'by'}: {step.performed_by}"
    elif step.needs_person:
        yield f"   manually: {step.needs_person}"
    yield f"   before:  {step.precondition}"
    rows = [(item, shown(before), shown(after)) for item, before, after in _changes(step) if item is not None]
    widths = [max((len(shown(row[column])) for row in rows), default=0) for column in (0, 1)]
    for item, before, after in rows:
        yield f"   {shown(item):<{widths[0]}}  {before:>{widths[1]}} → {after}"
    yield f"   verify:  {step.verification} (within {step.deadline_s:g} s)"
    yield f"   undo:    {step.undo}" if step.undo else f"   cannot be undone: {step.cannot_be_undone}"


def _record_lines(record: RunRecord) -> Iterator[str]:
    plan = record.plan
    yield f"{record.run_id}: {record.state}"
    yield record.sentence
    yield f"{plan.name.rstrip(',')}, plan {plan.digest[:8]}, by {plan.made_by}"
    for approval in record.approvals:
        yield f"approved by {approval.approved_by} until {approval.expires_at.isoformat()}"
    yield from record.notes
    yield ""
    yield from map(event_text, record.events)


def _changes(step: Step) -> list[tuple[str | None, Json, Json]]:
    return [(it.item, it.before, it.after) for it in step.changes] or [(None, None, None)]


def _pairs(title: str, pairs: Iterable[tuple[str, Json]]) -> Iterator[str]:
    rows = [(shown(name), shown(value)) for name, value in pairs]
    width = max((len(name) for name, _ in rows), default=0)
    return _listed(title, (f"{name:<{width}}  {value}" for name, value in rows))


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    lines = list(lines)
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)
