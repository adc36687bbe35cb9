"""Make the registration of a member of an old group, byte for byte as the JVM consumers do (0.8.2 … 1.1)."""

from __future__ import annotations

import json
import re
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass

from kit.clients.registration import BLACK_LIST, STATIC, WHITE_LIST, Registration, normalised
from kit.errors import InputError

_JAVA_ONLY = re.compile(r"\\p\{|\\P\{|&&|[*+?}]\+|\\Q|\\h|\\R|\\X|\(\?<[a-zA-Z]")


@dataclass(frozen=True, slots=True)
class Subscription:
    """Streams by topic, or by the one regular expression of a wildcard."""

    pattern: str
    streams: Mapping[str, int]

    @property
    def is_wildcard(self) -> bool:
        return self.pattern != STATIC

    def payload(self, now_ms: int) -> bytes:
        """The registration: compact, keys in the JVM's order, the time as text.

        A number there would be read as a 32-bit integer by members up to 0.11, which then lose every partition.
        """
        fields = {
            "version": 1,
            "subscription": dict(self.streams),
            "pattern": self.pattern,
            "timestamp": str(now_ms),
        }
        return json.dumps(fields, separators=(",", ":")).encode("ascii")

    def registration(self) -> Registration:
        """Return the registration as another member reads it."""
        return Registration(self.pattern, self.streams)


def static_subscription(streams: Mapping[str, int]) -> Subscription:
    """``{topic: number of streams}``.

    Raises:
        InputError: no topic, a topic's name that Kafka doesn't allow, or a number below 1.
    """
    if not streams:
        raise InputError("there is no topic to consume: give {topic: number of streams}")
    for topic, count in streams.items():
        if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", topic):
            raise InputError(f"{topic!r} is not a topic's name")
        _check_count(topic, count)
    return Subscription(STATIC, dict(streams))


def wildcard_subscription(allow: str | None, deny: str | None, count: int) -> Subscription:
    """All topics that ``allow`` matches whole, or all but those that ``deny`` matches whole; ``count`` streams.

    Raises:
        InputError: both or neither given, or a pattern that can't be used by Python and Java alike.
    """
    if (allow is None) == (deny is None):
        raise InputError("give either allow or deny, one pattern of topics")
    regex = normalised(allow if allow is not None else deny or "")
    _check_regex(regex)
    _check_count(regex, count)
    return Subscription(WHITE_LIST if allow is not None else BLACK_LIST, {regex: count})


def _check_regex(regex: str) -> None:
    if match := _JAVA_ONLY.search(regex):
        raise InputError(
            f"the pattern {regex!r} has {match.group()!r}, which Java and Python interpret differently, but every "
            "member must find the same topics"
        )
    if not regex or not regex.isascii():
        raise InputError(f"the pattern {regex!r} must be ASCII and not empty: old members don't escape it")
    try:
        re.compile(regex)
    except re.error as error:
        raise InputError(f"the pattern {regex!r} can't be parsed: {error}") from None


def _check_count(name: str, count: int) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"{name}: {count!r} streams; it must be a whole number, 1 or more")


def consumer_id(group_id: str, instance: str | None) -> str:
    """``<group>_<instance>``; without ``instance`` it is ``<host>-<epoch ms>-<8 hex digits>`` as in the JVM."""
    if instance is None:
        host = re.sub(r"[^a-zA-Z0-9._-]", "-", socket.gethostname()) or "host"
        instance = f"{host}-{time.time_ns() // 1_000_000}-{secrets.token_hex(4)}"
    return f"{group_id}_{instance}"


def thread_ids(consumer_id: str, count: int) -> list[str]:
    """``<consumer id>-<n>``, n from 0; numbered again for each topic."""
    return [f"{consumer_id}-{number}" for number in range(count)]
