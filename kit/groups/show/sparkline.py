"""A few numbers over time as one word of eight heights: it prints, it sorts, it needs no picture."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

_HEIGHTS = "▁▂▃▄▅▆▇█"
UNKNOWN = "·"


def lags_of_late(recent: pl.DataFrame) -> pl.DataFrame:
    """``History.recent_lags`` → group_id, store, last_lags: a sparkline of each, oldest first."""
    lags = recent.sort("started_at").group_by("group_id", "store").agg("lag")
    lines = [sparkline(each) for each in lags["lag"].to_list()]
    return lags.select("group_id", "store", pl.Series("last_lags", lines, pl.String))


def sparkline(values: Sequence[float | None]) -> str:
    """A character for each value, the highest at the full height, 0 at the lowest.

    >>> sparkline([0, 5, None, 10]), sparkline([0, 0]), sparkline([])
    ('▁▅·█', '▁▁', '')
    """
    highest = max((value for value in values if value is not None), default=0)
    return "".join(UNKNOWN if value is None else _height(value, highest) for value in values)


def _height(value: float, highest: float) -> str:
    share = value / highest if highest > 0 else 0.0
    return _HEIGHTS[max(0, min(len(_HEIGHTS) - 1, int(share * (len(_HEIGHTS) - 1) + 0.5)))]
