"""Committed offsets as fragments of HTML: totals first, then a short table with a small picture of each log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from kit.engine.model.plan import Plan
from kit.moves.offsets.changes import BACKWARDS, DELETED, FIRST, FORWARDS, offset_directions
from kit.moves.offsets.current import Committed
from kit.presentation.headings import heading
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from kit.text.quantity import quantity
from kit.text.visible import html_text
from widgets.run.html import number, table

SHOWN = 30
"""Rows of a table here; a cell of the notebook and the evidence have all rows."""
WIDTH, HEIGHT = 150, 14
_NUMBERS = {
    "members in ZooKeeper", "members in Kafka", "ZooKeeper", "Kafka", "log start", "log end", "before", "after",
}  # fmt: skip
_MARKS = {FORWARDS: "→", FIRST: "+", BACKWARDS: "←", DELETED: "×"}
_WORDS = {FORWARDS: "forwards", FIRST: "set where there was none", BACKWARDS: "backwards", DELETED: "deleted"}


def committed(seen: Committed) -> str:
    """Both stores side by side: members, totals, and each partition's offsets within its log."""
    if seen.observed_at is None:
        return '<p class="soft">Nothing is selected: name groups or topics to see their offsets here.</p>'
    offsets = seen.offsets
    if offsets.is_empty():
        return "<p>Neither store has an offset of the selected groups and topics.</p>" + _groups(seen)
    differ = pl.col("zookeeper").ne_missing(pl.col("kafka"))
    first = offsets.sort(~differ, maintain_order=True).head(SHOWN)
    stores, n_differ, legend, order = [KAFKA], f"Partitions: {len(offsets):,}", "", "by group and partition"
    if seen.stores.zookeeper is not None:
        stores, legend, order = [ZOOKEEPER, KAFKA], _legend("ZooKeeper", "Kafka"), "those that differ first"
        n_differ = f"Partitions that differ: {offsets.filter(differ).height:,} of {len(offsets):,}"
    return (
        f"{_groups(seen)}<p>{' '.join(_store(offsets, store) for store in stores)} {n_differ}"
        f"{_first(first, offsets, order)}</p>{legend}"
        + _of_stores(
            seen,
            ("group", "partition", "ZooKeeper", "Kafka", "log start", "log end", "within the log", "remark"),
            [_offset(row) for row in first.iter_rows(named=True)],
        )
    )


def changes(plan: Plan) -> str:
    """Counts by direction as a bar and in words, and the first changes: backwards, then clamped, then the rest."""
    moved = offset_directions(plan)
    first = moved.head(SHOWN)
    heads = ("group", "partition", "before", "after", "direction", "within the log", "why not as requested")
    left_out = plan.parameters.get("left_out") or {}
    n_changes = f"Offsets that change in {STORE_NAMES[str(moved['store'][0])]}: {len(moved):,}"
    return (
        f"<p>{n_changes}{_first(first, moved, 'backwards first, then those not as requested')}</p>"
        + _directions(moved)
        + (f"<p>Left out: {len(left_out):,}; see the risks.</p>" if left_out else "")
        + _legend("before", "after")
        + _filled(heads, [_change(row) for row in first.iter_rows(named=True)])
        + _ways_back(plan)
    )


def log_picture(start: int | None, end: int | None, hollow: int | None, filled: int | None) -> str:
    """A log as a bar with two offsets on it: a hollow and a filled mark; empty if the log's start or end is unknown."""
    if start is None or end is None:
        return ""
    known = [start, end, *(each for each in (hollow, filled) if each is not None)]
    low, high = min(known), max(known)

    def at(offset: int) -> float:
        return round(7 + (WIDTH - 14) * (offset - low) / max(1, high - low), 1)

    marks = f'<rect x="{at(start)}" y="5" width="{max(1.0, at(end) - at(start)):.1f}" height="4"/>'
    if hollow is not None:
        marks += f'<circle class="hollow" cx="{at(hollow)}" cy="7" r="5"/>'
    if filled is not None:
        marks += f'<circle class="filled" cx="{at(filled)}" cy="7" r="3.2"/>'
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg class="within" aria-hidden="true" {size}>{marks}</svg>'


