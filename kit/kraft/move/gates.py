"""Define what must hold before a plan to each phase is made, and again before its first order: one table.

Each gate is a rule of the engine's and an observation: a sentence reports what is wrong, None that nothing is. An
unreadable condition is not met. A rule that can be overridden is overridden by its name, by the operator or by a second
person, who then has to approve the plan (``overrides``). What a plan has overridden stays overridden before its first
order, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kit.clients.nodes import KRAFT_MODE, MIGRATION_MODE, ZOOKEEPER_MODE
from kit.errors import OfframpError
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, ZOOKEEPER
from kit.kraft.move import conditions
from kit.kraft.move.conditions import Problem
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.nodes import BROKER, CONTROLLER, FINALISED as FINAL_MODE
from kit.kraft.move.overrides import (
    OLD_CONSUMERS,
    REHEARSED,
    SOAK,
    STOPPED,
    VOTERS_KNOWN,
    left_behind,
    of_group,
    of_node,
    reported_stopped,
)
from kit.kraft.move.steps import (
    FAIL_OVER,
    REPAIR_BROKERS,
    REPAIR_CLAIM,
    REPAIR_EPOCH,
    REPAIR_MIGRATION,
    RETURN_FLAG,
    UNREGISTER,
)
from kit.tables.conditions import NEVER, OPERATOR, Condition, Rule


@dataclass(frozen=True, slots=True)
class Gate:
    """``where``: the phases of the cluster in which this is asked; none: in all."""

    rule: Rule
    problem: Problem
    where: tuple[str, ...] = ()

    def found(self, inputs: GateInputs, overrides: Iterable[str] = ()) -> Iterator[Condition]:
        """Yield the findings of a gate. If its parts are overridden one by one, a part that ``overrides`` names has a
        finding of its own.
        """
        yield self._found(self.rule, self.problem, inputs)

    def _found(self, rule: Rule, problem: Problem, inputs: GateInputs) -> Condition:
        try:
            answer = problem(inputs)
        except OfframpError as error:
            return rule.found(None, str(error))
        return rule.found(answer is None, answer or f"{rule.holds}.")


class GroupsGate(Gate):
    """Old consumers: a finding for each group that is left behind, one for all others, which can't be overridden."""

    def found(self, inputs: GateInputs, overrides: Iterable[str] = ()) -> Iterator[Condition]:
        groups = left_behind(overrides)
        others = replace(self.rule, overridden_by=NEVER)
        yield self._found(others, lambda seen: conditions.old_members(seen, without=groups), inputs)
        for group in groups:
            yield self._found(of_group(group), lambda seen, group=group: conditions.lives(seen, group), inputs)  # type: ignore[misc]


class StoppedGate(Gate):
    """Unreachable controllers: a finding for each one that a person reports as stopped, and one for all others."""

    def found(self, inputs: GateInputs, overrides: Iterable[str] = ()) -> Iterator[Condition]:
        addresses = reported_stopped(overrides)
        yield self._found(replace(self.rule, overridden_by=NEVER), conditions.reached, inputs)
        for address in addresses:
            yield self._found(of_node(address), lambda seen, address=address: conditions.reaches(seen, address), inputs)  # type: ignore[misc]


def findings(to_phase: str, inputs: GateInputs, overrides: Iterable[str] = ()) -> Sequence[Condition]:
    """Every gate of a phase, in the order of the table."""
    asked = [
        gate
        for gate in GATES[UNREGISTER if inputs.gone is not None else to_phase]
        if not gate.where or inputs.now.phase in gate.where
    ]
    names = tuple(overrides)
    return [each for gate in asked for each in gate.found(inputs, names)]


def _gate(name: str, sentence: str, problem: Problem, overridden_by: str = NEVER, where: tuple[str, ...] = ()) -> Gate:
    return Gate(Rule(name, sentence, overridden_by=overridden_by), problem, where)


