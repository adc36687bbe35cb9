"""KIP-848 groups by their coordinators' logs and by the coordinators' topic: where they differ.

A coordinator logs each epoch of a group, and before it who joined. The topic has each that was stored, but those before
the first one that compaction left: of them nothing is reported, nor of a group that was deleted meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import ordered_events
from kit.rebalances.analyze.consumer_instances import Event, are_utc, datetime_of, time_of
from kit.rebalances.analyze.epochs import by_group
from kit.tables.rebalances import LogFinding


class _Epoch(NamedTuple):
    """The log lines of a coordinator about one epoch."""

    event: Event
    joined: list[str]


def coordinator_differences(events: IntoDataFrame, epochs: IntoDataFrame) -> list[LogFinding]:
    """``tables.LOG_EVENTS`` of brokers against ``tables.GROUP_EPOCHS``, of groups that are in both.

    ``not_stored``: a log has an epoch that the topic lacks. ``not_logged``: the other way round, between the first
    and the last epoch in the logs. ``unknown_member``: one that joined by the log is in no record of the topic.
    """
    logged = _logged(events)
    findings: list[LogFinding] = []
    for rows in by_group(epochs):
        group_id = rows[0]["group_id"]
        if group_id in logged and all(row["error"] is None for row in rows):
            findings += _of_group(logged[group_id], rows)
    return findings


def _logged(events: IntoDataFrame) -> dict[str, dict[int, _Epoch]]:
    """Group → epoch → what coordinators logged of it."""
    epochs: dict[str, dict[int, _Epoch]] = {}
    coming: dict[str, list[str]] = {}
    for event in ordered_events(events):
        group_id, member_id, epoch = event["group_id"], event["member_id"], event["generation"]
        if event["source"] == "broker" and event["kind"] == "member_joining" and member_id is not None:
            coming.setdefault(group_id, []).append(member_id)
        elif event["kind"] == "epoch_bumped" and epoch is not None:
            epochs.setdefault(group_id, {})[epoch] = _Epoch(event, coming.pop(group_id, []))
    return epochs


def _of_group(logged: dict[int, _Epoch], rows: list[dict[str, Any]]) -> Iterator[LogFinding]:
    stored = {row["epoch"]: row for row in rows if row["kind"] == "group_epoch"}
    if None in stored or not stored:  # deleted: a group of that name begins with its first epoch again
        return
    members = {row["member_id"] for row in rows}
    for epoch, each in sorted(logged.items()):
        if epoch > min(stored) and epoch not in stored:
            text = (
                "is in the coordinator's log, but not in the topic: it was never stored, or the topic was "
                "read too early."
            )
            yield _finding("not_stored", each.event, epoch, text)
        elif epoch > min(stored):
            for member_id in sorted(set(each.joined) - members):
                text = (
                    f"was joined by {member_id}, as the coordinator's log shows, but no record in the "
                    f"topic is of that member."
                )
                yield _finding("unknown_member", each.event, epoch, text, member_id)
    for epoch, row in sorted(stored.items()):
        if min(logged) < epoch < max(logged) and epoch not in logged:
            text = (
                f"Group {row['group_id']}: epoch {epoch} is in the topic, but in none of the given coordinators' logs."
            )
            yield LogFinding(row["group_id"], "not_logged", None, True, row["written_at"], text)


def _finding(kind: str, event: Event, epoch: int, text: str, member_id: str | None = None) -> LogFinding:
    sentence = f"Group {event['group_id']}: epoch {epoch} {text}"
    return LogFinding(event["group_id"], kind, member_id, are_utc([event]), datetime_of(time_of(event)), sentence)
