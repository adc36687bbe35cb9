"""Epochs of KIP-848 groups in ``__consumer_offsets`` → the rebalances that led to them.

As ``topic_rebalances``, but a record is about one member or one change: the members and their targets are the sum of
all records until then. Frames in, a polars frame out: a Spark table is collected before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, TypeAlias

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.stored import stored_rebalance
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import Rebalance

Row: TypeAlias = Mapping[str, Any]


@dataclass
class _Group:
    """By the records so far: its members with the assignors they ask for, and the partitions each shall have."""

    assignors: dict[str, str | None]
    targets: dict[str, list[str]] = field(default_factory=dict)

    def take(self, row: Row) -> None:
        if row["kind"] == "target_assignment":
            self.targets[row["member_id"]] = row["assigned"] or []
        elif row["kind"] == "member" and row["is_tombstone"]:
            self.assignors.pop(row["member_id"], None)
        elif row["kind"] == "member":
            self.assignors[row["member_id"]] = row["assignor"]

    @property
    def assignor(self) -> str | None:
        """The assignor that members ask for; None where they ask for several."""
        asked = {each for each in self.assignors.values() if each}
        return asked.pop() if len(asked) == 1 else None

    @property
    def owners(self) -> dict[str, str]:
        return {partition: member for member, partitions in self.targets.items() for partition in partitions}


def epoch_rebalances(epochs: IntoDataFrame) -> pl.DataFrame:
    """``tables.GROUP_EPOCHS`` → ``tables.REBALANCES``: one row per group and epoch of its target assignment, in order.

    An epoch for which nothing was computed, as when the last member leaves, has no row. A group that was deleted and
    came back has another ``life``.

    Columns:
        group_id, generation: the key; the generation is the epoch, and ``is_epoch`` is true.
        ended_at: when that epoch was stored: members come to it later.
        leader_id: null: no leader.
        assignor: what members ask for; null where they ask for several.
        moved, kept: by target assignments.
        all others: as in ``topic_rebalances``.

    >>> from kit.tables.polars import rows_of
    >>> stored = {"kind": ["member", "target_assignment", "target_epoch"], "member_id": ["a", "a", None]}
    >>> stored |= {"epoch": [None, None, 1], "assigned": [None, ["t-0"], None], "assignor": ["uniform", None, None]}
    >>> epochs = rows_of(tables.GROUP_EPOCHS, group_id="g", partition=0, offset=[0, 1, 2], is_tombstone=False, **stored)
    >>> epoch_rebalances(epochs).select("generation", "is_epoch", "assignor", "members", "joined").rows()
    [(1, True, 'uniform', ['a'], None)]
    """
    return frame(tables.REBALANCES.columns_of(row for rows in by_group(epochs) for row in _of_group(rows)))


def by_group(epochs: IntoDataFrame) -> Iterator[list[dict[str, Any]]]:
    """Each group's records, in the order in which they were written."""
    frame = nw.from_native(epochs, eager_only=True).sort("group_id", "partition", "offset")
    for _, rows in groupby(frame.iter_rows(named=True), key=lambda row: row["group_id"]):
        yield list(rows)


def _of_group(rows: list[dict[str, Any]]) -> Iterator[Rebalance]:
    group = _Group(dict.fromkeys(_earlier_members(rows)))
    before: Rebalance | None = None
    owned_before: dict[str, str] = {}
    life = 1
    for row in rows:
        group.take(row)
        if row["kind"] == "group_epoch" and row["is_tombstone"]:
            life += before is not None
            group, before, owned_before = _Group({}), None, {}
        elif row["kind"] == "target_epoch" and row["epoch"] is not None:
            record = {**row, "generation": row["epoch"]}
            row_of_epoch = stored_rebalance(record, set(group.assignors), before, owned_before, group.owners)
            before = replace(row_of_epoch, life=life, assignor=group.assignor, is_epoch=True)
            owned_before = group.owners
            yield before


def _earlier_members(rows: Iterable[Row]) -> Iterator[str]:
    """Members that joined before the first record: the topic may be compacted, or read since a later time.

    The first record of such a member reports that it had an epoch before, or that it leaves.
    """
    introduced: set[str] = set()
    known: set[str] = set()
    for row in rows:
        member = row["member_id"]
        if member is None or member in known:
            continue
        if row["is_tombstone"] or row["kind"] == "current_assignment":
            known.add(member)
            is_earlier = member not in introduced if row["is_tombstone"] else (row["previous_epoch"] or 0) > 0
            if is_earlier:
                yield member
        elif row["kind"] == "member":
            introduced.add(member)
