"""Real ZooKeeper, Kafka and consumers on loopback, for demos, tests and rehearsals: ``with Lab() as lab:``."""

from kit.lab.lab import Lab
from kit.lab.members.new_consumers import NewMember
from kit.lab.members.old_consumers import OldMember

__all__ = ["Lab", "NewMember", "OldMember"]
