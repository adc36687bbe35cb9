"""Patterns put to columns of texts: polars' own functions, a column at a time.

Their engine is Rust's: it takes linear time and knows no lookaround. The classes d, w, s and b mean ASCII here, which
is all that ids, numbers and times are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple, TypeAlias

import polars as pl

_ASCII = {
    r"\d": "[0-9]",
    r"\w": "[0-9A-Za-z_]",
    r"\s": r"[ \t\n\x0B\f\r]",
    r"\S": r"[^ \t\n\x0B\f\r]",
    r"\b": r"(?-u:\b)",
}


class Unless(NamedTuple):
    """A pattern whose first group is nothing where it is one of these words."""

    pattern: str
    words: tuple[str, ...]


Pattern: TypeAlias = str | Unless


@cache
def regex(pattern: str) -> str:
    """The pattern as Rust's engine takes it."""
    return re.sub(r"\\[dwsSb]", lambda match: _ASCII[match[0]], pattern)


def has(text: pl.Expr, pattern: str) -> pl.Expr:
    """Return whether the pattern is found anywhere; null where there is no text."""
    return text.str.contains(regex(pattern))


def filled(text: pl.Expr) -> pl.Expr:
    """Null where it is empty."""
    return pl.when(text != "").then(text)


def extracted(text: pl.Expr, pattern: Pattern, group: int = 1) -> pl.Expr:
    """A group of the first place where the pattern is found; null where there is none, or it is empty there."""
    if isinstance(pattern, Unless):
        captured = extracted(text, pattern.pattern)
        return pl.when(~captured.is_in(pattern.words)).then(captured)
    return filled(text.str.extract(regex(pattern), group))


def first_of(text: pl.Expr, patterns: Iterable[Pattern]) -> pl.Expr:
    """The first group of the first pattern that is found and not empty."""
    return pl.coalesce([extracted(text, pattern) for pattern in patterns])


def replaced(text: pl.Expr, pattern: str, by: str) -> pl.Expr:
    """The text with every place that the pattern finds replaced; ``${1}`` is its first group."""
    return text.str.replace_all(regex(pattern), by)


def without(text: pl.Expr, patterns: Iterable[str]) -> pl.Expr:
    """The text without what the patterns find, in this order."""
    for pattern in patterns:
        text = replaced(text, pattern, "")
    return text


def not_behind(*words: str) -> str:
    """A pattern for what is before a place that is behind none of these words; it eats that much."""
    endings = {word[at:] for word in words for at in range(len(word) + 1)}
    ways = []
    for ending in sorted(endings - set(words)):
        one_more = "".join(sorted(longer[0] for longer in endings if longer[1:] == ending and longer))
        ways += [f"^{re.escape(ending)}", f"[^{re.escape(one_more)}]{re.escape(ending)}"]
    return f"(?:{'|'.join(ways)})"


def not_before(word: str) -> str:
    """A pattern for what is behind a place that is not before this word; it eats that much."""
    ways = [f"{re.escape(word[:at])}(?:[^{re.escape(word[at])}]|$)" for at in range(len(word))]
    return f"(?:{'|'.join(ways)})"
