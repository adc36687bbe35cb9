"""A request to move committed offsets, as traits; and the function that plans it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import traitlets as t

from kit.clients.cluster import Cluster
from kit.engine.model.plan import STOP, UNDO, Plan
from kit.errors import InputError
from kit.moves.offsets.fetch import STORES
from kit.moves.offsets.plan import (
    COPY,
    DELETE,
    IMPORT,
    RESET,
    PlanOptions,
    Selection,
    parse_reset,
    plan_copy,
    plan_delete,
    plan_import,
    plan_reset,
    select,
)
from kit.operations.operations import operator
from kit.tables.groups import KAFKA, ZOOKEEPER

REQUEST = (
    "what", "source", "target", "groups", "topics", "partitions", "selection", "to", "to_group", "file",
    "other_cluster", "edited", "allow_backwards", "skip_backwards", "new_groups", "exclusive", "overrides",
    "on_failure",
)  # fmt: skip


class OffsetRequest(t.HasTraits):
    """An invalid value raises ``InputError`` when it is set or when the request is planned."""

    what = t.Unicode(COPY, help="copy, reset, import or delete.")
    source = t.Unicode(ZOOKEEPER, help="The store to copy from: kafka or zookeeper.")
    target = t.Unicode(KAFKA, help="The store to write: kafka or zookeeper.")
    groups = t.Unicode(help="Group ids, separated by commas.")
    topics = t.Unicode(help="Topics, separated by commas; empty: all topics of the groups.")
    partitions = t.Unicode(help="Partition numbers, separated by commas; empty: all partitions of the topics.")
    selection = t.Any(
        None, help="Instead of groups, topics and partitions: a polars frame with such columns; kept as Selection."
    )
    to = t.Unicode("earliest", help="Where to reset to: earliest, latest, an offset, +n, -n, -90m, or a time.")
    to_group = t.Unicode(help="The group to write a copy for; empty: the group that is read.")
    file = t.Unicode(help="The file to import.")
    other_cluster = t.Bool(False, help="The file may be another cluster's.")
    edited = t.Bool(False, help="The file may have been edited.")
    allow_backwards = t.Bool(False, help="Offsets may go backwards: records are read again.")
    skip_backwards = t.Bool(False, help="Leave out offsets that would go backwards.")
    new_groups = t.Bool(False, help="Groups that neither store knows may be written.")
    exclusive = t.Bool(False, help="Each group in Kafka is joined while its offsets are written.")
    overrides = t.Unicode(help="Names of rules to override, separated by blanks or commas; they go into the evidence.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="What happens when a step fails: stop, or undo the executed steps.")

    def selected(self) -> Selection | None:
        """The selection, by the rows of a frame or by names; None: nothing is selected.

        Raises:
            InputError: both are given, partitions have no topics, or a partition is no number.
        """
        groups, topics, partitions = _listed(self.groups), _listed(self.topics), _numbers(self.partitions)
        if self.selection is None:
            if not (groups or topics or partitions):
                return None
            return select(groups=groups or None, topics=topics or None, partitions=partitions or None)
        if groups or topics or partitions:
            raise InputError("select offsets by a frame's rows or by names, not both")
        chosen: Selection = self.selection
        return chosen

    def required_selection(self) -> Selection:
        """The selected offsets, of which there are some.

        Raises:
            InputError: nothing is selected, or see ``selected``.
        """
        selection = self.selected()
        if selection is None:
            raise InputError("select offsets: name groups or topics, or give a frame of them as selection")
        return selection

    def to_groups(self) -> dict[str, str]:
        """The group that is read → the group that is written, where their names differ.

        Raises:
            InputError: ``to_group`` is given, but not exactly one group is selected.
        """
        written = self.to_group.strip()
        if self.what != COPY or not written:
            return {}
        groups = sorted(self.required_selection().groups or ())
        if len(groups) != 1:
            raise InputError(
                f"a copy for group {written!r} reads exactly one group, not {len(groups) or 'all'}: select one group"
            )
        return {groups[0]: written}

    def path(self) -> Path:
        """The file that the field names.

        Raises:
            InputError: no file is named.
        """
        if not self.file.strip():
            raise InputError("name the file to import")
        return Path(self.file.strip()).expanduser()

    def planner(self) -> Callable[[Cluster], Plan]:
        """The function that plans the request as it is now; it raises as ``kit.moves.offsets.plan``.

        Raises:
            InputError: the request is not valid.
        """
        make = {COPY: self._copy, RESET: self._reset, IMPORT: self._import, DELETE: self._delete}[self.what]()
        options = partial(
            PlanOptions,
            allow_backwards=self.allow_backwards,
            skip_backwards=self.skip_backwards,
            new_groups=self.new_groups,
            is_exclusive=self.exclusive,
            overrides=tuple(self.overrides.replace(",", " ").split()),
            on_failure=self.on_failure,
        )
        options(operator(), datetime.now(UTC))
        return lambda cluster: make(cluster, options(operator(), datetime.now(UTC)))

    def _copy(self) -> Callable[[Cluster, PlanOptions], Plan]:
        source, target, selection, renamed = self.source, self.target, self.required_selection(), self.to_groups()
        return lambda cluster, options: plan_copy(cluster, source, target, selection, options, renamed)

    def _reset(self) -> Callable[[Cluster, PlanOptions], Plan]:
        store, selection, reset = self.target, self.required_selection(), parse_reset(self.to.strip())
        return lambda cluster, options: plan_reset(cluster, store, selection, reset, options)

    def _import(self) -> Callable[[Cluster, PlanOptions], Plan]:
        path, store, selection, other, edited = (
            self.path(), self.target, self.selected(), self.other_cluster, self.edited,
        )  # fmt: skip
        return lambda cluster, options: plan_import(
            cluster, path, store, options, selection, other_cluster=other, edited=edited
        )

    def _delete(self) -> Callable[[Cluster, PlanOptions], Plan]:
        store, selection = self.target, self.required_selection()
        return lambda cluster, options: plan_delete(cluster, store, selection, options)

    @t.validate("what")
    def _known_what(self, proposal: Mapping[str, Any]) -> str:
        return _one_of(proposal["value"], (COPY, RESET, IMPORT, DELETE), "there is no action")

    @t.validate("source", "target")
    def _known_store(self, proposal: Mapping[str, Any]) -> str:
        return _one_of(proposal["value"], STORES, "there is no store")

    @t.validate("selection")
    def _as_selection(self, proposal: Mapping[str, Any]) -> Selection | None:
        value = proposal["value"]
        if isinstance(value, pl.DataFrame):
            return select(value)
        if value is None or isinstance(value, Selection):
            return value
        raise InputError(f"a selection is a polars frame, not {type(value).__name__}")


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.replace("\n", ",").split(",") if name.strip()]


def _numbers(text: str) -> list[int]:
    wrong = [name for name in _listed(text) if not name.isdecimal()]
    if wrong:
        raise InputError(f"partition {wrong[0]!r} is no number; partitions are 0, 1, 2, …")
    return [int(name) for name in _listed(text)]


def _one_of(value: str, known: tuple[str, ...], refused: str) -> str:
    if value not in known:
        raise InputError(f"{refused} {value!r}; there are {', '.join(known)}")
    return value
