"""Steps that delete whole groups from Kafka, as data: one item per group, made of nothing but what they keep of it.

A change is what a group has committed → nothing. The step keeps every offset with its metadata and leader epoch, so a
plan in a run's folder is the backup of what the run deletes: it is on the disk before the first group goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kit.engine.model.parameters import StepParameters, later_mapping
from kit.engine.model.recipes import Recipe, Recipes
from kit.engine.model.step import Change, Step
from kit.errors import PlanError
from kit.moves.offsets.moves import Stored, parse_place
from kit.moves.offsets.selection import Key, Place
from kit.text.naming import listed
from kit.text.quantity import quantity

KIND = "kafka_groups"
GROUPS_PER_STEP = 1_000
DEADLINE_S = 60.0
_FIELDS: Mapping[str, type] = {"offset": int, "metadata": str, "leader_epoch": int}
_UNDO = (
    "Commits all offsets of each group again, with metadata and leader epochs, unless a client has committed"
    " for it since. The time of the commit is new, so its retention begins again."
)
_NOTHING_KEPT = "none of these groups has an offset that could be committed again"


@dataclass(frozen=True, slots=True)
class DeleteGroupsParameters(StepParameters):
    """``number`` counts the steps of a plan. ``kept``: by group and ``topic-partition``, the ``offset``, and its
    ``metadata`` and ``leader_epoch`` where there are any. ``gone``: topics of them that don't exist. ``topic_ids``:
    the ids of the topics before the offsets were read, where they are known."""

    number: int
    kept: Mapping[str, Mapping[str, Mapping[str, int | str]]]
    gone: tuple[str, ...]
    topic_ids: Mapping[str, str] = later_mapping()


def delete_steps(
    groups: Mapping[str, Mapping[Place, Stored]], gone: Iterable[str], topic_ids: Mapping[str, str]
) -> tuple[Step, ...]:
    """The steps that delete these groups, a thousand in each; ``gone``: topics that don't exist; ids by topic."""
    names = sorted(groups)
    batches = [names[start : start + GROUPS_PER_STEP] for start in range(0, len(names), GROUPS_PER_STEP)]
    missing, steps = set(gone), []
    for number, batch in enumerate(batches, 1):
        topics = {topic for group_id in batch for topic, _ in groups[group_id]}
        kept = {group_id: _kept(groups[group_id]) for group_id in batch}
        ids = {topic: topic_ids[topic] for topic in sorted(topics) if topic in topic_ids}
        steps.append(_step(DeleteGroupsParameters(number, kept, tuple(sorted(topics & missing)), ids)))
    return tuple(steps)


def groups_of(step: Step) -> frozenset[str]:
    return frozenset(DeleteGroupsParameters.of(step).kept)


def before_of(step: Step) -> dict[str, dict[Place, Stored]]:
    """Return the committed offsets of each group when the step was planned."""
    parameters = DeleteGroupsParameters.of(step)
    return {
        change.item: {
            (place := parse_place(name)): _stored(fields, parameters.topic_ids.get(place[0]))
            for name, fields in parameters.kept[change.item].items()
        }
        for change in step.changes
    }


def offsets_of(steps: Iterable[Step]) -> dict[Key, Stored]:
    """All that the steps delete, for a backup."""
    groups = [(group_id, offsets) for step in steps for group_id, offsets in before_of(step).items()]
    return {(group_id, *place): stored for group_id, offsets in groups for place, stored in offsets.items()}


def describe_offsets(offsets: Sequence[Place] | Mapping[Place, Stored]) -> str:
    """Return the committed offsets of a group, in words."""
    return quantity(len(offsets), "offset") if offsets else "no offset"


def _step(parameters: DeleteGroupsParameters) -> Step:
    _refuse_odd(parameters)
    groups, gone = parameters.kept, set(parameters.gone)
    offsets = [parse_place(name) for kept in groups.values() for name in kept]
    is_stuck = all(topic in gone for topic, _ in offsets)
    whose = f"group {next(iter(groups))!r}" if len(groups) == 1 else quantity(len(groups), "group")
    return Step(
        step_id=f"delete-groups-{parameters.number}",
        kind=KIND,
        title=f"Delete {whose} with {describe_offsets(offsets)} from kafka",
        precondition=(
            "Each group is without members, and has committed nothing since the plan. Any other group is not changed."
        ),
        verification="No group of this step has an offset, or is there at all.",
        deadline_s=DEADLINE_S,
        changes=tuple(
            Change(group_id, describe_offsets([parse_place(name) for name in kept]), None)
            for group_id, kept in groups.items()
        ),
        undo=None if is_stuck else _UNDO,
        cannot_be_undone=_NOTHING_KEPT if is_stuck else None,
        parameters=parameters.to_json(),
    )


def _refuse_odd(parameters: DeleteGroupsParameters) -> None:
    """Check what a step keeps of offsets for its undo.

    Raises:
        PlanError: what is kept of an offset is no offset.
    """
    if not parameters.kept:
        raise PlanError("a step that deletes groups needs at least one group")
    for group_id, kept in parameters.kept.items():
        for name, fields in kept.items():
            is_odd = any(type(value) is not _FIELDS.get(field) for field, value in fields.items())
            if is_odd or "offset" not in fields or int(fields["offset"]) < 0 or not _is_place(name):
                raise PlanError(f"group {group_id!r}: {name!r} has {_describe(fields)}, which is no committed offset")


def _describe(fields: Mapping[str, object]) -> str:
    return listed(f"{name} {value!r}" for name, value in fields.items())


def _kept(offsets: Mapping[Place, Stored]) -> dict[str, dict[str, int | str]]:
    values = {
        f"{topic}-{partition}": {name: getattr(stored, name) for name in _FIELDS}
        for (topic, partition), stored in sorted(offsets.items())
    }
    return {
        place: {name: value for name, value in fields.items() if value is not None} for place, fields in values.items()
    }


def _is_place(name: str) -> bool:
    topic, _, partition = name.rpartition("-")
    return bool(topic) and partition.isdecimal() and str(int(partition)) == partition


def _stored(fields: Mapping[str, int | str], topic_id: str | None) -> Stored:
    return Stored(**fields, topic_id=topic_id)  # type: ignore[arg-type]  # see _refuse_odd


RECIPES: Recipes = {KIND: Recipe(lambda step: _step(DeleteGroupsParameters.of(step)), groups_of, target_of=str)}
