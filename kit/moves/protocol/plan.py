"""Plans that move one group between the classic protocol and the consumer protocol (KIP-848), and back.

    classic ── canary ── mixed ── consumer

The first consumer-protocol member converts the group; there is no other toggle. So a plan replaces members one by one,
and watches the first one. The plan writes nothing to Kafka but configs of the group, if the request names any: the
members themselves convert their group.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from kit.clients.cluster import Cluster
from kit.engine.model.observation import IGNORED, MAY_GROW, Observation
from kit.engine.model.plan import STOP, WAY_BACK_S, Plan
from kit.engine.model.step import Step
from kit.engine.model.values import Json
from kit.engine.plan_kind import PlanContext
from kit.errors import InputError, NotFound, NothingToDo, PlanError, ReadError
from kit.groups.read.rights import READ, fetch_topic_rights
from kit.moves.group.deploy import Deployer, deployer_of
from kit.moves.group.group_state import CLASSIC, CONSUMER, PROTOCOLS, named
from kit.moves.group.replacement import QUIET_IN_KAFKA_S, STEP_TIMEOUT_S, ReplaceParameters, replace_step
from kit.moves.group.rules import Limits, findings_of_members
from kit.moves.group.soak import SoakParameters, soak_step
from kit.moves.protocol import group_configs
from kit.moves.protocol.checked import rules_of
from kit.moves.protocol.group_configs import (
    CONFIG_RIGHTS,
    ConfigParameters,
    config_step,
    fetch_configs,
    refuse_invalid,
)
from kit.moves.protocol.prove import ProofParameters, proof_step
from kit.moves.protocol.state import ProtocolState, read_protocol_state
from kit.moves.protocol.stopped import StoppedParameters, place_of, start_step, stop_step
from kit.moves.protocol.subject import KIND
from kit.moves.undo_rights import kafka_finding
from kit.protocol.facts import ROLLING, STOPPED, Answers, Request
from kit.protocol.proof import fetch_ends
from kit.protocol.stage import Stage
from kit.protocol.verdicts import group_of, read_facts
from kit.tables.conditions import Condition, raise_if_unsafe, warnings
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.quantity import quantity

UNANSWERED = Answers()
DUPLICATES = "If a member is killed instead of stopped, the records since its last commit are delivered again."
EVERYBODY = (
    "When the last consumer-protocol member leaves, the broker converts the group to the classic protocol and every"
    " member rebalances at once: consumption of all partitions stops until all members have joined again."
)
PAUSE = (
    "Consumption of all {n} partitions stops from the first stopped member until the new members have joined. A static"
    " classic member leaves only when its session timeout has passed."
)
UNPROVEN = (
    "This login can't read __consumer_offsets, so the run can't prove from the coordinator's log that no partition had"
    " two owners. Each step still compares the owners that the coordinator reports."
)
DOWNGRADE_BUG = (
    "KAFKA-21117 is open in all releases up to 4.4.0: after an online conversion to the classic protocol, a coordinator"
    " that loads __consumer_offsets while it is compacted may fail to load. Restart no broker until the log cleaner has"
    " compacted the partition of this group (at the latest log.cleaner.max.compaction.lag.ms and delete.retention.ms"
    " after the run)."
)


@dataclass(frozen=True, slots=True)
class ProtocolPlanRequest:
    """The protocol that the members of a group are to speak, and the limits of the move.

    ``to_protocol``: ``consumer`` or ``classic``. ``configs``: GROUP configs by name, set before the first replacement.
    ``answers``: what a person answers because no request reports it. ``how``: ``rolling`` or ``stopped``; if all
    members stop, there is no canary, and ``step_timeout_s`` holds for all of them together. ``quiet_s``: how long
    nothing may change after an order was called off; None: 60 s, or the longest session timeout that is known if that
    is longer. The other fields: see ``kit.moves.group.plan.GroupPlanRequest``.

    Raises:
        InputError: there is no such protocol, or a number makes no sense.
    """

    group_id: str
    to_protocol: str
    canary: int = 1
    soak_s: float = 60.0
    lag_tolerance: int = 1000
    step_timeout_s: float = STEP_TIMEOUT_S
    observe_s: float = 5.0
    members: tuple[str, ...] = ()
    on_failure: str = STOP
    way_back_s: float = WAY_BACK_S
    quiet_s: float | None = None
    configs: Mapping[str, str] = field(default_factory=dict)
    answers: Answers = UNANSWERED
    how: str = ROLLING

    def __post_init__(self) -> None:
        if self.to_protocol not in PROTOCOLS:
            raise InputError(f"there is no protocol {self.to_protocol!r}; there are {' and '.join(PROTOCOLS)}")
        if self.checked.how == STOPPED and (self.members or self.canary != 1):
            raise InputError("with --how stopped all members stop: leave --member and --canary out")
        if self.canary < 1:
            raise InputError(f"a canary needs at least 1 member, not {self.canary}")
        limits = (self.soak_s, self.observe_s, self.lag_tolerance, self.quiet_s or 0)
        if not (all(each >= 0 for each in limits) and self.step_timeout_s > 0):
            raise InputError(
                "--soak, --observe and --lag-tolerance must be 0 or more, --step-timeout more than 0 (in Python:"
                " soak_s, observe_s, lag_tolerance, step_timeout_s; quiet_s: 0 or more)"
            )

    @property
    def checked(self) -> Request:
        """The request as the checks take it."""
        return Request(self.to_protocol, self.how, self.answers)

    def plan(self, context: PlanContext, made_by: str, overrides: Iterable[str]) -> Plan:
        """Raises as :func:`plan_protocol`."""
        return plan_protocol(context.cluster, deployer_of(context.cluster.profile), self, made_by, overrides)


def plan_protocol(
    cluster: Cluster, deployer: Deployer, request: ProtocolPlanRequest, made_by: str, overrides: Iterable[str] = ()
) -> Plan:
    """Read the group twice, ``observe_s`` apart, and plan. Writes nothing.

    Raises:
        NotFound, ConnectError: there is no such group, or it can't be read.
        NothingToDo: all members speak that protocol already.
        PlanError: the group has no members, or a named member is none of the group.
        UnsafePlan: a rule or a check forbids it, or needs an answer; all that do are named. The login lacks a right to
            write the configs of the request back.
        ReadError: configs of the group can't be read.
    """
    if request.configs:
        raise_if_unsafe([kafka_finding(cluster.broker_client, {request.group_id: CONFIG_RIGHTS}, ())])
        refuse_invalid(cluster, request.group_id, request.configs)
    configs = fetch_configs(cluster, request.group_id, sorted(request.configs)) if request.configs else {}
    before = read_protocol_state(cluster, request.group_id)
    time.sleep(request.observe_s)
    now = read_protocol_state(cluster, request.group_id)
    proven_from = log_ends(cluster, [request.group_id]).get(request.group_id)
    # If all members stop, the commit times in __consumer_offsets decide whether offsets are lost.
    facts = read_facts(cluster, request.group_id.__eq__, request.how == STOPPED)
    checked = tuple(rules_of(facts, request.group_id, request.checked))
    session_ms = facts.of(group_of(facts, request.group_id), request.checked).longest_session_ms
    seen = Observed(before, now, proven_from, configs, checked, session_ms)
    return plan_from(seen, cluster.confirmed_id(), deployer, request, made_by, overrides)


def log_ends(cluster: Cluster, group_ids: Collection[str]) -> dict[str, int]:
    """By group, where the proof of the run begins in ``__consumer_offsets``; without those that can't be read."""
    rights = fetch_topic_rights(cluster.broker_client, [OFFSETS_TOPIC]).get(OFFSETS_TOPIC, ())
    if not isinstance(rights, str) and READ not in rights:
        return {}
    try:
        return fetch_ends(cluster.profile, group_ids)
    except (NotFound, ReadError):
        return {}


