"""Lists of each partition's commits and of its log's ends, handed to numpy; on Spark its tasks get them.

Questions of order are asked of lists: as windows of SQL each is a sort and a pass of its own
(docs/decisions/two-engines.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain, pairwise
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from kit.health.analyze.windows import PARTITION

GROUP, LOG = PARTITION[:2], PARTITION[2:]
COMMIT = ["order", "offset", "ms"]
NUMBER, FLAG = "bigint", "boolean"
"""Spark's types of what is measured."""
MOST = np.iinfo(np.int64).max
AT_ONCE = 10_000
"""The number of lists that are measured together, of one observation or of several: their numbers stay in the
processor's cache.
"""
_COUNTS = 10_000_000
"""The number of numbers that are counted together, one for each observation and each list."""

Longs: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Task: TypeAlias = Callable[[pl.DataFrame, "Lists"], Iterable[pl.DataFrame]]
PartitionsTask: TypeAlias = Callable[["Partitions"], Iterable[pl.DataFrame]]
Columns: TypeAlias = dict[str, str]


def by_list(frame: Any, key: Sequence[str], fields: Sequence[str], task: Task, measured: Columns) -> Any:
    """``task`` gets keys, and the list of ``fields`` of each, in the order of the first one; it gives keys with what is
    measured."""
    return _by_list(nw.from_native(frame), [], key, fields, task, measured)


def by_partition(commits: Any, ends: Any, task: PartitionsTask, measured: Columns) -> Any:
    """The same of the lists of ``commits`` and ``ends``, as ``commit_windows`` takes them; the key is ``PARTITION``."""
    marks, rows = nw.from_native(ends), nw.from_native(commits)
    marks = marks.filter(~nw.col("log_end_offset").is_null()).select(
        *[nw.lit(None, nw.String).alias(name) for name in GROUP],
        *LOG,
        order="sampled_ms",
        offset="log_end_offset",
        ms="sampled_ms",
    )
    rows = rows.select(*PARTITION, nw.col("order").cast(nw.Int64), offset="committed_offset", ms="committed_ms")
    both = nw.concat([marks, rows])
    return _by_list(both, LOG, GROUP, COMMIT, partial(_of_partitions, task), measured)


def _of_partitions(task: PartitionsTask, keys: pl.DataFrame, lists: Lists) -> Iterable[pl.DataFrame]:
    return task(Partitions.of(keys, lists))


def values(frame: Any, name: str) -> tuple[int, ...]:
    """In order, each once."""
    native: Any = nw.to_native(nw.from_native(frame).select(name))
    is_polars = isinstance(native, (pl.DataFrame, pl.LazyFrame))
    return tuple(sorted(set((native.lazy().collect().to_arrow() if is_polars else native.toArrow())[name].to_pylist())))


def _by_list(
    frame: Any, log: Sequence[str], key: Sequence[str], fields: Sequence[str], task: Task, measured: Columns
) -> Any:
    """A log's lists are in one call, first that without a key."""
    rows: Any = nw.to_native(frame)
    if isinstance(rows, pl.LazyFrame):
        return _by_list(nw.from_native(rows.collect()), log, key, fields, task, measured).lazy()
    columns = PARTITION if log else key
    if isinstance(rows, pl.DataFrame):
        rows, names, lengths = together(rows, [*log, *key], fields[0])
        flat = rows.select(fields)

        def of_part(part: pl.DataFrame) -> list[pl.DataFrame]:
            begins, lengths = part["begin"].to_numpy(), part["length"].to_numpy()
            return [*task(part.select(*log, *key), Lists.of(flat[_places(begins, lengths)], lengths))]

        names = names.with_columns(begin=pl.Series(np.cumsum(lengths) - lengths), length=pl.Series(lengths))
        with ThreadPoolExecutor(pl.thread_pool_size()) as pool:
            found = chain.from_iterable(pool.map(of_part, _parts(names, log, key)))
            return nw.from_native(pl.concat([_nothing(rows.select(columns), measured), *found]))
    types = dict(rows.dtypes)
    schema = ", ".join(f"{name} {kind}" for name, kind in ({name: types[name] for name in columns} | measured).items())
    rows = rows.repartition(*log) if log else rows
    rows = rows.selectExpr(*log, *key, f"struct({', '.join(fields)}) as each").groupBy(*log, *key)
    lists = rows.agg({"each": "collect_list"}).toDF(*log, *key, "each").sortWithinPartitions(*log, key[0])
    return nw.from_native(lists.mapInArrow(partial(_in_batches, task), schema))


def _nothing(keys: pl.DataFrame, measured: Columns) -> pl.DataFrame:
    empty = {name: pl.Boolean if kind == FLAG else pl.Int64 for name, kind in measured.items()}
    return pl.concat([keys.clear(), pl.DataFrame(schema=empty)], how="horizontal")


