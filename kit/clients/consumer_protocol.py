"""The consumer protocol: the subscription and the assignment of a member of a classic group.

The coordinator stores both as bytes that it does not parse. They have this form only if the protocol type is
``consumer``.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

Assigned: TypeAlias = tuple[tuple[str, int], ...]
EMBEDDED_RACK = "offramp.embedded"
"""The rack in the subscription of the consumer that a migration-enabled member embeds: it fetches nothing, so it needs
none, and a client may have any client id. A subscription has a rack since version 3 (KIP-881); brokers do not parse it.
"""


def is_embedded(subscription: bytes) -> bool:
    """Return whether it has the mark. A coordinator shows no subscription while the group rebalances."""
    try:
        decoded = ConsumerProtocolSubscription.decode(subscription) if subscription else None
    except (ValueError, struct.error):
        return False
    return bool(getattr(decoded, "rack_id", None) == EMBEDDED_RACK)


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
        return subscribed, assigned, f"the member's subscription or assignment can't be decoded: {error}"
    return subscribed, assigned, None


def _named(topics: Sequence[str | None] | None) -> tuple[str, ...]:
    """Topic names, checked: the decoder turns a text of length −1 into None.

    Raises:
        ValueError: a topic has no name, or there is no list.
    """
    names = tuple(_listed(topics))
    if None in names:
        raise ValueError("a topic without a name")
    return cast("tuple[str, ...]", names)


def _listed(entries: Sequence[Any] | None) -> Sequence[Any]:
    """A list, checked: the decoder turns a length of −1 into None. Raises ValueError then."""
    if entries is None:
        raise ValueError("a list of length -1")
    return entries
