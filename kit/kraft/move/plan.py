"""Plans that move a cluster to a phase of KIP-866, or back to ZooKeeper, from what is observed.

    zookeeper ── controllers ── dual write ── kraft ── finalised
        ▲─────────────┴─────────────┴──────────┘

Each phase is one plan with one approval; a plan goes one phase on. The rollback is one plan from any phase of the
cluster, until it is finalised. Beside them: plans that repair what another operator or tool left, and one that moves
the active controller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.engine.model.observation import Observation
from kit.engine.model.plan import LONGEST_WAY_BACK_S, WAY_BACK_S, Plan
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NothingToDo, PlanError
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, FINALISED, KRAFT, PHASES, ZOOKEEPER
from kit.kraft.move import steps
from kit.kraft.move.cluster_state import READS, ClusterState, MoveReads, read_cluster_state, zookeeper_of
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.gates import findings
from kit.kraft.move.leftovers import leftovers
from kit.kraft.move.nodes import NodeDeployer, node_deployer
from kit.kraft.move.orders import settings_digests
from kit.kraft.move.overrides import left_behind, reported_stopped, reports_voters
from kit.kraft.move.parameters import NODE_TIMEOUT_S, QUIET_S, KraftParameters
from kit.kraft.move.problems import describe_modes, running_problem, without_flag
from kit.kraft.move.repair import (
    first_damage,
    for_repair,
    known_brokers,
    migrating_brokers,
    stale_migration,
)
from kit.kraft.move.step_maker import StepMaker
from kit.kraft.move.steps import (
    FAIL_OVER,
    REPAIR,
    RETURN_FLAG,
    consent_of,
    target_of,
    unregistered,
)
from kit.kraft.subject import KIND
from kit.tables.conditions import Condition, raise_if_unsafe, warnings
from kit.tables.kraft import REFUSED
from kit.text.naming import named

RISKS: Mapping[str, tuple[str, ...]] = {
    CONTROLLERS: ("Start all controllers within a short time: controllers that start one by one raise KRaft's epoch.",),
    DUAL_WRITE: (
        "Until the move is rolled back or finalised, make no client-metrics setting, feature change, manual edit in "
        "ZooKeeper, or large reassignment, and do not delete the last quota of an entity.",
    ),
    KRAFT: ("From now on, clients that search for brokers in ZooKeeper find none.",),
    FINALISED: ("The cluster can't return to ZooKeeper.",),
    ZOOKEEPER: (
        "After the controllers stop and until a broker becomes the controller, no metadata can be changed and no "
        "leader elected.",
    ),
    FAIL_OVER: ("For some seconds, until another controller has claimed ZooKeeper, no metadata can be changed.",),
}


@dataclass(frozen=True, slots=True)
class KraftPlanRequest:
    """The goal of the cluster: a phase, or ``repair``, ``fail over``, ``unregister broker 3``.

    ``node_timeout_s``: what one node may take. ``way_back_s``: for how long the run may be undone without a new
    approval. ``quiet_s``: how long nothing may change after an order was called off.

    Raises:
        InputError: there is no such phase, or a time is out of its range.
    """

    to_phase: str
    node_timeout_s: float = NODE_TIMEOUT_S
    way_back_s: float = WAY_BACK_S
    quiet_s: float = QUIET_S

    def __post_init__(self) -> None:
        if self.to_phase not in (*steps.PHASES, REPAIR, FAIL_OVER) and unregistered(self.to_phase) is None:
            raise InputError(f"there is no phase {self.to_phase!r}; the phases are {', '.join(steps.PHASES)}")
        if not 0 < self.node_timeout_s <= 24 * 3600 or not 0 <= self.quiet_s <= 24 * 3600:
            raise InputError(
                "--node-timeout (in Python: node_timeout_s) must be more than 0 s, and quiet_s 0 s or more;"
                " both at most a day"
            )
        if not 0 < self.way_back_s <= LONGEST_WAY_BACK_S:
            raise InputError(f"the time limit of an undo is more than 0 h and at most {LONGEST_WAY_BACK_S / 3600:g} h")

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_kraft`, and PlanError on a cluster without ZooKeeper."""
        if context.cluster.zookeeper is None:
            raise PlanError(
                f"cluster {context.cluster.name!r} has no zookeeper_connect in the profile, which a move to KRaft "
                "needs until its end. If no broker uses ZooKeeper, there is nothing to move. To see the phase: "
                "offramp kraft status"
            )
        nodes = node_deployer(context.cluster.profile)
        return plan_kraft(context.cluster, nodes, self, made_by, context.runs, overrides, clock=context.clock)


