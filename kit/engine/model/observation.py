"""Compare what a plan saw of the cluster with the present, and with how far it may move until the plan is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kit.engine.model.values import Json, canonical, frozen
from kit.errors import InputError

EXACT = "exact"
MAY_GROW = "may_grow"
IGNORED = "ignored"
WITHIN = "within"
TOLERANCES = (EXACT, MAY_GROW, IGNORED, WITHIN)


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing observed. ``tolerance``: ``exact``; ``may_grow`` (numbers, such as offsets of a group at work);
    ``ignored`` (it is shown only); ``within`` (numbers, up to ``within`` away in either direction).

    Each entry of a mapping or a list is compared by itself; the keys and the length are always exact.
    """

    value: Json
    tolerance: str = EXACT
    within: float | None = None

    def __post_init__(self) -> None:
        if self.tolerance not in TOLERANCES:
            raise InputError(f"the tolerance {self.tolerance!r} is none of {', '.join(TOLERANCES)}")
        if (self.within is None) == (self.tolerance == WITHIN):
            raise InputError(f"`within` belongs to the tolerance {WITHIN!r} and to no other")
        if self.within is not None and not 0 <= self.within < float("inf"):
            raise InputError(f"`within` must be a number from 0, not {self.within}")
        object.__setattr__(self, "value", frozen(self.value, "an observation"))

    def to_json(self) -> dict[str, Json]:
        return {"value": self.value, "tolerance": self.tolerance, "within": self.within}


@dataclass(frozen=True, slots=True)
class Difference:
    """One observation that moved too far; ``expected`` and ``found`` are JSON text, None where there is nothing."""

    item: str
    expected: str | None
    found: str | None
    tolerance: str

    @property
    def sentence(self) -> str:
        expected, found = ("nothing" if text is None else text for text in (self.expected, self.found))
        return f"{self.item}: expected {expected} ({self.tolerance.replace('_', ' ')}), found {found}"


def differences(planned: Mapping[str, Observation], current: Mapping[str, Json]) -> tuple[Difference, ...]:
    """Everything beyond its tolerance, item by item. A value that the plan did not have is a difference too."""
    moved: list[Difference] = []
    for name, observation in planned.items():
        if observation.tolerance == IGNORED:
            continue
        if name not in current:
            moved.append(Difference(name, canonical(observation.value), None, observation.tolerance))
        else:
            moved += _compared(name, observation.value, frozen(current[name], name), observation)
    unplanned = [name for name in current if name not in planned]
    return (*moved, *(Difference(name, None, canonical(frozen(current[name], name)), EXACT) for name in unplanned))


def _compared(item: str, expected: Json, actual: Json, by: Observation) -> Iterator[Difference]:
    if isinstance(expected, Mapping) and isinstance(actual, Mapping):
        for key in dict.fromkeys([*expected, *actual]):
            place = f"{item}/{key}"
            if key in expected and key in actual:
                yield from _compared(place, expected[key], actual[key], by)
            else:
                yield Difference(place, _entry(expected, key), _entry(actual, key), by.tolerance)
    elif isinstance(expected, tuple) and isinstance(actual, tuple) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual)):
            yield from _compared(f"{item}[{index}]", one, other, by)
    elif not _is_near(expected, actual, by):
        yield Difference(item, canonical(expected), canonical(actual), by.tolerance)


def _entry(side: Mapping[str, Json], key: str) -> str | None:
    return canonical(side[key]) if key in side else None


def _is_near(expected: Json, actual: Json, by: Observation) -> bool:
    if not (_is_number(expected) and _is_number(actual)):
        return canonical(expected) == canonical(actual)
    assert isinstance(expected, int | float)
    assert isinstance(actual, int | float)
    if by.tolerance == MAY_GROW:
        return actual >= expected
    return abs(actual - expected) <= (by.within or 0)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
