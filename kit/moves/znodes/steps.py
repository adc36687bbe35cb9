"""Steps that delete persistent znodes of one group, as data: one item per znode, with what an undo writes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kit.clients.paths import group_path
from kit.engine.model.parameters import StepParameters
from kit.engine.model.recipes import Recipes, of_parameters
from kit.engine.model.step import Change, Step
from kit.errors import PlanError
from kit.text.quantity import quantity

KIND = "persistent_znodes"
DEADLINE_S = 60.0
_UNDO = (
    "Creates each znode again, persistent and with the same text, unless another znode is there by then. It gets the"
    " access list of the znode above it."
)
_BRANCHES = ("ids/", "migration/ids/", "owners/")


@dataclass(frozen=True, slots=True)
class DeleteZnodesParameters(StepParameters):
    """``texts``, ``czxids`` and ``versions`` by path below ``/consumers/<group>``, as they were when planned.
    ``beside_members``: the group may have live members meanwhile."""

    group: str
    texts: Mapping[str, str]
    czxids: Mapping[str, int]
    versions: Mapping[str, int]
    beside_members: bool

    def paths(self) -> dict[str, str]:
        """The whole path by item: registrations last, because their deletion makes live members claim again."""
        root = group_path(self.group)
        return {
            each: f"{root}/{each}" for each in sorted(self.texts, key=lambda it: (not it.startswith("owners/"), it))
        }


def delete_step(step_id: str, parameters: DeleteZnodesParameters) -> Step:
    """Make the step of one group.

    Raises:
        PlanError: a path is of no member or owner, or lacks its czxid or version.
    """
    _refuse_odd(parameters)
    count = quantity(len(parameters.texts), "persistent znode")
    beside = "" if parameters.beside_members else "The group has no live member. "
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Delete {count} of members and owners of group {parameters.group!r} in ZooKeeper",
        precondition=f"{beside}Each znode is persistent, and is the planned znode. Any other znode is not changed.",
        verification="None of these znodes exists any more as a persistent znode.",
        deadline_s=DEADLINE_S,
        changes=tuple(Change(each, parameters.texts[each], None) for each in parameters.paths()),
        undo=_UNDO,
        parameters=parameters.to_json(),
    )


def _refuse_odd(parameters: DeleteZnodesParameters) -> None:
    names = set(parameters.texts)
    if not names:
        raise PlanError("a step that deletes znodes needs at least one znode")
    if names != set(parameters.czxids) or names != set(parameters.versions):
        raise PlanError(f"group {parameters.group!r}: a znode lacks its text, its czxid or its version")
    for name in names:
        depth = 3 if name.startswith(("migration/", "owners/")) else 2
        parts = name.split("/")
        if not name.startswith(_BRANCHES) or len(parts) != depth or not all(parts) or {".", ".."} & set(parts):
            raise PlanError(f"group {parameters.group!r}: {name!r} is no znode of a member or an owner")


RECIPES: Recipes = {KIND: of_parameters(DeleteZnodesParameters, delete_step)}
