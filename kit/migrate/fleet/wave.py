"""One wave of a fleet: many toggles, verified together; and the circuit breaker between two waves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import polars as pl

from kit import views
from kit.cluster import Cluster
from kit.errors import ConnectError, RunError
from kit.migrate.engine.clock import Clock
from kit.migrate.engine.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.migrate.engine.step import Change, Step
from kit.migrate.engine.values import Json
from kit.migrate.group.group_state import GroupState, counted, readable_group_states
from kit.migrate.group.toggle import (
    NAMES,
    SETTLE_S,
    Toggle,
    mode_path,
    not_following,
    not_moving,
    not_ready_for_back,
    read_toggle,
    set_toggle,
    unset_toggle,
)
from kit.snapshot import Snapshot, observe
from kit.tables.groups import KAFKA, ZOOKEEPER

WAVE, CIRCUIT_BREAKER = "wave", "circuit breaker"
NOT_FOLLOWING = "not_following"
"""In the evidence of a wave: group → why it does not follow."""


def wave_step(number: int, toggles: Mapping[str, Toggle], after: str, deadline_s: float = SETTLE_S) -> Step:
    """Toggle these groups (id → what the toggle is now)."""
    changes = [Change(mode_path(group), toggle.mode, after) for group, toggle in toggles.items()]
    return Step(
        step_id=f"wave-{number:02d}",
        kind=WAVE,
        title=f"Toggle {len(toggles)} groups to {NAMES[after]}'s assignment",
        precondition="each has MEZKCCs alone" + (" and is settled" if after == KAFKA else ""),
        verification=(
            f"each group's members own what {NAMES[after]}'s assignment gives them, each partition is had, and its "
            "committed offset moves on or has reached the end"
        ),
        deadline_s=deadline_s,
        changes=tuple(changes),
        undo="Each toggle that is as this step left it is set back.",
        affects=(f"wave {number} toggles",),
        parameters={
            "number": number,
            "groups": tuple(toggles),
            "before": {group: toggle.mode for group, toggle in toggles.items()},
            "versions": {group: toggle.version for group, toggle in toggles.items()},
            "after": after,
            "deadline_s": deadline_s,
        },
    )


def wave_step_of(step_id: str, parameters: Mapping[str, Json]) -> Step:
    """The step that these parameters say, as :func:`wave_step` made it; ``step_id`` follows from its number."""
    words: Any = parameters
    return wave_step(words["number"], _planned_by(words), words["after"], words["deadline_s"])


def circuit_breaker_step(
    number: int, groups: Sequence[str], pause_s: float, lag_tolerance: int, max_read_ms: float
) -> Step:
    """Watch the groups toggled so far, and the cluster."""
    return Step(
        step_id=f"wave-{number:02d}-pause",
        kind=CIRCUIT_BREAKER,
        title=f"Watch {len(groups)} groups for {pause_s:g} s before the next wave",
        precondition="none",
        verification=(
            f"their lag does not grow by more than {lag_tolerance} records, and a read of the cluster takes no longer "
            f"than {max_read_ms:.0f} ms"
        ),
        deadline_s=pause_s + SETTLE_S,
        undo="There is nothing to take back.",
        parameters={
            "number": number,
            "groups": tuple(groups),
            "pause_s": pause_s,
            "lag_tolerance": lag_tolerance,
            "max_read_ms": max_read_ms,
        },
    )


def circuit_breaker_step_of(step_id: str, parameters: Mapping[str, Json]) -> Step:
    """The step that these parameters say, as :func:`circuit_breaker_step` made it."""
    words: Any = parameters
    names = ("number", "groups", "pause_s", "lag_tolerance", "max_read_ms")
    return circuit_breaker_step(*(words[name] for name in names))


class WaveActor:
    """Writes each toggle on its own condition; one that can't be written doesn't keep the others back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._at_first: dict[str, dict[str, GroupState]] = {}
        self._left_out: dict[str, Mapping[str, str]] = {}

    def check(self, step: Step) -> Checked:
        is_back = step.parameters["after"] == ZOOKEEPER
        found, unread = self._look(step)
        if unread and not (is_back and found):
            return Checked(False, f"{len(unread)} of {len(_groups(step))} groups can't be read: {_first(unread)}")
        self._left_out[step.step_id] = unread
        wrong = [problem for problem in (_not_ready(each, is_back) for each in found) if problem is not None]
        if wrong:
            return Checked(False, f"{len(wrong)} of {len(found)} groups aren't ready: {wrong[0]}")
        told = f"; left out, because they can't be read, are {len(unread)}: {_first(unread)}" if unread else ""
        return Checked(True, f"{len(found)} groups {'have MEZKCCs alone' if is_back else 'are settled'}{told}")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        after, groups = step.parameters["after"], _groups(step)
        if acted is None:
            found = [self._toggle(group).mode == after for group in groups]
        else:
            at = {mode_path(group): group for group in groups}
            found = [self._toggle(at[outcome.item]).was_left_by(outcome) for outcome in acted.written]
        if not any(found):
            return StepState.NOT_DONE
        return StepState.DONE if all(found) else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        outcomes, after = [], str(step.parameters["after"])
        left_out = self._left_out.pop(step.step_id, {})
        for group, planned in _planned(step).items():
            if group in left_out:
                outcome = _refused(group, planned.mode, left_out[group])
            else:
                outcome = set_toggle(self._cluster.zookeeper, planned, group, after, report)
            report([outcome])
            outcomes.append(outcome)
        return outcomes

    def verify(self, step: Step) -> Verified:
        (found, unread), after = self._look(step), str(step.parameters["after"])
        first = self._at_first.setdefault(step.step_id, {})
        for each in found:
            first.setdefault(each.group_id, each)
        told = ((each.group_id, not_following(each, after) or not_moving(first[each.group_id], each)) for each in found)
        wrong = {group: problem for group, problem in told if problem is not None} | unread
        if wrong:
            sentence = f"{len(wrong)} of {len(_groups(step))} groups don't follow yet: {_first(wrong)}"
            return Verified(False, sentence, {NOT_FOLLOWING: wrong})
        return Verified(True, f"{len(found)} groups follow {NAMES[after]}'s assignment")

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        """Each group is looked at by itself: one that somebody else changed keeps no other from going back."""
        return Checked(True, f"{len(acted.written)} toggles were written by this run")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        """A group whose toggle somebody else set since is left alone; so is, until they are gone, one that has KCs."""
        groups = {mode_path(group): group for group in _groups(step)}
        ours = {groups[outcome.item]: outcome for outcome in acted.written}
        after, planned = str(step.parameters["after"]), _planned(step)
        found, problems = readable_group_states(observe_some(self._cluster, ours), ours)
        problems |= {each.group_id: why for each in found if (why := not_ready_for_back(each, after)) is not None}
        outcomes = []
        for group, written in ours.items():
            if group in problems:
                outcome = _refused(group, after, problems[group])
            else:
                outcome = unset_toggle(self._cluster.zookeeper, written, group, planned[group].mode, report)
            report([outcome])
            outcomes.append(outcome)
        return outcomes

    def _look(self, step: Step) -> tuple[list[GroupState], dict[str, str]]:
        """One bad znode of one group must not stop the way back of the others."""
        return readable_group_states(observe_some(self._cluster, _groups(step)), _groups(step))

    def _toggle(self, group: str) -> Toggle:
        return read_toggle(self._cluster.zookeeper, group)


