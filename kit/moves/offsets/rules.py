"""Rules that a plan for offsets must meet. An override names the rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kit.groups.read.commit_limits import CommitLimits
from kit.groups.read.topics import TopicSight
from kit.moves.offsets.fetch import GroupInStore
from kit.moves.offsets.moves import Move, Stored, item_of
from kit.moves.offsets.selection import Key
from kit.tables.conditions import NEVER, WARN, Condition, Rule
from kit.tables.groups import CLASSIC, KAFKA
from kit.text.naming import shortened
from kit.text.quantity import quantity

NO_MEMBERS = Rule(
    "no_members",
    "The group has no members in the store that is written.",
    overridden_by=NEVER,
)
IDLE_ELSEWHERE = Rule(
    "idle_elsewhere",
    "The group has no members in the other store: their commits could overwrite the plan's offsets, or be overwritten.",
)
NEVER_BACKWARDS = Rule("never_backwards", "No offset goes backwards: records would be read again.")
KEPT_ELSEWHERE = Rule(
    "kept_elsewhere",
    "The other store has each deleted offset, as high or higher: otherwise the group's position is lost.",
)
READABLE_OFFSETS = Rule("readable_offsets", "Every selected offset can be read.", overridden_by=NEVER)
KNOWN_LOGS = Rule("known_logs", "The start and the end of every log are known.", overridden_by=NEVER)
VISIBLE_TOPICS = Rule(
    "visible_topics",
    "The login can see every topic. The offsets of a hidden topic are not read, so they could be deleted unseen.",
    overridden_by=NEVER,
)
OPEN_TRANSACTIONS = Rule(
    "open_transactions",
    "It is known whether an open transaction has sent offsets. A deletion would not wait for an open transaction.",
)
RESTORABLE = Rule(
    "restorable",
    "The coordinator would accept each deleted offset again. Limits of the brokers may be lower than at the commit.",
)
EXCLUSIVE = Rule(
    "exclusive",
    "Each group is a classic consumer group. With --exclusive, offramp joins it; that would convert another type.",
    overridden_by=NEVER,
)
SOURCE_IDLE = Rule("source_idle", "The group has no members in the store that is read.", severity=WARN)
RULES: tuple[Rule, ...] = (
    NO_MEMBERS,
    IDLE_ELSEWHERE,
    NEVER_BACKWARDS,
    KEPT_ELSEWHERE,
    READABLE_OFFSETS,
    KNOWN_LOGS,
    VISIBLE_TOPICS,
    OPEN_TRANSACTIONS,
    RESTORABLE,
    EXCLUSIVE,
    SOURCE_IDLE,
)
_IDLE_STATES = (None, "Empty", "Dead")


def member_findings(
    targets: Mapping[str, GroupInStore], store: str, elsewhere: Mapping[str, GroupInStore]
) -> list[Condition]:
    """The rules about members. A coordinator refuses a commit from outside while the group has members."""
    return [
        _idle(NO_MEMBERS, targets, f"in {store}; stop them, then plan again"),
        _idle(
            IDLE_ELSEWHERE,
            elsewhere,
            "in the other store; stop them, or override the rule if they don't use this store",
        ),
    ]


def source_finding(sources: Mapping[str, GroupInStore]) -> Condition:
    return _idle(SOURCE_IDLE, sources, "at work: their commits after this plan are not copied")


def why_busy(group: GroupInStore) -> str | None:
    """Return why a group's offsets must not be written in this store; None if they may."""
    if group.error is not None:
        return f"can't be read: {group.error}"
    if group.members:
        return f"has {quantity(len(group.members), 'member')}, first {group.members[0]}"
    return None if group.state in _IDLE_STATES else f"is {group.state}"


def exclusive_finding(targets: Mapping[str, GroupInStore]) -> Condition:
    """A group that its coordinator does not know, or that has offsets alone, becomes a classic one by the join."""
    others = {
        group_id: f"is of type {group.group_type}, protocol type {group.protocol_type!r}"
        for group_id, group in sorted(targets.items())
        if group.group_type not in (None, CLASSIC) or group.protocol_type not in (None, "consumer")
    }
    count = f"{len(others):,} of {quantity(len(targets), 'group')}"
    return EXCLUSIVE.found(not others, f"{count}: {_named(others.items())}; plan them without --exclusive")


