"""Plans that move many groups between protocols: group after group, in waves with a brake between two waves.

A plan of many groups is the plans of its groups, one after the other. So each step is undone as in a plan of one group.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from kit.clients.cluster import Cluster
from kit.engine.model.observation import Observation
from kit.engine.model.plan import Plan
from kit.engine.model.step import Step
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NotFound, PlanError, UnsafePlan
from kit.groups.read.rights import IF_HIDDEN
from kit.groups.read.whole_cluster import chosen_groups
from kit.moves.group.circuit_breaker import CircuitBreakerParameters, observe_groups, read_ms
from kit.moves.group.deploy import Deployer, deployer_of
from kit.moves.protocol.brake import brake_step
from kit.moves.protocol.checked import rules_of
from kit.moves.protocol.plan import Observed, ProtocolPlanRequest, log_ends, numbered, plan_from
from kit.moves.protocol.state import read_protocol_states
from kit.protocol.facts import ROLLING, STOPPED
from kit.protocol.verdicts import GroupVerdict, read_facts, verdicts
from kit.tables.conditions import Condition, is_warning
from kit.text.quantity import quantity

SLOWER = 5
"""A read of the coordinators may take so many times as long as when the plan was made."""
LEAST_READ_MS = 100.0


@dataclass(frozen=True, slots=True)
class ProtocolFleetRequest:
    """The groups that change their protocol, and the limits of their waves.

    ``each``: the request for each group; its ``group_id`` does not matter. ``groups``: by name; or ``pattern``: those
    whose whole id matches and that the checks allow. ``wave``: groups between two brakes. ``pause_s``: seconds for
    which a brake watches all groups that were moved so far; 0: there is no brake. ``max_read_ms``: how long a read of
    these groups may take; None: 5 times as long as when the plan was made.

    Raises:
        InputError: a number makes no sense, or ``each`` names members or configs of one group.
    """

    each: ProtocolPlanRequest
    groups: tuple[str, ...] = ()
    pattern: str | None = None
    wave: int = 10
    pause_s: float = 60.0
    max_read_ms: float | None = None

    def __post_init__(self) -> None:
        if self.each.members or self.each.configs:
            raise InputError("--member and --group-config are for plans of one group")
        if bool(self.groups) == (self.pattern is not None):
            raise InputError("name the groups to move, or choose them with --groups PATTERN")
        if len(set(self.groups)) < len(self.groups):
            raise InputError("a group is named twice")
        if self.wave < 1 or not self.pause_s >= 0 or not (self.max_read_ms is None or self.max_read_ms > 0):
            raise InputError("--wave must be 1 or more, --pause 0 or more, --max-read-ms more than 0")

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_fleet`."""
        return plan_fleet(context.cluster, deployer_of(context.cluster.profile), self, made_by, overrides)


def plan_fleet(
    cluster: Cluster, deployer: Deployer, request: ProtocolFleetRequest, made_by: str, overrides: Iterable[str] = ()
) -> Plan:
    """Check all groups at once, read those that can be moved twice, and plan. Writes nothing.

    Raises:
        NotFound: a group that was named does not exist.
        PlanError: a group that was named can't be moved, or no group can.
        UnsafePlan: a rule forbids the move of a group, or a check needs an answer; the group is named.
        ConnectError, ReadError: something can't be read.
    """
    each = request.each
    facts = read_facts(cluster, chosen_groups(cluster.profile, request.pattern or request.groups), each.how == STOPPED)
    rows = verdicts(facts, each.checked)
    names = _chosen(rows, request)
    before = read_protocol_states(cluster, names)
    time.sleep(each.observe_s)
    now = read_protocol_states(cluster, names)
    plans, warned = list[Plan](), list[Condition]()
    chosen_overrides, cluster_id = tuple(overrides), cluster.confirmed_id()
    ends = log_ends(cluster, names)
    for name in names:
        checked = tuple(rules_of(facts, name, each.checked))
        warned += [condition for condition in checked if is_warning(condition)]
        session_ms = facts.of(facts.groups[name], each.checked).longest_session_ms
        seen = Observed(before[name], now[name], ends.get(name), checked=checked, session_ms=session_ms)
        of_group = replace(each, group_id=name)
        try:
            plans.append(plan_from(seen, cluster_id, deployer, of_group, made_by, chosen_overrides, is_warned=False))
        except (UnsafePlan, PlanError) as error:
            raise type(error)(f"group {name}: {error}") from error
    limit = request.max_read_ms or SLOWER * max(read_ms(observe_groups(cluster, names)), LEAST_READ_MS)
    return merged(plans, request, limit, len(rows) - len(names), warned)


