"""Render what only the wizard of a move to KRaft shows, as fragments of HTML: the cluster, its nodes, orders to
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kit.engine.model.event import Event, at, items_of
from kit.engine.model.record import RunRecord
from kit.engine.rendering.text import shown
from kit.kraft.analyze.node_places import node_places
from kit.kraft.analyze.phase import PHASES, UNKNOWN
from kit.kraft.move.gates import GATES
from kit.kraft.move.overrides import OLD_CONSUMERS, STOPPED, left_behind, reported_stopped
from kit.kraft.status import KraftStatus
from kit.tables.conditions import SECOND_PERSON, Rule
from kit.text.visible import html_text
from widgets.run import html

_MARKS = {
    "CONFIRMED": "✓ done",
    "UNCHANGED": "✓ unchanged: already in this state",
    "REFUSED": "✗ refused",
    "UNKNOWN": "? not known",
}


def standing(status: KraftStatus, to_phase: str, advice: str) -> str:
    """The phases, what is next, what contradicts the phase, and a line per node."""
    phase = status.state.phase
    off = "" if phase != UNKNOWN else '<p class="bad">✗ The cluster\'s phase is not known.</p>'
    findings = "".join(
        f'<li><b class="bad">{html_text(f"{each.check_id} {each.severity}")}</b>'
        f"<span>{html_text(f'{each.sentence} {each.remedy}')}</span></li>"
        for each in status.findings
    )
    boxes = html.way(PHASES, phase, to_phase, "the cluster is here")
    sentences = html_text(" ".join(status.describe()))
    checks = f'<ul class="checks">{findings}</ul>'
    return f"{boxes}{off}<p>Next: {html_text(advice)}</p>{checks}<p>{sentences}</p>{nodes(status)}"


def overridable(to_phase: str, overrides: Sequence[str]) -> str:
    """The gates that a person may override on the way to a phase, and which of them are overridden."""
    rules = {gate.rule.check_id: gate.rule for gate in GATES.get(to_phase, ()) if gate.rule.can_be_overridden}
    listed = "; ".join(
        f"<code>{html_text(_asked(rule))}</code>: {html_text(_by_whom(rule))}" for rule in rules.values()
    )
    parts = {OLD_CONSUMERS.check_id: left_behind, STOPPED.check_id: reported_stopped}
    known = {*rules, *(each for each in overrides for name, of in parts.items() if name in rules and of([each]))}
    chosen = [f"<code>{html_text(each)}</code>{'' if each in known else ' (unknown gate)'}" for each in overrides]
    now = f'<p class="open">! The next plan overrides {", ".join(chosen)}.</p>' if chosen else ""
    return f'<p class="soft">Gates that may be overridden: {listed or "none"}.</p>{now}'


def _asked(rule: Rule) -> str:
    part = {OLD_CONSUMERS.check_id: ":GROUP", STOPPED.check_id: ":HOST:PORT"}.get(rule.check_id, "")
    return f"{rule.check_id}{part}"


def _by_whom(rule: Rule) -> str:
    """The rule, and that overriding it makes another person approve."""
    also = " (a second person must then approve)" if rule.overridden_by == SECOND_PERSON else ""
    return f"{rule.holds}{also}"


def nodes(status: KraftStatus) -> str:
    """Each node: its mode and flag by its own word, whether it is in ZooKeeper, as what the log knows it."""
    rows = [
        (
            html_text(f"{each.role} {'?' if each.node_id is None else each.node_id}"),
            html_text(each.address or "–"),
            html_text(each.error or each.mode or "–"),
            html_text(each.stands_at),
            _word(each.has_flag),
            _word(each.in_zookeeper),
            html_text(each.registered_as or "–"),
        )
        for each in node_places(status.read)
    ]
    heads = ("node", "address", "runs as", "as in phase", "flag", "in /brokers/ids", "in the metadata log")
    return html.table(heads, rows)


def orders(record: RunRecord | None) -> str:
    """Return the outcome of each node of a run, in the order of its plan."""
    if record is None:
        return ""
    return html.table(("step", "node", "before", "after", "phase", "at (UTC)"), _orders(record))


def _orders(record: RunRecord) -> Iterator[tuple[str, ...]]:
    spoken = (event for event in record.events if event.event in ("attempted", "acted", "undone"))
    last = {(event.step_id, item): event for event in spoken for item in items_of(event)}
    for number, step in enumerate(record.plan.steps, 1):
        for change in step.changes:
            event = last.get((step.step_id, change.item))
            words = (str(number), change.item, shown(change.before), shown(change.after), _where(event))
            yield (*map(html_text, words), f"{at(event):%H:%M:%S}" if event else "–")


def _where(event: Event | None) -> str:
    if event is None:
        return "· not begun"
    if event.event == "attempted":
        return "… ordered, not confirmed yet"
    if event.event == "undone" and event.outcome in ("CONFIRMED", "UNCHANGED"):
        return "↩ undone"
    mark = _MARKS.get(event.outcome or "", "· not begun")
    return f"{mark}: {event.error}" if event.error else mark


def _word(value: bool | None) -> str:
    return "–" if value is None else "yes" if value else "no"
