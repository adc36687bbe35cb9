"""Consumers that print the same client id on several hosts: each is called by its client id and its place.

Java numbers client ids per process, and Spring gives each pod the same one. So a client id alone is no identity.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Protocol

Place = tuple[str, str | None]
"""The file, without what rotation adds to its name, and the origin that the lines' prefix names."""
_ROTATED = re.compile(
    r"[._-]\d{4}-?\d\d-?\d\d(?:[._T-]\d+)*(?=\.(?:log|out|err|txt)\b|$)"  # app-2024-05-01.0.log
    r"|(?<=\.(?:log|out|err|txt))[._-]\d[\d._T-]*$"  # app.log.1
)


class Consumer(Protocol):
    """A consumer of the logs: the parts of ``ConsumerInstance`` that place it."""

    stream: tuple[Any, ...]
    member_ids: set[str]
    place: str | None

    @property
    def base_name(self) -> str: ...

    def value_of(self, name: str) -> Any: ...


def name_places(instances: Iterable[Consumer]) -> None:
    """Set ``place`` of each consumer whose name another place of its group has, too.

    Rotated files are one place. Two files that hold lines of one member id are one place, whatever their names.
    """
    by_name: dict[Any, dict[Place, list[Consumer]]] = {}
    for instance in instances:
        places = by_name.setdefault((instance.value_of("group_id"), instance.base_name), {})
        places.setdefault(_place(instance.stream), []).append(instance)
    for places in by_name.values():
        if len(places) < 2:
            continue
        together = _joined(places)
        if len(together) < 2:
            continue
        label = _labels(together)
        for place, same in together.items():
            for instance in same:
                instance.place = label(place)


def _place(stream: tuple[Any, ...]) -> Place:
    return _ROTATED.sub("", re.sub(r"\.(?:gz|bz2)$", "", str(stream[0]))), stream[1]


def _joined(places: dict[Place, list[Consumer]]) -> dict[Place, list[Consumer]]:
    """The places, with those that share a member id under the first of them."""
    together: list[tuple[Place, list[Consumer], set[str]]] = []
    for place, same in places.items():
        group, members = list(same), {member for each in same for member in each.member_ids}
        first = place
        for known in [each for each in together if each[2] & members]:
            together.remove(known)
            first = min((known[0], first), key=list(places).index)
            group, members = known[1] + group, members | known[2]
        together.append((first, group, members))
    return {place: group for place, group, _ in together}


def _labels(places: Iterable[Place]) -> Callable[[Place], str]:
    """The shortest name of each place that no other place has: its origin, or the end of its file's path."""
    known = list(places)
    if None not in (origins := [origin for _, origin in known]) and len(set(origins)) == len(known):
        return lambda place: str(place[1])
    for depth in count(1):
        tails = {place: _tail(place, depth) for place in known}
        if len(set(tails.values())) == len(known):
            return lambda place: tails[place]
    raise AssertionError("places differ")


def _tail(place: Place, depth: int) -> str:
    file = "/".join(place[0].split("/")[-depth:])
    return file if place[1] is None else f"{place[1]} of {file}"
