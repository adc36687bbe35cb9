"""Make the beginning of a report: a row of figures, a few sentences, and the groups that need attention, worst
first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from kit.groups.analyze.beyond_end import REMEDY
from kit.groups.analyze.summary import COMMITS_NOTHING, EXPIRING
from kit.presentation.brief import Brief
from kit.text.known_sum import known_sum
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.visible import cell

NAMED = 3
"""The most groups that one sentence names."""
GREW = 100
"""Records by which a lag has to grow to need attention: a few records always wait for the next commit."""
SHOWN = 25
"""The most exceptions of one kind that a report shows; a line above them has their number."""
KINDS = {
    "commit beyond the end": f"The committed offset is beyond the end of the log: {REMEDY}. Reset the offset.",
    "no active members": "Records are left and the group has no member: start a consumer, or delete the group.",
    "unsafe mix": "Old and plain Kafka consumers read the same partitions: stop one kind of them.",
    "owned_twice": "A partition has two owners, its records are read twice: stop one of the two.",
    "unowned": "A partition has no owner though the group has members: restart the member that gave up.",
    "owner_not_registered": "A consumer that is not registered holds a partition: find that process and stop it.",
    "persistent_owner": "No session deletes this znode, and no member can claim it: offramp plan delete-znodes.",
    "persistent_member": "No member has this registration, but it gets partitions: offramp plan delete-znodes.",
    "assigned_never_committed": "A partition has an owner and no store has an offset: see why it doesn't commit.",
    COMMITS_NOTHING: "The group has members, and the store in use has no offset of it: see why it doesn't commit.",
    "stalled": "Records are left, but no offset was committed since the last report: check the members.",
    EXPIRING: "The group has no member, so the brokers delete each offset by the age of its commit "
    "(offsets.retention.minutes): start a consumer, or save the offsets with offramp plan offsets export.",
    "could not be read": "An offset, a log or a registration is unreadable. Values that depend on it are unknown.",
    "lag is growing": "The lag grew since the last report: compare the rate of production with the rate of "
    "consumption.",
}
"""Kind of trouble → what to do; the worst kind first."""
_LEFT, _MOVING = ("all KC",), ("OZKCC", "canary MEZKCC", "all MEZKCC", "Kafka coordination", "canary KC")
_SCHEMA = {"kind": pl.String, "group_id": pl.String, "n_partitions": pl.Int64, "lag": pl.Int64}


def of_the_store_in_use(summary: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of the store in use alone. A group that is gone keeps one row."""
    used = summary.select("group_id", store="store_in_use")
    gone = rows.join(summary, on="group_id", how="anti").unique("group_id", keep="first", maintain_order=True)
    return pl.concat([rows.join(used, on=["group_id", "store"], how="semi"), gone])


def attention(
    summary: pl.DataFrame, findings: pl.DataFrame, stalled: pl.DataFrame, changes: pl.DataFrame
) -> pl.DataFrame:
    """The groups in trouble: one row per group and kind, in the order of ``KINDS``, the most lag first.

    Each group with an ``attention`` in ``summary`` is one of them. Others need two snapshots, or a partition's finding.

    Args:
        summary, findings, changes: ``analyze.group_summary``, ``ownership_findings``, ``lag_change``.
        stalled: rows of ``partition_progress`` that were stalled.

    Columns: kind, group_id, n_partitions (null: of all), lag (in records, of the store in use).
    """
    lags = summary.select("group_id", "stage", "n_members", "n_beyond_end", "lag", "lag_retained")
    waiting = pl.coalesce("lag_retained", "lag")
    unread = lags.filter((pl.col("n_members") == 0) & (waiting > 0))
    mixed = lags.filter(pl.col("stage") == "unsafe mix")
    grown = of_the_store_in_use(summary, changes).filter((pl.col("change") >= GREW) & (pl.col("lag") > 0))
    grown = grown.join(unread, on="group_id", how="anti")
    found = findings.filter(pl.col("finding").is_in(list(KINDS)))
    still = of_the_store_in_use(summary, stalled).join(unread, on="group_id", how="anti")
    beyond = lags.filter(pl.col("n_beyond_end") > 0)
    # A group whose owners are unknown has no finding about them.
    silent = summary.filter(pl.col("attention") == COMMITS_NOTHING).join(
        found.filter(pl.col("finding") == "assigned_never_committed"), on="group_id", how="anti"
    )
    named = [
        ("commit beyond the end", beyond),
        ("no active members", unread),
        ("unsafe mix", mixed),
        (COMMITS_NOTHING, silent),
        (EXPIRING, summary.filter(pl.col("attention") == EXPIRING)),
        ("could not be read", summary.filter("is_unreadable")),
        ("lag is growing", grown),
    ]
    rows = [frame.select("group_id", kind=pl.lit(kind), n_partitions=pl.lit(None, pl.Int64)) for kind, frame in named]
    for frame, kind in ((found, pl.col("finding")), (still, pl.lit("stalled"))):
        counted = frame.select("group_id", kind=kind).group_by("group_id", "kind").agg(n_partitions=pl.len())
        rows.append(counted.with_columns(pl.col("n_partitions").cast(pl.Int64)))
    every = pl.concat(rows, how="vertical_relaxed").join(lags.select("group_id", "lag"), on="group_id", how="left")
    rank = pl.col("kind").replace_strict({kind: at for at, kind in enumerate(KINDS)}, return_dtype=pl.Int32)
    ordered = every.sort(rank, "lag", "group_id", descending=[False, True, False], nulls_last=True)
    return ordered.select(pl.col(name).cast(kind) for name, kind in _SCHEMA.items())