def _groups(seen: Committed) -> str:
    """Groups with members first: no offset of such a group is written."""
    unknown = int(seen.stores.zookeeper is not None)  # Without ZooKeeper, no group has members in it.
    busy = pl.col("zookeeper_members").fill_null(unknown) + pl.col("kafka_members").fill_null(1) > 0
    groups = seen.groups.sort(~busy, maintain_order=True)
    n_busy = groups.filter(busy).height
    busy_words = f"{n_busy:,} with members, or with members unknown" if n_busy else "none has members"
    who = f"{len(groups):,} group{'s' * (len(groups) != 1)}, {busy_words}"
    rows = [
        (
            html_text(each["group_id"]),
            number(each["zookeeper_members"]),
            number(each["kafka_members"]),
            html_text(each["kafka_state"] or "–"),
            html_text(each["error"] or ""),
        )
        for each in groups.head(SHOWN // 3).iter_rows(named=True)
    ]
    heads = ("group", "members in ZooKeeper", "members in Kafka", "state in Kafka", heading("error"))
    return f"<p>{who}{_first(rows, groups, 'those with members first')}</p>{_of_stores(seen, heads, rows)}"


def _of_stores(seen: Committed, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without the columns of a ZooKeeper that the cluster does not have."""
    gone = {at for at, head in enumerate(heads) if seen.stores.zookeeper is None and "ZooKeeper" in head}
    kept = [at for at in range(len(heads)) if at not in gone]
    return _filled([heads[at] for at in kept], [[row[at] for at in kept] for row in rows])


def _store(offsets: pl.DataFrame, store: str) -> str:
    known, lag = offsets[store].count(), offsets[f"{store}_lag"]
    behind = f", {quantity(lag.sum(), 'record')} behind" if lag.count() else ""
    notes = {
        "unknown": known - lag.count(),
        "before the log's start": (offsets[store] < offsets["log_start"]).sum(),
        "beyond the log's end, which is no lag": (offsets[store] > offsets["log_end"]).sum(),
    }
    listed = ", ".join(f"{count:,} {what}" for what, count in notes.items() if count)
    return f"{STORE_NAMES[store]} has {quantity(known, 'offset')}{behind}{f' ({listed})' if listed else ''}."


def _offset(row: dict[str, Any]) -> tuple[str, ...]:
    start, end = row["log_start"], row["log_end"]
    return (
        html_text(row["group_id"]),
        html_text(f"{row['topic']}-{row['partition']}"),
        *(number(row[name]) for name in ("zookeeper", "kafka", "log_start", "log_end")),
        log_picture(start, end, row["zookeeper"], row["kafka"]),
        html_text("; ".join(filter(None, [row["error"], *_outside(row)]))),
    )


def _outside(row: dict[str, Any]) -> Iterator[str]:
    """Yield which store's offset no record has: the next reader starts by its auto.offset.reset."""
    for store in (ZOOKEEPER, KAFKA):
        if None in (row[store], row["log_start"], row["log_end"]):
            continue
        if row[store] > row["log_end"]:
            yield f"{STORE_NAMES[store]}'s offset is beyond the log's end"
        elif row[store] < row["log_start"]:
            yield f"{STORE_NAMES[store]}'s offset is before the log's start"


def _change(row: dict[str, Any]) -> tuple[str, ...]:
    mood = ' class="bad"' if row["direction"] == BACKWARDS else ""
    return (
        html_text(row["group_id"]),
        html_text(f"{row['topic']}-{row['partition']}"),
        number(row["before"]),
        number(row["after"]),
        f"<span{mood}>{_MARKS[row['direction']]} {row['direction']}</span>",
        log_picture(row["log_start"], row["log_end"], row["before"], row["after"]),
        html_text(row["reason"] or ""),
    )


def _directions(moved: pl.DataFrame) -> str:
    """A bar with a part per direction, and its numbers."""
    counts = {name: moved.filter(direction=name).height for name in (FORWARDS, FIRST, BACKWARDS, DELETED)}
    by = (moved["after"] - moved["before"]).abs()
    parts, lines = "", []
    for name, count in counts.items():
        if count:
            records = by.filter(moved["direction"] == name).sum()
            how_far = f", by {quantity(records, 'record')} in all" if name in (FORWARDS, BACKWARDS) else ""
            parts += f'<i class="{name}" style="width:{100 * count / len(moved):.2f}%"></i>'
            lines.append(f'<li><i class="{name}"></i>{_MARKS[name]} {_WORDS[name]}: {count:,}{how_far}</li>')
    n_noted = moved["reason"].count()
    if n_noted:
        lines.append(f"<li>! not as requested: {n_noted:,}</li>")
    return f'<div class="directions" aria-hidden="true">{parts}</div><ul class="directions">{"".join(lines)}</ul>'


def _filled(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without empty columns; numbers are aligned to the right."""
    kept = [at for at in range(len(heads)) if any(row[at] for row in rows)]
    numbers = [number for number, at in enumerate(kept) if heads[at] in _NUMBERS]
    return table([heads[at] for at in kept], [[row[at] for at in kept] for row in rows], numbers)


def _ways_back(plan: Plan) -> str:
    """Return how to undo; the same sentence of several steps only once."""
    sentences = dict.fromkeys(step.undo or f"Cannot be undone: {step.cannot_be_undone}" for step in plan.steps)
    return "".join(f"<p><strong>Undo</strong>: {html_text(each)}</p>" for each in sentences)


def _legend(hollow: str, filled: str) -> str:
    return f'<p class="soft">Within the log, from its start to its end: ○ {hollow}, ● {filled}.</p>'


def _first(shown: Sequence[object] | pl.DataFrame, of: pl.DataFrame, order: str) -> str:
    return "." if len(shown) == len(of) else f"; the first {len(shown)} of {len(of):,} are shown, {order}."
