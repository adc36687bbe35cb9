"""Find the cause of a group's trouble: what changed in its cluster just before the alarm, or is in its members'
logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from typing import Any

import polars as pl

from kit.text.duration import duration
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.time_format import worded

UNKNOWN = "unknown"
STORM_CHANGES = 3
"""The number of changes of owners before one alarm that is a storm."""
ROSE = 2.0
"""The factor by which the records a second must rise to be a cause."""
_INCIDENT = ["group_id", "store", "since_ms", "from_ms", "until_ms"]
_OF_LOGS = {
    "storm": "rebalance storm",
    "rejoining": "rebalance storm",
    "evicted": "member thrown out",
    "fenced": "member thrown out",
    "commit_failed": "commits failed",
    "unreached_coordinator": "coordinator not reached",
    "long_join": "long rebalance",
    "long_sync": "long rebalance",
}
"""A finding of ``log_findings`` → a cause."""
_SCHEMA = dict.fromkeys(("group_id", "store"), pl.String) | dict.fromkeys(_INCIDENT[2:], pl.Int64)
_SCHEMA |= {"rank": pl.Int64, "cause": pl.String, "at_ms": pl.Int64, "evidence": pl.String, "source": pl.String}


@dataclass(frozen=True)
class Seen:
    """Observations, as polars: ``looks`` (snapshot_id, at_ms) and tables of a snapshot, by snapshot_id."""

    looks: pl.DataFrame
    members: pl.DataFrame
    ownership: pl.DataFrame
    committed_offsets: pl.DataFrame
    log_offsets: pl.DataFrame


def incident_causes(incidents: pl.DataFrame, seen: Seen, findings: pl.DataFrame | None = None) -> pl.DataFrame:
    """Return the causes of each incident by the tables and the logs, by its begin, the likeliest cause first.

    It has to lie between the last observation before the begin and the alarm. In this order: the topic was made again;
    members left; owners changed repeatedly; a finding of the logs; partitions were added; an owner changed; the topic
    got more records; nothing was committed though members were there; no member is there to read.

    Args:
        incidents: ``group_alarms``.
        seen: observations around each incident, some before it, since a rise is one against what was before.
        findings: ``tables.LOG_FINDINGS``; those whose time zone is not known show nothing.

    Columns:
        group_id, store, since_ms, from_ms, until_ms: the incident.
        rank: 1 for the likeliest.
        cause: in a few words; ``unknown``: nothing of these was seen.
        at_ms: when it was first seen; null where it is unknown.
        evidence: a sentence with the rows and their times; source: the table, or ``logs``.
    """
    rows = [row for each in _in_order(incidents) for row in _ranked(_Case(each, seen, findings))]
    return pl.DataFrame(rows, schema=_SCHEMA, orient="row")


def _in_order(incidents: pl.DataFrame) -> list[dict[str, Any]]:
    return incidents.sort("since_ms", "group_id", "store").to_dicts()


def _ranked(case: _Case) -> Iterator[tuple[Any, ...]]:
    key = tuple(case.incident[name] for name in _INCIDENT)
    causes = [cause for rule in RULES for cause in rule(case)]
    for rank, cause in enumerate(causes, 1):
        yield (*key, rank, *cause)
    if not causes:
        looks = quantity(len(case.near), "observation")
        yield (*key, 1, UNKNOWN, None, f"No change was seen in {looks} around the beginning of the incident.", "")


@dataclass(frozen=True)
class _Case:
    """One incident, and the rows of its group at the observations around it."""

    incident: dict[str, Any]
    seen: Seen
    findings: pl.DataFrame | None

    @cached_property
    def looks(self) -> pl.DataFrame:
        """Return the observations up to the alarm."""
        return self.seen.looks.filter(pl.col("at_ms") <= self.incident["from_ms"]).sort("at_ms")

    @cached_property
    def begin_ms(self) -> int:
        """The last observation before the begin: what happened after it can be the cause.

        A member that stops commits once more and leaves: one observation may be the first to show both.
        """
        before = self.looks.filter(pl.col("at_ms") < self.incident["since_ms"])["at_ms"]
        return int(before[-1]) if len(before) else int(self.incident["since_ms"])

    @cached_property
    def near(self) -> list[tuple[str, int]]:
        """The observations from the last one before the begin to the alarm."""
        return list(self.looks.filter(pl.col("at_ms") >= self.begin_ms).select("snapshot_id", "at_ms").iter_rows())

    def of_group(self, table: pl.DataFrame) -> pl.DataFrame:
        return table.filter(pl.col("group_id") == self.incident["group_id"])

    @cached_property
    def members(self) -> list[tuple[int, set[str]]]:
        rows = self.of_group(self.seen.members).group_by("snapshot_id").agg("member_id")
        by_snapshot = {snapshot_id: set(ids) for snapshot_id, ids in rows.iter_rows()}
        return [(at, by_snapshot.get(snapshot_id, set())) for snapshot_id, at in self.near]

    @cached_property
    def owners(self) -> list[tuple[int, dict[str, str]]]:
        rows = self.of_group(self.seen.ownership).drop_nulls("member_id")
        rows = rows.filter(~pl.col("is_shared").fill_null(False))
        rows = rows.select("snapshot_id", pl.format("{}-{}", "topic", "partition"), "member_id")
        by_snapshot: dict[str, dict[str, str]] = {}
        for snapshot_id, place, member in rows.iter_rows():
            by_snapshot.setdefault(snapshot_id, {})[place] = member
        return [(at, by_snapshot.get(snapshot_id, {})) for snapshot_id, at in self.near]

    @cached_property
    def offsets(self) -> pl.DataFrame:
        """Return the group's commits, all observations: place, at_ms, committed_offset, log_end_offset."""
        log = ["snapshot_id", "topic", "partition"]
        rows = self.of_group(self.seen.committed_offsets).filter(pl.col("store") == self.incident["store"])
        rows = rows.select(*log, "committed_offset").join(self.seen.log_offsets, on=log, how="left")
        return rows.join(self.looks, on="snapshot_id").sort("at_ms").with_columns(place=_place())

    @cached_property
    def ends(self) -> pl.DataFrame:
        """Return the ends of the logs of its topics, all observations: place, topic, at_ms, log_end_offset."""
        topics = self.offsets.select("topic").unique()
        rows = self.seen.log_offsets.join(topics, on="topic", how="semi").join(self.looks, on="snapshot_id")
        return rows.sort("at_ms").with_columns(place=_place())


