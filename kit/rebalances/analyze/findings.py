"""Find what needs attention in the logs of a group, each as a sentence with the time, the member and the meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import folded, member_rebalances, rebalances
from kit.rebalances.analyze.clocks import Clocks
from kit.rebalances.analyze.consumer_instances import ConsumerInstance, Event, are_utc, datetime_of, time_of
from kit.rebalances.analyze.group_logs import FoldedLogs
from kit.rebalances.analyze.repeats import n_facts
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import LogFinding
from kit.text.quantity import quantity
from kit.text.time_format import worded

STORM_COUNT = 5
STORM_MS = 600_000
"""This many rebalances of one group within this time are a storm."""
LONG_MS = 60_000
"""A join or a sync that takes longer is shown."""
UNREACHED_MS = 10_000
"""A shorter search for the coordinator is usual: a starting client has no connection yet."""
_FOR_POLL_TIMEOUT = re.compile(r"due to consumer poll timeout has expired")
KEEPS_POSITIONS = "kafka-python"
"""This client keeps its positions through a rebalance; all other clients fetch the committed offsets again."""


def log_findings(events: IntoDataFrame | FoldedLogs) -> pl.DataFrame:
    """``tables.LOG_FINDINGS``. Kinds: ``storm``, ``rejoining``, ``rejoining_alone``, ``unreached_coordinator``,
    ``long_join``, ``long_sync``, ``fenced``, ``evicted``, ``crashed``, ``commit_failed``, ``offset_reset``,
    ``owned_twice``, ``not_assigned``, ``not_fetched``, ``unfinished``, ``skipped_generation``, ``several_consumers``,
    ``clocks_apart``. Each reports when and who, as far as the log does."""
    logs = folded(events)
    members, groups, instances = member_rebalances(logs), rebalances(logs), logs.instances
    findings = [
        *_storms(groups),
        *_rejoining(members),
        *_rejoining_alone(groups),
        *_slow(members),
        *_owned_twice(members.filter(~pl.col("group_id").is_in(_share_groups(logs.events))), instances),
        *_skipped(members),
        *_not_fetched(members),
    ]
    findings += [*_unfinished(members), *_several(instances), *_from_events(instances), *_clocks_apart(logs.clocks)]
    findings.sort(key=lambda each: (each.group_id or "", each.at is None, each.at or datetime.min.replace(tzinfo=UTC)))
    return frame(tables.LOG_FINDINGS.columns_of(findings))


def _storms(groups: pl.DataFrame) -> list[LogFinding]:
    findings = []
    for (group,), rows in groups.filter(pl.col("started_at").is_not_null()).group_by("group_id", maintain_order=True):
        starts, is_utc = rows.sort("started_at")["started_at"].to_list(), rows["is_utc"].all()
        worst = max(
            (sum(0 <= (other - start).total_seconds() * 1000 <= STORM_MS for other in starts), start)
            for start in starts
        )
        if worst[0] >= STORM_COUNT:
            text = f"{worst[0]} rebalances within {STORM_MS // 60_000} minutes from then on: a storm."
            findings.append(_finding(group, "storm", None, worst[1], is_utc, text))
    return findings


def _rejoining(members: pl.DataFrame) -> list[LogFinding]:
    """A member that stays keeps its id through every generation, however many there are. Ids of one generation are of
    several members that print the same client id."""
    joins = members.filter(pl.col("joined_at").is_not_null() & pl.col("member_id").is_not_null())
    at_once = pl.col("member_id").n_unique().over("group_id", "consumer", "life", "generation")
    counted = (
        joins.with_columns(at_once=pl.when(pl.col("generation").is_null()).then(1).otherwise(at_once))
        .group_by("group_id", "consumer", maintain_order=True)
        .agg(
            pl.col("member_id").n_unique() + 1 - pl.col("at_once").max(),
            pl.col("joined_at").min(),
            pl.col("is_utc").all(),
        )
    )
    text = "{} had {} member ids: it lost its membership or restarted repeatedly."
    return [
        _finding(group, "rejoining", who, at, is_utc, text.format(who, n))
        for group, who, n, at, is_utc in counted.iter_rows()
        if n >= STORM_COUNT
    ]


def _rejoining_alone(groups: pl.DataFrame) -> list[LogFinding]:
    """A group of one member, in generation after generation: no other member could make it rejoin."""
    alone = groups.filter((pl.col("n_members") == 1) & pl.col("started_at").is_not_null())
    who = pl.coalesce("leader_id", pl.col("members").list.first())
    follows = pl.col("generation").diff().over("group_id") == 1
    is_same = follows & (who.eq_missing(who.shift().over("group_id")))
    runs = alone.with_columns(who=who, run=(~is_same.fill_null(False)).cum_sum())
    counted = runs.group_by("group_id", "run", maintain_order=True).agg(
        pl.col("who").first(), pl.len(), pl.col("started_at").min(), pl.col("is_utc").all(), pl.col("ended_at").max()
    )
    findings = []
    for group, _, member, n, at, is_utc, end in counted.iter_rows():
        if n >= STORM_COUNT:
            every = seconds(round((end - at).total_seconds() * 1000 / (n - 1)))
            text = (
                f"{member or 'its member'} is the only member and rejoined {quantity(n - 1, 'time')}, once in {every}"
            )
            text += (
                ", so no other member causes this. A client that loses its assignment on each poll rejoins by itself."
            )
            findings.append(_finding(group, "rejoining_alone", member, at, is_utc, text))
    return findings


def _slow(members: pl.DataFrame) -> list[LogFinding]:
    findings = []
    for row in members.iter_rows(named=True):
        for name, finding in (("join_ms", "long_join"), ("sync_ms", "long_sync")):
            if row[name] is not None and row[name] >= LONG_MS:
                waits = (
                    ("the other members, or the rebalance timeout")
                    if finding == "long_join"
                    else "the leader's assignment"
                )
                text = f"{row['consumer']} waited {seconds(row[name])} for {waits} (generation {row['generation']})."
                findings.append(_of(row, finding, row["started_at"], text))
    return findings


def _share_groups(events: list[Event]) -> list[str]:
    """Groups whose members share partitions by intent (KIP-932)."""
    shares = (each for each in events if "ShareConsumer" in each["text"] or "ShareMembership" in (each["logger"] or ""))
    return sorted({each["group_id"] for each in shares if each["group_id"]})


def _owned_twice(members: pl.DataFrame, instances: list[ConsumerInstance]) -> list[LogFinding]:
    """A static member that is restarted has another member id in the same generation; no other member has two."""
    static = [instance.name for instance in instances if instance.value_of("group_instance_id")]
    is_other = pl.col("member_id").n_unique().over("group_id", "life", "generation", "consumer") > 1
    is_named = is_other & ~pl.col("consumer").is_in(static) & pl.col("member_id").is_not_null()
    by_member = pl.col("consumer") + " (" + pl.col("member_id") + ")"
    members = members.with_columns(consumer=pl.when(is_named).then(by_member).otherwise("consumer"))
    owned = members.filter(pl.col("generation").is_not_null() & (pl.col("source") != "zookeeper")).explode("owned")
    owned = owned.filter(pl.col("owned").is_not_null())
    by_partition = owned.group_by("group_id", "life", "generation", "is_epoch", "owned", maintain_order=True)
    pairs = by_partition.agg(pl.col("consumer").unique().sort(), pl.col("ended_at").max(), pl.col("is_utc").all())
    text = "{} belongs to {} in {} {}."
    return [
        _finding(
            group, "owned_twice", None, at, is_utc, text.format(partition, " and ".join(who), term(is_epoch), number)
        )
        for group, _, number, is_epoch, partition, who, at, is_utc in pairs.iter_rows()
        if len(who) > 1
    ]


def _skipped(members: pl.DataFrame) -> list[LogFinding]:
    """In the new protocol no member joins a generation that changes nothing for it."""
    findings = []
    joined = members.filter(pl.col("generation").is_not_null() & pl.col("joined_at").is_not_null())
    for (_, who), rows in joined.group_by("group_id", "consumer", maintain_order=True):
        for before, row in pairwise(rows.iter_rows(named=True)):
            old, new = before["generation"], row["generation"]
            if new > old + 1 and row["source"] != "zookeeper":
                text = (
                    f"{who} went from generation {old} to {new}: the generations between are not in its "
                    f"log, or it was no member."
                )
                findings.append(_of(row, "skipped_generation", row["started_at"], text))
    return findings


def _not_fetched(members: pl.DataFrame) -> list[LogFinding]:
    """A log that prints no offsets at all proves nothing; nor does one that ends right after the assignment."""
    if members.is_empty():
        return []
    last: Any = members.select(pl.max_horizontal(pl.col("started_at").max(), pl.col("ended_at").max())).item()
    findings = []
    for row in members.filter(pl.col("fetched").is_not_null() & pl.col("ended_at").is_not_null()).rows(named=True):
        located = {position.rpartition("@")[0] for position in row["positions"]} | set(row["without_offset"])
        kept = set(row["revoked"] or ()) if row["source"] == KEEPS_POSITIONS else set()
        missing = sorted(set(row["added"] or ()) - set(row["fetched"]) - located - kept)
        if missing and (last - row["ended_at"]).total_seconds() * 1000 >= UNREACHED_MS:
            when = f"{term(row['is_epoch'])} {row['generation']}"
            text = f"{row['consumer']} was assigned {listed(missing)} in {when} and requested no "
            text += "committed offsets of them: by its log, no consumer reads these partitions."
            findings.append(_of(row, "not_fetched", row["ended_at"], text))
    return findings


def _unfinished(members: pl.DataFrame) -> list[LogFinding]:
    last = members.group_by("group_id", "consumer", maintain_order=True).last()
    return [
        _of(row, "unfinished", row["started_at"], _unfinished_text(row))
        for row in last.iter_rows(named=True)
        if row["outcome"] != "assigned"
    ]


def _unfinished_text(row: dict[str, Any]) -> str:
    if row["outcome"] == "failed":
        return f"{row['consumer']} did not complete its last rebalance: {row['failure']}"
    return f"{row['consumer']} has no assignment where the log ends (line {row['last_line']} of {row['file']})."


def _several(instances: list[ConsumerInstance]) -> list[LogFinding]:
    streams: dict[tuple[Any, ...], list[ConsumerInstance]] = {}
    for instance in instances:
        streams.setdefault(instance.stream, []).append(instance)
    texts = [
        (same[0].value_of("group_id"), f"{len(same)} consumers that do not name themselves write into {stream[0]}"
         f" ({', '.join(instance.member_id or '?' for instance in same)}): offramp assigned each line to a consumer "
         "by its content.")
        for stream, same in streams.items()
        if len(same) > 1
    ]  # fmt: skip
    return [_finding(group, "several_consumers", None, None, True, text) for group, text in texts]


def _clocks_apart(clocks: Clocks) -> list[LogFinding]:
    findings = []
    for each in clocks.offsets:
        name, hours = place_name(each.clock), each.ahead_us / 3_600_000_000
        side = "ahead of" if hours > 0 else "behind"
        text = (
            f"{name} prints times {abs(hours):g} h {side} {place_name(each.other)}, by generation "
            f"{each.generation}: their time zones differ. Their times were not compared."
        )
        findings.append(_finding(each.group_id, "clocks_apart", None, None, True, text))
    return findings


def place_name(clock: tuple[str, str | None]) -> str:
    """The origin, else the file."""
    file, origin = clock
    return origin or file.rsplit("/", 1)[-1]


_KINDS = {
    "coordinator_failed": ("unreached_coordinator", "did not reach its coordinator"),
    "coordinator_lost": ("unreached_coordinator", "lost its coordinator"),
    "member_fenced": ("fenced", "was fenced: another member has its instance id, or its epoch was old"),
    "member_fatal": ("fenced", "ended with a fatal error"),
    "crashed": ("crashed", "crashed"),
    "poll_timeout": ("evicted", "left because it had not polled for max.poll.interval.ms"),
    "session_timeout": ("evicted", "had no answer to its heartbeats for the session timeout"),
    "lost": ("evicted", "lost its partitions without giving them up: others may have read them meanwhile"),
    "commit_failed": ("commit_failed", "could not commit: records will be read again"),
    "offset_reset": ("offset_reset", "has no valid committed offset: auto.offset.reset decides where it starts"),
    "not_assigned": ("not_assigned", "subscribed to topics that are assigned to no member"),
}


def _from_events(instances: list[ConsumerInstance]) -> list[LogFinding]:
    return [
        _repeated(instance, *_KINDS[kind], same)
        for instance in instances
        for kind, same in _events_by_kind(instance).items()
    ]


def found_events(instance: ConsumerInstance) -> list[Event]:
    """The consumer's events that a finding describes."""
    return [event for same in _events_by_kind(instance).values() for event in same]