def by_kind(needing: pl.DataFrame) -> pl.DataFrame:
    """:func:`attention` per kind: kind, n_groups, lag (in records; null: known of no group), first_group, remedy."""
    counted = needing.group_by("kind", maintain_order=True).agg(
        n_groups=pl.len().cast(pl.Int64), lag=known_sum("lag"), first_group=pl.col("group_id").first()
    )
    return counted.with_columns(remedy=pl.col("kind").replace_strict(KINDS, return_dtype=pl.String))


def standing_still(stalled: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``partition_progress`` that were stalled, per owner, the most lag first.

    Columns: group_id, store, member_id, partitions, produced, lag (both in records; null: known of no partition).
    """
    of_owners = stalled.group_by("group_id", "store", "member_id").agg(
        known_sum("produced"), known_sum("lag"), partitions=pl.len().cast(pl.Int64)
    )
    rows = of_owners.select("group_id", "store", "member_id", "partitions", "produced", "lag")
    return rows.sort("lag", "group_id", "store", "member_id", descending=[True, *[False] * 3], nulls_last=True)


def brief(
    summary: pl.DataFrame,
    needing: pl.DataFrame,
    read_errors: pl.DataFrame,
    changes: pl.DataFrame,
    moved: pl.DataFrame | None,
    before_at: str = "",
    groups_before: Collection[str] = (),
    has_zookeeper: bool = True,
    may_miss: str | None = None,
) -> Brief:
    """The first lines of a report; of a cluster without ZooKeeper they don't mention it.

    Args:
        needing: :func:`attention`.
        moved: ``analyze.stickiness``; None: there is no earlier snapshot.
        before_at: when the earlier snapshot was taken, for people.
        groups_before: the groups that it knew.
        may_miss: why groups may be missing (``unseen_groups`` of the snapshot); None: the login could see every group.
    """
    changes = of_the_store_in_use(summary, changes) if before_at else changes.clear()
    ready = summary.filter(pl.col("stage").is_in(_MOVING) & (pl.col("n_blockers") == 0))
    figures = _figures(summary, needing, ready if has_zookeeper else None, read_errors, changes)
    sentences = [
        _changed(summary, changes, set(groups_before), before_at),
        _needs(needing),
        _can_leave(summary, ready) if has_zookeeper else "",
        _kept(moved),
        _not_read(read_errors, may_miss),
        may_miss,
    ]
    return Brief(figures, tuple(each for each in sentences if each))


def _figures(
    summary: pl.DataFrame,
    needing: pl.DataFrame,
    ready: pl.DataFrame | None,
    read_errors: pl.DataFrame,
    changes: pl.DataFrame,
) -> tuple[tuple[str, str, str], ...]:
    to_leave = [] if ready is None else [("can take a step off ZooKeeper", f"{len(ready):,}", "groups")]
    members = summary["n_members"]
    # A group without partitions has nothing to read; one that could not be read has an unknown number of them.
    lag = summary.filter(pl.col("lag").is_not_null() | pl.col("n_partitions").ne_missing(0))["lag"]
    return (
        ("groups", f"{len(summary):,}", ""),
        ("members", _total(members), _unknown(members)),
        ("records behind", _total(lag), "; ".join(filter(None, [_since_last_time(changes), _unknown(lag)]))),
        ("need attention", f"{needing['group_id'].n_unique():,}", "groups"),
        *to_leave,
        ("could not be read", f"{len(read_errors):,}", ""),
    )


def _total(of_groups: pl.Series) -> str:
    """The sum of what is known; where nothing is, though there are groups, that is no 0."""
    return f"{of_groups.sum():,}" if of_groups.count() or of_groups.is_empty() else "unknown"


def _unknown(of_groups: pl.Series) -> str:
    n_groups = of_groups.null_count()
    return f"of {quantity(n_groups, 'group')} unknown" if n_groups else ""


def _since_last_time(changes: pl.DataFrame) -> str:
    if changes.is_empty():
        return ""
    change = changes["change"]
    if not change.count():
        return "change unknown"
    return f"{change.sum():+,} since last time"


def _changed(summary: pl.DataFrame, changes: pl.DataFrame, groups_before: set[str], before_at: str) -> str:
    if not before_at:
        return "This history holds no earlier report, so no changes can be shown."
    groups_now = set(summary["group_id"])
    change = changes.filter(pl.col("group_id").is_in(list(groups_now & groups_before)))["change"]
    n_more, n_less, n_same = (int(each.sum()) for each in (change > 0, change < 0, change == 0))
    n_came, n_went = len(groups_now - groups_before), len(groups_before - groups_now)
    parts = [
        f"the lag of {_groups(n_more)} grew",
        f"{_groups(n_less)} caught up",
        f"{_groups(n_came)} came" if n_came else "",
        f"{_groups(n_went)} went" if n_went else "",
    ]
    n_unknown = len(groups_now & groups_before) - n_more - n_less - n_same
    rest = f"the lag of {_groups(n_same)} is the same" if n_same else ""
    unknown = f"how that of {_groups(n_unknown)} changed is unknown" if n_unknown else ""
    if unknown and not rest:
        unknown = f"how the lag of {_groups(n_unknown)} changed is unknown"
    sections = [", ".join(filter(None, parts)), rest, unknown]
    return f"Since {before_at}: {'; '.join(filter(None, sections))}."


def _needs(needing: pl.DataFrame) -> str:
    names = needing["group_id"].unique(maintain_order=True).to_list()
    if not names:
        return "Nothing needs attention now."
    worst = needing.row(0, named=True)
    return f"{_groups(len(names), 'need', 's')} attention: {_named(names)}. First: {worst['kind'].replace('_', ' ')}."


def _can_leave(summary: pl.DataFrame, ready: pl.DataFrame) -> str:
    n_left = summary["stage"].is_in(_LEFT).sum()
    on_the_way = summary["stage"].is_in(_MOVING).sum()
    blocked = f"; blockers hold {_groups(on_the_way - len(ready))}" if on_the_way > len(ready) else ""
    n_unknown = (summary["stage"] == "unknown").sum()
    unknown = f"; the stage of {_groups(n_unknown)} is unknown" if n_unknown else ""
    left = f"{_groups(n_left, 'use', 's')} Kafka alone{unknown}"
    if not on_the_way:
        return f"No group is known to be on the path off ZooKeeper; {left}."
    names = ready["group_id"].sort().to_list()
    if not names:
        return f"No group can take the next step off ZooKeeper now{blocked}; {left}."
    return f"{_groups(len(names))} can take the next step off ZooKeeper now: {_named(names)}{blocked}; {left}."


def _kept(moved: pl.DataFrame | None) -> str:
    owned = moved.filter(pl.col("n_partitions") > 0) if moved is not None else None
    if owned is None or owned.is_empty():
        return ""
    changed = owned.filter(pl.col("n_kept") < pl.col("n_partitions"))["group_id"].unique().sort().to_list()
    n_same = owned["group_id"].n_unique() - len(changed)
    rest = f"; {_named(changed)} did not" if changed else ""
    return f"{_groups(n_same)} kept all partitions since last time{rest}."


def _not_read(read_errors: pl.DataFrame, may_miss: str | None) -> str:
    if read_errors.is_empty():
        return "Everything was read." if may_miss is None else "Everything that the login can see was read."
    n_errors = len(read_errors)
    things = quantity(n_errors, "thing")
    return f"{things} could not be read. Values that depend on them are unknown, not zero."


def _groups(count: Any, verb: str = "", third: str = "") -> str:
    noun = quantity(count, "group") if count else "no group"
    return f"{noun} {verb}{third if count < 2 else ''}" if verb else noun


def _named(names: Sequence[str]) -> str:
    return shortened(map(cell, names), NAMED)
