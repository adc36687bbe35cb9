"""Actors execute the steps of one kind; the performer of a cluster finds the one for each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Report, StepState, Verified
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import Recipes, refuse_altered, targets_of
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.errors import PlanError


class Actor(Protocol):
    """The methods of :class:`kit.engine.model.performer.Performer`, for steps of one kind."""

    def check(self, step: Step) -> Checked: ...

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState: ...

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]: ...

    def verify(self, step: Step) -> Verified: ...

    def check_back(self, step: Step, acted: ActedRecord) -> Checked: ...

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]: ...


class ReadingActor:
    """The common part of actors that only read: there is nothing to do, to find again or to undo."""

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return StepState.NOT_DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        return []

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        return Checked(True, "the step wrote nothing to the cluster")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        return []


class ClusterPerformer:
    """Executes plans on one cluster.

    ``ask_id`` asks which cluster answers now. ``observe`` reads what plans have observed. ``refusal``, ``settle``,
    ``end``: see the protocol.
    """

    def __init__(
        self,
        ask_id: Callable[[], str],
        actors: Mapping[str, Actor],
        recipes: Recipes,
        observe: Callable[[Plan], Mapping[str, Json]],
        refusal: Callable[[Plan], str | None] = lambda plan: None,
        settle: Callable[[Plan, str, Callable[[], None]], None] = lambda plan, other_run, go_on: None,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._ask_id = ask_id
        self._actors = dict(actors)
        self._recipes = recipes
        self._observe, self._refusal, self._settle, self._end = observe, refusal, settle, end

    @property
    def cluster_id(self) -> str:
        return self._ask_id()

    def refuse_altered(self, plan: Plan) -> None:
        refuse_altered(plan, self._recipes)

    def targets_of(self, step: Step) -> Mapping[str, str]:
        return targets_of(step, self._recipes)

    def observe(self, plan: Plan) -> Mapping[str, Json]:
        return self._observe(plan)

    def refusal(self, plan: Plan) -> str | None:
        return self._refusal(plan)

    def settle(self, plan: Plan, other_run: str, go_on: Callable[[], None]) -> None:
        self._settle(plan, other_run, go_on)

    def end(self) -> None:
        self._end()

    def check(self, step: Step) -> Checked:
        return self._actor(step).check(step)

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return self._actor(step).state(step, acted)

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        return self._actor(step).act(step, report)

    def verify(self, step: Step) -> Verified:
        return self._actor(step).verify(step)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        return self._actor(step).check_back(step, acted)

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        return self._actor(step).undo(step, acted, report)

    def _actor(self, step: Step) -> Actor:
        if step.kind not in self._actors:
            known = ", ".join(sorted(self._actors))
            raise PlanError(
                f"step {step.step_id!r} is of kind {step.kind!r}; this version of offramp executes "
                f"{known}. Make a new plan"
            )
        return self._actors[step.kind]
