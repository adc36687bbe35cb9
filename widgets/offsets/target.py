"""Which committed offsets are to become what, as traits; and the planner that they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import traitlets as t

from kit.cluster import Cluster
from kit.errors import InputError
from kit.migrate.engine.plan import STOP, UNDO, Plan
from kit.migrate.offsets.fetch import STORES
from kit.migrate.offsets.plan import (
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
from kit.migrate.operations import operator
from kit.tables.groups import KAFKA, ZOOKEEPER

WISH = (
    "what", "source", "target", "groups", "topics", "partitions", "selection", "to", "to_group", "file",
    "other_cluster", "edited", "allow_backwards", "skip_backwards", "new_groups", "overrides", "on_failure",
)  # fmt: skip


class OffsetWish(t.HasTraits):
    """What can't be wished so is refused by ``InputError``, when it is set or when it is planned."""

    what = t.Unicode(COPY, help="copy, reset, import or delete.")
    source = t.Unicode(ZOOKEEPER, help="The store that is copied from: kafka or zookeeper.")
    target = t.Unicode(KAFKA, help="The store that is written: kafka or zookeeper.")
    groups = t.Unicode(help="Groups, with commas between.")
    topics = t.Unicode(help="Topics, with commas between; empty: all of the groups.")
    partitions = t.Unicode(help="Numbers of partitions, with commas between; empty: all of the topics.")
    selection = t.Any(None, help="Instead of those: a polars frame with group_id, topic, partition; kept as Selection.")
    to = t.Unicode("earliest", help="Where to reset to: earliest, latest, an offset, +n, -n, -90m, or a time.")
    to_group = t.Unicode(help="The group that a copy is written for; empty: the one that is read.")
    file = t.Unicode(help="The file to import.")
    other_cluster = t.Bool(False, help="The file may be another cluster's.")
    edited = t.Bool(False, help="The file may have been edited.")
    allow_backwards = t.Bool(False, help="Offsets may go down: records are handed out again.")
    skip_backwards = t.Bool(False, help="Leave out what would go down.")
    new_groups = t.Bool(False, help="Groups that neither store knows may be written.")
    overrides = t.Unicode(help="Rules to override, by name, with a blank or comma between; goes into the evidence.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="Whether a step that fails makes the run take back what it did.")

    def selected(self) -> Selection | None:
        """What is selected, by a frame's rows or by names; None: nothing is.

        Raises:
            InputError: both ways are used, partitions have no topics, or one of them is no number.
        """
        groups, topics, partitions = _listed(self.groups), _listed(self.topics), _numbers(self.partitions)
        if self.selection is None:
            if not (groups or topics or partitions):
                return None
            return select(groups=groups or None, topics=topics or None, partitions=partitions or None)
        if groups or topics or partitions:
            raise InputError("offsets are selected by a frame's rows or by names, not both")
        chosen: Selection = self.selection
        return chosen

    def wanted_selection(self) -> Selection:
        """Raises:
        InputError: nothing is selected, or see ``selected``.
        """
        found = self.selected()
        if found is None:
            raise InputError("say whose offsets: name groups or topics, or give a frame of them as selection")
        return found

    def to_groups(self) -> dict[str, str]:
        """Who is written for whom.

        Raises:
            InputError: another name is wished for more or less than one group.
        """
        written = self.to_group.strip()
        if self.what != COPY or not written:
            return {}
        groups = sorted(self.wanted_selection().groups or ())
        if len(groups) != 1:
            raise InputError(f"a copy for group {written!r} is of exactly one group, not of {len(groups) or 'all'}")
        return {groups[0]: written}

    def path(self) -> Path:
        """Raises:
        InputError: no file is named.
        """
        if not self.file.strip():
            raise InputError("say which file is to be imported")
        return Path(self.file.strip()).expanduser()

    def planner(self) -> Callable[[Cluster], Plan]:
        """What plans the wish as it is now; it raises as ``kit.migrate.offsets.plan``.

        Raises:
            InputError: it can't be wished so.
        """
        make = {COPY: self._copy, RESET: self._reset, IMPORT: self._import, DELETE: self._delete}[self.what]()
        options = partial(
            PlanOptions,
            allow_backwards=self.allow_backwards,
            skip_backwards=self.skip_backwards,
            new_groups=self.new_groups,
            overrides=tuple(self.overrides.replace(",", " ").split()),
            on_failure=self.on_failure,
        )
        options(operator(), datetime.now(UTC))
        return lambda cluster: make(cluster, options(operator(), datetime.now(UTC)))

    def _copy(self) -> Callable[[Cluster, PlanOptions], Plan]:
        source, target, selection, renamed = self.source, self.target, self.wanted_selection(), self.to_groups()
        return lambda cluster, options: plan_copy(cluster, source, target, selection, options, renamed)

    def _reset(self) -> Callable[[Cluster, PlanOptions], Plan]:
        store, selection, reset = self.target, self.wanted_selection(), parse_reset(self.to.strip())
        return lambda cluster, options: plan_reset(cluster, store, selection, reset, options)

    def _import(self) -> Callable[[Cluster, PlanOptions], Plan]:
        path, store, selection, other, edited = (
            self.path(), self.target, self.selected(), self.other_cluster, self.edited,
        )  # fmt: skip
        return lambda cluster, options: plan_import(
            cluster, path, store, options, selection, other_cluster=other, edited=edited
        )

    def _delete(self) -> Callable[[Cluster, PlanOptions], Plan]:
        store, selection = self.target, self.wanted_selection()
        return lambda cluster, options: plan_delete(cluster, store, selection, options)

    @t.validate("what")
    def _known_what(self, proposal: Mapping[str, Any]) -> str:
        return _one_of(proposal["value"], (COPY, RESET, IMPORT, DELETE), "what is done with offsets is not")

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
        raise InputError(f"partition {wrong[0]!r} is no number from 0 on")
    return [int(name) for name in _listed(text)]


def _one_of(value: str, known: tuple[str, ...], refused: str) -> str:
    if value not in known:
        raise InputError(f"{refused} {value!r}; there are {', '.join(known)}")
    return value
