"""Records that a terminal or a paste has wrapped: joined where the layout proves it, else known to be cut.

Kafka's own layout closes each record with its logger. A record that lacks it continues in the next line, if that line
has no head and closes with a logger. In a file of this layout, what is not closed, or has no head and no other layout,
is a part of a record.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

import polars as pl

from kit.rebalances.logs import wordings
from kit.rebalances.logs.batching import detached
from kit.rebalances.logs.layouts import LEVELS, TIME, layout_of, without_prefix
from kit.rebalances.logs.multiline import is_part
from kit.rebalances.logs.texts import has

_HEAD = rf"^\[{TIME}[^\]]*\] (?:{LEVELS}) "
_CLOSED = r"\([A-Za-z_]\w*(?:\.[\w$]+)+(?::\d+)?\)(?: \[[^\]]*\]| - [\w.-]+=[^()]*)?\s*$"
_BLOCK = r"(?:Updating assignment with|Reconciling assignment with local epoch \d+)\s*$"
"""The message itself has several lines."""
_NO_TAIL = (
    r"^(?:\t|  | \(|$|\{\"|<|\[\d|\[[A-Z][\w ]+ (?:clientId|instanceId|id)=|at |Caused by"
    rf"|\S*(?:Exception|Error)\b|.{{0,60}}{TIME})"
)
_MOST_PIECES = 5
_ENOUGH = 100
"""The number of lines of a file that show whether its records have a head, and close with loggers."""


def rejoined(portions: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """``file``, ``line`` and ``value``, in order → the same with ``is_cut``, and with wrapped records in one row.

    It does not matter where a portion ends: what more lines could change waits for the next one.
    """
    waiting, known = pl.DataFrame(), dict[str, bool]()
    for portion in portions:
        lines = pl.concat([waiting, portion])
        n_waiting = _n_waiting(lines, known)
        ready, waiting = lines.head(len(lines) - n_waiting), detached(lines.tail(n_waiting))
        if len(ready):
            is_closing = _closing(lines, known)
            yield _rejoined(ready, is_closing)
            known = {file: is_closing[file] for file in ready["file"].tail(1)}
    if len(waiting):
        yield _rejoined(waiting, _closing(waiting, known))


def _n_waiting(lines: pl.DataFrame, known: dict[str, bool]) -> int:
    """Return how many lines of the last file wait: all while few are known, else those of a record that may
    continue.
    """
    (last,) = lines["file"].tail(1)
    n_of_last = lines.select((pl.col("file") == last).sum()).item()
    if last not in known and n_of_last < _ENOUGH:
        return int(n_of_last)
    end = list(map(_Line._make, _marked(lines.tail(_MOST_PIECES - 1), [last]).rows()))
    return next((len(end) - at for at in range(len(end)) if len(_parts(end, at)) == len(end) - at), 0)


def _closing(lines: pl.DataFrame, known: dict[str, bool]) -> dict[str, bool]:
    """Return for each file whether its records have a head and close with loggers, by its first lines; ``known``:
    what is known.
    """
    value = pl.col("value")
    first = lines.filter(~pl.col("file").is_in(list(known))).group_by("file").head(_ENOUGH)
    # If another text is in front of the heads, lines of several programs may be mixed.
    shown = [has(pl.when(value.str.starts_with("[")).then(value), _HEAD).any()]
    shown += [has(pl.when(value.str.ends_with(")")).then(value), _CLOSED).any()]
    by_file = first.group_by("file").agg(pl.all_horizontal(shown).fill_null(False).alias("is_closing"))
    return known | dict(by_file.select("file", "is_closing").iter_rows())


def _rejoined(lines: pl.DataFrame, is_closing: dict[str, bool]) -> pl.DataFrame:
    whole = lines.with_columns(is_cut=pl.lit(False))
    marked = _marked(lines, [file for file in is_closing if is_closing[file]])
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


def _marked(lines: pl.DataFrame, files: list[str]) -> pl.DataFrame:
    """The fields of ``_Line``, of these files: in all other files, no line is open, or a tail."""
    value = pl.col("value")
    # Nearly all records of this layout begin and end alike: two cheap tests leave few for the patterns.
    is_usual = value.str.starts_with("[") & value.str.ends_with(")")
    odd = pl.when(~is_usual & pl.col("file").is_in(files)).then(value)
    is_open = has(odd, _HEAD) & ~has(odd, _CLOSED) & ~has(odd, _BLOCK)
    is_tail = ~has(odd, _HEAD) & ~has(odd, _NO_TAIL) & ~is_part(odd)
    is_tail &= layout_of(without_prefix(pl.when(is_tail).then(odd)), None).is_null()
    return lines.select("file", "line", "value", is_open=is_open.fill_null(False), is_tail=is_tail.fill_null(False))


def _walked(lines: list[_Line]) -> tuple[list[str], list[bool], list[bool]]:
    """The texts, which of them stay, and which are a part of a record whose other parts are not there."""
    texts, is_kept = [each.value for each in lines], [True] * len(lines)
    is_cut = [each.is_open or (each.is_tail and not _is_closed(each.value)) for each in lines]
    place = 0
    while place < len(lines):
        parts = _parts(lines, place)
        whole = _whole([each.value for each in parts])
        if whole is not None:
            texts[place], is_cut[place] = whole, False
            is_kept[place + 1 : place + len(parts)] = [False] * (len(parts) - 1)
        place += 1 if whole is None else len(parts)
    return texts, is_kept, is_cut


def _parts(lines: list[_Line], place: int) -> list[_Line]:
    """The open record, and the next lines up to the one that closes it; none if there is no open record."""
    if not lines[place].is_open:
        return []
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
