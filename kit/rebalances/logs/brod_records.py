"""brod's records (Erlang, Elixir) have several lines: whose they are, what happened, its reason or its partitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import polars as pl

from kit.rebalances.logs.batching import detached
from kit.rebalances.logs.texts import has

MARKS = ("elected=", "to join group", "assignments received:", "begin_offset=")
"""In the lines of a record that no other client's marks are in; ``LINE_MARKS``: those that are whole lines."""
LINE_MARKS = (r"(?:^|\| +)reason:", r"(?:^|\|) +[\w.-]+:$")
_NAMED = r"(?:Group member \(|[Gg]roup coordinator \(groupId=)"
_HEAD = r"(?:Group member \([^\n]*,coor=|[Gg]roup coordinator \(groupId=)[^\n]*\):$"
_FURTHER = {
    "failed to join group": re.compile(r"reason:"),
    "assignments received:": re.compile(r"  \S+:$|    partition=\d+ "),
}
"""The texts that more lines follow, and these lines."""
_MOST_LINES = 5_000


class _Line(NamedTuple):
    file: str
    line: int
    value: str
    is_head: bool


def joined(portions: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """``file``, ``line`` and ``value``, in order → the same, with each record of brod in one row, with its first line's
    number. It does not matter where a portion ends."""
    waiting = pl.DataFrame()
    for portion in portions:
        lines = pl.concat([waiting, portion])
        is_head = has(pl.col("value").str.strip_chars_end(), _HEAD)
        numbered = lines.with_columns(is_head=is_head)
        if not numbered["is_head"].any():
            waiting = lines.clear()
            yield lines
            continue
        walked = list(map(_Line._make, numbered.select("file", "line", "value", "is_head").rows()))
        ends = {place: _end(walked, place) for place, each in enumerate(walked) if each.is_head}
        last = max(ends)
        n_ready = last if ends[last] == len(walked) and len(walked) - last < _MOST_LINES else len(walked)
        waiting = detached(lines.tail(len(walked) - n_ready))
        if n_ready:
            yield _whole(lines.head(n_ready), walked, {place: end for place, end in ends.items() if place < n_ready})
    if len(waiting):
        yield from _rest(waiting)


def _rest(lines: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The record at the end, of which no more comes."""
    walked = list(map(_Line._make, lines.select("file", "line", "value", is_head=pl.lit(False)).rows()))
    yield _whole(lines, walked, {0: _end(walked, 0)})


def _end(lines: list[_Line], place: int) -> int:
    """Return where the record that begins at ``place`` ends: behind its text, and the lines that follow it without a
    gap.
    """
    end, further = place + 1, None
    without_prefix = _prefix_of(lines[place].value)
    while end < len(lines) and (lines[end].file, lines[end].line) == (lines[end - 1].file, lines[end - 1].line + 1):
        value = without_prefix(lines[end].value)
        if lines[end].is_head or (end > place + 1 and not (further and further.match(value))):
            break
        further = _FURTHER.get(value.strip()) if end == place + 1 else further
        end += 1
    return end


def _prefix_of(head: str) -> Callable[[str], str]:
    """Return an expression that takes from a line the prefix that a program has put before the head, too; its time
    may be another.
    """
    prefix = re.match(r".*\| *", re.split(_NAMED, head, maxsplit=1)[0])
    if prefix is None:
        return lambda line: line
    pattern = re.compile("^" + re.sub(r"\d", r"\\d", re.escape(prefix[0])))
    return lambda line: pattern.sub("", line)


def _whole(lines: pl.DataFrame, walked: list[_Line], ends: dict[int, int]) -> pl.DataFrame:
    texts = [each.value for each in walked[: len(lines)]]
    is_kept = [True] * len(texts)
    for place, end in ends.items():
        without_prefix = _prefix_of(texts[place])
        further = (without_prefix(each.value).strip() for each in walked[place + 1 : end])
        texts[place] = " ".join([texts[place].strip(), *further])
        is_kept[place + 1 : end] = [False] * (end - place - 1)
    return lines.with_columns(value=pl.Series(texts, dtype=pl.String)).filter(pl.Series(is_kept, dtype=pl.Boolean))
