"""Many groups as fragments of HTML: a thousand groups in a few lines, and the important ones by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import polars as pl

from kit.engine.model.plan import Plan
from kit.engine.model.progress import step_progress
from kit.engine.model.record import RunRecord
from kit.engine.model.step import Step
from kit.engine.rendering.text import shown
from kit.errors import InputError
from kit.moves.fleet.frames import failed_groups, stages
from kit.moves.fleet.plan import READY
from kit.moves.fleet.wave import WAVE
from kit.operations.frames import matching
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.visible import html_text
from widgets.fleet.model import Scan
from widgets.run.html import PHASE_MARKS, alert, bar, flavours, number, table

MOST_ROWS = 200
_FIRST = 3
_COLOURS = {
    "OZKCC": "#7d8ca3",
    "canary MEZKCC": "#7db3dd",
    "all MEZKCC": "#2f7dc4",
    "Kafka coordination": "#2e9e6b",
    "canary KC": "#8fbc5a",
    "all KC": "#c2a83e",
    "empty": "#b5b5b5",
    "unsafe mix": "#c0392b",
    "unknown": "#d9822b",
}


def where(seen: Scan, to: str) -> str:
    """All groups by stage, as a bar and in numbers, and how many of them are ready."""
    counts, n_unread = stages(seen.rows), seen.n_unread
    parts = [(stage, count) for stage, count in counts.select("stage", "n_groups").rows()]
    totals = (
        f"<p><strong>{quantity(len(seen.rows), 'group')}</strong>; ready for {STORE_NAMES[to]}'s assignment: "
        f"<strong>{counts['n_ready'].sum():,}</strong>. Read at {seen.observed_at:%H:%M:%S} UTC.</p>"
    )
    heads = ("stage", "groups", "ready", "blocked", "members too new")
    lines = [
        (f"{_swatch(row[0])}{html_text(row[0])}", *(number(count) if count else "–" for count in row[1:]))
        for row in counts.rows()
    ]
    unread = (
        f"{quantity(n_unread, 'read')} failed. Groups that could not be read are not "
        "toggled: `offramp groups` shows the reason."
        if n_unread
        else ""
    )
    return totals + alert(unread) + _stack(parts) + table(heads, lines, numbers={1, 2, 3, 4}) + flavours()


def groups(rows: pl.DataFrame, stage: str, pattern: str, only_not_ready: bool) -> str:
    """Some of the groups, at most ``MOST_ROWS``: the stage of each, and why it is not ready."""
    try:
        chosen = matching(rows, pattern)
    except InputError as error:
        return alert(str(error))
    chosen = chosen.filter(pl.col("stage") == stage) if stage else chosen
    chosen = chosen.filter(pl.col("not_ready_reason").is_not_null()) if only_not_ready else chosen
    count = f"{quantity(len(chosen), 'group')}."
    if len(chosen) > MOST_ROWS:
        count = f"The first {MOST_ROWS} of {len(chosen):,} groups; filter by stage or name to see more groups."
    lines = [
        (html_text(group), html_text(at), html_text(mode or "no znode"), number(members), _ready(not_ready_reason))
        for group, at, mode, members, not_ready_reason in chosen.head(MOST_ROWS).select(*_SHOWN).rows()
    ]
    heads = ("group", "stage", "toggle", "ZooKeeper members", "ready")
    return f'<p class="soft">{count}</p>' + table(heads, lines, numbers={3})


def requested(rows: pl.DataFrame, to: str, wave: int, pause_s: float) -> str:
    """Return what a plan made now would toggle."""
    n_ready = rows["not_ready_reason"].null_count()
    size = min(wave, n_ready) if wave > 0 else n_ready
    waves = -(-n_ready // size) if size else 0
    how = "all at once" if waves < 2 else f"in {waves} waves of at most {size}, with {pause_s:g} s between them"
    if waves == 1 and n_ready > 1 and to == KAFKA:
        how += "; the rule all_at_once forbids that, so take fewer groups at a time"
    ready = f"Ready: {n_ready:,} of {quantity(len(rows), 'requested group')}"
    return f"<p>{ready}{f', toggled {how}' if n_ready else ''}. All other groups are not changed.</p>"


def changes(plan: Plan) -> str:
    """A row per wave and per pause; the groups of a wave can be unfolded."""
    lines = [
        (str(at), html_text(shown(step.title)), *(_wave(step) if step.kind == WAVE else _pause(step)))
        for at, step in enumerate(plan.steps, 1)
    ]
    return table(("step", "what", "groups", "before", "after", "undo"), lines)


def progress(record: RunRecord | None) -> str:
    """Return how many groups are toggled, then each wave: its progress and its failed groups."""
    if record is None:
        return '<p class="soft">No run yet: approve a plan, then press “Execute the plan”.</p>'
    failed = failed_groups(record)
    steps = step_progress(record)
    done, total = sum(it.n_done for it in steps), sum(it.n_items for it in steps)
    lines = [
        (
            str(it.number),
            html_text(it.title),
            f"{PHASE_MARKS.get(it.phase, '…')} {it.phase}",
            bar(it.n_done, it.n_items) if it.n_items else "–",
            "–" if it.seconds is None else f"{it.seconds:.1f} s",
            _failed(failed.filter(step=it.step_id)) or html_text(it.sentence),
        )
        for it in steps
    ]
    heads = ("step", "what", "progress", "groups toggled", "took", "last message")
    return f"<p><strong>{done:,} of {quantity(total, 'group')}</strong> toggled by this run.</p>{table(heads, lines)}"


def all_back(rows: pl.DataFrame) -> str:
    count = len(rows.filter(stage=READY[ZOOKEEPER]))
    sentence = (
        f"“All back at once” plans ZooKeeper's assignment for all groups in Kafka coordination, {count:,} now. "
        "If a run is in progress, press Stop first."
    )
    return f'<p class="soft">{sentence}</p>'


_SHOWN = ("group_id", "stage", "mode", "n_members", "not_ready_reason")


def _ready(not_ready_reason: str | None) -> str:
    return '<span class="good">✓ ready</span>' if not_ready_reason is None else f"· {html_text(not_ready_reason)}"


def _wave(step: Step) -> tuple[str, ...]:
    before = Counter("no znode" if change.before is None else shown(change.before) for change in step.changes)
    counted = "; ".join(f"{value} ({count})" if len(before) > 1 else value for value, count in before.items())
    names = [str(name) for name in step.parameters["groups"]]  # type: ignore[union-attr]
    return _named(names), html_text(counted), html_text(shown(step.changes[0].after)), html_text(shown(step.undo))


def _pause(step: Step) -> tuple[str, ...]:
    return f"continues if {html_text(step.verification)}", "", "", html_text(shown(step.undo))


def _named(names: Sequence[str]) -> str:
    if len(names) <= _FIRST:
        return html_text(", ".join(names))
    summary = f"{quantity(len(names), 'group')}, {names[0]} to {names[-1]}"
    return f"<details><summary>{html_text(summary)}</summary>{html_text(', '.join(names))}</details>"


def _failed(failed: pl.DataFrame) -> str:
    if failed.is_empty():
        return ""
    names = failed["group_id"].to_list()
    summary = shortened(names, _FIRST)
    lines = "".join(
        f"<li>{html_text(group)}: {html_text(why)}</li>" for group, why in failed.select("group_id", "why").rows()
    )
    return f'<details><summary class="bad">✗ {html_text(summary)}</summary><ul>{lines}</ul></details>'


def _stack(parts: Iterable[tuple[str, int]]) -> str:
    """A bar; the table below it has the words."""
    pieces = "".join(f'<i style="flex:{count} 1 0;background:{_COLOURS[stage]}"></i>' for stage, count in parts)
    return f'<div class="directions" aria-hidden="true">{pieces}</div>'


def _swatch(stage: str) -> str:
    square = "display:inline-block;width:.7em;height:.7em;margin-right:.4em"
    return f'<i aria-hidden="true" style="{square};background:{_COLOURS[stage]}"></i>'
