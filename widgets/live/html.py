"""The monitor's rows as fragments of HTML: pure, escaped, with words beside every colour and line."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import polars as pl

from kit.health.live import RISKS
from kit.presentation.headings import heading
from kit.text.quantity import quantity
from kit.text.visible import cell, html_text
from widgets.run.html import number, table

_MOODS = dict(zip(RISKS, ("bad ✗", "bad ✗", "bad ✗", "open !", "open ?", "good ✓", "good ✓")))
_RATES = ("lag_per_s", "read_per_s", "written_per_s")
_WIDTH, _HEIGHT = 104, 22


def summary(risks: dict[str, int], at: datetime, cost: str) -> str:
    """Return how many groups there are of each trend, when they were seen, and what that cost."""
    counted = ", ".join(f"<strong>{n:,}</strong> {_mood(trend)}" for trend, n in risks.items()) or "no groups"
    return f'<p role="status">{counted}</p><p class="soft">{at:%H:%M:%S} UTC. {html_text(cost)}</p>'


def count(first: int, n_shown: int, n_matching: int, n_groups: int) -> str:
    """Return which of the matching groups are shown."""
    if not n_matching:
        return f'<p class="soft">No name of {quantity(n_groups, "group")} matches.</p>'
    of = "" if n_matching == n_groups else f" of {n_groups:,}"
    return f'<p class="soft">{first + 1:,}–{first + n_shown:,} of {n_matching:,}{of}</p>'


def groups(rows: pl.DataFrame) -> str:
    """A row for each group; its name is the button beside it."""
    heads = ("store", "trend", heading("lag"), *map(_rate_name, _RATES), "recent lag", "unknown")
    body = [
        (
            html_text(row["store"]),
            _mood(row["trend"]),
            number(row["lag"]),
            *(_rate(row[name], name == "lag_per_s") for name in _RATES),
            line(row["lags"]),
            f"{row['n_unknown']:,}" if row["n_unknown"] else "",
        )
        for row in rows.to_dicts()
    ]
    return table(heads, body, numbers={2, 3, 4, 5, 7})


def partitions(group_id: str, rows: pl.DataFrame, n_partitions: int) -> str:
    """The partitions of one group, who is at risk first."""
    name = html_text(cell(group_id))
    if rows.is_empty():
        return f"<p>Group <strong>{name}</strong> has no partitions any more.</p>"
    heads = ("topic", "partition", "store", "trend", heading("lag"), *map(_rate_name, _RATES), "committed", "end")
    heads = (*heads, "owner", "error") if rows["error"].count() else (*heads, "owner")
    more = f"; the first {len(rows):,} are shown" if len(rows) < n_partitions else ""
    said = f"<p>Group <strong>{name}</strong>: {quantity(n_partitions, 'partition')}{more}.</p>"
    return said + table(
        heads, [_partition(row)[: len(heads)] for row in rows.to_dicts()], numbers={1, 4, 5, 6, 7, 8, 9}
    )


def line(lags: Sequence[int | None]) -> str:
    """Lags of the last polls as a line over 0; a gap where one was unknown, a dot where there is nothing to join."""
    highest = max((lag for lag in lags if lag is not None), default=0) or 1
    step = (_WIDTH - 8) / max(1, len(lags) - 1)
    points = [None if lag is None else (4 + step * at, _y(lag / highest)) for at, lag in enumerate(lags)]
    drawn = "".join(_stroke(run) for run in _runs(points))
    words = "unknown" if all(lag is None for lag in lags) else f"from {number(lags[0])} to {number(lags[-1])}"
    box = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg role="img" aria-label="recent lag: {words}" {box}>{drawn}</svg>'


def _partition(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        html_text(cell(row["topic"])),
        str(row["partition"]),
        html_text(row["store"]),
        _mood(row["trend"]),
        number(row["lag"]),
        *(_rate(row[name], name == "lag_per_s") for name in _RATES),
        number(row["committed_offset"]),
        number(row["log_end_offset"]),
        html_text(cell(row["member_id"])),
        html_text(row["error"] or ""),
    )


def _runs(points: Sequence[tuple[float, float] | None]) -> list[list[tuple[float, float]]]:
    """Points that follow each other without a gap."""
    runs: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _stroke(run: Sequence[tuple[float, float]]) -> str:
    if len(run) == 1:
        return f'<circle cx="{run[0][0]:.1f}" cy="{run[0][1]:.1f}" r="2"/>'
    return f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in run)}"/>'


def _y(share: float) -> float:
    return 3 + (_HEIGHT - 6) * (1 - share)


def _mood(trend: str) -> str:
    kind, mark = _MOODS[trend].split()
    return f'<span class="{kind}">{mark} {trend}</span>'


def _rate_name(name: str) -> str:
    return {"lag_per_s": "lag grows/s", "read_per_s": "read/s", "written_per_s": "written/s"}[name]


def _rate(per_s: float | None, is_signed: bool = False) -> str:
    return "–" if per_s is None else f"{per_s:+,.1f}" if is_signed and per_s else f"{per_s:,.1f}"
