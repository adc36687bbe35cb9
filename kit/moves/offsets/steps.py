"""Steps that write offsets, as data: one step for up to a thousand groups, one item per group and partition.

A change is the offset before → after, None where there is none; a step writes offsets or deletes them. All else that
the write and its undo need is in :class:`OffsetStepParameters`. A step is made of its changes and these and nothing
else: :func:`remade`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kit.engine.model.parameters import StepParameters, later_flag, later_mapping
from kit.engine.model.recipes import Recipe, Recipes
from kit.engine.model.step import Change, Step
from kit.engine.model.values import Json
from kit.errors import InputError, PlanError
from kit.moves.offsets.moves import Move, Stored, parse_item
from kit.moves.offsets.selection import Key
from kit.moves.offsets.subject import KIND_OF_STORE, STEP_KINDS
from kit.moves.offsets.zookeeper import parents_of
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.naming import listed
from kit.text.quantity import quantity

GROUP, OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS = "group", "offsets", "versions", "metadata", "leader epochs"
OFFSET_PARTS = (OFFSETS, VERSIONS, METADATA, LEADER_EPOCHS)
PARTS_OF_STORE = {KAFKA: (OFFSETS, METADATA, LEADER_EPOCHS), ZOOKEEPER: (OFFSETS, VERSIONS)}
GROUPS_PER_STEP = 1_000
GROUPS_PER_EXCLUSIVE_STEP = 50
"""A broker delays the first member of a group by three seconds (``group.initial.rebalance.delay.ms``)."""
DEADLINE_S = 60.0

_MEMBERLESS = {
    KAFKA: "Each group is Empty or Dead at its coordinator",
    ZOOKEEPER: "No member is registered under ids",
}
_UNDO = {
    KAFKA: (
        "Commits each former offset again, with its metadata and leader epoch; an offset that was not there is"
        " deleted. The time of the commit is new, so its retention begins again."
    ),
    ZOOKEEPER: (
        "Writes each former offset again; a znode that was not there is deleted, and so are parents that this step"
        " made, if they are empty. Versions and times of the znodes are new."
    ),
}
NO_DELETION = "these brokers can't delete single offsets (OffsetDelete, Kafka 2.4 or newer)"
_BESIDE: Mapping[str, type] = {"metadata": str, "leader_epoch": int, "version": int}
_NOTE: Mapping[str, type] = {"wanted": int, "reason": str}


def observed_name(store: str, part: str, group_id: str) -> str:
    """The name of an observation of one group in one store; ``part`` is GROUP or one of OFFSET_PARTS."""
    return f"{store} {part} {group_id}"


Fields = Mapping[str, int | str]


@dataclass(frozen=True, slots=True)
class OffsetStepParameters(StepParameters):
    """The parameters of a step of offsets besides its changes. The three mappings are by item.

    ``number`` counts the steps of a plan. ``can_delete``: the brokers can delete single offsets. ``new_groups`` are
    groups that their coordinator doesn't know yet. ``kept`` is what is stored beside the offset before the step,
    ``written`` what the step stores beside it: ``metadata``, ``leader_epoch`` and ``version``, where there are any.
    ``noted`` has the ``wanted`` offsets that were clamped, with the ``reason``. ``new_parents`` are znodes to create
    above new offsets. ``topic_ids`` are the ids of the topics before the offsets were read, where they are known.
    ``is_exclusive``: each group's only member writes them.
    """

    store: str
    number: int
    can_delete: bool
    new_groups: tuple[str, ...]
    kept: Mapping[str, Fields]
    written: Mapping[str, Fields]
    noted: Mapping[str, Fields]
    new_parents: tuple[str, ...]
    topic_ids: Mapping[str, str] = later_mapping()
    is_exclusive: bool = later_flag()

    def within(self, items: Collection[str]) -> OffsetStepParameters:
        """These parameters without what belongs to other items than those of the step."""
        keys = [parse_item(item) for item in items]
        groups = {key[0] for key in keys} if self.store == KAFKA else set()
        parents = {path for key in keys for path in parents_of(key)} if self.store == ZOOKEEPER else set()
        topics = {topic for _, topic, _ in keys}
        return replace(
            self,
            new_groups=tuple(sorted(groups.intersection(self.new_groups))),
            kept=_of_items(self.kept, items, _BESIDE),
            written=_of_items(self.written, items if self.store == KAFKA else (), _BESIDE),
            noted=_of_items(self.noted, items, _NOTE, needed=_NOTE.keys()),
            new_parents=tuple(sorted(parents.intersection(self.new_parents))),
            topic_ids={topic: self.topic_ids[topic] for topic in sorted(topics) if topic in self.topic_ids},
        )


def offset_steps(
    store: str,
    moves: Sequence[Move],
    *,
    can_delete: bool,
    missing_parents: Collection[str],
    new_groups: Collection[str],
    topic_ids: Mapping[str, str],
    is_exclusive: bool = False,
) -> tuple[Step, ...]:
    """The steps for moves that are all changes, and all writes or all deletions; a thousand groups in each, fifty where
    they are joined.

    ``new_groups`` are unknown to their coordinator; ``missing_parents`` are the znodes that don't exist yet;
    ``topic_ids`` are by topic, where they are known.
    """
    by_group: dict[str, list[Move]] = {}
    for move in moves:
        by_group.setdefault(move.key[0], []).append(move)
    groups = sorted(by_group)
    size = GROUPS_PER_EXCLUSIVE_STEP if is_exclusive else GROUPS_PER_STEP
    batches = [groups[start : start + size] for start in range(0, len(groups), size)]
    steps = []
    for number, batch in enumerate(batches, 1):
        of_batch = [move for group_id in batch for move in by_group[group_id]]
        everything = OffsetStepParameters(
            store=store,
            number=number,
            can_delete=can_delete,
            new_groups=tuple(new_groups),
            kept={move.item: fields for move in of_batch if (fields := _beside(move.target.before))},
            written={move.item: fields for move in of_batch if (fields := _beside(_to_write(move)))},
            noted={move.item: _noted(move) for move in of_batch if move.reason},
            new_parents=tuple(missing_parents),
            topic_ids=topic_ids,
            is_exclusive=is_exclusive,
        )
        changes = [Change(move.item, move.before, move.after) for move in of_batch]
        steps.append(_step(changes, everything.within({change.item for change in changes})))
    return tuple(steps)


def remade(step: Step) -> Step:
    """The step again, from its changes and its parameters; equal if :func:`offset_steps` made it.

    Parameters of other groups and partitions are dropped, so that an edit shows.

    Raises:
        PlanError: no step of this module has such changes or parameters.
    """
    try:
        return _step(step.changes, OffsetStepParameters.of(step).within({change.item for change in step.changes}))
    except (InputError, KeyError) as error:
        raise PlanError(f"step {step.step_id!r} is no step of offsets: {type(error).__name__}: {error}") from error


def _to_write(move: Move) -> Stored:
    return Stored(metadata=move.target.metadata, leader_epoch=move.leader_epoch)


def _beside(stored: Stored) -> dict[str, int | str]:
    """Return what is stored beside an offset; the offset itself is in the change."""
    values = {name: getattr(stored, name) for name in _BESIDE}
    return {name: value for name, value in values.items() if value is not None}


def _noted(move: Move) -> dict[str, int | str]:
    assert move.target.wanted is not None
    assert move.reason is not None
    return {"wanted": move.target.wanted, "reason": move.reason}


def _of_items(
    by_item: Mapping[str, Fields], items: Collection[str], kinds: Mapping[str, type], needed: Collection[str] = ()
) -> dict[str, Fields]:
    """Fields of each item, checked by kind.

    Raises:
        PlanError: a field is missing, or has another name or type than in ``kinds``.
    """
    for item, fields in by_item.items():
        if not fields.keys() >= set(needed) or any(type(value) is not kinds.get(it) for it, value in fields.items()):
            has = listed(f"{name} {value!r}" for name, value in fields.items())
            raise PlanError(f"{item}: a step of offsets has {listed(kinds)} of it, and this one {has}")
    return {item: fields for item, fields in by_item.items() if item in items}


def _step(changes: Sequence[Change], parameters: OffsetStepParameters) -> Step:
    """A step of these changes and parameters; nothing else goes into it."""
    if not changes:
        raise PlanError("a step of offsets needs at least one change")
    for change in changes:
        _refuse_unless_offsets(change)
    store, groups = parameters.store, list(dict.fromkeys(parse_item(change.item)[0] for change in changes))
    n_deleted = sum(change.after is None for change in changes)
    if n_deleted not in (0, len(changes)):
        raise PlanError(f"{n_deleted} of {len(changes)} changes of a step delete an offset: all of them must, or none")
    is_stuck = not parameters.can_delete and any(change.before is None for change in changes)
    return Step(
        step_id=f"{store}-offsets-{parameters.number}",
        kind=KIND_OF_STORE[store],
        title=_title(store, groups, len(changes), len(parameters.written), bool(n_deleted))
        + (", as its only member" if parameters.is_exclusive else ""),
        precondition=f"{_MEMBERLESS[store]}{'' if n_deleted else ', and each offset is within its log'}.",
        verification=f"Each offset, read back, is {'gone' if n_deleted else 'the one of this step'}.",
        deadline_s=DEADLINE_S,
        changes=tuple(changes),
        undo=None if is_stuck else _UNDO[store],
        cannot_be_undone=f"{NO_DELETION}, and before there were none" if is_stuck else None,
        affects=tuple(_affects(store, groups, parameters.new_groups, bool(n_deleted))),
        parameters=parameters.to_json(),
    )


def _title(store: str, groups: Sequence[str], n_offsets: int, n_beside: int, deletes: bool) -> str:
    whose = f"group {groups[0]!r}" if len(groups) == 1 else quantity(len(groups), "group")
    if deletes:
        return f"Delete {quantity(n_offsets, 'offset')} of {whose} from {store}"
    beside = f", {n_beside} with metadata or leader epoch" if n_beside else ""
    return f"Write {quantity(n_offsets, 'offset')} of {whose} to {store}{beside}"


def _affects(store: str, groups: Iterable[str], new_groups: Collection[str], deletes: bool) -> Iterator[str]:
    """The first offset makes a group known to its coordinator; without its last one the group may be forgotten."""
    for group_id in groups:
        yield from (observed_name(store, part, group_id) for part in PARTS_OF_STORE[store])
        if store == KAFKA and (deletes or group_id in new_groups):
            yield observed_name(store, GROUP, group_id)


def _refuse_unless_offsets(change: Change) -> None:
    for value in (change.before, change.after):
        if value is not None and (type(value) is not int or value < 0):
            raise PlanError(f"{change.item}: {value!r} is no offset")


def is_exclusive(step: Step) -> bool:
    return OffsetStepParameters.of(step).is_exclusive


def store_of(step: Step) -> str:
    return OffsetStepParameters.of(step).store


def groups_of(step: Step) -> frozenset[str]:
    return frozenset(parse_item(change.item)[0] for change in step.changes)


RECIPES: Recipes = {kind: Recipe(remade, groups_of, target_of=lambda item: parse_item(item)[0]) for kind in STEP_KINDS}


def deletes(step: Step) -> bool:
    """Return whether the step deletes offsets; otherwise it writes them."""
    return step.changes[0].after is None


def before_of(step: Step) -> dict[Key, Stored]:
    """The offset before each change, with what was stored beside it."""
    parameters = OffsetStepParameters.of(step)
    return _offsets(((it.item, it.before) for it in step.changes), parameters.kept, parameters.topic_ids)


def after_of(step: Step) -> dict[Key, Stored]:
    """The offset after each change, with what is stored beside it."""
    parameters = OffsetStepParameters.of(step)
    return _offsets(((it.item, it.after) for it in step.changes), parameters.written, parameters.topic_ids)


def _offsets(
    values: Iterable[tuple[str, Json]], beside: Mapping[str, Fields], topic_ids: Mapping[str, str]
) -> dict[Key, Stored]:
    offsets = {}
    for item, offset in values:
        assert offset is None or isinstance(offset, int)
        key, fields = parse_item(item), beside.get(item, {})
        offsets[key] = Stored(
            offset,
            fields.get("metadata"),  # type: ignore[arg-type]  # see _of_items
            fields.get("leader_epoch"),  # type: ignore[arg-type]
            topic_id=topic_ids.get(key[1]),
        )
    return offsets
