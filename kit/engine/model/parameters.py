"""A step's parameters as a typed value: what it is made from, what its actor acts on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import PlanError

_LATER = "later"


def later_flag() -> Any:
    """A parameter, true or false, that plans of older versions lack. False is not written either."""
    return field(default=False, metadata={_LATER: True})


def later_mapping() -> Any:
    """A parameter, a mapping, that plans of older versions lack. An empty one is not written either."""
    return field(default_factory=dict, metadata={_LATER: True})


@dataclass(frozen=True, slots=True)
class StepParameters:
    """The parameters of one kind of step: each subclass has a field per parameter.

    >>> from kit.moves.group.soak import SoakParameters, soak_step
    >>> step = soak_step("02-soak", SoakParameters("orders", "MEZKCC", soak_s=60.0, lag_tolerance=1000))
    >>> SoakParameters.of(step).soak_s
    60.0

    ``UNUSED``: parameters that only other kinds of steps use. They are written with these values, and never read.
    """

    UNUSED: ClassVar[Mapping[str, Json]] = {}

    @classmethod
    def of(cls, step: Step) -> Self:
        """Read from a step, every value as it is there.

        Raises:
            PlanError: one is missing, one is too many, or one is of another type.
        """
        kinds = _kinds(cls)  # type: ignore[arg-type]  # A class is hashable.
        later = {each.name for each in fields(cls) if _LATER in each.metadata}
        unused = cls._unused()
        given = {name: value for name, value in step.parameters.items() if name not in unused or value != unused[name]}
        odd = (given.keys() ^ kinds.keys()) - (later - given.keys())
        if odd:
            raise PlanError(
                f"step {step.step_id!r} of kind {step.kind!r}: parameter {min(odd)!r} is missing or unknown;"
                " if another version made the plan: make a new one"
            )
        for name, value in given.items():
            if not _is(value, kinds[name]):
                raise PlanError(f"step {step.step_id!r} of kind {step.kind!r}: parameter {name!r} can't be {value!r}")
        return cls(**given)

    def to_json(self) -> dict[str, Json]:
        values = {each: getattr(self, each.name) for each in fields(self)}
        own = {each.name: value for each, value in values.items() if value or _LATER not in each.metadata}
        return {**self._unused(), **own}

    @classmethod
    def _unused(cls) -> Mapping[str, Json]:
        own = {each.name for each in fields(cls)}
        return {name: value for name, value in cls.UNUSED.items() if name not in own}


@cache
def _kinds(cls: type[StepParameters]) -> Mapping[str, Any]:
    """The type of each field. To evaluate the annotations takes longer than all other checks of a step."""
    hints = get_type_hints(cls)
    return {each.name: hints[each.name] for each in fields(cls)}


def _is(value: object, kind: Any) -> bool:
    """Return whether a value is of a kind that JSON has; a whole number is also a float, and a truth value is no
    number.
    """
    inner = get_args(kind)
    if get_origin(kind) is UnionType:
        return any(_is(value, each) for each in inner)
    if get_origin(kind) is tuple:
        return isinstance(value, tuple) and all(_is(each, inner[0]) for each in value)
    if get_origin(kind) is Mapping:
        return isinstance(value, Mapping) and all(_is(each, inner[1]) for each in value.values())
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    return isinstance(value, NoneType if kind is None else kind)
