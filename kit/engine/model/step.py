"""One step of a plan, as data: what it changes, when it may, how that is verified, and how it is undone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kit.engine.model.values import Json, canonical, frozen, frozen_mapping
from kit.errors import PlanError


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that will be different: a znode, a committed offset, an instance. ``item`` is unique in its step."""

    item: str
    before: Json
    after: Json

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", frozen(self.before, f"{self.item} before"))
        object.__setattr__(self, "after", frozen(self.after, f"{self.item} after"))
        if canonical(self.before) == canonical(self.after):
            raise PlanError(f"{self.item} is {canonical(self.before)} before and after: that is no change")

    def to_json(self) -> dict[str, Json]:
        return {"item": self.item, "before": self.before, "after": self.after}


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``kind`` names who performs it; ``needs_person`` reports what a person has to do, where one has to;
    ``performed_by`` what is called to do it, such as a deployment's command, and whom it concerns.

    Exactly one of ``undo`` and ``cannot_be_undone`` is a sentence. ``affects`` names the plan's observations that this
    step itself moves: once it has begun, they no longer speak against continuing. ``deadline_s`` is how long the
    verification may take. A step without changes waits for something and writes nothing.

    Raises:
        PlanError: a field is missing or contradicts another.
        InputError: a value is no JSON.
    """

    step_id: str
    kind: str
    title: str
    precondition: str
    verification: str
    deadline_s: float
    changes: tuple[Change, ...] = ()
    undo: str | None = None
    cannot_be_undone: str | None = None
    needs_person: str | None = None
    performed_by: str | None = None
    affects: tuple[str, ...] = ()
    parameters: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("changes", "affects"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        where = f"step {self.step_id!r}"
        for name in ("step_id", "kind", "title", "precondition", "verification"):
            if not getattr(self, name).strip():
                raise PlanError(f"{where} has no {name}")
        if (self.undo is None) == (self.cannot_be_undone is None):
            raise PlanError(f"{where} must have either an undo or a reason why it cannot be undone")
        if not 0 < self.deadline_s < float("inf"):
            raise PlanError(f"{where} has a deadline of {self.deadline_s} s")
        items = [change.item for change in self.changes]
        if len(set(items)) < len(items):
            raise PlanError(f"{where} changes one item twice")
        object.__setattr__(self, "parameters", frozen_mapping(self.parameters, f"{where}, parameters"))

    def to_json(self) -> dict[str, Json]:
        return {
            "step_id": self.step_id,
            "kind": self.kind,
            "title": self.title,
            "precondition": self.precondition,
            "verification": self.verification,
            "deadline_s": self.deadline_s,
            "changes": tuple(change.to_json() for change in self.changes),
            "undo": self.undo,
            "cannot_be_undone": self.cannot_be_undone,
            "needs_person": self.needs_person,
            "performed_by": self.performed_by,
            "affects": self.affects,
            "parameters": self.parameters,
        }
