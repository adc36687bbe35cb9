"""Check whether a partition was ever delivered by two members at once: the proof by history.

The rule. Each member's hand-outs of a partition fall into intervals (``consumption_intervals``). Two intervals of
different members that cross in time are an overlap: the member that began first continued after its successor had
begun.

When a member comes back after others delivered the partition, the question is whether it took over again or never let
go. With an owner history that covers the time the history answers: it took over if, and only if, it created its owner
znode again in between. Without one the offsets answer. Whoever takes over begins at the committed offset, a stale
owner continues with its own sequence:

- it returns with another record than the next of its own → it took over;
- it returns with its own next record, others read something meanwhile → it never let go, unless a member had been
  silent for at least ``eviction_ms``: a member that lets go in order commits first, one that doesn't is given up by
  ZooKeeper or the coordinator no sooner than that. With such a silence the records fit both explanations: the return
  counts as a take-over and is listed as doubtful (``is_certain`` false).

So a quick A→B→A in order is no overlap: A begins where B stopped. Nor is a killed member's tail that its successor
reads again. A stale owner is found from its first record in the next millisecond after its successor's first.

Limits. Times are the members' own, in ms: within one millisecond there is no order. Members on several hosts need
clocks that differ by less than a hand-over takes; ``clock_skew_ms`` allows for more, and hides overlaps shorter than
that. Without a history:

- a member that lets go without committing resembles a stale owner;
- a stale owner that never returns to its own sequence resembles one that took over;
- a second system that reads only while the first one idles resembles a successor that reads a tail again.

A record without a line in a consumption file is not seen.
"""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.consumption_intervals import EVICTION_MS, intervals_of, with_intervals
from kit.proof.analyze.ownership_at import SERIES, TOLERANCE_MS, distinct
from kit.tables.groups import GROUP_PARTITION

_BEGIN = ["first_at_ms", "beginner"]
_CONTRACT = [
    *GROUP_PARTITION,
    "consumer",
    "interval_number",
    "successor",
    "began_at_ms",
    "last_at_ms",
    "records",
    "is_certain",
]


@nw.narwhalify
def overlaps(
    consumption: FrameT,
    owner_history: FrameT | None = None,
    eviction_ms: int = EVICTION_MS,
    tolerance_ms: int = TOLERANCE_MS,
    clock_skew_ms: int = 0,
) -> FrameT:
    """Dual consumption: members that delivered a partition after another one had begun. The module states the rule.

    Args:
        consumption: consumed records of all members of the groups, whatever their kind (``tables.CONSUMPTION``); or the
            result of ``with_intervals``, whose arguments then count instead of these.
        owner_history: lives of owner znodes (``tables.OWNER_HISTORY``). It decides for registered members at watched
            times; for all others the offsets do.
        eviction_ms: the least time after which a silent member is given up.
        tolerance_ms: how much later than a hand-out its owner znode may have been created, by the clocks involved.
        clock_skew_ms: how far the members' clocks may be apart.

    Columns:
        group_id, topic, partition: the key.
        consumer: began first and continued.
        interval_number: which of its intervals did, see ``consumption_intervals``.
        successor: began during that interval.
        began_at_ms: the successor's first hand-out.
        last_at_ms: the consumer's last one in that interval.
        records: of that interval, since the first other member had begun.
        is_certain: false where the consumer may have taken over again after its successor was given up.

    b begins at 1500 and reads the first record of a again; a continues with its own next records:

    >>> import polars as pl
    >>> key = {"group_id": "g", "topic": "t", "partition": 0, "consumer": list("aabaa")}
    >>> consumed = pl.DataFrame(key | {"at_ms": [1000, 1400, 1500, 1600, 1700], "offset": [0, 1, 0, 2, 3]})
    >>> overlaps(consumed).select("consumer", "successor", "began_at_ms", "records", "is_certain").rows()
    [('a', 'b', 1500, 2, True)]
    """
    rows: FrameT = nw.from_native(with_intervals(consumption, owner_history, eviction_ms, tolerance_ms))
    intervals = intervals_of(rows)
    crossing = _crossing(intervals, clock_skew_ms).join(
        _late_records(intervals), on=[*SERIES, "interval_number"], how="inner"
    )
    crossing = crossing.with_columns(is_certain=nw.lit(True))
    return nw.concat([crossing.select(*_CONTRACT), _doubtful(rows, intervals).select(*_CONTRACT)])