class CircuitBreakerActor:
    """Changes nothing; fails when the groups or the cluster do badly."""

    def __init__(self, cluster: Cluster, clock: Clock = Clock()) -> None:  # noqa: B008 - it holds functions, no state
        self._cluster = cluster
        self._clock = clock
        self._began: dict[str, tuple[float, int]] = {}

    def check(self, step: Step) -> Checked:
        return Checked(True, f"{len(_groups(step))} groups were toggled")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        return StepState.NOT_DONE

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        return []

    def verify(self, step: Step) -> Verified:
        """Raises:
        RunError: the circuit breaker: lag or the time of a read are beyond their limits.
        """
        before = self._clock.monotonic()
        snapshot = observe_groups(self._cluster, _groups(step))
        now = self._clock.monotonic()
        lag = int(views.group_lag(views.lag(snapshot)).filter(store=KAFKA)["lag"].sum())
        began, lag_then = self._began.setdefault(step.step_id, (now, lag))
        self._raise_beyond(step, lag - lag_then, (now - before) * 1000)
        pause_s = float(str(step.parameters["pause_s"]))
        if now - began < pause_s:
            return Verified(False, f"watching for {pause_s:g} s")
        evidence: dict[str, Json] = {"lag_growth": lag - lag_then, "read_ms": round((now - before) * 1000)}
        return Verified(True, f"after {pause_s:g} s all is well", evidence)

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        return Checked(True, "it wrote nothing")

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        return []

    def _raise_beyond(self, step: Step, grown: int, read_ms: float) -> None:
        tolerance, slowest = int(str(step.parameters["lag_tolerance"])), float(str(step.parameters["max_read_ms"]))
        if grown > tolerance:
            raise RunError(
                f"the circuit breaker: the lag of the toggled groups grew by {grown} records, more than {tolerance}"
            )
        if read_ms > slowest:
            raise RunError(
                f"the circuit breaker: a read of the cluster took {read_ms:.0f} ms, more than {slowest:.0f} ms"
            )


def observe_groups(cluster: Cluster, groups: Iterable[str]) -> Snapshot[pl.DataFrame]:
    """One snapshot of these groups.

    Raises:
        ConnectError: something could not be read.
    """
    snapshot = observe_some(cluster, groups)
    errors = snapshot.read_errors.filter(~pl.col("topic").fill_null("").str.contains("/", literal=True))
    if not errors.is_empty():
        raise ConnectError(f"something could not be read: {errors['error'][0]}")
    return snapshot


def observe_some(cluster: Cluster, groups: Iterable[str]) -> Snapshot[pl.DataFrame]:
    """The same where single groups may have rows with errors.

    Raises:
        ConnectError: something could not be read that any group may hang on.
    """
    snapshot = observe(cluster, "|".join(re.escape(group) for group in groups))
    errors = snapshot.read_errors.filter(pl.col("group_id").is_null() & pl.col("topic").is_null())
    if not errors.is_empty():
        raise ConnectError(f"something could not be read: {errors['error'][0]}")
    return snapshot


def _first(told: Mapping[str, str]) -> str:
    return next(f"{group}: {why}" for group, why in told.items())


def _refused(group: str, holds: str | None, why: str) -> ItemOutcome:
    return ItemOutcome(mode_path(group), Outcome.REFUSED, holds, None, f"left out: {why}")


def _not_ready(found: GroupState, is_back: bool) -> str | None:
    """A group that suffers may never settle, and the way back is its cure."""
    if set(found.counts) != {"MEZKCC"}:
        return f"{found.group_id} has {counted(found.counts)}"
    return None if is_back or found.is_settled else f"{found.group_id} is not settled: {found.unsettled}"


def _groups(step: Step) -> Sequence[str]:
    return cast(Sequence[str], step.parameters["groups"])


def _planned(step: Step) -> Mapping[str, Toggle]:
    return _planned_by(step.parameters)


def _planned_by(words: Any) -> dict[str, Toggle]:
    return {group: Toggle(words["before"][group], words["versions"][group]) for group in words["groups"]}
