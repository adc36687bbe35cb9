"""The states of a run and the moves between them: all of them, in one table.

    PLANNED ── APPROVED ── OBSERVING ── CHECKING ── ACTING ── VERIFYING ── VERIFIED
                               │ ▲          ▲                     │
                             STALE│          └──── next step ──────┘
                                  │
      STOPPED, FAILED, or a crash in any of these: continue (OBSERVING) or back (UNDOING)

    UNDOING ── UNDONE, or UNDO_HALTED ── UNDOING

A run that ended without saying so (a crash, a lost kernel) is in the state that its last event names.
"""

from __future__ import annotations

from enum import StrEnum

from kit.errors import IllegalMove


class RunState(StrEnum):
    PLANNED = "PLANNED"
    """There is a plan."""
    APPROVED = "APPROVED"
    """The plan has its approval; the run has not begun."""
    OBSERVING = "OBSERVING"
    """offramp reads again what the plan observed, and compares."""
    CHECKING = "CHECKING"
    """The precondition of a step is being checked."""
    ACTING = "ACTING"
    """A step is writing."""
    VERIFYING = "VERIFYING"
    """The writes of a step are being read back, until its deadline."""
    VERIFIED = "VERIFIED"
    """Every step was verified."""
    STOPPED = "STOPPED"
    """It was asked to stop, lost its lock, or its approval expired. It stopped after an item: nothing half written."""
    FAILED = "FAILED"
    """A step failed. Nothing more is written until the run is resumed or undone."""
    STALE = "STALE"
    """The cluster differs from what the plan observed. Nothing was written; the approval is void."""
    UNDOING = "UNDOING"
    """The writes of the run are being undone, newest step first."""
    UNDO_HALTED = "UNDO_HALTED"
    """The undo stopped or failed. Undo again; to go forward needs a new plan."""
    UNDONE = "UNDONE"
    """All that the run wrote was undone, and read back."""

    @classmethod
    def _missing_(cls, value: object) -> RunState | None:
        """The name that older journals give to ``STALE``."""
        return cls.STALE if value == "VOID" else None


_S = RunState
_WAYS_ON = {_S.FAILED, _S.STOPPED, _S.OBSERVING, _S.UNDOING}

MOVES: dict[RunState, frozenset[RunState]] = {
    _S.PLANNED: frozenset({_S.APPROVED}),
    _S.APPROVED: frozenset({_S.OBSERVING}),
    _S.OBSERVING: frozenset({_S.CHECKING, _S.VERIFYING, _S.VERIFIED, _S.STALE, *_WAYS_ON}),
    _S.CHECKING: frozenset({_S.ACTING, *_WAYS_ON}),
    _S.ACTING: frozenset({_S.VERIFYING, *_WAYS_ON}),
    _S.VERIFYING: frozenset({_S.CHECKING, _S.VERIFIED, *_WAYS_ON}),
    _S.STOPPED: frozenset({_S.OBSERVING, _S.UNDOING}),
    _S.FAILED: frozenset({_S.OBSERVING, _S.UNDOING}),
    _S.VERIFIED: frozenset({_S.UNDOING}),
    _S.UNDOING: frozenset({_S.UNDOING, _S.UNDONE, _S.UNDO_HALTED}),
    _S.UNDO_HALTED: frozenset({_S.UNDOING}),
    _S.UNDONE: frozenset(),
    _S.STALE: frozenset(),
}

AT_WORK = frozenset({_S.OBSERVING, _S.CHECKING, _S.ACTING, _S.VERIFYING, _S.UNDOING})
"""A run in one of these is running now, or was cut off: only its lock shows it."""


def moved(old: RunState, new: RunState) -> RunState:
    """``new``, if there is such a move.

    Raises:
        IllegalMove: there is none; those that there are, are named.
    """
    if new not in MOVES[old]:
        legal = ", ".join(sorted(MOVES[old])) or "no other state: it has ended"
        raise IllegalMove(f"a run that is {old} can't become {new}; from there it goes to: {legal}")
    return new
