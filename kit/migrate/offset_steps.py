"""Steps that write offsets, as data: one step for up to a thousand groups, one item per group and partition.

A change is the offset before → after, None where there is none. What else the write and its undo need is in the
step's parameters: ``store``; ``kept`` (what was stored beside the offset), ``written`` (what is stored beside it),
``noted`` (what was wanted, and why it became something else) by item; ``new_parents`` (znodes to make).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from kit.migrate.offset_moves import Move, Stored, parse_item
from kit.migrate.offset_selection import Key
from kit.migrate.offset_zookeeper import parents_of
from kit.migrate.step import Change, Step
from kit.migrate.values import Json
from kit.model import KAFKA, ZOOKEEPER

KIND_OF_STORE = {KAFKA: "kafka_offsets", ZOOKEEPER: "zookeeper_offsets"}
STEP_KINDS = frozenset(KIND_OF_STORE.values())
GROUP, OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS = "group", "offsets", "versions", "metadata", "leader epochs"
OFFSET_PARTS = (OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS)
GROUPS_PER_STEP = 1_000
DEADLINE_S = 60.0

_PRECONDITION = {
    KAFKA: "Each group is Empty or Dead at its coordinator, and each offset is within its log.",
    ZOOKEEPER: "No member is registered under ids, and each offset is within its log.",
}
_VERIFICATION = "Each offset, read back, is the one of this step."
_UNDO = {
    KAFKA: (
        "Commits each offset of before again, with its metadata and leader epoch; an offset that was not there is"
        " deleted. The time of the commit is new, so its retention begins anew."
    ),
    ZOOKEEPER: (
        "Writes each offset of before again; a znode that was not there is deleted, and so are parents that this step"
        " made, if they are empty. Versions and times of the znodes are new."
    ),
}
_NO_DELETION = (
    "these brokers can't delete single offsets (OffsetDelete, Kafka 2.4 or newer), and before there were none"
)


def observed_name(store: str, part: str, group_id: str) -> str:
    """The name of an observation of one group in one store; ``part`` is GROUP or one of OFFSET_PARTS."""
    return f"{store} {part} {group_id}"


def offset_steps(
    store: str,
    moves: Sequence[Move],
    *,
    can_delete: bool,
    missing_parents: Collection[str],
    new_groups: Collection[str],
    observed: Collection[str],
) -> tuple[Step, ...]:
    """The steps for moves that all change something, a thousand groups each.

    ``new_groups`` are those that a coordinator doesn't know yet, ``missing_parents`` the znodes that don't exist yet,
    ``observed`` the names of the plan's observations.
    """
    by_group: dict[str, list[Move]] = {}
    for move in moves:
        by_group.setdefault(move.key[0], []).append(move)
    groups = sorted(by_group)
    batches = [groups[start : start + GROUPS_PER_STEP] for start in range(0, len(groups), GROUPS_PER_STEP)]
    steps = []
    for number, batch in enumerate(batches, 1):
        of_batch = [move for group_id in batch for move in by_group[group_id]]
        affects = [observed_name(store, part, group_id) for group_id in batch for part in OFFSET_PARTS]
        affects += [observed_name(store, GROUP, each) for each in batch if store == KAFKA and each in new_groups]
        affects = [name for name in affects if name in observed]
        steps.append(_step(f"{store}-offsets-{number}", store, batch, of_batch, affects, can_delete, missing_parents))
    return tuple(steps)


def _step(
    step_id: str,
    store: str,
    groups: Sequence[str],
    moves: Sequence[Move],
    affects: Sequence[str],
    can_delete: bool,
    missing_parents: Collection[str],
) -> Step:
    whose = f"group {groups[0]!r}" if len(groups) == 1 else f"{len(groups)} groups"
    is_stuck = not can_delete and any(move.before is None for move in moves)
    parents = {path for move in moves for path in parents_of(move.key)} if missing_parents else set()
    return Step(
        step_id=step_id,
        kind=KIND_OF_STORE[store],
        title=f"Write {len(moves)} offsets of {whose} to {store}",
        precondition=_PRECONDITION[store],
        verification=_VERIFICATION,
        deadline_s=DEADLINE_S,
        changes=tuple(Change(move.item, move.before, move.after) for move in moves),
        undo=None if is_stuck else _UNDO[store],
        cannot_be_undone=_NO_DELETION if is_stuck else None,
        affects=tuple(affects),
        parameters={
            "store": store,
            "kept": dict(_kept(moves)),
            "written": dict(_written(moves)) if store == KAFKA else {},
            "noted": {it.item: {"wanted": it.wish.wanted, "reason": it.reason} for it in moves if it.reason},
            "new_parents": tuple(sorted(parents.intersection(missing_parents))),
        },
    )


def store_of(step: Step) -> str:
    return str(step.parameters["store"])


def groups_of(step: Step) -> frozenset[str]:
    return frozenset(parse_item(change.item)[0] for change in step.changes)


def before_of(step: Step) -> dict[Key, Stored]:
    """What was stored before, with what was stored beside it."""
    return {parse_item(it.item): _beside(it.before, step, "kept", it.item) for it in step.changes}


def after_of(step: Step) -> dict[Key, Stored]:
    """What is to be stored, with what is stored beside it."""
    return {parse_item(it.item): _beside(it.after, step, "written", it.item) for it in step.changes}


def _beside(offset: Json, step: Step, name: str, item: str) -> Stored:
    told = step.parameters[name]
    beside = told.get(item, {}) if isinstance(told, Mapping) else {}
    assert isinstance(beside, Mapping)
    assert offset is None or isinstance(offset, int)
    metadata, epoch = beside.get("metadata"), beside.get("leader_epoch")
    return Stored(offset, None if metadata is None else str(metadata), epoch if isinstance(epoch, int) else None)


def _kept(moves: Sequence[Move]) -> Iterator[tuple[str, Json]]:
    for move in moves:
        before = move.wish.before
        values = {"metadata": before.metadata, "leader_epoch": before.leader_epoch, "version": before.version}
        if any(value is not None for value in values.values()):
            yield move.item, {name: value for name, value in values.items() if value is not None}


def _written(moves: Sequence[Move]) -> Iterator[tuple[str, Json]]:
    for move in moves:
        values: dict[str, Json] = {"metadata": move.wish.metadata, "leader_epoch": move.leader_epoch}
        if any(value is not None for value in values.values()):
            yield move.item, {name: value for name, value in values.items() if value is not None}
