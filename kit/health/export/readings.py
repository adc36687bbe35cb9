"""An observation of the cluster, and what is reported of it: which partitions have figures of their own, and which
are summed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import monotonic
from typing import TypeAlias

import polars as pl

from kit.clients.cluster import Cluster
from kit.errors import OfframpError, PartialRead
from kit.groups import views
from kit.groups.read.whole_cluster import EVERY_GROUP
from kit.groups.snapshot import Snapshot, failed_reads, verify_each, verify_read
from kit.health.analyze.windows import PARTITION
from kit.health.export.missing_times import unknown_times, verify_times
from kit.health.export.verdicts import CommitWindows
from kit.health.live import Polls
from kit.health.sources import time_lag_and_outlook

GROUP = ["group_id", "store"]
_MOVED = ["group_id", "source"]
_OWNED = [*_MOVED, "topic", "partition"]
_TIMES = {"time_lag_ms": pl.Int64, "close_ms": pl.Int64, "deletion_lower_ms": pl.Int64}
_NEVER = {"is_never_closed": pl.Boolean, "is_never_deleted": pl.Boolean}

Times: TypeAlias = Callable[[Cluster, pl.DataFrame], tuple[pl.DataFrame, pl.DataFrame]]
"""Lags in time and the outlook: ``kit.health.sources.time_lag_and_outlook``."""


@dataclass(frozen=True)
class Reading:
    """The figures of one observation; times in milliseconds, null: unknown.

    partitions: rows of ``kit.views.lag`` of groups with figures of their own, with status, time_lag_ms, close_ms,
        is_never_closed, deletion_lower_ms, is_never_deleted.
    groups: group_id, store, lag, n_partitions, n_unknown of these groups.
    others: the same of the groups that the limit left out.
    stages: group_id, stage.
    moves: how often a partition went to another member, by group and store, since the first observation.
    took_s: how long the whole observation took, with the lags in time and the outlook.
    unknown_times: the rows of partitions whose lag in records is known, but not the lag in time or the outlook
        (``unknown_times``); all of them if ``error`` reports that neither could be read.
    error: why no lag in time and no outlook could be read; empty: they could.
    """

    at: datetime
    took_s: float
    n_requests: int
    partitions: pl.DataFrame
    groups: pl.DataFrame
    others: pl.DataFrame
    stages: pl.DataFrame
    moves: dict[tuple[str, str], int]
    n_unread: int
    unknown_times: pl.DataFrame
    error: str
    snapshot: Snapshot[pl.DataFrame]

    def verify(self) -> None:
        """Raise unless everything was read.

        Raises:
            PartialRead: with what could not be read, and why: offsets, lags in time, or the outlook.
        """
        verify_each(partial(verify_read, self.snapshot), self.verify_times)

    def verify_times(self) -> None:
        """The same for lags in time and the outlook alone."""
        if self.error:
            raise PartialRead(f"No lag in time and no outlook could be read: {self.error}")
        verify_times(self.unknown_times)


class Readings:
    """``limit``: at most so many partitions have figures of their own; whole groups, those with the most lag first."""

    def __init__(
        self,
        cluster: Cluster,
        pattern: str = EVERY_GROUP,
        limit: int = 10_000,
        has_times: bool = True,
        times: Times = time_lag_and_outlook,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._cluster, self._limit, self._has_times = cluster, limit, has_times
        self._times, self._clock = times, clock
        self._looks, self._windows = Polls(cluster, pattern), CommitWindows()
        self._moves = OwnerMoves()

    def take(self) -> Reading:
        """Poll once more. Raises as ``kit.groups.snapshot.observe``."""
        begun, sent = self._clock(), self._cluster.broker_client.n_sent
        look = self._looks.take()
        groups = views.group_lag(look.partitions).select(*GROUP, "lag", "n_partitions", "n_unknown")
        own, others = chosen(groups, self._limit)
        partitions = look.partitions.join(own, on=GROUP, how="semi").sort(PARTITION)
        partitions = partitions.join(
            self._windows.judge(look.partitions), on=PARTITION, how="left", maintain_order="left"
        )
        partitions, unknown, error = self._with_times(partitions, own)
        taken = look.snapshot
        stages = views.stages(taken)
        return Reading(
            at=look.at,
            took_s=self._clock() - begun,
            n_requests=self._cluster.broker_client.n_sent - sent,
            partitions=partitions,
            groups=own,
            others=others,
            stages=stages.join(own, on="group_id", how="semi"),
            moves=self._moves.count(taken),
            n_unread=len(failed_reads(taken)),
            unknown_times=unknown,
            error=error,
            snapshot=taken,
        )

    def _with_times(self, partitions: pl.DataFrame, own: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, str]:
        """With lags in time and the outlook; the rows that lack one; why all do."""
        looks = pl.concat([each.join(own, on=GROUP, how="semi") for each in self._looks.partitions])
        error, unknown = "", partitions.clear()
        if self._has_times and not partitions.is_empty():
            try:
                late, outlook = self._times(self._cluster, looks)
                unknown = unknown_times(late, outlook)
                late, outlook = late.select(*PARTITION, "time_lag_ms"), outlook.select(*PARTITION, *_OUTLOOK)
                timed = partitions.join(late, on=PARTITION, how="left").join(outlook, on=PARTITION, how="left")
                return timed.sort(PARTITION), unknown, ""
            except OfframpError as raised:
                error, unknown = str(raised), partitions.drop_nulls("lag")
        nothing = [pl.lit(None, dtype).alias(name) for name, dtype in (_TIMES | _NEVER).items()]
        return partitions.with_columns(nothing), unknown, error


_OUTLOOK = [*list(_TIMES)[1:], *_NEVER]


def chosen(groups: pl.DataFrame, limit: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The groups that fit, the most lag first, and the remaining groups: one with too many partitions leaves room for
    smaller.
    """
    ordered = groups.sort(pl.col("lag").fill_null(-1), *GROUP, descending=[True, False, False])
    left, fits = limit, []
    for n_partitions in ordered["n_partitions"]:
        fits.append(n_partitions <= left)
        left -= n_partitions if fits[-1] else 0
    is_own = pl.Series(fits, dtype=pl.Boolean)
    return ordered.filter(is_own), ordered.filter(~is_own)


class OwnerMoves:
    """A partition moved when its owner is another than the last one that was seen."""

    def __init__(self) -> None:
        self._owners = pl.DataFrame(
            schema=dict.fromkeys(_OWNED, pl.String) | {"partition": pl.Int32, "member_id": pl.String}
        )
        self._moves = dict[tuple[str, str], int]()

    def count(self, snapshot: Snapshot[pl.DataFrame]) -> dict[tuple[str, str], int]:
        """Return how many moves each group made so far, by group and store; of several owners the first by name counts.

        Partitions of share groups don't move: their members share them.
        """
        is_owned = pl.col("error").is_null() & pl.col("member_id").is_not_null()
        rows = snapshot.ownership.filter(is_owned & ~pl.col("is_shared").fill_null(False))
        owners = rows.group_by(_OWNED).agg(pl.min("member_id"))
        earlier = self._owners.join(snapshot.groups, on="group_id", how="semi")  # A group that is gone is forgotten.
        both = owners.join(earlier, on=_OWNED, suffix="_before")
        moved = Counter(both.filter(pl.col("member_id") != pl.col("member_id_before")).select(_MOVED).iter_rows())
        self._owners = pl.concat([owners, earlier.join(owners, on=_OWNED, how="anti")])
        there = self._owners.select(_MOVED).unique().iter_rows()
        self._moves = {key: self._moves.get(key, 0) + moved[key] for key in there}
        return self._moves
