"""What the kit knows of the locks of runs of groups."""

from __future__ import annotations

from kit.terminal.verb import Verb

VERBS = {
    "lock": Verb("kit.moves.locks.verb:app", "Which run has which group now, and how to end a lock."),
}
