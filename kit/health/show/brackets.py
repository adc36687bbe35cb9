"""The bounds of a frame's times in words, one column for both."""

from __future__ import annotations

import polars as pl

from kit.text.bracket import bracket
from kit.text.duration import duration

_TIMES: dict[str, list[str]] = {
    "age": ["lower_ms", "upper_ms"],
    "closed_in": ["close_lower_ms", "close_upper_ms", "is_never_closed"],
    "unread_deleted_in": ["deletion_lower_ms", "deletion_upper_ms", "is_never_deleted"],
}


def with_brackets(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``kit.health.sources.time_lag``, ``outlook`` or ``analyze.group_outlook`` with their bounds in words.

    ``age`` replaces lower_ms and upper_ms, ``closed_in`` for close_…, ``unread_deleted_in`` for deletion_…; each
    in the place of the lower bound. The estimates beside them go.
    """
    gone, words = {"time_lag_ms", "close_ms", "deletion_ms"}, dict[str, pl.Series]()
    for name, bounds in _TIMES.items():
        if bounds[0] in rows.columns:
            texts = [_describe(name, *each) for each in rows.select(bounds).iter_rows()]
            words[bounds[0]] = pl.Series(name, texts, pl.String)
            gone.update(bounds)
    return rows.select(words.get(name, name) for name in rows.columns if name in words or name not in gone)


def _describe(name: str, lower_ms: int | None, upper_ms: int | None, is_never: bool | None = False) -> str | None:
    if name == "age" and lower_ms is not None and upper_ms is None:
        return f"at least {duration(lower_ms)}"
    return bracket(lower_ms, upper_ms, is_never)
