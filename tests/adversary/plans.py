"""Real plans of the model's groups, and forged ones: whose steps say one thing and whose parameters another."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import polars as pl

from kit.engine.model.plan import Plan
from kit.engine.model.step import Step
from kit.errors import InputError, OfframpError
from kit.groups.snapshot import Snapshot
from kit.moves.fleet import plan as fleet
from kit.moves.fleet.plan import FleetPlanRequest
from kit.moves.group import plan as group
from kit.moves.group.group_state import FLAVOURS
from kit.moves.group.plan import GroupPlanRequest
from kit.moves.group.replacement import ReplaceParameters, replace_step
from kit.moves.protocol import plan as protocol
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest
from kit.tables.groups import (
    KAFKA,
    ZOOKEEPER,
    CommittedOffset,
    Group as GroupRow,
    LogOffset,
    Member,
    MigrationState,
    Ownership,
    ReadTiming,
    Subscription,
    TopicPartition,
)
from tests.adversary.deployers import instruction
from tests.adversary.groups import EKC, KC, MEZKCC, PARTITIONS, TOPIC, ModelGroup
from tests.adversary.process import Sight
from tests.adversary.world import ContestedCluster
from tests.generators import snapshots

PLANNER: Any = SimpleNamespace(needs_person=True, instruction=instruction)


def plan_group(world: ContestedCluster, request: GroupPlanRequest) -> Plan | None:
    """None where it was refused, which is reported; a name is no reason to refuse."""
    return _planned(
        world,
        f"{request.group_id} to {request.to_stage}",
        lambda: group.plan_from(*_looks(world, request.group_id), "model", PLANNER, request, "Ann"),
    )


def plan_fleet(world: ContestedCluster, request: FleetPlanRequest) -> Plan | None:
    sight: Any = Sight({name: world.look(name) for name in request.groups})
    with patch.object(fleet, "fleet", fleet_rows):
        return _planned(world, f"a fleet to {request.to}", lambda: fleet.plan_from(sight, "model", request, "Ann"))


def plan_protocol(world: ContestedCluster, request: ProtocolPlanRequest) -> Plan | None:
    """Without the proof by ``__consumer_offsets``, which the model has not."""

    def make() -> Plan:
        return protocol.plan_from(Observed(*_looks(world, request.group_id)), "model", PLANNER, request, "Ann")

    return _planned(world, f"{request.group_id} to the {request.to_protocol} protocol, {request.how}", make)


def fleet_rows(sight: Sight, to: str, min_stable_s: float) -> pl.DataFrame:
    """Return what a plan takes from :func:`kit.moves.fleet.plan.fleet`, which takes a fifth of a second."""
    names = sight.found.items()
    not_ready_reason = [
        None if found.stage == fleet.READY[to] else (f"the group's stage is {found.stage}") for _, found in names
    ]
    modes = [found.mode for _, found in names]
    versions = [found.mode_version for _, found in names]
    columns = {
        "group_id": list(sight.found),
        "mode": modes,
        "mode_version": versions,
        "not_ready_reason": not_ready_reason,
    }
    types = {**dict.fromkeys(columns, pl.String), "mode_version": pl.Int32}
    return pl.DataFrame(columns, types).sort("group_id")


def _looks(world: ContestedCluster, name: str) -> list[Any]:
    first = world.look(name)
    world.time.sleep(5)
    return [first, world.look(name)]


def _planned(world: ContestedCluster, what: str, make: Any) -> Plan | None:
    try:
        return world.made_at(make())
    except InputError as error:
        world.judge.wrong("unplannable", f"{what}: {error}")
    except OfframpError as error:
        world.say(f"no plan for {what}: {type(error).__name__}: {str(error)[:160]}")
    return None


def forged(plan: Plan, others: list[str], rng: random.Random) -> Plan:
    """Titles and changes as they were; one step's parameters say something else. Its digest is its own."""
    number = rng.choice([at for at, step in enumerate(plan.steps) if step.changes])
    steps = list(plan.steps)
    steps[number] = _forged_step(steps[number], others, rng)
    return replace(plan, steps=tuple(steps))


def _forged_step(step: Step, others: list[str], rng: random.Random) -> Step:
    words: dict[str, Any] = dict(step.parameters)
    if step.kind == "wave":
        return _with(step, {"groups": tuple(others), "before": dict.fromkeys(others)})
    if step.kind == "toggle":
        return _with(step, {"group": rng.choice(others), "before": None})
    choices = [
        of_group(step, others[0]),
        _with(step, {"members": ("nobody",)}),
        _with(step, {"after": _one_more(words["after"])}),
    ]
    return rng.choice(choices)


