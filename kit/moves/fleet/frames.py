"""Represent a model of many groups as small polars frames, for the cells of a notebook."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from kit.engine.model.performer import Outcome
from kit.engine.model.progress import evidence
from kit.engine.model.record import RunRecord
from kit.groups.analyze.stages import STAGES
from kit.moves.fleet.plan import BLOCKER, MEMBERS
from kit.moves.fleet.wave import NOT_FOLLOWING
from kit.operations.frames import ANSWERS, of_texts


def stages(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per stage of a fleet in the path's order: stage, n_groups, n_ready, n_blocked, n_new_members."""
    counts = rows.group_by("stage").agg(
        n_groups=pl.len().cast(pl.Int64),
        n_ready=pl.col("not_ready_reason").is_null().sum().cast(pl.Int64),
        n_blocked=(pl.col("not_ready_code") == BLOCKER).sum().cast(pl.Int64),
        n_new_members=(pl.col("not_ready_code") == MEMBERS).sum().cast(pl.Int64),
    )
    order = pl.DataFrame({"stage": STAGES})
    return order.join(counts, on="stage", how="inner", maintain_order="left")


def groups(rows: pl.DataFrame) -> pl.DataFrame:
    """Return one row per group of a fleet: group_id, stage, toggle, n_members, ready (a word), not_ready_reason.

    Ready groups come first, then reason by reason.
    """
    ready = pl.when(pl.col("not_ready_reason").is_null()).then(pl.lit(ANSWERS[True])).otherwise(pl.lit(ANSWERS[False]))
    return rows.sort("not_ready_reason", "group_id", nulls_last=False).select(
        "group_id", "stage", pl.col("mode").alias("toggle"), "n_members", "not_ready_reason", ready=ready
    )


def failed_groups(record: RunRecord | None) -> pl.DataFrame:
    """Return one row per group that a fleet's run did not toggle, or that did not follow: step, group_id, why."""
    found: dict[str, dict[str, str]] = {}
    for event in record.events if record else ():
        failed = found.setdefault(event.step_id or "", {})
        if event.event in ("verified", "step_undone") and event.outcome == "ok":
            failed.clear()
        elif event.event == "acted" and event.outcome in (Outcome.REFUSED, Outcome.UNKNOWN):
            failed[_group_of(event.item or "")] = event.error or event.outcome
        elif event.event == "verified":
            reasons = evidence(event).get(NOT_FOLLOWING)
            failed.update(reasons if isinstance(reasons, Mapping) else {})  # type: ignore[arg-type]
    return of_texts(
        ("step", "group_id", "why"), [(step, group, why) for step, each in found.items() for group, why in each.items()]
    )


def _group_of(item: str) -> str:
    return item.removeprefix("/consumers/").removesuffix("/migration/mode")