def merged(
    plans: Sequence[Plan],
    request: ProtocolFleetRequest,
    max_read_ms: float,
    n_left: int,
    warned: Sequence[Condition] = (),
) -> Plan:
    """One plan of the plans of single groups, in their order; ``n_left``: groups that are not moved."""
    first, steps = plans[0], list[Step]()
    names = tuple(target for plan in plans for target in plan.targets)
    for number, start in enumerate(range(0, len(plans), request.wave), 1):
        end = min(start + request.wave, len(plans))
        steps += [
            replace(step, step_id=step.step_id.partition("-")[2]) for plan in plans[start:end] for step in plan.steps
        ]
        if end < len(plans) and request.pause_s > 0:
            limits = (request.pause_s, request.each.lag_tolerance, max_read_ms)
            steps.append(brake_step("brake", CircuitBreakerParameters(number, names[:end], *limits)))
    risks = dict.fromkeys(risk for plan in plans for risk in plan.risks)
    left = (f"Not moved: {quantity(n_left, 'group')}. Run: offramp protocol check",) if n_left else ()
    return replace(
        first,
        targets=names,
        observed={
            name: Observation({plan.targets[0]: plan.observed[name].value for plan in plans}, it.tolerance)
            for name, it in first.observed.items()
        },
        steps=numbered(steps),
        parameters={**first.parameters, "wave": request.wave, "pause_s": request.pause_s},
        risks=(*_risks(warned), *risks, *left),
        overridden={name: why for plan in plans for name, why in plan.overridden.items()},
    )


def _risks(warned: Iterable[Condition]) -> Iterator[str]:
    """The warnings of the first group of each check, and how many groups have other ones of that check."""
    by_check: dict[str, dict[str, list[str]]] = {}
    for each in warned:
        by_check.setdefault(each.check_id, {}).setdefault(each.subject, []).append(each.described)
    for by_group in by_check.values():
        first, *more = by_group.values()
        n_other = sum(texts != first for texts in more)
        also = f" {quantity(n_other, 'more group has', 'more groups have')} this warning. Run: offramp protocol check"
        yield from first[:-1]
        yield first[-1] + (also if n_other else "")


def _chosen(rows: Sequence[GroupVerdict], request: ProtocolFleetRequest) -> list[str]:
    """Named groups in the order in which they were named, others by name."""
    by_name = {row.group_id: row for row in rows}
    missing = [name for name in request.groups if name not in by_name]
    if missing:
        raise NotFound(
            f"there is no group {missing[0]!r} of the classic or the consumer protocol: see offramp groups{IF_HIDDEN}"
        )
    ready = [name for name, row in sorted(by_name.items()) if _answer(row, request) == "yes" and row.n_members]
    refused = [name for name in request.groups if name not in ready]
    if refused:
        row = by_name[refused[0]]
        why = ", ".join((*row.blocked_by, *row.unknown)) or f"the group's stage is {row.stage}"
        raise PlanError(
            f"{len(refused)} of {quantity(len(request.groups), 'group')} can't be moved now: {refused[0]}: {why}. Run:"
            f" offramp protocol check -g {refused[0]}"
        )
    if not ready:
        raise PlanError(f"of {quantity(len(rows), 'group')} none can be moved now. Run: offramp protocol check")
    return list(request.groups) or ready


def _answer(row: GroupVerdict, request: ProtocolFleetRequest) -> str | None:
    return row.rolling if request.each.how == ROLLING else row.stopped
