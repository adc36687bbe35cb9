"""Many groups between two protocols as fragments of HTML: a thousand groups in a few lines, and the first by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kit.engine.model.plan import Plan
from kit.engine.model.progress import DONE, UNDONE, WAITS, StepProgress, step_progress
from kit.engine.model.record import RunRecord
from kit.engine.model.step import Step
from kit.engine.rendering.text import shown
from kit.moves.protocol.brake import BRAKE
from kit.protocol.verdicts import GroupVerdict
from kit.text.quantity import quantity
from kit.text.visible import html_text
from widgets.protocol.fleet import ProtocolFleet
from widgets.run import html

MOST_ROWS = 200
LAST = 10
"""Steps that have ended and are still shown beside those at work."""


def totals(model: ProtocolFleet) -> str:
    """Groups by stage, how many of them can be moved now, and what was not read."""
    seen = model.seen
    stages = ", ".join(f"{html_text(stage)}: {count:,}" for stage, count in seen.by_stage.items()) or "none"
    problems = html.alert(f"{quantity(len(seen.problems), 'read')} failed: {'; '.join(seen.problems[:3])}")
    return (
        f"<p><strong>{quantity(len(seen.rows), 'group')}</strong> by stage: {stages}. Can be moved to the"
        f" {model.to_protocol} protocol now ({model.how}): <strong>{len(model.can_move):,}</strong>."
        f" Read at {seen.observed_at:%H:%M:%S} UTC.</p>" + (problems if seen.problems else "")
    )


def groups(model: ProtocolFleet) -> str:
    """The groups, at most ``MOST_ROWS``: those that can't be moved come first."""
    rows = model.seen.rows
    heads = ("group", "stage", "members", "can be moved", "blocked by, or unknown", "warnings", "to answer")
    more = f"<p>The first {MOST_ROWS} of {len(rows):,} groups.</p>" if len(rows) > MOST_ROWS else ""
    lines = [_line(each, model.answer(each)) for each in rows[:MOST_ROWS]]
    return more + html.table(heads, lines, numbers={2})


def _line(row: GroupVerdict, answer: str | None) -> tuple[str, ...]:
    # The verdict has the checks of both ways of replacing members.
    why = () if answer in ("yes", "done") else (*row.blocked_by, *row.unknown) or ((row.error,) if row.error else ())
    words = (", ".join(why), ", ".join(row.warnings), ", ".join(row.to_answer))
    mark = html_text("no members" if answer is None else answer)
    shown_answer = f'<span class="good">✓ {mark}</span>' if answer == "yes" else mark
    texts = (html_text(row.group_id), html_text(row.stage), html.number(row.n_members), shown_answer)
    return (*texts, *(html_text(each) for each in words))


def changes(plan: Plan) -> str:
    """A row per group and per brake, in the order of the plan; at most ``MOST_ROWS``."""
    parts = [(name, list(steps)) for name, steps in groupby(plan.steps, _place)]
    more = f"<p>The first {MOST_ROWS} of {quantity(len(parts), 'row')}.</p>" if len(parts) > MOST_ROWS else ""
    lines = [
        (
            "<em>brake</em>" if name is None else html_text(name),
            html_text(str(len(steps))),
            html_text("; ".join(shown(each.title) for each in steps)),
        )
        for name, steps in parts[:MOST_ROWS]
    ]
    return more + html.table(("group", "steps", "what"), lines, numbers={1})


def progress(record: RunRecord | None) -> str:
    """Return how many groups are done, and the steps that are at work, failed or ended last."""
    if record is None:
        return html.progress(None)
    steps = step_progress(record)
    done = [name for name, part in groupby(zip(record.plan.steps, steps), lambda it: _place(it[0])) if _are(part, DONE)]
    groups = [name for name in done if name is not None]
    n_all = quantity(len(record.plan.targets), "group")
    shown_steps, left = _around(steps)
    lines = [
        (
            str(it.number),
            html_text(it.title),
            f"{html.PHASE_MARKS.get(it.phase, '…')} {it.phase}",
            f"{it.n_done} of {it.n_items}" if it.n_items else "–",
            "–" if it.seconds is None else f"{it.seconds:.1f} s",
            html_text(it.sentence),
        )
        for it in shown_steps
    ]
    rest = f" {quantity(left, 'step')} not shown." if left else ""
    heads = ("step", "what", "progress", "items", "took", "last message")
    return f"<p><strong>{len(groups):,} of {n_all}</strong> moved by this run.{rest}</p>{html.table(heads, lines)}"


def _place(step: Step) -> str | None:
    """The group of a step; None: it is the brake between two waves."""
    return None if step.kind == BRAKE else str(step.parameters["group"])


def _are(part: Iterable[tuple[Step, StepProgress]], phase: str) -> bool:
    return all(it.phase == phase for _, it in part)


def _around(steps: Sequence[StepProgress]) -> tuple[list[StepProgress], int]:
    """The steps that are at work or failed, the last that ended, the next that wait; and how many are left out."""
    if len(steps) <= MOST_ROWS:
        return list(steps), 0
    ended = [it for it in steps if it.phase in (DONE, UNDONE)][-LAST:]
    waiting = [it for it in steps if it.phase == WAITS][:LAST]
    at_work = [it for it in steps if it.phase not in (DONE, UNDONE, WAITS)]
    found = sorted({*ended, *at_work, *waiting}, key=lambda it: it.number)
    return found, len(steps) - len(found)
