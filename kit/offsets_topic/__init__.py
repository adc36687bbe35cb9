"""``__consumer_offsets``, the coordinators' own topic → tables of offset commits and group generations, in Spark.

A room of its own: what ``kit.read`` asks coordinators for is what is true now, and fits on one machine; the topic also
holds what was true before, and may be gigabytes, so Spark's tasks read it, each its own partitions. It judges nothing.

``bounds``: from where to where; ``fetching``: records between bounds; ``octets``: bytes by NumPy; ``keys``,
``commits``, ``generations``: Kafka's formats; ``selection``, ``account``: which records, and what became of all;
``tasks``: what one task does; ``topic``: all of it together.
"""

from kit.offsets_topic.topic import OFFSETS_TOPIC, OffsetsTopic, read_offsets_topic, verify_offsets_topic

__all__ = ["OFFSETS_TOPIC", "OffsetsTopic", "read_offsets_topic", "verify_offsets_topic"]
