"""Moving one group between the classic and the consumer protocol (KIP-848), as a model: its stage and the procedure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import traitlets as t

from kit.engine.model.plan import STOP, UNDO, Plan
from kit.errors import IllegalMove, InputError
from kit.moves.group.group_state import CLASSIC, CONSUMER, PROTOCOLS
from kit.moves.group.rules import Limits, after_one_reading, findings_of_members
from kit.moves.protocol.plan import ProtocolPlanRequest, canary_of
from kit.moves.protocol.state import ProtocolState, read_protocol_state
from kit.moves.protocol.subject import KIND
from kit.protocol.facts import ROLLING, STOPPED, WAYS, Answers
from kit.protocol.stage import Stage
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations, Procedure
from widgets.run.run_model import showing

BACK_S = 10.0
"""Growth is judged by two readings that are at most so many seconds apart."""
NEXT_STEPS = {
    Stage.CLASSIC: "Plan the consumer protocol. The first new member converts the group.",
    Stage.CANARY: "Compare the first consumer-protocol member with all other members. Then replace these, or go back.",
    Stage.MIXED: "Replace the remaining members soon: classic members with an eager assignor stop at each rebalance.",
    Stage.CONSUMER: "Nothing is left to do. Rollback: plan the classic protocol.",
    Stage.EMPTY: "Start the members. The protocol of the first member decides.",
    Stage.UNKNOWN: "Repair what could not be read, then read the group again.",
}


class ProtocolProcedure(Procedure):
    """The common part of moves of one group and of many: the request for each group."""

    REQUEST: tuple[str, ...] = (
        "to_protocol", "how", "canary", "soak_s", "lag_tolerance", "clients_ready", "on_failure", "overrides",
    )  # fmt: skip

    to_protocol = t.Enum(PROTOCOLS, CONSUMER, help="The requested protocol of all members.")
    how = t.Enum(WAYS, ROLLING, help="Replace members one by one (rolling), or stop all and then start all (stopped).")
    canary = t.Int(1, help="How many members change first.")
    soak_s = t.Float(60.0, help="Seconds for which the first members are watched, or all of them if all members stop.")
    lag_tolerance = t.Int(1000, help="Records by which the first members' lag may grow.")
    clients_ready = t.Bool(False, help="A person's answer: every client supports the consumer protocol.")
    on_failure = t.Enum([STOP, UNDO], STOP, help="What happens when a step fails: stop, or undo the executed steps.")
    overrides = t.Unicode(help="Names of rules to override, separated by blanks or commas; they go into the evidence.")

    def prepare(self, approval_digest: str = "", to_protocol: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            InputError: the plan does not lead to ``to_protocol`` (empty: any).
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        leads = self._required_plan().parameters["to_protocol"]
        if to_protocol and leads != to_protocol:
            self._void()
            raise InputError(f"plan {approval_digest[:8]} leads to the {leads} protocol, not to {to_protocol!r}")

    def of_group(self, group_id: str) -> ProtocolPlanRequest:
        """Return the request of one group that the fields ask for.

        Raises:
            InputError: the request is not valid.
        """
        return ProtocolPlanRequest(
            group_id,
            self.to_protocol,
            canary=1 if self.how == STOPPED else self.canary,
            soak_s=self.soak_s,
            lag_tolerance=self.lag_tolerance,
            on_failure=self.on_failure,
            answers=self.answers,
            how=self.how,
        )

    @property
    def answers(self) -> Answers:
        """A person's answers; None: not answered."""
        return Answers(clients_ready=self.clients_ready or None)


class ProtocolMove(ProtocolProcedure):
    """``look`` reads the group on its own connection; ``close_all`` closes the connections of the model.

    Raises:
        NotFound, PlanError, ConnectError: the group does not exist, is no group of consumers, or can't be read.
    """

    group_id = t.Unicode(read_only=True)
    group_state = t.Any(None, help="The last reading: a kit.moves.protocol.state.ProtocolState.")
    checks = t.Any((), help="The rules for a change, by the last readings: Findings.")

    def __init__(
        self,
        open_operations: OpenOperations,
        look: Callable[[str], ProtocolState],
        group_id: str,
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        if not group_id:
            raise InputError("name a group: group_id is empty; `offramp groups` lists all groups")
        self.about, self._look = f"group {group_id}", look
        self._looks: tuple[ProtocolState, ...] = ()
        self.set_trait("group_id", group_id)
        super().__init__(open_operations, close_all)
        self._see()
        self.to_protocol = self.next_protocol

    @classmethod
    def connected(cls, connection: Connection, group_id: str) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(read_protocol_state), group_id, connection.close)

    @property
    def stage(self) -> Stage:
        return Stage.UNKNOWN if self.group_state is None else Stage(self.group_state.stage)

    @property
    def next_protocol(self) -> str:
        """The consumer protocol until all members speak it, then the classic one."""
        return CLASSIC if self.stage == Stage.CONSUMER else CONSUMER

    @property
    def advice(self) -> str:
        """The next action at the group's stage."""
        return NEXT_STEPS[self.stage]

    @property
    def planned_canary(self) -> int | None:
        """Return how many members the requested plan replaces first; None: it has no canary."""
        return canary_of(self.group_state, self.to_protocol, self.how, self.canary)

    def concerns(self, kind: str, subject: str) -> bool:
        return (kind, subject) == (KIND, self.group_id)

    def set_request(self, to_protocol: str = "", **values: Any) -> None:
        """Set several traits of the request; an empty ``to_protocol``: the other protocol than now."""
        super().set_request(to_protocol=to_protocol or self.next_protocol, **values)

    @showing
    def plan_rollback(self) -> None:
        """Plan the classic protocol for all members.

        Raises:
            IllegalMove: no member speaks the consumer protocol, or another action is running.
        """
        self._refuse_busy()
        if not self._can_go_back:
            raise IllegalMove(f"group {self.group_id} has only classic members; plan the consumer protocol")
        self.to_protocol = CLASSIC
        self.make_plan()

    @property
    def _can_go_back(self) -> bool:
        return self.group_state is not None and self.group_state.count(CONSUMER) > 0

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        request = self.of_group(self.group_id)
        overrides = self.overrides.replace(",", " ").split()
        return f"planning the {self.to_protocol} protocol", lambda: self.operations.make_plan(request, overrides)

    def _reached(self) -> None:
        """Propose the other protocol, unless a person chose another one meanwhile."""
        was = self.to_protocol
        self.refresh()
        if self.record is not None and self.to_protocol == was == self.record.plan.parameters["to_protocol"]:
            self.to_protocol = self.next_protocol

    def _see(self) -> None:
        now = self._look(self.group_id)
        recent = (each for each in self._looks if (now.observed_at - each.observed_at).total_seconds() <= BACK_S)
        self._looks = (*recent, now)
        self.group_state = now
        self._judge()

    def _judge(self) -> None:
        """Evaluate the rules by the first and the last reading; one reading alone reports nothing about growth."""
        if not self._looks:
            return
        found = findings_of_members(self._looks[0], self._looks[-1], Limits(canary=self.planned_canary))
        self.checks = tuple(found) if len(self._looks) > 1 else after_one_reading(found)

    def _request_changed(self, change: Any) -> None:
        super()._request_changed(change)
        self._judge()

    @t.observe("group_state")
    def _group_changed(self, change: Any) -> None:
        self._update()

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "rollback": not self.busy and self._can_go_back}
