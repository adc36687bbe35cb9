"""Since when something waits to be read: a partition without lag is not late, however long ago it committed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import narwhals as nw
import numpy as np
import polars as pl
from narwhals.typing import FrameT

from kit.health.analyze.lists import NUMBER, Flags, Lists, Longs, Partitions, by_partition, known_at, values, where

_WAITING = ["at_ms", "lag", "arrived_ms", "fine_ms", "waits_ms"]


@nw.narwhalify
def waiting_since(commits: FrameT, ends: FrameT, times: FrameT) -> FrameT:
    """Return when records began to wait, at each time, by the ends that were sampled. Arguments: see
    ``commit_windows``.

    Columns:
        group_id, store, topic, partition, at_ms: whose records, and when; no row where no offset is committed.
        lag: newest end − newest commit, at least 0, in records; null where no end is known.
        arrived_ms: the newest commit's time, or that of an older commit if that is later: where a coordinator's clock
            was set back, a commit is at least as young as those before it.
        fine_ms: when nothing waited for the last time (epoch); null: at no commit and at no sampled end.
        waits_ms: since then, the first commit or end with which something waited; null: it does not.

    The end was 10 at 0 s and at 60 s, 12 at 90 s; the group committed 10 at 5 s. At 100 s records wait since 60 s at
    the earliest, since 90 s for certain:

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> commits = pl.DataFrame({"group_id": ["g"], "store": "kafka", **place, "committed_offset": [10],
    ...     "committed_ms": [5000], "order": [0]})
    >>> ends = pl.DataFrame({**place, "log_end_offset": [10, 10, 12], "sampled_ms": [0, 60_000, 90_000]})
    >>> rows = waiting_since(commits, ends, pl.DataFrame({"at_ms": [100_000]}))
    >>> rows.select("lag", "fine_ms", "waits_ms").rows()
    [(2, 60000, 90000)]
    """
    task = _Waiting(values(times, "at_ms"))
    rows: FrameT = by_partition(commits, ends, task, dict.fromkeys(_WAITING, NUMBER))
    return rows


@dataclass(frozen=True)
class _Waiting:
    times: tuple[int, ...]

    def __call__(self, partitions: Partitions) -> Iterator[pl.DataFrame]:
        own, commits, ends = partitions.own, partitions.commits, partitions.ends
        entered = commits.highest_so_far()
        happened = _Happened.of(partitions, entered)
        arrived, fine, begun = map(happened.both.last, (happened.is_commit, happened.is_fine, happened.begins))
        for looks in partitions.window_bounds(entered, self.times):
            chosen = np.flatnonzero((looks.last_commit >= 0) & commits.columns["offset"][1][looks.last_commit])
            of, commit, end = looks.partition[chosen], looks.last_commit[chosen], looks.last_end[chosen]
            lag = np.append(ends.number("offset"), 0)[end] - commits.number("offset")[commit]
            at = happened.place(of, commit, end)
            yield own[of].with_columns(
                pl.Series("at_ms", looks.at_ms[chosen]),
                where("lag", end >= 0, np.maximum(lag, 0)),
                known_at("arrived_ms", happened.ms, arrived[at]),
                known_at("fine_ms", happened.ms, fine[at]),
                known_at("waits_ms", happened.ms, np.where(happened.waits[at], begun[at], -1)),
            )


@dataclass(frozen=True)
class _Happened:
    """Commits of each partition and ends of its log, in one list by time.

    Of one moment an end counts as before a commit, since a snapshot reads ends after commits; an observation sees both.
    """

    partitions: Partitions
    both: Lists
    ms: Longs
    is_commit: Flags
    waits: Flags
    """From then on something did, for all that is known."""
    is_fine: Flags
    begins: Flags

    @classmethod
    def of(cls, partitions: Partitions, entered: Longs) -> _Happened:
        commits, ends = partitions.commits, partitions.own_ends()
        lengths = commits.lengths + ends.lengths
        starts = np.cumsum(lengths) - lengths
        both = Lists({}, starts, lengths)
        is_commit = np.zeros(lengths.sum(), bool)
        turn = np.arange(len(entered)) - commits.spread(commits.starts)
        is_commit[commits.spread(starts) + turn + partitions.sampled(entered)] = True
        offset, is_known = commits.columns["offset"]
        ms, number, tells = np.empty(len(is_commit), np.int64), np.empty(len(is_commit), np.int64), ~is_commit
        ms[is_commit], ms[~is_commit] = entered, ends.number("ms")
        number[is_commit], number[~is_commit] = offset, ends.number("offset")
        tells[is_commit] = is_known
        last_offset, last_end = both.last(tells & is_commit), both.last(~is_commit)
        is_known = (last_offset >= 0) & (last_end >= 0)
        waits = is_known & (number[last_end] > number[last_offset])
        before = np.roll(waits, 1)
        before[starts] = False
        return cls(partitions, both, ms, is_commit, waits, is_known & ~waits, waits & ~before)

    def place(self, of: Longs, last_commit: Longs, last_end: Longs) -> Longs:
        """Return the last place of these partitions until both."""
        partitions = self.partitions
        n_commits = last_commit - partitions.commits.starts[of] + 1
        n_ends = np.where(last_end >= 0, last_end - partitions.first_ends()[of] + 1, 0)
        return self.both.starts[of] + n_commits + n_ends - 1
