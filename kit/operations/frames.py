"""Represent a model as small polars frames, for the cells of a notebook."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from kit.engine.execution.dry_run import DryRun
from kit.engine.model.event import Event
from kit.engine.model.plan import Plan
from kit.engine.model.progress import step_progress
from kit.engine.model.record import RunRecord
from kit.engine.rendering.text import plan_rows, shown, worded_json
from kit.errors import InputError
from kit.subjects import merged
from kit.tables.conditions import WARN, Condition

ANSWERS = {True: "✓ yes", False: "✗ no", None: "? unknown"}


def checks(findings: Iterable[Condition]) -> pl.DataFrame:
    """One row per rule: holds (a word), rule, level, sentence (the rule), found."""
    rows = [(ANSWERS[each.is_met], each.check_id, _level(each), each.holds, each.text) for each in findings]
    return of_texts(("holds", "rule", "level", "sentence", "found"), rows)


def _level(condition: Condition) -> str:
    return "warns" if condition.severity == WARN else "blocks"


def plan(plan: Plan | None) -> pl.DataFrame:
    """One row per change: step, title, item, before, after, undo, by_hand."""
    rows = [
        (
            str(row["number"]),
            shown(row["title"]),
            shown(row["item"]),
            shown(row["before"]),
            shown(row["after"]),
            shown(row["undo"] or f"cannot be undone: {row['cannot_be_undone']}"),
            shown(row["needs_person"]),
        )
        for row in (plan_rows(plan) if plan else ())
    ]
    return of_texts(("step", "title", "item", "before", "after", "undo", "by_hand"), rows)


def dry_run(dry: DryRun | None) -> pl.DataFrame:
    """One row per step: step, can_begin_now (a word), sentence; a later one mostly can't before the earlier."""
    rows = [(each.step.title, ANSWERS[each.can_begin], each.sentence) for each in (dry.steps if dry else ())]
    return of_texts(("step", "can_begin_now", "sentence"), rows)


def differences(dry: DryRun | None) -> pl.DataFrame:
    """One row per observation that is not as planned any more."""
    return of_texts(("sentence",), [(each.sentence,) for each in (dry.differences if dry else ())])


def steps(record: RunRecord | None) -> pl.DataFrame:
    """One row per step of a run: step, title, phase, items, began_at, seconds, sentence."""
    rows = [
        (
            it.number,
            it.title,
            it.phase,
            f"{it.n_done} of {it.n_items}",
            it.began_at,
            it.seconds,
            it.sentence,
        )
        for it in (step_progress(record) if record else ())
    ]
    schema: dict[str, Any] = {
        "step": pl.Int64,
        "title": pl.String,
        "phase": pl.String,
        "items": pl.String,
        "began_at": pl.Datetime("us", "UTC"),
        "seconds": pl.Float64,
        "sentence": pl.String,
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def outcomes(record: RunRecord | None) -> pl.DataFrame:
    """One row per item that was acted on or undone: at, step, item, outcome, before, after, error."""
    rows = [
        (it.at, _step_of(it), it.item, it.outcome, worded_json(it.before), worded_json(it.after), it.error)
        for it in (record.events if record else ())
        if it.event in ("acted", "undone")
    ]
    return _timed(of_texts(("at", "step", "item", "outcome", "before", "after", "error"), rows))


def matching(rows: pl.DataFrame, pattern: str, column: str = "group_id") -> pl.DataFrame:
    """Return the rows whose whole group id, or another column, matches.

    Raises:
        InputError: it is no regular expression.
    """
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise InputError(f"the {column} pattern {pattern!r} is not a regular expression: {error}") from None
    return rows.filter(pl.Series([matches(name) is not None for name in rows[column]], dtype=pl.Boolean))


def verifications(record: RunRecord) -> pl.DataFrame:
    """One row per verification: at, step, outcome, duration_ms, sentence."""
    rows = [
        (it.at, it.step_id, it.outcome, it.duration_ms, it.sentence) for it in record.events if it.event == "verified"
    ]
    schema: dict[str, Any] = {
        "at": pl.String,
        "step": pl.String,
        "outcome": pl.String,
        "duration_ms": pl.Int64,
        "sentence": pl.String,
    }
    return _timed(pl.DataFrame(rows, schema=schema, orient="row"))


def _timed(rows: pl.DataFrame) -> pl.DataFrame:
    """``at`` as a time: the journal's text would be shown as it is written."""
    return rows.with_columns(pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC"))


def events(record: RunRecord) -> pl.DataFrame:
    """Every event: at, state, event, step, item, outcome, sentence, error."""
    rows = [(it.at, it.state, it.event, it.step_id, it.item, it.outcome, it.sentence, it.error) for it in record.events]
    return of_texts(("at", "state", "event", "step", "item", "outcome", "sentence", "error"), rows)


def verdict(record: RunRecord) -> pl.DataFrame:
    """One row: run_id, state, sentence, made_by, approved_by, plan, notes."""
    row = (
        record.run_id,
        str(record.state),
        record.sentence,
        record.plan.made_by,
        ", ".join(approval.approved_by for approval in record.approvals),
        record.plan.digest[:12],
        " ".join(record.notes) or "none",
    )
    return of_texts(("run_id", "state", "sentence", "made_by", "approved_by", "plan", "notes"), [row])


def _step_of(event: Event) -> str:
    return event.step_id or "" if event.event == "acted" else f"undo of {event.step_id}"


def of_texts(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def __getattr__(name: str) -> Any:
    """Return a frame that a subject registered; each is loaded when it is first used."""
    if (place := merged("FRAMES").get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return pkgutil.resolve_name(place)