def _events_by_kind(instance: ConsumerInstance) -> dict[str, list[Event]]:
    closed_at = min(_times(instance, "closing")[:1], default=None)
    found: dict[str, list[Event]] = {}
    sought: set[str] = set()
    for event, found_at in zip(instance.events, _found_after(instance.events)):
        if event["kind"] == "sought":
            sought.update(event["partitions"] or ())
        if event["kind"] == "offset_reset" and _is_asked_for(event, sought):
            continue
        kind = "poll_timeout" if _is_evicted(event) else event["kind"]
        if kind in _KINDS and _matters(event, found_at, closed_at):
            found.setdefault(kind, []).append(event)
    return found


def _is_asked_for(event: Event, sought: set[str]) -> bool:
    """Return whether the application chose the position: such partitions are taken from ``sought``."""
    partitions = set(event["partitions"] or ())
    is_asked_for = bool(partitions) and partitions <= sought
    sought -= partitions
    return is_asked_for


def _is_evicted(event: Event) -> bool:
    """Java 2.4 to 2.8 reports it in no other line than that of leaving; later ones print both at once."""
    return event["kind"] == "leaving" and _FOR_POLL_TIMEOUT.search(event["text"]) is not None


def _times(instance: ConsumerInstance, kind: str) -> list[int]:
    return [at for event in instance.events if event["kind"] == kind and (at := time_of(event)) is not None]


