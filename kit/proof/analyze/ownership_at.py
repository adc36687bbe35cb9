"""Compare each delivery with the owner znodes' history: who held the partition, who had acquired it again."""

from __future__ import annotations

from typing import Any

import narwhals as nw
from narwhals.typing import FrameT

from kit.tables.groups import GROUP_PARTITION

TOLERANCE_MS = 50
"""The largest difference between a member's clock and ZooKeeper's, and the longest time for which a record may be
in the thread that took it from its stream before that thread writes its time down.
"""

SERIES = [*GROUP_PARTITION, "consumer"]
"""One member's hand-outs of one partition."""

_COUNTS = ["n_acquired", "n_due", "n_held", "n_unknown", "n_watched"]
SEEN = ["n_acquired", "n_unknown", "n_watched"]
"""The columns that ``acquired_since`` and ``watched_since`` compare with the delivery before."""

_BEFORE, _HAND_OUT, _AFTER = 0, 1, 2


@nw.narwhalify
def unowned_consumption(consumption: FrameT, owner_history: FrameT, tolerance_ms: int = TOLERANCE_MS) -> FrameT:
    """Records that a member delivered without holding the partition's owner znode at that time, as ranges in time.

    A record counts as owned from ``tolerance_ms`` before the znode's creation until ``tolerance_ms`` after the watcher
    learned of its end. That is an upper bound: a record between the true end and this notice is not seen. Nothing is
    claimed of times that were not watched, nor of times when a znode was there whose owner could not be read.

    Columns:
        group_id, topic, partition, consumer: the key.
        first_at_ms, last_at_ms: epoch ms.
        first_offset, last_offset: lowest and highest.
        records: how many.
        is_registered: the member was seen under ``ids`` or as an owner. A plain Kafka consumer never is, and may read
            without owner znodes while Kafka coordinates the group: only registered members break invariant I1.

    >>> import polars as pl
    >>> from kit.tables import schema
    >>> from kit.tables.polars import rows_of
    >>> key = {"group_id": "g", "topic": "t", "partition": 0}
    >>> consumed = pl.DataFrame(key | {"consumer": "a", "at_ms": [1500, 3000], "offset": [0, 1]})
    >>> watched = {"kind": ["watch", "owner"], "from_ms": [0, 1000], "until_ms": [9000, 2000]}
    >>> at = {"topic": [None, "t"], "partition": [None, 0], "member_id": [None, "a"]}
    >>> history = rows_of(schema.OWNER_HISTORY, group_id="g", **watched, **at)
    >>> unowned_consumption(consumed, history).select("consumer", "first_at_ms", "records", "is_registered").rows()
    [('a', 3000, 1, True)]
    """
    rows: FrameT = with_ownership(consumption, owner_history, tolerance_ms)
    rows = rows.with_columns(is_unowned=(_is_watched("n_watched") & (nw.col("n_held") <= 0)).cast(nw.Int64))
    order = ["at_ms", "offset"]
    changed = nw.col("is_unowned") != nw.col("is_unowned").shift(1).over(*SERIES, order_by=order)
    rows = rows.with_columns(is_change=changed.cast(nw.Int64).fill_null(0))
    rows = rows.with_columns(stretch=nw.col("is_change").cum_sum().over(*SERIES, order_by=order))
    unowned = rows.filter(nw.col("is_unowned") == 1)
    return (
        unowned.group_by(*SERIES, "stretch", "is_registered")
        .agg(*extent())
        .drop("stretch")
        .select(*SERIES, "first_at_ms", "last_at_ms", "first_offset", "last_offset", "records", "is_registered")
    )


def distinct(rows: FrameT, *names: str) -> FrameT:
    """Each combination once. As an aggregation: ``unique`` makes Spark sort and number every row of a group."""
    return rows.group_by(*names).agg(nw.len().alias("n")).select(*names)


def extent() -> list[nw.Expr]:
    """first_at_ms, last_at_ms, first_offset, last_offset, records of a group of hand-outs."""
    return [
        nw.col("at_ms").min().alias("first_at_ms"),
        nw.col("at_ms").max().alias("last_at_ms"),
        nw.col("offset").min().alias("first_offset"),
        nw.col("offset").max().alias("last_offset"),
        nw.len().cast(nw.Int64).alias("records"),
    ]


