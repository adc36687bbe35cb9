"""Records that a terminal or a paste has wrapped: joined where the layout proves it, else known to be cut.

Kafka's own layout closes each record with its logger. A record that lacks it goes on in the next line, if that line has
no head and closes with a logger. In a file of this layout, what has no head or is not closed is a part of a record.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import polars as pl

from kit.logs import wordings
from kit.logs.layouts import LEVELS, TIME
from kit.logs.multiline import is_part
from kit.logs.texts import has

_HEAD = rf"^\[{TIME}[^\]]*\] (?:{LEVELS}) "
_CLOSED = r"\([A-Za-z_]\w*(?:\.[\w$]+)+(?::\d+)?\)(?: \[[^\]]*\]| - [\w.-]+=[^()]*)?\s*$"
_BLOCK = r"(?:Updating assignment with|Reconciling assignment with local epoch \d+)\s*$"
"""The message itself has several lines."""
_NO_TAIL = rf"^(?:\t|  | \(|$|\{{\"|<|\[\d|at |Caused by|\S*(?:Exception|Error)\b|.{{0,60}}{TIME})"
_MOST_PIECES, _ENOUGH = 5, 20


def rejoined(lines: pl.DataFrame) -> pl.DataFrame:
    """``file``, ``line`` and ``value``, in order → the same with ``is_cut``, and with wrapped records in one row."""
    value, whole = pl.col("value"), lines.with_columns(is_cut=pl.lit(False))
    # Nearly all records of this layout begin and end alike: two cheap looks leave few for the patterns.
    is_usual = value.str.starts_with("[") & value.str.ends_with(")")
    closing = set(
        lines.filter(value.str.ends_with(")")).group_by("file").head(_ENOUGH).filter(has(value, _CLOSED))["file"]
    )
    if not closing or lines.select(is_usual.all()).item():
        return whole
    odd = pl.when(~is_usual & pl.col("file").is_in(closing)).then(value)
    is_open = has(odd, _HEAD) & ~has(odd, _CLOSED) & ~has(odd, _BLOCK)
    is_tail = ~has(odd, _HEAD) & ~has(odd, _NO_TAIL) & ~is_part(odd)
    marked = lines.select("file", "line", "value", is_open=is_open.fill_null(False), is_tail=is_tail.fill_null(False))
    if not marked.select((pl.col("is_open") | pl.col("is_tail")).any()).item():
        return whole
    texts, is_kept, is_cut = _walked(list(map(_Line._make, marked.rows())))
    return whole.with_columns(value=pl.Series(texts), is_cut=pl.Series(is_cut)).filter(pl.Series(is_kept))


class _Line(NamedTuple):
    file: str
    line: int
    value: str
    is_open: bool
    is_tail: bool


def _walked(lines: list[_Line]) -> tuple[list[str], list[bool], list[bool]]:
    """The texts, which of them stay, and which are a part of a record whose other parts are not there."""
    texts, is_kept = [each.value for each in lines], [True] * len(lines)
    is_cut = [each.is_open or (each.is_tail and not _is_closed(each.value)) for each in lines]
    place = 0
    while place < len(lines):
        parts = _parts(lines, place) if lines[place].is_open else []
        whole = _whole([each.value for each in parts])
        if whole is not None:
            texts[place], is_cut[place] = whole, False
            is_kept[place + 1 : place + len(parts)] = [False] * (len(parts) - 1)
        place += 1 if whole is None else len(parts)
    return texts, is_kept, is_cut


def _parts(lines: list[_Line], place: int) -> list[_Line]:
    """The open record, and the next lines up to the one that closes it."""
    parts = [lines[place]]
    for each in lines[place + 1 : place + _MOST_PIECES]:
        if not each.is_tail or (each.file, each.line) != (parts[-1].file, parts[-1].line + 1):
            break
        parts.append(each)
        if _is_closed("".join(part.value for part in parts)):
            break
    return parts


def _whole(pieces: list[str]) -> str | None:
    """The record in one; None: its end is not there. Pieces in the middle are as wide as the first."""
    if len(pieces) < 2 or any(len(piece) != len(pieces[0]) for piece in pieces[1:-1]):
        return None
    joined = _joined(pieces)
    return joined if _is_closed(joined) else None


def _is_closed(text: str) -> bool:
    return re.search(_CLOSED, text) is not None


def _joined(pieces: list[str]) -> str:
    """
    >>> _joined(["(Re-)joining", "group (a.B)"]), _joined(["joined generation", "7 (a.B)"])
    ('(Re-)joining group (a.B)', 'joined generation 7 (a.B)')
    >>> _joined(["clicks-0, clic", "ks-1"]), _joined(["Generati", "on{generationId=7}"])
    ('clicks-0, clicks-1', 'Generation{generationId=7}')
    """
    whole = pieces[0]
    for piece in pieces[1:]:
        last, first = re.search(r"[A-Za-z]+$", whole.rstrip()), re.match(r"[A-Za-z]+|\d", piece)
        is_between_words = last and first and last[0] in _words() and (first[0].isdigit() or first[0] in _words())
        whole += (" " if is_between_words and not whole.endswith(" ") else "") + piece
    return whole


@cache
def _words() -> frozenset[str]:
    """The words of all wordings: a paste that wraps between words has one on both sides."""
    texts = (each.template for table in wordings.BY_SOURCE.values() for each in table)
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z]{2,}", text))
