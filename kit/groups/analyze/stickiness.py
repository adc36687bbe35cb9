"""Measure how much of the ownership stayed the same between two snapshots."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

_KEY = ["group_id", "source", "topic", "partition"]


@nw.narwhalify
def stickiness(before: FrameT, after: FrameT) -> FrameT:
    """Two snapshots' ownership tables → how many partitions each group and source kept.

    The first by name of several owners represents the partition. A Kafka member without ``group.instance.id`` has a new
    member id after a restart: its partitions count as moved.

    Columns:
        group_id, source: the key.
        n_partitions: owned before: kept + moved + lost.
        n_kept: owned by the same member in both.
        n_moved: owned by another member now.
        n_gained: without an owner before.
        n_lost: without an owner now.
        n_unknown: the owner could not be read in either snapshot.
        stickiness: n_kept / n_partitions; null if nothing was owned before.

    >>> import polars as pl
    >>> key = {"group_id": "g", "source": "kafka", "topic": "t", "partition": [0, 1, 2], "error": [None] * 3}
    >>> before = pl.DataFrame(key | {"member_id": ["a", "a", "b"]}, schema_overrides={"error": pl.String})
    >>> after = pl.DataFrame(key | {"member_id": ["a", "b", "b"]}, schema_overrides={"error": pl.String})
    >>> stickiness(before, after).select("n_kept", "n_moved", "stickiness").rows()
    [(2, 1, 0.6666666666666666)]
    """
    sides = nw.concat([_side(before, "before"), _side(after, "after")])
    pairs = sides.group_by(*_KEY).agg(nw.col("before").min(), nw.col("after").min(), nw.col("n_unknown").max())
    counts = pairs.with_columns(**{name: flag.cast(nw.Int64) for name, flag in _fates().items()})
    totals = counts.group_by("group_id", "source").agg(*[nw.col(name).sum() for name in (*_fates(), "n_unknown")])
    n_partitions = nw.col("n_kept") + nw.col("n_moved") + nw.col("n_lost")
    share = nw.col("n_kept").cast(nw.Float64) / n_partitions.cast(nw.Float64)
    return totals.select(
        "group_id",
        "source",
        n_partitions.alias("n_partitions"),
        "n_kept",
        "n_moved",
        "n_gained",
        "n_lost",
        "n_unknown",
        stickiness=nw.when(n_partitions > 0).then(share),
    )


def _side(ownership: FrameT, name: str) -> FrameT:
    owners = {side: nw.lit(None, nw.String) for side in ("before", "after")}
    owners[name] = nw.col("member_id")
    return ownership.select(*_KEY, n_unknown=(~nw.col("error").is_null()).cast(nw.Int64), **owners)


def _fates() -> dict[str, nw.Expr]:
    before, after, is_known = nw.col("before"), nw.col("after"), nw.col("n_unknown") == 0
    was_owned, is_owned = is_known & ~before.is_null(), is_known & ~after.is_null()
    return {
        "n_kept": (was_owned & is_owned & (before == after)).fill_null(False),
        "n_moved": (was_owned & is_owned & (before != after)).fill_null(False),
        "n_gained": ~was_owned & is_owned,
        "n_lost": was_owned & ~is_owned,
    }
