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

from kit.cluster import Cluster
from kit.errors import InputError, NothingToDo, PlanError
from kit.migrate.engine.actor import Actor, ClusterPerformer
from kit.migrate.engine.checks import raise_if_unsafe, warnings
from kit.migrate.engine.observation import IGNORED, MAY_GROW, Observation
from kit.migrate.engine.plan import STOP, WAY_BACK_S, Plan
from kit.migrate.engine.recipes import Recipes, of_parameters
from kit.migrate.engine.step import Step
from kit.migrate.engine.values import Json
from kit.migrate.group.deploy import Deployer
from kit.migrate.group.group_state import FLAVOURS, KC, MEZKCC, OZKCC, Standing, look, named
from kit.migrate.group.movement import n_committed, seconds_between
from kit.migrate.group.replace import ReplaceActor
from kit.migrate.group.replacement import KIND as REPLACE
from kit.migrate.group.replacement import QUIET_S, replace_step, replace_step_of
from kit.migrate.group.rules import Limits, findings, flavours_of
from kit.migrate.group.soak import KIND as SOAK
from kit.migrate.group.soak import SoakActor, soak_step, soak_step_of
from kit.migrate.group.toggle import KIND as TOGGLE
from kit.migrate.group.toggle import ToggleActor, toggle_step, toggle_step_of
from kit.tables.groups import KAFKA, ZOOKEEPER

KIND = "group migration"
PATH = ("OZKCC", "canary MEZKCC", "all MEZKCC", "Kafka coordination", "canary KC", "all KC")
COMMIT_EVERY_S = {MEZKCC: 60.0, KC: 5.0}
"""auto.commit.interval.ms where nobody sets it: of old consumers, and so of migration-enabled ones; of Kafka's."""
DUPLICATES = "A member that is killed instead of stopped leaves an uncommitted tail, which the next one reads again."


@dataclass(frozen=True, slots=True)
class Wish:
    """Where a group is to go. ``canary`` members go ahead, watched for ``soak_s``; ``members`` go first of all.

    ``lag_tolerance`` is in records; ``stable_s`` how long the group must have had the same members; ``each_s`` what one
    replacement may take. ``way_back_s``: for how long the run may be taken back without a new approval; ``quiet_s``:
    how long nothing may change after a replacement was called off.

    ``look_s`` is how long the group is looked at before the plan is made: its lag and its members
    must not move meanwhile.
    """

    group_id: str
    to_stage: str
    canary: int = 1
    soak_s: float = 60.0
    stable_s: float = 60.0
    lag_tolerance: int = 1000
    each_s: float = 180.0
    look_s: float = 5.0
    members: tuple[str, ...] = ()
    on_failure: str = STOP
    way_back_s: float = WAY_BACK_S
    quiet_s: float = QUIET_S

    def __post_init__(self) -> None:
        if self.to_stage not in PATH:
            raise InputError(f"there is no stage {self.to_stage!r}; there are {', '.join(PATH)}")
        if self.canary < 1:
            raise InputError(f"a canary of {self.canary} members can't be watched")
        if min(self.soak_s, self.stable_s, self.look_s, self.lag_tolerance, self.quiet_s) < 0 or self.each_s <= 0:
            raise InputError(
                "soak_s, stable_s, look_s, quiet_s and lag_tolerance can't be negative, and each_s must be above 0"
            )


def plan_group(cluster: Cluster, deployer: Deployer, wish: Wish, made_by: str, overrides: Iterable[str] = ()) -> Plan:
    """Look at the group, then again a while later, and say what is to be done. Writes nothing.

    Raises:
        NotFound, ConnectError: there is no such group, or it can't be read.
        NothingToDo: it is there already.
        PlanError: it isn't on the path, or has nobody to replace.
        UnsafePlan: a rule forbids it; all that do are named.
    """
    before = look(cluster, wish.group_id)
    time.sleep(wish.look_s)
    now = look(cluster, wish.group_id)
    return plan_from(before, now, cluster.cluster_id, deployer, wish, made_by, overrides)


