"""A run as a picture in its page: a line per step and per item, a bar per stretch of work. No script, no network."""

from __future__ import annotations

from collections.abc import Iterator

from kit.engine.model.record import RunRecord
from kit.engine.rendering.stretches import PHASES, Stretch, item_stretches, step_stretches
from kit.text.visible import cell, html_text

MAX_LINES = 60
MAX_LABEL = 48
STYLE = """
svg.timeline { max-width: 100%; height: auto; }
svg.timeline text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg.timeline .soft { fill: var(--soft); } svg.timeline .grid { stroke: var(--line); }
.checking { fill: #9db8d2; } .acting { fill: #d1603d; } .verifying { fill: #4f86c6; } .undoing { fill: #8a6d9e; }
"""
_LEFT, _WIDTH, _HEIGHT = 340, 640, 22


def timeline_svg(record: RunRecord) -> str:
    """Empty where nothing was worked on. Items follow their step; at most ``MAX_LINES`` lines are shown, the first
    ones.
    """
    steps, items = list(step_stretches(record)), list(item_stretches(record))
    if not steps:
        return ""
    lines = list(_lines(record, steps, items))
    drawn = lines[:MAX_LINES]
    first = min(stretch.began_at for stretch in steps)
    total = max((max(stretch.ended_at for stretch in steps) - first).total_seconds(), 0.001)
    height = _HEIGHT * (len(drawn) + 2)
    parts = [f'<svg class="timeline" viewBox="0 0 {_LEFT + _WIDTH + 20} {height}" width="{_LEFT + _WIDTH + 20}">']
    parts += _axis(total, height)
    for number, (label, indent, stretches) in enumerate(drawn):
        parts.append(_text(4 + indent, _HEIGHT * number + 15, label))
        for stretch in stretches:
            start = (stretch.began_at - first).total_seconds() / total
            parts.append(_bar(stretch, _LEFT + _WIDTH * start, _HEIGHT * number + 5, _WIDTH * stretch.seconds / total))
    left_out = f'<p class="soft">{len(drawn)} of {len(lines)} lines are shown.</p>' if len(drawn) < len(lines) else ""
    return "".join([*parts, *_legend(height), "</svg>", left_out])


def _lines(record: RunRecord, steps: list[Stretch], items: list[Stretch]) -> Iterator[tuple[str, int, list[Stretch]]]:
    """Label, indent, stretches."""
    for number, step in enumerate(record.plan.steps, 1):
        mine = [stretch for stretch in steps if stretch.step_id == step.step_id]
        if not mine:
            continue
        yield f"{number}. {step.title}", 0, mine
        names = dict.fromkeys(stretch.item for stretch in items if stretch.step_id == step.step_id)
        for name in names if len(names) > 1 else ():
            yield name, 18, [each for each in items if each.step_id == step.step_id and each.item == name]


def _axis(total: float, height: int) -> Iterator[str]:
    for part in range(5):
        x = _LEFT + _WIDTH * part / 4
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 2 * _HEIGHT}"/>'
        anchor = "end" if part == 4 else "start" if part == 0 else "middle"
        yield _text(x, height - 2 * _HEIGHT + 14, f"{total * part / 4:,.1f} s", anchor, "soft")


def _legend(height: int) -> Iterator[str]:
    for number, phase in enumerate(PHASES):
        x = _LEFT + 130 * number
        yield f'<rect class="{phase.replace(" ", "-")}" x="{x}" y="{height - 17}" width="12" height="12"/>'
        yield _text(x + 18, height - 6, phase, style="soft")


def _bar(stretch: Stretch, x: float, y: int, width: float) -> str:
    title = html_text(f"{stretch.phase}, {stretch.seconds:,.2f} s")
    size = f'x="{x:.1f}" y="{y}" width="{max(width, 2):.1f}" height="12"'
    return f'<rect class="{stretch.phase.replace(" ", "-")}" {size}><title>{title}</title></rect>'


def _text(x: float, y: int, text: str, anchor: str = "start", style: str = "") -> str:
    shown = cell(text)
    shown = shown if len(shown) <= MAX_LABEL else f"{shown[: MAX_LABEL // 2]}…{shown[1 - MAX_LABEL // 2 :]}"
    return f'<text class="{style}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{html_text(shown)}</text>'
