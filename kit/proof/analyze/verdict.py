"""The verdict on a group's history: was every record delivered, by one member at a time, and how long did it stall."""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.proof.analyze.consumption_intervals import EVICTION_MS
from kit.proof.analyze.duplicates import CAUSES
from kit.proof.analyze.lost import STATUSES
from kit.tables.groups import GROUP_PARTITION
from kit.text.sentences import applying, sentence

_SUMS = [
    "records",
    *STATUSES,
    "overlaps",
    "overlapping_records",
    "doubtful_overlaps",
    *(f"duplicates_{cause}" for cause in CAUSES),
    "unowned",
    "handovers",
]
_LONGEST = ["longest_stall_ms", "open_stall_ms", "longest_handover_ms"]


@nw.narwhalify
def verdict(
    consumption_intervals: FrameT,
    overlaps: FrameT,
    lost: FrameT,
    duplicates: FrameT,
    stalls: FrameT,
    handovers: FrameT,
    unowned_consumption: FrameT | None = None,
) -> FrameT:
    """One row per group and topic-partition from the results of the analyses of these names (``kit.proof.verify``
    runs them all).

    Every topic of which the group delivered anything has all its partitions here. A group that delivered nothing has
    no row: absence does not mean success.

    Columns:
        group_id, topic, partition: the key.
        records: consumed records, repeated ones too.
        lost, unread: records, see ``lost``.
        overlaps, doubtful_overlaps: pairs of intervals, see ``overlaps``.
        overlapping_records: delivered after another member had begun.
        duplicates_tail, duplicates_stale, duplicates_rewind: records, see ``duplicates``.
        unowned: records that registered members delivered without the owner znode; null without that analysis.
        handovers, longest_handover_ms: see ``handovers``.
        longest_stall_ms, open_stall_ms: see ``stalls``.
        is_complete: nothing lost.
        is_exclusive: no overlap, nothing unowned; null: overlaps are doubtful, only an owner history can show it.

    >>> import polars as pl
    >>> from kit.proof.analyses import consumption_intervals, duplicates, handovers, lost, overlaps, stalls
    >>> key = {"group_id": "g", "topic": "t", "partition": 0}
    >>> consumed = pl.DataFrame(key | {"consumer": list("aab"), "at_ms": [1000, 1100, 1500], "offset": [0, 1, 3]})
    >>> produced = pl.DataFrame({"topic": "t", "partition": 0, "at_ms": [900, 901, 902, 903], "offset": [0, 1, 2, 3]})
    >>> rows = verdict(
    ...     consumption_intervals(consumed), overlaps(consumed), lost(consumed, produced), duplicates(consumed),
    ...     stalls(consumed, produced), handovers(consumed, produced),
    ... )
    >>> rows.select("records", "lost", "overlaps", "handovers", "is_complete", "is_exclusive").rows()
    [(3, 1, 0, 1, False, True)]
    """
    parts = [
        _counted(consumption_intervals, records=nw.col("records").sum()),
        _counted(lost, **{status: _records_where("status", status) for status in STATUSES}),
        _counted(overlaps, **_overlap_counts()),
        _overlapping(overlaps),
        _counted(duplicates, **{f"duplicates_{cause}": _records_where("cause", cause) for cause in CAUSES}),
        _counted(handovers, handovers=nw.len(), longest_handover_ms=nw.col("gap_ms").max()),
        stalls.select(*GROUP_PARTITION, longest_stall_ms="longest_ms", open_stall_ms="open_ms"),
    ]
    if unowned_consumption is not None:
        registered = unowned_consumption.filter(nw.col("is_registered"))
        parts.append(_counted(registered, unowned=nw.col("records").sum()))
    return _judged(_beside(parts), unowned_consumption is not None)


@nw.narwhalify
def verdict_summary(verdict: FrameT) -> FrameT:
    """``verdict`` per group: sums of the counts, maxima of the times.

    Columns:
        group_id: the key.
        n_partitions: how many partitions the row sums up.
        is_complete: nothing lost in any partition.
        is_exclusive: false if it is false of any partition; else null if it is unknown of any.
        all others: as in ``verdict``.

    >>> import polars as pl
    >>> rows = {name: [0, 0] for name in (*_SUMS, *_LONGEST)} | {"group_id": "g", "records": [3, 4], "lost": [1, 0]}
    >>> rows |= {"longest_stall_ms": [500, 90], "is_exclusive": [True, None]}
    >>> totals = verdict_summary(pl.DataFrame(rows))
    >>> totals.select("n_partitions", "records", "lost", "longest_stall_ms", "is_complete", "is_exclusive").rows()
    [(2, 7, 1, 500, False, None)]
    """
    broken = (nw.col("is_exclusive") == nw.lit(False)).cast(nw.Int64).fill_null(0)
    rows = verdict.with_columns(broken=broken, unclear=nw.col("is_exclusive").is_null().cast(nw.Int64))
    rows = rows.with_columns(unknown=nw.col("unowned").is_null().cast(nw.Int64))
    totals = rows.group_by("group_id").agg(
        nw.len().cast(nw.Int64).alias("n_partitions"),
        *[nw.col(name).sum() for name in [*_SUMS, "broken", "unclear", "unknown"]],
        *[nw.col(name).max() for name in _LONGEST],
    )
    totals = totals.with_columns(unowned=nw.when(nw.col("unknown") == 0).then(nw.col("unowned")))
    exclusive = nw.when(nw.col("broken") > 0).then(nw.lit(False)).when(nw.col("unclear") == 0).then(nw.lit(True))
    return totals.select(
        "group_id", "n_partitions", *_SUMS, *_LONGEST, is_complete=nw.col("lost") == 0, is_exclusive=exclusive
    )