def plan_from(
    before: Standing,
    now: Standing,
    cluster_id: str,
    deployer: Deployer,
    wish: Wish,
    made_by: str,
    overrides: Iterable[str] = (),
) -> Plan:
    """The plan by two looks at a group; pure. Raises as :func:`plan_group`."""
    found = findings(before, now, wish.to_stage, Limits(wish.stable_s, wish.canary))
    unsafe = [each for each in found if each.is_blocking and not each.rule.can_be_overridden]
    if not unsafe:
        _refuse_off_the_path(now, wish)
    overridden = raise_if_unsafe(found, overrides)
    steps = _steps(now, wish, deployer)
    return Plan(
        kind=KIND,
        cluster_id=cluster_id,
        targets=(wish.group_id,),
        made_by=made_by,
        made_at=datetime.now(UTC),
        observed=_observed(now),
        steps=tuple(steps),
        parameters={
            "to_stage": wish.to_stage,
            "canary": wish.canary,
            "soak_s": wish.soak_s,
            "stable_s": wish.stable_s,
            "assignor": now.assignor if now.effective_mode == ZOOKEEPER else None,
        },
        risks=(*warnings(found), DUPLICATES, *_risks(steps), *_short_soaks(steps, before, now)),
        overridden=overridden,
        on_failure=wish.on_failure,
        way_back_s=wish.way_back_s,
    )


RECIPES: Recipes = {
    REPLACE: of_parameters(replace_step_of),
    TOGGLE: of_parameters(toggle_step_of),
    SOAK: of_parameters(soak_step_of),
}


def performer(cluster: Cluster, replace: ReplaceActor) -> ClusterPerformer:
    """Carries out this module's plans."""
    actors: dict[str, Actor] = {REPLACE: replace, TOGGLE: ToggleActor(cluster), SOAK: SoakActor(cluster)}
    return ClusterPerformer(cluster, actors, RECIPES, lambda plan: observe(cluster, plan))


def observe(cluster: Cluster, plan: Plan) -> Mapping[str, Json]:
    """What the plan observed, as it is now; of offsets those that it knew of."""
    found = _observed(look(cluster, plan.targets[0]))
    values: dict[str, Json] = {name: observation.value for name, observation in found.items()}
    for name in ("zookeeper_offsets", "kafka_offsets"):
        planned, current = plan.observed[name].value, values[name]
        assert isinstance(planned, Mapping)
        assert isinstance(current, Mapping)
        values[name] = {pair: offset for pair, offset in current.items() if pair in planned}
    return values


def _refuse_off_the_path(now: Standing, wish: Wish) -> None:
    if now.stage not in PATH:
        raise PlanError(f"group {wish.group_id} is not on the path from OZKCC to KC: its stage is {now.stage!r}")
    if now.stage == wish.to_stage:
        raise NothingToDo(f"group {wish.group_id} is at {wish.to_stage!r} already")
    n_members = len(now.members)
    if wish.canary >= n_members and wish.to_stage in ("canary MEZKCC", "canary KC"):
        raise PlanError(f"a canary of {wish.canary} needs more than the {n_members} member(s) of {wish.group_id}")
    strangers = set(wish.members) - {member.member_id for member in now.members}
    if strangers:
        raise PlanError(f"group {wish.group_id} has no member {', '.join(sorted(strangers))}")


def _observed(now: Standing) -> dict[str, Observation]:
    members: dict[str, Json] = {
        flavour: [member.member_id for member in now.members if member.flavour == flavour] for flavour in FLAVOURS
    }
    zookeeper: dict[str, Json] = {
        named(pair): it.zookeeper for pair, it in now.positions.items() if it.zookeeper is not None
    }
    kafka: dict[str, Json] = {named(pair): it.kafka for pair, it in now.positions.items() if it.kafka is not None}
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


