"""Moves of a cluster to KRaft, carried out: neither the command line nor ``Operations`` offers them yet.

``docs/kraft-move.md`` says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterable

from kit.migrate.engine.performer import Lock, Performer
from kit.migrate.engine.plan import Plan
from kit.migrate.kraft.nodes import node_deployer
from kit.migrate.kraft.plan import performer, plan_kraft
from kit.migrate.kraft.request import KraftPlanRequest
from kit.migrate.lock import ClusterLock
from kit.migrate.operations import Operations, operator


class KraftMoves(Operations):
    """As ``Operations``, of plans of the kind ``move to KRaft`` alone."""

    def plan_kraft(self, request: KraftPlanRequest, overrides: Iterable[str] = ()) -> Plan:
        nodes = node_deployer(self.cluster.profile)
        return self.save_plan(plan_kraft(self.cluster, nodes, request, operator(), overrides))

    def _lock(self) -> Lock:
        return ClusterLock(self.cluster)

    def _performer(self, plan: Plan) -> Performer:
        return performer(self.cluster, node_deployer(self.cluster.profile), self._say, self._clock)