_IDS = _gate("controller_ids", "the profile names every controller with its id", conditions.ids_known)
_EVERY_BROKER = _gate(
    "every_broker", "every broker that is registered in ZooKeeper or KRaft answers", conditions.every_broker
)
_SYNC = _gate("in_sync", "every partition has a leader and its full ISR (A06)", conditions.sync)
_SOUND = _gate("no_contradiction", "no fact contradicts another", conditions.no_contradiction)
_WAITING = _gate("waiting", "the controllers wait with an empty log", conditions.waiting, where=(CONTROLLERS,))
_BEFORE = _gate("preflight", "no check of the preflight blocks the move", conditions.preflight)
_DUAL_WRITE = _gate("dual_write", "the copy is done, and dual write continues", conditions.dual_write)
_SAME = _gate("diff", "ZooKeeper and KRaft hold the same values", conditions.same)
_IN_DUAL_WRITE = (replace(_DUAL_WRITE, where=(DUAL_WRITE, KRAFT)), replace(_SAME, where=(DUAL_WRITE, KRAFT)))
_KNOWN = "every blocking check of the preflight has a known answer"


_NO_KRAFT_MODE = _gate("no_kraft_mode", "no broker is in KRaft mode", conditions.no_broker_in_kraft_mode)
_REACHED = StoppedGate(STOPPED, conditions.reached)
_LOG_KNOWN = _gate("log_known", "the controllers' log was read, or no controller answers", conditions.log_known)
_NOT_SYNCED = _gate(
    "nothing_synced", "controllers with an empty log have not written to ZooKeeper", conditions.nothing_synced
)
_BROKERS_START = _gate(
    "brokers_start", "no znode keeps a broker from starting (Z07 to Z11)", conditions.brokers_start, OPERATOR
)
_VOTERS_KNOWN = Gate(VOTERS_KNOWN, conditions.voters_known)
_SILENT = _gate("controllers_silent", "no controller answers", conditions.controllers_silent)


def _files(role: str, mode: str) -> Gate:
    return _gate(f"settings_{mode}", f"each {role} has settings for {mode} mode", conditions.settings(role, mode))


