"""A model's values as fragments of HTML: pure, escaped, with words beside every colour and mark."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from kit.engine.execution.dry_run import DryRun
from kit.engine.model.plan import Plan
from kit.engine.model.progress import step_progress
from kit.engine.model.record import REPORT, RunRecord
from kit.engine.model.states import RunState
from kit.engine.rendering.review import stood_still
from kit.engine.rendering.text import describe_consent, describe_way_back, event_text, plan_rows, shown
from kit.groups.analyze.flavours import FLAVOURS
from kit.moves.group.frames import member_lag
from kit.moves.group.group_state import GroupState
from kit.moves.group.plan import PATH
from kit.presentation.headings import heading
from kit.tables.conditions import Condition
from kit.tables.groups import STORE_NAMES
from kit.text.quantity import quantity
from kit.text.regular_file import read_regular
from kit.text.visible import html_source, html_text

LAST_EVENTS = 60
LARGEST_PAGE = 1_000_000
"""Bytes of evidence; the browser gets the page twice. A larger page is opened from its file."""
WIDTH, HEIGHT = 300, 90
_MOODS = {
    RunState.VERIFIED: ("good", "✓"),
    RunState.UNDONE: ("good", "✓"),
    RunState.FAILED: ("bad", "✗"),
    RunState.UNDO_HALTED: ("bad", "✗"),
    RunState.STALE: ("bad", "✗"),
}
PHASE_MARKS = {"done": "✓", "undone": "↩", "halted": "✗", "not begun": "·"}


def stages(stage: str, wanted: str, advice: str) -> str:
    """The path as a row of boxes, the group's stage marked, and the next action.

    The boxes say only where each stage lies on the path: a group may have skipped stages, or started late on the path.
    """
    on_path = stage in PATH
    off = "" if on_path else f'<p class="bad">✗ The group is not on this path. Its stage is {html_text(stage)}.</p>'
    return f"{way(PATH, stage, wanted, 'the group is here')}{flavours()}{off}<p>Next: {html_text(advice)}</p>"


def way(names: Sequence[str], stage: str, wanted: str, word: str) -> str:
    """Stages as a row of boxes; ``word`` marks the one that is reached."""
    here = names.index(stage) if stage in names else -1
    items = "".join(_stage(number, name, here, wanted, word) for number, name in enumerate(names))
    return f'<ol class="stages" aria-label="Stages of the migration">{items}</ol>'


def flavours() -> str:
    """The meaning of the stages' abbreviations."""
    spelled = "; ".join(f"<strong>{name}</strong>: {words}" for name, words in FLAVOURS.items())
    return f'<p class="soft">{spelled}.</p>'


def members(state: GroupState, has_toggle: bool = True) -> str:
    """The members: flavour, host, partitions as a bar and in words, lag; the toggle's content if there can be one."""
    n_all = len(state.partitions)
    rows = [
        (
            html_text(member.member_id),
            html_text(member.flavour),
            html_text(member.host or "–"),
            bar(len(member.partitions), n_all),
            number(member_lag(state, member)),
        )
        for member in state.members
    ]
    counts = (
        f"{quantity(len(rows), 'member')}, {quantity(n_all, 'partition')}, {len(state.unconsumed):,} without a member."
    )
    heads = ("member", "flavour", "host", "partitions", heading("lag"))
    coordination = f" {toggle(state)}" if has_toggle else ""
    return f"<p>{counts}{coordination}</p>" + table(heads, rows, numbers={4})


def toggle(state: GroupState) -> str:
    """Return the content of the toggle znode, and the assignment that the group follows, as an escaped sentence."""
    znode = "There is no toggle znode" if state.mode is None else f"The toggle znode holds {state.mode!r}"
    if state.effective_mode is None:
        return f"{html_text(znode)}. It is not known whose assignment the group follows."
    name = STORE_NAMES.get(state.effective_mode, state.effective_mode)
    return f"{html_text(znode)}. The group follows <strong>{html_text(name)}</strong>'s assignment."


def lag_chart(lags: Sequence[tuple[datetime, int | None]]) -> str:
    """The group's lag over the last minutes, as a line and in words."""
    known = [(at, lag) for at, lag in lags if lag is not None]
    if not known:
        return "<p>The lag is not known: no partition has a committed offset and a known end of its log.</p>"
    first, last = known[0][0], known[-1][0]
    seconds = max((last - first).total_seconds(), 1.0)
    most = max(1, max(lag for _, lag in known))
    points = " ".join(
        f"{40 + (WIDTH - 44) * (at - first).total_seconds() / seconds:.1f},{_y(lag, most):.1f}" for at, lag in known
    )
    sentence = f"Lag now {quantity(known[-1][1], 'record')}; at most {most:,} in the last {seconds:.0f} s."
    return (
        f"<p>{sentence}</p>"
        f'<svg role="img" aria-label="{sentence}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}">'
        f'<line x1="40" y1="{_y(0, most)}" x2="{WIDTH}" y2="{_y(0, most)}"/>'
        f'<line x1="40" y1="{_y(most, most)}" x2="40" y2="{_y(0, most)}"/>'
        f'<text x="36" y="{_y(most, most) + 8}" text-anchor="end">{_short(most)}</text>'
        f'<text x="36" y="{_y(0, most)}" text-anchor="end">0</text>'
        f'<text x="40" y="{HEIGHT - 4}">{first:%H:%M:%S}</text>'
        f'<text x="{WIDTH}" y="{HEIGHT - 4}" text-anchor="end">{last:%H:%M:%S} UTC</text>'
        f'<polyline points="{points}"/></svg>'
    )


