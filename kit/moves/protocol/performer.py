"""Execute plans of protocols, of one group or of many: the recipes and actors of their steps."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kit.clients.cluster import Cluster
from kit.engine.model.actor import Actor, ClusterPerformer
from kit.engine.model.plan import Plan
from kit.engine.model.recipes import Recipes, of_parameters
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.moves.group import plan as group
from kit.moves.group.circuit_breaker import CircuitBreakerParameters
from kit.moves.group.deploy import deployer_of
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.replacement import KIND as REPLACE
from kit.moves.group.soak import KIND as SOAK, SoakActor
from kit.moves.protocol import group_configs, prove
from kit.moves.protocol.brake import BRAKE, BrakeActor, brake_step
from kit.moves.protocol.checked import rules_of
from kit.moves.protocol.group_configs import ConfigActor, ConfigParameters, config_step, fetch_configs
from kit.moves.protocol.plan import observed
from kit.moves.protocol.prove import ProofActor, ProofParameters, proof_step
from kit.moves.protocol.state import ProtocolState, read_protocol_state, read_protocol_states
from kit.moves.protocol.stop_and_start import StoppedActor
from kit.moves.protocol.stopped import START_ALL, STOP_ALL, StoppedParameters, start_step, stop_step
from kit.protocol.facts import ROLLING, STOPPED, Answers, Request
from kit.protocol.verdicts import read_facts
from kit.tables.conditions import unmet

RECIPES: Recipes = {
    group_configs.KIND: of_parameters(ConfigParameters, config_step),
    prove.KIND: of_parameters(ProofParameters, proof_step),
    STOP_ALL: of_parameters(StoppedParameters, stop_step),
    START_ALL: of_parameters(StoppedParameters, start_step),
    BRAKE: of_parameters(CircuitBreakerParameters, brake_step),
}
"""The recipes of the steps of this folder. All other steps are those of ``kit.moves.group``, on groups that Kafka
alone has.
"""


def performer_of(context: PlanContext) -> ClusterPerformer:
    """Executes this module's plans."""
    cluster, deployer = context.cluster, deployer_of(context.cluster.profile)
    readings = Readings(is_dry=context.folder is None)
    stopped = StoppedActor(cluster, deployer, context.say, read=readings.read)
    actors: dict[str, Actor] = {
        REPLACE: ReplaceActor(cluster, deployer, context.say, read=readings.read),
        SOAK: SoakActor(cluster, read=readings.read),
        group_configs.KIND: ConfigActor(cluster),
        prove.KIND: ProofActor(cluster),
        STOP_ALL: stopped,
        START_ALL: stopped,
        BRAKE: BrakeActor(cluster),
    }
    recipes = {**group.RECIPES, **RECIPES}
    return ClusterPerformer(
        cluster.confirmed_id,
        actors,
        recipes,
        lambda plan: readings.observe(cluster, plan),
        refusal=lambda plan: refusal(cluster, plan),
    )


def refusal(cluster: Cluster, plan: Plan) -> str | None:
    """Return which checks forbid the plan now and were not overridden, before the first write of a run; None: none
    does.
    """
    to_protocol, answers = plan.parameters["to_protocol"], plan.parameters["answers"]
    assert isinstance(answers, Mapping)
    request = Request(str(to_protocol), str(plan.parameters.get("how", ROLLING)), Answers.from_json(answers))
    facts = read_facts(cluster, set(plan.targets).__contains__, request.how == STOPPED)
    problems = {target: unmet(rules_of(facts, target, request), plan.overridden) for target in plan.targets}
    name = len(plan.targets) > 1
    return "; ".join(f"{target}: {it}" if name else it for target, each in problems.items() for it in each) or None


class Readings:
    """Readings of groups. A dry run checks each step by the reading that it compared with the plan.

    A plan of a thousand groups has thousands of steps, and each reading of one group lists all groups of the cluster.
    """

    def __init__(
        self,
        is_dry: bool,
        read: Callable[[Cluster, str], ProtocolState] = read_protocol_state,
        read_all: Callable[[Cluster, Collection[str]], Mapping[str, ProtocolState]] = read_protocol_states,
    ) -> None:
        self._is_dry, self._read, self._read_all = is_dry, read, read_all
        self._states: Mapping[str, ProtocolState] = {}

    def read(self, cluster: Cluster, group_id: str) -> ProtocolState:
        """Raises as ``read_protocol_state``."""
        return self._states[group_id] if self._is_dry else self._read(cluster, group_id)

    def observe(self, cluster: Cluster, plan: Plan) -> Mapping[str, Json]:
        """Return the present values of what the plan observed; of offsets only those that the plan has. A plan of
        many groups has each by its group id.

        Raises as ``read_protocol_states``.
        """
        self._states = self._read_all(cluster, plan.targets)
        planned = {name: observation.value for name, observation in plan.observed.items()}
        if len(plan.targets) == 1:
            return self._observed(cluster, plan.targets[0], planned)
        found = {target: self._observed(cluster, target, _of_group(planned, target)) for target in plan.targets}
        return {name: {target: each[name] for target, each in found.items()} for name in planned}

    def _observed(self, cluster: Cluster, group_id: str, planned: Mapping[str, Json]) -> dict[str, Json]:
        values: dict[str, Json] = {name: it.value for name, it in observed(self._states[group_id]).items()}
        known, current = planned["kafka_offsets"], values["kafka_offsets"]
        assert isinstance(known, Mapping)
        assert isinstance(current, Mapping)
        values["kafka_offsets"] = {pair: offset for pair, offset in current.items() if pair in known}
        configs = planned.get("group_configs", {})
        assert isinstance(configs, Mapping)
        if configs:
            values["group_configs"] = dict(fetch_configs(cluster, group_id, sorted(configs)))
        return values


def _of_group(planned: Mapping[str, Json], target: str) -> dict[str, Json]:
    values: dict[str, Json] = {}
    for name, value in planned.items():
        assert isinstance(value, Mapping)
        values[name] = value[target]
    return values
