"""From the selected offsets to a plan: clamp them to their logs, check the rules, build the steps. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kit.clients.zookeeper_rights import CREATE, DELETE as DELETE_BELOW
from kit.engine.model.plan import Plan
from kit.engine.model.step import Step
from kit.errors import InputError, NothingToDo
from kit.groups.read.rights import DELETE, READ
from kit.groups.read.topics import fetch_sight
from kit.moves.offsets.clamping import Clamped, Exclusion, Selected, clamp_all
from kit.moves.offsets.inputs import PlanInputs
from kit.moves.offsets.kafka import KafkaWriter
from kit.moves.offsets.moves import NOTHING, Move, item_of
from kit.moves.offsets.observations import group_observations, log_observations
from kit.moves.offsets.rules import (
    backwards_finding,
    exclusive_finding,
    kept_finding,
    log_finding,
    member_findings,
    other_store_of,
    sight_finding,
    source_finding,
    unreadable_finding,
    why_busy,
)
from kit.moves.offsets.steps import offset_steps
from kit.moves.offsets.zookeeper import missing_of, parents_of
from kit.moves.undo_rights import kafka_finding, zookeeper_finding
from kit.tables.conditions import Condition, raise_if_unsafe, warnings
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.naming import shortened
from kit.text.quantity import quantity


def build_plan(inputs: PlanInputs, selected: Iterable[Selected]) -> Plan:
    """The plan that writes the selected offsets.

    Raises:
        InputError: an exclusive plan that writes to ZooKeeper.
        UnsafePlan: a rule of ``kit.moves.offsets.rules`` forbids the plan and is not overridden.
        NothingToDo: no offset would change.
    """
    if inputs.options.is_exclusive and inputs.store != KAFKA:
        raise InputError(
            "--exclusive (in Python: is_exclusive) is only for offsets in Kafka. In ZooKeeper each write is "
            "conditional on the znode's version"
        )
    clamped = clamp_all(inputs, selected)
    targets = sorted({move.key[0] for move in clamped.changes})
    findings = _findings(inputs, clamped, targets)
    overridden = raise_if_unsafe(findings, inputs.options.overridden)
    _refuse_no_change(inputs.kind, clamped, _busy(inputs, clamped))
    source = None if inputs.source is None else (inputs.source.store, inputs.source.read_for(targets))
    observed = group_observations(inputs.stores, (inputs.store, targets), source)
    observed |= log_observations(inputs.logs, (move.key[1:] for move in clamped.changes))
    return Plan(
        kind=inputs.kind,
        cluster_id=inputs.cluster.confirmed_id(),
        targets=tuple(targets),
        made_by=inputs.options.made_by,
        made_at=inputs.options.now,
        observed=observed,
        steps=_steps(inputs, clamped.changes, targets),
        parameters={
            **inputs.parameters,
            "store": inputs.store,
            "left_out": _left_out(clamped),
            "unread_groups": inputs.unread,
        },
        risks=(*warnings(findings), *inputs.risks, *_risks(inputs, clamped)),
        overridden=overridden,
        on_failure=inputs.options.on_failure,
    )


def _findings(inputs: PlanInputs, clamped: Clamped, targets: Sequence[str]) -> list[Condition]:
    here = {group_id: inputs.stores.group(inputs.store, group_id) for group_id in targets}
    other = other_store_of(inputs.store)
    there = {group_id: inputs.stores.group(other, group_id) for group_id in targets}
    findings = [
        *member_findings(here, inputs.store, there),
        backwards_finding(clamped.changes),
        unreadable_finding(clamped.reasons(Exclusion.UNREADABLE)),
        log_finding(clamped.reasons(Exclusion.UNKNOWN_LOG)),
        _kept_elsewhere(inputs, clamped.changes),
        _undo_rights(inputs, clamped.changes),
        *inputs.findings,
    ]
    if inputs.options.is_exclusive:
        findings += [
            exclusive_finding(here),
            sight_finding(fetch_sight(inputs.cluster.broker_client, inputs.cluster.zookeeper)),
        ]
    if inputs.source is not None:
        store, read = inputs.source.store, inputs.source.read_for(targets)
        findings.append(source_finding({group_id: inputs.stores.group(store, group_id) for group_id in read}))
    return findings


def _kept_elsewhere(inputs: PlanInputs, changes: Sequence[Move]) -> Condition:
    """Offsets of a deleted topic may go without a copy in the other store."""
    other = other_store_of(inputs.store)
    deleted = {move.key: move.before or 0 for move in changes if move.after is None and move.key[1:] in inputs.logs}
    held = {key: inputs.stores.group(other, key[0]).offsets.get(key[1:], NOTHING).offset for key in deleted}
    lost = {key: held[key] for key, offset in deleted.items() if (held[key] or 0) < offset or held[key] is None}
    return kept_finding(deleted, lost, None if inputs.stores.zookeeper is None else other)


def _undo_rights(inputs: PlanInputs, changes: Sequence[Move]) -> Condition:
    """Return whether the login may write each offset back: delete what the run creates, create what the run deletes."""
    created = [move.key for move in changes if move.before is None and move.after is not None]
    if inputs.store == ZOOKEEPER:
        deleted = [move.key for move in changes if move.after is None]
        needed = {parents_of(key)[-1]: DELETE_BELOW for key in created}
        return zookeeper_finding(inputs.cluster, needed | {parents_of(key)[-1]: CREATE for key in deleted})
    client = inputs.cluster.broker_client
    groups = {move.key[0]: {READ} for move in changes}
    if KafkaWriter(client).can_delete:
        for group_id, *_ in created:
            groups[group_id].add(DELETE)
    return kafka_finding(client, groups, {move.key[1] for move in changes})


def _refuse_no_change(kind: str, clamped: Clamped, busy: Mapping[str, str]) -> None:
    """``busy``: why the groups of the unchanged offsets are in use, by group.

    Raises:
        NothingToDo: no offset would change.
    """
    if clamped.changes:
        return
    left_out = _left_out(clamped)
    moved = [(move.item, move.reason) for move in clamped.unchanged if move.reason]
    why = "every offset is as requested already" if clamped.unchanged else "no offset is left to be written"
    if moved:
        n_offsets = quantity(len(clamped.unchanged), "offset")
        why = f"no offset would change, but {len(moved):,} of {n_offsets} are not as requested: {_named(moved)}"
    if busy:
        why += f". Members can change the offsets of these groups at any time: {_named(busy.items())}"
    raise NothingToDo(f"{kind}: {why}{f'; left out: {_named(left_out.items())}' if left_out else ''}")


def _busy(inputs: PlanInputs, clamped: Clamped) -> dict[str, str]:
    groups = sorted({move.key[0] for move in clamped.unchanged})
    why = {group_id: why_busy(inputs.stores.group(inputs.store, group_id)) for group_id in groups}
    return {repr(group_id): each for group_id, each in why.items() if each is not None}


def _steps(inputs: PlanInputs, changes: Sequence[Move], targets: Iterable[str]) -> tuple[Step, ...]:
    missing: list[str] = []
    if inputs.store == ZOOKEEPER:
        created = [move.key for move in changes if move.target.before.version is None]
        missing = missing_of(inputs.cluster.zookeeper, (path for key in created for path in parents_of(key)))
    return offset_steps(
        inputs.store,
        changes,
        can_delete=inputs.store == ZOOKEEPER or KafkaWriter(inputs.cluster.broker_client).can_delete,
        missing_parents=frozenset(missing),
        new_groups={group_id for group_id in targets if inputs.stores.group(KAFKA, group_id).state == "Dead"},
        topic_ids=inputs.stores.topic_ids,
        is_exclusive=inputs.options.is_exclusive,
    )


def _risks(inputs: PlanInputs, clamped: Clamped) -> list[str]:
    changes, left_out, risks = clamped.changes, _left_out(clamped), []
    clamped_changes = [(move.item, move.reason) for move in changes if move.reason]
    if clamped_changes:
        risks.append(
            f"Not as requested: {len(clamped_changes):,} of {quantity(len(changes), 'offset')}: "
            f"{_named(clamped_changes)}"
        )
    if left_out:
        risks.append(f"{quantity(len(left_out), 'offset is', 'offsets are')} left out: {_named(left_out.items())}")
    if inputs.unread:
        unread = _named((repr(group_id), error) for group_id, error in inputs.unread.items())
        risks.append(f"{quantity(len(inputs.unread), 'group is', 'groups are')} left out, not readable: {unread}")
    if unseen := _committers_unseen(inputs, changes):
        risks.append(
            f"{quantity(len(unseen), 'group has', 'groups have')} offsets, and never had members: {shortened(unseen)}."
            " A consumer that assigns its partitions manually is no member, so offramp can't see whether it"
            " is running: stop it, and plan with --exclusive"
        )
    if inputs.store == KAFKA and any(it.target.before.metadata and it.target.metadata is None for it in changes):
        risks.append("some of the offsets lose the metadata that is committed beside them; an undo restores it")
    return risks


def _committers_unseen(inputs: PlanInputs, changes: Sequence[Move]) -> list[str]:
    """Groups that have offsets and no protocol type: whoever commits them never joins."""
    if inputs.store != KAFKA or inputs.options.is_exclusive:
        return []
    groups = {move.key[0]: inputs.stores.group(KAFKA, move.key[0]) for move in changes}
    return [repr(group_id) for group_id, group in sorted(groups.items()) if group.offsets and not group.protocol_type]


def _left_out(clamped: Clamped) -> dict[str, str]:
    return {item_of(key): reason for key, reason in clamped.reasons(Exclusion.LEFT_OUT).items()}


def _named(reasons: Iterable[tuple[str, str]]) -> str:
    return shortened(f"{name}: {reason}" for name, reason in reasons)
