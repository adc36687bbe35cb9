"""Plans that move one group along KIP-125's path, one stage or several, forward or back.

    OZKCC ── canary MEZKCC ── all MEZKCC ── Kafka coordination ── canary KC ── all KC

Between two stages either members are replaced or the toggle is set; there is no other way, so a group never has a mix
of members that would read the same partitions.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from kit.clients.cluster import Cluster
from kit.engine.model.actor import Actor, ClusterPerformer
from kit.engine.model.observation import IGNORED, MAY_GROW, Observation
from kit.engine.model.plan import STOP, WAY_BACK_S, Plan
from kit.engine.model.recipes import Recipes, of_parameters
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NothingToDo, PlanError
from kit.moves.group.deploy import Deployer, deployer_of
from kit.moves.group.group_state import FLAVOURS, KC, MEZKCC, OZKCC, GroupState, named, read_group_state
from kit.moves.group.movement import n_committed, seconds_between
from kit.moves.group.replace import ReplaceActor
from kit.moves.group.replacement import KIND as REPLACE, STEP_TIMEOUT_S, ReplaceParameters, quiet_after, replace_step
from kit.moves.group.rules import Limits, findings, flavours_of
from kit.moves.group.soak import KIND as SOAK, SoakActor, SoakParameters, soak_step
from kit.moves.group.subject import KIND
from kit.moves.group.toggle import KIND as TOGGLE, ToggleActor, ToggleParameters, toggle_rights, toggle_step
from kit.tables.conditions import Condition, raise_if_unsafe, warnings
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.quantity import quantity

PATH = ("OZKCC", "canary MEZKCC", "all MEZKCC", "Kafka coordination", "canary KC", "all KC")
COMMIT_EVERY_S = {MEZKCC: 60.0, KC: 5.0}
"""auto.commit.interval.ms where it is not set: of old consumers, and so of migration-enabled ones; of Kafka's."""
DUPLICATES = "If a member is killed instead of stopped, the next member reads the uncommitted records again."