def _crossing(intervals: FrameT, clock_skew_ms: int) -> FrameT:
    """Pairs of intervals of which the later began inside the earlier.

    A member's own intervals never cross. So each interval is compared with one per other member: its last one begun
    before.
    """
    intervals = _islands(intervals.with_columns(beginner="consumer"))
    begun = nw.concat([_as_own(intervals), _beside_others(intervals)])
    key = [*GROUP_PARTITION, "island", "member"]
    going_on = {name: nw.col(name).cum_max().over(*key, order_by=_BEGIN) for name in ("member_interval", "until_ms")}
    pairs = begun.with_columns(**going_on).filter(nw.col("beginner") != nw.col("member"))
    return pairs.filter(nw.col("until_ms") > nw.col("first_at_ms") + clock_skew_ms).select(
        *GROUP_PARTITION,
        consumer="member",
        interval_number="member_interval",
        successor="beginner",
        began_at_ms="first_at_ms",
        last_at_ms="until_ms",
    )


def _islands(intervals: FrameT) -> FrameT:
    """Intervals that hang together in time share an island; where everything is in order each interval is its own."""
    reach = nw.col("last_at_ms").cum_max().over(*GROUP_PARTITION, order_by=_BEGIN)
    intervals = intervals.with_columns(reach=reach)
    intervals = intervals.with_columns(reached=nw.col("reach").shift(1).over(*GROUP_PARTITION, order_by=_BEGIN))
    is_apart = (nw.col("first_at_ms") >= nw.col("reached")).cast(nw.Int64).fill_null(1)
    intervals = intervals.with_columns(is_apart=is_apart)
    return intervals.with_columns(island=nw.col("is_apart").cum_sum().over(*GROUP_PARTITION, order_by=_BEGIN))


_BEGUN = [*GROUP_PARTITION, "island", "beginner", "first_at_ms", "member", "member_interval", "until_ms"]


def _as_own(intervals: FrameT) -> FrameT:
    """Each interval in the series of its own member."""
    return intervals.with_columns(member="consumer", member_interval="interval_number", until_ms="last_at_ms").select(
        *_BEGUN
    )


def _beside_others(intervals: FrameT) -> FrameT:
    """Each interval in the series of every other member of its island, where it only asks what is in progress."""
    island = [*GROUP_PARTITION, "island"]
    members = distinct(intervals.select(*island, member="consumer"), *island, "member")
    pairs = intervals.join(members, on=island, how="inner").filter(nw.col("consumer") != nw.col("member"))
    absent = nw.lit(-1, nw.Int64)
    return pairs.with_columns(member_interval=absent, until_ms=absent).select(*_BEGUN)


def _late_records(intervals: FrameT) -> FrameT:
    """Within one millisecond there is no order: an interval without a hand-out after another's crossed nothing."""
    return intervals.filter(nw.col("late_records") > 0).select(*SERIES, "interval_number", records="late_records")


def _doubtful(rows: FrameT, intervals: FrameT) -> FrameT:
    """Intervals that may continue a stale owner's, against the member that delivered last before."""
    interval = [*SERIES, "interval_number"]
    begun = rows.filter(nw.col("is_doubtful")).select(
        *interval, successor="interrupted_by", began_at_ms="interrupted_at_ms", is_certain=nw.lit(False)
    )
    return begun.join(intervals.select(*interval, "last_at_ms", "records"), on=interval, how="inner")