Told = tuple[str, int, str, str]
"""cause, at_ms, evidence, source."""


def _made_anew(case: _Case) -> Iterator[Told]:
    rows = case.ends.drop_nulls("log_end_offset").filter(pl.col("at_ms") >= case.begin_ms)
    for (place,), ends in rows.group_by("place", maintain_order=True):
        for (at, end), (later, smaller) in pairwise(ends.select("at_ms", "log_end_offset").iter_rows()):
            if smaller < end:
                text = f"{place} ended at {end:,} at {_time(at)} and at {smaller:,} at {_time(later)}."
                yield "topic made again", later, text, "log_offsets"
                return


def _members_left(case: _Case) -> Iterator[Told]:
    for (before, were), (at, are) in pairwise(case.members):
        gone = sorted(were - are)
        if len(are) < len(were):
            left = f"{len(were) - len(are):,} of {quantity(len(were), 'member')} left"
            text = f"{left} from {_time(before)} to {_time(at)}: {shortened(gone)}."
            yield "members left", at, text, "members"
            return


def _storm(case: _Case) -> Iterator[Told]:
    changes = [at for (_, was), (at, now) in pairwise(case.owners) if was and _moved(was, now)]
    if len(changes) >= STORM_CHANGES:
        text = f"Owners changed at {len(changes)} of {len(case.near)} observations from {_time(changes[0])} to "
        yield "rebalance storm", changes[0], f"{text}{_time(changes[-1])}.", "ownership"


def _logged(case: _Case) -> Iterator[Told]:
    if case.findings is None:
        return
    at = pl.col("at").dt.epoch("ms")
    rows = case.of_group(case.findings).filter(pl.col("is_utc") & pl.col("finding").is_in(list(_OF_LOGS)))
    rows = rows.filter(at.is_between(case.begin_ms, case.incident["from_ms"])).with_columns(at_ms=at).sort("at_ms")
    for row in rows.unique("finding", keep="first", maintain_order=True).to_dicts():
        yield _OF_LOGS[row["finding"]], row["at_ms"], f"{_time(row['at_ms'])}: {row['sentence']}", "logs"


