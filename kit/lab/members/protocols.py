"""A Kafka member under the classic protocol or under the consumer protocol (KIP-848): one description for both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from kit.errors import InputError
from kit.lab.members.java import JavaMember
from kit.lab.members.new_consumers import NewMember

CLASSIC, CONSUMER = PROTOCOLS = ("classic", "consumer")
REFUSED = ("session.timeout.ms", "heartbeat.interval.ms", "partition.assignment.strategy", "group.protocol.type")
"""Settings that a client refuses together with ``group.protocol=consumer``: the broker has them."""
FIRST_RELEASE, NEWEST = 4, "4.4.0"
"""First major release of Java's client in which the consumer protocol is supported, and the one that the lab has."""

Described = TypeVar("Described", NewMember, JavaMember)


def of_protocol(member: Described, protocol: str, client_id: str) -> Described:
    """The same member with another client id, under ``protocol``; ``member`` itself describes a classic one.

    An instance id stays. A Java client of before 4.0 becomes one of the newest release under the consumer protocol.
    Raises InputError for another protocol.
    """
    if protocol not in PROTOCOLS:
        raise InputError(f"There is no protocol {protocol!r}; there are {', '.join(PROTOCOLS)}.")
    if protocol == CLASSIC:
        return replace(member, client_id=client_id)
    settings = _without_refused(member.settings)
    if isinstance(member, NewMember):
        return replace(member, client_id=client_id, assignor="", settings=settings)
    version = member.version if int(member.version.partition(".")[0]) >= FIRST_RELEASE else NEWEST
    return replace(member, client_id=client_id, version=version, settings=settings)


def _without_refused(settings: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in settings.items() if name not in REFUSED}
    return {**kept, "group.protocol": CONSUMER}
