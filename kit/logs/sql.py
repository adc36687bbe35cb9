"""Texts of SQL for columns that are made of many patterns: one question to Java where Columns ask some per pattern."""

from __future__ import annotations

from collections.abc import Iterable


def regex(pattern: str) -> str:
    """A raw string of SQL, which can hold no quote of its own kind."""
    return "r'" + pattern.replace("'", r"\x27") + "'"


def extracted(text: str, pattern: str, group: int = 1) -> str:
    """A group of the first place where the pattern is found; null where there is none, or it is empty there."""
    return f"nullif(regexp_extract({text}, {regex(pattern)}, {group}), '')"


def without(text: str, patterns: Iterable[str]) -> str:
    """The text without what the patterns find, in this order."""
    for pattern in patterns:
        text = f"regexp_replace({text}, {regex(pattern)}, '')"
    return text
