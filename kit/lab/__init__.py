"""Real ZooKeeper, Kafka and consumers on loopback, for demos, tests and rehearsals: ``with Lab() as lab:``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kit.lab.lab import Lab
    from kit.lab.members.new_consumers import NewMember
    from kit.lab.members.old_consumers import OldMember

_HOMES = {"Lab": "lab", "NewMember": "members.new_consumers", "OldMember": "members.old_consumers"}

__all__ = ["Lab", "NewMember", "OldMember"]


def __getattr__(name: str) -> Any:
    """Loaded when first used: the help of ``offramp lab`` must not pay for clients."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kit.lab' has no attribute {name!r}")
    return getattr(import_module(f"kit.lab.{_HOMES[name]}"), name)
