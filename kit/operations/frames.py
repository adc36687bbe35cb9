"""What a model knows as small polars frames, for the cells of a notebook."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from kit.engine.execution.dry_run import DryRun
from kit.engine.model.checks import Finding
from kit.engine.model.event import Event
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import Plan
from kit.engine.model.progress import evidence, step_progress
from kit.engine.model.record import RunRecord
from kit.engine.rendering.text import plan_rows, shown, worded_json
from kit.errors import InputError
from kit.groups.analyze.stages import STAGES
from kit.moves.fleet.plan import BLOCKER, MEMBERS
from kit.moves.fleet.wave import NOT_FOLLOWING
from kit.moves.group.group_state import GroupState, MemberState

_WORDS = {True: "✓ yes", False: "✗ no", None: "? unknown"}


def members(group_state: GroupState) -> pl.DataFrame:
    """One row per member: member_id, flavour, host, n_partitions, share (of all partitions), lag, since."""
    rows = [_member(group_state, member) for member in group_state.members]
    schema: dict[str, Any] = {
        "member_id": pl.String,
        "flavour": pl.String,
        "host": pl.String,
        "n_partitions": pl.Int64,
        "share": pl.Float64,
        "lag": pl.Int64,
        "since": pl.Datetime("us", "UTC"),
    }
    return pl.DataFrame(rows, schema=schema)


def checks(findings: Iterable[Finding]) -> pl.DataFrame:
    """One row per rule: holds (a word), rule, level, sentence (the rule), found."""
    rows = [
        (_WORDS[each.is_met], each.rule.name, each.rule.level, each.rule.sentence, each.sentence) for each in findings
    ]
    return _words(("holds", "rule", "level", "sentence", "found"), rows)


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
    return _words(("step", "title", "item", "before", "after", "undo", "by_hand"), rows)


def dry_run(dry: DryRun | None) -> pl.DataFrame:
    """One row per step: step, can_begin_now (a word), sentence; a later one mostly can't before the earlier."""
    rows = [(each.step.title, _WORDS[each.can_begin], each.sentence) for each in (dry.steps if dry else ())]
    return _words(("step", "can_begin_now", "sentence"), rows)


def differences(dry: DryRun | None) -> pl.DataFrame:
    """One row per observation that is not as planned any more."""
    return _words(("sentence",), [(each.sentence,) for each in (dry.differences if dry else ())])


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
    """One row per item that was acted on or taken back: at, step, item, outcome, before, after, error."""
    rows = [
        (it.at, _step_of(it), it.item, it.outcome, worded_json(it.before), worded_json(it.after), it.error)
        for it in (record.events if record else ())
        if it.event in ("acted", "undone")
    ]
    return _timed(_words(("at", "step", "item", "outcome", "before", "after", "error"), rows))


def stays(record: RunRecord | None) -> pl.DataFrame:
    """What a run found to stay in ZooKeeper after a move's end: kind, count, read_by, may_delete. None before that."""
    verified = [it for it in (record.events if record else ()) if it.event == "verified"]
    kept = [evidence(it).get("stays") for it in verified]
    rows: list[Any] = [row for each in kept if isinstance(each, list | tuple) for row in each]
    schema: dict[str, Any] = {"kind": pl.String, "count": pl.Int64, "read_by": pl.String, "may_delete": pl.String}
    return pl.DataFrame(rows, schema=schema)


