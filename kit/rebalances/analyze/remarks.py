"""Events that no rebalance and no finding describes: so that no event is counted and described nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import folded, is_rebalance
from kit.rebalances.analyze.consumer_instances import (
    QUIET,
    ConsumerInstance,
    Event,
    are_utc,
    datetime_of,
    place_of,
    reached_state,
    stream_of,
    time_of,
)
from kit.rebalances.analyze.findings import coordinator_of, found_events
from kit.rebalances.analyze.generations import replayed
from kit.rebalances.analyze.group_logs import FoldedLogs, GroupLogs, collect
from kit.rebalances.analyze.remark_words import OF_BROKERS, OF_CONSUMERS
from kit.rebalances.analyze.repeats import AT_ONCE_US
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import LogRemark, Rebalance
from kit.text.naming import shortened
from kit.text.quantity import quantity
from kit.text.time_format import worded

_BESIDE_REBALANCES = (
    *("closing", "commit_failed", "coordinator_failed", "coordinator_lost", "left", "listener_failed", "member_fatal"),
    *("member_fenced", "member_reset", "not_assigned", "offset_reset", "offsets_failed", "out_of_range"),
    *("session_expired", "sought"),
    *("unsubscribed", "reconcile_failed", "restarting", "waiting_for_owner", "without_partitions"),
)
"""Events within a rebalance of a consumer that are no step of it and no reason."""
_STEPS = ("group_rebalancing", "group_stabilized", "group_assigned", "group_empty", "epoch_bumped", "target_computed")
"""A broker's lines that the sentence about their generation describes."""
_POSITIONS = ("offset_found", "offset_reset", "out_of_range")
_CALLED_BACK = ("assigned", "revoked", "lost")
"""Events of which a client informs its program."""
_MOST_NAMES = 10


def log_remarks(events: IntoDataFrame | FoldedLogs) -> pl.DataFrame:
    """``tables.LOG_REMARKS``: what the events of ``tables.LOG_EVENTS`` show beside rebalances and findings.

    One row per consumer and stretch of its log, one per run of a broker's lines of one kind about a group, and one per
    consumer for its heartbeats and commits.
    """
    logs = folded(events)
    ordered, instances = logs.events, logs.instances
    groups = collect(logs)
    remarks = [remark for instance in instances for remark in _of_instance(instance)]
    remarks += [remark for group in groups for remark in _of_group(group, replayed(group))]
    remarks += _of_brokers(None, (each for each in ordered if each["source"] == "broker" and not each["group_id"]))
    remarks += _of_quiet_events(logs.table, instances)
    remarks.sort(key=lambda each: (each.at is None, each.at and each.at.timestamp()))
    return frame(tables.LOG_REMARKS.columns_of(remarks))


def _of_instance(instance: ConsumerInstance) -> Iterator[LogRemark]:
    found = set(map(place_of, found_events(instance)))
    untold: list[Event] = []
    for attempt in instance.attempts:
        is_told = is_rebalance(attempt)
        if is_told and untold:
            yield _of_consumer(instance, untold)
            untold = []
        kinds = _BESIDE_REBALANCES if is_told else tuple(OF_CONSUMERS)
        untold += [each for each in attempt.events if each["kind"] in kinds and place_of(each) not in found]
    if untold:
        yield _of_consumer(instance, untold)


def _of_consumer(instance: ConsumerInstance, events: list[Event]) -> LogRemark:
    phrases = [_phrase(OF_CONSUMERS[kind], same) for kind, same in _by_kind(events).items()]
    members = tuple(dict.fromkeys(each["member_id"] for each in events if each["member_id"]))
    named = [member for member in members if member != instance.name]
    who = instance.name + (f" ({_names(named)})" if named else "")
    return _remark(instance.value_of("group_id"), instance.name, members, events, f"{who} {'; '.join(phrases)}.")


def _phrase(words: str, same: list[Event]) -> str:
    n_facts = len(same) - sum(_is_repeated(before, event) for before, event in pairwise(same))
    times = "" if n_facts == 1 else f", {n_facts:,} times"
    partitions = sorted({name for event in same for name in _placed(event)})
    where = f" ({_names(partitions)})" if partitions else ""
    states = [state for event in same if (state := reached_state(event))]
    reasons = dict.fromkeys(event["reason"].rstrip(".") for event in same if event["reason"])
    reason = _names(reasons, "; ") or _names(states) or _names(_coordinators(same))
    return f"{words}{where}{times}" + (f": {reason}" if reason else "")


def _placed(event: Event) -> list[str]:
    """Its partitions, with their offset where the event sets the position."""
    at = f"@{event['offset']}" if event["kind"] in _POSITIONS and event["offset"] is not None else ""
    return [f"{partition}{at}" for partition in event["partitions"] or ()]


