"""The steps of a plan to move a cluster to KRaft, or back, from where its nodes stand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.engine.model.step import Step
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, ZOOKEEPER
from kit.kraft.move import end_steps, steps
from kit.kraft.move.cluster_state import ClusterState, without_flag
from kit.kraft.move.nodes import BROKER, CONTROLLER, RESTART, START, STOP, WIPE, NodeDeployer
from kit.kraft.move.orders import settings_file
from kit.kraft.move.steps import (
    FAIL_OVER,
    REPAIR_BROKERS,
    REPAIR_CLAIM,
    REPAIR_EPOCH,
    REPAIR_MIGRATION,
    RETURN_FLAG,
    UNREGISTER,
    KraftParameters,
    unregistered,
)

StepDraft: TypeAlias = tuple[str, Callable[[str, KraftParameters], Step], KraftParameters]
"""A step in the making: the end of its id, its factory, what it is made from."""


class StepMaker:
    """The steps of one plan."""

    def __init__(self, words: KraftParameters, deployer: NodeDeployer, now: ClusterState) -> None:
        self._words, self._deployer, self._now = words, deployer, now

    def steps(self) -> Iterator[Step]:
        entries = {
            CONTROLLERS: self._start,
            DUAL_WRITE: self._to_dual_write,
            KRAFT: self._to_kraft,
            FINALISED: self._finalise,
            ZOOKEEPER: self._back,
            REPAIR_CLAIM: self._mend,
            REPAIR_MIGRATION: self._mend,
            REPAIR_EPOCH: self._mend,
            REPAIR_BROKERS: self._to_zookeeper_mode,
            FAIL_OVER: self._fail_over,
            RETURN_FLAG: self._return_flag,
            UNREGISTER: self._unregister,
        }[UNREGISTER if unregistered(self._words.to_phase) is not None else self._words.to_phase]()
        for number, (name, make, words) in enumerate(entries, start=1):
            yield make(f"{number:02d}-{name}", replace(words, settings=_own_settings(words)))

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
        yield "archive", end_steps.archive_step, self._words
        yield self._compare()
        yield "finalise", end_steps.finalise_step, self._controllers(RESTART, MIGRATION_MODE, "finalised")
        yield "list", end_steps.list_step, self._words

    def _return_flag(self) -> Iterator[StepDraft]:
        lacking = without_flag(self._now, self._words.controller_addresses)
        yield (
            "return-flag",
            end_steps.return_flag_step,
            replace(self._controllers(RESTART, "finalised", MIGRATION_MODE), nodes=lacking),
        )
        yield self._compare()

    def _back(self) -> Iterator[StepDraft]:
        """Before the copy, too, the controllers end first: then none can begin while brokers go back."""
        has_claim, is_aborted = bool(self._now.control.is_controller_persistent), self._now.facts.is_copying
        if in_kraft := self._in_mode(KRAFT_MODE):
            yield self._roll(in_kraft, KRAFT_MODE, MIGRATION_MODE)
        if has_claim and not is_aborted:
            yield self._compare()
        stop = self._controllers(STOP, MIGRATION_MODE, "")
        yield "stop-controllers", steps.stop_step, replace(stop, has_claim=has_claim, is_aborted=is_aborted)
        hand_back = replace(self._words, has_claim=has_claim, is_aborted=is_aborted)
        yield "hand-back", steps.hand_back_step, hand_back
        moved = tuple(sorted(self._now.brokers)) if has_claim else self._in_mode(MIGRATION_MODE)
        if moved:
            yield self._roll(moved, MIGRATION_MODE, ZOOKEEPER_MODE)
        yield "wipe", steps.wipe_step, self._controllers(WIPE, "", "")

    def _mend(self) -> Iterator[StepDraft]:
        """Controllers that run are of the damage: it is they who would act on it."""
        are_running = bool(self._now.live_controllers)
        is_aborted = self._words.to_phase == REPAIR_CLAIM and self._now.facts.is_copying
        if are_running:
            stop = replace(self._controllers(STOP, MIGRATION_MODE, ""), is_aborted=is_aborted)
            yield "stop-controllers", steps.stop_step, stop
        yield "mend", steps.mend_step, replace(self._words, is_aborted=is_aborted)
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
            replace(self._controllers(RESTART, MIGRATION_MODE, MIGRATION_MODE), nodes=active),
        )

    def _unregister(self) -> Iterator[StepDraft]:
        gone = unregistered(self._words.to_phase)
        yield "unregister", steps.unregister_step, replace(self._words, nodes=() if gone is None else (gone,))

    def _in_mode(self, mode: str) -> tuple[int, ...]:
        return tuple(sorted(number for number, each in self._now.modes.items() if each == mode))

    def _last_apart(self, mode: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """ZooKeeper's controller goes last; where it has gone already, any other."""
        numbers = sorted(self._in_mode(mode), key=lambda each: each == self._now.control.controller_id)
        return tuple(numbers[:-1]), tuple(numbers[-1:])

    def _roll(self, numbers: tuple[int, ...], from_mode: str, to_mode: str, begins_copy: bool = False) -> StepDraft:
        words = replace(
            self._words,
            nodes=numbers,
            from_mode=from_mode,
            to_mode=to_mode,
            begins_copy=begins_copy,
            instruction=self._deployer.instruction(RESTART, BROKER, to_mode),
        )
        return f"roll-to-{to_mode}{'-last' if begins_copy else ''}", steps.roll_step, words

    def _controllers(self, action: str, from_mode: str, to_mode: str) -> KraftParameters:
        return replace(
            self._words,
            nodes=tuple(sorted(self._words.controller_addresses)),
            from_mode=from_mode,
            to_mode=to_mode,
            instruction=self._deployer.instruction(action, CONTROLLER, to_mode),
        )

    def _compare(self) -> StepDraft:
        return "compare", steps.compare_step, self._words


def _own_settings(words: KraftParameters) -> dict[str, str]:
    """The files of a step's nodes, in the mode that they go to and, for an undo, in the one that they come from."""
    modes = (words.from_mode, words.to_mode)
    names = {
        settings_file(Path(), role, number, mode).name
        for role in (BROKER, CONTROLLER)
        for number in words.nodes
        for mode in modes
        if mode
    }
    return {name: digest for name, digest in words.settings.items() if name in names}
