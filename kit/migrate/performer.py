"""What carries a plan's steps out, seen from the run: protocols, and what their methods answer.

A performer for one kind of cluster implements :class:`Performer`; a lock, for instance an ephemeral znode, implements
:class:`Lock`. Only ``act`` and ``undo`` may write. They report each item as soon as it is written and read back::

    def act(self, step, report):
        for change in step.changes:
            outcome = self._write_if(change.before, change)   # conditional: a version, a generation, a group's state
            report([outcome])                                 # durable when it returns; raises when the run must stop

Who writes in batches reports a batch at a time. An item that is as desired already is ``UNCHANGED`` and not written
again: after a crash ``act`` is called again on a step that is partly done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from kit.errors import WrongCluster
from kit.migrate.plan import Plan
from kit.migrate.step import Step
from kit.migrate.values import Json, frozen


class Outcome(StrEnum):
    """What became of one item."""

    CONFIRMED = "CONFIRMED"
    """Written, and read back so."""
    UNCHANGED = "UNCHANGED"
    """It was so already; nothing was written."""
    REFUSED = "REFUSED"
    """Not written: the cluster or a condition said no."""
    UNKNOWN = "UNKNOWN"
    """It was sent, or may have been, and nobody can tell what came of it."""
    NOT_ATTEMPTED = "NOT_ATTEMPTED"
    """Nothing was sent."""


class StepState(StrEnum):
    """What the cluster says of a step, whatever the journal says."""

    DONE = "DONE"
    NOT_DONE = "NOT_DONE"
    PARTLY = "PARTLY"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """One item: what became of it, what it was before and is after, and why where it did not work."""

    item: str
    outcome: Outcome
    before: Json = None
    after: Json = None
    error: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "before", frozen(self.before, f"{self.item} before"))
        object.__setattr__(self, "after", frozen(self.after, f"{self.item} after"))


@dataclass(frozen=True, slots=True)
class Checked:
    """Whether a step may begin, and why, in a sentence."""

    ok: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Verified:
    """Whether a step's verification holds now, in a sentence, and what that was read from."""

    ok: bool
    sentence: str
    evidence: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", frozen(self.evidence, "evidence"))


@dataclass(frozen=True, slots=True)
class ActedRecord:
    """What the journal knows of one step's acts: the first ``before`` and the last outcome of each item.

    An item that was being written when the run was cut off may be missing: the plan's ``before`` and the cluster tell.
    """

    step_id: str
    outcomes: tuple[ItemOutcome, ...]


Report: TypeAlias = Callable[[Sequence[ItemOutcome]], None]
"""Given to ``act`` and ``undo``: makes outcomes durable, then raises Stopped or LockLost if that was the last write.

Let what it raises pass. Nothing else may be on its way to the cluster when it is called.
"""


class Performer(Protocol):
    """Carries out the steps of one kind of plan on one cluster.

    Errors of the project's tree fail the step with their sentence; while verifying, ConnectError is waited out until
    the deadline.
    """

    @property
    def cluster_id(self) -> str:
        """The cluster that answers now; another than the plan's is refused."""
        ...

    def observe(self, plan: Plan) -> Mapping[str, Json]:
        """The plan's observations, under the same names, as they are now. Reads only."""
        ...

    def check(self, step: Step) -> Checked:
        """Whether the step's precondition holds. Reads only; is also asked of a step that is partly done."""
        ...

    def state(self, step: Step) -> StepState:
        """Whether the step is done, by what the cluster says. Reads only."""
        ...

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Carry the step out, each write conditional; the outcome of every item, reported already or not."""
        ...

    def verify(self, step: Step) -> Verified:
        """Whether the step has had its effect. Reads only; asked again until it holds or the deadline is over."""
        ...

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Take the step back, each write conditional; after it ``state`` has to become NOT_DONE."""
        ...


class Lock(Protocol):
    """One run at a time per target; it ends with its holder, however that ends."""

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """Raises:
        TargetBusy: another run has one of the targets; who and since when.
        """
        ...

    def assert_held(self) -> None:
        """Raises:
        LockLost: it may be somebody else's by now.
        """
        ...

    def release(self) -> None:
        """Give it back; a lock that was lost is no error."""
        ...


def refuse_other_cluster(plan: Plan, performer: Performer) -> None:
    """Raises:
    WrongCluster: another cluster answers than the plan is for.
    """
    found = performer.cluster_id
    if found != plan.cluster_id:
        raise WrongCluster(f"the plan is for cluster {plan.cluster_id}, but {found} answers: nothing was done")
