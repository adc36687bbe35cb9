"""Rows for people, at any width: no value is cut. Prose and long names wrap; columns that don't fit are named below.

Numbers never wrap. The first column always stays; so does the last one that is left.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from kit.text.visible import visible

PROSE = frozenset({"sentence", "example", "error", "evidence", "next_step"})
KEYS = (
    *("group_id", "topic", "partition", "generation", "run_id", "lag", "time_lag", "unread_deleted_in", "closed_in"),
    *("store", "finding", "attention", "stage"),
    *("state", "is_ready", "zookeeper_owner", "kafka_owner"),
    *("item", "zookeeper_value", "kraft_value"),
)
"""The subject of a row, and the figure that its listing is for: of the columns that can be dropped they are dropped
last, the last named first.
"""
_GAP = "  "
_UNKNOWN = "–"
_NARROWEST_PROSE = 30
_NARROWEST_NAME = 20


def table_lines(
    columns: Mapping[str, bool], rows: Sequence[Sequence[str]], width: int, spare: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """The lines of a table, its heading first, and the columns that had no room.

    Args:
        columns: name → whether it holds numbers.
        rows: every value as its text, of one line.
        spare: columns that go after those that report nothing, in this order; then from the right, at last ``KEYS``.
    """
    names = list(columns)
    heads = [visible(name) for name in names]
    natural = {name: max(map(_width, (heads[at], *(row[at] for row in rows)))) for at, name in enumerate(names)}
    least = {name: _least(name, is_number, natural[name], width) for name, is_number in columns.items()}
    kept = list(names)
    for name in _dispensable(names, rows, spare):
        if _total(least, kept) <= width or len(kept) == 2:
            break
        kept.remove(name)
    widths = _widened(kept, least, natural, width)
    at = [names.index(name) for name in kept]
    lines = [line for row in (heads, *rows) for line in _row(kept, [row[each] for each in at], widths, columns)]
    return lines, [heads[at] for at, name in enumerate(names) if name not in kept]


def _least(name: str, is_number: bool, natural: int, width: int) -> int:
    if is_number:
        return natural
    return min(natural, max(_NARROWEST_PROSE if name in PROSE else _NARROWEST_NAME, width // 5))


def _dispensable(names: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[str]) -> list[str]:
    """All but the first column, in the order in which they go."""
    silent = [name for at, name in enumerate(names) if {row[at] for row in rows} <= {_UNKNOWN, "0"}]
    others = [name for name in (*silent, *spare, *reversed(names)) if name not in KEYS or name in spare]
    order = [*others, *reversed(KEYS)]
    return [name for name in dict.fromkeys(order) if name in names[1:]]


def _total(widths: Mapping[str, int], names: Sequence[str]) -> int:
    return sum(widths[name] for name in names) + len(_GAP) * (len(names) - 1)


def _widened(names: Sequence[str], least: Mapping[str, int], natural: Mapping[str, int], width: int) -> dict[str, int]:
    """Give the free width to the columns that need it, from the left."""
    widths = {name: least[name] for name in names}
    for name in names:
        room = width - _total(widths, names)
        widths[name] += max(0, min(room, natural[name] - widths[name]))
    return widths


def _row(
    names: Sequence[str], values: Sequence[str], widths: Mapping[str, int], columns: Mapping[str, bool]
) -> Iterator[str]:
    cells = [_wrapped(value, widths[name], name in PROSE) for name, value in zip(names, values)]
    for parts in zip_longest(*cells, fillvalue=""):
        padded = (_padded(part, widths[name], columns[name]) for name, part in zip(names, parts))
        yield _GAP.join(padded).rstrip()


def _wrapped(text: str, width: int, is_prose: bool) -> list[str]:
    if _width(text) <= width:
        return [text]
    if is_prose and _width(text) == len(text):
        return textwrap.wrap(text, width, break_on_hyphens=False) or [""]
    parts, start, used = [], 0, 0
    for at, char in enumerate(text):
        size = _width(char)
        if used + size > width and at > start:
            parts.append(text[start:at])
            start, used = at, 0
        used += size
    return [*parts, text[start:]]


def _padded(text: str, width: int, is_number: bool) -> str:
    blanks = " " * (width - _width(text))
    return blanks + text if is_number else text + blanks


def _width(text: str) -> int:
    """Cells of a terminal: letters of some scripts take two."""
    if text.isascii() or text == _UNKNOWN:
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