def _coordinators(same: list[Event]) -> list[str]:
    found = [each for each in same if each["kind"] == "coordinator_found"]
    known = [each for each in found if each["coordinator"] or each["coordinator_id"] is not None]
    return list(dict.fromkeys(coordinator_of(each) for each in known))


def _is_repeated(before: Event, event: Event) -> bool:
    """Return whether a process prints one fact a second time: as a client does at two levels, with its reason, or as a
    program does after its client, without a time, a reason and partitions.
    """
    names = ("file", "origin", "member_id", "partitions", "offset", "reason")
    first, second = time_of(before), time_of(event)
    if second is None and event["reason"] is None and event["partitions"] is None and event["kind"] in _CALLED_BACK:
        return True
    is_at_once = first is not None and second is not None and abs(second - first) <= AT_ONCE_US
    return is_at_once and event["reason"] is not None and all(before[name] == event[name] for name in names)


def _by_kind(events: Iterable[Event]) -> dict[str, list[Event]]:
    kinds: dict[str, list[Event]] = {}
    for event in events:
        kinds.setdefault(event["kind"], []).append(event)
    return kinds


def _of_group(group: GroupLogs, generations: list[Rebalance]) -> list[LogRemark]:
    """The brokers' lines that belong to no generation, or of which the sentence about it reports nothing."""
    untold = list(group.apart)
    for row in generations:
        named = {*(row.joined or ()), *(row.left or ())}
        untold += [each for each in group.broker_events.get(row.generation, []) if not _is_told(each, named)]
    untold.sort(key=lambda each: time_of(each) or 0)
    return _of_brokers(group.group_id, untold)


def _is_told(event: Event, named: set[str]) -> bool:
    return event["kind"] in _STEPS or (event["kind"].startswith("member_") and event["member_id"] in named)


def _of_brokers(group: str | None, events: Iterable[Event]) -> list[LogRemark]:
    remarks = []
    for kind, run in groupby(events, key=lambda each: each["kind"]):
        same = list(run)
        members = tuple(dict.fromkeys(each["member_id"] for each in same if each["member_id"]))
        names = f" ({_names(members)})" if members else ""
        remarks.append(_remark(group, None, members, same, f"{_phrase(OF_BROKERS[kind] + names, same)}."))
    return remarks


def _of_quiet_events(events: IntoDataFrame, instances: list[ConsumerInstance]) -> Iterator[LogRemark]:
    """Heartbeats and commits are many: one sentence for those of one consumer."""
    columns = ("file", "origin", "source", "group_id", "group_instance_id", "client_id", "member_id", "kind")
    quiet = nw.from_native(events, eager_only=True).to_polars().filter(pl.col("kind").is_in(QUIET))
    # librdkafka numbers the consumers of a process: their texts differ in that.
    handle = pl.when(source="librdkafka").then(pl.col("text").str.extract(r"(#consumer-\d+)")).alias("handle")
    counted = quiet.group_by(*columns, handle, maintain_order=True).agg(
        pl.len(), pl.first("text", "observed_at", "local_at", "partitions", "reason")
    )
    names = {instance.stream: instance for instance in instances}
    by_consumer: dict[tuple[str | None, str], list[Event]] = {}
    for row in counted.iter_rows(named=True):
        instance = names.get(stream_of(row)) or ConsumerInstance(stream_of(row), 1)
        for name in ("group_instance_id", "client_id", "member_id", "origin", "group_id"):
            instance.first.setdefault(name, row[name]) if row[name] is not None else None
        by_consumer.setdefault((instance.value_of("group_id"), instance.name), []).append(row)
    for (group, name), rows in by_consumer.items():
        phrases = [f"{OF_CONSUMERS[kind]} {quantity(sum(row['len'] for row in same), 'time')}"
                   for kind, same in _by_kind(rows).items()]  # fmt: skip
        members = tuple(dict.fromkeys(row["member_id"] for row in rows if row["member_id"]))
        n_events = sum(row["len"] for row in rows)
        yield _remark(group, name, members, rows, f"{name} {', '.join(phrases)}.", n_events)


def _remark(
    group: str | None,
    consumer: str | None,
    members: tuple[str, ...],
    events: list[Event],
    text: str,
    n_events: int | None = None,
) -> LogRemark:
    first = next((each for each in events if time_of(each) is not None), events[0])
    at, is_utc = datetime_of(time_of(first)), are_utc([first])
    when = f"{worded(at, is_utc)} " if at else ""
    return LogRemark(
        group_id=group,
        consumer=consumer,
        members=members,
        kinds=tuple(_by_kind(events)),
        n_events=len(events) if n_events is None else n_events,
        is_utc=is_utc,
        at=at,
        sentence=f"{when}Group {group or '?'}: {text}",
    )


def _names(names: Iterable[str], between: str = ", ") -> str:
    return shortened(names, _MOST_NAMES, between)
