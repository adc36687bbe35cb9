"""Many groups: the stage of each, and plans that toggle those that are ready, wave by wave, with a circuit breaker.

KIP-125 imagines a script that toggles all groups that are wholly migration-enabled and have been stable for some time,
and takes the load off the cluster again by toggling them back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import polars as pl

from kit.clients.cluster import Cluster
from kit.engine.model.actor import Actor, ClusterPerformer
from kit.engine.model.observation import EXACT, IGNORED, Observation
from kit.engine.model.plan import STOP, UNDO, WAY_BACK_S, Plan
from kit.engine.model.recipes import Recipes, of_parameters
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NotFound, PlanError
from kit.groups import views
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.read.whole_cluster import EVERY_GROUP
from kit.groups.snapshot import Snapshot, observe
from kit.moves.fleet.subject import KIND
from kit.moves.fleet.wave import WAVE, WaveActor, WaveParameters, WaveReadings, toggles_of, wave_step
from kit.moves.group.circuit_breaker import (
    CIRCUIT_BREAKER,
    CircuitBreakerActor,
    CircuitBreakerParameters,
    circuit_breaker_step,
    observe_some,
    read_ms,
)
from kit.moves.group.plan import refuse_without_zookeeper
from kit.moves.group.rules import SETTLE_S
from kit.moves.group.toggle import Toggle, group_of_mode, toggle_rights
from kit.tables.conditions import Condition, Rule, raise_if_unsafe
from kit.tables.groups import KAFKA, ZOOKEEPER
from kit.text.quantity import quantity

READY = {KAFKA: "all MEZKCC", ZOOKEEPER: "Kafka coordination"}
"""The stage from which a group is toggled there."""
CURED_BY_GOING_BACK = ("group_not_stable", "unowned_partitions", "kafka_ahead")
"""Blockers that a group in trouble shows before its next stage; MEZKCCs continue at the higher of both stores' offsets.
"""
NOT_READY_CODES = STAGE, BLOCKER, MEMBERS = ("stage", "blocker", "members")
"""The reasons for which a group isn't ready: its stage, its blockers, or members that are too new."""
LARGEST_WAVE = 50

WAVE_SIZE = Rule("wave_size", f"a wave has at most {LARGEST_WAVE} groups")
ALL_AT_ONCE = Rule("all_at_once", "groups go to Kafka's coordination in waves")
RULES: tuple[Rule, ...] = (
    WAVE_SIZE,
    ALL_AT_ONCE,
)


