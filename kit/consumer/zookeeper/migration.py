"""KIP-125's toggle: whose assignment is in force, and what a member does when nothing is right."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """Whose assignment is in force for this member."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Decision:
    """``is_deferred``: the toggle asks for ZooKeeper, but plain Kafka consumers are in the group (races R5, R6).

    ``is_fencing``: hold the owner znodes of their partitions too, before an old consumer can come and read them a
    second time (R5). ``alarm`` is a sentence for the operator.
    """

    mode: Mode
    is_deferred: bool = False
    is_fencing: bool = False
    alarm: str | None = None


def decide(
    toggle: str | None,
    members: Collection[str],
    migration_enabled: Collection[str],
    plain_members: Collection[str],
    current: Mode | None,
    is_fenced: bool,
) -> Decision:
    """The mode in force (KIP-125, Coordination Mode Toggle; invariant I5).

    ``toggle`` is the text of ``migration/mode``; ``members`` and ``migration_enabled`` are the children of ``ids`` and
    ``migration/ids``; ``plain_members`` the Kafka members that are no embedded consumers (KC); ``is_fenced`` says that
    another member fences.

    Kafka's assignment: the toggle says exactly ``kafka`` and every member is migration-enabled. Otherwise ZooKeeper's,
    but never while a KC is a member: it can't be told to stop. Then migration-enabled members stay with Kafka's
    assignment; one that is new does as the others do, which is told by a fence or the toggle. Old consumers and a KC
    that came while ZooKeeper's assignment was in force read twice whatever a migration-enabled member does: it stays,
    and says so.
    """
    old = sorted(set(members) - set(migration_enabled))
    if toggle == Mode.KAFKA.value and not old:
        return Decision(Mode.KAFKA, is_fencing=bool(plain_members))
    if not plain_members:
        return Decision(Mode.ZOOKEEPER)
    plain = ", ".join(sorted(plain_members))
    if not old:
        return Decision(
            Mode.KAFKA,
            is_deferred=True,
            is_fencing=True,
            alarm=f"the toggle asks for ZooKeeper's assignment, which waits until the Kafka consumers left: {plain}",
        )
    if current is Mode.KAFKA or is_fenced or (current is None and toggle == Mode.KAFKA.value):
        return Decision(
            Mode.KAFKA,
            is_deferred=True,
            is_fencing=True,
            alarm=f"old consumers ({', '.join(old)}) joined while Kafka consumers are members ({plain}): they are "
            "fenced and get nothing. Stop them, or first replace the Kafka consumers by migration-enabled ones",
        )
    return Decision(
        Mode.ZOOKEEPER,
        alarm=f"Kafka consumers ({plain}) are in a group that ZooKeeper coordinates with old consumers "
        f"({', '.join(old)}): they read the same partitions twice. Stop the Kafka consumers",
    )
