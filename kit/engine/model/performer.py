"""Define what executes a plan's steps, seen from the run: protocols, and the answers of their methods.

A performer for one kind of cluster implements :class:`Performer`; a lock, for instance an ephemeral znode, implements
:class:`Lock`. Only ``act`` and ``undo`` may write. They ask before each write, and report it once it is read back::

    def act(self, step, report):
        for change in step.changes:
            report.attempt([change.item])                     # raises when nothing more may be written
            outcome = self._write_if(change.before, change)   # conditional: a version, a generation, a group's state
            report([outcome])                                 # durable when it returns; raises when the run must stop

Who writes in batches asks and reports a batch at a time. An item that is as desired already is ``UNCHANGED`` and not
written again: after a crash ``act`` is called again on a step that is partly done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from kit.engine.model.plan import Plan
from kit.engine.model.step import Step
from kit.engine.model.values import Json, frozen
from kit.errors import WrongCluster


class Waiting(str):
    """The condition that a run waits for, as it is reported to the operator: nothing that a person has to do."""

    __slots__ = ()


class Outcome(StrEnum):
    """The outcome of one item."""

    CONFIRMED = "CONFIRMED"
    """Written, and read back."""
    UNCHANGED = "UNCHANGED"
    """It had the desired value already; nothing was written."""
    REFUSED = "REFUSED"
    """Not written: the cluster or a condition refused it."""
    UNKNOWN = "UNKNOWN"
    """The write was sent, or may have been, and its result is not known."""
    NOT_ATTEMPTED = "NOT_ATTEMPTED"
    """Nothing was sent."""


class StepState(StrEnum):
    """The state of a step by the cluster, whatever the journal has."""

    DONE = "DONE"
    NOT_DONE = "NOT_DONE"
    PARTLY = "PARTLY"

    @property
    def sentence(self) -> str:
        return _OF_STATES[self]


_OF_STATES = {
    StepState.DONE: "The cluster has every change of the step.",
    StepState.NOT_DONE: "The cluster has no change of the step.",
    StepState.PARTLY: "The cluster has some changes of the step.",
}


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """One item: outcome, what it was before and is after, and why where it did not work.

    ``details``: by what the actor knows its own write again, such as a znode's version.
    """

    item: str
    outcome: Outcome
    before: Json = None
    after: Json = None
    error: str | None = None
    details: Json = None

    def __post_init__(self) -> None:
        for name in ("before", "after", "details"):
            object.__setattr__(self, name, frozen(getattr(self, name), f"{self.item} {name}"))

    @property
    def is_written(self) -> bool:
        """It was or may have been written."""
        return self.outcome in (Outcome.CONFIRMED, Outcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer whether a step may begin, with the reason, in a sentence.

    ``left_alone``: for ``check_back``, the items that ``undo`` refuses for good, each with the reason.
    """

    ok: bool
    sentence: str
    left_alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verified:
    """The answer whether a step's verification holds now, in a sentence, and what that was read from."""

    ok: bool
    sentence: str
    evidence: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "evidence", frozen(self.evidence, "evidence"))


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """One write of one item that was begun; ``outcome`` None: the run was cut off before it could say."""

    item: str
    is_back: bool
    details: Json
    outcome: Outcome | None

    @property
    def is_open(self) -> bool:
        """The outcome is not known."""
        return self.outcome in (None, Outcome.UNKNOWN)


@dataclass(frozen=True, slots=True)
class ActedRecord:
    """The journal's record of one step's acts: the outcome of each item, and every write that was begun, in order.

    An item that was or may have been written stays so, whatever a later act reports. ``taken_back``: items that an
    earlier undo of this run restored, or found restored.
    """

    step_id: str
    outcomes: tuple[ItemOutcome, ...]
    attempts: tuple[WriteAttempt, ...] = ()
    taken_back: frozenset[str] = frozenset()

    @property
    def written(self) -> tuple[ItemOutcome, ...]:
        """Return what this run wrote or may have written, and has not undone: all that its undo may touch."""
        return tuple(it for it in self.outcomes if it.is_written and it.item not in self.taken_back)

    def without(self, items: Collection[str]) -> ActedRecord:
        """This record without these items: they are no longer this run's to touch."""
        outcomes = tuple(it for it in self.outcomes if it.item not in items)
        attempts = tuple(it for it in self.attempts if it.item not in items)
        return replace(self, outcomes=outcomes, attempts=attempts)

    @property
    def is_open(self) -> bool:
        """It is not known of some write whether it was made, or will be."""
        return any(attempt.is_open and not attempt.is_back for attempt in self.attempts)


