"""Event table of logs → each consumer's way through its rebalances, and the generations of each group.

Frames in, polars frames out. A fold finds the consumer of each line (``consumer_instances``), so a Spark event table is
collected before; it is small compared with its logs. Nothing here opens a file.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze import joining_with
from kit.rebalances.analyze.clocks import compared
from kit.rebalances.analyze.consumer_instances import (
    QUIET,
    ConsumerInstance,
    Event,
    Phase,
    RebalanceAttempt,
    are_utc,
    consumer_instances,
    datetime_of,
    leaves,
    phase_of,
    positions,
    reasons,
    time_of,
)
from kit.rebalances.analyze.generations import generations
from kit.rebalances.analyze.group_logs import FoldedLogs, only_listed
from kit.rebalances.analyze.lives import number_lives
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import MemberRebalance

_OF_REBALANCES = (
    *("joining", "join_requested", "joined", "join_failed", "sync_failed", "assigned", "reconciling"),
    *("group_assignment", "rebalance_begun", "rebalance_ended", "rebalance_failed"),
)
"""A consumer that prints one of them is in a rebalance, though its log may begin later than that."""
_BEFORE = ("leaving", "left", "closing", "unsubscribed")
"""A consumer that left on its own may come back hours later: that time is not of the rebalance that follows."""


_IN_FRONT = re.compile(r"^.*?\[(?:Consumer|ShareConsumer|Worker) clientId=[^\]]*\] ")


def ordered_events(events: IntoDataFrame) -> list[Event]:
    """The events in the order of their times, without quiet ones; a line without a time stays behind the line
    before. So does, in a file where others say their zone, one that doesn't: the two clocks can't be compared. If
    other lines of the same writer say their zone, its time is left out."""
    frame = nw.from_native(events, eager_only=True)
    is_of_broker = nw.col("source") == "broker"
    n_zoned = [
        nw.col("observed_at").count().over(*writer) for writer in (("file",), ("file", "origin", "is_of_broker"))
    ]
    frame = frame.with_columns(is_of_broker=is_of_broker).with_columns(
        is_ordered=~nw.col("observed_at").is_null() | (n_zoned[0] == 0),
        local_at=nw.when(~nw.col("observed_at").is_null() | (n_zoned[1] == 0)).then(nw.col("local_at")),
    )
    tells_epoch = nw.col("text").str.contains("ConsumerGroupHeartbeat", literal=True) & (nw.col("generation") > 0)
    frame = frame.filter(~nw.col("kind").is_in(QUIET) | tells_epoch).sort("file", "line", "record")
    rows: list[tuple[int, int, Event]] = []
    last: dict[str, int] = {}
    for number, row in enumerate(frame.iter_rows(named=True)):
        at = time_of(row) if row["is_ordered"] else None
        last[row["file"]] = at if at is not None else last.get(row["file"], 0)
        rows.append((last[row["file"]], number, row))
    return [row for _, _, row in sorted(rows, key=lambda each: each[:2])]


def folded(events: IntoDataFrame | FoldedLogs) -> FoldedLogs:
    """The events in order, the consumers, and each consumer's rebalances; what is folded stays as it is."""
    if isinstance(events, FoldedLogs):
        return events
    ordered = ordered_events(events)
    instances = consumer_instances(ordered)
    clocks = compared(ordered)
    lives = number_lives(ordered, instances, clocks)
    rows = [row for each in instances for row in _of_instance(each)]
    return FoldedLogs(events, ordered, instances, rows, lives, clocks)


def member_rebalances(events: IntoDataFrame | FoldedLogs) -> pl.DataFrame:
    """``tables.MEMBER_REBALANCES``: one row per consumer and rebalance it went through, in order."""
    rows = sorted(
        folded(events).rows, key=lambda row: (row.started_at or datetime.min.replace(tzinfo=UTC), row.file, row.line)
    )
    return frame(tables.MEMBER_REBALANCES.columns_of(rows))


