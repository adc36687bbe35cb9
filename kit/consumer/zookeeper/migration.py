"""KIP-125's toggle: whose assignment is in force, and what a member does when Kafka consumers are in the group."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum


class Mode(Enum):
    """The assignment that is in force for this member."""

    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"


@dataclass(frozen=True, slots=True)
class Decision:
    """``is_deferred``: ZooKeeper's assignment is due, and waits until the plain Kafka consumers left (races R5, R6).

    ``is_reserving``: this member holds the owner znodes of their partitions too, so that an old consumer can't claim
    them (R5). ``alarm`` is a sentence for the operator.
    """

    mode: Mode
    is_deferred: bool = False
    is_reserving: bool = False
    alarm: str | None = None


def decide(
    toggle: str | None,
    members: Collection[str],
    migration_enabled: Collection[str],
    plain_members: Collection[str],
    current: Mode | None,
    has_reservations: bool,
) -> Decision:
    """The mode in force (KIP-125, Coordination Mode Toggle; invariant I5).

    ``toggle`` is the text of ``migration/mode``. ``members`` and ``migration_enabled`` are the children of ``ids`` and
    ``migration/ids``. ``plain_members`` are the members of the Kafka group that are no embedded consumers (KC).
    ``current`` is this member's mode, None before its first round. ``has_reservations``: some member reserves.

    Kafka's assignment is in force when the toggle is exactly ``kafka`` and every member is migration-enabled; else
    ZooKeeper's. But a KC can't be asked to stop: while one is a member, migration-enabled members stay with Kafka's
    assignment, and reserve what the KCs have. The first row that fits decides; ``-`` fits everything::

        toggle  old  KCs  reservations  current    →  mode       deferred  reserving  alarm
        kafka   no   no   -             -             KAFKA      no        no         no
        kafka   no   yes  -             -             KAFKA      no        yes        no
        -       -    no   -             -             ZOOKEEPER  no        no         no
        -       no   yes  -             -             KAFKA      yes       yes        yes
        -       yes  yes  -             KAFKA         KAFKA      yes       yes        yes
        -       yes  yes  yes           -             KAFKA      yes       yes        yes
        kafka   yes  yes  -             None          KAFKA      yes       yes        yes
        -       yes  yes  -             -             ZOOKEEPER  no        no         yes

    In the last row the KCs came while ZooKeeper's assignment was in force. Partitions are read twice, and no member can
    prevent that.
    """
    old = sorted(set(members) - set(migration_enabled))
    if toggle == Mode.KAFKA.value and not old:
        return Decision(Mode.KAFKA, is_reserving=bool(plain_members))
    if not plain_members:
        return Decision(Mode.ZOOKEEPER)
    plain = ", ".join(sorted(plain_members))
    if not old:
        return Decision(
            Mode.KAFKA,
            is_deferred=True,
            is_reserving=True,
            alarm=f"the toggle asks for ZooKeeper's assignment, which waits until the Kafka consumers are stopped: "
            f"{plain}",
        )
    if current is Mode.KAFKA or has_reservations or (current is None and toggle == Mode.KAFKA.value):
        return Decision(
            Mode.KAFKA,
            is_deferred=True,
            is_reserving=True,
            alarm=f"old consumers ({', '.join(old)}) joined while Kafka consumers are members ({plain}): the "
            "partitions are reserved, and the old consumers get none. Stop the old consumers, or first replace the "
            "Kafka consumers by migration-enabled ones",
        )
    return Decision(
        Mode.ZOOKEEPER,
        alarm=f"Kafka consumers ({plain}) are in a group that ZooKeeper coordinates with old consumers "
        f"({', '.join(old)}): they read the same partitions twice. Stop the Kafka consumers",
    )
