"""Every setting of a broker or controller of Kafka 3.9.1: its type, default and allowed values.

``kafka_settings.txt`` has a line each: name, type, default (``-``: none; else after ``=``), the validator's own words.
A test holds it against the real Kafka.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Setting:
    """``type``: one of ``ConfigDef.Type``; ``default``: as in a file; ``allowed``: the validator's own words."""

    name: str
    type: str
    default: str | None
    allowed: str


@cache
def settings() -> Mapping[str, Setting]:
    """Every setting of a broker or controller that Kafka 3.9.1 knows, by its name."""
    rows = [
        line.split("\t")
        for line in files(__package__).joinpath("kafka_settings.txt").read_text(encoding="utf-8").splitlines()
    ]
    return {name: Setting(name, kind, _default(text), allowed) for name, kind, text, allowed in rows}


def _default(text: str) -> str | None:
    return text[1:] if text.startswith("=") else None