@dataclass(frozen=True, slots=True)
class Observed:
    """The facts of a plan: two observations of the group, the checks, and what the run needs from the brokers.

    ``proven_from``: the offset of ``__consumer_offsets`` from which on the run proves single ownership; None: the login
    can't read that topic, so the plan has no proof and says so. ``configs``: the group's own values of the configs that
    the request names. ``checked``: the checks of ``kit.protocol``, as rules. ``session_ms``: the longest session
    timeout of the members, old or new, that is known.
    """

    before: ProtocolState
    now: ProtocolState
    proven_from: int | None = None
    configs: Mapping[str, str | None] = field(default_factory=dict)
    checked: tuple[Condition, ...] = ()
    session_ms: int | None = None

    def quiet_s(self, request: ProtocolPlanRequest) -> float:
        """Seconds for which nothing may change after an order was called off.

        A member that was killed, or a static one that stopped, is visible until its session ends.
        """
        return max(QUIET_IN_KAFKA_S, (self.session_ms or 0) / 1000) if request.quiet_s is None else request.quiet_s


def plan_from(
    seen: Observed,
    cluster_id: str,
    deployer: Deployer,
    request: ProtocolPlanRequest,
    made_by: str,
    overrides: Iterable[str] = (),
    is_warned: bool = True,
) -> Plan:
    """The plan by what was observed; pure. ``is_warned``: its risks have the warnings of ``seen.checked``.

    Raises as :func:`plan_protocol`.
    """
    now, configs = seen.now, seen.configs
    _refuse_impossible(now, request)
    _refuse_short_timeout(seen, request)
    limits = Limits(canary=canary_of(now, request.to_protocol, request.how, request.canary))
    of_members = findings_of_members(seen.before, now, limits)
    overridden = raise_if_unsafe([*of_members, *seen.checked], overrides)
    moving = _stopped_steps if request.how == STOPPED else _steps
    steps = [*_config_steps(request, configs), *moving(seen, request, deployer), *_proof(request, seen.proven_from)]
    return Plan(
        kind=KIND,
        cluster_id=cluster_id,
        targets=(request.group_id,),
        made_by=made_by,
        made_at=datetime.now(UTC),
        observed={**observed(now), **({"group_configs": Observation(dict(configs))} if configs else {})},
        steps=numbered(steps),
        parameters={
            "to_protocol": request.to_protocol,
            "canary": request.canary,
            "soak_s": request.soak_s,
            "answers": request.answers.to_json(),
            "how": request.how,
        },
        risks=(*warnings([*of_members, *(seen.checked if is_warned else ())]), DUPLICATES, *_risks(request, seen)),
        overridden=overridden,
        on_failure=request.on_failure,
        way_back_s=request.way_back_s,
    )


