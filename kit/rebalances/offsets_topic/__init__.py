"""``__consumer_offsets``, the coordinators' own topic → tables of commits, generations and epochs, in Spark.

A room of its own: what ``kit.groups.read`` asks coordinators for is what is true now, and fits on one machine; the
topic also holds what was true before, and may be gigabytes, so Spark's tasks read it, each its own partitions. It
judges nothing.

``bounds``: from where to where; ``fetching``: records between bounds; ``octets``, ``cursor``: bytes by NumPy, and one
by one; ``keys``, ``commits``, ``generations``, ``epochs``: Kafka's formats; ``selection``, ``account``: which records,
and what became of all; ``tasks``: what one task does; ``topic``: all of it together.
"""

from kit.rebalances.offsets_topic.topic import OffsetsTopic, read_offsets_topic, verify_offsets_topic
from kit.text.java_hash import OFFSETS_TOPIC

__all__ = ["OFFSETS_TOPIC", "OffsetsTopic", "read_offsets_topic", "verify_offsets_topic"]
