"""Since when something waits to be read: a partition without lag is not late, however long ago it committed."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.analyze.health.windows import PARTITION

_LOG = ["topic", "partition"]
_COMMIT, _END, _LOOK = 1, 0, 2
"""Of one moment a sampled end counts as before a commit (a snapshot reads ends after commits); a look sees both."""


@nw.narwhalify
def waiting_since(commits: FrameT, ends: FrameT, times: FrameT) -> FrameT:
    """When records began to wait, at each time, by the ends that were sampled. Arguments: see ``commit_windows``.

    Columns:
        group_id, store, topic, partition, at_ms: whose records, and when.
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
    >>> waiting_since(commits, ends, pl.DataFrame({"at_ms": [100_000]})).select("fine_ms", "waits_ms").rows()
    [(60000, 90000)]
    """
    rows = nw.concat(_events(commits, ends, times))
    order = {"order_by": ["at_ms", "kind", "order"]}
    known = {name: nw.col(name).fill_null(strategy="forward").over(*PARTITION, **order) for name in ("offset", "end")}
    rows = rows.with_columns(**known)
    rows = rows.with_columns(waits=(nw.col("end") > nw.col("offset")).fill_null(False).cast(nw.Int64))
    is_fine = nw.col("end") <= nw.col("offset")
    before = nw.col("waits").shift(1).over(*PARTITION, **order).fill_null(0)
    rows = rows.with_columns(
        arrived_ms=nw.when(nw.col("kind") == _COMMIT).then(nw.col("at_ms")),
        fine_ms=nw.when(is_fine).then(nw.col("at_ms")),
        waits_ms=nw.when((nw.col("waits") == 1) & (before == 0)).then(nw.col("at_ms")),
    )
    # What a look sees was so before it: a look itself is no evidence.
    seen = ("arrived_ms", "fine_ms", "waits_ms")
    rows = rows.with_columns(**{name: nw.when(nw.col("kind") != _LOOK).then(nw.col(name)) for name in seen})
    last = {name: nw.col(name).fill_null(strategy="forward").over(*PARTITION, **order) for name in seen}
    looks = rows.with_columns(**last).filter(nw.col("kind") == _LOOK)
    waits = nw.when(nw.col("waits") == 1).then(nw.col("waits_ms"))
    return looks.select(*PARTITION, "at_ms", "arrived_ms", "fine_ms", waits_ms=waits)


def _events(commits: FrameT, ends: FrameT, times: FrameT) -> list[FrameT]:
    """Commits, sampled ends and looks of each partition that ever committed, as rows of one form."""
    nothing = nw.lit(None, nw.Int64)
    partitions = commits.select(*PARTITION).unique()
    arrived = nw.col("committed_ms").cum_max().over(*PARTITION, order_by="order")
    timed = commits.with_columns(at_ms=arrived)
    sampled = partitions.join(ends.filter(~nw.col("log_end_offset").is_null()), on=_LOG, how="inner")
    looks = partitions.join(times.select("at_ms"), how="cross")
    return [
        _event(timed, _COMMIT, at_ms=nw.col("at_ms"), offset=nw.col("committed_offset"), end=nothing, order="order"),
        _event(sampled, _END, at_ms=nw.col("sampled_ms"), offset=nothing, end=nw.col("log_end_offset")),
        _event(looks, _LOOK, at_ms=nw.col("at_ms"), offset=nothing, end=nothing),
    ]


def _event(rows: FrameT, kind: int, order: str | None = None, **columns: nw.Expr) -> FrameT:
    place = nw.lit(0, nw.Int64) if order is None else nw.col(order).cast(nw.Int64)
    return rows.select(*PARTITION, **columns, kind=nw.lit(kind, nw.Int64), order=place)
