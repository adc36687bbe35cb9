"""Plans that delete whole groups from Kafka: idle and dead ones, and those that tools left behind.

Only groups without members, at most as many as is reported, with every offset kept in the plan, so that an undo commits
them again. Planning only reads. Groups in ZooKeeper are not deleted: a znode's deletion would have to exclude members
that register at that moment, which old consumers don't respect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.actor import ClusterPerformer
from kit.engine.model.plan import STOP, Plan
from kit.engine.plan_kind import PlanContext
from kit.engine.runs_folder import backup_file
from kit.errors import InputError, NotFound, ReadError
from kit.groups.read.commit_limits import fetch_commit_limits
from kit.groups.read.rights import READ, fetch_unseen_groups
from kit.groups.read.topics import fetch_sight
from kit.moves.offsets.fetch import GroupInStore, fetch_logs, fetch_stores, fetch_unsure
from kit.moves.offsets.files import save_offsets
from kit.moves.offsets.group_deleter import GroupDeleter
from kit.moves.offsets.group_steps import KIND, RECIPES, delete_steps, offsets_of
from kit.moves.offsets.moves import item_of
from kit.moves.offsets.open_transactions import fetch_untold
from kit.moves.offsets.rules import member_findings, restorable_finding, sight_finding, transactions_finding, why_busy
from kit.moves.offsets.subject import DELETE_GROUPS
from kit.moves.undo_rights import kafka_finding
from kit.tables.conditions import NEVER, Condition, Rule, raise_if_unsafe
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.naming import shortened
from kit.text.quantity import quantity

AT_MOST = 100
AT_MOST_RULE = Rule("at_most", "The plan deletes no more groups than were requested.", overridden_by=NEVER)
READABLE_GROUPS = Rule("readable_groups", "Every named group can be read.", overridden_by=NEVER)
RULES: tuple[Rule, ...] = (
    AT_MOST_RULE,
    READABLE_GROUPS,
)
_ONLY_IN_ZOOKEEPER = "is in ZooKeeper alone, where offramp deletes offsets but no groups: offramp plan offsets delete"


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest:
    """The groups to delete: ``groups`` by name, or the groups whose whole id ``pattern`` matches; ``at_most``: the
    largest number.

    Groups that a pattern matches and that have members, or can't be read, are left out and listed; named ones make the
    plan unsafe.

    Raises:
        InputError: neither or both are given, the pattern is no regular expression, or at most less than one.
    """

    groups: tuple[str, ...] = ()
    pattern: str | None = None
    at_most: int = AT_MOST
    on_failure: str = STOP

    def __post_init__(self) -> None:
        if bool(self.groups) == (self.pattern is not None):
            raise InputError("name the groups to delete, or give a pattern of their names, but not both")
        if self.at_most < 1:
            raise InputError(f"at most {self.at_most} groups: it must be 1 or more")
        try:
            re.compile(self.pattern or "")
        except re.error as error:
            raise InputError(f"the group pattern {self.pattern!r} is not a regular expression: {error}") from None

    def accepts(self, group_id: str) -> bool:
        if self.pattern is None:
            return group_id in self.groups
        return re.fullmatch(self.pattern, group_id, re.DOTALL) is not None

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Plan, and save beside it what it deletes. Raises as :func:`plan_delete_groups` and :func:`save_backup`."""
        plan = plan_delete_groups(context.cluster, self, made_by, context.clock.now(), overrides)
        save_backup(plan, backup_file(context.runs, plan))
        return plan


def plan_delete_groups(
    cluster: Cluster, request: DeleteGroupsRequest, made_by: str, now: datetime, overrides: Iterable[str] = ()
) -> Plan:
    """Examine the groups and plan; writes nothing.

    Raises:
        NotFound: a named group is not in Kafka, or the pattern matches none that may be deleted.
        UnsafePlan: a named group has members, in either store, or can't be read; there are more than ``at_most``; the
            login can't see every topic, or that is not known; an offset could not be committed again, for its size or
            for want of rights.
        ConnectError, ReadError: the cluster could not be read.
    """
    stores = fetch_stores(cluster, request.accepts)
    _refuse_unknown(request, stores.kafka, stores.zookeeper or {})
    left_out = {} if request.pattern is None else dict(_unfit(stores.kafka, stores.zookeeper or {}))
    chosen = {each: group for each, group in stores.kafka.items() if each and each not in left_out}
    if not chosen:
        named = shortened(f"{each!r} {why}" for each, why in left_out.items())
        raise NotFound(
            f"no group in Kafka that could be deleted matches{f'; left out: {named}' if named else ''}:"
            " see offramp groups --idle"
        )
    there = {each: stores.group(ZOOKEEPER, each) for each in chosen}
    findings = [*member_findings(chosen, KAFKA, there), _readable(chosen), _limit(len(chosen), request.at_most)]
    findings.append(sight_finding(sight := fetch_sight(cluster.broker_client, cluster.zookeeper)))
    offsets = {(each, *place): stored for each, group in chosen.items() for place, stored in group.offsets.items()}
    findings.append(restorable_finding(offsets, fetch_commit_limits(cluster.broker_client)))
    findings.append(transactions_finding(fetch_untold(cluster, chosen)))
    topics = {topic for group in chosen.values() for topic, _ in group.offsets}
    findings.append(kafka_finding(cluster.broker_client, {each: {READ} for each in chosen}, topics))
    overridden = raise_if_unsafe(findings, overrides)
    gone = topics - {topic for topic, _ in fetch_logs(cluster, topics)}
    if unsure := fetch_unsure(cluster, gone):
        raise ReadError(f"cluster {cluster.name!r}: {shortened(unsure.values())}")
    return Plan(
        kind=DELETE_GROUPS,
        cluster_id=cluster.confirmed_id(),
        targets=tuple(sorted(chosen)),
        made_by=made_by,
        made_at=now,
        observed={},
        steps=delete_steps({each: group.offsets for each, group in chosen.items()}, gone, stores.topic_ids),
        parameters={"at_most": request.at_most, "pattern": request.pattern, "left_out": left_out},
        risks=(*_risks(chosen, gone, left_out), *_unseen(cluster, request), *filter(None, [sight.unproven])),
        overridden=overridden,
        on_failure=request.on_failure,
    )