def rebalances(events: IntoDataFrame | FoldedLogs) -> pl.DataFrame:
    """``tables.REBALANCES``: one row per group, life and generation, of all consumers and brokers in the logs."""
    return frame(tables.REBALANCES.columns_of(generations(folded(events))))


def _of_instance(instance: ConsumerInstance) -> list[MemberRebalance]:
    rows: list[MemberRebalance] = []
    owned: tuple[str, ...] | None = None
    for attempt in instance.attempts:
        if rows and _is_new_member(rows[-1], attempt):
            owned = None
        if rows and rows[-1].left_at is None and (left_at := _left_at(attempt)):
            rows[-1] = replace(rows[-1], left_at=left_at)
        if not is_rebalance(attempt):
            continue
        row = _row(instance, attempt, owned)
        owned = None if attempt.was_left else row.owned
        rows.append(row)
    return rows


def _is_new_member(before: MemberRebalance, attempt: RebalanceAttempt) -> bool:
    """Return whether the member starts without the partitions of the rebalance before: it left, or another process
    began.
    """
    member = attempt.value_of("member_id")
    is_other = None not in (member, before.member_id) and member != before.member_id
    return is_other or attempt.life != before.life or before.left_at is not None


def _left_at(attempt: RebalanceAttempt) -> datetime | None:
    """Return when the member left the group, before it asked to join again."""
    for event in attempt.events:
        if leaves(event):
            return datetime_of(time_of(event))
        if phase_of(event) in (Phase.STARTED, Phase.ENDED):
            return None
    return None


def is_rebalance(attempt: RebalanceAttempt) -> bool:
    """Return whether the consumer is in a rebalance there, and has a row for it."""
    return bool(attempt.all_of(*_OF_REBALANCES))


def _row(
    instance: ConsumerInstance, attempt: RebalanceAttempt, owned_before: tuple[str, ...] | None
) -> MemberRebalance:
    joined, synced = attempt.first("joined"), attempt.first("synced")
    done = attempt.done_at
    started = min((at for kind, at in attempt.at.items() if kind not in _BEFORE), default=attempt.first(*_BEFORE))
    joining = attempt.first("joining", "join_requested")
    revoked, added, owned = _partitions(attempt, owned_before)
    member = attempt.value_of("member_id") or instance.member_id
    member = member or only_listed(attempt, instance.value_of("client_id"), owned)
    leader = attempt.value_of("leader_id")
    placed = attempt.all_of("offset_found", "offset_reset", "offset_missing")
    last_position = max((at for event in placed if (at := time_of(event)) is not None), default=None)
    is_leader = _is_leader(attempt, member, leader)
    return MemberRebalance(
        group_id=attempt.value_of("group_id") or instance.value_of("group_id"),
        life=attempt.life,
        generation=attempt.generation,
        is_epoch=instance.has_epochs,
        consumer=instance.name,
        member_id=member,
        client_id=instance.value_of("client_id"),
        source=attempt.events[0]["source"],
        is_leader=is_leader,
        leader_id=leader or (member if is_leader else None),
        assignor=attempt.value_of("assignor"),
        coordinator=attempt.value_of("coordinator") or instance.value_of("coordinator"),
        coordinator_id=attempt.value_of("coordinator_id") or instance.value_of("coordinator_id"),
        reason="; ".join(reasons(attempt)) or None,
        is_utc=are_utc(attempt.events),
        started_at=datetime_of(started),
        joined_at=datetime_of(joined),
        ended_at=datetime_of(done),
        left_at=None,
        discover_ms=_ms(attempt.first("coordinator_query"), attempt.first("coordinator_found")),
        join_ms=_ms(joining, joined),
        sync_ms=_ms(joined, synced),
        assign_ms=_ms(synced if synced is not None else joined, done),
        offsets_ms=_ms(done, last_position),
        unassigned_ms=_ms(attempt.first("revoked", "lost", "released"), done),
        revoked=revoked,
        added=added,
        owned=owned,
        fetched=_listed(attempt.all_of("offsets_fetching")),
        positions=tuple(positions(attempt)),
        without_offset=tuple(p for event in attempt.all_of("offset_missing") for p in event["partitions"] or ()),
        session_timeout_ms=joining_with.session_timeout_ms(attempt),
        protocols=joining_with.protocols(attempt),
        brokers=joining_with.brokers(attempt),
        outcome="assigned" if attempt.is_done else "failed" if attempt.has_failed else "open",
        failure=_failure(attempt.failures),
        file=attempt.events[0]["file"],
        line=attempt.events[0]["line"],
        last_line=attempt.events[-1]["line"],
    )


