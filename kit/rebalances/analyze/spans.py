"""Find the activity of each member in stretches of time for a timeline, from logs or from the coordinators' topic."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.findings import listed

PHASES = ("discovering", "joining", "syncing", "assigning", "locating", "holding", "holding nothing")
"""In the order of one rebalance: coordinator searched for, joining, waiting for the leader's assignment, listener and
assignment, positions fetched; then partitions are held, or none."""
SCHEMA: dict[str, Any] = {
    "group_id": pl.String,
    "member": pl.String,
    "life": pl.Int32,
    "generation": pl.Int64,
    "phase": pl.String,
    "is_utc": pl.Boolean,
    "began_at": pl.Datetime("us", "UTC"),
    "ended_at": pl.Datetime("us", "UTC"),
    "partitions": pl.String,
    "reason": pl.String,
}
"""``life``: as of ``tables.REBALANCES``. ``partitions`` is what the member has afterwards, as text; None where it isn't
known. ``is_utc``: whether the times are, or of an unknown zone."""

Row: TypeAlias = dict[str, Any]
Span: TypeAlias = tuple[Any, ...]


def member_spans(
    member_rebalances: IntoDataFrame, rebalances: IntoDataFrame, until: datetime | None = None
) -> pl.DataFrame:
    """``tables.MEMBER_REBALANCES`` and ``tables.REBALANCES`` → one row per member, rebalance and phase; ``SCHEMA``.

    A phase whose time the log does not show has no row. What is held is held until the member's next rebalance begins,
    or a generation which it is known to have left, else until ``until`` (None: the last time in the frames).
    """
    frame = nw.from_native(member_rebalances, eager_only=True).to_polars()
    left = _left_at(nw.from_native(rebalances, eager_only=True).to_polars())
    end = until or frame.select(pl.max_horizontal(pl.col("started_at").max(), pl.col("ended_at").max())).item()
    rows = frame.filter(pl.col("started_at").is_not_null()).sort("group_id", "consumer", "started_at", nulls_last=True)
    spans = []
    for _, mine in groupby(rows.iter_rows(named=True), key=lambda row: (row["group_id"], row["consumer"])):
        for row, after in pairwise([*mine, None]):
            assert row is not None
            gone = min(
                (at for at in left.get((row["group_id"], row["member_id"]), ()) if at > row["started_at"]), default=end
            )
            ends = [row["left_at"], after and after["started_at"]]
            spans += [*_phases(row), *_held(row, min([gone, *filter(None, ends)]))]
    return _frame(spans)


def generation_spans(generations: IntoDataFrame, until: datetime | None = None) -> pl.DataFrame:
    """``tables.GROUP_GENERATIONS`` → what each member held in each generation; ``SCHEMA``, only its last phases.

    A generation lasts until the next one was stored, the last one until ``until`` (None: the newest record).
    """
    frame = nw.from_native(generations, eager_only=True).to_polars().sort("group_id", "partition", "offset")
    end: Any = until or frame["written_at"].max()
    spans = []
    for _, mine in groupby(frame.iter_rows(named=True), key=lambda row: row["group_id"]):
        records, life = [list(rows) for _, rows in groupby(mine, key=lambda row: row["offset"])], 1
        for record, after in pairwise([*records, None]):
            assert record is not None
            ended = end if after is None else after[0]["written_at"]
            held = [row | {"life": life} for row in record if row["member_id"] is not None and row["written_at"]]
            spans += [_stored(row, ended) for row in held]
            life += any(row["is_tombstone"] for row in record) and bool(spans)
    return _frame(spans)


def epoch_spans(epochs: IntoDataFrame, until: datetime | None = None) -> pl.DataFrame:
    """``tables.GROUP_EPOCHS`` → what each member held in each of its epochs; ``SCHEMA``, only its last phases.

    It holds what was stored for it until the next was, or it went; what is stored last, until ``until`` (None: the
    newest record).
    """
    every = nw.from_native(epochs, eager_only=True).to_polars()
    end: Any = until or every["written_at"].max()
    frame = every.filter(pl.col("kind") == "current_assignment").sort("group_id", "member_id", "partition", "offset")
    spans = []
    for _, mine in groupby(frame.iter_rows(named=True), key=lambda row: (row["group_id"], row["member_id"])):
        for row, after in pairwise([*mine, None]):
            assert row is not None
            if row["assigned"] is not None and row["written_at"]:
                spans.append(
                    _stored({**row, "life": 1, "generation": row["epoch"]}, after["written_at"] if after else end)
                )
    return _frame(spans)


def _left_at(rebalances: pl.DataFrame) -> dict[tuple[str, str], list[datetime]]:
    """Return when which member was known to be gone."""
    gone = rebalances.select("group_id", "left", at=pl.coalesce("started_at", "ended_at")).explode("left").drop_nulls()
    times: dict[tuple[str, str], list[datetime]] = {}
    for group, member, at in gone.iter_rows():
        times.setdefault((group, member), []).append(at)
    return times


def _phases(row: Row) -> Iterator[Span]:
    joined, ended = row["joined_at"], row["ended_at"]
    sync_ms, assign_ms = row["sync_ms"], row["assign_ms"]
    synced = joined + timedelta(milliseconds=sync_ms) if joined and sync_ms is not None else None
    asked = joined - timedelta(milliseconds=row["join_ms"]) if joined and row["join_ms"] is not None else None
    if row["discover_ms"]:
        yield _span(
            row, "discovering", row["started_at"], row["started_at"] + timedelta(milliseconds=row["discover_ms"])
        )
    yield from _known(row, "joining", asked, joined)
    yield from _known(row, "syncing", joined, synced)
    yield from _known(row, "assigning", synced or joined, ended if assign_ms is not None else None)
    if ended and row["offsets_ms"]:
        yield _span(row, "locating", ended, ended + timedelta(milliseconds=row["offsets_ms"]))


def _known(row: Row, phase: str, began: datetime | None, ended: datetime | None) -> Iterator[Span]:
    if began is not None and ended is not None and began < ended:
        yield _span(row, phase, began, ended)


def _held(row: Row, until: datetime) -> Iterator[Span]:
    """From where the positions are known, else from the assignment on."""
    if row["outcome"] == "assigned" and row["ended_at"] is not None:
        began = row["ended_at"] + timedelta(milliseconds=row["offsets_ms"] or 0)
        yield _span(row, "holding nothing" if row["owned"] == [] else "holding", began, max(began, until))


def _span(row: Row, phase: str, began: datetime, ended: datetime) -> Span:
    partitions = None if row["owned"] is None else listed(row["owned"])
    who = row["group_id"], row["consumer"], row["life"], row["generation"]
    return *who, phase, row["is_utc"], began, ended, partitions, row["reason"]


def _stored(row: Row, ended: datetime) -> Span:
    partitions = None if row["assigned"] is None else listed(row["assigned"])
    phase = "holding nothing" if row["assigned"] == [] else "holding"
    who = row["group_id"], row["member_id"], row["life"], row["generation"]
    return *who, phase, True, row["written_at"], ended, partitions, None


def _frame(spans: list[Span]) -> pl.DataFrame:
    return pl.DataFrame(spans, schema=SCHEMA, orient="row")