@dataclass(frozen=True, slots=True)
class GroupPlanRequest:
    """The stage to which a group is to go, and the limits on the way.

    ``canary``: how many members go ahead. They are watched for ``soak_s``.
    ``min_stable_s``: for how long the group must have had the same members.
    ``lag_tolerance``: records by which a canary's lag may grow.
    ``step_timeout_s``: what one replacement may take.
    ``observe_s``: seconds between the two observations of the group before the plan is made.
    ``members``: whom to replace first, by member id.
    ``way_back_s``: for how long the run may be undone without a new approval.
    ``quiet_s``: how long nothing may change after a replacement was called off; None: see ``quiet_after``.
    """

    group_id: str
    to_stage: str
    canary: int = 1
    soak_s: float = 60.0
    min_stable_s: float = 60.0
    lag_tolerance: int = 1000
    step_timeout_s: float = STEP_TIMEOUT_S
    observe_s: float = 5.0
    members: tuple[str, ...] = ()
    on_failure: str = STOP
    way_back_s: float = WAY_BACK_S
    quiet_s: float | None = None

    def __post_init__(self) -> None:
        if self.to_stage not in PATH:
            raise InputError(f"there is no stage {self.to_stage!r}; the stages are {', '.join(PATH)}")
        if self.canary < 1:
            raise InputError(f"a canary needs at least 1 member, not {self.canary}")
        limits = (self.soak_s, self.min_stable_s, self.observe_s, self.lag_tolerance, self.quiet_s or 0)
        if not (all(each >= 0 for each in limits) and self.step_timeout_s > 0):
            raise InputError(
                "--soak, --min-stable, --observe and --lag-tolerance must be 0 or more, --step-timeout more than 0 (in"
                " Python: soak_s, min_stable_s, observe_s, lag_tolerance, step_timeout_s; quiet_s: 0 or more)"
            )

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_group`, and PlanError on a cluster without ZooKeeper."""
        refuse_without_zookeeper(context.cluster)
        return plan_group(context.cluster, deployer_of(context.cluster.profile), self, made_by, overrides)


def refuse_without_zookeeper(cluster: Cluster) -> None:
    """Refuse KIP-125's path on a cluster without ZooKeeper: there is nothing to leave.

    Raises:
        PlanError: the profile names no ZooKeeper.
    """
    if cluster.zookeeper is None:
        raise PlanError(
            f"cluster {cluster.name!r} has no zookeeper_connect: this plan moves groups between the"
            " coordination of ZooKeeper and of Kafka. On a cluster without ZooKeeper, Kafka coordinates every group"
            " already, and there is nothing to do. Plans of offsets and deletions work: offramp plan offsets --help"
        )


def plan_group(
    cluster: Cluster, deployer: Deployer, request: GroupPlanRequest, made_by: str, overrides: Iterable[str] = ()
) -> Plan:
    """Examine the group, then again a while later, and report what is to be done. Writes nothing.

    Raises:
        NotFound, ConnectError: there is no such group, or it can't be read.
        NothingToDo: it is there already.
        PlanError: it isn't on the path, or has no member to replace.
        UnsafePlan: a rule forbids it; all that do are named.
    """
    before = read_group_state(cluster, request.group_id)
    time.sleep(request.observe_s)
    now = read_group_state(cluster, request.group_id)
    rights = toggle_rights(cluster, [(request.group_id, now.mode)] if _sets_toggle(now, request) else [])
    return plan_from(before, now, cluster.confirmed_id(), deployer, request, made_by, overrides, [rights])


def plan_from(
    before: GroupState,
    now: GroupState,
    cluster_id: str,
    deployer: Deployer,
    request: GroupPlanRequest,
    made_by: str,
    overrides: Iterable[str] = (),
    more: Iterable[Condition] = (),
) -> Plan:
    """The plan by two observations of a group; pure. ``more``: what rules found that ask a server. Raises as
    plan_group.
    """
    checked = [*findings(before, now, request.to_stage, Limits(request.min_stable_s, request.canary)), *more]
    unsafe = [each for each in checked if each.is_blocking and not each.can_be_overridden]
    if not unsafe:
        _refuse_off_the_path(now, request)
    overridden = raise_if_unsafe(checked, overrides)
    steps = _steps(now, request, deployer)
    return Plan(
        kind=KIND,
        cluster_id=cluster_id,
        targets=(request.group_id,),
        made_by=made_by,
        made_at=datetime.now(UTC),
        observed=_observed(now),
        steps=tuple(steps),
        parameters={
            "to_stage": request.to_stage,
            "canary": request.canary,
            "soak_s": request.soak_s,
            "min_stable_s": request.min_stable_s,
            "assignor": now.assignor if now.effective_mode == ZOOKEEPER else None,
        },
        risks=(*warnings(checked), DUPLICATES, *_risks(steps), *_short_soaks(steps, before, now)),
        overridden=overridden,
        on_failure=request.on_failure,
        way_back_s=request.way_back_s,
    )


RECIPES: Recipes = {
    REPLACE: of_parameters(ReplaceParameters, replace_step),
    TOGGLE: of_parameters(ToggleParameters, toggle_step),
    SOAK: of_parameters(SoakParameters, soak_step),
}


def performer_of(context: PlanContext) -> ClusterPerformer:
    """Executes this module's plans."""
    cluster = context.cluster
    toggle, replace = ToggleActor(cluster), ReplaceActor(cluster, deployer_of(cluster.profile), context.say)
    actors: dict[str, Actor] = {REPLACE: replace, TOGGLE: toggle, SOAK: SoakActor(cluster)}
    return ClusterPerformer(
        cluster.confirmed_id, actors, RECIPES, lambda plan: observe(cluster, plan), end=toggle.close_watches
    )


def observe(cluster: Cluster, plan: Plan) -> Mapping[str, Json]:
    """Return the present values of what the plan observed; of offsets only those that the plan has."""
    observed = _observed(read_group_state(cluster, plan.targets[0]))
    values: dict[str, Json] = {name: observation.value for name, observation in observed.items()}
    for name in ("zookeeper_offsets", "kafka_offsets"):
        planned, current = plan.observed[name].value, values[name]
        assert isinstance(planned, Mapping)
        assert isinstance(current, Mapping)
        values[name] = {pair: offset for pair, offset in current.items() if pair in planned}
    return values


def _sets_toggle(now: GroupState, request: GroupPlanRequest) -> bool:
    """Return whether the way passes the toggle: "Kafka coordination" is the first stage behind it."""
    behind = PATH.index("Kafka coordination")
    return now.stage in PATH and (PATH.index(now.stage) < behind) != (PATH.index(request.to_stage) < behind)


def _refuse_off_the_path(now: GroupState, request: GroupPlanRequest) -> None:
    if now.stage not in PATH:
        raise PlanError(
            f"group {request.group_id} has the stage {now.stage!r}, so no plan can move it; "
            f"see the blockers of the group: offramp readiness -g {request.group_id}"
        )
    if now.stage == request.to_stage:
        raise NothingToDo(f"group {request.group_id} is at {request.to_stage!r} already")
    n_members = len(now.members)
    if request.canary >= n_members and request.to_stage in ("canary MEZKCC", "canary KC"):
        members = quantity(n_members, "member")
        raise PlanError(f"a canary of {request.canary} needs more than the {members} of {request.group_id}")
    strangers = set(request.members) - {member.member_id for member in now.members}
    if strangers:
        raise PlanError(f"group {request.group_id} has no member {', '.join(sorted(strangers))}")


def _observed(now: GroupState) -> dict[str, Observation]:
    members: dict[str, Json] = {
        flavour: [member.member_id for member in now.members if member.flavour == flavour] for flavour in FLAVOURS
    }
    zookeeper: dict[str, Json] = {
        named(pair): it.zookeeper for pair, it in now.offsets.items() if it.zookeeper is not None
    }
    kafka: dict[str, Json] = {named(pair): it.kafka for pair, it in now.offsets.items() if it.kafka is not None}
    return {
        "stage": Observation(now.stage),
        "toggle": Observation({"mode": now.mode, "version": now.mode_version}),
        "members": Observation(members),
        "topics": Observation(dict(now.subscribed)),
        "kafka_group": Observation(now.kafka_state),
        "coordinator": Observation(now.coordinator, IGNORED),
        "zookeeper_offsets": Observation(zookeeper, MAY_GROW),
        "kafka_offsets": Observation(kafka, MAY_GROW),
    }


def _steps(now: GroupState, request: GroupPlanRequest, deployer: Deployer) -> list[Step]:
    """Stage by stage; a stage that has the same members as the one before it, and no toggle between, needs none."""
    here, there = PATH.index(now.stage), PATH.index(request.to_stage)
    forward = there > here
    passed = PATH[here : there + 1] if forward else tuple(reversed(PATH[there : here + 1]))
    counts, steps, replaced = now.counts, list[Step](), list[str]()
    total = len(now.members)
    for last, stage in pairwise(passed):
        number = f"{len(steps) + 1:02d}"
        if {last, stage} == {"all MEZKCC", "Kafka coordination"}:
            after = KAFKA if stage == "Kafka coordination" else ZOOKEEPER
            # The path passes the toggle once.
            parameters = ToggleParameters(request.group_id, now.mode, now.mode_version, after)
            steps.append(toggle_step(f"{number}-toggle-{after}", parameters))
            continue
        wanted = _counts(stage, total, request.canary)
        if wanted == counts:
            continue
        name = f"{number}-replace-{stage.lower().replace(' ', '-')}"
        leaving = next(flavour for flavour in counts if counts[flavour] > wanted.get(flavour, 0))
        coming = next(flavour for flavour in wanted if wanted[flavour] > counts.get(flavour, 0))
        whom = _whom(now, request, leaving, replaced)[: wanted[coming] - counts.get(coming, 0)]
        replaced += whom
        replace = ReplaceParameters(
            group=request.group_id,
            before=counts,
            after=wanted,
            instruction=deployer.instruction(request.group_id, leaving, coming),
            by_person=deployer.needs_person,
            members=tuple(whom),
            step_timeout_s=request.step_timeout_s,
            quiet_s=quiet_after({leaving, coming}) if request.quiet_s is None else request.quiet_s,
        )
        steps.append(replace_step(name, replace))
        counts = wanted
        if stage.startswith("canary") and forward and request.soak_s > 0:
            flavour = flavours_of(stage)[-1]
            name = f"{len(steps) + 1:02d}-soak-{flavour.lower()}"
            soak = SoakParameters(request.group_id, flavour, request.soak_s, request.lag_tolerance)
            steps.append(soak_step(name, soak))
    return steps


def _whom(now: GroupState, request: GroupPlanRequest, flavour: str, replaced: Sequence[str]) -> list[str]:
    """Return the present members that are still to be replaced, in order: requested members, then the oldest."""
    left = [member for member in now.members if member.flavour == flavour and member.member_id not in replaced]
    aged = sorted(left, key=lambda it: (it.since is None, it.since, it.member_id))
    return [member.member_id for member in sorted(aged, key=lambda it: it.member_id not in request.members)]


def _counts(stage: str, total: int, canary: int) -> dict[str, int]:
    """A canary of all members is the next stage."""
    flavours = flavours_of(stage)
    if len(flavours) == 1:
        return {flavours[0]: total}
    ahead = min(canary, total)
    return {flavour: count for flavour, count in zip(flavours, (total - ahead, ahead)) if count}


def _risks(steps: Sequence[Step]) -> tuple[str, ...]:
    risks = []
    if any(step.kind == REPLACE and step.changes[-1].after == OZKCC for step in steps):
        risks.append(
            "Old consumers read ZooKeeper's offsets alone. If Kafka's offset is higher, the offset in "
            "ZooKeeper is raised first."
        )
    if any(step.kind == TOGGLE for step in steps):
        risks.append("While the toggle is followed each partition is stalled for a moment, mostly under a second.")
    return tuple(risks)


def _short_soaks(steps: Sequence[Step], before: GroupState, now: GroupState) -> Iterator[str]:
    """No store shows how often members commit; what was seen in the observation is reported."""
    moved, lagging = n_committed(before, now)
    for soak in (SoakParameters.of(step) for step in steps if step.kind == SOAK):
        if soak.soak_s < COMMIT_EVERY_S[soak.flavour]:
            yield (
                f"The soak of {soak.soak_s:g} s may be shorter than the {soak.flavour}s' commit interval"
                f" ({COMMIT_EVERY_S[soak.flavour]:g} s unless they set another): then it fails for want of commits."
                f" In {seconds_between(before, now):.0f} s of observation, offsets of {quantity(moved, 'partition')}"
                f" moved; {lagging} had records left."
            )
