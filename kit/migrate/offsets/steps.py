"""Steps that write offsets, as data: one step for up to a thousand groups, one item per group and partition.

A change is the offset before → after, None where there is none; a step writes offsets or deletes them. What else the
write and its undo need is in the step's parameters: ``store`` and ``number``; ``kept`` (what was stored beside the
offset), ``written`` (what is stored beside it), ``noted`` (what was wanted, and why it became something else) by item;
``new_parents`` (znodes to make); ``new_groups`` (unknown to their coordinator until now); ``can_delete`` (brokers can
delete single offsets). A step is made of its changes and these and nothing else: :func:`remade`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from kit.errors import InputError, PlanError
from kit.migrate.engine.recipes import Recipe, Recipes
from kit.migrate.engine.step import Change, Step
from kit.migrate.engine.values import Json
from kit.migrate.offsets.moves import Move, Stored, parse_item
from kit.migrate.offsets.selection import Key
from kit.migrate.offsets.zookeeper import parents_of
from kit.tables.groups import KAFKA, ZOOKEEPER

KIND_OF_STORE = {KAFKA: "kafka_offsets", ZOOKEEPER: "zookeeper_offsets"}
STEP_KINDS = frozenset(KIND_OF_STORE.values())
GROUP, OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS = "group", "offsets", "versions", "metadata", "leader epochs"
OFFSET_PARTS = (OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS)
PARTS_OF_STORE = {KAFKA: (OFFSETS, METADATA, LEADER_EPOCHS), ZOOKEEPER: (OFFSETS, VERSIONS)}
GROUPS_PER_STEP = 1_000
DEADLINE_S = 60.0

_MEMBERLESS = {
    KAFKA: "Each group is Empty or Dead at its coordinator",
    ZOOKEEPER: "No member is registered under ids",
}
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
NO_DELETION = "these brokers can't delete single offsets (OffsetDelete, Kafka 2.4 or newer)"
_BESIDE = {"metadata": str, "leader_epoch": int, "version": int}
_NOTE = {"wanted": int, "reason": str}


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
) -> tuple[Step, ...]:
    """The steps for moves that all change something and all write or all delete, a thousand groups each.

    ``new_groups`` are those that a coordinator doesn't know yet, ``missing_parents`` the znodes that don't exist yet.
    """
    by_group: dict[str, list[Move]] = {}
    for move in moves:
        by_group.setdefault(move.key[0], []).append(move)
    groups = sorted(by_group)
    batches = [groups[start : start + GROUPS_PER_STEP] for start in range(0, len(groups), GROUPS_PER_STEP)]
    steps = []
    for number, batch in enumerate(batches, 1):
        of_batch = [move for group_id in batch for move in by_group[group_id]]
        parents = {path for move in of_batch for path in parents_of(move.key)} if store == ZOOKEEPER else set()
        parameters: dict[str, Json] = {
            "store": store,
            "number": number,
            "can_delete": can_delete,
            "new_groups": tuple(each for each in batch if store == KAFKA and each in new_groups),
            "kept": dict(_kept(of_batch)),
            "written": dict(_written(of_batch)) if store == KAFKA else {},
            "noted": {it.item: {"wanted": it.wish.wanted, "reason": it.reason} for it in of_batch if it.reason},
            "new_parents": tuple(sorted(parents.intersection(missing_parents))),
        }
        steps.append(_step([Change(move.item, move.before, move.after) for move in of_batch], parameters))
    return tuple(steps)


def remade(step: Step) -> Step:
    """The step again, from its changes' items, before and after, and its parameters; equal if it was made here.

    What doesn't belong to the step's own groups and partitions is left out of it, so that an edit shows.

    Raises:
        PlanError: they are of no step that this module makes.
    """
    try:
        return _step(step.changes, _own_parameters(step))
    except (InputError, KeyError, TypeError) as error:
        raise PlanError(f"step {step.step_id!r} is no step of offsets: {type(error).__name__}: {error}") from error


def _own_parameters(step: Step) -> dict[str, Json]:
    given, items = step.parameters, {change.item for change in step.changes}
    keys = [parse_item(item) for item in items]
    store, kafka_items = _as(str, given["store"]), items if given["store"] == KAFKA else set()
    parents = {path for key in keys for path in parents_of(key)} if store == ZOOKEEPER else set()
    groups = {key[0] for key in keys} if store == KAFKA else set()
    return {
        "store": store,
        "number": _as(int, given["number"]),
        "can_delete": _as(bool, given["can_delete"]),
        "new_groups": tuple(sorted(groups.intersection(_texts(given["new_groups"])))),
        "kept": _own(given["kept"], items, _BESIDE),
        "written": _own(given["written"], kafka_items, _BESIDE),
        "noted": _own(given["noted"], items, _NOTE),
        "new_parents": tuple(sorted(parents.intersection(_texts(given["new_parents"])))),
    }


def _own(told: Json, items: Collection[str], kinds: Mapping[str, type]) -> dict[str, Json]:
    """Those entries that are of ``items``, with the fields that are known."""
    return {
        item: {name: _as(kinds[name], value) for name, value in _mapping(fields).items() if name in kinds}
        for item, fields in _mapping(told).items()
        if item in items
    }


def _as(kind: type, value: Json) -> Json:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


def _mapping(value: Json) -> Mapping[str, Json]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no mapping")
    return value


def _texts(value: Json) -> tuple[str, ...]:
    if not isinstance(value, tuple | list):
        raise TypeError(f"{value!r} is no list")
    return tuple(str(_as(str, each)) for each in value)


def _step(changes: Sequence[Change], parameters: Mapping[str, Json]) -> Step:
    """A step of these: nothing else goes into it."""
    if not changes:
        raise PlanError("a step of offsets has changes")
    for change in changes:
        _refuse_unless_offsets(change)
    store, groups = str(parameters["store"]), list(dict.fromkeys(parse_item(change.item)[0] for change in changes))
    n_deleted = sum(change.after is None for change in changes)
    if n_deleted not in (0, len(changes)):
        raise PlanError(f"{n_deleted} of {len(changes)} changes of a step delete an offset: it is all of them or none")
    is_stuck = not parameters["can_delete"] and any(change.before is None for change in changes)
    return Step(
        step_id=f"{store}-offsets-{parameters['number']}",
        kind=KIND_OF_STORE[store],
        title=_title(store, groups, len(changes), len(_mapping(parameters["written"])), bool(n_deleted)),
        precondition=f"{_MEMBERLESS[store]}{'' if n_deleted else ', and each offset is within its log'}.",
        verification=f"Each offset, read back, is {'gone' if n_deleted else 'the one of this step'}.",
        deadline_s=DEADLINE_S,
        changes=tuple(changes),
        undo=None if is_stuck else _UNDO[store],
        cannot_be_undone=f"{NO_DELETION}, and before there were none" if is_stuck else None,
        affects=tuple(_affects(store, groups, _texts(parameters["new_groups"]), bool(n_deleted))),
        parameters=parameters,
    )


def _title(store: str, groups: Sequence[str], n_offsets: int, n_beside: int, deletes: bool) -> str:
    whose = f"group {groups[0]!r}" if len(groups) == 1 else f"{len(groups)} groups"
    if deletes:
        return f"Delete {n_offsets} offsets of {whose} from {store}"
    beside = f", {n_beside} with metadata or leader epoch" if n_beside else ""
    return f"Write {n_offsets} offsets of {whose} to {store}{beside}"


def _affects(store: str, groups: Iterable[str], new_groups: Collection[str], deletes: bool) -> Iterator[str]:
    """A coordinator learns of a group by its first offset, and may forget it with its last one."""
    for group_id in groups:
        yield from (observed_name(store, part, group_id) for part in PARTS_OF_STORE[store])
        if store == KAFKA and (deletes or group_id in new_groups):
            yield observed_name(store, GROUP, group_id)


def _refuse_unless_offsets(change: Change) -> None:
    for value in (change.before, change.after):
        if value is not None and (type(value) is not int or value < 0):
            raise PlanError(f"{change.item}: {value!r} is no offset")


def store_of(step: Step) -> str:
    return str(step.parameters["store"])


def groups_of(step: Step) -> frozenset[str]:
    return frozenset(parse_item(change.item)[0] for change in step.changes)


RECIPES: Recipes = {kind: Recipe(remade, groups_of) for kind in STEP_KINDS}


def deletes(step: Step) -> bool:
    """Whether it deletes offsets; else it writes them."""
    return step.changes[0].after is None


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