def with_ownership(consumption: FrameT, owner_history: FrameT, tolerance_ms: int) -> FrameT:
    """Hand-outs with what the owner history knows at that moment about that member and partition.

    Added: n_acquired (owner znodes it created before), n_due (those within the tolerance too), n_held (those that
    exist, unreadable ones included), n_unknown (unreadable ones so far), n_watched (odd: the watcher saw everything),
    is_registered.
    """
    moments = _moments_of(consumption.select(*SERIES, "at_ms", "offset"), owner_history, tolerance_ms)
    return _with_registered(_counted(moments), owner_history)


def _counted(moments: FrameT) -> FrameT:
    """Hand-outs and what happened to znodes in one series, counted up to each hand-out."""
    order = ["at_ms", "tiebreak", "offset"]
    moments = moments.with_columns(*[nw.col(name).cum_sum().over(*SERIES, order_by=order) for name in _COUNTS])
    return moments.filter(nw.col("tiebreak") == _HAND_OUT).drop("tiebreak")


def acquired_since(previous: str) -> nw.Expr:
    """The member created the owner znode again since its hand-out before, whose columns have that prefix."""
    return nw.col("n_due") > nw.col(f"{previous}n_acquired")


def watched_since(previous: str) -> nw.Expr:
    """The history saw everything about a registered member since its hand-out before."""
    same = [nw.col(name) == nw.col(f"{previous}{name}") for name in ("n_watched", "n_unknown")]
    return nw.all_horizontal(nw.col("is_registered"), _is_watched("n_watched"), *same, ignore_nulls=False)


def _is_watched(name: str) -> nw.Expr:
    return nw.col(name) % 2 == 1


def _moments_of(rows: FrameT, owner_history: FrameT, tolerance_ms: int) -> FrameT:
    """Hand-outs, and znodes' beginnings and ends in the series of every member that they are about."""
    series = distinct(rows, *SERIES)
    owners = owner_history.filter(nw.col("kind") == "owner")
    own = owners.select(*GROUP_PARTITION, "from_ms", "until_ms", consumer="member_id")
    known = series.join(own, on=SERIES, how="inner")
    unreadable = owners.filter(nw.col("member_id").is_null()).select(*GROUP_PARTITION, "from_ms", "until_ms")
    anyone = series.join(unreadable, on=GROUP_PARTITION, how="inner")
    watches = owner_history.filter(nw.col("kind") == "watch").select("group_id", "from_ms", "until_ms")
    watched = series.join(watches, on="group_id", how="inner")
    begin, end = nw.col("from_ms") - tolerance_ms, nw.col("until_ms") + tolerance_ms
    moments = [
        _moments(rows, nw.col("at_ms"), _HAND_OUT, nw.col("offset")),
        # A znode of the same millisecond as a hand-out was created after the hand-out, by a member that came back.
        _moments(known, nw.col("from_ms"), _AFTER, n_acquired=1),
        _moments(known, begin, _BEFORE, n_due=1, n_held=1),
        _moments(_ended(known), end, _AFTER, n_held=-1),
        _moments(anyone, begin, _BEFORE, n_unknown=1, n_held=1),
        _moments(_ended(anyone), end, _AFTER, n_held=-1),
        _moments(watched, nw.col("from_ms"), _BEFORE, n_watched=1),
        _moments(_ended(watched), nw.col("until_ms"), _AFTER, n_watched=1),
    ]
    return nw.concat(moments)


def _ended(lives: FrameT) -> FrameT:
    return lives.filter(~nw.col("until_ms").is_null())


def _moments(rows: FrameT, at_ms: nw.Expr, tiebreak: int, offset: nw.Expr | None = None, **counts: int) -> FrameT:
    """One row per moment: what it adds to each count; ``tiebreak`` orders moments of the same millisecond."""
    added: dict[str, Any] = {name: nw.lit(counts.get(name, 0), nw.Int64) for name in _COUNTS}
    return rows.select(
        *SERIES,
        at_ms=at_ms,
        offset=nw.lit(None, nw.Int64) if offset is None else offset,
        tiebreak=nw.lit(tiebreak, nw.Int64),
        **added,
    )


def _with_registered(rows: FrameT, owner_history: FrameT) -> FrameT:
    named = owner_history.filter(nw.col("kind").is_in(["owner", "member"]) & ~nw.col("member_id").is_null())
    members = distinct(named.select("group_id", consumer="member_id"), "group_id", "consumer")
    members = members.with_columns(is_registered=nw.lit(True))
    joined = rows.join(members, on=["group_id", "consumer"], how="left")
    return joined.with_columns(is_registered=nw.col("is_registered").fill_null(False))
