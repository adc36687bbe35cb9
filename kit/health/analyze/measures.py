"""Measure windows of commits for Burrow's rules, list by list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl

from kit.health.analyze.lists import (
    COMMIT,
    FLAG,
    MOST,
    NUMBER,
    Flags,
    Lists,
    Longs,
    Partitions,
    by_list,
    by_partition,
    known_at,
    lowest_of_last,
    values,
    where,
)
from kit.health.analyze.windows import PARTITION

_MEASURES = dict.fromkeys(
    [
        "n_commits", "committed_offset", "committed_ms", "first_committed_ms", "rewound_from", "rewound_to",
        "highest_since", "highest", "lowest", "lowest_lag",
    ],
    NUMBER,
) | dict.fromkeys(["falls", "was_allowed"], FLAG)  # fmt: skip
_RING = ["lowest_end", "newest_end"]


def measured_windows(windows: Any, allowed_lag: int) -> Any:
    """Rows of ``commit_windows`` → one per window: what the rules ask of it."""
    key = [*PARTITION, "at_ms"]
    rows: Any = nw.from_native(windows)
    rows = rows.select(*key, "order", "lag", offset="committed_offset", ms="committed_ms")
    return by_list(rows, key, [*COMMIT, "lag"], partial(_of_windows, allowed_lag=allowed_lag), _MEASURES)


def measured_partitions(commits: Any, ends: Any, times: Any, intervals: int, allowed_lag: int) -> Any:
    """Return ``measured_windows`` of the windows and with the rings that these arguments have."""
    task = _Windows(values(times, "at_ms"), intervals, allowed_lag)
    return by_partition(commits, ends, task, dict.fromkeys(["at_ms", *_RING], NUMBER) | _MEASURES)


def _of_windows(keys: pl.DataFrame, windows: Lists, allowed_lag: int) -> Iterator[pl.DataFrame]:
    yield keys.with_columns(_measured(windows, allowed_lag))


def _measured(windows: Lists, allowed_lag: int) -> list[pl.Series]:
    offset, ms, (lag, has_lag) = windows.number("offset"), windows.number("ms"), windows.columns["lag"]
    starts, lasts = windows.starts, windows.starts + windows.lengths - 1
    steps_back = np.zeros(len(offset), bool)
    steps_back[1:] = offset[1:] < offset[:-1]
    steps_back[starts] = False
    turn = np.arange(len(offset))
    back = np.minimum.reduceat(np.where(steps_back, turn, MOST), starts)  # The first one.
    has_back = back < MOST
    at = np.where(has_back, back, 0)
    since = np.maximum.reduceat(np.where(turn >= windows.spread(back), offset, -MOST), starts)
    last_lag = np.maximum.accumulate(np.where(has_lag, turn, -1))
    before = np.concatenate([[-1], last_lag])[:-1]
    has_before = has_lag & (before >= windows.spread(starts))
    falls = has_before & (lag < lag[before])
    lowest_lag = np.minimum.reduceat(np.where(has_lag, lag, MOST), starts)
    return [
        pl.Series("n_commits", windows.lengths),
        pl.Series("committed_offset", offset[lasts]),
        pl.Series("committed_ms", ms[lasts]),
        pl.Series("first_committed_ms", ms[starts]),
        where("rewound_from", has_back, offset[at - 1]),
        where("rewound_to", has_back, offset[at]),
        where("highest_since", has_back, since),
        pl.Series("highest", np.maximum.reduceat(offset, starts)),
        pl.Series("lowest", np.minimum.reduceat(offset, starts)),
        where("lowest_lag", lowest_lag < MOST, lowest_lag),
        pl.Series("falls", np.logical_or.reduceat(falls, starts)),
        pl.Series("was_allowed", lowest_lag <= min(allowed_lag, MOST - 1)),
    ]


@dataclass(frozen=True)
class _Windows:
    """The measures that the rules need of each partition at each time."""

    times: tuple[int, ...]
    intervals: int
    allowed_lag: int

    def __call__(self, partitions: Partitions) -> Iterator[pl.DataFrame]:
        own, commits, ends = partitions.own, partitions.commits, partitions.ends
        commits.columns["lag"] = _lags(partitions)
        is_deleted = ~commits.columns["offset"][1]
        known = np.maximum.accumulate(np.where(is_deleted, np.arange(1, len(is_deleted) + 1), 0))
        lowest = lowest_of_last(ends, "offset", self.intervals)
        for looks in partitions.window_bounds(commits.highest_so_far(), self.times):
            until = looks.last_commit + 1
            begins = np.maximum(until - self.intervals, commits.starts[looks.partition])
            begins = np.maximum(begins, known[looks.last_commit])
            chosen = np.flatnonzero(until > begins)
            if len(chosen):
                end = looks.last_end[chosen]
                windows = commits.part(begins[chosen], (until - begins)[chosen])
                yield own[looks.partition[chosen]].with_columns(
                    pl.Series("at_ms", looks.at_ms[chosen]),
                    known_at("lowest_end", lowest, end),
                    known_at("newest_end", ends.number("offset"), end),
                    *_measured(windows, self.allowed_lag),
                )


def _lags(partitions: Partitions) -> tuple[Longs, Flags]:
    """Return when each was committed, by the newest end until then; and whether there was one."""
    commits, ends = partitions.commits, partitions.ends
    seen = partitions.sampled(commits.number("ms"))
    is_known = (seen > 0) & commits.columns["offset"][1]
    first = commits.spread(partitions.first_ends())
    newest = np.append(ends.number("offset"), 0)[np.where(is_known, first + seen - 1, -1)]
    return np.where(is_known, np.maximum(newest - commits.number("offset"), 0), 0), is_known
