"""Real ZooKeeper, Kafka and consumers on loopback, for demos, tests and rehearsals: ``with Lab() as lab:``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kit.text.lazy_names import lazy_names

if TYPE_CHECKING:
    from kit.lab.lab import Lab
    from kit.lab.members.new_consumers import NewMember
    from kit.lab.members.old_consumers import OldMember


__all__ = ["Lab", "NewMember", "OldMember"]
_, __getattr__ = lazy_names(__name__)