def plan_kraft(
    cluster: Cluster,
    deployer: NodeDeployer,
    request: KraftPlanRequest,
    made_by: str,
    runs: Path,
    overrides: Iterable[str] = (),
    reads: MoveReads = READS,
    clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
) -> Plan:
    """Examine the cluster and report what is to be done. Writes nothing. ``runs``: where results of rehearsals are
    kept.

    Raises:
        ConnectError: it can't be read.
        NothingToDo: it is there already, or nothing is damaged.
        PlanError: no plan leads from the present phase to that phase.
        UnsafePlan: a gate is not met; all that are not are named.
    """
    to_phase, risks, names = request.to_phase, RISKS.get(request.to_phase, ()), tuple(overrides)
    asked = known_brokers(cluster, reads) if to_phase == REPAIR else None
    now = read_cluster_state(cluster, asked, reads, reported_stopped(names))
    if to_phase == REPAIR:
        now = for_repair(now, cluster, reads, clock.sleep)
        damage, others = first_damage(cluster, now, reads)
        to_phase, risks = (
            damage.plan,
            (damage.sentence, *(f"This plan does not repair: {each.sentence}" for each in others)),
        )
    elif (gone := unregistered(to_phase)) is not None:
        _refuse_unregistered(now, gone)
    elif to_phase != FAIL_OVER:
        _refuse_detours(cluster, now, to_phase)
    if to_phase == KRAFT and without_flag(now, cluster.profile.kraft.ids):
        to_phase = RETURN_FLAG
    seen = GateInputs(cluster, now, runs, unregistered(to_phase), reads, clock)
    found = findings(to_phase, seen, names)
    return _plan(seen, deployer, to_phase, request, made_by, risks, found, names)


def _plan(
    seen: GateInputs,
    deployer: NodeDeployer,
    to_phase: str,
    request: KraftPlanRequest,
    made_by: str,
    risks: Sequence[str] = (),
    found: Sequence[Condition] = (),
    overrides: Sequence[str] = (),
) -> Plan:
    """Return the plan, if its gates allow it. Raises UnsafePlan."""
    overridden = raise_if_unsafe(found, overrides)
    cluster, now = seen.cluster, seen.now
    parameters = KraftParameters(
        target=target_of(cluster.cluster_id),
        cluster_name=cluster.name,
        to_phase=to_phase,
        all_brokers={str(number): address for number, address in sorted(now.brokers.items())},
        controllers={str(number): address for number, address in sorted(seen.controllers.items())},
        by_person=deployer.needs_person,
        node_timeout_s=request.node_timeout_s,
        quiet_s=request.quiet_s,
        left_behind=left_behind(overridden),
        reported_stopped=reported_stopped(overridden),
        reports_voters=reports_voters(overridden),
    )
    return Plan(
        kind=KIND,
        cluster_id=cluster.confirmed_id(needs_brokers=False),
        targets=(parameters.target,),
        made_by=made_by,
        made_at=seen.clock.now(),
        observed={name: Observation(value) for name, value in observed(now, cluster).items()},
        steps=tuple(StepMaker(parameters, deployer, now, settings_digests(cluster)).steps()),
        parameters={"to_phase": to_phase, "cluster": cluster.name},
        risks=(
            *warnings(found),
            *_describe_mixed(now),
            *risks,
            *(_describe_leftovers(cluster) if to_phase == FINALISED else ()),
        ),
        overridden=overridden,
        way_back_s=request.way_back_s,
        consent=consent_of(to_phase, cluster.name, overridden),
    )


