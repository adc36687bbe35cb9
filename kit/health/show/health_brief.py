"""Make the beginning of a report on health: over which time, which groups were in trouble and when, what is not
known.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import polars as pl

from kit.groups.analyze.beyond_end import REMEDY
from kit.presentation.brief import Brief
from kit.text.duration import duration
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.time_format import worded
from kit.text.visible import cell, visible

NAMED = 5
_GAP = 3
"""A gap of the history is at least this multiple of the usual time between two observations."""


def health_brief(
    within: pl.DataFrame,
    incidents: pl.DataFrame,
    looks_ms: list[int],
    target_lag: int,
    beyond: pl.DataFrame | None = None,
) -> Brief:
    """The first lines of the report.

    Args:
        within: ``analyze.within_target``.
        incidents: ``analyze.group_alarms`` with cause and evidence, of ``analyze.incident_causes``.
        looks_ms: times of the observations (epoch), in order.
        target_lag: in records.
        beyond: rows of ``partition_lag`` of the newest observation whose commit is beyond the end of the log.
    """
    is_known = (pl.col("unknown_ms") == 0) & pl.col("max_lag").is_not_null()
    steady = within.filter((pl.col("over_ms") == 0) & is_known)
    n_unsure = len(within.filter((pl.col("over_ms") == 0) & ~is_known))
    ongoing = incidents.filter(pl.col("until_ms") >= looks_ms[-1]) if looks_ms else incidents
    figures = (
        ("groups", f"{len(within):,}", ""),
        ("observations", f"{len(looks_ms):,}", ""),
        ("incidents", f"{len(incidents):,}", f"{len(ongoing):,} not ended"),
        ("always within target", f"{len(steady):,}", "groups"),
        ("lag at times unknown", f"{len(within.filter(~is_known)):,}", "groups"),
    )
    within_target = _within(len(within), len(steady), n_unsure, target_lag)
    return Brief(figures, (_period(looks_ms), *_incidents(incidents, looks_ms), within_target, *_beyond(beyond)))


def _beyond(rows: pl.DataFrame | None) -> list[str]:
    """A lag of 0 that is none: nothing above would report it."""
    if rows is None or rows.is_empty():
        return []
    names = rows["group_id"].unique().sort()
    named = shortened(map(cell, names), NAMED)
    return [
        f"{quantity(len(rows), 'commit is', 'commits are')} beyond the end of the log now, so the lag there is 0, but "
        f"the position is lost: {named}. {REMEDY[0].upper()}{REMEDY[1:]}."
    ]


def _period(looks_ms: list[int]) -> str:
    if len(looks_ms) < 2:
        return f"{quantity(len(looks_ms), 'observation')}: too few for a trend."
    steps = sorted(after - before for before, after in pairwise(looks_ms))
    usual, longest = steps[len(steps) // 2], steps[-1]
    period = f"From {_time(looks_ms[0])} to {_time(looks_ms[-1])}, one observation per {duration(usual)}."
    if longest < _GAP * usual:
        return period
    return f"{period} The longest gap is {duration(longest)}: offramp does not know what happened during it."


def _incidents(incidents: pl.DataFrame, looks_ms: list[int]) -> list[str]:
    if incidents.is_empty():
        return ["No group had an incident by these rules."]
    lasted = incidents.with_columns(lasted=pl.col("until_ms") - pl.col("since_ms"))
    rows = lasted.sort("lasted", "group_id", descending=[True, False]).to_dicts()
    sentences = [_incident(row, looks_ms[-1]) for row in rows[:NAMED]]
    more = [f"{quantity(len(rows) - NAMED, 'more incident is', 'more incidents are')} below."] * (len(rows) > NAMED)
    return [*sentences, *more]


def _incident(row: dict[str, Any], last_ms: int) -> str:
    begun, ended = int(row["since_ms"]), int(row["until_ms"])
    until = "and has not ended" if ended >= last_ms else f"to {_time(ended)}"
    alarm = f"the alarm came after {duration(int(row['from_ms']) - begun)}"
    why = f"cause {row['cause']}: {visible(str(row['evidence']))}"
    most = row["max_lag"]
    behind = "the lag is unknown" if most is None else f"up to {quantity(int(most), 'record')} behind"
    lasted = f"from {_time(begun)} {until}, {duration(ended - begun)}"
    what = f"{quantity(int(row['n_partitions']), 'partition')}, {behind}"
    return f"{cell(row['group_id'])}: {lasted}; {alarm}; {what}; {why}"


def _within(n_groups: int, n_steady: int, n_unsure: int, target_lag: int) -> str:
    """``n_unsure``: groups that were not seen beyond the target, and whose lag was not known all the time."""
    target = quantity(target_lag, "record")
    if n_steady == n_groups:
        return f"The lag of every group was always within {target}."
    unsure = f"; for {n_unsure:,} this is unknown, because their lag was at times unknown" if n_unsure else ""
    return f"{n_steady:,} of {quantity(n_groups, 'group')} were always within {target}{unsure}."


def _time(ms: int) -> str:
    return worded(datetime.fromtimestamp(ms / 1000, UTC), True)