def _parts(names: pl.DataFrame, log: Sequence[str], key: Sequence[str]) -> Iterator[pl.DataFrame]:
    """About so many lists each, log by log, first the list without a key."""
    begins = np.arange(0, len(names), AT_ONCE)
    if log:  # In the order of a number of each log: to sort by its name takes twice as long.
        logs = names.select(log).unique().with_row_index("log")
        names = names.join(logs, on=log).sort("log", pl.col(key[0]).is_not_null())
        of_logs = np.flatnonzero(np.diff(names["log"].to_numpy().astype(np.int64), prepend=-1))
        begins = np.unique(of_logs[np.searchsorted(of_logs, begins).clip(max=len(of_logs) - 1)])
    for first, until in pairwise([*begins.tolist(), len(names)]):
        yield names[first:until]


def _places(begins: Longs, lengths: Longs) -> Longs:
    """Return the places of so many rows from each begin on."""
    places: Longs = np.repeat(begins - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    return places


def together(rows: pl.DataFrame, key: Sequence[str], order: str) -> tuple[pl.DataFrame, pl.DataFrame, Longs]:
    """The rows of each key one behind the other, in order; the keys in that order; and how many rows each has.

    Quick where they are in that order already, as those of a compacted history do.
    """
    is_new = rows.select(pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in key)).to_series()
    is_new = is_new | (pl.int_range(len(rows), eager=True) == 0)
    heads, begins = rows.select(key).filter(is_new), is_new.arg_true().to_numpy().astype(np.int64)
    names, lengths = heads.unique(maintain_order=True), np.diff(begins, append=len(rows))
    if len(names) == len(heads) and not _falls(rows[order].to_numpy(), begins):
        return rows, names, lengths
    found = heads.join(names.with_row_index("number"), on=key, how="left", nulls_equal=True, maintain_order="left")
    number = np.repeat(found["number"].to_numpy(), lengths)
    rows = rows.with_columns(pl.Series("number", number)).sort("number", order).drop("number")
    return rows, names, np.bincount(number, minlength=len(names))


def _falls(numbers: Longs, begins: Longs) -> bool:
    """Anywhere but where a list begins."""
    falls = numbers[1:] < numbers[:-1]
    falls[begins[1:] - 1] = False
    return bool(falls.any())


