"""Offsets as other tools print them, recognised by the form of the text.

Rows are ``topic, partition, offset``, or have the group first.

- kafkactl: ``describe consumer-group GROUP -o json`` (its ``consumerGroupDescription``, 00a5219, v5).
- AKHQ: a group by its API (``id`` and ``offsets``), or the list that its form for new offsets sends (16f7694).
- kcat: ``-Q`` prints ``TOPIC [PARTITION] offset OFFSET``, with ``-J`` an object by topic and partition (157f9dd, 1.7).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kit.engine.model.values import parse_json
from kit.errors import InputError

_KCAT = re.compile(r"(?P<topic>\S+) \[(?P<partition>\d+)\] offset (?P<offset>-?\d+)(?P<error>: .*)?")
_NONE = -1
"""kafkactl's offset of a partition without a commit."""


def rows_of(text: str) -> list[list[str]] | None:
    """The rows of a text of one of these forms; None: it is of none of them, so it may be CSV.

    Raises:
        InputError: it begins as JSON and is none, or not that of these tools; kcat could not find an offset.
    """
    text = text.strip()
    if text[:1] in ("{", "["):
        try:
            return [[str(part) for part in row] for row in _of_json(parse_json(text))]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            problem = "the file is no JSON of offsets by kafkactl, AKHQ or kcat"
            raise InputError(f"{problem}: {error if isinstance(error, ValueError) else type(error).__name__}") from None
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [_KCAT.fullmatch(line.strip()) for line in lines]
    if not lines or matches[0] is None:
        return None
    return [_of_kcat(line, match) for line, match in zip(lines, matches)]


def _of_kcat(line: str, match: re.Match[str] | None) -> list[str]:
    if match is None or match["error"]:
        raise InputError(f"{line[:80]!r} names no offset")
    return [match["topic"], match["partition"], match["offset"]]


def _of_json(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, list):
        yield from ([row["topic"], row["partition"], row["offset"]] for row in value)
    elif "Topics" in value or "Group" in value:
        yield from _of_kafkactl(value)
    elif "offsets" in value and "id" in value:
        with_commit = [row for row in value["offsets"] if row.get("offset") is not None]
        yield from ([value["id"], row["topic"], row["partition"], row["offset"]] for row in with_commit)
    else:
        yield from _of_kcat_json(value)


def _of_kafkactl(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    for topic in value["Topics"]:
        for each in topic.get("Partitions", ()):
            if each["consumerOffset"] != _NONE:
                yield [value["Group"]["Name"], topic["Name"], each["Partition"], each["consumerOffset"]]


def _of_kcat_json(value: Mapping[str, Any]) -> Iterator[list[Any]]:
    for topic, of_topic in value.items():
        for name, each in of_topic.items():
            if name != "topic":
                if "error" in each:
                    raise ValueError(f"{topic} [{name}]: {each['error']}")
                yield [topic, each["partition"], each["offset"]]
