"""Burrow's rules: is a group well, judged by its commits alone. Each verdict reports what it was judged by.

The rules and their order are those of Burrow's evaluator (linkedin/Burrow, ``core/internal/evaluator``, ced55ba).
"""

from __future__ import annotations

import narwhals as nw
from narwhals.typing import FrameT

from kit.health.analyze.measures import measured_partitions, measured_windows
from kit.health.analyze.windows import INTERVALS, PARTITION
from kit.text.sentences import counted, words

_WINDOW = [*PARTITION, "at_ms"]
_VERDICT = ["status", "evidence"]
_EVIDENCE = [
    "n_commits",
    "lag",
    "committed_offset",
    "log_end_offset",
    "lowest_end",
    "first_committed_ms",
    "committed_ms",
    "lowest_lag",
    "rewound_from",
    "rewound_to",
]
_SCALE = {"OK": 1, "WARN": 2, "STOP": 4, "STALL": 5, "REWIND": 6}
_ERR = 3


@nw.narwhalify
def partition_health(
    commits: FrameT,
    ends: FrameT,
    times: FrameT,
    intervals: int = INTERVALS,
    allowed_lag: int = 0,
    minimum_complete: float = 0.0,
) -> FrameT:
    """Each partition's status at each time. For ``commits``, ``ends`` and ``times`` see ``commit_windows``.

    The first rule that applies gives the status: the current lag is allowed: ``OK``; silent for longer than the whole
    window took, and not caught up with any remembered end: ``STOP``; the first step back was not made good: ``REWIND``;
    a stored lag is allowed: ``OK``; all offsets are equal: ``STALL``; the stored lags never fall: ``WARN``; else
    ``OK``. Commits are not merged by Burrow's ``min-distance`` (it is 0 unless configured).

    Args:
        intervals: how many commits and ends are remembered.
        allowed_lag: in records.
        minimum_complete: the share of ``intervals`` below which a window counts as ``OK``.

    Columns:
        group_id, store, topic, partition, at_ms: the key; a partition that never committed has no row.
        status: ``OK``, ``WARN``, ``STOP``, ``STALL``, ``REWIND``; null where no end of the log is known.
        evidence: why, in words.
        n_commits: in the window.
        lag: newest end − newest commit, at least 0, in records.
        committed_offset, log_end_offset: the newest of both.
        lowest_end: of the remembered ends.
        first_committed_ms, committed_ms: the first and the last commit of the window (epoch).
        lowest_lag: of those stored with the commits.
        rewound_from, rewound_to: offsets of the first step back in the window.

    Ten commits, one a minute, then 541 s of silence:

    >>> import polars as pl
    >>> place = {"topic": "t", "partition": 0}
    >>> commits = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "order": range(10),
    ...     "committed_offset": range(100, 200, 10), "committed_ms": range(0, 600_000, 60_000)})
    >>> ends = pl.DataFrame({**place, "log_end_offset": [400], "sampled_ms": [540_000]})
    >>> rows = partition_health(commits, ends, pl.DataFrame({"at_ms": [1_080_000, 1_081_000]}))
    >>> for row in rows.sort("at_ms").select("status", "evidence").rows(): print(*row)
    WARN the lag never fell while the group committed 10 times; it is 210 records
    STOP no commit for 541 s, which is longer than the last 10 commits took (540 s); 210 records wait
    """
    rows = measured_partitions(commits, ends, times, intervals, allowed_lag)
    return _judged(rows, intervals, allowed_lag, minimum_complete)


@nw.narwhalify
def window_health(
    windows: FrameT,
    rings: FrameT,
    intervals: int = INTERVALS,
    allowed_lag: int = 0,
    minimum_complete: float = 0.0,
) -> FrameT:
    """``partition_health``, from windows and rings that are known already.

    Args:
        windows, rings: rows of ``commit_windows`` and ``end_rings``.
        intervals, allowed_lag, minimum_complete: as in ``partition_health``.

    Columns:
        group_id, store, topic, partition, at_ms: the key.
        all others: as in ``partition_health``.

    >>> import polars as pl
    >>> from kit.health.analyses import commit_windows, end_rings
    >>> place = {"topic": "t", "partition": 0}
    >>> commits = pl.DataFrame({"group_id": "g", "store": "kafka", **place, "order": range(10),
    ...     "committed_offset": range(100, 200, 10), "committed_ms": range(0, 600_000, 60_000)})
    >>> ends = pl.DataFrame({**place, "log_end_offset": [400], "sampled_ms": [540_000]})
    >>> times = pl.DataFrame({"at_ms": [1_081_000]})
    >>> rows = window_health(commit_windows(commits, ends, times), end_rings(ends, times))
    >>> rows.select("status", "n_commits", "lag", "committed_ms").rows()
    [('STOP', 10, 210, 540000)]
    """
    rows = measured_windows(windows, allowed_lag).join(rings, on=["topic", "partition", "at_ms"], how="left")
    return _judged(rows, intervals, allowed_lag, minimum_complete)


def _judged(rows: FrameT, intervals: int, allowed_lag: int, minimum_complete: float) -> FrameT:
    lag = nw.col("newest_end") - nw.col("committed_offset")
    rows = rows.with_columns(
        lag=nw.when(lag < 0).then(nw.lit(0, nw.Int64)).otherwise(lag),
        silent_ms=nw.col("at_ms") - nw.col("at_ms") % 1000 - nw.col("committed_ms"),
        span_ms=nw.col("committed_ms") - nw.col("first_committed_ms"),
        log_end_offset=nw.col("newest_end"),
    )
    rules = _rules(intervals, allowed_lag, minimum_complete)
    rows = rows.with_columns(status=_first(rules, 0), evidence=_first(rules, 1))
    return rows.select(*_WINDOW, *_VERDICT, *_EVIDENCE)