def _in_batches(task: Task, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    frames: Iterator[Any] = map(pl.from_arrow, batches)
    for lists in _whole(frames):
        for found in task(lists.drop("each"), Lists.of_series(lists["each"])):
            yield from found.to_arrow(compat_level=pl.CompatLevel.oldest()).to_batches()


def _whole(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Each with the ends of the log that it begins with: they may be in the frame before."""
    ends: pl.DataFrame | None = None
    for frame in frames:
        rows = frame if ends is None else pl.concat([ends, frame])
        ends = rows.filter(pl.col(GROUP[0]).is_null()).tail(1)
        yield rows


@dataclass(frozen=True)
class Lists:
    """Lists one behind the other, none of them empty, each in its order."""

    columns: dict[str, tuple[Longs, Flags]]
    """The numbers, and which of them are known."""
    starts: Longs
    lengths: Longs

    @classmethod
    def of(cls, rows: pl.DataFrame, lengths: Longs) -> Lists:
        """Return the lists of rows, with so many rows for each list."""
        columns = {
            name: (rows[name].fill_null(0).to_numpy(), rows[name].is_not_null().to_numpy()) for name in rows.columns
        }
        return cls(columns, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def of_series(cls, each: pl.Series) -> Lists:
        lengths = each.list.len().cast(pl.Int64).to_numpy()
        rows = each.explode(empty_as_null=False).struct.unnest()
        if _falls(rows["order"].to_numpy(), np.cumsum(lengths) - lengths):
            number = pl.Series("number", np.repeat(np.arange(len(lengths)), lengths))
            rows = rows.with_columns(number).sort("number", "order").drop("number")
        return cls.of(rows, lengths)

    def part(self, begins: Longs, lengths: Longs) -> Lists:
        """Stretches of them."""
        if np.array_equal(lengths, self.lengths) and np.array_equal(begins, self.starts):
            return self
        at = _places(begins, lengths)
        columns = {name: (x[at], known[at]) for name, (x, known) in self.columns.items()}
        return Lists(columns, np.cumsum(lengths) - lengths, lengths)

    def number(self, name: str) -> Longs:
        return self.columns[name][0]

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.repeat(values, self.lengths)

    def highest_so_far(self) -> Longs:
        """Return the highest value so far; times in ms."""
        ms = self.number("ms")
        if not _falls(ms, self.starts):
            return ms
        rows = pl.DataFrame({"ms": ms, "list": self.spread(np.arange(len(self.lengths)))})
        return rows.select(pl.col("ms").cum_max().over("list")).to_series().to_numpy()

    def last(self, chosen: Flags) -> Longs:
        """For each place the last one until there that is chosen, in the same list; -1: none is."""
        last: Longs = np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), -1))
        return np.where(last >= self.spread(self.starts), last, -1)


def lowest_of_last(lists: Lists, name: str, n: int) -> Longs:
    """For each place the lowest of so many until there, in the same list; of twice as many in each turn."""
    place = np.arange(len(lists.number(name))) - lists.spread(lists.starts)
    lowest, size = lists.number(name), 1
    while size < n:
        step = min(size, n - size)
        lowest = np.where(place >= step, np.minimum(lowest, np.roll(lowest, step)), lowest)
        size += step
    return lowest


@dataclass(frozen=True)
class WindowBounds:
    """Partitions at times, one pair each: what was known of it then."""

    at_ms: Longs
    partition: Longs
    last_commit: Longs
    """Its place among the commits; -1: there was none."""
    last_end: Longs
    """Its place among the ends; -1: there was none."""


@dataclass(frozen=True)
class Partitions:
    """Commits of partitions, and the ends of their logs; lists of (order, offset, ms)."""

    own: pl.DataFrame
    """``PARTITION`` of each."""
    logs: Longs
    """The place of its log's list among the ends; -1: it has none."""
    commits: Lists
    ends: Lists

    @classmethod
    def of(cls, keys: pl.DataFrame, lists: Lists) -> Partitions:
        log, is_end = keys.select(pl.struct(LOG).rle_id()).to_series().to_numpy(), keys[GROUP[0]].is_null()
        own, kept = np.flatnonzero(~is_end.to_numpy()), np.flatnonzero(is_end.to_numpy())
        places = np.full(len(keys), -1)
        places[log[kept]] = np.arange(len(kept))
        commits, ends = (lists.part(lists.starts[some], lists.lengths[some]) for some in (own, kept))
        return cls(keys.filter(~is_end).select(PARTITION), places[log[own]], commits, ends)

    def first_ends(self) -> Longs:
        """The place of each one's first end; one without any has none."""
        return np.append(self.ends.starts, 0)[self.logs]

    def own_ends(self) -> Lists:
        """The ends of each one's log, which may be empty."""
        return self.ends.part(self.first_ends(), np.append(self.ends.lengths, 0)[self.logs])

    def sampled(self, ms: Longs) -> Longs:
        """For a time of each commit: how many ends of its log were sampled until then."""
        number = np.zeros(len(ms), np.int64)
        firsts = np.flatnonzero(np.diff(self.logs, prepend=-2))
        bounds = [*self.commits.starts[firsts].tolist(), len(ms)]
        for log, begin, end in zip(self.logs[firsts].tolist(), bounds, bounds[1:]):
            if log >= 0:
                own = slice(self.ends.starts[log], self.ends.starts[log] + self.ends.lengths[log])
                number[begin:end] = np.searchsorted(self.ends.number("ms")[own], ms[begin:end], side="right")
        return number

    def window_bounds(self, entered: Longs, times: Sequence[int]) -> Iterator[WindowBounds]:
        """All at each time, a few times together; ``entered``: when each commit was known, never falling in a list."""
        n_together = max(1, AT_ONCE // max(1, len(self.own)))
        commits = _last(entered, self.commits, times, n_together)
        ends = _last(self.ends.number("ms"), self.ends, times, n_together)
        for (some, last_commit), (_, last_end) in zip(commits, ends):
            last_end = np.hstack([last_end, np.full((len(some), 1), -1)])[:, self.logs]
            partition = np.tile(np.arange(len(self.own)), len(some))
            yield WindowBounds(np.repeat(some, len(self.own)), partition, last_commit.ravel(), last_end.ravel())


def _last(ms: Longs, lists: Lists, times: Sequence[int], n_together: int) -> Iterator[tuple[Longs, Longs]]:
    """Return so many times, and of each of them and each list, in rows: the last place until then, or -1."""
    turn = lists.spread(np.arange(len(lists.lengths)))
    n_counted = n_together * max(1, _COUNTS // (n_together * max(1, len(lists.lengths))))
    for first in range(0, len(times), n_counted):
        some = np.array(times[first : first + n_counted], np.int64)
        shape = len(some) + 1, len(lists.lengths)
        new = np.bincount(np.searchsorted(some, ms) * shape[1] + turn, minlength=shape[0] * shape[1])
        count = new.reshape(shape).cumsum(axis=0)
        for at in range(0, len(some), n_together):
            known = count[:-1][at : at + n_together]
            yield some[at : at + n_together], np.where(known > 0, lists.starts + known - 1, -1)


def where(name: str, is_known: Flags, numbers: Longs) -> pl.Series:
    """Null where it is not known."""
    return pl.select(pl.when(pl.Series(is_known)).then(pl.Series(numbers)).alias(name)).to_series()


def known_at(name: str, numbers: Longs, places: Longs) -> pl.Series:
    """The numbers at these places; null at -1."""
    return where(name, places >= 0, np.append(numbers, 0)[places])