def senseless(world: ContestedCluster, plan: Plan) -> Plan:
    """Consistent with itself, as its own factory made it: one member becomes of any other flavour, here and now.

    Raises:
        PlanError: the factory makes no such step.
    """
    name = plan.targets[0]
    counts = dict(world.groups[name].mix.counts)
    old = world.rng.choice(sorted(counts))
    new = world.rng.choice([each for each in FLAVOURS if each != old])
    after = {**counts, old: counts[old] - 1, new: counts.get(new, 0) + 1}
    words = instruction(name, old, new)
    left = {each: n for each, n in after.items() if n}
    step = replace_step("01-senseless", ReplaceParameters(name, counts, left, words, True, step_timeout_s=40.0))
    return replace(plan, steps=(step,))


def of_group(step: Step, name: str) -> Step:
    """A replacement that says what it said and replaces another group's members."""
    flavours = [str(value) for value in (step.changes[-1].before, step.changes[-1].after)]
    return _with(step, {"group": name, "instruction": instruction(name, *flavours)})


def _one_more(after: Mapping[str, int]) -> dict[str, int]:
    return {flavour: count + 1 for flavour, count in after.items()}


def _with(step: Step, changed: Mapping[str, Any]) -> Step:
    return replace(step, parameters={**step.parameters, **changed})


def snapshot_of(groups: list[ModelGroup], now: datetime) -> Snapshot[pl.DataFrame]:
    """The rows that a real read of such groups gives."""
    rows: dict[str, list[Any]] = {
        "topic_partitions": [TopicPartition(*pair, False, 0, 0, (0,), (0,)) for pair in PARTITIONS],
        "log_offsets": [LogOffset(*pair, 0, max(each.log_end for each in groups)) for pair in PARTITIONS],
        "read_timings": [ReadTiming("all", now, 1.0, len(groups))],
    }
    for each in groups:
        for table, found in _rows(each, now).items():
            rows.setdefault(table, []).extend(found)
    return snapshots.snapshot_of(rows, now)


def _rows(found: ModelGroup, now: datetime) -> dict[str, list[Any]]:
    at, name = found.group_state(now), found.name
    groups = [GroupRow(name, ZOOKEEPER, None, None, None, None, None)]
    if at.kafka_state:
        groups.append(GroupRow(name, KAFKA, at.kafka_state, "classic", "consumer", "range", 0))
    rows: dict[str, list[Any]] = {"groups": groups, "members": [], "subscriptions": [], "ownership": []}
    for member in at.members:
        _add_member(rows, name, member)
        if member.flavour == MEZKCC:
            _add_kafka(rows, name, f"ekc-{member.member_id}", member.member_id, at.embedded[member.member_id])
    for pair, thread in at.owners.items():
        rows["ownership"].append(Ownership(name, ZOOKEEPER, *pair, thread.rpartition("-")[0], thread, 1, 1))
    rows["committed_offsets"] = []
    for pair, it in at.offsets.items():
        if it.zookeeper is not None:
            old = (it.zookeeper, None, None, None, it.zookeeper_version, 1)
            rows["committed_offsets"].append(CommittedOffset(name, ZOOKEEPER, *pair, *old))
        if it.kafka is not None:
            rows["committed_offsets"].append(CommittedOffset(name, KAFKA, *pair, it.kafka, None, "", None, None, None))
    rows["migration_states"] = [MigrationState(name, at.mode, at.mode_version, 1)] if at.mode else []
    return rows


def _add_member(rows: dict[str, list[Any]], name: str, member: Any) -> None:
    if member.flavour == KC:
        _add_kafka(rows, name, member.member_id, member.client_id, member.partitions, member.host)
        return
    is_enabled = member.flavour == MEZKCC
    rows["members"].append(
        Member(
            name, ZOOKEEPER, member.member_id, member.client_id, member.host, None, None, is_enabled, member.since, 1
        )
    )
    rows["subscriptions"].append(Subscription(name, ZOOKEEPER, member.member_id, TOPIC, 1))


def _add_kafka(rows: dict[str, list[Any]], name: str, member: str, client: str, had: Any, host: str = "h") -> None:
    rows["members"].append(Member(name, KAFKA, member, client, host, None, None, None, None, None))
    rows["subscriptions"].append(Subscription(name, KAFKA, member, TOPIC, 1))
    rows["ownership"] += [Ownership(name, KAFKA, *pair, member, None, None, None) for pair in sorted(had)]


__all__ = ["EKC", "forged", "plan_fleet", "plan_group", "snapshot_of"]