@dataclass(frozen=True, slots=True)
class FleetPlanRequest:
    """The groups to toggle, and the limits of their waves.

    ``to``: ``kafka`` or ``zookeeper``.
    ``pattern``: those whose whole id matches; or ``groups``: those, by name.
    ``wave``: groups at a time; 0 is all at once.
    ``pause_s``: seconds between two waves. The circuit breaker watches the toggled groups meanwhile.
    ``min_stable_s``: for how long a group must have had the same members.
    ``lag_tolerance``: records by which the lag of the toggled groups may grow in a pause.
    ``max_read_ms``: what a read of the coordinators may take; None is five times as long as when the plan was made.
    ``step_timeout_s``: what a wave may take until all its groups follow.
    ``way_back_s``: for how long the run may be undone without a new approval.
    """

    to: str
    pattern: str = EVERY_GROUP
    groups: tuple[str, ...] = ()
    wave: int = 10
    pause_s: float = 60.0
    min_stable_s: float = 600.0
    lag_tolerance: int = 10_000
    max_read_ms: float | None = None
    step_timeout_s: float = SETTLE_S
    on_failure: str = STOP
    way_back_s: float = WAY_BACK_S

    def __post_init__(self) -> None:
        if self.to not in READY:
            raise InputError(f"a group is toggled to {KAFKA!r} or {ZOOKEEPER!r}, not to {self.to!r}")
        if not all(each >= 0 for each in (self.wave, self.pause_s, self.min_stable_s, self.lag_tolerance)):
            raise InputError(
                "--wave, --pause, --min-stable and --lag-tolerance must be 0 or more (in Python: wave, pause_s,"
                " min_stable_s, lag_tolerance)"
            )
        if self.max_read_ms is not None and not self.max_read_ms > 0:
            raise InputError("--max-read-ms must be more than 0 (in Python: max_read_ms)")
        if self.on_failure not in (STOP, UNDO):
            raise InputError(f"on_failure is {STOP!r} or {UNDO!r}")

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_fleet`, and PlanError on a cluster without ZooKeeper."""
        refuse_without_zookeeper(context.cluster)
        return plan_fleet(context.cluster, self, made_by, overrides)


def fleet(snapshot: Snapshot[pl.DataFrame], to: str, min_stable_s: float) -> pl.DataFrame:
    """Every group, and whether it can be toggled there.

    Columns:
        group_id, stage, effective_mode, mode, n_blockers: as in ``kit.views.readiness``.
        mode_version: version of the toggle's znode.
        n_members: members in ZooKeeper.
        youngest_at: registration of the newest of them.
        not_ready_code: one of ``NOT_READY_CODES``; null: the group is ready.
        not_ready_reason: the same in words.
    """
    ready = views.readiness(snapshot).select("group_id", "stage", "effective_mode", "mode", "n_blockers")
    versions = snapshot.migration_states.select("group_id", "mode_version")
    members = (
        snapshot.members.filter(source=ZOOKEEPER)
        .group_by("group_id")
        .agg(n_members=pl.len().cast(pl.Int64), youngest_at=pl.col("registered_at").max())
    )
    blockers = views.blockers(snapshot)
    if to == ZOOKEEPER:
        blockers = blockers.filter(~pl.col("blocker").is_in(CURED_BY_GOING_BACK))
    blockers = pl.concat([unread(snapshot), blockers.select("group_id", "sentence")])
    blocking = blockers.group_by("group_id", maintain_order=True).agg(blocker=pl.col("sentence").first())
    rows = ready.join(versions, on="group_id", how="left").join(members, on="group_id", how="left")
    rows = rows.join(blocking, on="group_id", how="left")
    age_s = (pl.lit(snapshot.read_timings["observed_at"][0]) - pl.col("youngest_at")).dt.total_seconds()
    not_ready_code = (
        pl.when(pl.col("stage") != READY[to])
        .then(pl.lit(STAGE))
        .when(pl.col("blocker").is_not_null())
        .then(pl.lit(BLOCKER))
        .when(pl.lit(min_stable_s > 0) & (age_s < min_stable_s))
        .then(pl.lit(MEMBERS))
    )
    not_ready_reason = (
        pl.when(not_ready_code == STAGE)
        .then(pl.format("the group's stage is {}", "stage"))
        .when(not_ready_code == BLOCKER)
        .then("blocker")
        .when((not_ready_code == MEMBERS) & (age_s < 0))
        .then(pl.format("the newest member registered {} s in the future: set ZooKeeper's clock or this one", -age_s))
        .when(not_ready_code == MEMBERS)
        .then(pl.format("the newest member registered {} s ago", age_s.cast(pl.Int64)))
    )
    return (
        rows.with_columns(not_ready_code=not_ready_code, not_ready_reason=not_ready_reason)
        .drop("blocker")
        .sort("group_id")
    )


def unread(snapshot: Snapshot[pl.DataFrame]) -> pl.DataFrame:
    """Groups of which something could not be read: group_id, sentence. They are left out, no other group is."""
    key = ["topic", "partition"]
    own = snapshot.read_errors.filter(
        pl.col("group_id").is_not_null() & ~pl.col("topic").fill_null("").str.contains("/", literal=True)
    )
    subscribed = snapshot.subscriptions.select("group_id", "topic").unique()
    subscribed = subscribed.join(snapshot.topic_partitions.select(*key), on="topic")
    had = [frame.select("group_id", *key) for frame in (subscribed, snapshot.ownership, snapshot.committed_offsets)]
    logs = snapshot.log_offsets.filter(pl.col("error").is_not_null()).select(*key, "error")
    of_logs = logs.join(pl.concat(had).unique(), on=key)
    rows = pl.concat([own.select("group_id", "error"), of_logs.select("group_id", "error")])
    return rows.select("group_id", sentence=pl.format("part of the group can't be read: {}", "error"))


def plan_fleet(cluster: Cluster, request: FleetPlanRequest, made_by: str, overrides: Iterable[str] = ()) -> Plan:
    """Examine all groups and plan for those that are ready. Writes nothing.

    Raises:
        NotFound: a group that was named isn't there.
        PlanError: one that was named isn't ready, or none is.
        UnsafePlan: a rule forbids it.
    """
    rights = partial(toggle_rights, cluster)
    return plan_from(survey(cluster, request), cluster.confirmed_id(), request, made_by, overrides, rights)


def survey(cluster: Cluster, request: FleetPlanRequest) -> Snapshot[pl.DataFrame]:
    """One observation of all groups, and one more of ZooKeeper's offsets of those that a blocker holds back.

    A group at work commits to Kafka and to ZooKeeper, and a snapshot reads ZooKeeper first. A commit between the two
    reads makes Kafka's offset appear ahead, in another group each time. ZooKeeper's later offset has that commit, too.
    """
    snapshot = observe(cluster, request.pattern)
    rows = fleet(snapshot, request.to, request.min_stable_s)
    blocked = rows.filter(not_ready_code=BLOCKER)["group_id"].to_list()
    return with_later_offsets(snapshot, observe_some(cluster, blocked), blocked) if blocked else snapshot


def with_later_offsets(
    snapshot: Snapshot[pl.DataFrame], later: Snapshot[pl.DataFrame], groups: Sequence[str]
) -> Snapshot[pl.DataFrame]:
    """The snapshot with ``later``'s ZooKeeper offsets of these groups."""
    again = pl.col("group_id").is_in(groups) & (pl.col("store") == ZOOKEEPER)
    offsets = [snapshot.committed_offsets.filter(~again), later.committed_offsets.filter(again)]
    return replace(snapshot, committed_offsets=pl.concat(offsets))


def plan_from(
    snapshot: Snapshot[pl.DataFrame],
    cluster_id: str,
    request: FleetPlanRequest,
    made_by: str,
    overrides: Iterable[str] = (),
    rights: Callable[[Iterable[tuple[str, str | None]]], Condition] | None = None,
) -> Plan:
    """The same from a snapshot that was read before; of what ``request.pattern`` matches and no more.

    ``rights`` asks ZooKeeper whether an undo may delete the toggles that the run creates; None: it is not asked.
    """
    rows = fleet(snapshot, request.to, request.min_stable_s)
    chosen = _chosen(rows, snapshot.read_errors, request)
    findings = _findings(len(chosen), request)
    if rights is not None:
        findings.append(rights((group, mode) for group, mode, _ in _toggles(chosen)))
    overridden = raise_if_unsafe(findings, overrides)
    groups = chosen["group_id"].to_list()
    size = request.wave or len(groups)
    waves = [groups[start : start + size] for start in range(0, len(groups), size)]
    limit = request.max_read_ms or 5 * max(read_ms(snapshot), 100.0)
    return Plan(
        kind=KIND,
        cluster_id=cluster_id,
        targets=tuple(groups),
        made_by=made_by,
        made_at=datetime.now(UTC),
        observed=_observed(snapshot, waves, IGNORED if request.to == ZOOKEEPER else EXACT),
        steps=tuple(_steps(chosen, waves, request, limit)),
        parameters={
            "to": request.to,
            "wave": request.wave,
            "pause_s": request.pause_s,
            "min_stable_s": request.min_stable_s,
        },
        risks=_risks(len(rows) - len(groups), len(rows)),
        overridden=overridden,
        on_failure=request.on_failure,
        way_back_s=request.way_back_s,
    )


def _risks(n_left: int, n_all: int) -> tuple[str, ...]:
    return (f"Not changed: {n_left:,} of {quantity(n_all, 'group')}.",) if n_left else ()


RECIPES: Recipes = {
    WAVE: of_parameters(WaveParameters, lambda step_id, parameters: wave_step(parameters), target_of=group_of_mode),
    CIRCUIT_BREAKER: of_parameters(
        CircuitBreakerParameters, lambda step_id, parameters: circuit_breaker_step(parameters)
    ),
}
"""Their ids follow from their numbers."""


def performer_of(context: PlanContext) -> ClusterPerformer:
    """Executes this module's plans."""
    cluster, readings = context.cluster, WaveReadings(context.cluster, is_dry=context.folder is None)
    actors: dict[str, Actor] = {WAVE: WaveActor(cluster, readings), CIRCUIT_BREAKER: CircuitBreakerActor(cluster)}
    return ClusterPerformer(
        cluster.confirmed_id, actors, RECIPES, lambda plan: observed_of(readings.observe(plan.targets), plan)
    )


def observed_of(snapshot: Snapshot[pl.DataFrame], plan: Plan) -> Mapping[str, Json]:
    """Return the present values of what the plan observed of each wave. A group that can't be read is left out when
    it is acted on.
    """
    waves = [WaveParameters.of(step).groups for step in plan.steps if step.kind == WAVE]
    return {name: observation.value for name, observation in _observed(snapshot, waves).items()}


def _chosen(rows: pl.DataFrame, errors: pl.DataFrame, request: FleetPlanRequest) -> pl.DataFrame:
    missing = set(request.groups) - set(rows["group_id"].to_list())
    if missing:
        raise NotFound(
            f"there is no group {min(missing)!r}, neither in ZooKeeper nor in Kafka: see offramp groups{IF_HIDDEN}"
        )
    named = rows.filter(pl.col("group_id").is_in(request.groups)) if request.groups else rows
    refused = named.filter(pl.col("not_ready_reason").is_not_null())
    if request.groups and not refused.is_empty():
        first = refused.row(0, named=True)
        raise PlanError(
            f"{len(refused):,} of {quantity(len(named), 'group')} named can't be toggled yet: "
            f"{first['group_id']}: {first['not_ready_reason']}"
        )
    ready = named.filter(pl.col("not_ready_reason").is_null())
    if ready.is_empty():
        raise PlanError(
            f"of {quantity(len(named), 'group')} none is ready to be toggled to {request.to}; "
            f"`offramp readiness` shows why{_first_reason(refused, errors)}"
        )
    return ready


def _first_reason(refused: pl.DataFrame, errors: pl.DataFrame) -> str:
    """Return the reason of the first group that is not ready. What could not be read of the group comes first."""
    if refused.is_empty():
        return ""
    unread = errors.join(refused, on="group_id", how="semi").sort("subject").select("group_id", "error")
    rows = [*unread.rows(), *refused.sort("group_id").select("group_id", "not_ready_reason").rows()]
    return ". For example {}: {}".format(*rows[0])


def _findings(count: int, request: FleetPlanRequest) -> list[Condition]:
    size = min(request.wave or count, count)
    results = [
        WAVE_SIZE.found(
            size <= LARGEST_WAVE or request.to == ZOOKEEPER, f"The largest wave would have {size:,} groups."
        )
    ]
    results.append(
        ALL_AT_ONCE.found(
            request.to == ZOOKEEPER or size < count or count == 1, (f"All {count} groups would be toggled at once.")
        )
    )
    return results


def _observed(
    snapshot: Snapshot[pl.DataFrame], waves: Sequence[Sequence[str]], of_members: str = EXACT
) -> dict[str, Observation]:
    """Per wave: each group's toggle and members. These come and go in a cluster in trouble, and may do so during an
    undo.
    """
    states = {row["group_id"]: row for row in snapshot.migration_states.rows(named=True)}
    members: dict[str, list[str]] = {}
    for row in snapshot.members.filter(source=ZOOKEEPER).sort("member_id").rows(named=True):
        members.setdefault(row["group_id"], []).append(row["member_id"])
    observed = {}
    for number, wave in enumerate(waves, start=1):
        toggles = {group: _toggle(states.get(group)) for group in wave}
        observed[toggles_of(number)] = Observation(toggles)
        ids: dict[str, Json] = {group: tuple(members.get(group, ())) for group in wave}
        observed[f"wave {number} members"] = Observation(ids, of_members)
    return observed


def _toggle(state: Mapping[str, Json] | None) -> Json:
    return {"mode": state["mode"], "version": state["mode_version"]} if state else {"mode": None, "version": None}


def _toggles(chosen: pl.DataFrame) -> list[tuple[str, str | None, int | None]]:
    return chosen.select("group_id", "mode", "mode_version").rows()


def _steps(
    chosen: pl.DataFrame, waves: Sequence[Sequence[str]], request: FleetPlanRequest, max_read_ms: float
) -> list[Step]:
    toggles = {group: Toggle(mode, version) for group, mode, version in _toggles(chosen)}
    steps: list[Step] = []
    for number, wave in enumerate(waves, start=1):
        of_wave = {group: toggles[group] for group in wave}
        steps.append(wave_step(WaveParameters.of_toggles(number, of_wave, request.to, request.step_timeout_s)))
        if number < len(waves) and request.pause_s > 0:
            done = tuple(group for before in waves[:number] for group in before)
            limits = (request.pause_s, request.lag_tolerance, max_read_ms)
            steps.append(circuit_breaker_step(CircuitBreakerParameters(number, done, *limits)))
    return steps
