"""Java's hash of a string: assignors order partitions by it, and it places groups in ``__consumer_offsets``."""

from __future__ import annotations

OFFSETS_TOPIC = "__consumer_offsets"


def java_hash(text: str) -> int:
    """``String.hashCode``: signed 32 bits over UTF-16 units."""
    value = 0
    encoded = text.encode("utf-16-be")
    for high, low in zip(encoded[::2], encoded[1::2]):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def offsets_partition(group_id: str, count: int) -> int:
    """The partition of ``__consumer_offsets``, of ``count``, that holds a group.

    ``GroupMetadataManager.partitionFor``; ``Utils.abs`` makes 0 of the smallest number.
    """
    value = java_hash(group_id)
    return 0 if value == -(2**31) else abs(value) % count