@nw.narwhalify
def verdict_sentences(verdict: FrameT) -> FrameT:
    """Return what is wrong, in sentences, one per partition and kind; none where nothing is.

    Columns:
        group_id, topic, partition: the key.
        finding: ``lost``, ``overlap``, ``doubtful_overlap``, ``unowned``, ``tail``, ``stale``, ``rewind``, ``waiting``.
        sentence: what was found, with its count.

    >>> import polars as pl
    >>> rows = {name: [0] for name in (*_SUMS, *_LONGEST)} | {"group_id": "g", "topic": "t", "partition": 0, "lost": 1}
    >>> verdict_sentences(pl.DataFrame(rows)).select("finding", "sentence").rows()
    [('lost', 'Group g: t-0: acknowledged and never delivered: 1.')]
    """
    findings = applying(verdict, _rules(), GROUP_PARTITION, "finding")
    return findings.select(*GROUP_PARTITION, "finding", "sentence")


def _rules() -> dict[str, nw.Expr]:
    return {
        "lost": _counting("lost", "acknowledged and never delivered"),
        "overlap": _counting("overlapping_records", "delivered after another member had begun"),
        "doubtful_overlap": _counting(
            "doubtful_overlaps",
            "times a member continued where it had stopped, although other members had read the partition meanwhile: "
            "a stale owner, or a new owner after members without a commit (only an owner history distinguishes them)",
        ),
        "unowned": _counting("unowned", "delivered without holding its owner znode"),
        "tail": _counting("duplicates_tail", "read again by a successor, an uncommitted tail"),
        "stale": _counting("duplicates_stale", "delivered by two members at once"),
        "rewind": _counting("duplicates_rewind", "delivered again by the same member"),
        "waiting": _counting("unread", "not delivered when the history ended", nw.col("open_stall_ms") >= EVICTION_MS),
    }


def _counting(count: str, label: str, applies: nw.Expr | None = None) -> nw.Expr:
    """``Group g: topic-0: <what>: <count>.``, where there is something to count."""
    wanted = nw.col(count) > 0 if applies is None else (nw.col(count) > 0) & applies
    place: list[str | nw.Expr] = [nw.col("topic"), "-", nw.col("partition")]
    return sentence(wanted.fill_null(False), *place, f": {label}: ", nw.col(count), ".")


def _counted(rows: FrameT, **counts: nw.Expr) -> FrameT:
    return rows.group_by(*GROUP_PARTITION).agg(**{name: count.cast(nw.Int64) for name, count in counts.items()})


def _records_where(column: str, value: str) -> nw.Expr:
    return nw.when(nw.col(column) == value).then(nw.col("records")).otherwise(nw.lit(0, nw.Int64)).sum()


def _overlap_counts() -> dict[str, nw.Expr]:
    certain = nw.col("is_certain").cast(nw.Int64)
    return {
        "overlaps": certain.sum(),
        "doubtful_overlaps": (nw.lit(1, nw.Int64) - certain).sum(),
    }


def _overlapping(overlaps: FrameT) -> FrameT:
    """An interval that crossed several others is counted once, from the first of them on."""
    crossed = overlaps.filter(nw.col("is_certain")).group_by(*GROUP_PARTITION, "consumer", "interval_number")
    return _counted(crossed.agg(nw.col("records").max()), overlapping_records=nw.col("records").sum())


def _beside(parts: list[FrameT]) -> FrameT:
    """All parts' columns per partition; one aggregation, where joins would compute every part twice."""
    columns = [*_SUMS, *_LONGEST]
    padded = []
    for part in parts:
        own = part.collect_schema().names()
        missing = {name: nw.lit(None, nw.Int64) for name in columns if name not in own}
        padded.append(part.with_columns(**missing).select(*GROUP_PARTITION, *columns))
    return nw.concat(padded).group_by(*GROUP_PARTITION).agg(*[nw.col(name).max() for name in columns])


def _judged(rows: FrameT, has_history: bool) -> FrameT:
    known = [name for name in _SUMS if name != "unowned" or has_history]
    rows = rows.with_columns(*[nw.col(name).fill_null(0) for name in known])
    wrong = nw.col("overlaps") + nw.col("unowned").fill_null(0)
    exclusive = nw.when(wrong > 0).then(nw.lit(False)).when(nw.col("doubtful_overlaps") == 0).then(nw.lit(True))
    return rows.select(*GROUP_PARTITION, *_SUMS, *_LONGEST, is_complete=nw.col("lost") == 0, is_exclusive=exclusive)
