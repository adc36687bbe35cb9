"""What a plan to move a cluster is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from kit.engine.model.plan import LONGEST_WAY_BACK_S, WAY_BACK_S
from kit.errors import InputError
from kit.kraft.move.steps import FAIL_OVER, NODE_TIMEOUT_S, PHASES, QUIET_S, REPAIR, unregistered


@dataclass(frozen=True, slots=True)
class KraftPlanRequest:
    """Where the cluster is to go: a phase, or ``repair``, ``fail over``, ``unregister broker 3``.

    ``node_timeout_s``: what one node may take. ``way_back_s``: for how long the run may be undone without a new
    approval. ``quiet_s``: how long nothing may change after an order was called off.

    Raises:
        InputError: there is no such phase, or a time is out of its range.
    """

    to_phase: str
    node_timeout_s: float = NODE_TIMEOUT_S
    way_back_s: float = WAY_BACK_S
    quiet_s: float = QUIET_S

    def __post_init__(self) -> None:
        if self.to_phase not in (*PHASES, REPAIR, FAIL_OVER) and unregistered(self.to_phase) is None:
            raise InputError(f"there is no phase {self.to_phase!r} to go to; there are {', '.join(PHASES)}")
        if not 0 < self.node_timeout_s <= 24 * 3600 or not 0 <= self.quiet_s <= 24 * 3600:
            raise InputError(
                "--node-timeout (in Python: node_timeout_s) must be more than 0 s, and quiet_s 0 s or more;"
                " both at most a day"
            )
        if not 0 < self.way_back_s <= LONGEST_WAY_BACK_S:
            raise InputError(f"a way back is of more than 0 h and at most {LONGEST_WAY_BACK_S / 3600:g} h")