def checks(findings: Iterable[Condition]) -> str:
    """Each rule as a sentence, whether the rule is met, and the finding."""
    lines = []
    for each in findings:
        mood, word = _check_word(each)
        lines.append(
            f'<li><b class="{mood}">{word}</b><div>{html_text(_capital(each.holds.removesuffix(".")))}. '
            f'<span class="soft">{html_text(each.text)} (rule <code>{html_text(each.check_id)}</code>)</span>'
            "</div></li>"
        )
    return f'<ul class="checks" aria-label="Checks">{"".join(lines)}</ul>'


def steps(plan: Plan) -> str:
    """Every change of every step, before and after, with the step's undo."""
    return table(("step", "what", "item", "before", "after", "undo"), _plan_rows(plan))


def plan(plan: Plan | None, changes: Callable[[Plan], str] = steps, of_run: Plan | None = None) -> str:
    """Return who planned what, the ``changes``, the risks and the digest; without a plan that of the shown run."""
    if plan is None:
        hint = '<p class="soft">{}: press “Make the plan”. Planning reads the cluster and writes nothing.</p>'
        if of_run is None:
            return hint.format("No plan yet")
        return hint.format("This is the plan of the run below. For a new plan") + _plan(of_run, changes)
    return _plan(plan, changes)


def _plan(plan: Plan, changes: Callable[[Plan], str]) -> str:
    parts = [
        f"<p>{html_text(_capital(plan.kind))}{':' if plan.consent else ' of'} "
        f"<strong>{html_text(plan.subject)}</strong>, made by {html_text(plan.made_by)} "
        f"at {plan.made_at:%Y-%m-%d %H:%M:%S} UTC. If a step fails: "
        f"{'undo the executed steps' if plan.on_failure == 'undo' else 'stop at that step'}. "
        f"{_capital(describe_way_back(plan))}.</p>",
        f"<p>Approval: {html_text(describe_consent(plan.consent))}.</p>" if plan.consent else "",
        changes(plan),
        _list("Manually", (step.needs_person for step in plan.steps if step.needs_person)),
        _list("Risks", plan.risks),
        _list("Overridden rules", (f"{name}: {sentence}" for name, sentence in plan.overridden.items())),
        f"<p>Digest <code>{plan.digest}</code></p>",
    ]
    return "".join(parts)


def rehearsal(dry: DryRun | None) -> str:
    """Return whether the plan can begin now, and what has changed since it was made."""
    if dry is None:
        return ""
    if dry.differences:
        shown_here = [each.sentence for each in dry.differences[:LAST_EVENTS]]
        more = len(dry.differences) - len(shown_here)
        return _list(
            "✗ The plan is out of date: make a new plan", [*shown_here, *([f"and {more:,} more"] if more else [])]
        )
    first = dry.steps[0]
    mood, word = ("good", "✓ The plan can begin now") if first.can_begin else ("bad", "✗ The plan can't begin now")
    return f'<p><strong class="{mood}">{word}</strong>: {html_text(first.sentence)}.</p>'


def progress(record: RunRecord | None) -> str:
    """The progress of each step of a run, in words."""
    if record is None:
        return '<p class="soft">No run yet: approve a plan, then press “Execute the plan”.</p>'
    rows = [
        (
            str(it.number),
            html_text(it.title),
            f"{PHASE_MARKS.get(it.phase, '…')} {it.phase}",
            f"{it.n_done} of {it.n_items}" if it.n_items else "–",
            "–" if it.seconds is None else f"{it.seconds:.1f} s",
            html_text(it.sentence),
        )
        for it in step_progress(record)
    ]
    return table(("step", "what", "progress", "items", "took", "last message"), rows)


def verdict(record: RunRecord | None, is_here: bool = False) -> str:
    """The state of the shown run; ``is_here``: this process executes it."""
    if record is None:
        return ""
    mood, mark = _MOODS.get(record.state, ("open", "…"))
    sentence = "This notebook executes the run." if is_here else record.sentence
    parts = [
        f'<p><strong class="{mood}">{mark} {record.state}</strong> {html_text(sentence)}</p>',
        f'<p class="soft">Run <code>{html_text(record.run_id)}</code>, plan <code>{record.plan.digest[:12]}</code>, '
        f"approved by {html_text(', '.join(it.approved_by for it in record.approvals))}.</p>",
        *(f'<p class="open">{html_text(note)}</p>' for note in record.notes),
        *(f"<p>{html_text(sentence)}</p>" for sentence in stood_still(record)),
    ]
    return "".join(parts)


