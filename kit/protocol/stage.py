"""The stage of a group between the classic protocol and the consumer protocol (KIP-848).

    classic ── canary ── mixed ── consumer

There is no toggle: the first member of the consumer protocol converts the group to the type ``consumer``.
"""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from kit.tables.groups import CLASSIC, CONSUMER


class Stage(StrEnum):
    """``CANARY``: exactly one member speaks the consumer protocol, and others the classic one.

    ``MIXED``: more of them do, or none does although the group is of the type ``consumer``: then the brokers' policy
    did not allow the conversion back. ``EMPTY``: the group has no member. ``UNKNOWN``: the stage could not be read.
    """

    CLASSIC = CLASSIC
    CANARY = "canary"
    MIXED = "mixed"
    CONSUMER = CONSUMER
    EMPTY = "empty"
    UNKNOWN = "unknown"


def stage_of(group_type: str | None, protocols: Collection[str | None]) -> Stage:
    """Return the stage of a described group.

    Args:
        group_type: ``classic`` or ``consumer``, as ListGroups names it; None: a broker older than 3.8, where every
            group is classic. Groups of other types (share, streams) have no stage here, and are ``UNKNOWN``.
        protocols: of each member, ``classic`` or ``consumer``; None: the broker does not report it.
    """
    if group_type not in (None, CLASSIC, CONSUMER):
        return Stage.UNKNOWN
    if not protocols:
        return Stage.EMPTY
    if not set(protocols) <= {CLASSIC, CONSUMER}:
        return Stage.UNKNOWN
    n_consumer = sum(each == CONSUMER for each in protocols)
    if group_type != CONSUMER:
        return Stage.CLASSIC if n_consumer == 0 else Stage.UNKNOWN
    if n_consumer == len(protocols):
        return Stage.CONSUMER
    return Stage.CANARY if n_consumer == 1 else Stage.MIXED
