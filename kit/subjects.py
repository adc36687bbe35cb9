"""The subjects of the kit: the one list of them. Each registers what it has in ``subject.py`` of its own folder.

=============  ===============================================================================================
name there     what it is
=============  ===============================================================================================
``VERBS``      verbs of ``offramp``: name → :class:`Verb`
``PLAN_VERBS`` verbs of ``offramp plan``, the same
``PLAN_KINDS`` ``kit.engine.plan_kind.PlanKind``: the recipes and the performer of its plans
``FRAMES``     frames of a run for the cells of a notebook: name → ``module:function``; ``kit.operations.frames``
``RULES``      rules of its conditions: where they are asked → ``module:RULES``; ``kit.tables.conditions``
``ANALYSES``   the module of its pure analyses; ``kit.analyze``
=============  ===============================================================================================

A new kind of plan is a folder with such a file, and its name in this list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

SUBJECTS = (
    "groups",
    "health",
    "proof",
    "rebalances",
    "moves.group",
    "moves.protocol",
    "moves.fleet",
    "kraft",
    "moves.offsets",
    "moves.znodes",
    "operations",
    "moves.locks",
    "consumer",
    "lab",
)
"""In the order in which ``offramp --help`` and ``offramp plan --help`` list their verbs."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb as its subject registers it; nothing of the verb is loaded before it is called.

    ``home``: ``module:app``, a Typer with a command of the verb's name, or that is the verb itself.
    ``help``: its line in the help of the group."""

    home: str
    help: str


def registered(name: str) -> Iterator[Any]:
    """Yield what each subject registers under this name, in the order of the list; a subject may have none."""
    for subject in SUBJECTS:
        module = import_module(f"kit.{subject}.subject")
        if hasattr(module, name):
            yield getattr(module, name)


def merged(name: str) -> Mapping[str, Any]:
    """The mappings that subjects register under this name, as one.

    Raises:
        ValueError: two subjects register the same key.
    """
    together: dict[str, Any] = {}
    for each in registered(name):
        if twice := together.keys() & each.keys():
            raise ValueError(f"two subjects register {min(twice)!r} in {name}")
        together |= each
    return together