def _steps(now: Standing, wish: Wish, deployer: Deployer) -> list[Step]:
    """Stage by stage; a stage that has the same members as the one before it, and no toggle between, needs none."""
    here, there = PATH.index(now.stage), PATH.index(wish.to_stage)
    forward = there > here
    passed = PATH[here : there + 1] if forward else tuple(reversed(PATH[there : here + 1]))
    counts, steps, replaced = now.counts, list[Step](), list[str]()
    total = len(now.members)
    for last, stage in pairwise(passed):
        number = f"{len(steps) + 1:02d}"
        if {last, stage} == {"all MEZKCC", "Kafka coordination"}:
            after = KAFKA if stage == "Kafka coordination" else ZOOKEEPER
            toggle = (now.mode, now.mode_version)  # The path passes the toggle once.
            steps.append(toggle_step(f"{number}-toggle-{after}", wish.group_id, *toggle, after))
            continue
        wanted = _counts(stage, total, wish.canary)
        if wanted == counts:
            continue
        name = f"{number}-replace-{stage.lower().replace(' ', '-')}"
        leaving = next(flavour for flavour in counts if counts[flavour] > wanted.get(flavour, 0))
        coming = next(flavour for flavour in wanted if wanted[flavour] > counts.get(flavour, 0))
        instruction = deployer.instruction(wish.group_id, leaving, coming)
        whom = _whom(now, wish, leaving, replaced)[: wanted[coming] - counts.get(coming, 0)]
        replaced += whom
        steps.append(
            replace_step(
                name,
                wish.group_id,
                counts,
                wanted,
                instruction,
                deployer.needs_person,
                whom,
                wish.each_s,
                wish.quiet_s,
            )
        )
        counts = wanted
        if stage.startswith("canary") and forward and wish.soak_s > 0:
            flavour = flavours_of(stage)[-1]
            name = f"{len(steps) + 1:02d}-soak-{flavour.lower()}"
            steps.append(soak_step(name, wish.group_id, flavour, wish.soak_s, wish.lag_tolerance))
    return steps


def _whom(now: Standing, wish: Wish, flavour: str, replaced: Sequence[str]) -> list[str]:
    """Of the members that are there now those still to be replaced, in order: those wished for, then the oldest."""
    left = [member for member in now.members if member.flavour == flavour and member.member_id not in replaced]
    aged = sorted(left, key=lambda it: (it.since is None, it.since, it.member_id))
    return [member.member_id for member in sorted(aged, key=lambda it: it.member_id not in wish.members)]


def _counts(stage: str, total: int, canary: int) -> dict[str, int]:
    """A canary of everybody is the next stage."""
    flavours = flavours_of(stage)
    if len(flavours) == 1:
        return {flavours[0]: total}
    ahead = min(canary, total)
    return {flavour: count for flavour, count in zip(flavours, (total - ahead, ahead)) if count}


def _risks(steps: Sequence[Step]) -> tuple[str, ...]:
    risks = []
    if any(step.kind == REPLACE and step.changes[-1].after == OZKCC for step in steps):
        risks.append("Old consumers read ZooKeeper's offsets alone: what only Kafka has is raised there first.")
    if any(step.kind == TOGGLE for step in steps):
        risks.append("While the toggle is followed each partition stands still for a moment, mostly under a second.")
    return tuple(risks)


def _short_soaks(steps: Sequence[Step], before: Standing, now: Standing) -> Iterator[str]:
    """No store tells how often members commit; what was seen in the look is said."""
    moved, lagging = n_committed(before, now)
    for step in steps:
        flavour, soak_s = str(step.parameters.get("flavour")), step.parameters.get("soak_s")
        if step.kind == SOAK and isinstance(soak_s, int | float) and soak_s < COMMIT_EVERY_S[flavour]:
            yield (
                f"The soak of {soak_s:g} s may be shorter than the {flavour}s' commit interval"
                f" ({COMMIT_EVERY_S[flavour]:g} s unless they set another): then it fails for want of commits."
                f" In {seconds_between(before, now):.0f} s of looking offsets of {moved} partitions moved;"
                f" {lagging} had records left."
            )