_OF_PHASE: Mapping[str, tuple[Gate, ...]] = {
    CONTROLLERS: (
        _IDS,
        _REACHED,
        _EVERY_BROKER,
        _gate("phase", "nothing has begun", conditions.phase(ZOOKEEPER)),
        _BEFORE,
        _gate("preflight_known", _KNOWN, conditions.preflight_known("L01", "L02", "L03"), overridden_by=OPERATOR),
        _gate(
            "in_sync", "every partition has a leader and its full ISR (A06)", conditions.sync, overridden_by=OPERATOR
        ),
        _gate("disks_wiped", "no run left a log on the controllers' disks", conditions.wiped, overridden_by=OPERATOR),
        _files(CONTROLLER, MIGRATION_MODE),
        Gate(REHEARSED, conditions.rehearsed),
    ),
    RETURN_FLAG: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "dual write continues", conditions.phase(DUAL_WRITE, KRAFT)),
        _gate(
            "active_flag",
            "the active controller has the migration flag, and every controller answers",
            conditions.active_flag,
        ),
        _files(CONTROLLER, MIGRATION_MODE),
    ),
    DUAL_WRITE: (
        _IDS,
        _EVERY_BROKER,
        _gate(
            "phase",
            "the controllers wait, or some brokers are in a later mode",
            conditions.phase(CONTROLLERS, DUAL_WRITE, KRAFT),
        ),
        _SOUND,
        _SYNC,
        _files(BROKER, MIGRATION_MODE),
        replace(_files(BROKER, ZOOKEEPER_MODE), where=(CONTROLLERS,)),
        _WAITING,
        _gate(
            "left_to_move",
            "at least one broker is not in migration mode yet",
            conditions.left_to_move,
            NEVER,
            (CONTROLLERS,),
        ),
        replace(_BEFORE, where=(CONTROLLERS,)),
        _gate("low_epoch", "KRaft's epoch is low (L03)", conditions.low_epoch, OPERATOR, (CONTROLLERS,)),
        _gate("preflight_known", _KNOWN, conditions.preflight_known("L03"), OPERATOR, (CONTROLLERS,)),
        *_IN_DUAL_WRITE,
    ),
    KRAFT: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "dual write continues", conditions.phase(DUAL_WRITE, KRAFT)),
        _SOUND,
        _DUAL_WRITE,
        _SYNC,
        GroupsGate(OLD_CONSUMERS, conditions.old_members),
        _files(BROKER, KRAFT_MODE),
        _files(BROKER, MIGRATION_MODE),
        _SAME,
    ),
    FINALISED: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "all brokers are in KRaft mode", conditions.phase(KRAFT)),
        _SOUND,
        _DUAL_WRITE,
        _SYNC,
        _gate("all_in_kraft_mode", "every broker is in KRaft mode and unfenced", conditions.all_in_kraft_mode),
        _files(CONTROLLER, FINAL_MODE),
        Gate(SOAK, conditions.soaked),
        _SAME,
    ),
    ZOOKEEPER: (
        _IDS,
        _VOTERS_KNOWN,
        _REACHED,
        _EVERY_BROKER,
        _gate("phase", "the migration is not finalised", conditions.phase(CONTROLLERS, DUAL_WRITE, KRAFT)),
        _gate("no_copy", "no copy from ZooKeeper is in progress, or the copy was aborted", conditions.no_copy),
        _SOUND,
        _SYNC,
        _BROKERS_START,
        _gate("R03", "no broker was formatted for KRaft", conditions.v0),
        _gate(
            "R03_known",
            "it is known that no broker was formatted for KRaft",
            conditions.v0_known,
            overridden_by=OPERATOR,
        ),
        _files(BROKER, ZOOKEEPER_MODE),
        _files(BROKER, MIGRATION_MODE),
        *_IN_DUAL_WRITE,
    ),
    REPAIR_CLAIM: (
        _IDS,
        _VOTERS_KNOWN,
        _REACHED,
        _EVERY_BROKER,
        _LOG_KNOWN,
        _NO_KRAFT_MODE,
        _NOT_SYNCED,
        _gate(
            "controllers_gone",
            "the controllers' logs hold nothing that ZooKeeper lacks",
            conditions.controllers_gone,
            OPERATOR,
        ),
    ),
    REPAIR_MIGRATION: (
        replace(_IDS, rule=replace(_IDS.rule, overridden_by=OPERATOR)),
        replace(_VOTERS_KNOWN, problem=conditions.voters_known_of_running),
        _REACHED,
        _EVERY_BROKER,
        _LOG_KNOWN,
        _NO_KRAFT_MODE,
        _NOT_SYNCED,
    ),
    REPAIR_EPOCH: (_REACHED, _EVERY_BROKER, _SILENT, _NO_KRAFT_MODE),
    REPAIR_BROKERS: (
        _IDS,
        _REACHED,
        _EVERY_BROKER,
        _SILENT,
        _NO_KRAFT_MODE,
        _BROKERS_START,
        _files(BROKER, ZOOKEEPER_MODE),
    ),
    UNREGISTER: (
        _IDS,
        _gate("phase", "controllers run", conditions.phase(CONTROLLERS, DUAL_WRITE, KRAFT)),
        _SOUND,
        _WAITING,
        replace(_DUAL_WRITE, where=(DUAL_WRITE, KRAFT)),
        _gate(
            "is_gone",
            "the broker does not run: it does not answer, is not in /brokers/ids and, during dual write, is fenced",
            conditions.is_gone,
        ),
        _gate("no_replicas", "no partition has a replica on the broker", conditions.no_replicas),
    ),
    FAIL_OVER: (
        _IDS,
        _EVERY_BROKER,
        _gate("phase", "dual write continues", conditions.phase(DUAL_WRITE, KRAFT)),
        _SOUND,
        _gate(
            "three_controllers",
            "the quorum keeps a majority while one controller restarts",
            conditions.three_controllers,
        ),
        _DUAL_WRITE,
        _gate("caught_up", "every controller has caught up with the active one", conditions.caught_up),
        _SYNC,
        _files(CONTROLLER, MIGRATION_MODE),
        _SAME,
    ),
}
_EVERYWHERE = (
    _gate(
        "zookeeper_writes", "offramp's ZooKeeper login may write the znodes that a rollback writes", conditions.writes
    ),
    _gate("zookeeper_sees", "offramp's ZooKeeper login can see every znode of Kafka", conditions.sees),
)
GATES: Mapping[str, tuple[Gate, ...]] = {to: (*_EVERYWHERE, *gates) for to, gates in _OF_PHASE.items()}
RULES: tuple[Rule, ...] = tuple(dict.fromkeys(gate.rule for gates in GATES.values() for gate in gates))
"""Each once: the sentence or the override of a gate may differ between phases."""
