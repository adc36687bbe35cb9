"""Report what a run would do, without doing it."""

from __future__ import annotations

from dataclasses import dataclass

from kit.engine.model.observation import Difference, differences
from kit.engine.model.performer import Performer, refuse_other_cluster
from kit.engine.model.plan import Plan
from kit.engine.model.step import Step
from kit.errors import OfframpError


@dataclass(frozen=True, slots=True)
class DryStep:
    """The effect that a step would have, and whether it could begin now; a later step mostly can't before the
    earlier are done.
    """

    step: Step
    can_begin: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class DryRun:
    differences: tuple[Difference, ...]
    steps: tuple[DryStep, ...]


def dry_run(plan: Plan, performer: Performer) -> DryRun:
    """The run's own walk over the plan's steps without any act: observe, then check each. Writes nothing anywhere.

    Raises:
        WrongCluster: another cluster answers than the plan is for.
    """
    refuse_other_cluster(plan, performer)
    changed = differences(plan.observed, performer.observe(plan))
    return DryRun(changed, tuple(_dry(step, plan, performer) for step in plan.steps))


def _dry(step: Step, plan: Plan, performer: Performer) -> DryStep:
    try:
        if step is plan.steps[0] and (refusal := performer.refusal(plan)) is not None:
            return DryStep(step, False, refusal)
        checked = performer.check(step)
    except OfframpError as error:
        return DryStep(step, False, f"the precondition could not be checked: {error}")
    return DryStep(step, checked.ok, checked.sentence)
