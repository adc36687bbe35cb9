"""Settings of one group on the brokers (ConfigResource GROUP), as planned writes with an undo.

Under the consumer protocol the brokers have the session timeout and the heartbeat interval of a group, not its clients:
``consumer.session.timeout.ms`` and ``consumer.heartbeat.interval.ms``. Kafka has no condition for such a write, so each
value is read immediately before it is written, and read back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from kit.clients.broker_client import Deadline, describe_refusal
from kit.clients.cluster import Cluster
from kit.engine.model.parameters import StepParameters
from kit.engine.model.performer import ActedRecord, Checked, ItemOutcome, Outcome, Report, StepState, Verified
from kit.engine.model.step import Change, Step
from kit.engine.model.values import Json
from kit.errors import PlanError, ReadError
from kit.groups.read.rights import ALTER_CONFIGS, DESCRIBE_CONFIGS

KIND = "set group configs"
GROUP, OF_THE_GROUP = 32, 8
"""ConfigResource.Type, and ConfigEntry.ConfigSource of a value that is set for the group itself."""
SET, DELETE = 0, 1
PREFIX = "consumer."
CONFIG_RIGHTS = (DESCRIBE_CONFIGS, ALTER_CONFIGS)
"""On the group: to write configs and to restore them, both need the same rights."""
DEADLINE_OF_STEP_S = 60.0


@dataclass(frozen=True, slots=True)
class ConfigParameters(StepParameters):
    """Set each config of ``after`` for one group. ``before``: the group's own values; None: it has none of its own."""

    group: str
    before: Mapping[str, str | None]
    after: Mapping[str, str]


def config_step(step_id: str, parameters: ConfigParameters) -> Step:
    """The step that sets configs of a group.

    Raises:
        PlanError: the values before and after are not of the same configs, or one is none of the consumer protocol.
    """
    if parameters.before.keys() != parameters.after.keys() or not all(
        name.startswith(PREFIX) for name in parameters.after
    ):
        raise PlanError(
            f"a step of group {parameters.group} has a config without its former value, or a config whose name does not"
            f" begin with {PREFIX}"
        )
    return Step(
        step_id=step_id,
        kind=KIND,
        title=f"Set {', '.join(sorted(parameters.after))} of {parameters.group}",
        precondition="each config has the value that the plan observed",
        verification="DescribeConfigs returns the new values as values of the group",
        deadline_s=DEADLINE_OF_STEP_S,
        changes=tuple(Change(name, parameters.before[name], value) for name, value in sorted(parameters.after.items())),
        undo="Each config that still has this run's value gets its former value. A config without one is deleted.",
        affects=("group_configs",),
        parameters=parameters.to_json(),
    )


def fetch_configs(cluster: Cluster, group_id: str, names: Sequence[str]) -> dict[str, str | None]:
    """The group's own values; None: the group has none, so the cluster's value holds.

    Raises:
        ConnectError: no broker answered.
        ReadError: the brokers refused, or do not know a config.
    """
    found = _described(cluster, group_id, names)
    missing = sorted(set(names) - found.keys())
    if missing:
        raise ReadError(f"the brokers know no group config {', '.join(missing)}")
    return {name: found[name].value if found[name].config_source == OF_THE_GROUP else None for name in names}


def fetch_effective(cluster: Cluster, group_id: str, name: str) -> str | None:
    """The value in force for the group: its own, or the cluster's; None: the brokers do not report it.

    Raises:
        ConnectError: no broker answered.
    """
    try:
        found = _described(cluster, group_id, [name])
    except ReadError:
        return None
    return found[name].value if name in found else None


def _described(cluster: Cluster, group_id: str, names: Sequence[str]) -> dict[str, Any]:
    resource: Any = DescribeConfigsRequest.DescribeConfigsResource
    wanted = [resource(resource_type=GROUP, resource_name=group_id, configuration_keys=list(names))]
    (result,) = _ask(cluster, DescribeConfigsRequest(resources=wanted)).results
    if result.error_code:
        raise ReadError(f"configs of group {group_id} can't be read: {_described_refusal(result, 'DESCRIBE_CONFIGS')}")
    return {each.name: each for each in result.configs}


def refuse_invalid(cluster: Cluster, group_id: str, configs: Mapping[str, str]) -> None:
    """Let the brokers validate the values. Writes nothing.

    Raises:
        PlanError: they would refuse a value, or this login; with their reason.
        ConnectError: no broker answered.
    """
    problem = _alter(cluster, group_id, configs, validate_only=True)
    if problem is not None:
        raise PlanError(f"the brokers refuse configs of group {group_id}: {problem}")


