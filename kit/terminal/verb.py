"""A verb as its subject registers it; nothing of the verb is loaded before it is called."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verb:
    """``home``: ``module:app``, a Typer with a command of the verb's name, or that is the verb itself.
    ``help``: its line in the help of the group."""

    home: str
    help: str