def _found_after(events: list[Event]) -> list[int | None]:
    """For each event, when a coordinator was found after it; lines of the same second are in the log's order."""
    found_at: int | None = None
    after: list[int | None] = []
    for event in reversed(events):
        after.append(found_at)
        if event["kind"] == "coordinator_found" and (at := time_of(event)) is not None:
            found_at = at
    return after[::-1]


def _matters(event: Event, found_at: int | None, closed_at: int | None) -> bool:
    """A coordinator that is found again soon, or that is let go when the consumer closes, is no finding."""
    at = time_of(event)
    if event["kind"] not in ("coordinator_failed", "coordinator_lost") or at is None:
        return True
    if closed_at is not None and at >= closed_at:
        return False
    return found_at is None or found_at - at >= UNREACHED_MS * 1000


def _repeated(instance: ConsumerInstance, finding: str, text: str, same: list[Event]) -> LogFinding:
    count = n_facts(same)
    times = "" if count == 1 else f", {count} times"
    first = next((event for event in same if time_of(event) is not None), same[0])
    reason = next((event["reason"] for event in same if event["reason"]), None)
    partitions = sorted({partition for event in same for partition in event["partitions"] or ()})
    where = f" ({listed(partitions)})" if partitions else ""
    members = {event["member_id"] for event in same} - {None, instance.name}
    member = f", member {members.pop()}" if len(members) == 1 else ""
    full = f"{instance.name} {text}{where}{times}{member}" + (f": {reason.rstrip('.')}." if reason else ".")
    return _finding(
        instance.value_of("group_id"), finding, instance.name, datetime_of(time_of(first)), are_utc([first]), full
    )


def term(is_epoch: bool) -> str:
    """Return the word of the group's protocol for the number of an assignment."""
    return "epoch" if is_epoch else "generation"


def seconds(ms: int) -> str:
    return f"{ms / 1000:g} s"


def coordinator_of(row: Mapping[str, Any]) -> str:
    """The coordinator of an event or of a rebalance, by its address and its broker's number."""
    if row["coordinator_id"] is None:
        return row["coordinator"] or "?"
    return (
        f"{row['coordinator']} (broker {row['coordinator_id']})"
        if row["coordinator"]
        else f"broker {row['coordinator_id']}"
    )


def listed(partitions: Any) -> str:
    return ", ".join(partitions) if partitions else "no partition"


def _of(row: dict[str, Any], finding: str, at: datetime | None, text: str) -> LogFinding:
    return _finding(row["group_id"], finding, row["consumer"], at, row["is_utc"], text)


def _finding(
    group: str | None, finding: str, consumer: str | None, at: datetime | None, is_utc: bool, text: str
) -> LogFinding:
    when = f"{worded(at, is_utc)} " if at else ""
    return LogFinding(group, finding, consumer, is_utc, at, f"{when}Group {group or '?'}: {text}")
