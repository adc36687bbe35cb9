"""Plans and runs as HTML that needs nothing else: no script, no network, readable in light and in dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.record import RunRecord
from kit.engine.model.states import RunState
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.engine.rendering.review import answers, heading, moment
from kit.engine.rendering.text import (
    change_sentence,
    describe_way_back,
    observation_rows,
    plan_rows,
    worded,
    worded_json,
)
from kit.engine.rendering.timeline import STYLE as TIMELINE_STYLE, timeline_svg
from kit.text.visible import html_text

_STYLE = """
:root { color-scheme: light dark; --text: #1c2733; --soft: #5b6773; --line: #d5dce3; --head: #f2f5f8; --page: #fff;
  --good: #17663a; --bad: #a8201a; --open: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e9ee; --soft: #9fabb6; --line: #3a454f; --head: #222b33;
  --page: #151b20; --good: #6fd29a; --bad: #ff9389; --open: #f0c060; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 2rem auto; padding: 0 1rem;
  color: var(--text); background: var(--page); }
h1 { font-size: 1.6rem; } h2 { margin-top: 2.2rem; border-bottom: 1px solid var(--line); }
.wide { overflow-x: auto; margin-bottom: 1rem; } table { border-collapse: collapse; font-size: 13px; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; vertical-align: top; }
th { background: var(--head); white-space: nowrap; }
td { white-space: pre-wrap; overflow-wrap: break-word; max-width: 40rem; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; } .soft { color: var(--soft); }
.good { color: var(--good); } .bad { color: var(--bad); } .open { color: var(--open); }
@page { size: landscape; margin: 12mm; }
@media print { :root { --text: #000; --soft: #333; --page: #fff; --head: #eee; --line: #999; } body { margin: 0;
  max-width: none; } .wide { overflow: visible; } table { font-size: 10px; } td { overflow-wrap: anywhere; }
  h2 { break-after: avoid; } svg, tr { break-inside: avoid; } svg { max-width: 100%; height: auto; } }
"""


class _Lines(tuple[str, ...]):
    """Lines of one cell: those of a traceback stay lines, a name's newline makes none."""


class _Code(str):
    """To be copied; it may wrap anywhere."""


_GOOD = {RunState.VERIFIED, RunState.UNDONE}
_BAD = {RunState.FAILED, RunState.UNDO_HALTED, RunState.STALE}


def record_html(record: RunRecord) -> str:
    """One page of evidence: how it ended, who agreed, what was done to each item, and all that happened."""
    state = record.state
    mood = "good" if state in _GOOD else "bad" if state in _BAD else "open"
    approvals = [
        (it.approved_by, *(moment(at.isoformat()) for at in (it.approved_at, it.expires_at)), _Code(it.digest))
        for it in record.approvals
    ]
    parts = [
        f'<p class="soft">Run <code>{_text(record.run_id)}</code></p>',
        f'<p><strong class="{mood}">{state}</strong> {_text(record.sentence)}</p>',
        *(f'<p class="open">{_text(note)}</p>' for note in record.notes),
        _answers(answers(record)),
        "<h2>When</h2>",
        timeline_svg(record) or "<p>No step was begun.</p>",
        "<h2>Approval</h2>",
        _table(("approved by", "at", "until", "plan"), approvals),
        "<h2>Changes</h2>",
        _table(("step", "item", "outcome", "effect", "why"), _outcomes(record.events)),
        "<h2>Plan</h2>",
        plan_section(record.plan),
        "<h2>Other events</h2>",
        _table(("at", "state", "event", "step", "item", "outcome", "what", "ms"), _others(record.events)),
    ]
    return _page(heading(record), "\n".join(parts))


def _answers(rows: Iterable[tuple[str, str]]) -> str:
    lines = (f'<tr><th scope="row">{_text(name)}</th><td>{_text(value)}</td></tr>' for name, value in rows)
    return f'<div class="wide"><table><tbody>{"".join(lines)}</tbody></table></div>'


def plan_section(plan: Plan) -> str:
    """The plan as a fragment of HTML, for a page or a widget that brings its own style."""
    changes = [(row["number"], row["title"], row["item"], row["before"], row["after"]) for row in plan_rows(plan)]
    observed = [(row["name"], row["value"], row["tolerance"]) for row in observation_rows(plan)]
    failing = "undo the executed steps" if plan.on_failure == "undo" else "stop there"
    parts = [
        f"<p>{_text(plan.kind)} of <strong>{_text(plan.subject)}</strong> on cluster {_text(plan.cluster_id)}, planned"
        f" by {_text(plan.made_by)} at {moment(plan.made_at.isoformat())}. If a step fails: {failing}. Undo:"
        f" {describe_way_back(plan)}.</p>",
        f"<p>Digest <code>{plan.digest}</code></p>",
        _table(("step", "what", "item", "before", "after"), changes),
        _table(("step", "begins when", "verified when", "within", "undo", "performed by"), map(_terms, plan.steps)),
        _listed("Risks", plan.risks),
        _listed("Overridden rules", (f"{name}: {reason}" for name, reason in plan.overridden.items())),
        _table(("observed", "value", "may move"), observed),
        _table(("parameter", "value"), plan.parameters.items()),
        _listed("Groups", plan.targets if len(plan.targets) > 1 else ()),
    ]
    return "\n".join(part for part in parts if part)


def _page(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}{TIMELINE_STYLE}</style></head><body>\n"
        f"<h1>{_text(title)}</h1>\n{body}\n</body></html>\n"
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[Json]]) -> str:
    """No table where there are no rows."""
    lines = ["<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    if not lines:
        return ""
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in heads)
    body = "\n".join(lines)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _listed(title: str, items: Iterable[str]) -> str:
    lines = "".join(f"<li>{_text(item)}</li>" for item in items)
    return f"<p>{_text(title)}</p><ul>{lines}</ul>" if lines else ""


def _terms(step: Step) -> tuple[Json, ...]:
    undo = step.undo or f"cannot be undone: {step.cannot_be_undone}"
    return (
        step.step_id,
        step.precondition,
        step.verification,
        f"{step.deadline_s:g} s",
        undo,
        step.performed_by or step.needs_person,
    )


def _outcomes(events: Sequence[Event]) -> Iterable[tuple[Json, ...]]:
    for it in events:
        if it.event in ("acted", "undone"):
            step = it.step_id if it.event == "acted" else f"undo of {it.step_id}"
            yield step, it.item, it.outcome, change_sentence(it.outcome, it.before, it.after), it.error


def _others(events: Sequence[Event]) -> Iterable[tuple[Json, ...]]:
    for it in events:
        if it.event not in ("acted", "undone"):
            lines = _Lines(
                part for part in (it.sentence, *(it.error or "").split("\n"), worded_json(it.details)) if part
            )
            yield it.at, it.state, it.event, it.step_id, it.item, it.outcome, lines, it.duration_ms


def _text(value: Json) -> str:
    if isinstance(value, _Lines):
        return "\n".join(map(_text, value))
    if isinstance(value, _Code):
        return f"<code>{html_text(value)}</code>"
    return html_text(worded(value))