def unreadable_finding(unreadable: Mapping[Key, str]) -> Condition:
    named = shortened(f"{item_of(key)}: {error}" for key, error in sorted(unreadable.items()))
    return READABLE_OFFSETS.found(not unreadable, f"{len(unreadable)} can't be read and are not overwritten: {named}")


def log_finding(unknown: Mapping[Key, str]) -> Condition:
    named = shortened(f"{item_of(key)}: {error}" for key, error in sorted(unknown.items()))
    return KNOWN_LOGS.found(not unknown, f"{len(unknown)} logs could not be read: {named}")


def sight_finding(sight: TopicSight) -> Condition:
    """Judge a deletion or an exclusive write. While the member is in the group, the coordinator keeps old offsets
    of the member's topics alone.
    """
    return VISIBLE_TOPICS.found(sight.is_whole, sight.sentence)


def transactions_finding(untold: str | None) -> Condition:
    """``untold``: why it can't be known."""
    return OPEN_TRANSACTIONS.found(
        True if untold is None else None, f"Not known: {untold}" if untold else "It is known for each group."
    )


def restorable_finding(offsets: Mapping[Key, Stored], limits: CommitLimits) -> Condition:
    """Without metadata no limit that brokers accept is too low, so nothing need be known then."""
    lost = {
        key: problem
        for key, stored in sorted(offsets.items(), key=lambda item: item[0])
        if (problem := limits.problem(key[0], key[1], stored.metadata)) is not None
    }
    if limits.unknown is not None and any(stored.metadata for stored in offsets.values()):
        return RESTORABLE.found(None, f"An undo may fail: {limits.unknown}.")
    named = shortened(f"{item_of(key)}: {problem}" for key, problem in lost.items())
    return RESTORABLE.found(
        not lost, f"{len(lost):,} of {quantity(len(offsets), 'offset')} could not be committed again: {named}"
    )


def backwards_finding(moves: Sequence[Move]) -> Condition:
    backwards = [move for move in moves if move.is_backwards]
    named = shortened(f"{move.item} {move.before} → {move.after}" for move in backwards)
    return NEVER_BACKWARDS.found(not backwards, f"{quantity(len(backwards), 'offset')} would go backwards: {named}")


def kept_finding(deleted: Mapping[Key, int], lost: Mapping[Key, int | None], other: str | None) -> Condition:
    """``lost`` are the deleted offsets that the store ``other`` has lower or not at all, with its offset.

    ``other`` None: the cluster has no ZooKeeper, so there is no other store.
    """
    if other is None:
        count = quantity(len(deleted), "offset is", "offsets are")
        return KEPT_ELSEWHERE.found(
            not lost,
            f"{count} in Kafka alone, because this cluster has no ZooKeeper: the position of"
            f" {quantity(len({key[0] for key in deleted}), 'group')} is lost; an undo or the backup restores it",
        )
    named = shortened(
        f"{item_of(key)} {deleted[key]}, in {other} {'none' if held is None else held}" for key, held in lost.items()
    )
    return KEPT_ELSEWHERE.found(
        not lost, f"{len(lost):,} of {quantity(len(deleted), 'offset')} lower or missing in {other}: {named}"
    )


def other_store_of(store: str) -> str:
    return "zookeeper" if store == KAFKA else KAFKA


def _idle(rule: Rule, groups: Mapping[str, GroupInStore], where: str) -> Condition:
    busy = {group_id: why for group_id, group in sorted(groups.items()) if (why := why_busy(group)) is not None}
    if not busy:
        return rule.found(
            True, f"The rule holds for {'the one group' if len(groups) == 1 else f'all {len(groups)} groups'}."
        )
    is_known = not any(groups[group_id].error for group_id in busy)
    named = _named(busy.items())
    count = f"{len(busy):,} of {quantity(len(groups), 'group')}"
    return rule.found(False if is_known else None, f"{count}: {named} {where}")


def _named(busy: Iterable[tuple[str, str]]) -> str:
    return shortened(f"{group_id!r} {why}" for group_id, why in busy)
