"""The consumer protocol inside the coordinator's own: what a member of a classic group subscribed to and was assigned.

The coordinator keeps both as bytes it doesn't look into; they mean this only where the protocol type is ``consumer``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

Assigned: TypeAlias = tuple[tuple[str, int], ...]


def parse_member(subscription: bytes, assignment: bytes) -> tuple[tuple[str, ...], Assigned, str | None]:
    """Subscribed topics, assigned partitions, and what could not be decoded (KIP-429's versions)."""
    subscribed: tuple[str, ...] = ()
    assigned: Assigned = ()
    try:
        if subscription:
            subscribed = _named(ConsumerProtocolSubscription.decode(subscription).topics)
        if assignment:
            topics = _listed(ConsumerProtocolAssignment.decode(assignment).assigned_partitions)
            _named([each.topic for each in topics])
            assigned = tuple((each.topic, partition) for each in topics for partition in _listed(each.partitions))
    except (ValueError, struct.error) as error:
        return subscribed, assigned, f"its subscription or assignment can't be decoded: {error}"
    return subscribed, assigned, None


def _named(topics: Sequence[str | None] | None) -> tuple[str, ...]:
    """The decoder takes a text of length −1 for none; a topic without a name is no topic.

    Raises:
        ValueError: there is one, or no list.
    """
    names = tuple(_listed(topics))
    if None in names:
        raise ValueError("a topic without a name")
    return cast("tuple[str, ...]", names)


def _listed(entries: Sequence[Any] | None) -> Sequence[Any]:
    """The decoder takes a list of length −1 for none. Raises ValueError."""
    if entries is None:
        raise ValueError("a list of length -1")
    return entries