def _partitions_added(case: _Case) -> Iterator[Told]:
    counts = case.ends.group_by("topic", "at_ms").agg(n=pl.len()).sort("at_ms")
    for (topic,), rows in counts.group_by("topic", maintain_order=True):
        for (_, n), (at, more) in pairwise(rows.select("at_ms", "n").iter_rows()):
            if more > n and at >= case.begin_ms:
                text = f"Topic {topic} had {quantity(n, 'partition')} until {_time(at)} and {more:,} from then on."
                yield "partitions added", at, text, "log_offsets"
                return


def _owner_moved(case: _Case) -> Iterator[Told]:
    for (before, was), (at, now) in pairwise(case.owners):
        moved = sorted(_moved(was, now))
        if moved:
            text = f"{shortened(moved)} changed owner between {_time(before)} and {_time(at)}: "
            yield "owner moved", at, f"{text}from {was[moved[0]]} to {now.get(moved[0], 'no member')}.", "ownership"
            return


def _rate_rose(case: _Case) -> Iterator[Told]:
    mine = case.ends.join(case.offsets.select("place").unique(), on="place", how="semi")
    end = pl.col("log_end_offset")
    totals = mine.group_by("at_ms").agg(end.sum(), n=end.count(), n_unknown=end.null_count()).sort("at_ms")
    # An end that was not read at one observation would be a fall, and a rise at the next; a partition that is new is
    # one.
    totals = totals.filter((pl.col("n_unknown") == 0) & (pl.col("n") == pl.col("n").cum_max()))
    before = _rate(totals.filter(pl.col("at_ms") <= case.begin_ms))
    after = _rate(totals.filter(pl.col("at_ms") >= case.begin_ms))
    if before is not None and after is not None and after > 0 and after >= ROSE * before:
        text = (
            f"The topics of the group received {after:,.1f} records/s from {_time(case.begin_ms)} on, and "
            f"{before:,.1f} before."
        )
        yield "topic's rate rose", case.begin_ms, text, "log_offsets"


def _commits_stopped(case: _Case) -> Iterator[Told]:
    if not all(ids for _, ids in case.members):
        return
    looks = [at for _, at in case.near if at >= case.incident["since_ms"]]
    rows = case.offsets.filter(pl.col("at_ms").is_in(looks))
    stood = rows.group_by("place").agg(
        n=pl.col("committed_offset").n_unique(), at=pl.col("committed_offset").last(), end=pl.last("log_end_offset")
    )
    stood = stood.filter((pl.col("n") == 1) & (pl.col("end") > pl.col("at"))).sort("place")
    if len(looks) > 1 and len(stood):
        begin, last = looks[0], looks[-1]
        places, fewest = shortened(stood["place"].to_list()), min(len(ids) for _, ids in case.members)
        text = f"The committed offset of {places} stayed at {stood['at'][0]:,} from {_time(begin)} to {_time(last)}, "
        text += (
            f"for {duration(last - begin)}, although each of {len(looks)} observations saw "
            f"{quantity(fewest, 'member')} or more."
        )
        yield "commits stopped, members alive", begin, text, "committed_offsets"


def _nobody(case: _Case) -> Iterator[Told]:
    if case.members and not any(ids for _, ids in case.members):
        text = (
            f"The group had no member at any of {quantity(len(case.near), 'observation')} from"
            f" {_time(case.near[0][1])} on."
        )
        yield "no members", case.near[0][1], text, "members"


RULES: tuple[Callable[[_Case], Iterator[Told]], ...] = (
    _made_anew, _members_left, _storm, _logged, _partitions_added, _owner_moved, _rate_rose, _commits_stopped, _nobody,
)  # fmt: skip


def _moved(was: dict[str, str], now: dict[str, str]) -> set[str]:
    """Places with another owner, or none."""
    return {place for place, member in was.items() if now.get(place) != member}


def _rate(totals: pl.DataFrame) -> float | None:
    """Records a second."""
    if len(totals) < 2:
        return None
    took_ms = totals["at_ms"][-1] - totals["at_ms"][0]
    return 1000 * (totals["log_end_offset"][-1] - totals["log_end_offset"][0]) / took_ms if took_ms else None


def _place() -> pl.Expr:
    return pl.format("{}-{}", "topic", "partition")


def _time(ms: int) -> str:
    return worded(datetime.fromtimestamp(ms / 1000, UTC), True)
