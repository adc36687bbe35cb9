"""The changes of a plan for offsets, as frames with a row per partition. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from kit.engine.model.plan import Plan
from kit.moves.offsets.moves import parse_item
from kit.moves.offsets.observations import LOG_ENDS, LOG_STARTS
from kit.moves.offsets.steps import OffsetStepParameters

_CHANGES: dict[str, Any] = {
    "group_id": pl.String,
    "topic": pl.String,
    "partition": pl.Int32,
    "store": pl.String,
    "before": pl.Int64,
    "wanted": pl.Int64,
    "after": pl.Int64,
    "reason": pl.String,
}
_LOGS: dict[str, Any] = {"topic": pl.String, "partition": pl.Int32, "log_start": pl.Int64, "log_end": pl.Int64}
FIRST, BACKWARDS, FORWARDS, DELETED = "first", "backwards", "forwards", "deleted"


def offset_changes(plan: Plan) -> pl.DataFrame:
    """The offsets before, wanted and after, and the reason if wanted and after differ."""
    rows = []
    for step in plan.steps:
        parameters = OffsetStepParameters.of(step)
        for change in step.changes:
            note = parameters.noted.get(change.item)
            wanted, reason = (change.after, None) if note is None else (note["wanted"], note["reason"])
            key = parse_item(change.item)
            rows.append((*key, parameters.store, change.before, wanted, change.after, reason))
    return pl.DataFrame(rows, schema=_CHANGES, orient="row")


def offset_directions(plan: Plan | None) -> pl.DataFrame:
    """The changes with ``direction`` (first, backwards, forwards, deleted), ``log_start`` and ``log_end`` of the plan.

    Backwards changes come first, then those with a reason.
    """
    if plan is None:
        return pl.DataFrame(schema={**_CHANGES, "direction": pl.String, "log_start": pl.Int64, "log_end": pl.Int64})
    direction = (
        pl.when(pl.col("before").is_null())
        .then(pl.lit(FIRST))
        .when(pl.col("after").is_null())
        .then(pl.lit(DELETED))
        .when(pl.col("after") < pl.col("before"))
        .then(pl.lit(BACKWARDS))
        .otherwise(pl.lit(FORWARDS))
    )
    logs = pl.DataFrame(list(_logs(plan)), schema=_LOGS, orient="row")
    changes = offset_changes(plan).with_columns(direction=direction)
    joined = changes.join(logs, on=["topic", "partition"], how="left", maintain_order="left")
    return joined.sort(pl.col("direction") != BACKWARDS, pl.col("reason").is_null(), maintain_order=True)


def _logs(plan: Plan) -> Iterator[tuple[object, ...]]:
    starts, ends = (plan.observed[name].value for name in (LOG_STARTS, LOG_ENDS))
    for place, start in starts.items() if isinstance(starts, Mapping) else ():
        topic, _, partition = place.rpartition("-")
        yield topic, int(partition), start, ends.get(place) if isinstance(ends, Mapping) else None
