"""The consumer protocol inside the coordinator's own: what a member of a classic group subscribed to and was assigned.

The coordinator keeps both as bytes it doesn't look into; they mean this only where the protocol type is ``consumer``.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

Assigned: TypeAlias = tuple[tuple[str, int], ...]


def parse_member(subscription: bytes, assignment: bytes) -> tuple[tuple[str, ...], Assigned, str | None]:
    """Subscribed topics, assigned partitions, and what could not be decoded (KIP-429's versions)."""
    subscribed: tuple[str, ...] = ()
    assigned: Assigned = ()
    try:
        if subscription:
            subscribed = tuple(ConsumerProtocolSubscription.decode(subscription).topics)
        if assignment:
            topics = ConsumerProtocolAssignment.decode(assignment).assigned_partitions
            assigned = tuple((each.topic, partition) for each in topics for partition in each.partitions)
    except (ValueError, struct.error) as error:
        return subscribed, assigned, f"its subscription or assignment can't be decoded: {error}"
    return subscribed, assigned, None
