"""Represent a model of one group as small polars frames, for the cells of a notebook."""

from __future__ import annotations

from typing import Any

import polars as pl

from kit.engine.model.progress import evidence
from kit.engine.model.record import RunRecord
from kit.moves.group.group_state import GroupState, MemberState


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


def toggle_handovers(record: RunRecord) -> pl.DataFrame:
    """One row per toggle: step, partitions_that_changed_hands, longest_unowned_ms (null: not measured), owners_watched.

    See ``kit.moves.group.toggle.handovers_of``.
    """
    rows = [(it.step_id, evidence(it)) for it in record.events if it.event == "verified"]
    names = ("partitions_that_changed_hands", "longest_unowned_ms", "owners_watched")
    kept = [(step, *(found.get(name) for name in names)) for step, found in rows if names[0] in found]
    kinds = {"step": pl.String, **dict.fromkeys(names[:2], pl.Int64), names[2]: pl.String}
    return pl.DataFrame(kept, schema=kinds, orient="row")


def member_lag(group_state: GroupState, member: MemberState) -> int | None:
    """Return the lag of the partitions that a member has; None: no lag is known."""
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
