"""Decide whether a member may trust what it believes to hold, or must read its owner znodes first: a table of states.

========  ======================  =======  =======  =======
state     a round begins          a doubt  settled  blocked
========  ======================  =======  =======  =======
CERTAIN   CHANGING                DOUBTED
CHANGING  CHANGING, reads first   DOUBTED  CERTAIN  DOUBTED
DOUBTED   CHANGING, reads first   DOUBTED  DOUBTED  DOUBTED
========  ======================  =======  =======  =======

A round that is abandoned leaves CHANGING behind. A doubt in the middle of a round outlives that round.
"""

from __future__ import annotations

import threading
from enum import Enum


class State(Enum):
    CERTAIN = "the owner znodes are unchanged since the last round"
    CHANGING = "a round is in progress, or was abandoned"
    DOUBTED = "an owner znode or the session no longer exists, or a claim was blocked halfway"


class Event(Enum):
    ROUND_BEGINS = "a round begins"
    DOUBT = "an owner znode vanished, its watch was lost, or the session ended"
    SETTLED = "the round ended, and every claim was executed"
    BLOCKED = "the round ended, but other members hold partitions that it claimed"


MOVES = {
    (State.CERTAIN, Event.ROUND_BEGINS): State.CHANGING,
    (State.CERTAIN, Event.DOUBT): State.DOUBTED,
    (State.CHANGING, Event.ROUND_BEGINS): State.CHANGING,
    (State.CHANGING, Event.DOUBT): State.DOUBTED,
    (State.CHANGING, Event.SETTLED): State.CERTAIN,
    (State.CHANGING, Event.BLOCKED): State.DOUBTED,
    (State.DOUBTED, Event.ROUND_BEGINS): State.CHANGING,
    (State.DOUBTED, Event.DOUBT): State.DOUBTED,
    (State.DOUBTED, Event.SETTLED): State.DOUBTED,
    (State.DOUBTED, Event.BLOCKED): State.DOUBTED,
}


class Certainty:
    """Rounds begin and end on one thread; a doubt may come from any."""

    def __init__(self) -> None:
        self._state = State.CERTAIN
        self._lock = threading.Lock()

    def begin_round(self) -> bool:
        """Return whether the owner znodes must be read before the round relies on them."""
        return self._move(Event.ROUND_BEGINS) is not State.CERTAIN

    def end_round(self, is_blocked: bool) -> None:
        self._move(Event.BLOCKED if is_blocked else Event.SETTLED)

    def doubt(self) -> None:
        self._move(Event.DOUBT)

    def _move(self, event: Event) -> State:
        """Move by the table; → the state before."""
        with self._lock:
            before = self._state
            self._state = MOVES[before, event]
            return before
