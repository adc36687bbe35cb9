"""The brake between two waves of groups that change their protocol: lag, load of the coordinators, and rebalances.

Lag and load are those of ``kit.moves.group.circuit_breaker``. A group that keeps rebalancing shows it in its epoch,
which the coordinator raises once per change of its members or subscriptions. A classic group reports no epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import polars as pl

from kit.clients.cluster import Cluster
from kit.engine.model.clock import Clock
from kit.engine.model.performer import Checked, Verified
from kit.engine.model.step import Step
from kit.errors import ConnectError, RunError
from kit.groups.snapshot import Snapshot
from kit.moves.group.circuit_breaker import CircuitBreakerActor, CircuitBreakerParameters, circuit_breaker_step
from kit.moves.group.soak import MOST_CHANGES
from kit.protocol.read import GroupProtocol, fetch_group_protocols

BRAKE = "brake between waves"


def brake_step(step_id: str, parameters: CircuitBreakerParameters) -> Step:
    """The step that watches the groups that were moved so far. It writes nothing."""
    step = circuit_breaker_step(parameters)
    also = f"; each group is stable at the end, and its epoch rises at most {MOST_CHANGES} times"
    return replace(step, step_id=step_id, kind=BRAKE, verification=step.verification + also)


class BrakeActor(CircuitBreakerActor):
    """Changes nothing; fails if the groups rebalance repeatedly, or if lag or load exceed their limits."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock = Clock(),  # noqa: B008 - it holds functions, no state
        observe: Callable[[Cluster, Iterable[str]], Snapshot[pl.DataFrame]] | None = None,
        read: Callable[[Cluster, Iterable[str]], Mapping[str, GroupProtocol]] | None = None,
    ) -> None:
        super().__init__(cluster, clock, observe)
        self._cluster, self._read = cluster, read or _fetch
        self._epochs: dict[str, dict[str, int]] = {}

    def check(self, step: Step) -> Checked:
        self._epochs.pop(step.step_id, None)
        return super().check(step)

    def verify(self, step: Step) -> Verified:
        """Compare epochs with those at the first call, then lag and load.

        Raises:
            RunError: a group keeps rebalancing; or see ``CircuitBreakerActor``.
            ConnectError: a group can't be read.
        """
        groups = self._read(self._cluster, CircuitBreakerParameters.of(step).groups)
        first = self._epochs.setdefault(step.step_id, {})
        for name, each in groups.items():
            if each.epoch is None:
                continue
            rises = each.epoch - first.setdefault(name, each.epoch)
            if rises > MOST_CHANGES:
                raise RunError(
                    f"the brake: the epoch of group {name} rose {rises} times while no member was replaced: the group"
                    " keeps rebalancing"
                )
        verified = super().verify(step)
        unsettled = [name for name, each in groups.items() if not each.is_settled]
        if verified.ok and unsettled:
            return Verified(False, f"group {min(unsettled)} is not stable")
        return verified


def _fetch(cluster: Cluster, groups: Iterable[str]) -> Mapping[str, GroupProtocol]:
    wanted = set(groups)
    found = fetch_group_protocols(cluster.broker_client, wanted.__contains__)
    unread = [name for name in sorted(wanted) if name not in found.groups or found.groups[name].error is not None]
    if unread:
        raise ConnectError(f"group {unread[0]} can't be read")
    return found.groups
