"""Plans that move committed offsets: copied between stores and groups, brought back from a file, reset, deleted.

Each plan writes to one store. Planning only reads; :mod:`~kit.engine.execution.run` carries the plan out
with :class:`kit.moves.offsets.performer.OffsetsPerformer`::

    selection = select(groups=["orders-app"])
    plan = plan_copy(cluster, ZOOKEEPER, KAFKA, selection, PlanOptions(made_by="ann", now=datetime.now(UTC)))
    offset_changes(plan)        # group_id, topic, partition, store, before, wanted, after, reason

A wanted offset is clamped to its log: at least the log's start, at most its end (the high watermark). An offset that
would go backwards makes the plan unsafe, and the error names the first ones: ``allow_backwards`` overrides the rule,
``skip_backwards`` leaves those partitions out and lists them. The default is to refuse, because a copy that silently
omits partitions appears complete.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from kit.clients.brokers import fetch_offsets_at
from kit.clients.cluster import Cluster
from kit.engine.model.performer import Outcome
from kit.engine.model.plan import Plan
from kit.errors import InputError, NotFound, ReadError
from kit.groups.read.commit_limits import fetch_commit_limits
from kit.groups.read.rights import fetch_unseen_groups
from kit.groups.read.topics import fetch_sight
from kit.moves.offsets.build import build_plan
from kit.moves.offsets.changes import offset_changes
from kit.moves.offsets.clamping import Excluded, Exclusion, Selected, log_bounds
from kit.moves.offsets.fetch import (
    Stores,
    fetch_logs,
    fetch_stores,
    fetch_unsure,
    partitions_by_topic,
    refuse_unless_connected,
)
from kit.moves.offsets.files import OFFRAMP, OffsetsFile, load_offsets, save_offsets
from kit.moves.offsets.inputs import CopySource, PlanInputs, PlanOptions
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.kafka_tool import load_tool_file
from kit.moves.offsets.moves import OffsetTarget, Stored, item_of
from kit.moves.offsets.refusals import (
    picked_offsets,
    refuse_if_onto_itself,
    refuse_merging,
    refuse_unread,
    refuse_unreadable,
)
from kit.moves.offsets.resets import Reset, bounds, parse_reset, wanted_by
from kit.moves.offsets.rules import restorable_finding
from kit.moves.offsets.selection import Key, Place, Selection, select
from kit.moves.offsets.steps import NO_DELETION, before_of, store_of
from kit.moves.offsets.topics import Present
from kit.tables.groups import KAFKA, LogOffset
from kit.text.naming import shortened
from kit.text.quantity import quantity

__all__ = [
    "COPY", "DELETE", "IMPORT", "RESET", "PlanOptions", "Reset", "Selection", "export_offsets", "moves_offsets",
    "offset_changes", "parse_reset", "plan_copy", "plan_delete", "plan_import", "plan_reset", "save_backup", "select",
]  # fmt: skip

COPY, RESET, IMPORT, DELETE = "copy", "reset", "import", "delete"
_KINDS = tuple(f"{what} offsets " for what in (COPY, RESET, IMPORT, DELETE))


def moves_offsets(kind: str) -> bool:
    """Return whether this module makes plans of this kind."""
    return kind.startswith(_KINDS)


def plan_copy(
    cluster: Cluster,
    source: str,
    target: str,
    selection: Selection,
    options: PlanOptions,
    to_groups: Mapping[str, str] | None = None,
) -> Plan:
    """Copy offsets from the store ``source`` to the store ``target`` (``kafka``, ``zookeeper``; may be the same).

    ``selection`` selects the offsets to read. ``to_groups`` maps a group that is read to the group to write; other
    groups keep their names. Between two groups in Kafka, metadata and leader epochs are copied too. The written group
    need not exist yet. An offset whose partition no broker knows is left out and listed.

    Raises:
        InputError: a store does not exist, two groups would be copied into one, or a group onto itself.
        NotFound: a named group, topic or partition has no offset in ``source``.
        NothingToDo: every offset has the wanted value already.
        UnsafePlan: a rule of ``kit.moves.offsets.rules`` forbids the plan.
        ConnectError, ReadError: the cluster could not be read.
    """
    refuse_unless_connected(cluster, source, target)
    renamed = dict(to_groups or {})
    refuse_if_onto_itself(source, target, renamed, selection)
    stores = fetch_stores(cluster, lambda group_id: selection.accepts(group_id) or group_id in renamed.values())
    picked = picked_offsets(stores, source, selection)
    groups = {each: renamed.get(each, each) for each in sorted({key[0] for key in picked})}
    refuse_merging(source, target, groups)
    logs = fetch_logs(cluster, {topic for _, topic, _ in picked})
    inputs = PlanInputs(
        cluster,
        f"{COPY} offsets from {source} to {target}",
        target,
        stores,
        logs,
        options,
        parameters={"source": source, "groups": tuple(groups.items())},
        unread=refuse_unread(selection, stores.groups(source), source),
        source=CopySource(source, groups),
        risks=gaps(cluster, stores, source, selection),
    )
    to_write = {(groups[key[0]], *key[1:]): stored for key, stored in sorted(picked.items())}
    return build_plan(inputs, _selected(inputs, to_write, carries_metadata=source == target == KAFKA))


def plan_reset(cluster: Cluster, store: str, selection: Selection, reset: Reset, options: PlanOptions) -> Plan:
    """Set offsets in one store: to the earliest, the latest, an offset, a shift, a time, or a time before now.

    If the selection names groups and topics, all their partitions are set, with or without an offset; else only
    partitions that have one. A partition without an offset can't be shifted: it is left out and listed.

    Raises:
        NotFound: a named group (unless ``options.new_groups``), topic or partition does not exist.
        InputError, NothingToDo, UnsafePlan, ConnectError, ReadError: as for ``plan_copy``.
    """
    refuse_unless_connected(cluster, store)
    stores = fetch_stores(cluster, selection.accepts)
    unread = refuse_unread(selection, stores.groups(store), store)
    offsets = {each: stores.group(store, each).offsets for each in _groups_to_write(selection, stores, store, options)}
    logs = fetch_logs(cluster, _topics_to_reset(selection, offsets))
    partitions = partitions_by_topic(logs)
    keys = [(each, *place) for each, held in offsets.items() for place in selection.places(each, held, partitions)]
    if not keys:
        raise NotFound(
            f"{store} has no offset of the selected groups that this login sees: to set offsets where there are none, "
            "name their topics; to see offsets of a topic in Kafka, a login needs DESCRIBE on the topic"
        )
    kind, parameters = f"{RESET} offsets in {store} to {reset.sentence}", {"reset": reset.sentence}
    risks = gaps(cluster, stores, store, selection)
    inputs = PlanInputs(cluster, kind, store, stores, logs, options, parameters, unread, risks=risks)
    at_time = _offsets_at(cluster, reset, options, logs, keys)
    return build_plan(inputs, [_reset(inputs, key, reset, at_time.get(key[1:])) for key in keys])


def plan_import(
    cluster: Cluster,
    path: Path,
    store: str,
    options: PlanOptions,
    selection: Selection | None = None,
    *,
    other_cluster: bool = False,
    edited: bool = False,
    tool_groups: Sequence[str] | None = None,
) -> Plan:
    """Write the offsets of a file (:func:`export_offsets`) to a store; with a selection only the selected ones.

    ``tool_groups``: the file is one of ``kafka-consumer-groups --export`` instead, for these groups where it names
    none. It names no cluster.

    An offset of a topic that was deleted and created again since the export is left out and listed. If the file has no
    topic ids, or the brokers have none, so is an offset outside its log. The ids of another cluster report nothing, and
    its leader epochs are not written.

    Raises:
        InputError, WrongCluster: see ``load_offsets``; or the selection takes nothing of the file.
        NotFound: the file names a group (unless ``options.new_groups``), topic or partition that does not exist.
        NothingToDo, UnsafePlan, ConnectError, ReadError: as for ``plan_copy``.
    """
    refuse_unless_connected(cluster, store)
    if tool_groups is not None:
        file = OffsetsFile(cluster.cluster_id, KAFKA, "unknown", load_tool_file(path, tool_groups))
    else:
        file = load_offsets(path, cluster.cluster_id, other_cluster=other_cluster, edited=edited)
    offsets = {key: it for key, it in file.offsets.items() if selection is None or selection.takes(*key)}
    if not offsets:
        raise InputError(f"{path} has {quantity(len(file.offsets), 'offset')}, of which the selection takes none")
    groups = {key[0] for key in offsets}
    is_foreign = file.cluster_id != cluster.cluster_id
    stores = fetch_stores(cluster, groups.__contains__)
    unknown = sorted(groups - stores.known())
    if unknown and not options.new_groups:
        raise NotFound(
            f"{path} has offsets of {shortened(map(repr, unknown))}, unknown in both stores: check the names, or"
            " use --new-groups (in Python: new_groups)"
        )
    logs = fetch_logs(cluster, {topic for _, topic, _ in offsets})
    strangers = sorted(item_of(key) for key in offsets if key[1:] not in logs)
    if strangers:
        raise NotFound(
            f"{path} has offsets of partitions that this cluster doesn't have: {shortened(strangers)}. Select"
            " other partitions, or create these first"
        )
    parameters = {"file": path.name, "file_cluster_id": file.cluster_id, "exported_at": file.exported_at}
    risks = _foreign_epochs(offsets, file.cluster_id) if is_foreign and store == KAFKA else ()
    if is_foreign:
        offsets = {key: replace(stored, leader_epoch=None, topic_id=None) for key, stored in offsets.items()}
    inputs = PlanInputs(cluster, f"{IMPORT} offsets to {store}", store, stores, logs, options, parameters, risks=risks)
    misplaced = [] if is_foreign else _misplaced(Present(stores.topics, logs), offsets)
    left_out = {each.key for each in misplaced}
    to_write = {key: stored for key, stored in sorted(offsets.items()) if key not in left_out}
    return build_plan(inputs, [*misplaced, *_selected(inputs, to_write, carries_metadata=store == KAFKA)])


def plan_delete(cluster: Cluster, store: str, selection: Selection, options: PlanOptions) -> Plan:
    """Delete offsets from one store. The plan keeps them with their metadata and leader epochs; its undo writes them.

    The rule ``kept_elsewhere`` blocks the plan if the other store has no offset that is as high: deleting would lose
    the group's position. Offsets of a deleted topic may be deleted without that.

    Raises:
        NotFound: a named group, topic or partition has no offset in ``store``.
        InputError: these brokers can't delete single offsets.
        UnsafePlan, ConnectError, ReadError: as for ``plan_copy``; whether a topic exists is unknown.
    """
    refuse_unless_connected(cluster, store)
    if store == KAFKA and not KafkaWriter(cluster.broker_client).can_delete:
        raise InputError(f"cluster {cluster.name!r}: {NO_DELETION}")
    stores = fetch_stores(cluster, selection.accepts)
    picked = picked_offsets(stores, store, selection)
    logs = fetch_logs(cluster, {topic for _, topic, _ in picked})
    unsure = fetch_unsure(cluster, {topic for _, topic, _ in picked} - {each for each, _ in logs})
    if unsure:
        raise ReadError(f"cluster {cluster.name!r}: {shortened(unsure.values())}")
    unread = refuse_unread(selection, stores.groups(store), store)
    kind, risks = f"{DELETE} offsets from {store}", gaps(cluster, stores, store, selection)
    findings = [restorable_finding(picked, fetch_commit_limits(cluster.broker_client))] if store == KAFKA else []
    inputs = PlanInputs(
        cluster, kind, store, stores, logs, options, unread=unread, risks=risks, findings=tuple(findings)
    )
    return build_plan(inputs, [OffsetTarget(key, inputs.committed(key), None) for key in sorted(picked)])


def save_backup(plan: Plan, path: Path) -> int:
    """Save the offsets that a plan overwrites or deletes to a new file for ``plan_import``; the number of offsets.

    Raises:
        InputError: the file exists, or can't be written.
    """
    if path.exists():
        raise InputError(f"{path} exists and is not overwritten: name another file for the backup")
    before = {key: stored for step in plan.steps for key, stored in before_of(step).items()}
    before = {key: stored for key, stored in before.items() if stored.offset is not None}
    save_offsets(path, plan.cluster_id, store_of(plan.steps[0]), before, plan.made_at)
    return len(before)


class Exported(NamedTuple):
    """The number of offsets in a file, and sentences about offsets that may be missing in it."""

    n_offsets: int
    gaps: tuple[str, ...]


def export_offsets(
    cluster: Cluster, path: Path, store: str, selection: Selection, now: datetime, form: str = OFFRAMP
) -> Exported:
    """Save the selected offsets to a new file (``.jsonl`` or ``.csv``). Makes no plan. ``form``: see ``save_offsets``.

    Raises:
        NotFound: a named group has no offsets in this store, or nothing is selected.
        ReadError: an offset can't be read; a backup without that offset would appear complete.
        InputError, ConnectError: the file can't be written; the cluster doesn't answer.
    """
    refuse_unless_connected(cluster, store)
    stores = fetch_stores(cluster, selection.accepts, only_stable=False)
    offsets = picked_offsets(stores, store, selection)
    refuse_unreadable(offsets, stores.groups(store))
    save_offsets(path, cluster.confirmed_id(), store, offsets, now, form)
    return Exported(len(offsets), gaps(cluster, stores, store, selection))


def gaps(cluster: Cluster, stores: Stores, store: str, selection: Selection) -> tuple[str, ...]:
    """Sentences about offsets that may be missing from what was read of the store; empty: all were read.

    In Kafka: the login may not see every topic, or every group where none is named. In ZooKeeper: the name of a znode
    is no partition.

    Raises:
        ConnectError, ReadError: the brokers did not answer, or refused.
    """
    if store == KAFKA:
        sight = fetch_sight(cluster.broker_client, cluster.zookeeper)
        unseen = None if selection.groups is not None else fetch_unseen_groups(cluster.broker_client)
        return tuple(filter(None, (None if sight.is_whole else sight.sentence, sight.unproven, unseen)))
    strays = [stray for _, group in sorted(stores.groups(store).items()) for stray in group.strays]
    found = f"{quantity(len(strays), 'znode')} among the offsets could not be read: {shortened(strays)}"
    return (found,) if strays else ()


def _misplaced(present: Present, offsets: Mapping[Key, Stored]) -> list[Excluded]:
    """The offsets of a file whose topic is another one now."""
    why = {key: present.misplaced(key[1:], stored) for key, stored in offsets.items()}
    kinds = {Outcome.REFUSED: Exclusion.LEFT_OUT, Outcome.NOT_ATTEMPTED: Exclusion.UNKNOWN_LOG}
    return [Excluded(key, it.reason, kinds[it.outcome]) for key, it in why.items() if it is not None]


def _foreign_epochs(offsets: Mapping[Key, Stored], cluster_id: str) -> tuple[str, ...]:
    count = sum(stored.leader_epoch is not None for stored in offsets.values())
    of_them = f"the {quantity(count, 'leader epoch')} of cluster {cluster_id}"
    return (f"{of_them} will not be written: an epoch of another cluster can stop Java's consumers",) if count else ()


def _topics_to_reset(selection: Selection, offsets: Mapping[str, Collection[Place]]) -> set[str]:
    """The topics that are named for these groups, and the topics that the groups have offsets of."""
    named = {topic for group_id in offsets for topic, _ in selection.named_places(group_id)}
    return named | {topic for places in offsets.values() for topic, _ in places}


def _selected(inputs: PlanInputs, to_write: Mapping[Key, Stored], *, carries_metadata: bool) -> list[Selected]:
    """The offsets to write as they are stored elsewhere, with metadata and leader epoch if these go along.

    A leader epoch above the partition's present one stays behind, with a note.
    """
    present, selected = Present(inputs.stores.topics), list[Selected]()
    for key, stored in to_write.items():
        if stored.error is not None or stored.offset is None:
            selected.append(Excluded(key, stored.error or "there is no offset", Exclusion.UNREADABLE))
        else:
            note = present.dropped_epoch(key[1:], stored) if carries_metadata else None
            epoch = present.fetchable(key[1:], stored).leader_epoch
            beside = (stored.metadata, epoch) if carries_metadata else (None, None)
            selected.append(OffsetTarget(key, inputs.committed(key), stored.offset, note, *beside))
    return selected


def _reset(inputs: PlanInputs, key: Key, reset: Reset, at_time: int | None) -> Selected:
    within, before = log_bounds(inputs, key), inputs.committed(key)
    if isinstance(within, Excluded):
        return within
    wanted, note = wanted_by(reset, before, *within, at_time)
    if wanted is None and before.error is None:
        return Excluded(key, "there is no offset that could be shifted")
    return OffsetTarget(key, before, wanted or 0, note)


def _offsets_at(
    cluster: Cluster, reset: Reset, options: PlanOptions, logs: Mapping[Place, LogOffset], keys: Iterable[Key]
) -> dict[Place, int | None]:
    """For a reset to a time, the offset of that time by partition; for other resets nothing."""
    at = reset.time_at(options.now)
    places = {key[1:] for key in keys if bounds(logs.get(key[1:])) is not None}
    return (
        {} if at is None or not places else fetch_offsets_at(cluster.broker_client, places, int(at.timestamp() * 1000))
    )


def _groups_to_write(selection: Selection, stores: Stores, store: str, options: PlanOptions) -> list[str]:
    """The named groups; without names, all groups that have offsets in the store."""
    if selection.groups is None:
        return sorted(group_id for group_id, group in stores.groups(store).items() if group.offsets)
    if not options.new_groups:
        selection.refuse_unknown_groups(
            stores.known(), "ZooKeeper or Kafka (for a new group: --new-groups, in Python new_groups)"
        )
    return sorted(selection.groups)
