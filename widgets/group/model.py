"""Moving one group along KIP-125's path, as a model: its stage, the requested stage, and the procedure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import traitlets as t

from kit.engine.model.plan import STOP, UNDO, Plan
from kit.errors import IllegalMove, InputError
from kit.groups.analyze.stages import NEXT_STEPS
from kit.moves.group.group_state import GroupState, read_group_state
from kit.moves.group.movement import seconds_between
from kit.moves.group.plan import KIND, PATH, GroupPlanRequest
from kit.moves.group.rules import Limits, after_one_reading, findings
from kit.tables.conditions import Condition
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations, Procedure
from widgets.run.run_model import showing

BACK_S = 10.0
"""Growth is judged by two readings that are at most so many seconds apart."""
KEPT = 150
"""Readings whose lag is kept: five minutes."""


class GroupMigration(Procedure):
    """``look`` reads the group on its own connection; ``close_all`` closes the connections of the model.

    Raises:
        NotFound, ReadError: the group does not exist, or can't be read.
    """

    REQUEST = ("to_stage", "canary", "soak_s", "min_stable_s", "lag_tolerance", "on_failure", "overrides")

    group_id = t.Unicode(read_only=True)
    group_state = t.Any(None, help="The last reading: a kit.moves.group.group_state.GroupState.")
    lags = t.Any((), help="(time, lag in records or None if unknown) of the last readings.")
    checks = t.Any((), help="The rules for a change, by the last readings: Findings.")
    to_stage = t.Unicode(help="The requested stage: one of kit.moves.group.plan.PATH.")
    canary = t.Int(1, help="How many members change first.")
    soak_s = t.Float(60.0, help="Seconds for which the canary is watched.")
    min_stable_s = t.Float(60.0, help="Seconds for which the group must have had the same members.")
    lag_tolerance = t.Int(1000, help="Records by which the canary's lag may grow.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="What happens when a step fails: stop, or undo the executed steps.")
    overrides = t.Unicode(help="Names of rules to override, separated by blanks or commas; they go into the evidence.")

    def __init__(
        self,
        open_operations: OpenOperations,
        look: Callable[[str], GroupState],
        group_id: str,
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        if not group_id:
            raise InputError("name a group: group_id is empty; `offramp groups` lists all groups")
        self.about, self._look = f"group {group_id}", look
        self._looks: tuple[GroupState, ...] = ()
        self.set_trait("group_id", group_id)
        super().__init__(open_operations, close_all)
        self._see()
        self.propose: Callable[[], str] = lambda: self.next_stage
        self.to_stage = self.propose()

    @classmethod
    def connected(cls, connection: Connection, group_id: str) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(read_group_state), group_id, connection.close)

    # The stage

    @property
    def next_stage(self) -> str:
        """The stage after the group's; the last stage if the group is there or not on the path."""
        return self._beside(1) or PATH[-1]

    @property
    def stage_before(self) -> str:
        """The stage before the group's; empty: there is none."""
        return self._beside(-1)

    @property
    def advice(self) -> str:
        """The next action at the group's stage."""
        return NEXT_STEPS.get(self.group_state.stage, "") if self.group_state is not None else ""

    def concerns(self, kind: str, subject: str) -> bool:
        return (kind, subject) == (KIND, self.group_id)

    # Plans

    def set_request(self, to_stage: str = "", **values: Any) -> None:
        """Set several traits of the request; an empty ``to_stage``: the next stage."""
        super().set_request(to_stage=to_stage or self.next_stage, **values)

    def prepare(self, approval_digest: str = "", to_stage: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            InputError: the plan does not lead to ``to_stage`` (empty: any).
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        leads = self.plan.parameters["to_stage"]
        if to_stage and leads != to_stage:
            self._void()
            raise InputError(f"plan {approval_digest[:8]} leads to {leads!r}, not to {to_stage!r}")

    def prepare_back(self, approval_digest: str = "", to_stage: str = "", run_id: str = "") -> None:
        """Show the run to undo; else load the plan with this digest, or plan the rollback; waits.

        Raises:
            InputError: the plan is no rollback, or does not lead to ``to_stage``.
            OfframpError: see ``show_run``, ``load_plan`` and ``plan_rollback``.
        """
        if run_id:
            self.show_run(run_id)
        elif approval_digest:
            self.prepare(approval_digest, to_stage)
            self._refuse_forward()
        else:
            self.plan_rollback(to_stage)
            self.wait()

    def _refuse_forward(self) -> None:
        leads, stage = str(self.plan.parameters["to_stage"]), str(self.plan.observed["stage"].value)
        if stage in PATH and PATH.index(leads) >= PATH.index(stage):
            self._void()
            raise InputError(f"the plan leads from {stage!r} to {leads!r}, which is no rollback: load another plan")

    def request(self) -> GroupPlanRequest:
        """Return the request that the fields ask for.

        Raises:
            InputError: the request is not valid.
        """
        return GroupPlanRequest(
            self.group_id,
            self.to_stage,
            self.canary,
            self.soak_s,
            self.min_stable_s,
            self.lag_tolerance,
            on_failure=self.on_failure,
        )

    @showing
    def plan_rollback(self, to_stage: str = "") -> None:
        """Plan the rollback to the stage before, or to an earlier one.

        Raises:
            IllegalMove: there is no stage before, or another action is running.
            InputError: ``to_stage`` is not an earlier stage.
        """
        self._refuse_busy()
        wanted = to_stage or self.stage_before
        if not wanted:
            raise IllegalMove(
                f"group {self.group_id} is at {self.group_state.stage!r}: there is no stage before it; plan a later one"
            )
        self._refuse_ahead(wanted)
        self.to_stage = wanted
        self.make_plan()

    def _refuse_ahead(self, wanted: str) -> None:
        stage = self.group_state.stage
        if wanted in PATH and stage in PATH and PATH.index(wanted) >= PATH.index(stage):
            raise InputError(f"{wanted!r} is not before {stage!r}: choose an earlier stage")

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        request, overrides = self.request(), self.overrides.replace(",", " ").split()
        return f"planning the way to {request.to_stage}", lambda: self.operations.make_plan(request, overrides)

    def _reached(self) -> None:
        """The run reached its stage: propose the next one, unless a person chose another stage meanwhile."""
        was = self.to_stage
        self.refresh()
        if self.record is not None and self.to_stage == was == self.record.plan.parameters["to_stage"]:
            self.to_stage = self.propose()

    @t.validate("to_stage")
    def _known_stage(self, proposal: Any) -> str:
        if proposal["value"] not in PATH:
            raise InputError(f"there is no stage {proposal['value']!r}; there are {', '.join(PATH)}")
        return str(proposal["value"])

    def _request_changed(self, change: Any) -> None:
        super()._request_changed(change)
        self._judge()

    def _see(self) -> None:
        now = self._look(self.group_id)
        self._looks = (*(each for each in self._looks if seconds_between(each, now) <= BACK_S), now)
        self.group_state = now
        self.lags = (*self.lags, (now.observed_at, lag_of(now)))[-KEPT:]
        self._judge()

    def _judge(self) -> None:
        if self._looks:
            limits = Limits(self.min_stable_s, self.canary)
            self.checks = judged(self._looks, self.to_stage or self.next_stage, limits)

    def _beside(self, by: int) -> str:
        stage = self.group_state.stage if self.group_state is not None else ""
        if stage not in PATH:
            return ""
        wanted = PATH.index(stage) + by
        return PATH[wanted] if 0 <= wanted < len(PATH) else ""

    @t.observe("group_state")
    def _standing_changed(self, change: Any) -> None:
        self._update()

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "rollback": not self.busy and bool(self.stage_before)}


def judged(looks: Sequence[GroupState], to_stage: str, limits: Limits) -> tuple[Condition, ...]:
    """The rules by the first and the last reading; one reading alone reports nothing about growth."""
    evaluated = findings(looks[0], looks[-1], to_stage, limits)
    return tuple(evaluated) if len(looks) > 1 else after_one_reading(evaluated)


def lag_of(state: GroupState) -> int | None:
    """The sum over the partitions whose lag is known; None: no lag is known."""
    known = [position.lag for position in state.offsets.values() if position.lag is not None]
    return sum(known) if known else None
