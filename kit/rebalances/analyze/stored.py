"""Group generations of ``__consumer_offsets`` → the rebalances that led to them.

The coordinator stored them, no log has them: all members of a generation are known, its beginning isn't.
Frames in, a polars frame out, as ``rebalances``: a Spark table is collected before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, TypeAlias

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.generation_row import moved_and_kept
from kit.tables import schema as tables
from kit.tables.polars import frame as frame_of
from kit.tables.rebalances import Rebalance

Owners: TypeAlias = Mapping[str, str]
"""Partition → member."""


def topic_rebalances(generations: IntoDataFrame) -> pl.DataFrame:
    """``tables.GROUP_GENERATIONS`` → ``tables.REBALANCES``: one row per group and generation, in order.

    A group that was deleted and came back has another ``life``; a generation whose record is compacted away has no row.

    Columns:
        group_id, generation: the key; ``is_epoch`` is false.
        ended_at: when the generation was stored.
        started_at, duration_ms, coordinator, last_joiner, join_spread_ms: null, and reasons empty: not in the topic.
        leader_id, assignor: by the generation's last record.
        members, n_members: all of them, by member id.
        joined, left: compared with the generation before; null where its record is not there.
        moved, kept: partitions of both generations whose owner changed, or didn't.
        partitions_without_known_owner: owned before, and without an owner now.

    >>> from kit.tables.polars import rows_of
    >>> stored = {"partition": 0, "offset": [0, 1, 1], "generation": [1, 2, 2], "member_id": ["a", "a", "b"]}
    >>> stored |= {"is_tombstone": False, "assigned": [["t-0", "t-1"], ["t-0"], ["t-1"]]}
    >>> rows = topic_rebalances(rows_of(tables.GROUP_GENERATIONS, group_id="g", **stored))
    >>> rows.select("generation", "members", "joined", "moved", "kept").rows()
    [(1, ['a'], None, None, None), (2, ['a', 'b'], ['b'], ['t-1'], ['t-0'])]
    """
    frame = nw.from_native(generations, eager_only=True).sort("group_id", "partition", "offset")
    rows = [
        row
        for _, of_group in groupby(frame.iter_rows(named=True), key=lambda row: row["group_id"])
        for row in _of_group(of_group)
    ]
    return frame_of(tables.REBALANCES.columns_of(rows))


def _of_group(rows: Iterator[dict[str, Any]]) -> Iterator[Rebalance]:
    before: Rebalance | None = None
    owned_before: dict[str, str] = {}
    life = 1
    for stored in _generations(rows):
        if not stored:
            life += before is not None
            before, owned_before = None, {}
            continue
        follows = before is not None and before.generation == stored[0][0]["generation"] - 1
        owned = {partition: row["member_id"] for row in stored[-1] for partition in row["assigned"] or ()}
        before = replace(_rebalance(stored, before if follows else None, owned_before, owned), life=life)
        owned_before = owned or owned_before
        yield before


def _generations(rows: Iterator[dict[str, Any]]) -> Iterator[list[list[dict[str, Any]]]]:
    """The records of each generation, a record being its members' rows; an empty list where the group was deleted."""
    stored: list[list[dict[str, Any]]] = []
    for _, members in groupby(rows, key=lambda row: (row["partition"], row["offset"])):
        record = list(members)
        generation = record[0]["generation"]
        if stored and generation != stored[0][0]["generation"]:
            yield stored
            stored = []
        if generation is not None:
            stored.append(record)
        elif record[0]["is_tombstone"]:
            yield []
    if stored:
        yield stored


def _rebalance(
    stored: list[list[dict[str, Any]]], before: Rebalance | None, owned_before: Owners, owned: Owners
) -> Rebalance:
    """The first record reports when; the last, which may have a static member's new id, reports who."""
    last = stored[-1]
    members = {row["member_id"] for row in last} - {None}
    row = stored_rebalance(stored[0][0], members, before, owned_before, owned)
    return replace(row, leader_id=last[0]["leader_id"], assignor=last[0]["protocol"])


def stored_rebalance(
    record: Mapping[str, Any], members: set[str], before: Rebalance | None, owned_before: Owners, owned: Owners
) -> Rebalance:
    """The row of a record that ends a rebalance, compared with the rebalance ``before``; owners are by partition."""
    known = set() if before is None else set(before.members or ())
    moved, kept = moved_and_kept(owned_before, owned)
    return Rebalance(
        group_id=record["group_id"],
        life=1,
        generation=record["generation"],
        is_epoch=False,
        is_utc=True,
        started_at=None,
        ended_at=record["written_at"],
        duration_ms=None,
        leader_id=None,
        assignor=None,
        coordinator=None,
        members=tuple(sorted(members)),
        n_members=len(members),
        joined=None if before is None else tuple(sorted(members - known)),
        left=None if before is None else tuple(sorted(known - members)),
        members_without_log=(),
        last_joiner=None,
        join_spread_ms=None,
        moved=moved,
        kept=kept,
        partitions_without_known_owner=tuple(sorted(set(owned_before) - set(owned))) if members else (),
        reasons=(),
    )
