"""Register the locks of runs of groups."""

from __future__ import annotations

from kit.subjects import Verb

VERBS = {
    "lock": Verb("kit.moves.locks.verb:app", "Locks of groups: show which run holds which lock, end a lock."),
}
