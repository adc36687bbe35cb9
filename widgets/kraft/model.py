"""Moving a cluster to KRaft and back, as a model: its phase, the requested phase, and the procedure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import traitlets as t

from kit.engine.model.plan import Plan
from kit.errors import InputError
from kit.kraft.analyze.phase import CONTROLLERS, DUAL_WRITE, KRAFT, NEXT_STEPS, PHASES as WAY, UNKNOWN, ZOOKEEPER
from kit.kraft.move.parameters import NODE_TIMEOUT_S
from kit.kraft.move.plan import KraftPlanRequest
from kit.kraft.move.steps import (
    FAIL_OVER,
    PHASES,
    REPAIR,
    RETURN_FLAG,
    UNREGISTER,
    unregistered,
)
from kit.kraft.status import KraftStatus, kraft_status
from kit.kraft.subject import KIND
from widgets.run.connection import Connection
from widgets.run.procedure import OpenOperations, Procedure
from widgets.run.run_model import OVER, showing

PACE_S = 5.0
"""Between two observations: each reads the whole metadata log."""
GOALS = (*PHASES, FAIL_OVER, REPAIR)
HAS_WAY_BACK = (CONTROLLERS, DUAL_WRITE, KRAFT)


class KraftMove(Procedure):
    """``look`` reads the cluster ``name`` on its own connection; ``close_all`` closes the connections of the model.

    Raises:
        ConnectError: the cluster can't be read.
    """

    REQUEST = ("to_phase", "node_timeout_s", "overrides")

    status = t.Any(None, help="The last reading: a kit.kraft.status.KraftStatus.")
    to_phase = t.Unicode(help="What is requested: one of GOALS, or as in `unregister broker 3`.")
    node_timeout_s = t.Float(NODE_TIMEOUT_S, help="Seconds that one node may take to run in its new mode.")
    overrides = t.Unicode(help="Names of gates of this phase to override, with blanks or commas between.")

    def __init__(
        self,
        open_operations: OpenOperations,
        look: Callable[[], KraftStatus],
        name: str,
        close_all: Callable[[], None] = lambda: None,
    ) -> None:
        self.about, self._look = f"cluster {name}", look
        super().__init__(open_operations, close_all)
        self._see()
        self.to_phase = self.next_phase

    @classmethod
    def connected(cls, connection: Connection) -> Self:
        """Return the model on connections that end with it; raises as ``__init__`` and the first read."""
        return cls(connection.operations, connection.watching(kraft_status), connection.profile.name, connection.close)

    @property
    def phase(self) -> str:
        return UNKNOWN if self.status is None else str(self.status.state.phase)

    @property
    def next_phase(self) -> str:
        """The phase after the cluster's, at the end the same one; the rollback where the phase is not known."""
        if self.phase not in WAY:
            return ZOOKEEPER
        return WAY[min(WAY.index(self.phase) + 1, len(WAY) - 1)]

    @property
    def goals(self) -> tuple[str, ...]:
        """Return the goals to choose from: GOALS, and to end the registration of each broker that seems to be gone."""
        wanted = [self.to_phase] if self.to_phase and self.to_phase not in GOALS else []
        return (*GOALS, *dict.fromkeys([*(f"{UNREGISTER} {each}" for each in self._gone()), *wanted]))

    def _gone(self) -> list[int]:
        """Brokers that the controllers keep registered, and that run nowhere, where the registration can be ended."""
        if self.status is None or self.phase not in HAS_WAY_BACK:
            return []
        read = self.status.read
        there = read.control.brokers if read.control is not None else ()
        away = [each for each in read.registered_brokers if each.node_id not in there]
        return sorted(each.node_id for each in away if each.is_fenced or self.phase == CONTROLLERS)

    @property
    def overridden(self) -> list[str]:
        """The gates that the request names."""
        return str(self.overrides).replace(",", " ").split()

    @property
    def advice(self) -> str:
        """The next action: with the run that isn't over, else in the cluster's phase."""
        record = self.record
        if record is not None and (self.direction or record.state not in OVER):
            how = "its progress is below" if self.direction else "resume the run, or undo it if an undo is offered"
            return f"Run {record.run_id} is {record.state}: {how}."
        return NEXT_STEPS[self.phase]

    def concerns(self, kind: str, subject: str) -> bool:
        return kind == KIND

    def set_request(self, to_phase: str = "", **values: Any) -> None:
        """Set several traits of the request; an empty ``to_phase``: the next phase."""
        super().set_request(to_phase=to_phase or self.next_phase, **values)

    def prepare(self, approval_digest: str = "", to_phase: str = "") -> None:
        """Load the plan with this digest or, without a digest, plan the request; waits for the dry run.

        Raises:
            InputError: the plan does not lead to ``to_phase`` (empty: any).
            OfframpError: see ``load_plan`` and ``make_plan``.
        """
        super().prepare(approval_digest)
        leads = self._required_plan().parameters["to_phase"]
        is_flag = leads == RETURN_FLAG and to_phase == KRAFT  # Asked for the same way.
        if not is_flag and not str(leads).startswith(to_phase):  # A repair leads to one of several.
            self._void()
            raise InputError(f"plan {approval_digest[:8]} leads to {leads!r}, not to {to_phase!r}")

    @showing
    def plan_rollback(self) -> None:
        """Plan the rollback to ZooKeeper.

        Raises:
            IllegalMove: another action is running.
        """
        self._refuse_busy()
        self.to_phase = ZOOKEEPER
        self.make_plan()

    def _planning(self) -> tuple[str, Callable[[], Plan]]:
        request = KraftPlanRequest(self.to_phase, self.node_timeout_s)
        overrides = self.overridden
        return f"planning the way to {request.to_phase}", lambda: self.operations.make_plan(request, overrides)

    def _reached(self) -> None:
        """Propose the next phase, unless a person chose another one meanwhile. An override was for this run."""
        was = self.to_phase
        self.refresh()
        if self.record is not None and self.to_phase == was == self.record.plan.parameters["to_phase"]:
            self.to_phase, self.overrides = self.next_phase, ""

    def _pace_s(self, every_s: float) -> float:
        return max(every_s, PACE_S)

    def _see(self) -> None:
        self.status = self._look()

    @t.observe("to_phase")
    def _forget_overrides(self, change: Any) -> None:
        """Forget overrides: a gate is overridden for one phase."""
        self.overrides = ""

    @t.observe("status")
    def _status_changed(self, change: Any) -> None:
        self._update()

    def _can(self) -> dict[str, bool]:
        return {**super()._can(), "rollback": not self.busy and self.phase in HAS_WAY_BACK}

    @t.validate("to_phase")
    def _known_phase(self, proposal: Any) -> str:
        if proposal["value"] not in GOALS and unregistered(proposal["value"]) is None:
            raise InputError(f"there is no phase {proposal['value']!r}; the phases are {', '.join(self.goals)}")
        return str(proposal["value"])