def _failure(failures: list[Event]) -> str | None:
    """Return why it failed last: a client may report that once more, without the reason."""
    reasons = [event["reason"] for event in failures if event["reason"]]
    return reasons[-1] if reasons else _said(failures[-1]) if failures else None


def _said(event: Event) -> str:
    """Its text, from where the client's own begins."""
    return _IN_FRONT.sub("", event["text"])


def _is_leader(attempt: RebalanceAttempt, member: str | None, leader: str | None) -> bool | None:
    if attempt.is_of_old_consumer:
        return None  # A group over ZooKeeper has no leader: each consumer computes its own part.
    if attempt.all_of("leader_assigning", "assignment_computed"):
        return True
    if leader is not None and member is not None:
        return leader == member
    elected = [event["text"] for event in attempt.all_of("joined") if "elected=" in event["text"]]  # brod's words
    if elected:
        return "elected=true" in elected[-1]
    follows = any("follower" in event["text"] for event in attempt.all_of("sync_sent"))
    return False if follows else None


def _partitions(
    attempt: RebalanceAttempt, before: tuple[str, ...] | None
) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None, tuple[str, ...] | None]:
    """Revoked, added, owned afterwards. A list is the whole, or what was added where the client goes by parts."""
    given_up = attempt.all_of("revoked", "lost")
    revoked = _listed(given_up)
    if revoked is None:
        revoked = _revoked_by_target(attempt.all_of("reconciling"))
    if attempt.is_of_old_consumer and attempt.failures and not attempt.is_done:  # It gives back what it had claimed.
        return revoked, None, () if attempt.all_of("released") else None
    wholes = [
        e["owned_after"] for e in attempt.all_of("assignment_diff", "reconciling") if e["owned_after"] is not None
    ]
    wholes += [
        event["partitions"]
        for event in attempt.all_of("group_assignment", "rebalance_ended")
        if event["partitions"] is not None
    ]
    added = _listed([*attempt.all_of("assigned"), *attempt.all_of("owned")])
    if wholes:
        owned = tuple(sorted(wholes[-1]))
        if revoked is None and given_up and before is not None:  # librdkafka prints how many, not which
            is_all = not any("incremental" in event["text"] for event in given_up)
            revoked = before if is_all else tuple(sorted(set(before) - set(owned)))
        return revoked, added, owned
    if added is None:
        return revoked, None, None
    adds_to_them = any("Adding newly assigned" in event["text"] for event in attempt.all_of("assigned"))
    kept = set(before or ()) - set(revoked or ()) if adds_to_them else set()
    return revoked, added, tuple(sorted(kept | set(added)))


def _revoked_by_target(events: list[Event]) -> tuple[str, ...] | None:
    """Return what a member of the new protocol owned and its target lacks; it may print no other line of it."""
    known = [each for each in events if each["owned_before"] is not None and each["owned_after"] is not None]
    lost = {partition for each in known for partition in set(each["owned_before"]) - set(each["owned_after"])}
    return tuple(sorted(lost)) or None


def _listed(events: list[Event]) -> tuple[str, ...] | None:
    lists = [event["partitions"] for event in events if event["partitions"] is not None]
    return tuple(sorted({partition for each in lists for partition in each})) if lists else None


def _ms(since: int | None, until: int | None) -> int | None:
    return None if since is None or until is None else round((until - since) / 1000)