def canary_of(now: ProtocolState, to_protocol: str, how: str, wanted: int) -> int | None:
    """Return how many members change first and are watched alone.

    None: no member does, since all members stop, the group has consumer-protocol members, or it moves back.
    """
    return wanted if how == ROLLING and to_protocol == CONSUMER and not now.count(CONSUMER) else None


def parse_configs(texts: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts by name.

    Raises:
        InputError: a text has another form, or names no config of the consumer protocol.
    """
    pairs = [text.partition("=") for text in texts]
    for name, sign, value in pairs:
        if not (sign and value.strip() and name.strip().startswith(group_configs.PREFIX)):
            raise InputError(
                f"{name + sign + value!r} is no group config: write NAME=VALUE with a name such as"
                " consumer.session.timeout.ms"
            )
    return {name.strip(): value.strip() for name, _, value in pairs}


def _refuse_impossible(now: ProtocolState, request: ProtocolPlanRequest) -> None:
    if now.stage == Stage.EMPTY:
        raise PlanError(
            f"group {request.group_id} has no members, so there is none to replace: the protocol of the first member"
            " that joins decides"
        )
    if now.stage == Stage.UNKNOWN:
        raise PlanError(f"group {request.group_id} has a member whose protocol is unknown")
    if now.count(request.to_protocol) == len(now.members):
        raise NothingToDo(f"all members of group {request.group_id} already use the {request.to_protocol} protocol")
    strangers = set(request.members) - {member.member_id for member in now.members}
    if strangers:
        raise PlanError(f"group {request.group_id} has no member {', '.join(sorted(strangers))}")


def _refuse_short_timeout(seen: Observed, request: ProtocolPlanRequest) -> None:
    """A static member that stopped stays in the group until its session ends, so all of them would never be seen gone.

    Raises:
        PlanError: all members stop, one is static, and the step may not take as long as its session.
    """
    names = [each.instance_id for each in seen.now.protocol.members if each.instance_id]
    session_s = (seen.session_ms or 0) / 1000
    if request.how == STOPPED and names and session_s >= request.step_timeout_s:
        raise PlanError(
            f"group {request.group_id} has {quantity(len(names), 'static member')}, which stay in the group until their"
            f" session timeout of {session_s:g} s ends, and a step may take {request.step_timeout_s:g} s. Allow a step"
            " more time: --step-timeout SECONDS (in Python: step_timeout_s)"
        )


def observed(now: ProtocolState) -> dict[str, Observation]:
    """Return what a plan observes of one group, with what may move until it is executed."""
    members: dict[str, Json] = {
        flavour: [member.member_id for member in now.members if member.flavour == flavour] for flavour in PROTOCOLS
    }
    offsets: dict[str, Json] = {named(pair): it.kafka for pair, it in now.offsets.items() if it.kafka is not None}
    return {
        "stage": Observation(now.stage),
        "members": Observation(members),
        "topics": Observation(dict(now.subscribed)),
        "kafka_group": Observation(now.kafka_state),
        "coordinator": Observation(now.coordinator, IGNORED),
        "group_type": Observation(now.protocol.group_type, IGNORED),
        "group_epoch": Observation(now.protocol.epoch, IGNORED),
        "kafka_offsets": Observation(offsets, MAY_GROW),
    }


def _steps(seen: Observed, request: ProtocolPlanRequest, deployer: Deployer) -> list[Step]:
    """A canary, its soak, and all other members one by one; towards the classic protocol without a canary."""
    now, coming = seen.now, request.to_protocol
    (leaving,) = set(PROTOCOLS) - {coming}
    whom = [each.member_id for each in now.members if each.flavour == leaving]
    whom.sort(key=lambda member_id: member_id not in request.members)
    counts, steps = now.counts, list[Step]()
    ahead = min(canary_of(now, coming, request.how, request.canary) or 0, len(whom))
    for part in (whom[:ahead], whom[ahead:]):
        if not part:
            continue
        left = counts[leaving] - len(part)
        after = {coming: counts.get(coming, 0) + len(part), **({leaving: left} if left else {})}
        parameters = ReplaceParameters(
            group=request.group_id,
            before=counts,
            after=after,
            instruction=deployer.instruction(request.group_id, leaving, coming),
            by_person=deployer.needs_person,
            members=tuple(part),
            step_timeout_s=request.step_timeout_s,
            quiet_s=seen.quiet_s(request),
        )
        steps.append(replace_step(f"replace-{'canary' if left else coming}", parameters))
        counts = after
        if left and request.soak_s > 0:
            soak = SoakParameters(request.group_id, coming, request.soak_s, request.lag_tolerance)
            steps.append(soak_step(f"soak-{coming}", soak))
    return steps


def _stopped_steps(seen: Observed, request: ProtocolPlanRequest, deployer: Deployer) -> list[Step]:
    """All members stop, all start, and are watched."""
    now, coming = seen.now, request.to_protocol
    stop = StoppedParameters(
        group=request.group_id,
        places=tuple(map(place_of, now.members)),
        to_protocol=coming,
        instruction=deployer.instruction(request.group_id, "", ""),
        by_person=deployer.needs_person,
        offsets={named(pair): it.kafka for pair, it in now.offsets.items() if it.kafka is not None},
        topics=dict(now.subscribed),
        step_timeout_s=request.step_timeout_s,
        quiet_s=seen.quiet_s(request),
    )
    start = replace(stop, instruction=deployer.instruction(request.group_id, "", coming))
    steps = [stop_step("stop-all", stop), start_step("start-all", start)]
    if request.soak_s > 0:
        soak = SoakParameters(request.group_id, coming, request.soak_s, request.lag_tolerance)
        steps.append(soak_step(f"soak-{coming}", soak))
    return steps


def _config_steps(request: ProtocolPlanRequest, before: Mapping[str, str | None]) -> list[Step]:
    """Configs that the group has already need no step."""
    after = {name: value for name, value in request.configs.items() if before.get(name) != value}
    parameters = ConfigParameters(request.group_id, {name: before[name] for name in after}, after)
    return [config_step("set-group-configs", parameters)] if after else []


def numbered(steps: Iterable[Step]) -> tuple[Step, ...]:
    """The steps with their number in the plan before their id."""
    return tuple(replace(step, step_id=f"{number:02d}-{step.step_id}") for number, step in enumerate(steps, 1))


def _proof(request: ProtocolPlanRequest, proven_from: int | None) -> tuple[Step, ...]:
    parameters = None if proven_from is None else ProofParameters(request.group_id, proven_from)
    return () if parameters is None else (proof_step("prove-ownership", parameters),)


def _risks(request: ProtocolPlanRequest, seen: Observed) -> tuple[str, ...]:
    """Return the costs of the conversion to the classic protocol, of a plan forward only if its run is undone; and
    that the plan has no proof.

    Backwards, the check ``k848_downgrade_bug`` names the open bug for the release of the brokers.
    """
    unproven = () if seen.proven_from is not None else (UNPROVEN,)
    if request.how == STOPPED:
        pause = PAUSE.format(n=len(seen.now.partitions))
        return (pause, f"If the run is undone: {pause}", *unproven)
    if request.to_protocol == CLASSIC:
        return (EVERYBODY, *unproven)
    return (f"If the run is undone: {EVERYBODY}", f"If the run is undone: {DOWNGRADE_BUG}", *unproven)