def _describe_mixed(now: ClusterState) -> Iterator[str]:
    """A roll stopped half-way, or a node was restarted by another operator or tool: the approver has to know why."""
    if len(set(now.modes.values())) > 1:
        yield (
            f"The brokers are in different modes: {describe_modes(now.modes)}. If no roll was stopped at this point, "
            "an order was executed late, or another operator or tool restarted a broker. Find out the reason before "
            "you approve the plan."
        )


def _describe_leftovers(cluster: Cluster) -> Iterator[str]:
    yield from (f"Stays in ZooKeeper: {each.sentence}." for each in leftovers(zookeeper_of(cluster)))


def observed(now: ClusterState, cluster: Cluster) -> dict[str, Json]:
    """Return what a plan rests on, besides what every step asks again."""
    control = now.control
    flags: dict[str, Json] = {
        address: None if (node := now.controller_at(address)) is None else bool(node.has_flag)
        for address in cluster.profile.kraft.addresses
    }
    return {
        "settings files": None if cluster.profile.kraft.settings_dir is None else dict(settings_digests(cluster)),
        "phase": now.phase,
        "broker modes": {str(number): mode for number, mode in now.modes.items()},
        "controllers": flags,
        "ZooKeeper's controller": None if control.is_controller_persistent else control.controller_id,
    }


def _refuse_unregistered(now: ClusterState, broker_id: int) -> None:
    """Raises NothingToDo where the log, as it was read, holds no such registration."""
    if now.facts.has_log and now.registration(broker_id) is None:
        registered = named(sorted(each.node_id for each in now.facts.registered_brokers), "broker")
        raise NothingToDo(f"broker {broker_id} is not registered with the controllers; registered: {registered}")


def _refuse_detours(cluster: Cluster, now: ClusterState, to_phase: str) -> None:
    """Raises:
    NothingToDo, PlanError: the phase is reached, passed, or too far away.
    """
    here, where = now.phase, f"cluster {cluster.name!r} is in phase {now.phase!r}"
    if here == FINALISED and to_phase != FINALISED:
        raise PlanError(f"{where}: a finalised move can't be undone")
    if (stale := stale_migration(now)) is not None:
        raise PlanError(f"{where}: {stale}. Repair that first: offramp plan kraft --repair")
    if here not in PHASES:
        refused = [each.sentence for each in now.control.problem_rows if each.kind == REFUSED]
        unread = f" ({'; '.join(refused)})" if refused else ""
        raise PlanError(
            f"{where}{unread}, so no plan can be made. To see what is unknown: offramp kraft status. If another "
            "operator or tool left this state: offramp plan kraft --repair"
        )
    is_whole = len(set(now.modes.values())) == 1 and not (
        here == KRAFT and without_flag(now, cluster.profile.kraft.ids)
    )
    if here == ZOOKEEPER and (migrating := migrating_brokers(now)):
        running = named(migrating, "broker {} runs", "brokers {} run")
        raise PlanError(
            f"{where}, and {running} in migration mode, which no plan requested. To repair it: offramp plan kraft "
            "--repair"
        )
    if here == to_phase == ZOOKEEPER and now.live_controllers:
        raise PlanError(
            f"{where}, and {running_problem(now)}. A cancelled start was executed late, or another operator started "
            "the controller. Stop the controller and empty its disk, or continue the move: offramp plan kraft --to "
            "controllers"
        )
    if here == to_phase and is_whole:
        raise NothingToDo(f"{where} already")
    if to_phase != ZOOKEEPER and PHASES.index(to_phase) > PHASES.index(here) + 1:
        next_phase = PHASES[PHASES.index(here) + 1]
        raise PlanError(f"{where}. The next plan must go to {next_phase!r}: each phase needs its own plan")
    if to_phase == CONTROLLERS and here != ZOOKEEPER:
        raise PlanError(f"{where}. There is no rollback to the phase 'controllers'; roll back to 'zookeeper'")
