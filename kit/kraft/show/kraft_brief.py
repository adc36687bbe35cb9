"""Summarise a report on a soak: the cluster's phase, since when, and whether both stores stayed the same."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import polars as pl

from kit.kraft.analyze.phase import KRAFT, UNKNOWN
from kit.kraft.analyze.soak import CLEAN, DIVERGED, IN_FLIGHT, NOT_READ, USUAL_LAG, fail_overs, gaps, with_verdicts
from kit.presentation.brief import Brief
from kit.text.quantity import quantity


def brief(states: pl.DataFrame, values: pl.DataFrame, cluster: str) -> Brief:
    """The first lines of a soak's report.

    Args:
        states: ``tables.KRAFT_STATES`` of one cluster, stamped, the oldest first; at least one.
        values: ``kit.kraft.analyze.soak.values``.
    """
    looks = with_verdicts(states)
    counts: dict[str, int] = dict(looks["verdict"].value_counts().iter_rows())
    most: Any = states["lag"].max()
    changes = fail_overs(states)
    figures = (
        ("phase now", states["phase"][-1], _since(states)),
        ("observations", f"{len(states):,}", f"in {_span(states['at'][0], states['at'][-1])}"),
        ("observations with diverged values", f"{counts.get(DIVERGED, 0):,}", ""),
        ("observations not read", f"{counts.get(NOT_READ, 0):,}", ""),
        ("records behind, at most", "unknown" if most is None else f"{most:,}", f"0 to {USUAL_LAG} is usual"),
        ("fail-overs", f"{len(changes):,}", ""),
    )
    sentences = (
        _describe(states, cluster),
        _same(counts),
        _open(values),
        _behind(states, most),
        _failed_over(states, changes),
        _not_read(states, counts),
        _nobody_looked(gaps(states)),
    )
    return Brief(figures, tuple(each for each in sentences if each))


def _span(first: datetime, last: datetime) -> str:
    took = last - first
    if took >= timedelta(days=2):
        return quantity(took.days, "day")
    hours = took.total_seconds() / 3600
    return f"{hours:.1f} h" if hours >= 1 else f"{took.total_seconds() / 60:.1f} min"


def _since(states: pl.DataFrame) -> str:
    """Since when the observations show the phase of the last one without another between; unknown is no other."""
    others = states.with_row_index().filter(pl.col("phase") != states["phase"][-1], pl.col("phase") != UNKNOWN)
    first = others["index"][-1] + 1 if len(others) else 0
    return f"since {states['at'][first]:%Y-%m-%d %H:%M} UTC"


def _describe(states: pl.DataFrame, cluster: str) -> str:
    first, last = states["at"][0], states["at"][-1]
    return (
        f"Cluster {cluster} was examined {quantity(len(states), 'time')} from {first:%Y-%m-%d %H:%M:%S} to"
        f" {last:%Y-%m-%d %H:%M:%S} UTC; in the last observation it is in phase {states['phase'][-1]}."
    )


def _same(counts: dict[str, int]) -> str:
    n_same, n_moving = counts.get(CLEAN, 0), counts.get(IN_FLIGHT, 0)
    n_compared = n_same + n_moving + counts.get(DIVERGED, 0)
    if not n_compared:
        return "The stores were never compared: offramp compares them only in the phases dual write and kraft."
    moving = f"; in {quantity(n_moving, 'more observation')}, changes were still in flight" if n_moving else ""
    return (
        f"ZooKeeper and KRaft held the same in {n_same:,} of {quantity(n_compared, 'observation')} that compared"
        f" them{moving}."
    )


def _open(values: pl.DataFrame) -> str:
    diverged = values.filter(pl.col("verdict") == DIVERGED)
    if diverged.is_empty():
        return "No value diverged."
    n_open = diverged["is_open"].sum()
    now = f"{n_open:,} still in the last observation" if n_open else "none in the last observation"
    return f"{quantity(len(diverged), 'value')} diverged at some time, {now}. They are listed below."


def _behind(states: pl.DataFrame, most: int | None) -> str:
    if most is None:
        return "No observation shows how many records ZooKeeper was behind."
    if not most:
        return "ZooKeeper was never behind in any observation."
    if most <= USUAL_LAG:
        return f"ZooKeeper was never more than {quantity(most, 'record')} behind."
    at = states.filter(pl.col("lag") == most)["at"][0]
    return f"ZooKeeper was at most {quantity(most, 'record')} behind, at {at:%Y-%m-%d %H:%M:%S} UTC."


def _failed_over(states: pl.DataFrame, changes: pl.DataFrame) -> str:
    if changes.is_empty():
        is_due = states["phase"][-1] == KRAFT
        advice = ": offramp plan kraft --fail-over, and observe again, before you finalise" if is_due else ""
        return f"No fail-over of the controllers was seen{advice}."
    last = changes.row(-1, named=True)
    return (
        f"{quantity(len(changes), 'fail-over')} of the controllers, the last to controller {last['to_controller']},"
        f" seen at {last['seen_at']:%Y-%m-%d %H:%M:%S} UTC."
    )


def _not_read(states: pl.DataFrame, counts: dict[str, int]) -> str:
    n_unread = counts.get(NOT_READ, 0)
    if not n_unread:
        return "Everything was read in each observation that compared both stores."
    return (
        f"In {quantity(n_unread, 'observation')} something could not be read. Results that depend on it are unknown, "
        "not clean."
    )


def _nobody_looked(long: pl.DataFrame) -> str:
    if long.is_empty():
        return ""
    worst = long.row(0, named=True)
    return (
        f"The time between two observations was longer than usual {quantity(len(long), 'time')}, at most"
        f" {worst['seconds']:,.0f} s from {worst['from_at']:%Y-%m-%d %H:%M:%S} UTC. Nothing is known about these times."
    )
