"""Moving one group along KIP-125's path, as a model: where it stands, where it is to go, and the procedure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import traitlets as t

from kit.analyze.groups.stages import NEXT_STEPS
from kit.errors import IllegalMove, InputError
from kit.migrate.engine.checks import Finding
from kit.migrate.engine.plan import STOP, UNDO, Plan
from kit.migrate.group.group_state import GroupState
from kit.migrate.group.plan import KIND, PATH, GroupPlanRequest
from kit.migrate.group.rules import COMMITS, LAG, STABLE, Limits, findings
from widgets.run.procedure import OpenDesk, Procedure
from widgets.run.run_model import showing

BACK_S = 10.0
"""How far apart the two looks are by which growth is judged."""
KEPT = 150
"""Looks whose lag is kept: five minutes."""


class GroupMigration(Procedure):
    """``look`` reads the group by a connection of its own; ``close_all`` ends what the model was given.

    Raises:
        NotFound, ReadError: there is no such group, or it can't be read.
    """

    WISH = ("to_stage", "canary", "soak_s", "min_stable_s", "lag_tolerance", "on_failure", "overrides")

    group_id = t.Unicode(read_only=True)
    standing = t.Any(None, help="The last look: a kit.migrate.group.group_state.GroupState.")
    lags = t.Any((), help="(when, lag in records or None if it is unknown) of the last looks.")
    checks = t.Any((), help="What must be so before anything is changed, by the last looks: Findings.")
    to_stage = t.Unicode(help="Where the group is to go: one of kit.migrate.group.plan.PATH.")
    canary = t.Int(1, help="How many members go ahead.")
    soak_s = t.Float(60.0, help="Seconds for which the canary is watched.")
    min_stable_s = t.Float(60.0, help="Seconds for which the members must have been the same.")
    lag_tolerance = t.Int(1000, help="Records by which the canary's lag may grow.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="Whether a step that fails makes the run take back what it did.")
    overrides = t.Unicode(help="Rules to override, by name, with a blank or comma between; goes into the evidence.")

    def __init__(
        self,
        open_desk: OpenDesk,
        look: Callable[[str], GroupState],
        group_id: str,
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        if not group_id:
            raise InputError("say which group: group_id is empty; `offramp report` lists them all")
        self.about, self._look = f"group {group_id}", look
        self._looks: tuple[GroupState, ...] = ()
        self.set_trait("group_id", group_id)
        super().__init__(open_desk, close_all)
        self._see()
        self.propose: Callable[[], str] = lambda: self.next_stage
        self.to_stage = self.propose()

    # Where it stands

    @property
    def next_stage(self) -> str:
        """One forward; at the end, or off the path, the last one."""
        return self._beside(1) or PATH[-1]

    @property
    def stage_before(self) -> str:
        """One back; empty: there is none."""
        return self._beside(-1)

    @property
    def advice(self) -> str:
        """What comes next where the group stands."""
        return NEXT_STEPS.get(self.standing.stage, "") if self.standing is not None else ""

    def concerns(self, kind: str, subject: str) -> bool:
        return (kind, subject) == (KIND, self.group_id)

    # Plans

    def wish_for(self, to_stage: str = "", **values: Any) -> None:
        """Set what is wished at once; an empty ``to_stage``: the next one."""
        super().wish_for(to_stage=to_stage or self.next_stage, **values)

    def prepare(self, approval_digest: str = "", to_stage: str = "") -> None:
        """Take up the plan of that digest and no other, or else plan what is wished; waits until it is rehearsed.

        Raises:
            InputError: that plan does not lead to ``to_stage`` (empty: wherever it leads).
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        leads = self.plan.parameters["to_stage"]
        if to_stage and leads != to_stage:
            self._void()
            raise InputError(f"plan {approval_digest[:8]} leads to {leads!r}, not to {to_stage!r}")

    def prepare_back(self, approval_digest: str = "", to_stage: str = "", run_id: str = "") -> None:
        """Choose a run to take back; else take up the plan of that digest, or plan the way back; waits.

        Raises:
            InputError: that plan is no way back, or leads elsewhere than to ``to_stage``.
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
            raise InputError(f"that plan leads from {stage!r} to {leads!r}, which is no way back")

    def wish(self) -> GroupPlanRequest:
        """Raises:
        InputError: it can't be wished so.
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
        """Plan the way back: one stage, or to an earlier one.

        Raises:
            IllegalMove: there is nothing to go back to, or something is being done.
            InputError: it would not be a way back.
        """
        self._refuse_busy()
        wanted = to_stage or self.stage_before
        if not wanted:
            raise IllegalMove(f"group {self.group_id} is at {self.standing.stage!r}: there is no stage before it")
        self._refuse_ahead(wanted)
        self.to_stage = wanted
        self.make_plan()

    def _refuse_ahead(self, wanted: str) -> None:
        stage = self.standing.stage
        if wanted in PATH and stage in PATH and PATH.index(wanted) >= PATH.index(stage):
            raise InputError(f"{wanted!r} is not before {stage!r}: that is no way back")

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        wish, overrides = self.wish(), self.overrides.replace(",", " ").split()
        return f"planning the way to {wish.to_stage}", lambda: self.desk.plan_group(wish, overrides)

    def _reached(self) -> None:
        """What was wished is so: the next stage is proposed, unless somebody chose another one meanwhile."""
        was = self.to_stage
        self.refresh()
        if self.record is not None and self.to_stage == was == self.record.plan.parameters["to_stage"]:
            self.to_stage = self.propose()

    @t.validate("to_stage")
    def _known_stage(self, proposal: Any) -> str:
        if proposal["value"] not in PATH:
            raise InputError(f"there is no stage {proposal['value']!r}; there are {', '.join(PATH)}")
        return str(proposal["value"])

    def _wish_changed(self, change: Any) -> None:
        super()._wish_changed(change)
        self._judge()

    def _see(self) -> None:
        now = self._look(self.group_id)
        self._looks = (*(each for each in self._looks if _age(each, now) <= BACK_S), now)
        self.standing = now
        self.lags = (*self.lags, (now.observed_at, lag_of(now)))[-KEPT:]
        self._judge()

    def _judge(self) -> None:
        if self._looks:
            limits = Limits(self.min_stable_s, self.canary)
            self.checks = judged(self._looks, self.to_stage or self.next_stage, limits)

    def _beside(self, by: int) -> str:
        stage = self.standing.stage if self.standing is not None else ""
        if stage not in PATH:
            return ""
        wanted = PATH.index(stage) + by
        return PATH[wanted] if 0 <= wanted < len(PATH) else ""

    @t.observe("standing")
    def _standing_changed(self, change: Any) -> None:
        self._update()

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "rollback": not self.busy and bool(self.stage_before)}


def judged(looks: Sequence[GroupState], to_stage: str, limits: Limits) -> tuple[Finding, ...]:
    """The rules by the first and the last look; of growth nothing is known by one alone."""
    found = findings(looks[0], looks[-1], to_stage, limits)
    if len(looks) > 1:
        return tuple(found)
    unknown = "It is not known after one look."
    return tuple(each.rule.found(None, unknown) if each.rule in (LAG, STABLE, COMMITS) else each for each in found)


def lag_of(standing: GroupState) -> int | None:
    """Of all partitions that it is known of; None: of none."""
    known = [position.lag for position in standing.offsets.values() if position.lag is not None]
    return sum(known) if known else None


def _age(look: GroupState, now: GroupState) -> float:
    return (now.observed_at - look.observed_at).total_seconds()
