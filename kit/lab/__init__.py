"""Real ZooKeeper, Kafka and consumers on loopback, for demos, tests and rehearsals: ``with Lab() as lab:``."""

from kit.lab.lab import Lab
from kit.lab.new_consumers import NewMember
from kit.lab.old_consumers import OldMember

__all__ = ["Lab", "NewMember", "OldMember"]
