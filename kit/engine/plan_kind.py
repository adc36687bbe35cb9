"""Define what a subject registers of a kind of plan, and what its plans are made and executed with.

Places are ``module:name``, so that a plan loads the code of its own kind alone.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kit.engine.model.clock import Clock
from kit.engine.model.performer import Lock, Performer
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import Recipes

if TYPE_CHECKING:
    from kit.clients.cluster import Cluster  # The help of each verb loads this module, and no client.


@dataclass(frozen=True, slots=True)
class PlanContext:
    """``say``: shows the operator what to do now. ``runs``: the folder of plans and runs. ``folder``: of the run."""

    cluster: Cluster
    say: Callable[[str], None]
    clock: Clock
    runs: Path
    folder: Path | None = None


class PlanRequest(Protocol):
    """The request for a plan; each kind of plan has a class of its own."""

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Read the cluster and plan; writes nothing to it."""
        ...


@dataclass(frozen=True, slots=True)
class LockKind:
    """``lock``: the place of a function that makes the ``Lock`` of a run on a cluster. ``refusal``: the place of a
    function that raises PlanError if no run on the cluster could have that lock; None: a run on each can."""

    lock: str
    refusal: str | None = None

    def lock_of(self, cluster: Cluster) -> Lock:
        lock: Lock = pkgutil.resolve_name(self.lock)(cluster)
        return lock

    def refuse_unlockable(self, cluster: Cluster) -> None:
        if self.refusal is not None:
            pkgutil.resolve_name(self.refusal)(cluster)


@dataclass(frozen=True, slots=True)
class PlanKind:
    """``executes``: whether a plan is of this kind. ``recipes``: the place of a ``Recipes``. ``performer``: the place
    of a function of a ``PlanContext``. ``lock``: what a run of it takes."""

    executes: Callable[[Plan], bool]
    recipes: str
    performer: str
    lock: LockKind

    def load_recipes(self) -> Recipes:
        recipes: Recipes = pkgutil.resolve_name(self.recipes)
        return recipes

    def performer_of(self, context: PlanContext) -> Performer:
        performer: Performer = pkgutil.resolve_name(self.performer)(context)
        return performer


def named(kind: str) -> Callable[[Plan], bool]:
    """Return whether ``Plan.kind`` is this name."""
    return lambda plan: plan.kind == kind