def save_backup(plan: Plan, path: Path) -> int:
    """Save what the plan deletes to a new file for ``plan offsets import``; the number of offsets.

    Raises:
        InputError: the file can't be written.
    """
    offsets = offsets_of(plan.steps)
    save_offsets(path, plan.cluster_id, KAFKA, offsets, plan.made_at)
    return len(offsets)


def performer_of(context: PlanContext) -> ClusterPerformer:
    return performer(context.cluster)


def performer(cluster: Cluster) -> ClusterPerformer:
    """Executes these plans. Nothing that they observed voids them: each group is examined before it is deleted."""
    return ClusterPerformer(cluster.confirmed_id, {KIND: GroupDeleter(cluster)}, RECIPES, lambda plan: {})


def _refuse_unknown(
    request: DeleteGroupsRequest, kafka: Mapping[str, GroupInStore], zookeeper: Mapping[str, GroupInStore]
) -> None:
    missing = sorted(set(request.groups) - set(kafka))
    if missing:
        only_old = [each for each in missing if each in zookeeper]
        raise NotFound(
            f"group {only_old[0]!r} {_ONLY_IN_ZOOKEEPER}"
            if only_old
            else f"group {missing[0]!r} is not in Kafka: see offramp groups"
        )


def _unfit(kafka: Mapping[str, GroupInStore], zookeeper: Mapping[str, GroupInStore]) -> Iterator[tuple[str, str]]:
    for group_id, group in sorted(kafka.items()):
        there = zookeeper.get(group_id)
        nameless = None if group_id else "has no name, so no plan can have it"
        reasons = [nameless, why_busy(group), None if there is None else why_busy(there), _unread(group)]
        if (why := next(filter(None, reasons), None)) is not None:
            yield group_id, why


def _unread(group: GroupInStore) -> str | None:
    errors = [f"{topic}-{partition}: {it.error}" for (topic, partition), it in group.offsets.items() if it.error]
    return f"has an offset that can't be read: {errors[0]}" if errors else None


def _readable(groups: Mapping[str, GroupInStore]) -> Condition:
    unread = {each: why for each, group in groups.items() if (why := group.error or _unread(group))}
    named = shortened(f"{each!r} {why}" for each, why in sorted(unread.items()))
    return READABLE_GROUPS.found(not unread, f"{len(unread):,} can't be kept, so they are not deleted: {named}")


def _limit(count: int, at_most: int) -> Condition:
    return AT_MOST_RULE.found(count <= at_most, f"{quantity(count, 'group')}; --at-most allows {at_most:,}")


def _unseen(cluster: Cluster, request: DeleteGroupsRequest) -> list[str]:
    """A pattern does not match a group that brokers hide from the login."""
    unseen = None if request.pattern is None else fetch_unseen_groups(cluster.broker_client)
    return [] if unseen is None else [unseen]


def _risks(groups: Mapping[str, GroupInStore], gone: set[str], left_out: Mapping[str, str]) -> Iterator[str]:
    lost = [(each, *place) for each, group in sorted(groups.items()) for place in sorted(group.offsets)]
    lost = [key for key in lost if key[1] in gone]
    if lost:
        yield (
            f"{quantity(len(lost), 'offset')} of topics that don't exist can't be committed again by an undo: "
            f"{shortened(map(item_of, lost))}"
        )
    empty = [each for each, group in sorted(groups.items()) if all(topic in gone for topic, _ in group.offsets)]
    if empty:
        yield (
            f"an undo can't bring back {quantity(len(empty), 'group')} without an offset of a topic that exists: "
            f"{shortened(map(repr, empty))}"
        )
    if left_out:
        named = shortened(f"{each!r} {why}" for each, why in left_out.items())
        yield f"{quantity(len(left_out), 'group is', 'groups are')} left out: {named}"
