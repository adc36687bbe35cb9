"""The steps of a plan to move a cluster to KRaft, or back, from its nodes' present modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.engine.model.step import Step
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, ZOOKEEPER
from kit.kraft.move import end_steps, steps
from kit.kraft.move.cluster_state import ClusterState
from kit.kraft.move.nodes import BROKER, CONTROLLER, RESTART, START, STOP, WIPE, NodeDeployer
from kit.kraft.move.orders import settings_file
from kit.kraft.move.parameters import (
    HandBackParameters,
    KraftParameters,
    OrderParameters,
    RollParameters,
    StopParameters,
    UnregisterParameters,
)
from kit.kraft.move.problems import without_flag
from kit.kraft.move.steps import (
    FAIL_OVER,
    REPAIR_BROKERS,
    REPAIR_CLAIM,
    REPAIR_EPOCH,
    REPAIR_MIGRATION,
    RETURN_FLAG,
    UNREGISTER,
    unregistered,
)

StepDraft: TypeAlias = tuple[str, Callable[[str, Any], Step], KraftParameters]
"""A step in the making: the end of its id, its factory, what it is made from."""


_NO_FILES: Mapping[str, str] = {}


class StepMaker:
    """The steps of one plan."""

    def __init__(
        self,
        parameters: KraftParameters,
        deployer: NodeDeployer,
        now: ClusterState,
        settings: Mapping[str, str] = _NO_FILES,
    ) -> None:
        """``parameters``: what every step knows; ``settings``: the operator's files of all nodes, name → digest."""
        self._parameters, self._settings, self._deployer, self._now = parameters, settings, deployer, now

    def steps(self) -> Iterator[Step]:
        entries = {
            CONTROLLERS: self._start,
            DUAL_WRITE: self._to_dual_write,
            KRAFT: self._to_kraft,
            FINALISED: self._finalise,
            ZOOKEEPER: self._back,
            REPAIR_CLAIM: self._repair,
            REPAIR_MIGRATION: self._repair,
            REPAIR_EPOCH: self._repair,
            REPAIR_BROKERS: self._to_zookeeper_mode,
            FAIL_OVER: self._fail_over,
            RETURN_FLAG: self._return_flag,
            UNREGISTER: self._unregister,
        }[UNREGISTER if unregistered(self._parameters.to_phase) is not None else self._parameters.to_phase]()
        for number, (name, make, parameters) in enumerate(entries, start=1):
            yield make(f"{number:02d}-{name}", parameters)

    def _start(self) -> Iterator[StepDraft]:
        yield "start", steps.start_step, self._controllers(START, "", MIGRATION_MODE)

    def _to_dual_write(self) -> Iterator[StepDraft]:
        if self._now.phase == CONTROLLERS:
            first, last = self._last_apart(ZOOKEEPER_MODE)
            if first:
                yield self._roll(first, ZOOKEEPER_MODE, MIGRATION_MODE)
            yield self._roll(last, ZOOKEEPER_MODE, MIGRATION_MODE, begins_copy=True)
        else:
            yield self._roll(self._in_mode(KRAFT_MODE), KRAFT_MODE, MIGRATION_MODE)
        yield self._compare()

    def _to_kraft(self) -> Iterator[StepDraft]:
        yield self._roll(self._in_mode(MIGRATION_MODE), MIGRATION_MODE, KRAFT_MODE)
        yield self._compare()

    def _finalise(self) -> Iterator[StepDraft]:
        yield "archive", end_steps.archive_step, self._parameters
        yield self._compare()
        yield "finalise", end_steps.finalise_step, self._controllers(RESTART, MIGRATION_MODE, "finalised")
        yield "list", end_steps.list_step, self._parameters

    def _return_flag(self) -> Iterator[StepDraft]:
        lacking = without_flag(self._now, self._parameters.controller_addresses)
        yield (
            "return-flag",
            end_steps.return_flag_step,
            self._controllers(RESTART, "finalised", MIGRATION_MODE, lacking),
        )
        yield self._compare()

    def _back(self) -> Iterator[StepDraft]:
        """Before the copy, too, the controllers end first: then none can begin while brokers go back."""
        has_claim, is_aborted = bool(self._now.control.is_controller_persistent), self._now.facts.is_copying
        if in_kraft := self._in_mode(KRAFT_MODE):
            yield self._roll(in_kraft, KRAFT_MODE, MIGRATION_MODE)
        if has_claim and not is_aborted:
            yield self._compare()
        yield self._stop(has_claim=has_claim, is_aborted=is_aborted)
        hand_back = HandBackParameters.made_from(self._parameters, has_claim=has_claim, is_aborted=is_aborted)
        yield "hand-back", steps.hand_back_step, hand_back
        moved = tuple(sorted(self._now.brokers)) if has_claim else self._in_mode(MIGRATION_MODE)
        if moved:
            yield self._roll(moved, MIGRATION_MODE, ZOOKEEPER_MODE)
        yield "wipe", steps.wipe_step, self._controllers(WIPE, "", "")

    def _repair(self) -> Iterator[StepDraft]:
        """Controllers that run are of the damage: it is they who would act on it."""
        are_running = bool(self._now.live_controllers)
        is_aborted = self._parameters.to_phase == REPAIR_CLAIM and self._now.facts.is_copying
        if are_running:
            yield self._stop(has_claim=False, is_aborted=is_aborted)
        yield "mend", steps.repair_step, HandBackParameters.made_from(self._parameters, is_aborted=is_aborted)
        if are_running:
            yield "wipe", steps.wipe_step, self._controllers(WIPE, "", "")

    def _to_zookeeper_mode(self) -> Iterator[StepDraft]:
        yield self._roll(self._in_mode(MIGRATION_MODE), MIGRATION_MODE, ZOOKEEPER_MODE)

    def _fail_over(self) -> Iterator[StepDraft]:
        leader = self._now.facts.leader
        active = () if leader is None or leader.node_id is None else (leader.node_id,)
        yield (
            "fail-over",
            steps.fail_over_step,
            self._controllers(RESTART, MIGRATION_MODE, MIGRATION_MODE, active),
        )

    def _unregister(self) -> Iterator[StepDraft]:
        gone = unregistered(self._parameters.to_phase)
        nodes = () if gone is None else (gone,)
        yield "unregister", steps.unregister_step, UnregisterParameters.made_from(self._parameters, nodes=nodes)

    def _in_mode(self, mode: str) -> tuple[int, ...]:
        return tuple(sorted(number for number, each in self._now.modes.items() if each == mode))

    def _last_apart(self, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """ZooKeeper's controller goes last; where it has gone already, any other."""
        numbers = sorted(self._in_mode(mode), key=lambda each: each == self._now.control.controller_id)
        return tuple(numbers[:-1]), tuple(numbers[-1:])

    def _roll(self, numbers: tuple[int, ...], from_mode: str, to_mode: str, begins_copy: bool = False) -> StepDraft:
        parameters = RollParameters.made_from(
            self._parameters,
            **self._order(RESTART, BROKER, numbers, from_mode, to_mode),
            begins_copy=begins_copy,
        )
        return f"roll-to-{to_mode}{'-last' if begins_copy else ''}", steps.roll_step, parameters

    def _stop(self, has_claim: bool, is_aborted: bool) -> StepDraft:
        order = self._order(STOP, CONTROLLER, tuple(sorted(self._parameters.controller_addresses)), MIGRATION_MODE, "")
        parameters = StopParameters.made_from(self._parameters, **order, has_claim=has_claim, is_aborted=is_aborted)
        return "stop-controllers", steps.stop_step, parameters

    def _controllers(
        self, action: str, from_mode: str, to_mode: str, numbers: tuple[int, ...] | None = None
    ) -> OrderParameters:
        """``numbers`` None: of all controllers."""
        nodes = tuple(sorted(self._parameters.controller_addresses)) if numbers is None else numbers
        return OrderParameters.made_from(self._parameters, **self._order(action, CONTROLLER, nodes, from_mode, to_mode))

    def _order(self, action: str, role: str, nodes: tuple[int, ...], from_mode: str, to_mode: str) -> dict[str, object]:
        """The fields of ``OrderParameters``."""
        return {
            "nodes": nodes,
            "from_mode": from_mode,
            "to_mode": to_mode,
            "instruction": self._deployer.instruction(action, role, to_mode),
            "settings": _own_settings(self._settings, nodes, (from_mode, to_mode)),
        }

    def _compare(self) -> StepDraft:
        return "compare", steps.compare_step, self._parameters


def _own_settings(settings: Mapping[str, str], nodes: tuple[int, ...], modes: tuple[str, str]) -> dict[str, str]:
    """The files of a step's nodes, in the mode that they go to and, for an undo, in the one that they come from."""
    names = {
        settings_file(Path(), role, number, mode).name
        for role in (BROKER, CONTROLLER)
        for number in nodes
        for mode in modes
        if mode
    }
    return {name: digest for name, digest in settings.items() if name in names}
