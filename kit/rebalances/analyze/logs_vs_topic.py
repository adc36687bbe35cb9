"""Two accounts of the same groups, by their logs and by the coordinators' topic: where they differ.

The topic is what the coordinator stored; logs are what members and brokers reported. They agree or one of them lacks
something: a log that wasn't given, a record that was compacted away, a member that acted on an old assignment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

import narwhals as nw
import polars as pl
from narwhals.typing import IntoDataFrame

from kit.rebalances.analyze.attempts import member_rebalances, rebalances
from kit.rebalances.analyze.coordinator_epochs_vs_topic import coordinator_differences
from kit.rebalances.analyze.findings import listed
from kit.rebalances.analyze.member_epochs_vs_topic import epoch_differences
from kit.rebalances.analyze.stored import topic_rebalances
from kit.tables import schema as tables
from kit.tables.polars import frame
from kit.tables.rebalances import LogFinding
from kit.text.quantity import quantity

Owned = Mapping[str, tuple[str, ...]]


class Generation(NamedTuple):
    group_id: str
    generation: int


def source_differences(events: IntoDataFrame, generations: IntoDataFrame, epochs: IntoDataFrame) -> pl.DataFrame:
    """``tables.LOG_EVENTS`` against ``tables.GROUP_GENERATIONS`` and ``GROUP_EPOCHS`` → ``tables.LOG_FINDINGS``.

    No row: they agree. Kinds: ``not_stored`` (a log has a generation that the topic lacks), ``not_logged`` (the
    other way round, of groups in the logs, between their first and last generation), ``unknown_member`` (a
    member that the coordinator did not store in that generation), ``other_leader``, ``other_assignor``,
    ``other_assignment``. Groups of the new protocol (KIP-848): see ``epoch_differences`` for what members log, and
    ``coordinator_differences`` for what brokers do.
    """
    by_logs = {_key(row): row for row in _newest_life(rebalances(events)).iter_rows(named=True)}
    by_topic = {_key(row): row for row in _newest_life(topic_rebalances(generations)).iter_rows(named=True)}
    owned = _owned(events)
    assigned = _assigned(generations)
    replaced = _replaced(events, generations, owned)
    stored_groups = {key.group_id for key in by_topic}
    of_epochs = nw.from_native(epochs, eager_only=True)
    with_epochs = set(of_epochs["group_id"].to_list())
    # A group that was converted has some numbers twice: where they are epochs, its members are compared as such.
    are_epochs = set(map(Generation._make, of_epochs.select("group_id", "epoch").rows()))
    differences: list[tuple[LogFinding, Generation]] = []
    for key in sorted({*by_logs, *by_topic}):
        is_elsewhere = key in are_epochs or (key not in by_topic and key.group_id in with_epochs)
        if key.group_id not in stored_groups or is_elsewhere:
            continue
        of_key = (owned.get(key, {}), assigned.get(key, {}), replaced.get(key, set()))
        differences += _differences(key, by_logs.get(key), by_topic.get(key), *of_key)
    spans = _spans(by_logs)
    remaining = [each for each in differences if each[0].finding != "not_logged" or _is_within(each[1], spans)]
    by_epochs = [*epoch_differences(events, epochs), *coordinator_differences(events, epochs)]
    findings = [*(finding for finding, _ in remaining), *by_epochs]
    return frame(tables.LOG_FINDINGS.columns_of(findings))


def _differences(
    key: Generation,
    logs: dict[str, Any] | None,
    topic: dict[str, Any] | None,
    owned: Owned,
    assigned: Owned,
    replaced: set[str],
) -> Iterator[tuple[LogFinding, Generation]]:
    def finding(kind: str, text: str, at: datetime | None, consumer: str | None = None, is_utc: bool = True) -> Any:
        sentence = f"Group {key.group_id}: generation {key.generation} {text}"
        return LogFinding(key.group_id, kind, consumer, is_utc, at, sentence), key

    if topic is None:
        assert logs is not None
        text = "is in the logs, but not in the topic: its record was compacted, or never stored."
        yield finding("not_stored", text, logs["started_at"], is_utc=logs["is_utc"])
        return
    if logs is None:
        text = f"is in the topic ({quantity(len(topic['members']), 'member')}), but in none of the given logs."
        yield finding("not_logged", text, topic["ended_at"])
        return
    at = topic["ended_at"]
    strangers = sorted(owned.keys() - set(topic["members"]) - replaced)
    for member in strangers:
        yield finding(
            "unknown_member",
            f"has no member {member} in the topic, although the member's log shows this membership.",
            at,
            member,
        )
    for name, kind in (("leader_id", "other_leader"), ("assignor", "other_assignor")):
        if None not in (logs[name], topic[name]) and logs[name] != topic[name]:
            yield finding(kind, f"has {topic[name]} in the topic and {logs[name]} in the logs.", at)
    for member, partitions in sorted(owned.items()):
        stored = assigned.get(member)
        if member not in strangers and stored is not None and stored != partitions:
            text = f"gives {member} {listed(stored)} in the topic, but {listed(partitions)} in the member's log."
            yield finding("other_assignment", text, at, member)


def _newest_life(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the last life of a group whose numbers began again: a number means one generation there."""
    return rows.filter(pl.col("life") == pl.col("life").max().over("group_id"))


