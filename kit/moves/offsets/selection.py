"""The groups, topics and partitions of an operation on offsets, given as a frame or as lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import polars as pl

from kit.errors import InputError, NotFound
from kit.text.naming import listed

Place: TypeAlias = tuple[str, int]
"""A topic and a partition."""
Key: TypeAlias = tuple[str, str, int]
"""A group, a topic and a partition."""

COLUMNS = ("group_id", "topic", "partition")
_TYPES: Mapping[str, type] = {"group_id": str, "topic": str, "partition": int}


@dataclass(frozen=True, slots=True)
class Selection:
    """``keys`` are values of ``columns``; a missing column selects everything.

    ``groups`` are the named groups; None: every group.
    """

    columns: tuple[str, ...]
    keys: frozenset[tuple[str | int, ...]]
    groups: frozenset[str] | None = field(init=False, repr=False, compare=False)
    _named: Mapping[str | None, tuple[tuple[str, int | None], ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        named: dict[str | None, list[tuple[str, int | None]]] = {}
        for key in self.keys:
            row = dict(zip(self.columns, key))
            places = named.setdefault(_text(row.get("group_id")), [])
            if "topic" in row:
                places.append((str(row["topic"]), None if "partition" not in row else int(row["partition"])))
        has_groups = "group_id" in self.columns
        object.__setattr__(self, "groups", frozenset(str(key[0]) for key in self.keys) if has_groups else None)
        object.__setattr__(self, "_named", {group_id: tuple(places) for group_id, places in named.items()})

    def accepts(self, group_id: str) -> bool:
        """Return whether anything of the group may be selected."""
        return self.groups is None or group_id in self.groups

    def takes(self, group_id: str, topic: str, partition: int) -> bool:
        row = {"group_id": group_id, "topic": topic, "partition": partition}
        return tuple(row[name] for name in self.columns) in self.keys

    def named_places(self, group_id: str) -> tuple[tuple[str, int | None], ...]:
        """The topics, and partitions if given, that are named for a group."""
        return self._named.get(group_id if self.groups is not None else None, ())

    def refuse_unknown_groups(self, known: Collection[str], where: str) -> None:
        """Check that each group that is named is there.

        Raises:
            NotFound: a named group is not among ``known``.
        """
        unknown = sorted((self.groups or frozenset()) - frozenset(known))
        if unknown:
            raise NotFound(
                f"{_first(unknown, 'group')} not in {where}: check the names, or try the other store. To see a "
                "group's offsets in Kafka, a login needs DESCRIBE on the group and on their topics"
            )

    def places(self, group_id: str, stored: Iterable[Place], partitions: Mapping[str, Collection[int]]) -> list[Place]:
        """The selected partitions of a group: the named ones among ``partitions``; without names the ``stored`` ones.

        A topic counts as named only together with groups: a group that never read the topic gets no offset of it.

        Raises:
            NotFound: the cluster does not have a named topic or partition.
        """
        if "topic" not in self.columns or self.groups is None:
            return sorted(place for place in stored if self.takes(group_id, *place))
        selected: set[Place] = set()
        for topic, partition in self.named_places(group_id):
            if topic not in partitions:
                raise NotFound(f"group {group_id!r}: there is no topic {topic!r} in this cluster: check its name")
            numbers = partitions[topic] if partition is None else [partition]
            if partition is not None and partition not in partitions[topic]:
                raise NotFound(
                    f"group {group_id!r}: there is no {topic}-{partition}; {topic!r} has {len(partitions[topic])}"
                    " partitions: choose one of these"
                )
            selected |= {(topic, number) for number in numbers}
        return sorted(selected)


def select(
    frame: pl.DataFrame | None = None,
    *,
    groups: Iterable[str] | str | None = None,
    topics: Iterable[str] | str | None = None,
    partitions: Iterable[int] | None = None,
) -> Selection:
    """A selection by the rows of a frame (``group_id``, ``topic``, ``partition``; others are ignored), or by lists.

    A missing column or list selects everything. Lists are combined, each with each.

    Raises:
        InputError: nothing is selected, both a frame and lists are given, a value is null or of another type, or
            partitions are given without topics.
    """
    lists = {"group_id": _listed(groups), "topic": _listed(topics), "partition": partitions}
    given = {name: list(values) for name, values in lists.items() if values is not None}
    if frame is not None and given:
        raise InputError("a selection is a frame or lists, not both")
    if frame is None:
        if not given:
            raise InputError("nothing is selected: name groups, topics or a frame of them")
        frame = pl.DataFrame({"selected": [True]})
        for name, values in given.items():
            _refuse_other_kinds(name, values)
            frame = frame.join(pl.DataFrame({name: values}, strict=False), how="cross")
    return _of_frame(frame)


def _of_frame(frame: pl.DataFrame) -> Selection:
    columns = tuple(name for name in COLUMNS if name in frame.columns)
    if not columns:
        raise InputError(
            f"a selection has one of the columns {listed(COLUMNS, 'or')}, not only {listed(frame.columns)}"
        )
    if columns[-1] == "partition" and "topic" not in columns:
        raise InputError("partitions are selected without their topics: name topics too")
    if frame.is_empty():
        raise InputError("the selection is empty: no group, topic or partition is in it")
    for name in columns:
        _refuse_other_kinds(name, frame[name].to_list())
    return Selection(columns, frozenset(frame.select(columns).iter_rows()))


def _refuse_other_kinds(name: str, values: Iterable[object]) -> None:
    kind = _TYPES[name]
    for value in values:
        if type(value) is not kind or value == "" or (isinstance(value, int) and value < 0):
            raise InputError(f"the selection's {name} holds {value!r}; each must be {_KINDS[name]}")


_KINDS = {"group_id": "a group's name", "topic": "a topic's name", "partition": "a number, 0 or higher"}


def _text(value: str | int | None) -> str | None:
    return None if value is None else str(value)


def _listed(values: Iterable[str] | str | None) -> Iterable[str] | None:
    return [values] if isinstance(values, str) else values


def _first(names: list[str], noun: str) -> str:
    shown = ", ".join(map(repr, names[:3]))
    return f"{noun} {shown} is" if len(names) == 1 else f"{len(names)} {noun}s ({shown}{', …' * (len(names) > 3)}) are"