class ConfigActor:
    """Writes a value only if the group still has the value that the plan observed."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def check(self, step: Step) -> Checked:
        parameters, now = ConfigParameters.of(step), self._now(step)
        other = [name for name in now if now[name] not in (parameters.before[name], parameters.after[name])]
        if other:
            return Checked(
                False, f"{other[0]} of {parameters.group} is {now[other[0]]}: another operator or tool set it"
            )
        return Checked(True, f"{len(now)} configs have the values that the plan observed")

    def state(self, step: Step, acted: ActedRecord | None = None) -> StepState:
        parameters, now = ConfigParameters.of(step), self._now(step)
        mine = set(now) if acted is None else {each.item for each in acted.written}
        done = {name for name in mine if now[name] == parameters.after[name]}
        if not done:
            return StepState.NOT_DONE
        return StepState.DONE if done == set(now) else StepState.PARTLY

    def act(self, step: Step, report: Report) -> Sequence[ItemOutcome]:
        parameters = ConfigParameters.of(step)
        return [
            self._write(step, name, parameters.before[name], parameters.after[name], report)
            for name in sorted(parameters.after)
        ]

    def verify(self, step: Step) -> Verified:
        parameters, now = ConfigParameters.of(step), self._now(step)
        wrong = [name for name in now if now[name] != parameters.after[name]]
        if wrong:
            return Verified(
                False, f"{wrong[0]} of {parameters.group} is {now[wrong[0]]}, not {parameters.after[wrong[0]]}"
            )
        shown: dict[str, Json] = dict(now)
        return Verified(True, f"group {parameters.group} has its configs", {"configs": shown})

    def check_back(self, step: Step, acted: ActedRecord) -> Checked:
        parameters, now = ConfigParameters.of(step), self._now(step)
        left = {
            each.item: f"another operator or tool set {each.item} to {now[each.item]} since this run did"
            for each in acted.written
            if now[each.item] not in (parameters.before[each.item], parameters.after[each.item])
        }
        return Checked(True, "group configs that no other client changed since this run get their former values", left)

    def undo(self, step: Step, acted: ActedRecord, report: Report) -> Sequence[ItemOutcome]:
        parameters = ConfigParameters.of(step)
        return [
            self._write(step, each.item, parameters.after[each.item], parameters.before[each.item], report)
            for each in acted.written
        ]

    def _write(self, step: Step, name: str, before: str | None, after: str | None, report: Report) -> ItemOutcome:
        outcome = self._outcome(step, name, before, after, report)
        report([outcome])
        return outcome

    def _outcome(self, step: Step, name: str, before: str | None, after: str | None, report: Report) -> ItemOutcome:
        now = self._now(step)[name]
        if now == after:
            return ItemOutcome(name, Outcome.UNCHANGED, now, after)
        if now != before:
            return ItemOutcome(name, Outcome.REFUSED, now, None, f"{name} is {now}: another operator or tool set it")
        report.attempt([name])
        problem = _alter(self._cluster, ConfigParameters.of(step).group, {name: after})
        found = self._now(step)[name]
        if found == after:
            return ItemOutcome(name, Outcome.CONFIRMED, before, after)
        if problem is not None:
            return ItemOutcome(name, Outcome.REFUSED, before, found, problem)
        return ItemOutcome(name, Outcome.UNKNOWN, before, found, "the brokers accepted the value and do not return it")

    def _now(self, step: Step) -> dict[str, str | None]:
        parameters = ConfigParameters.of(step)
        return fetch_configs(self._cluster, parameters.group, sorted(parameters.after))


def _alter(
    cluster: Cluster, group_id: str, configs: Mapping[str, str | None], validate_only: bool = False
) -> str | None:
    """Set or, with None, delete configs; the brokers' reason if they refuse."""
    resource: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name=name, config_operation=DELETE if value is None else SET, value=value)
        for name, value in configs.items()
    ]
    wanted = [resource(resource_type=GROUP, resource_name=group_id, configs=changes)]
    (result,) = _ask(cluster, IncrementalAlterConfigsRequest(resources=wanted, validate_only=validate_only)).responses
    return _described_refusal(result, "ALTER_CONFIGS") if result.error_code else None


def _ask(cluster: Cluster, request: Any) -> Any:
    return cluster.broker_client.run(cluster.broker_client.ask, request, None, Deadline())


def _described_refusal(result: Any, right: str) -> str:
    """The brokers' answer. ``right``: what the request needs on the group."""
    reason = f": {result.error_message}" if result.error_message else ""
    return f"{describe_refusal(result.error_code, right)}{reason}"
