"""Keep what Burrow's rules need from observation to observation: the last commits of each partition, the last ends
of each log.
"""

from __future__ import annotations

from collections import deque

import polars as pl

from kit.health import analyses
from kit.health.analyze.beyond_end import BEYOND, with_beyond_end
from kit.health.analyze.windows import INTERVALS, PARTITION

UNKNOWN = "unknown"
STATUSES = ("OK", "WARN", "STOP", "STALL", "REWIND", BEYOND, UNKNOWN)
_LOG = ["topic", "partition"]
_PLACES: dict[str, type[pl.DataType]] = {
    "group_id": pl.String,
    "store": pl.String,
    "topic": pl.String,
    "partition": pl.Int32,
}
_COMMITS: dict[str, type[pl.DataType]] = dict.fromkeys(("order", "committed_offset", "committed_ms", "lag"), pl.Int64)


class CommitWindows:
    """A commit shows where an offset is another than an observation before; see ``kit.analyze.commits_seen``."""

    def __init__(self, intervals: int = INTERVALS) -> None:
        self._intervals = intervals
        self._commits = pl.DataFrame(schema=_PLACES | _COMMITS)
        self._seen = pl.DataFrame(schema=_PLACES | {"n_seen": pl.Int64})
        self._ends = deque[pl.DataFrame](maxlen=intervals)

    def judge(self, partitions: pl.DataFrame) -> pl.DataFrame:
        """Remember one observation (rows of ``kit.views.lag`` with at_ms) → each partition's status by all that is
        remembered.

        Columns:
            group_id, store, topic, partition: the key; each row of the observation that has a commit, or had one.
            status: one of ``STATUSES``; ``BEYOND``: the commit is beyond the end of the log;
                ``unknown``: the lag is, or it was seen for fewer observations than are judged.
        """
        self._remember(partitions)
        rows = partitions.filter(~pl.col("has_no_commit")).select(*PARTITION, "lag")
        rows = rows.join(self._seen, on=PARTITION, how="left").join(
            self._verdicts(partitions), on=PARTITION, how="left"
        )
        is_unknown = pl.col("lag").is_null() | (pl.col("n_seen") < self._intervals)
        status = pl.when(pl.col("lag") == 0).then(pl.lit("OK")).otherwise(pl.col("status").fill_null(UNKNOWN))
        judged = rows.select(*PARTITION, status=pl.when(is_unknown).then(pl.lit(UNKNOWN)).otherwise(status))
        return pl.DataFrame(with_beyond_end(judged, partitions))

    def _remember(self, partitions: pl.DataFrame) -> None:
        there = partitions.filter(~pl.col("has_no_commit"))
        seen = there.select(PARTITION).join(self._seen, on=PARTITION, how="left")
        self._seen = seen.with_columns(n_seen=pl.col("n_seen").fill_null(0) + 1)
        kept = self._commits.join(there.select(PARTITION), on=PARTITION, how="semi", maintain_order="left")
        newest = kept.group_by(PARTITION, maintain_order=True).agg(before=pl.col("committed_offset").last())
        known = there.filter(pl.col("committed_offset").is_not_null()).join(newest, on=PARTITION, how="left")
        is_new = pl.col("before").is_null() | (pl.col("before") != pl.col("committed_offset"))
        commits = known.filter(is_new).select(
            *PARTITION, order="at_ms", committed_offset="committed_offset", committed_ms="at_ms", lag="lag"
        )
        kept = pl.concat([kept, commits])
        from_newest = pl.int_range(pl.len()).reverse().over(PARTITION)
        self._commits = kept.filter(from_newest < self._intervals)
        self._ends.append(
            partitions.filter(pl.col("log_end_offset").is_not_null()).select(*_LOG, "log_end_offset").unique()
        )

    def _verdicts(self, partitions: pl.DataFrame) -> pl.DataFrame:
        """Return the verdicts of partitions that have a lag: without lag the first rule already gives ``OK``."""
        behind = partitions.filter(pl.col("lag") > 0)
        windows = self._commits.join(behind.select(*PARTITION, "at_ms"), on=PARTITION)
        newest = self._ends[-1].rename({"log_end_offset": "newest_end"})
        rings = pl.concat(self._ends).group_by(_LOG).agg(lowest_end=pl.min("log_end_offset")).join(newest, on=_LOG)
        at_ms = partitions["at_ms"].max()
        verdicts = analyses.window_health(windows, rings.with_columns(at_ms=pl.lit(at_ms, pl.Int64)), self._intervals)
        return pl.DataFrame(verdicts).select(*PARTITION, "status")
