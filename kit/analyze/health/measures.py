"""What Burrow's rules ask of windows of commits, by columns; on Spark its tasks get a list of commits per partition.

Why not by narwhals: docs/decisions/two-engines.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from kit.analyze.health.windows import PARTITION

_GROUP, _LOG = PARTITION[:2], PARTITION[2:]
_COMMIT = ["order", "offset", "ms"]
_MEASURES = [
    "n_commits", "committed_offset", "committed_ms", "first_committed_ms", "rewound_from", "rewound_to",
    "highest_since", "highest", "lowest", "lowest_lag", "falls", "was_allowed",
]  # fmt: skip
_RING = ["lowest_end", "newest_end"]
_FLAGS = ("falls", "was_allowed")
_MOST = np.iinfo(np.int64).max
_AT_ONCE = 10_000
"""So many lists are measured together: their numbers stay in the processor's cache."""

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Task: TypeAlias = Callable[[pl.DataFrame], Iterable[pl.DataFrame]]


def measured_windows(windows: Any, allowed_lag: int) -> Any:
    """Rows of ``commit_windows`` → one per window: what the rules ask of it."""
    key = [*PARTITION, "at_ms"]
    rows: Any = nw.from_native(windows)
    rows = rows.select(*key, "order", "lag", offset="committed_offset", ms="committed_ms")
    return _by_list(rows, [], key, [*_COMMIT, "lag"], partial(_of_windows, allowed_lag=allowed_lag), key)


def measured_partitions(commits: Any, ends: Any, times: Any, intervals: int, allowed_lag: int) -> Any:
    """As ``measured_windows``, of the windows and with the rings that these arguments have."""
    marks, rows = nw.from_native(ends), nw.from_native(commits)
    marks = marks.filter(~nw.col("log_end_offset").is_null()).select(
        *[nw.lit(None, nw.String).alias(name) for name in _GROUP],
        *_LOG,
        order="sampled_ms",
        offset="log_end_offset",
        ms="sampled_ms",
    )
    rows = rows.select(*PARTITION, nw.col("order").cast(nw.Int64), offset="committed_offset", ms="committed_ms")
    task = _Partitions(tuple(sorted(_values(times, "at_ms"))), intervals, allowed_lag)
    return _by_list(nw.concat([marks, rows]), _LOG, _GROUP, _COMMIT, task, [*PARTITION, "at_ms", *_RING])


def _values(frame: Any, name: str) -> set[int]:
    native: Any = nw.to_native(nw.from_native(frame).select(name))
    is_polars = isinstance(native, (pl.DataFrame, pl.LazyFrame))
    return set((native.lazy().collect().to_arrow() if is_polars else native.toArrow())[name].to_pylist())


def _by_list(
    frame: Any, log: Sequence[str], key: Sequence[str], fields: Sequence[str], task: Task, besides: Sequence[str]
) -> Any:
    """``task`` gets a row per log and key with a list, ``each``; a log's in one call, first that without a key."""
    rows: Any = nw.to_native(frame)
    if isinstance(rows, pl.LazyFrame):
        return _by_list(nw.from_native(rows.collect()), log, key, fields, task, besides).lazy()
    if isinstance(rows, pl.DataFrame):
        lists = rows.rechunk().group_by(*log, *key).agg(pl.struct(fields).alias("each"))
        lists = _log_by_log(lists, log) if log else lists
        slices = chain([lists.clear()], lists.iter_slices(_AT_ONCE))
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            found = pl.concat(chain.from_iterable(pool.map(lambda part: [*task(part)], _whole(slices))))
    else:
        types = dict(rows.dtypes) | dict.fromkeys(_FLAGS, "boolean")
        schema = ", ".join(f"{name} {types.get(name, 'bigint')}" for name in [*besides, *_MEASURES])
        rows = rows.repartition(*log) if log else rows
        rows = rows.selectExpr(*log, *key, f"struct({', '.join(fields)}) as each").groupBy(*log, *key)
        lists = rows.agg({"each": "collect_list"}).toDF(*log, *key, "each").sortWithinPartitions(*log, key[0])
        found = lists.mapInArrow(partial(_in_batches, task), schema)
    return nw.from_native(found)


def _log_by_log(lists: pl.DataFrame, log: Sequence[str]) -> pl.DataFrame:
    """In the order of a number of each log: to sort by its name takes twice as long."""
    numbered = lists.select(log).unique().with_row_index("log")
    return lists.join(numbered, on=log).sort("log", pl.col(_GROUP[0]).is_not_null()).drop("log")