def proof(record: RunRecord | None) -> str:
    """The page of the evidence, when there is one: to read here and to download."""
    path = None if record is None else record.folder / REPORT
    if record is None or path is None or record.is_at_work or not path.exists():
        return ""
    size = path.stat().st_size
    if size > LARGEST_PAGE:
        return f"<p>Evidence: <code>{html_text(str(path))}</code> ({size / 1e6:.0f} MB: open that file)</p>"
    try:
        page = read_regular(path).decode()
    except (OSError, ValueError) as error:
        return f"<p>Evidence: <code>{html_text(str(path))}</code> can't be read: {html_text(str(error))}</p>"
    data = base64.b64encode(page.encode()).decode()
    return (
        f"<p>Evidence: <code>{html_text(str(path))}</code> · "
        f'<a download="{html_text(record.run_id)}.html" href="data:text/html;base64,{data}">download it</a></p>'
        f"<details><summary>Read it here</summary>"
        f'<iframe sandbox title="Evidence of run {html_text(record.run_id)}" srcdoc="{html_source(page)}"></iframe>'
        "</details>"
    )


def log(record: RunRecord | None) -> str:
    """The last events, the newest first."""
    if record is None:
        return ""
    lines = "".join(
        f"<div><code>{html_text(event_text(event))}</code></div>" for event in record.events[:-LAST_EVENTS:-1]
    )
    return f'<p>The last of {len(record.events)} events, the newest first.</p><div class="log">{lines}</div>'


def to_undo(record: RunRecord | None, titles: Sequence[str]) -> str:
    """Return what an undo of the shown run would undo, and what to type for it."""
    if record is None or not titles:
        return '<p class="soft">There is nothing to undo.</p>'
    name = f"<code>{html_text(record.plan.subject)}</code>"
    return (
        f'<p class="soft">An undo undoes: {html_text("; ".join(titles))}. To enable “Undo this run”, type {name}.</p>'
    )


def stage_before(stage: str) -> str:
    sentence = (
        f"The stage before the present stage is {stage}." if stage else "There is no stage before the present stage."
    )
    return f'<p class="soft">{html_text(sentence)}</p>'


def alert(text: str) -> str:
    return f'<div class="alert"><strong class="bad">✗ </strong>{html_text(text)}</div>' if text else ""


def not_drawn(error: Exception) -> str:
    return alert(f"offramp can't draw this part because of an error in offramp: {type(error).__name__}: {error}")


def todo(text: str) -> str:
    """Return what a person has to do now, a line each."""
    lines = "<br>".join(html_text(line) for line in text.splitlines())
    return f'<div class="todo">Do this now, manually: {lines}</div>' if text else ""


def waiting(text: str) -> str:
    return f'<p class="open">… {html_text(text)}</p>' if text else ""


def _stage(number: int, name: str, here: int, wanted: str, at: str) -> str:
    if number == here:
        kind, word, current = "here", at, ' aria-current="step"'
    elif name == wanted:
        kind, word, current = "wanted", "chosen", ""
    else:
        kind, word, current = ("past", "earlier", "") if number < here else ("ahead", "later" if here >= 0 else "", "")
    return f'<li class="{kind}"{current}>{number + 1}. {html_text(name)}<small>{word}</small></li>'


def _check_word(finding: Condition) -> tuple[str, str]:
    if finding.is_met is True:
        return "good", "✓ met"
    word = "? unknown" if finding.is_met is None else "✗ blocks" if finding.is_blocking else "! warns"
    return ("bad" if finding.is_blocking and finding.is_met is False else "open"), word


def _plan_rows(plan: Plan) -> list[tuple[str, ...]]:
    rows, last = [], None
    for row in plan_rows(plan):
        is_new = row["step_id"] != last
        back = row["undo"] or f"Cannot be undone: {row['cannot_be_undone']}"
        first = (str(row["number"]), shown(row["title"])) if is_new else ("", "")
        cells = (*first, *(shown(row[name]) for name in ("item", "before", "after")), shown(back) if is_new else "")
        rows.append(tuple(html_text(cell) for cell in cells))
        last = row["step_id"]
    return rows


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    """A table; its cells must be escaped already."""
    right = set(numbers)
    kinds = [' class="number"' if number in right else "" for number in range(len(heads))]
    head = "".join(f'<th scope="col"{kind}>{html_text(name)}</th>' for kind, name in zip(kinds, heads))
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds, row)) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _list(title: str, items: Iterable[str]) -> str:
    lines = "".join(f"<li>{html_text(item)}</li>" for item in items)
    return f"<p><strong>{html_text(title)}</strong></p><ul>{lines}</ul>" if lines else ""


def bar(count: int, total: int) -> str:
    percent = 100 * count / total if total else 0
    return f'<span class="bar" aria-hidden="true"><i style="width:{percent:.0f}%"></i></span>{count} of {total}'


def number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _short(value: int) -> str:
    return (
        f"{value / 1_000_000:.1f}M" if value >= 1_000_000 else f"{value / 1000:.1f}k" if value >= 10_000 else str(value)
    )


def _y(lag: int, most: int) -> float:
    return round(4 + (HEIGHT - 24) * (1 - lag / most), 1)
