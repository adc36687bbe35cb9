"""The input of a plan for offsets: who asks, what was asked for, and what was read. Nothing here changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from kit.clients.cluster import Cluster
from kit.engine.model.plan import STOP
from kit.engine.model.values import Json
from kit.errors import InputError
from kit.moves.offsets.fetch import Stores
from kit.moves.offsets.moves import NOTHING, Stored
from kit.moves.offsets.rules import NEVER_BACKWARDS
from kit.moves.offsets.selection import Key, Place
from kit.tables.conditions import Condition
from kit.tables.groups import LogOffset


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """The author and time of a plan, and what the plan may do. ``overrides`` are names of rules. ``is_exclusive``:
    offsets are written by the group's only member (``kit.moves.offsets.exclusive``), in Kafka alone.

    ``allow_backwards`` overrides the rule ``never_backwards``; ``skip_backwards`` leaves out the offsets that would go
    backwards. With ``new_groups`` a reset or an import may write for groups that neither store knows.

    Raises:
        InputError: offsets that go backwards are both allowed and skipped.
    """

    made_by: str
    now: datetime
    allow_backwards: bool = False
    skip_backwards: bool = False
    new_groups: bool = False
    is_exclusive: bool = False
    overrides: tuple[str, ...] = ()
    on_failure: str = STOP

    def __post_init__(self) -> None:
        if self.allow_backwards and self.skip_backwards:
            raise InputError("offsets that go backwards are either allowed or skipped, not both")

    @property
    def overridden(self) -> tuple[str, ...]:
        return (*self.overrides, *([NEVER_BACKWARDS.check_id] if self.allow_backwards else []))


@dataclass(frozen=True, slots=True)
class CopySource:
    """The source of a copy: the store, and for each group that is read the group that is written."""

    store: str
    groups: Mapping[str, str]

    def read_for(self, targets: Collection[str]) -> list[str]:
        """The groups that are read to write the groups ``targets``."""
        return [group_id for group_id, written in self.groups.items() if written in targets]


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The store that is written, and all that was read to plan it.

    ``parameters`` describe the request in the plan. ``unread`` are groups that the selection takes but that could not
    be read, with the error. ``source`` is None unless the plan is a copy. ``risks`` are sentences about the request,
    ``findings`` are rules of this kind of plan alone.
    """

    cluster: Cluster
    kind: str
    store: str
    stores: Stores
    logs: Mapping[Place, LogOffset]
    options: PlanOptions
    parameters: Mapping[str, Json] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    source: CopySource | None = None
    risks: tuple[str, ...] = ()
    findings: tuple[Condition, ...] = ()

    def committed(self, key: Key) -> Stored:
        """The offset that the store holds now."""
        return self.stores.group(self.store, key[0]).offsets.get(key[1:], NOTHING)