def _in_batches(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    frames: Iterator[Any] = map(pl.from_arrow, batches)
    for lists in _whole(frames):
        for found in task(lists):
            yield from found.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _whole(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Each with the ends of the log that it begins with: they may be in the frame before."""
    ends: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if ends is None else pl.concat([ends, frame])
        ends = rows.filter(pl.col(_GROUP[0]).is_null()).tail(1)
        yield rows


@dataclass(frozen=True)
class _Lists:
    """Lists one behind the other, none of them empty, each in its order."""

    columns: dict[str, tuple[Longs, Flags]]
    """The numbers, and which of them are known."""
    starts: Longs
    lengths: Longs

    @classmethod
    def of(cls, each: pl.Series) -> _Lists:
        rows = each.explode(empty_as_null=False).struct.unnest()
        lengths = each.list.len().cast(pl.Int64).to_numpy()
        starts = np.cumsum(lengths) - lengths
        order = rows["order"].to_numpy()
        falls = order[1:] < order[:-1]
        falls[starts[1:] - 1] = False
        if falls.any():
            rows = rows[np.lexsort((order, np.repeat(np.arange(len(lengths)), lengths)))]
        columns = {
            name: (rows[name].fill_null(0).to_numpy(), rows[name].is_not_null().to_numpy()) for name in rows.columns
        }
        return cls(columns, starts, lengths)

    def part(self, begins: Longs, lengths: Longs) -> _Lists:
        """A stretch of each."""
        if np.array_equal(lengths, self.lengths):
            return self
        starts = np.cumsum(lengths) - lengths
        at = np.repeat(begins - starts, lengths) + np.arange(lengths.sum())
        return _Lists({name: (x[at], known[at]) for name, (x, known) in self.columns.items()}, starts, lengths)

    def number(self, name: str) -> Longs:
        return self.columns[name][0]

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(values, self.lengths)


def _of_windows(lists: pl.DataFrame, allowed_lag: int) -> Iterator[pl.DataFrame]:
    yield lists.drop("each").with_columns(_measured(_Lists.of(lists["each"]), allowed_lag))


def _measured(windows: _Lists, allowed_lag: int) -> list[pl.Series]:
    offset, ms, (lag, has_lag) = windows.number("offset"), windows.number("ms"), windows.columns["lag"]
    starts, lasts = windows.starts, windows.starts + windows.lengths - 1
    steps_back = np.zeros(len(offset), bool)
    steps_back[1:] = offset[1:] < offset[:-1]
    steps_back[starts] = False
    turn = np.arange(len(offset))
    back = np.minimum.reduceat(np.where(steps_back, turn, _MOST), starts)  # The first one.
    has_back = back < _MOST
    at = np.where(has_back, back, 0)
    since = np.maximum.reduceat(np.where(turn >= windows.spread(back), offset, -_MOST), starts)
    last_lag = np.maximum.accumulate(np.where(has_lag, turn, -1))
    before = np.concatenate([[-1], last_lag])[:-1]
    has_before = has_lag & (before >= windows.spread(starts))
    falls = has_before & (lag < lag[before])
    lowest_lag = np.minimum.reduceat(np.where(has_lag, lag, _MOST), starts)
    return [
        pl.Series("n_commits", windows.lengths),
        pl.Series("committed_offset", offset[lasts]),
        pl.Series("committed_ms", ms[lasts]),
        pl.Series("first_committed_ms", ms[starts]),
        _where("rewound_from", has_back, offset[at - 1]),
        _where("rewound_to", has_back, offset[at]),
        _where("highest_since", has_back, since),
        pl.Series("highest", np.maximum.reduceat(offset, starts)),
        pl.Series("lowest", np.minimum.reduceat(offset, starts)),
        _where("lowest_lag", lowest_lag < _MOST, lowest_lag),
        pl.Series("falls", np.logical_or.reduceat(falls, starts)),
        pl.Series("was_allowed", lowest_lag <= min(allowed_lag, _MOST - 1)),
    ]


def _where(name: str, is_known: Flags, values: Longs) -> pl.Series:
    return pl.select(pl.when(pl.Series(is_known)).then(pl.Series(values)).alias(name)).to_series()


@dataclass(frozen=True)
class _Partitions:
    """Lists of commits and of ends → what the rules ask of each partition at each time."""

    times: tuple[int, ...]
    intervals: int
    allowed_lag: int

    def __call__(self, lists: pl.DataFrame) -> Iterator[pl.DataFrame]:
        lists = lists.with_columns(log=pl.struct(_LOG).rle_id())
        is_end = lists[_GROUP[0]].is_null()
        own, kept = lists.filter(~is_end).drop("each"), lists.filter(is_end)
        commits, ends = _Lists.of(lists["each"].filter(~is_end)), _Lists.of(kept["each"])
        commits.columns["lag"] = _lags(commits, own["log"], ends, kept["log"])
        entered = _highest_so_far(commits)
        is_deleted = ~commits.columns["offset"][1]
        known = np.maximum.accumulate(np.where(is_deleted, np.arange(1, len(entered) + 1), 0))
        columns = [*PARTITION, "at_ms", *_RING, *_MEASURES]
        yield self._none(own).select(columns)
        for at_ms in self.times:
            until = commits.starts + _sums(entered <= at_ms, commits)
            begins = np.maximum(until - self.intervals, commits.starts)
            begins = np.maximum(begins, known[until - 1])
            chosen = np.flatnonzero(until > begins)
            windows = commits.part(begins[chosen], (until - begins)[chosen])
            if len(chosen):
                rows = own[chosen].with_columns(
                    pl.lit(at_ms, pl.Int64).alias("at_ms"), *_measured(windows, self.allowed_lag)
                )
                ring = self._ring(kept, ends, at_ms)
                yield rows.join(ring, on="log", how="left", maintain_order="left").select(columns)

    def _none(self, own: pl.DataFrame) -> pl.DataFrame:
        empty = {name: pl.Boolean if name in _FLAGS else pl.Int64 for name in ("at_ms", *_RING, *_MEASURES)}
        return pl.concat([own.clear(), pl.DataFrame(schema=empty)], how="horizontal")

    def _ring(self, kept: pl.DataFrame, ends: _Lists, at_ms: int) -> pl.DataFrame:
        """Of each log with an end until then: the lowest and the newest one that are remembered."""
        until = ends.starts + _sums(ends.number("ms") <= at_ms, ends)
        begins = np.maximum(until - self.intervals, ends.starts)
        chosen = np.flatnonzero(until > begins)
        rings = ends.part(begins[chosen], (until - begins)[chosen])
        lowest = np.minimum.reduceat(rings.number("offset"), rings.starts)
        newest = ends.number("offset")[until[chosen] - 1]
        return kept.select("log")[chosen].with_columns(lowest_end=pl.Series(lowest), newest_end=pl.Series(newest))


def _lags(commits: _Lists, logs: pl.Series, ends: _Lists, logs_of_ends: pl.Series) -> tuple[Longs, Flags]:
    """When each was committed, by the newest end until then; and whether there was one."""
    number, is_known = np.zeros(len(commits.number("ms")), np.int64), np.zeros(len(commits.number("ms")), bool)
    place = {log: at for at, log in enumerate(logs_of_ends)}
    begins = np.flatnonzero(logs.to_numpy()[1:] != logs.to_numpy()[:-1]) + 1
    firsts = np.concatenate([[0], begins]) if len(logs) else begins
    bounds = [*commits.starts[firsts].tolist(), len(number)]
    for first, begin, end in zip(firsts.tolist(), bounds, bounds[1:]):
        at = place.get(logs[first])
        if at is not None:
            own = slice(ends.starts[at], ends.starts[at] + ends.lengths[at])
            seen = np.searchsorted(ends.number("ms")[own], commits.number("ms")[begin:end], side="right")
            is_known[begin:end] = seen > 0
            behind = ends.number("offset")[own][seen - 1] - commits.number("offset")[begin:end]
            number[begin:end] = np.maximum(behind, 0)
    return number, is_known & commits.columns["offset"][1]


def _highest_so_far(lists: _Lists) -> Longs:
    ms = lists.number("ms")
    falls = ms[1:] < ms[:-1]
    falls[lists.starts[1:] - 1] = False
    if not falls.any():
        return ms
    rows = pl.DataFrame({"ms": ms, "list": lists.spread(np.arange(len(lists.lengths)))})
    return rows.select(pl.col("ms").cum_max().over("list")).to_series().to_numpy()


def _sums(flags: Flags, lists: _Lists) -> Longs:
    total = np.concatenate([[0], np.cumsum(flags)])
    sums: Longs = total[lists.starts + lists.lengths] - total[lists.starts]
    return sums
