"""Totals of partition lag. Unknown parts are left out of a sum and counted beside it; no known part: no sum.

What ``partition_lag`` marks ``is_stale`` is in no total.
"""

from __future__ import annotations

from collections.abc import Sequence

import narwhals as nw
from narwhals.typing import FrameT

_SUMMED = ("lag", "lag_retained", "expired_unread")
_COUNTED = ("n_unknown", "n_without_commit", "n_beyond_end", "n_upper_bounds")


@nw.narwhalify
def member_lag(partition_lag: FrameT) -> FrameT:
    """Lag per group, store and owner; ``member_id`` is null for the partitions without an owner.

    Columns:
        group_id, store, member_id: the key.
        n_partitions: how many partitions the row sums up.
        n_unknown: partitions whose lag is unknown: they are in no sum.
        n_without_commit: of these, the partitions without an offset in the store.
        n_beyond_end: partitions whose commit is beyond the end of the log.
        n_upper_bounds: partitions of a share group whose lag is an upper bound, see ``partition_lag``.
        lag, max_lag, lag_retained, expired_unread: in records; null if it is known of no partition.

    >>> import polars as pl
    >>> rows = {"group_id": "g", "store": "kafka", "topic": "t", "member_id": ["a", "a", None], "lag": [6, 4, None]}
    >>> rows |= {"lag_retained": [6, 4, None], "expired_unread": [0, 0, None], "has_no_commit": [False, False, True]}
    >>> rows |= {"beyond_end": [0, 0, None], "is_upper_bound": False}
    >>> totals = member_lag(pl.DataFrame(rows | {"is_stale": False})).sort("member_id", nulls_last=True)
    >>> totals.select("member_id", "n_partitions", "n_without_commit", "lag", "max_lag").rows()
    [('a', 2, 0, 10, 6), (None, 1, 1, None, None)]
    """
    return _totals(partition_lag, ["group_id", "store", "member_id"], ())


@nw.narwhalify
def group_lag(partition_lag: FrameT) -> FrameT:
    """Lag per group and store.

    Columns:
        group_id, store: the key.
        n_partitions: how many partitions the row sums up.
        n_unowned: partitions without a known owner, in either source, whether a member subscribes to them or not.
        n_unknown, n_without_commit, n_beyond_end, n_upper_bounds, lag, max_lag, lag_retained, expired_unread: as in
            ``member_lag``.

    >>> import polars as pl
    >>> rows = {"group_id": "g", "store": "kafka", "topic": "t", "member_id": ["a", None], "lag": [6, None]}
    >>> rows |= {"lag_retained": [6, None], "expired_unread": [0, None], "has_no_commit": [False, True]}
    >>> rows |= {"is_stale": False, "beyond_end": [0, None], "is_upper_bound": False}
    >>> group_lag(pl.DataFrame(rows)).select("n_unowned", "n_unknown", "n_without_commit", "lag").rows()
    [(1, 1, 1, 6)]
    """
    return _totals(partition_lag, ["group_id", "store"], ("n_unowned",))


@nw.narwhalify
def topic_lag(partition_lag: FrameT) -> FrameT:
    """Lag per group, store and topic.

    Columns:
        group_id, store, topic: the key.
        n_partitions: how many partitions the row sums up.
        n_unowned: partitions without a known owner, in either source, whether a member subscribes to them or not.
        n_unknown, n_without_commit, n_beyond_end, n_upper_bounds, lag, max_lag, lag_retained, expired_unread: as in
            ``member_lag``.

    >>> import polars as pl
    >>> rows = {"group_id": "g", "store": "kafka", "topic": ["t", "t", "u"], "member_id": "a", "lag": [6, 4, 7]}
    >>> rows |= {"lag_retained": [6, 3, 7], "expired_unread": [0, 1, 0], "has_no_commit": False, "is_stale": False}
    >>> rows |= {"beyond_end": 0, "is_upper_bound": False}
    >>> topic_lag(pl.DataFrame(rows)).sort("topic").select("topic", "n_partitions", "lag", "expired_unread").rows()
    [('t', 2, 10, 1), ('u', 1, 7, 0)]
    """
    return _totals(partition_lag, ["group_id", "store", "topic"], ("n_unowned",))


def _totals(rows: FrameT, keys: Sequence[str], extra: Sequence[str]) -> FrameT:
    flagged = rows.filter(~nw.col("is_stale")).with_columns(
        n_unowned=nw.col("member_id").is_null().cast(nw.Int64),
        n_unknown=nw.col("lag").is_null().cast(nw.Int64),
        n_without_commit=nw.col("has_no_commit").cast(nw.Int64),
        n_beyond_end=(nw.col("beyond_end") > 0).fill_null(False).cast(nw.Int64),
        n_upper_bounds=nw.col("is_upper_bound").cast(nw.Int64),
    )
    counts = [nw.col(name).sum() for name in ("n_unowned", *_COUNTED)]
    sums = [nw.col(name).sum() for name in _SUMMED]
    known = [nw.col(name).count().alias(f"known_{name}") for name in _SUMMED]
    totals = flagged.group_by(*keys).agg(
        nw.len().alias("n_partitions"), *counts, *sums, *known, nw.col("lag").max().alias("max_lag")
    )
    return totals.select(
        *keys,
        nw.col("n_partitions").cast(nw.Int64),
        *extra,
        *_COUNTED,
        _known_sum("lag"),
        "max_lag",
        _known_sum("lag_retained"),
        _known_sum("expired_unread"),
    )


def _known_sum(name: str) -> nw.Expr:
    """A sum over nothing is 0 in polars and null in Spark: unknown is null in both."""
    return nw.when(nw.col(f"known_{name}") > 0).then(nw.col(name)).alias(name)