@nw.narwhalify
def group_health(partition_health: FrameT) -> FrameT:
    """The status of each group and store: that of its worst partition, as Burrow shows it.

    Columns:
        group_id, store, at_ms: the key.
        status: ``OK``, ``WARN``, or ``ERR`` for anything worse; null where it is unknown for each partition.
        n_partitions: that ever committed; n_ok, n_warn, n_stop, n_stall, n_rewind, n_unknown: of them.
        lag: in records, of the partitions where it is known; max_lag: of one partition.

    >>> import polars as pl
    >>> key = {"group_id": "g", "store": "kafka", "topic": "t", "at_ms": 1000}
    >>> rows = pl.DataFrame({**key, "partition": [0, 1], "status": ["WARN", "STALL"], "lag": [5, 7]})
    >>> group_health(rows).select("status", "n_warn", "n_stall", "lag", "max_lag").rows()
    [('ERR', 1, 1, 12, 7)]
    """
    status = nw.col("status")
    flags = {f"n_{name.lower()}": status == name for name in _SCALE} | {"n_unknown": status.is_null()}
    worth = status.replace_strict(list(_SCALE), list(_SCALE.values()), return_dtype=nw.Int64, default=None)
    rows = partition_health.with_columns(
        worth=worth, **{name: flag.fill_null(False).cast(nw.Int64) for name, flag in flags.items()}
    )
    groups = rows.group_by("group_id", "store", "at_ms").agg(
        nw.col("worth").max(),
        nw.len().cast(nw.Int64).alias("n_partitions"),
        *[nw.col(name).sum() for name in flags],
        nw.col("lag").sum(),
        nw.col("lag").max().alias("max_lag"),
    )
    worth = nw.col("worth")
    status = nw.when(worth >= _ERR).then(nw.lit("ERR")).when(worth == _SCALE["WARN"]).then(nw.lit("WARN"))
    return groups.select(
        "group_id",
        "store",
        "at_ms",
        status.when(worth == _SCALE["OK"]).then(nw.lit("OK")).alias("status"),
        "n_partitions",
        *flags,
        # A sum over unknown lags alone is 0 in polars.
        lag=nw.when(~nw.col("max_lag").is_null()).then(nw.col("lag")),
        max_lag="max_lag",
    )


def _rules(intervals: int, allowed_lag: int, minimum_complete: float) -> list[tuple[nw.Expr, nw.Expr, nw.Expr]]:
    """In Burrow's order: when it applies, the status, the evidence."""
    lag = nw.col("lag")
    is_stopped = (nw.col("silent_ms") > nw.col("span_ms")) & (nw.col("lowest_end") > nw.col("committed_offset"))
    is_back = ~nw.col("rewound_from").is_null() & (nw.col("highest_since") < nw.col("rewound_from"))
    times, records = counted(nw.col("n_commits"), "time"), counted(lag, "record")
    last = counted(nw.col("n_commits"), "commit")
    return [
        _rule(lag.is_null(), None, "the log end offset is unknown"),
        _rule(
            nw.col("n_commits") < minimum_complete * intervals,
            "OK",
            words(nw.col("n_commits"), f" of {intervals} commits, too few to judge"),
        ),
        _rule(lag <= allowed_lag, "OK", words("the lag of ", records, f" is allowed ({allowed_lag:,})")),
        _rule(
            is_stopped,
            "STOP",
            words(
                "no commit for ",
                _seconds("silent_ms"),
                " s, which is longer than the last ",
                last,
                " took (",
                _seconds("span_ms"),
                " s); ",
                counted(lag, "record waits", "records wait"),
            ),
        ),
        _rule(
            is_back,
            "REWIND",
            words(
                "the committed offset went back from ",
                nw.col("rewound_from"),
                " to ",
                nw.col("rewound_to"),
                " and has not reached the earlier offset again",
            ),
        ),
        _rule(
            nw.col("was_allowed"),
            "OK",
            words(
                "a commit of the window was ",
                counted(nw.col("lowest_lag"), "record"),
                f" behind, which is allowed ({allowed_lag:,})",
            ),
        ),
        _rule(
            nw.col("lowest") == nw.col("highest"),
            "STALL",
            words("the group committed only the offset ", nw.col("highest"), ", ", times),
        ),
        _rule(
            ~nw.col("falls"),
            "WARN",
            words("the lag never fell while the group committed ", times, "; it is ", records),
        ),
        _rule(nw.lit(True), "OK", words("the lag fell within the window; it is ", records)),
    ]


def _rule(applies: nw.Expr, status: str | None, evidence: str | nw.Expr) -> tuple[nw.Expr, nw.Expr, nw.Expr]:
    return applies, nw.lit(status, nw.String), nw.lit(evidence) if isinstance(evidence, str) else evidence


def _first(rules: list[tuple[nw.Expr, nw.Expr, nw.Expr]], which: int) -> nw.Expr:
    (applies, *values), *others = rules
    chosen = nw.when(applies).then(values[which])
    for applies, *values in others:
        chosen = chosen.when(applies).then(values[which])
    return chosen


def _seconds(name: str) -> nw.Expr:
    return (nw.col(name) - nw.col(name) % 1000) // 1000