class Report(Protocol):
    """Given to ``act`` and ``undo``. Let what it raises pass.

    ``acted`` is what the journal knew of the step when this process took the run up.
    """

    acted: ActedRecord

    def attempt(self, items: Sequence[str], details: Json = None) -> None:
        """Ask whether these items may be written now, and make it durable that they are about to be.

        Raises:
            Stopped, LockLost: the run was asked to stop, or another operator or tool may be at work on the group.
            ApprovalError: the approval, or during an undo its time limit, expired.
            RunError: one is no item of the step that was approved.
        """
        ...

    def __call__(self, outcomes: Sequence[ItemOutcome]) -> None:
        """Make outcomes durable; with none, ask whether to continue waiting.

        Raises:
            Stopped, LockLost: that was the last write.
            RunError: one reports that something was written which was never asked for.
        """
        ...


class Performer(Protocol):
    """Executes the steps of one kind of plan on one cluster.

    Errors of the project's tree fail the step with their sentence; while verifying, ConnectError is waited out until
    the deadline.
    """

    @property
    def cluster_id(self) -> str:
        """The cluster that answers now; another than the plan's is refused."""
        ...

    def refuse_altered(self, plan: Plan) -> None:
        """Make each step again from its parameters, and compare.

        Raises:
            PlanError: a step reports something else than what it would do, or reaches beyond the plan's targets.
        """
        ...

    def targets_of(self, step: Step) -> Mapping[str, str]:
        """The target of the plan that each item of the step belongs to."""
        ...

    def observe(self, plan: Plan) -> Mapping[str, Json]:
        """The plan's observations, under the same names, as they are now. Reads only."""
        ...

    def refusal(self, plan: Plan) -> str | None:
        """Return why what had to hold for the plan to be made does not hold any more; None: it does.

        Asked with the first step's check, until the run has written something. Reads only.
        """
        ...

    def settle(self, plan: Plan, other_run: str, go_on: Callable[[], None]) -> None:
        """Wait until what another run left open can't come any more; ``go_on`` raises where the run must stop.

        Asked before a run's first write, where the lock names such a run.

        Raises:
            RunError: the cluster does not come to rest.
        """
        ...

    def end(self) -> None:
        """A run has end, to whichever: close what was opened for it."""
        ...

    def check(self, step: Step) -> Checked:
        """Return whether the step's precondition holds. Reads only; is also asked of a step that is partly done."""
        ...

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        """Return whether the step is done, by what the cluster reports; of ``acted``: whether what it wrote is still
        there.

        Reads only. Other tools' changes do not concern ``acted``: NOT_DONE means that nothing is left to undo.

        Raises:
            ReadError: what the step writes can't be read, with the reason.
        """
        ...

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        """Carry the step out, each write conditional; the outcome of every item, reported already or not."""
        ...

    def verify(self, step: Step) -> Verified:
        """Return whether the step has had its effect. Reads only; asked again until it holds or the deadline has
        ended.
        """
        ...

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Return whether what this run wrote may be undone now: no other operator or tool was there since. Reads
        only.
        """
        ...

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """Undo what this run wrote, each write conditional; after it ``state`` has to become NOT_DONE."""
        ...


class Lock(Protocol):
    """One run at a time per target; it ends with its holder, however that ends."""

    def acquire(self, targets: Sequence[str], run_id: str) -> None:
        """Take the lock of every target, or none.

        Raises:
            TargetBusy: another run has one of the targets; who and since when.
        """
        ...

    def assert_held(self) -> None:
        """Ask whether the lock is still this run's.

        Raises:
            LockLost: it may be another operator's or tool's by now.
        """
        ...

    def mark(self, targets: Sequence[str], run_id: str) -> None:
        """Leave word, for longer than the lock lasts, that this run was the last that changed the targets."""
        ...

    def followed_by(self, targets: Sequence[str], run_id: str) -> Mapping[str, str]:
        """Return the targets that a later run changed, each with that run."""
        ...

    def mark_settled(self, targets: Sequence[str], run_id: str) -> None:
        """Leave word that nothing is to come any more of what this run ordered."""
        ...

    def unsettled(self, targets: Sequence[str], run_id: str) -> str | None:
        """Another run that changed the targets last, and did not come to rest: it was killed, for instance."""
        ...

    def release(self) -> None:
        """Give it back; a lock that was lost is no error."""
        ...


def refuse_other_cluster(plan: Plan, performer: Performer) -> None:
    """Compare the cluster that answers with the plan's.

    Raises:
        WrongCluster: another cluster answers than the plan is for.
    """
    answering = performer.cluster_id
    if answering != plan.cluster_id:
        raise WrongCluster(
            f"the plan is for cluster {plan.cluster_id}, but {answering} answers: nothing was done; name the plan's"
            " cluster by --profile"
        )