def _key(row: dict[str, Any]) -> Generation:
    return Generation(row["group_id"], row["generation"])


def _owned(events: IntoDataFrame) -> dict[Generation, dict[str, tuple[str, ...]]]:
    """Return the partitions that each member had after each rebalance that it got through, by its own log."""
    assignments: dict[Generation, dict[str, tuple[str, ...]]] = {}
    for row in _newest_life(member_rebalances(events)).iter_rows(named=True):
        is_known = None not in (row["group_id"], row["generation"], row["member_id"], row["owned"])
        if is_known and row["outcome"] == "assigned" and row["source"] != "zookeeper":
            assignments.setdefault(_key(row), {})[row["member_id"]] = tuple(sorted(row["owned"]))
    return assignments


def _assigned(generations: IntoDataFrame) -> dict[Generation, dict[str, tuple[str, ...]]]:
    """Return the partitions that the leader gave each member; a generation stored twice: as it was stored last."""
    assignments: dict[Generation, dict[str, tuple[str, ...]]] = {}
    frame = nw.from_native(generations, eager_only=True).sort("partition", "offset")
    for row in frame.iter_rows(named=True):
        if row["member_id"] is not None and row["assigned"] is not None:
            assignments.setdefault(_key(row), {})[row["member_id"]] = tuple(sorted(row["assigned"]))
    return assignments


def _replaced(
    events: IntoDataFrame, generations: IntoDataFrame, owned: Mapping[Generation, Owned]
) -> dict[Generation, set[str]]:
    """Member ids that static members had in a generation before a restart: the coordinator stores it again without."""
    logged, stored = (nw.from_native(each, eager_only=True) for each in (events, generations))
    named = logged.filter(nw.col("source") != "broker", ~nw.col("group_instance_id").is_null())
    instances = dict(named.select("member_id", "group_instance_id").rows())
    static: dict[Generation, set[str]] = {}
    for *key, instance in stored.select(*Generation._fields, "group_instance_id").rows():
        static.setdefault(Generation(*key), set()).add(instance)
    return {
        key: {member for member in members if instances.get(member) in static.get(key, set()) - {None}}
        for key, members in owned.items()
    }


def _spans(by_logs: Mapping[Generation, Any]) -> dict[str, tuple[int, int]]:
    """Each group's first and last generation in the logs."""
    spans: dict[str, tuple[int, int]] = {}
    for group, number in by_logs:
        first, last = spans.get(group, (number, number))
        spans[group] = (min(first, number), max(last, number))
    return spans


def _is_within(key: Generation, spans: Mapping[str, tuple[int, int]]) -> bool:
    first, last = spans.get(key.group_id, (1, 0))
    return first <= key.generation <= last
