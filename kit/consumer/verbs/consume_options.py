"""Define the options of ``offramp consume``: what to consume, where it goes, and the consumer's own keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kit.errors import InputError
from kit.text.regular_file import read_regular


class Flavour(StrEnum):
    """KIP-125's flavours of a member."""

    OZKCC = "ozkcc"
    MEZKCC = "mezkcc"
    KC = "kc"


@dataclass(frozen=True)
class ConsumeOptions:
    """The input and output of ``offramp consume``. ``properties`` are the consumer's own keys; they win over all
    others.

    ``topic_seconds``: how long to wait for a topic that does not exist.
    """

    flavour: Flavour
    group_id: str
    topics: Sequence[str] = ()
    allow: str | None = None
    deny: str | None = None
    threads: int = 1
    from_beginning: bool = False
    as_json: bool = False
    command: Sequence[str] = ()
    limit: int = 0
    topic_seconds: float = 0.0
    consumption: Path | None = None
    events: Path | None = None
    metrics: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # Passwords may be among them.


def properties_of(pairs: Sequence[str], file: Path | None) -> dict[str, str]:
    """``key=value`` pairs, after those of a properties file.

    Raises:
        InputError: one of them has no ``=``, or the file can't be read.
    """
    lines = [(f"property {number} on the command line", pair) for number, pair in enumerate(pairs, 1)]
    if file is not None:
        lines = [*_lines_of(file), *lines]
    properties = {}
    for where, line in lines:
        key, separator, value = line.partition("=")
        if not separator:  # The message does not quote the line: it may be a password.
            raise InputError(f"{where} has no '=': a property is key=value")
        properties[key.strip()] = value.strip()
    return properties


def _lines_of(file: Path) -> list[tuple[str, str]]:
    """Each line with a property, and its place."""
    try:
        lines = [line.strip() for line in read_regular(file).decode().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} can't be read: {type(error).__name__}") from None
    return [(f"line {at} of {file}", line) for at, line in enumerate(lines, 1) if line and line[0] not in "#!"]
