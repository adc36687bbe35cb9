"""Execute plans that move a cluster: one actor per kind of step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from kit.clients.cluster import Cluster
from kit.engine.model.actor import Actor, ClusterPerformer
from kit.engine.model.clock import Clock
from kit.engine.model.plan import Plan
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import RunError
from kit.kraft.move import steps
from kit.kraft.move.archive import ArchiveActor, ListActor
from kit.kraft.move.cluster_state import READS, ClusterState, MoveReads, read_cluster_state
from kit.kraft.move.compare import CompareActor
from kit.kraft.move.controllers import StartActor, StopActor, WipeActor
from kit.kraft.move.fail_over import FailOverActor
from kit.kraft.move.finalise import FinaliseActor
from kit.kraft.move.gate_inputs import GateInputs
from kit.kraft.move.gates import findings
from kit.kraft.move.hand_back import HandBackActor
from kit.kraft.move.nodes import NodeDeployer, node_deployer
from kit.kraft.move.orders import NodeOperator
from kit.kraft.move.parameters import OrderParameters
from kit.kraft.move.plan import observed
from kit.kraft.move.problems import describe_modes
from kit.kraft.move.recipes import RECIPES, parameters_of
from kit.kraft.move.repair import (
    RepairActor,
    for_repair,
    known_brokers,
)
from kit.kraft.move.return_flag import ReturnFlagActor
from kit.kraft.move.roll import RollActor
from kit.kraft.move.steps import unregistered
from kit.kraft.move.unregister import UnregisterActor
from kit.tables.conditions import unmet
from kit.text.naming import named


def performer_of(context: PlanContext) -> ClusterPerformer:
    nodes = node_deployer(context.cluster.profile)
    return performer(context.cluster, nodes, context.say, context.clock, context.runs, context.folder)


def performer(
    cluster: Cluster,
    deployer: NodeDeployer,
    say: Callable[[str], None],
    clock: Clock,
    runs: Path,
    folder: Path | None = None,
    reads: MoveReads = READS,
) -> ClusterPerformer:
    """Executes this module's plans. ``folder``: of the run, where one continues; ``runs``: as of ``plan_kraft``."""
    hands = NodeOperator(cluster, deployer, say, clock, folder=folder, reads=reads)
    actors: dict[str, Actor] = {
        steps.ROLL: RollActor(hands),
        steps.START: StartActor(hands),
        steps.STOP: StopActor(hands),
        steps.HAND_BACK: HandBackActor(hands),
        steps.WIPE: WipeActor(hands),
        steps.COMPARE: CompareActor(hands),
        steps.FINALISE: FinaliseActor(hands),
        steps.MEND: RepairActor(hands),
        steps.FAIL_OVER_STEP: FailOverActor(hands),
        steps.FLAG_STEP: ReturnFlagActor(hands),
        steps.ARCHIVE: ArchiveActor(hands),
        steps.LIST: ListActor(hands),
        steps.UNREGISTER_STEP: UnregisterActor(hands),
    }

    def observe(plan: Plan) -> Mapping[str, Json]:
        parameters = parameters_of(plan.steps[0])
        return observed(hands.read_state(parameters), cluster)

    def settle(plan: Plan, other_run: str, go_on: Callable[[], None]) -> None:
        parameters = parameters_of(plan.steps[0])
        hands.settle(parameters, f"run {other_run} left an order behind", go_on)
        if (problem := _came_late(plan, hands.read_state(parameters))) is not None:
            raise RunError(
                f"an order of run {other_run} was executed late: {problem}. This plan does not expect that. Nothing "
                "was written. Make a new plan"
            )

    def refusal(plan: Plan) -> str | None:
        return gates_refusal(cluster, plan, runs, reads, clock)

    # While the brokers restart, none may answer.
    ask_id = partial(cluster.confirmed_id, needs_brokers=False)
    return ClusterPerformer(ask_id, actors, RECIPES, observe, refusal, settle)


def _came_late(plan: Plan, now: ClusterState) -> str | None:
    """Brokers that are in another mode than when the plan was made, and that none of its rolls brings there."""
    planned = plan.observed["broker modes"].value
    orders = [parameters for parameters in map(parameters_of, plan.steps) if isinstance(parameters, OrderParameters)]
    rolls = [parameters for parameters in orders if parameters.from_mode]
    if not isinstance(planned, Mapping):
        return None
    late = {
        number: mode
        for number, mode in now.modes.items()
        if mode not in (planned.get(str(number)), None)
        and not any(number in parameters.nodes and parameters.to_mode == mode for parameters in rolls)
    }
    return describe_modes(late) if late else None


def gates_refusal(cluster: Cluster, plan: Plan, runs: Path, reads: MoveReads, clock: Clock) -> str | None:
    """Return which gates of a plan don't hold any more, but for those that it has overridden; the same table, asked
    now.

    Raises:
        ConnectError: ZooKeeper, or every broker that is asked, does not answer.
    """
    parameters = parameters_of(plan.steps[0])
    is_repair = parameters.to_phase in steps.REPAIRS
    now = read_cluster_state(
        cluster, known_brokers(cluster, reads) if is_repair else None, reads, parameters.reported_stopped
    )
    if joined := sorted(set(now.brokers) - set(parameters.broker_addresses)):
        return f"{named(joined, 'broker {} has', 'brokers {} have')} joined since the plan was made: make a new plan"
    if is_repair:
        now = for_repair(now, cluster, reads, clock.sleep)
    seen = GateInputs(cluster, now, runs, unregistered(parameters.to_phase), reads, clock)
    problems = unmet(findings(parameters.to_phase, seen, plan.overridden), plan.overridden)
    return f"the conditions of the plan no longer hold: {'; '.join(problems)}" if problems else None
