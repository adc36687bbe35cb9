"""The last commits of each partition, and the last ends of its log, as they were known at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
from narwhals.typing import FrameT

PARTITION = ["group_id", "store", "topic", "partition"]
INTERVALS = 10
"""Burrow's ``intervals`` unless it is configured: so many commits and so many ends are remembered."""
_LOG = ["topic", "partition"]
_NEVER = 1 << 62


@nw.narwhalify
def commit_windows(commits: FrameT, ends: FrameT, times: FrameT, intervals: int = INTERVALS) -> FrameT:
    """The newest commits of each partition at each time, at most ``intervals``. Nothing here reads a clock.

    Args:
        commits: group_id, store, topic, partition, committed_offset (null: the offset was deleted; what came before
            is forgotten), committed_ms (epoch), order (of the commits of a partition, no two alike).
        ends: topic, partition, log_end_offset, sampled_ms (epoch).
        times: at_ms (epoch): one row is one observation, many rows are a back-test.

    Columns:
        group_id, store, topic, partition, at_ms: whose window, and when.
        order, committed_offset, committed_ms: the commit.
        lag: when it was committed, by the newest end sampled until then; at least 0; null where none was.

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> commits = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "committed_offset": [5, 8, 9],
    ...                         "committed_ms": [1000, 2000, 3000], "order": [1, 2, 3]})
    >>> ends = pl.DataFrame({**place, "log_end_offset": [10, 20], "sampled_ms": [1500, 2500]})
    >>> rows = commit_windows(commits, ends, pl.DataFrame({"at_ms": [2000, 3000]}), intervals=2)
    >>> rows.select("at_ms", "committed_offset", "lag").sort("at_ms", "committed_offset").rows()
    [(2000, 5, None), (2000, 8, 2), (3000, 8, 2), (3000, 9, 11)]
    """
    known = _with_lag(commits, ends).with_columns(is_known=~nw.col("committed_offset").is_null())
    rows = _remembered(known, PARTITION, "committed_ms", ["order"], intervals)
    return _at(rows, times).select(*PARTITION, "at_ms", "order", "committed_offset", "committed_ms", "lag")


@nw.narwhalify
def end_rings(ends: FrameT, times: FrameT, intervals: int = INTERVALS) -> FrameT:
    """The newest sampled ends of each log at each time, at most ``intervals``. For the arguments see above.

    Columns:
        topic, partition, at_ms: which log, and when.
        lowest_end, newest_end: offsets.

    >>> import polars as pl
    >>> ends = {"topic": "t", "partition": 0, "log_end_offset": [10, 20, 30], "sampled_ms": [100, 200, 300]}
    >>> rows = end_rings(pl.DataFrame(ends), pl.DataFrame({"at_ms": [150, 300]}), intervals=2)
    >>> rows.sort("at_ms").select("at_ms", "lowest_end", "newest_end").rows()
    [(150, 10, 10), (300, 20, 30)]
    """
    known = ends.filter(~nw.col("log_end_offset").is_null()).with_columns(is_known=nw.lit(True))
    rows = _remembered(known, _LOG, "sampled_ms", ["sampled_ms"], intervals)
    following = nw.col("entered_ms").shift(-1).over(*_LOG, order_by="entered_ms")
    rows = _at(rows.with_columns(following_ms=nw.coalesce(following, nw.lit(_NEVER))), times)
    newest = nw.when(nw.col("at_ms") < nw.col("following_ms")).then(nw.col("log_end_offset"))
    rows = rows.with_columns(newest_end=newest)
    return rows.group_by(*_LOG, "at_ms").agg(
        lowest_end=nw.col("log_end_offset").min(), newest_end=nw.col("newest_end").max()
    )


def _with_lag(commits: FrameT, ends: FrameT) -> FrameT:
    """Ends and commits of a log in one row of time: each commit sees the end before it, whichever group's it is."""
    # A sample of the same moment counts as before: a snapshot reads ends after commits.
    marks = ends.select(
        *[nw.lit(None, nw.String).alias(name) for name in PARTITION[:2]],
        *_LOG,
        *[nw.lit(None, nw.Int64).alias(name) for name in ("committed_offset", "order")],
        committed_ms=nw.col("sampled_ms"),
        end=nw.col("log_end_offset"),
        is_commit=nw.lit(0, nw.Int64),
    )
    rows = commits.select(
        *PARTITION,
        "committed_offset",
        nw.col("order").cast(nw.Int64),
        "committed_ms",
        end=nw.lit(None, nw.Int64),
        is_commit=nw.lit(1, nw.Int64),
    )
    together = nw.concat([marks, rows])
    seen = nw.col("end").fill_null(strategy="forward").over(*_LOG, order_by=["committed_ms", "is_commit"])
    lag = nw.col("end") - nw.col("committed_offset")
    with_end = together.with_columns(end=seen).filter(nw.col("is_commit") == 1)
    return with_end.with_columns(lag=nw.when(lag < 0).then(nw.lit(0, nw.Int64)).otherwise(lag))


def _remembered(rows: FrameT, key: Sequence[str], time: str, order: list[str], intervals: int) -> FrameT:
    """Add entered_ms and left_ms: a row is remembered from its arrival until ``intervals`` more rows have arrived.

    A row that is not is_known ends what is remembered, itself included. It is searched for among ``intervals`` rows:
    later rows have all left. One order serves all windows, because Spark sorts once per order.
    """
    rows = rows.with_columns(entered_ms=nw.col(time).cum_max().over(*key, order_by=order))
    rows = rows.with_columns(ended_ms=nw.when(~nw.col("is_known")).then(nw.col("entered_ms")))
    rows = rows.with_columns(
        left_ms=nw.col("entered_ms").shift(-intervals).over(*key, order_by=order),
        ended_ms=nw.col("ended_ms").fill_null(strategy="backward", limit=intervals).over(*key, order_by=order),
    )
    return rows.with_columns(left_ms=nw.min_horizontal(nw.coalesce("left_ms", nw.lit(_NEVER)), "ended_ms"))


def _at(rows: FrameT, times: FrameT) -> FrameT:
    is_in = (nw.col("entered_ms") <= nw.col("at_ms")) & (nw.col("at_ms") < nw.col("left_ms"))
    return rows.join(_few(times.select("at_ms")), how="cross").filter(is_in)


def _few(times: FrameT) -> FrameT:
    """Spark can't know the size of a frame that was made of rows: it would hand all commits round to join it."""
    native: Any = nw.to_native(times)
    hinted: FrameT = nw.from_native(native.hint("broadcast")) if hasattr(native, "hint") else times
    return hinted
