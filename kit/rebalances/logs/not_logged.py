"""Find what people paste beside logs, and is no line of a log: programs, stacks, names of files, placeholders."""

from __future__ import annotations

import polars as pl

from kit.rebalances.logs import wordings
from kit.rebalances.logs.printed_times import ANY
from kit.rebalances.logs.texts import has, replaced

_PRINTS = (
    r"(?i)\b_?(?:log|logger|logging|console|fmt|print)\w*\.\w+\(\s*[$@a-z]{0,2}[\"'`]"
    r"|\b(?:new|raise|throw) [\w.]+(?:Exception|Error)\("
)
"""A line of a program that prints or throws a text."""
_CALLS = (
    r"\b(?:trace|debug|info|warn|warning|error|fatal|panic|e?print(?:ln|f)?|[fs]?printf|format)!?\(\s*[$@a-z]{0,2}[\"'`]"
    r"|^\s*(?:[+-]\s*)?(?:\+\s*)?[$@a-z]{0,2}\"[^\"]*\"\s*(?:\+|\)+;?|;)\s*$"
    r"|^\s*[+-]?\s*\+ ?[$@a-z]{0,2}\"|^[+-](?: {4,}|\t)\S"
)
"""A call with a text, a piece of a text, a line of a difference: a log line that has one has a time, too."""
_PATH = r"^\s*(?:[\w.@$-]+/)+[\w.@$-]+\.\w{1,5}(?::\d+){0,2}\s*$"
_STACK = (
    r"^\s*at (?:new |async )?[\w.$<>\[\]`]+ ?\(|^\s*at .+(?::\d+:\d+\)?|:line \d+)\s*$|^\s*\.\.\. \d+ more"
    r"|^\s*File \"[^\"]+\", line \d+|^\s*\S+\.go:\d+(?: \+0x|$)"
)
_PLACEHOLDER = (
    r"%[sdv](?:\W|$)|(?:^|[\s\"'(=:])\$\{?[a-z_]\w*|[^:=]\s\{\}[\s.,:]|\b(?:group|member|partition|topic) <[\w .-]+>"
)
SAY_WHAT = ("assigned", "revoked", "lost", "joined", "synced", "offset_found", "offset_missing", "offset_reset")
"""Events whose clients report behind the first words which partitions, or which generation."""


def is_program(line: pl.Expr) -> pl.Expr:
    """Return whether it is a line of a program, or the name of a file."""
    return has(line, _PRINTS) | has(line, _PATH) | has(line, _CALLS) & ~has(line, ANY)


def is_stack(line: pl.Expr) -> pl.Expr:
    """Return whether it is a line of a stack, of any language."""
    return has(line, _STACK)


def is_template(text: pl.Expr) -> pl.Expr:
    """Return whether it has placeholders where a log has names and numbers."""
    return has(text, _PLACEHOLDER)


def says_nothing(front: pl.Expr, text: pl.Expr) -> pl.Expr:
    """Return whether a line holds the first words of a text alone, behind which its client reports more."""
    every = (each for table in wordings.BY_SOURCE.values() for each in table if each.kind in SAY_WHAT)
    heads = sorted({each.head.strip() for each in every if not each.head.rstrip().endswith(":")})
    return ~has(front, r"\S") & replaced(text, r"[\s.]+$", "").is_in(heads)
