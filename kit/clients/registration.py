"""The JSON an old ZooKeeper consumer registers under ``/consumers/<group>/ids/<consumer id>``.

Every member parses every other member's registration. A registration that a member can't parse stops that member.
Rules: the old consumers 0.8.2 … 1.1; the parser of ≤ 0.11 reads every number as a 32-bit integer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kit.clients.values import is_text, json_in, shown
from kit.text.java_hash import OFFSETS_TOPIC
from kit.text.numbers import INT32_MAX

STATIC, WHITE_LIST, BLACK_LIST = "static", "white_list", "black_list"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, "__transaction_state"})
LARGEST_STREAMS = 100_000
"""Streams of one member and topic. No process could run more, and an assignment has an entry for each."""
_ESCAPED = re.compile(r"\\.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Registration:
    """A member's registration: ``streams`` by topic (static) or by one regular expression (wildcards).

    ``problem`` gives the reason other members can't use it; the other fields then hold the part that could be parsed.
    """

    pattern: str | None
    streams: Mapping[str, int]
    problem: str | None = None

    @property
    def is_wildcard(self) -> bool:
        return self.pattern in (WHITE_LIST, BLACK_LIST)

    @property
    def is_usable(self) -> bool:
        """Return whether its topics are known; true also if only members up to 0.11 can't parse it."""
        if not self.is_wildcard or not self.streams:
            return self.problem is None or bool(self.streams)
        return _regex_problem(str(self.pattern), self.streams) is None

    def topics(self, existing: Iterable[str], excludes_internal: bool = True) -> dict[str, int]:
        """Streams by topic; a wildcard is resolved by full match against the existing topics.

        Empty if the wildcard can't be resolved; ``problem`` then says why. ``excludes_internal`` is the reader's own
        ``exclude.internal.topics``.
        """
        if not self.is_wildcard or not self.streams:
            return dict(self.streams)
        (regex, n_streams), *_ = self.streams.items()
        wanted = self.pattern == WHITE_LIST
        if _problem_of(normalised(regex)) is not None:
            return {}
        candidates = [topic for topic in existing if not excludes_internal or topic not in INTERNAL_TOPICS]
        matches = _matches(normalised(regex), candidates)
        return {topic: n_streams for topic, is_match in zip(candidates, matches) if is_match is wanted}


def parse_registration(data: bytes | None) -> Registration:
    """Never raises: ``problem`` describes an error."""
    if not data:
        return Registration(None, {}, "the registration is empty")
    payload = json_in(data)
    if payload is None:
        return Registration(None, {}, f"the registration is not JSON, or is nested too deep: {shown(data)}")
    if not isinstance(payload, dict):
        return Registration(None, {}, f"the registration is not a JSON object: {shown(data)}")
    return _from_payload(payload)


def _from_payload(payload: dict[str, Any]) -> Registration:
    pattern = payload.get("pattern")
    streams = payload.get("subscription")
    if not isinstance(pattern, str) or not is_text(pattern):
        return Registration(None, {}, "the registration has no 'pattern'")
    if not isinstance(streams, dict) or not all(map(_is_stream, streams, streams.values())):
        return Registration(pattern, {}, "the registration has no 'subscription' of stream counts by topic")
    if pattern in (WHITE_LIST, BLACK_LIST) and not streams:
        return Registration(STATIC, streams, None)
    return Registration(pattern, streams, _regex_problem(pattern, streams) or _number_problem(payload))


def _is_stream(topic: str, count: Any) -> bool:
    """A count of zero or less stops every member that reads it, as invalid JSON does."""
    return is_text(topic) and type(count) is int and 0 < count <= LARGEST_STREAMS


def _regex_problem(pattern: str, streams: Mapping[str, int]) -> str | None:
    if pattern not in (WHITE_LIST, BLACK_LIST):
        return None
    regex = normalised(next(iter(streams)))
    problem = _problem_of(regex)
    return f"the {pattern} {shown(regex)} can't be resolved here ({problem})" if problem is not None else None


@lru_cache(maxsize=10_000)
def _problem_of(regex: str) -> str | None:
    """Return why the expression is not resolved: only Java's engine knows it, or no engine does."""
    if "&&" in regex or _has_union(regex):
        return "only Java's engine knows intersections and unions of character classes"
    try:
        _matches(regex, [""])
    except ValueError as error:  # ArrowInvalid is one
        return f"RE2: {shown(str(error).removeprefix('Invalid regular expression: '))}"
    return None


def _matches(regex: str, topics: Sequence[str]) -> list[bool]:
    """Match whole names by RE2, whose time is linear: a backtracking engine can need years for a stranger's expression.

    Raises:
        ArrowInvalid: RE2 does not know the expression, for example a lookahead or a back reference.
    """
    # Here, because it takes long to load, and most groups have no wildcard.
    import pyarrow as pa
    import pyarrow.compute as pc

    # Alone first: a bracket of the expression must not close the group around it.
    pc.match_substring_regex(pa.array([""]), pattern=regex)
    found: list[bool] = pc.match_substring_regex(pa.array(topics, pa.string()), pattern=rf"\A(?:{regex})\z").to_pylist()
    return found


def _has_union(regex: str) -> bool:
    """Return whether a character class is opened in a class. An escaped character doesn't count."""
    is_in_class = False
    for character in _ESCAPED.sub("", regex):
        if character == "[" and is_in_class:
            return True
        is_in_class = character == "[" or (is_in_class and character != "]")
    return False


def _number_problem(payload: dict[str, Any]) -> str | None:
    for key, value in _numbers(payload):
        if isinstance(value, float) or not -INT32_MAX - 1 <= value <= INT32_MAX:
            return (
                f"{shown(key)} is the number {_cut(value)}: members up to 0.11 read numbers as 32-bit integers and "
                "lose every partition over this registration; it must be a string"
            )
    return None


def _cut(value: float) -> str:
    return shown(str(value)).replace("'", "")


def _numbers(payload: Any) -> Iterable[tuple[str, int | float]]:
    """Every number at any depth with its key, in the order of the text."""
    todo: list[tuple[str, Any]] = [("", payload)]
    while todo:
        key, value = todo.pop()
        if isinstance(value, dict):
            todo.extend(reversed(value.items()))
        elif isinstance(value, list):
            todo.extend((key, inner) for inner in reversed(value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, value


def normalised(regex: str) -> str:
    """Return the pattern as ``kafka.consumer.TopicFilter`` reads it: commas are alternatives; spaces and outer
    quotes are removed.
    """
    return regex.strip().replace(",", "|").replace(" ", "").strip("\"'")
