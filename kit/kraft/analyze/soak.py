"""Judge a cluster between two phases of its move to KRaft, from kept observations: verdicts, fail-overs, values.

Frames are polars: ``tables.KRAFT_STATES`` and ``tables.METADATA_DIFFERENCES`` of one cluster, stamped, oldest first.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from kit.kraft.analyze.phase import DUAL_WRITE, KRAFT, UNKNOWN

DIVERGED, NOT_READ, IN_FLIGHT, CLEAN, NOT_COMPARED = VERDICTS = (
    "diverged",
    "not read",
    "in flight",
    "clean",
    "not compared",
)
"""The verdicts of an observation, the worst first. Not compared: outside of dual write there is nothing to compare."""
USUAL_LAG = 2
"""Records that ZooKeeper may be behind in a cluster that is well."""
GAPS = 3.0
"""Two observations farther apart than that many times the usual distance are a gap."""
LONGEST_GAP_S = 3600.0
"""A longer time without an observation ends the soak."""
CLOCK_SKEW = timedelta(minutes=2)
"""The largest difference between the clocks of the machine that watched and of the one that plans."""


def with_verdicts(states: pl.DataFrame) -> pl.DataFrame:
    """Each observation with ``verdict``, one of ``VERDICTS``.

    >>> looks = pl.DataFrame({"phase": ["kraft"] * 3, "n_diverged": [1, 0, None], "n_unknown": [0, 0, None],
    ...     "n_in_flight": [0, 3, None], "error": [None, None, "no answer"]})
    >>> with_verdicts(looks)["verdict"].to_list()
    ['diverged', 'in flight', 'not read']
    """
    is_both = pl.col("phase").is_in([DUAL_WRITE, KRAFT])
    is_unread = pl.col("error").is_not_null() | (pl.col("n_unknown") > 0) | (is_both & pl.col("n_diverged").is_null())
    verdict = (
        pl.when(pl.col("n_diverged") > 0)
        .then(pl.lit(DIVERGED))
        .when(is_unread)
        .then(pl.lit(NOT_READ))
        .when(pl.col("n_in_flight") > 0)
        .then(pl.lit(IN_FLIGHT))
        .when(is_both)
        .then(pl.lit(CLEAN))
        .otherwise(pl.lit(NOT_COMPARED))
    )
    return states.with_columns(verdict=verdict)


def stretches(states: pl.DataFrame) -> pl.DataFrame:
    """Observations that follow each other with one phase and one verdict, as a row.

    Columns: phase, verdict, from_at, until_at (of its last observation), n_looks, max_lag (records), n_diverged,
    n_in_flight (the most in one observation), longest_gap_s (between two of its observations).
    """
    rows = with_verdicts(states).with_columns(gap=pl.col("at").diff())
    changes = (pl.struct("phase", "verdict") != pl.struct("phase", "verdict").shift()).fill_null(True)
    grouped = rows.with_columns(number=changes.cum_sum()).group_by("number", maintain_order=True)
    summary = grouped.agg(
        pl.col("phase", "verdict").first(),
        from_at=pl.col("at").first(),
        until_at=pl.col("at").last(),
        n_looks=pl.len().cast(pl.Int64),
        max_lag=pl.col("lag").max(),
        n_diverged=pl.col("n_diverged").max(),
        n_in_flight=pl.col("n_in_flight").max(),
        longest_gap_s=pl.col("gap").slice(1).max().dt.total_milliseconds() / 1000,
    )
    return summary.drop("number")


def fail_overs(states: pl.DataFrame) -> pl.DataFrame:
    """Each change of the controller that leads, as two observations show it: seen_at, from_controller, to_controller,
    kraft_epoch. One that came and went between two observations shows in the epoch alone, and counts.
    """
    known = states.filter(pl.col("controller_id").is_not_null(), pl.col("phase").is_in([DUAL_WRITE, KRAFT]))
    leader = pl.col("controller_id").cast(pl.String)  # An id is a name, and has no thousands.
    rows = known.select(
        seen_at="at",
        from_controller=leader.shift(),
        to_controller=leader,
        kraft_epoch="kraft_epoch",
        epoch_before=pl.col("kraft_epoch").shift(),
    )
    is_other = pl.col("from_controller") != pl.col("to_controller")
    return rows.filter(is_other | (pl.col("kraft_epoch") > pl.col("epoch_before"))).drop("epoch_before")


def gaps(states: pl.DataFrame) -> pl.DataFrame:
    """Times without an observation, the longest first: from_at, until_at, seconds."""
    rows = states.select(
        from_at=pl.col("at").shift(), until_at="at", seconds=pl.col("at").diff().dt.total_milliseconds() / 1000
    )
    usual = rows["seconds"].median()
    is_long = pl.col("seconds") > GAPS * (usual if isinstance(usual, float) else 0.0)
    return rows.filter(is_long).sort("seconds", descending=True)


def values(differences: pl.DataFrame, states: pl.DataFrame) -> pl.DataFrame:
    """Each value that diverged or was not read in any observation, those of the last observation first.

    Columns: kind, entity, item, verdict, cause, is_open (in the last observation still), n_looks, first_at, last_at,
    zookeeper_value, kraft_value (of the last observation that had it), error.
    """
    key = ["kind", "entity", "item", "verdict"]
    last = states["snapshot_id"].tail(1)
    by_value = differences.filter(pl.col("verdict") != "in_flight").group_by(key, maintain_order=True)
    rows = by_value.agg(
        pl.col("cause").drop_nulls().last(),
        is_open=pl.col("snapshot_id").is_in(last.implode()).any(),
        n_looks=pl.col("snapshot_id").n_unique().cast(pl.Int64),
        first_at=pl.col("observed_at").min(),
        last_at=pl.col("observed_at").max(),
        zookeeper_value=pl.col("zookeeper_value").last(),
        kraft_value=pl.col("kraft_value").last(),
        error=pl.col("error").drop_nulls().last(),
    )
    return rows.sort("is_open", "last_at", "kind", "entity", "item", descending=[True, True, False, False, False])


def soak_problem(states: pl.DataFrame, now: datetime, hours: float) -> str | None:
    """Return why a cluster was not watched in KRaft mode for ``hours`` up to ``now``, with nothing diverged and a
    fail-over.

    A soak begins again where the phase was another, a value diverged, or no observation proved for longer than
    ``LONGEST_GAP_S`` that ZooKeeper follows. An observation proves it if it is clean and ``_has_moved``: values in
    flight are no proof. An observation that could not read everything proves nothing, and does not end the soak: while
    no controller leads, the log can't be read, and in KRaft mode ZooKeeper alone does not show the phase.
    """
    newest = None if states.is_empty() else states["at"].max()
    if isinstance(newest, datetime) and newest > now + CLOCK_SKEW:
        return (
            f"clock trouble: an observation is dated {newest:%Y-%m-%d %H:%M} UTC, but this machine's clock shows"
            f" {now:%Y-%m-%d %H:%M} UTC, so the time of watching is unknown. Correct the clocks, and start offramp"
            " kraft watch with a new folder"
        )
    begin, why = _begin(states, now)
    if begin is None:
        return f"KRaft mode was not watched: {why or 'the history has no observation of it'}"
    watched = (now - begin).total_seconds() / 3600
    if watched < hours:
        why = why or "the history begins there"
        return f"KRaft mode was watched for {watched:,.1f} h of {hours:g} h without a break: {why}"
    if fail_overs(states.filter(pl.col("at") >= begin)).is_empty():
        return f"no fail-over was seen in {watched:,.1f} h of watching. To make one: offramp plan kraft --fail-over"
    return None


def _begin(states: pl.DataFrame, now: datetime) -> tuple[datetime | None, str]:
    """Return when the soak that lasts until ``now`` began, and why it began only then. None: there is no soak."""
    begin, end, n_unproved = None, now, 0
    looks = with_verdicts(states).select("at", "phase", "verdict", _has_moved())
    for at, phase, verdict, has_moved in reversed(looks.rows()):
        is_stalled = phase == KRAFT and (verdict == IN_FLIGHT or (verdict == CLEAN and not has_moved))
        if is_stalled or (verdict == NOT_READ and phase in (KRAFT, UNKNOWN)):
            n_unproved += 1
        elif (end - at).total_seconds() > LONGEST_GAP_S:
            return begin, f"{_gap(n_unproved)} from {at:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"
        elif phase != KRAFT:
            return begin, f"the phase was {phase} at {at:%Y-%m-%d %H:%M} UTC"
        elif verdict == DIVERGED:
            return begin, f"values diverged at {at:%Y-%m-%d %H:%M} UTC"
        else:
            begin, end, n_unproved = at, at, 0
    return begin, _gap(n_unproved) if n_unproved else ""


def _has_moved() -> pl.Expr:
    """Return whether the offset in ``/migration`` is another than in the observation before, or no record is missing in
    ZooKeeper.

    The oldest observation has none before it.
    """
    before = pl.col("checkpoint").forward_fill().shift()
    return (pl.col("checkpoint").ne(before) | (pl.col("lag") == 0) | before.is_null()).fill_null(False)


def _gap(n_unproved: int) -> str:
    if not n_unproved:
        return "no observation"
    return (
        "no observation proves that ZooKeeper receives KRaft's changes: values were in flight or not read, or "
        "/migration was stalled"
    )


def since(states: pl.DataFrame, hours: float) -> pl.DataFrame:
    """The observations of the last ``hours`` before the newest one; 0: all."""
    if not hours or states.is_empty():
        return states
    newest = states["at"][-1]
    return states.filter(pl.col("at") >= newest - timedelta(hours=hours))
