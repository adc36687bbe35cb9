"""Targets become moves within their logs; an offset that can't be written is excluded, with the reason. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kit.clients.paths import is_znode_name
from kit.moves.offsets.inputs import PlanInputs
from kit.moves.offsets.moves import Move, OffsetTarget, clamp
from kit.moves.offsets.resets import bounds
from kit.moves.offsets.selection import Key
from kit.tables.groups import ZOOKEEPER

GONE = "no broker knows this topic: it was deleted, or never existed"
NO_PARTITION = "the topic exists, but has no such partition"
NO_NAME = "a group without a name can't be written"
NO_ZNODE = "the group can't have offsets in ZooKeeper, because a znode can't have the group's name"


class Exclusion(Enum):
    """The reason for which an offset is not written. A plan lists what is left out; the other two make it unsafe."""

    LEFT_OUT = "left out"
    UNREADABLE = "unreadable"
    UNKNOWN_LOG = "unknown log"


@dataclass(frozen=True, slots=True)
class Excluded:
    """One selected offset that no step writes."""

    key: Key
    reason: str
    exclusion: Exclusion = Exclusion.LEFT_OUT


Selected: TypeAlias = OffsetTarget | Excluded


@dataclass(frozen=True, slots=True)
class Clamped:
    """The changes to write, the excluded offsets, and the moves that would change nothing."""

    changes: tuple[Move, ...]
    excluded: tuple[Excluded, ...]
    unchanged: tuple[Move, ...]

    def reasons(self, exclusion: Exclusion) -> dict[Key, str]:
        """The reasons by key, sorted."""
        return {each.key: each.reason for each in self.excluded if each.exclusion == exclusion}


def clamp_all(inputs: PlanInputs, selected: Iterable[Selected]) -> Clamped:
    """Clamp every target to its log; with ``skip_backwards`` leave out the moves that would go backwards."""
    clamped = [_clamped(inputs, each) for each in selected]
    if inputs.options.skip_backwards:
        clamped = [_without_backwards(each) for each in clamped]
    moves = [each for each in clamped if isinstance(each, Move)]
    changes, unchanged = (tuple(move for move in moves if move.is_change is wanted) for wanted in (True, False))
    excluded = sorted((each for each in clamped if isinstance(each, Excluded)), key=lambda each: each.key)
    return Clamped(changes, tuple(excluded), unchanged)


def log_bounds(inputs: PlanInputs, key: Key) -> tuple[int, int] | Excluded:
    """Start and end of the partition's log."""
    log = inputs.logs.get(key[1:])
    if log is None:
        exists = any(topic == key[1] for topic, _ in inputs.logs)
        return Excluded(key, NO_PARTITION if exists else GONE)
    return bounds(log) or Excluded(
        key, log.error or "the start and the end of the log are unknown", Exclusion.UNKNOWN_LOG
    )


def _clamped(inputs: PlanInputs, selected: Selected) -> Move | Excluded:
    if isinstance(selected, Excluded):
        return selected
    if selected.before.error is not None:
        return Excluded(selected.key, selected.before.error, Exclusion.UNREADABLE)
    impossible = _impossible(inputs.store, selected.key[0])
    if impossible is not None:
        return Excluded(selected.key, impossible)
    if selected.wanted is None:
        return Move(selected, None)
    within = log_bounds(inputs, selected.key)
    return within if isinstance(within, Excluded) else clamp(selected, *within)


def _impossible(store: str, group_id: str) -> str | None:
    """Return why this store can't hold an offset of such a group; None if it can. The other groups continue."""
    if not group_id:
        return NO_NAME
    return NO_ZNODE if store == ZOOKEEPER and not is_znode_name(group_id) else None


def _without_backwards(each: Move | Excluded) -> Move | Excluded:
    if isinstance(each, Move) and each.is_backwards:
        return Excluded(each.key, f"the offset would go backwards: {each.before} → {each.after}")
    return each