def stages(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a fleet, one row per stage in the path's order: stage, n_groups, n_ready, n_blocked, n_new_members."""
    counts = rows.group_by("stage").agg(
        n_groups=pl.len().cast(pl.Int64),
        n_ready=pl.col("not_ready_reason").is_null().sum().cast(pl.Int64),
        n_blocked=(pl.col("not_ready_code") == BLOCKER).sum().cast(pl.Int64),
        n_new_members=(pl.col("not_ready_code") == MEMBERS).sum().cast(pl.Int64),
    )
    order = pl.DataFrame({"stage": STAGES})
    return order.join(counts, on="stage", how="inner", maintain_order="left")


def groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Of a fleet, one row per group: group_id, stage, toggle, n_members, ready (a word), not_ready_reason.

    Those that are ready come first, then reason by reason.
    """
    ready = pl.when(pl.col("not_ready_reason").is_null()).then(pl.lit(_WORDS[True])).otherwise(pl.lit(_WORDS[False]))
    return rows.sort("not_ready_reason", "group_id", nulls_last=False).select(
        "group_id", "stage", pl.col("mode").alias("toggle"), "n_members", "not_ready_reason", ready=ready
    )


def matching(rows: pl.DataFrame, pattern: str, column: str = "group_id") -> pl.DataFrame:
    """Those whose whole group id, or another column, matches.

    Raises:
        InputError: it is no regular expression.
    """
    try:
        matches = re.compile(pattern).fullmatch
    except re.error as error:
        raise InputError(f"the {column} pattern {pattern!r} is not a regular expression: {error}") from None
    return rows.filter(pl.Series([matches(name) is not None for name in rows[column]], dtype=pl.Boolean))


def failed_groups(record: RunRecord | None) -> pl.DataFrame:
    """Of a fleet's run, one row per group that was not toggled or did not follow: step, group_id, why."""
    found: dict[str, dict[str, str]] = {}
    for event in record.events if record else ():
        failed = found.setdefault(event.step_id or "", {})
        if event.event in ("verified", "step_undone") and event.outcome == "ok":
            failed.clear()
        elif event.event == "acted" and event.outcome in (Outcome.REFUSED, Outcome.UNKNOWN):
            failed[_group_of(event.item or "")] = event.error or event.outcome
        elif event.event == "verified":
            told = evidence(event).get(NOT_FOLLOWING)
            failed.update(told if isinstance(told, Mapping) else {})  # type: ignore[arg-type]
    return _words(
        ("step", "group_id", "why"), [(step, group, why) for step, each in found.items() for group, why in each.items()]
    )


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


def toggle_handovers(record: RunRecord) -> pl.DataFrame:
    """One row per toggle: step, partitions_that_changed_hands, longest_unowned_ms (null: not measured), owners_watched.

    See ``kit.moves.group.toggle.handovers_of``.
    """
    rows = [(it.step_id, evidence(it)) for it in record.events if it.event == "verified"]
    names = ("partitions_that_changed_hands", "longest_unowned_ms", "owners_watched")
    kept = [(step, *(found.get(name) for name in names)) for step, found in rows if names[0] in found]
    kinds = {"step": pl.String, **dict.fromkeys(names[:2], pl.Int64), names[2]: pl.String}
    return pl.DataFrame(kept, schema=kinds, orient="row")


def events(record: RunRecord) -> pl.DataFrame:
    """Every event: at, state, event, step, item, outcome, sentence, error."""
    rows = [(it.at, it.state, it.event, it.step_id, it.item, it.outcome, it.sentence, it.error) for it in record.events]
    return _words(("at", "state", "event", "step", "item", "outcome", "sentence", "error"), rows)


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
    return _words(("run_id", "state", "sentence", "made_by", "approved_by", "plan", "notes"), [row])


def member_lag(group_state: GroupState, member: MemberState) -> int | None:
    """Of the partitions that a member has; None: it is known of none."""
    offsets_of = (group_state.offsets.get(pair) for pair in member.partitions)
    known = [offsets.lag for offsets in offsets_of if offsets is not None and offsets.lag is not None]
    return sum(known) if known else None


def _member(group_state: GroupState, member: MemberState) -> dict[str, object]:
    n_all = len(group_state.partitions)
    return {
        "member_id": member.member_id,
        "flavour": member.flavour,
        "host": member.host,
        "n_partitions": len(member.partitions),
        "share": len(member.partitions) / n_all if n_all else None,
        "lag": member_lag(group_state, member),
        "since": member.since,
    }


def _group_of(item: str) -> str:
    return item.removeprefix("/consumers/").removesuffix("/migration/mode")


def _step_of(event: Event) -> str:
    return event.step_id or "" if event.event == "acted" else f"undo of {event.step_id}"


def _words(names: Sequence[str], rows: Sequence[Sequence[str | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")
