"""One wave of a fleet: many toggles, verified together; and the circuit breaker between two waves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from kit.clients.cluster import Cluster
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Change, Step
from kit.groups.snapshot import Snapshot
from kit.moves.group.circuit_breaker import observe_some
from kit.moves.group.group_state import GroupState, counted, readable_group_states
from kit.moves.group.rules import SETTLE_S
from kit.moves.group.toggle import (
    Toggle,
    mode_path,
    not_following,
    not_moving,
    not_ready_for_back,
    read_toggle,
    set_toggle,
    unset_toggle,
)
from kit.tables.groups import KAFKA, STORE_NAMES, ZOOKEEPER
from kit.text.quantity import quantity

WAVE = "wave"
NOT_FOLLOWING = "not_following"
"""In the evidence of a wave: group → why it does not follow."""


@dataclass(frozen=True, slots=True)
class WaveParameters(StepParameters):
    """Toggle ``groups`` to ``after``; ``before`` and ``versions`` are of their toggles as they were seen."""

    number: int
    groups: tuple[str, ...]
    before: Mapping[str, str | None]
    versions: Mapping[str, int | None]
    after: str
    deadline_s: float = SETTLE_S

    @classmethod
    def of_toggles(
        cls, number: int, toggles: Mapping[str, Toggle], after: str, deadline_s: float = SETTLE_S
    ) -> WaveParameters:
        before = {group: toggle.mode for group, toggle in toggles.items()}
        versions = {group: toggle.version for group, toggle in toggles.items()}
        return cls(number, tuple(toggles), before, versions, after, deadline_s)

    @property
    def toggles(self) -> dict[str, Toggle]:
        return {group: Toggle(self.before[group], self.versions[group]) for group in self.groups}


def toggles_of(number: int) -> str:
    """The name, among what a plan observed, of the toggles that one of its waves changes."""
    return f"wave {number} toggles"


def wave_step(parameters: WaveParameters) -> Step:
    name = STORE_NAMES[parameters.after]
    return Step(
        step_id=f"wave-{parameters.number:02d}",
        kind=WAVE,
        title=f"Toggle {quantity(len(parameters.groups), 'group')} to {name}'s assignment",
        precondition="each group has MEZKCCs alone" + (" and is settled" if parameters.after == KAFKA else ""),
        verification=(
            f"each group's members own what {name}'s assignment gives them, each partition has an owner, and its "
            "committed offset moves or has reached the end"
        ),
        deadline_s=parameters.deadline_s,
        changes=tuple(
            Change(mode_path(group), toggle.mode, parameters.after) for group, toggle in parameters.toggles.items()
        ),
        undo="Each toggle that has not changed since this step gets its former value.",
        affects=(toggles_of(parameters.number),),
        parameters=parameters.to_json(),
    )


class WaveReadings:
    """Readings of groups. A dry run checks each wave by the reading that it compared with the plan.

    Each reading of a wave lists all groups of the cluster: one per wave would take minutes at 10,000 groups.
    """

    def __init__(
        self,
        cluster: Cluster,
        is_dry: bool = False,
        read: Callable[[Cluster, Collection[str]], Snapshot[pl.DataFrame]] | None = None,
    ) -> None:
        self._cluster, self._is_dry, self._read = cluster, is_dry, read or observe_some
        self._states: dict[str, GroupState] = {}
        self._unread: dict[str, str] = {}

    def observe(self, groups: Sequence[str]) -> Snapshot[pl.DataFrame]:
        """Read all groups of a plan. Raises as ``observe_some``."""
        snapshot = self._read(self._cluster, groups)
        if self._is_dry:
            states, self._unread = readable_group_states(snapshot, groups)
            self._states = {each.group_id: each for each in states}
        return snapshot

    def states(self, groups: Sequence[str]) -> tuple[list[GroupState], dict[str, str]]:
        """Return as ``readable_group_states``: a bad znode of one group must not stop the undo of the other groups."""
        if not self._is_dry:
            return readable_group_states(self._read(self._cluster, groups), groups)
        unread = {name: self._unread[name] for name in groups if name in self._unread}
        return [self._states[name] for name in groups if name in self._states], unread


class WaveActor:
    """Writes each toggle on its own condition; one that can't be written stops no other."""

    def __init__(self, cluster: Cluster, readings: WaveReadings | None = None) -> None:
        self._cluster = cluster
        self._readings = readings or WaveReadings(cluster)
        self._at_first: dict[str, dict[str, GroupState]] = {}
        self._left_out: dict[str, Mapping[str, str]] = {}

    def check(self, step: Step) -> Checked:
        is_back = WaveParameters.of(step).after == ZOOKEEPER
        states, unread = self._readings.states(WaveParameters.of(step).groups)
        if unread and not (is_back and states):
            asked = quantity(len(WaveParameters.of(step).groups), "group")
            return Checked(False, f"{len(unread)} of {asked} can't be read: {_first(unread)}")
        self._left_out[step.step_id] = unread
        wrong = [problem for problem in (_not_ready(each, is_back) for each in states) if problem is not None]
        if wrong:
            return Checked(False, f"{len(wrong)} of {quantity(len(states), 'group')} not ready: {wrong[0]}")
        left_out = f"; left out, not readable: {quantity(len(unread), 'group')}: {_first(unread)}" if unread else ""
        how = "with MEZKCCs alone" if is_back else "settled"
        return Checked(True, f"{quantity(len(states), 'group')} {how}{left_out}")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters = WaveParameters.of(step)
        if acted is None:
            are_done = [self._toggle(group).mode == parameters.after for group in parameters.groups]
        else:
            at = {mode_path(group): group for group in parameters.groups}
            are_done = [self._toggle(at[outcome.item]).was_left_by(outcome) for outcome in acted.written]
        if not any(are_done):
            return StepState.NOT_DONE
        return StepState.DONE if all(are_done) else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        outcomes, parameters = [], WaveParameters.of(step)
        asked = {change.item for change in step.changes}
        left_out = self._left_out.pop(step.step_id, {})
        for group, planned in parameters.toggles.items():
            if mode_path(group) not in asked:
                continue
            if group in left_out:
                outcome = _refused(group, planned.mode, left_out[group])
            else:
                outcome = set_toggle(self._cluster.zookeeper, planned, group, parameters.after, report)
            report([outcome])
            outcomes.append(outcome)
        return outcomes

    def verify(self, step: Step) -> Verified:
        (states, unread), after = self._readings.states(WaveParameters.of(step).groups), WaveParameters.of(step).after
        first = self._at_first.setdefault(step.step_id, {})
        for each in states:
            first.setdefault(each.group_id, each)
        judged = (
            (each.group_id, not_following(each, after) or not_moving(first[each.group_id], each)) for each in states
        )
        wrong = {group: problem for group, problem in judged if problem is not None} | unread
        if wrong:
            asked = quantity(len(WaveParameters.of(step).groups), "group")
            return Verified(False, f"not yet: {len(wrong)} of {asked}: {_first(wrong)}", {NOT_FOLLOWING: wrong})
        return Verified(
            True, f"{quantity(len(states), 'group follows', 'groups follow')} {STORE_NAMES[after]}'s assignment"
        )

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Each group is examined by itself: a group that another tool changed keeps no other from going back."""
        return Checked(True, f"{len(acted.written)} toggles were written by this run")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """A group whose toggle another operator or tool set since is left alone; so is, until they are gone, one that
        has KCs.
        """
        parameters = WaveParameters.of(step)
        groups = {mode_path(group): group for group in parameters.groups}
        ours = {groups[outcome.item]: outcome for outcome in acted.written}
        before, after = parameters.before, parameters.after
        states, problems = self._readings.states(list(ours))
        problems |= {each.group_id: why for each in states if (why := not_ready_for_back(each, after)) is not None}
        outcomes = []
        for group, written in ours.items():
            if group in problems:
                outcome = _refused(group, after, problems[group])
            else:
                outcome = unset_toggle(self._cluster.zookeeper, written, group, before[group], report)
            report([outcome])
            outcomes.append(outcome)
        return outcomes

    def _toggle(self, group: str) -> Toggle:
        return read_toggle(self._cluster.zookeeper, group)


def _first(problems: Mapping[str, str]) -> str:
    return next(f"{group}: {why}" for group, why in problems.items())


def _refused(group: str, holds: str | None, why: str) -> ItemOutcome:
    return ItemOutcome(mode_path(group), Outcome.REFUSED, holds, None, f"left out: {why}")


def _not_ready(group: GroupState, is_back: bool) -> str | None:
    """A group in trouble may never settle, and the undo is its cure."""
    if set(group.counts) != {"MEZKCC"}:
        return f"{group.group_id} has {counted(group.counts)}"
    return None if is_back or group.is_settled else f"{group.group_id} is not settled: {group.unsettled}"
